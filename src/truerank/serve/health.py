"""Health: whether the process lives, and whether it can answer as it should."""

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from truerank.errors import DatabaseUnavailable, ProjectionUnavailable
from truerank.serve.params import Params
from truerank.serve.replies import reply
from truerank.serve.service import service_of

_PROBE_S_MAX = 3.0


async def live(request: Request) -> Response:
    """`GET /health/live`: the process answers; it asks nobody else."""
    Params(request, ())
    return reply({"status": "live"})


async def ready(request: Request) -> Response:
    """`GET /health/ready`: the database answers, and every group has a copy of its epoch.

    Otherwise 503 with the reason; what can be answered from the rest is answered all the same.
    """
    Params(request, ())
    try:
        async with asyncio.timeout(_PROBE_S_MAX):
            status = await service_of(request).truerank.status()
    except TimeoutError as exc:
        raise DatabaseUnavailable(f"no answer within {_PROBE_S_MAX:g} s") from exc
    if status.projection != "whole":
        raise ProjectionUnavailable(
            f"{status.groups_live} of {status.groups} groups have a copy in Redis:"
            f" {status.projection}"
        )
    return reply({"status": "ready", "groups": status.groups})

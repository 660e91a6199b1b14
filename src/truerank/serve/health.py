"""Health: whether the process lives, and whether what it answers is as good as promised."""

from starlette.requests import Request
from starlette.responses import Response

from truerank.errors import (
    DatabaseUnavailable,
    ProjectionUnavailable,
    SchemaMismatch,
    TruerankError,
)
from truerank.read.verdict import Verdict
from truerank.serve.params import Params
from truerank.serve.replies import error_reply, reply
from truerank.serve.watch import Watch

_ERRORS: dict[str, type[TruerankError]] = {
    "database_away": DatabaseUnavailable,
    "database_read_only": DatabaseUnavailable,
    "schema_mismatch": SchemaMismatch,
}


async def live(request: Request) -> Response:
    """`GET /healthz`, `GET /health/live`: the process answers; it asks nobody else."""
    Params(request, ())
    return reply({"status": "live"})


async def ready(request: Request) -> Response:
    """`GET /readyz`, `GET /health/ready`: whether the verdict of `truerank status` is not degraded.

    Otherwise 503 with the reasons; what can be answered from the rest is answered all the same.
    """
    Params(request, ())
    watch: Watch = request.app.state.watch
    status = await watch.status()
    problems = [
        {"code": problem.code, "message": problem.message, "advice": problem.advice}
        for problem in status.problems
    ]
    if status.verdict is Verdict.DEGRADED:
        kind = _ERRORS.get(status.problems[0].code, ProjectionUnavailable)
        error = kind("; ".join(problem.message for problem in status.problems))
        return error_reply(error, status=status.verdict, problems=problems)
    shown = "ready" if status.verdict is Verdict.HEALTHY else status.verdict
    return reply(
        {"status": shown, "groups": status.groups} | ({"problems": problems} if problems else {})
    )

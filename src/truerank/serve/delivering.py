"""Who is told of what by webhook, and what is on its way to whom: for operators."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from truerank.read.shapes import delivery_json, webhook_json
from truerank.serve.bodies import convert, read_json, whole
from truerank.serve.operators import ByIn, check_wait, operators_client
from truerank.serve.params import Params
from truerank.serve.replies import reply

_WAIT_S = 15.0
_OVERLAP_S = 86_400
_LIMIT = 100


class WebhookIn(ByIn, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A receiver, and what it is told of."""

    name: str
    url: str
    kinds: tuple[str, ...]
    board: str | None = None
    allow_http: bool = False


class ChangeIn(ByIn, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be different; what isn't given stays."""

    name: str
    url: str | None = None
    kinds: tuple[str, ...] | None = None
    enabled: bool | None = None
    allow_http: bool = False


class RotateIn(ByIn, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose secret is to be another, and for how many seconds the one before signs as well."""

    name: str
    overlap_s: int = _OVERLAP_S


class RemoveIn(ByIn, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who is to be told of nothing any more."""

    name: str


class RetryIn(ByIn, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be sent again; without ids, all that was tried and is parked or waits."""

    name: str
    ids: tuple[int | str, ...] | None = None


class AttemptIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who is to be sent a test, and how long its first attempt is waited for."""

    name: str
    wait_s: float = _WAIT_S


async def add(request: Request) -> Response:
    """`POST /v1/webhooks`: 201 with the secret, which nobody can ask for again."""
    Params(request, ())
    client = operators_client(request)
    given = convert(await read_json(request), WebhookIn)
    secret = await client.add_webhook(
        given.name,
        given.url,
        given.kinds,
        board=given.board,
        allow_http=given.allow_http,
        actor=given.actor,
        reason=given.reason,
    )
    return reply({"webhook": given.name, "secret": secret}, 201)


async def list_webhooks(request: Request) -> Response:
    """`GET /v1/webhooks?name=`: all of them, or the one of a name."""
    name = Params(request, ("name",)).text("name")
    client = operators_client(request)
    found = await client.webhooks() if name is None else [await client.webhook(name)]
    return reply({"webhooks": [webhook_json(each) for each in found]})


async def change(request: Request) -> Response:
    """`POST /v1/webhooks/change`: what the webhook is now."""
    Params(request, ())
    client = operators_client(request)
    given = convert(await read_json(request), ChangeIn)
    await client.change_webhook(
        given.name,
        url=given.url,
        kinds=given.kinds,
        enabled=given.enabled,
        allow_http=given.allow_http,
        actor=given.actor,
        reason=given.reason,
    )
    return reply(webhook_json(await client.webhook(given.name)))


async def rotate(request: Request) -> Response:
    """`POST /v1/webhooks/rotate`: the new secret."""
    Params(request, ())
    client = operators_client(request)
    given = convert(await read_json(request), RotateIn)
    secret = await client.rotate_webhook(
        given.name, overlap_s=given.overlap_s, actor=given.actor, reason=given.reason
    )
    return reply({"webhook": given.name, "secret": secret})


async def remove(request: Request) -> Response:
    """`POST /v1/webhooks/remove`: tell a receiver of nothing any more."""
    Params(request, ())
    client = operators_client(request)
    given = convert(await read_json(request), RemoveIn)
    await client.remove_webhook(given.name, actor=given.actor, reason=given.reason)
    return reply({"webhook": given.name, "removed": True})


async def deliveries(request: Request) -> Response:
    """`GET /v1/webhooks/deliveries?name=&state=&before=&limit=`: the latest first."""
    params = Params(request, ("name", "state", "before", "limit"))
    name, before = params.required("name"), params.text("before")
    found = await operators_client(request).deliveries(
        name,
        state=params.text("state"),
        before=None if before is None else whole(before, "before"),
        limit=params.number("limit", _LIMIT),
    )
    return reply({"webhook": name, "deliveries": [delivery_json(each) for each in found]})


async def retry(request: Request) -> Response:
    """`POST /v1/webhooks/retry`: how many deliveries are to be sent again."""
    Params(request, ())
    client = operators_client(request)
    given = convert(await read_json(request), RetryIn)
    ids = None if given.ids is None else [whole(each, "ids") for each in given.ids]
    retried = await client.retry_deliveries(given.name, ids, actor=given.actor, reason=given.reason)
    return reply({"webhook": given.name, "retried": retried})


async def attempt(request: Request) -> Response:
    """`POST /v1/webhooks/test`: the delivery of a test, and how its first attempt ended."""
    Params(request, ())
    client = operators_client(request)
    given = convert(await read_json(request), AttemptIn)
    wait_s = check_wait(given.wait_s)
    return reply(delivery_json(await client.test_webhook(given.name, timeout_s=wait_s)))

"""What is said of members: hidden by themselves; banned, reset, deleted, merged by operators."""

from collections.abc import Awaitable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from truerank.aio import Truerank
from truerank.instants import read_instant
from truerank.model import MemberChange
from truerank.read.members import member_change_json, member_states_json
from truerank.serve.bodies import convert, read_json
from truerank.serve.errors import HttpRefusal
from truerank.serve.operators import ByIn, check_wait, operators_client
from truerank.serve.params import Params
from truerank.serve.replies import reply
from truerank.serve.service import service_of

_WAIT_S = 2.0
_OWN_WISH = "its own wish"


class WishIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A member's own wish; on a server for operators also by somebody else, and why."""

    member: str
    board: str | None = None
    actor: str | None = None
    reason: str | None = None
    wait_s: float = _WAIT_S


class SayingIn(ByIn, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said of a member, on one board or everywhere."""

    member: str
    board: str | None = None
    wait_s: float = _WAIT_S


class BanIn(SayingIn, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Until when a member takes no place; for good, where that isn't given."""

    until: str | None = None


class MergeIn(ByIn, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which member's events are to count for another."""

    member: str
    into: str
    wait_s: float = _WAIT_S


async def hide(request: Request) -> Response:
    """`POST /v1/members/hide`: let a member take no place, by its own wish."""
    client, how = await _wish(request)
    return await _said(request, client.hide_member(**how))


async def show(request: Request) -> Response:
    """`POST /v1/members/show`: take that wish back; a ban stays."""
    client, how = await _wish(request)
    return await _said(request, client.show_member(**how))


async def ban(request: Request) -> Response:
    """`POST /v1/members/ban`: let a member take no place, until an instant or for good."""
    client, given = await _given(request, BanIn)
    until = None if given.until is None else read_instant(given.until, "until")
    return await _said(request, client.ban_member(**_how(given), until=until))


async def unban(request: Request) -> Response:
    """`POST /v1/members/unban`: lift a ban."""
    client, given = await _given(request, SayingIn)
    return await _said(request, client.unban_member(**_how(given)))


async def reset(request: Request) -> Response:
    """`POST /v1/members/reset`: let a member begin at zero; its state stays."""
    client, given = await _given(request, SayingIn)
    return await _said(request, client.reset_member(**_how(given)))


async def delete(request: Request) -> Response:
    """`POST /v1/members/delete`: take a member away; what comes later begins a new life."""
    client, given = await _given(request, SayingIn)
    return await _said(request, client.delete_member(**_how(given)))


async def merge(request: Request) -> Response:
    """`POST /v1/members/merge`: let the events of one member count for another, for good."""
    client, given = await _given(request, MergeIn)
    return await _said(
        request,
        client.merge_members(
            given.member,
            given.into,
            actor=given.actor,
            reason=given.reason,
            timeout_s=check_wait(given.wait_s),
        ),
    )


async def states(request: Request) -> Response:
    """`GET /v1/members/states?member=`: all that was said of a member, by board."""
    params = Params(request, ("member",))
    member = params.required("member")
    scopes = await operators_client(request).member_states(member)
    return reply(member_states_json(member, scopes))


async def _wish(request: Request) -> tuple[Truerank, dict[str, Any]]:
    Params(request, ())
    given = convert(await read_json(request), WishIn)
    service = service_of(request)
    own = given.actor in {None, given.member}
    if not (own or service.settings.operator):
        raise HttpRefusal(
            403,
            "operators_only",
            "only the member itself says so here: others ask a server with TRUERANK_OPERATOR=true",
            field="actor",
        )
    return service.truerank, {
        "member": given.member,
        "board": given.board,
        "actor": given.actor or given.member,
        "reason": given.reason or _OWN_WISH,
        "timeout_s": check_wait(given.wait_s),
    }


async def _given(request: Request, shape: type[Any]) -> tuple[Truerank, Any]:
    Params(request, ())
    client = operators_client(request)
    return client, convert(await read_json(request), shape)


def _how(given: SayingIn) -> dict[str, Any]:
    return {
        "member": given.member,
        "board": given.board,
        "actor": given.actor,
        "reason": given.reason,
        "timeout_s": check_wait(given.wait_s),
    }


async def _said(request: Request, command: Awaitable[MemberChange]) -> Response:
    """200 where nobody is shown what was before; 202 where the projection doesn't show it yet."""
    change = await command
    service_of(request).pages.clear()
    return reply(member_change_json(change), 202 if change.pending else 200)

"""Leagues: where a member is, for everybody; how seasons are divided, for operators."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from truerank.model import LeagueRule
from truerank.paging import LIMIT_MAX
from truerank.read.leagues import cohorts_json, league_json, league_place_json, tier_json
from truerank.serve.bodies import convert, read_json
from truerank.serve.operators import ByIn, operators_board, operators_client
from truerank.serve.params import NEEDS, Params, board_of
from truerank.serve.replies import answer, reply
from truerank.serve.service import service_of


class LeagueIn(ByIn, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a board's seasons of one period are divided."""

    period: str
    size: int
    by_key: bool = False
    tiers: tuple[str, ...] = ("league",)
    promote: int = 0
    demote: int = 0
    from_season: str | None = None


class DropIn(ByIn, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seasons that are to be divided no longer."""

    period: str


class KeyIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """With whom a member is to share cohorts; null: with anybody."""

    member: str
    key: str | None


async def place(request: Request) -> Response:
    """`GET /v1/boards/{board}/leagues/place?member=&season=`: a cohort, a tier, a place there."""
    params = Params(request, ("member", "season", "source", *NEEDS))
    found = await service_of(request).truerank.league_place(
        board_of(request),
        params.required("member"),
        params.text("season"),
        consistency=params.consistency(),
        source=params.source(),
    )
    return answer(request, league_place_json(found))


async def list_cohorts(request: Request) -> Response:
    """`GET /v1/boards/{board}/cohorts?season=&after=&limit=`: in order of their numbers."""
    params = Params(request, ("season", "after", "limit"))
    board = board_of(request)
    found = await service_of(request).truerank.cohorts(
        board,
        params.text("season"),
        after=params.number("after", 0),
        limit=params.number("limit", LIMIT_MAX),
    )
    return answer(request, cohorts_json(board, found))


async def list_leagues(request: Request) -> Response:
    """`GET /v1/boards/{board}/leagues`."""
    client, board = operators_board(request)
    found = await client.leagues(board)
    return reply({"board": board, "leagues": [league_json(each) for each in found]})


async def set_league(request: Request) -> Response:
    """`POST /v1/boards/{board}/leagues`: divide seasons of a period, or change how."""
    client, board = operators_board(request)
    given = convert(await read_json(request), LeagueIn)
    rule = LeagueRule(
        period=given.period,
        size=given.size,
        by_key=given.by_key,
        tiers=given.tiers,
        promote=given.promote,
        demote=given.demote,
    )
    changed = await client.set_league(
        board, rule, from_season=given.from_season, actor=given.actor, reason=given.reason
    )
    return reply({"board": board, "period": given.period, "changed": changed})


async def drop_league(request: Request) -> Response:
    """`POST /v1/boards/{board}/leagues/drop`: divide no more members of these seasons."""
    client, board = operators_board(request)
    given = convert(await read_json(request), DropIn)
    await client.drop_league(board, given.period, actor=given.actor, reason=given.reason)
    return reply({"board": board, "period": given.period, "dropped": True})


async def assign_key(request: Request) -> Response:
    """`POST /v1/boards/{board}/leagues/assign`: say with whom a member is to share cohorts."""
    client, board = operators_board(request)
    given = convert(await read_json(request), KeyIn)
    changed = await client.assign_league_key(board, given.member, given.key)
    return reply({"board": board, "member": given.member, "changed": changed})


async def list_tiers(request: Request) -> Response:
    """`GET /v1/boards/{board}/leagues/tiers?period=&after=&limit=`: in order of members' ids."""
    client, params = operators_client(request), Params(request, ("period", "after", "limit"))
    board = board_of(request)
    found = await client.league_tiers(
        board,
        params.required("period"),
        after=params.text("after") or "",
        limit=params.number("limit", LIMIT_MAX),
    )
    return reply({"board": board, "members": [tier_json(each) for each in found]})

"""Who gets what of settled seasons, and what was dealt with: for operators."""

from collections.abc import Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from truerank.command.board import choice
from truerank.errors import InvalidInput
from truerank.model import AwardRule, Numbering
from truerank.paging import LIMIT_MAX
from truerank.read.settlement import award_json, award_rule_json
from truerank.serve.bodies import convert, read_json, whole
from truerank.serve.operators import ByIn, operators_board, operators_client
from truerank.serve.params import Params
from truerank.serve.replies import reply
from truerank.serve.sharing import within


class RuleIn(ByIn, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule: one of `ranks`, `percent` and `score`."""

    period: str
    name: str
    ranks: tuple[int, int] | None = None
    numbering: str = Numbering.COMPETITION.value
    percent: str | int | None = None
    score: str | int | None = None


class DropIn(ByIn, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule that is to hold no longer."""

    period: str
    name: str


class AcknowledgeIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which changes of awards were dealt with, as digits or numbers, and by whom."""

    changes: tuple[int | str, ...]
    actor: str


async def make_rule(request: Request) -> Response:
    """`POST /v1/boards/{board}/award-rules`: 201 where it is new, 200 where it holds already."""
    client, board = operators_board(request)
    given = convert(await read_json(request), RuleIn)
    rule = AwardRule(
        period=given.period,
        name=given.name,
        ranks=given.ranks,
        numbering=choice(Numbering, given.numbering, "numbering"),
        percent=None if given.percent is None else str(given.percent),
        score=None if given.score is None else str(given.score),
    )
    made = await client.make_award_rule(board, rule, actor=given.actor, reason=given.reason)
    shape = {"board": board, "period": given.period, "name": given.name, "made": made}
    return reply(shape, 201 if made else 200)


async def drop_rule(request: Request) -> Response:
    """`POST /v1/boards/{board}/award-rules/drop`: give an award no longer; what was given stays."""
    client, board = operators_board(request)
    given = convert(await read_json(request), DropIn)
    await client.drop_award_rule(
        board, given.period, given.name, actor=given.actor, reason=given.reason
    )
    return reply({"board": board, "period": given.period, "name": given.name, "dropped": True})


async def list_rules(request: Request) -> Response:
    """`GET /v1/boards/{board}/award-rules`."""
    client, board = operators_board(request)
    rules = await client.award_rules(board)
    return reply({"board": board, "rules": [award_rule_json(rule) for rule in rules]})


async def list_awards(request: Request) -> Response:
    """`GET /v1/awards?board=&season=&cohort=&after=&limit=&unacknowledged=`: as they changed."""
    client = operators_client(request)
    params = Params(
        request, ("board", "season", "after", "limit", "unacknowledged", "cohort", "cohort_of")
    )
    after = whole(params.text("after") or "0", "after")
    awards = await client.awards(
        params.text("board"),
        params.text("season"),
        after=after,
        limit=params.number("limit", LIMIT_MAX),
        unacknowledged=params.flag("unacknowledged"),
        **within(params),
    )
    last = awards[-1].change if awards else after
    return reply({"awards": [award_json(award) for award in awards], "after": str(last)})


async def acknowledge(request: Request) -> Response:
    """`POST /v1/awards/acknowledge`: note that awards were dealt with, by their changes."""
    client = operators_client(request)
    Params(request, ())
    given = convert(await read_json(request), AcknowledgeIn)
    changes: Sequence[int] = [whole(change, "changes") for change in given.changes]
    if not changes:
        raise InvalidInput("changes are at least one", field="changes")
    return reply({"acknowledged": await client.acknowledge_awards(changes, actor=given.actor)})

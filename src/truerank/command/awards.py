"""Who gets what of a settled season: rules, what they gave, and what was dealt with.

Awards are given in the transaction of a settlement, and read only from it: none is there before a
season is final.
"""

import re
from collections.abc import Sequence
from decimal import Decimal

from truerank.command.attach import who
from truerank.command.board import check_known, choice
from truerank.command.submit import check_text, to_number
from truerank.errors import InvalidInput
from truerank.model import Award, AwardRule, Numbering
from truerank.paging import LIMIT_MAX, check_whole
from truerank.steps import Query, Steps

_MAKE = "SELECT truerank.make_award_rule(%s, %s, %s, %s, %s, %s, %s, %s::numeric, %s, %s, %s)"
_DROP = "SELECT truerank.drop_award_rule(%s, %s, %s, %s, %s)"
_RULES = """
    SELECT period, name, kind, numbering, rank_from, rank_to, percent::text, score::text
    FROM truerank.award_rules(%s)"""
_AWARDS = """
    SELECT change, id, board, season, rule, member, state, revision, rank, score::text,
           changed_at, acknowledged_at, acknowledged_by, acknowledged_state
    FROM truerank.awards(%s, %s, %s, %s::integer, %s, %s)"""
_ACKNOWLEDGE = "SELECT truerank.acknowledge_awards(%s::bigint[], %s)"


def make_rule(board: str, rule: AwardRule, *, actor: str, reason: str) -> Steps[bool]:
    """Make a rule; True where it is new.

    Raises:
        InvalidInput: it makes no sense, or another one of this period has the name.
        BoardUnknown: no board has this key.

    Source: `schema/functions/make_award_rule.sql`.
    """
    check_text(board, "board")
    check_text(rule.period, "period")
    check_text(rule.name, "name")
    given = {
        "ranks": rule.ranks,
        "percent": rule.percent,
        "score": rule.score,
    }
    kinds = [kind for kind, value in given.items() if value is not None]
    if len(kinds) != 1:
        raise InvalidInput("a rule has either ranks, percent or score", field="rule")
    first, last = (None, None) if rule.ranks is None else _ranks(rule.ranks)
    numbering = choice(Numbering, rule.numbering, "numbering")
    ((outcome,),) = yield Query(
        _MAKE,
        (
            board,
            rule.period,
            rule.name,
            kinds[0],
            first,
            last,
            numbering.value,
            None if rule.percent is None else str(_percent(rule.percent)),
            None if rule.score is None else to_number(rule.score),
            *who(actor, reason),
        ),
    )
    check_known(outcome, board)
    if outcome == "rule_exists":
        raise InvalidInput(
            f"another rule {rule.name!r} holds for seasons by {rule.period}: drop it first",
            code="rule_exists",
            field="name",
        )
    return bool(outcome == "made")


def drop_rule(board: str, period: str, name: str, *, actor: str, reason: str) -> Steps[None]:
    """Let a rule hold no longer; what it gave stays.

    Raises:
        InvalidInput: there is no such rule.
        BoardUnknown: no board has this key.

    Source: `schema/functions/drop_award_rule.sql`.
    """
    for text in (board, period, name):
        check_text(text, "name")
    ((outcome,),) = yield Query(_DROP, (board, period, name, *who(actor, reason)))
    check_known(outcome, board)
    if outcome == "rule_unknown":
        raise InvalidInput(
            f"no rule {name!r} holds for seasons by {period}", code="rule_unknown", field="name"
        )


def list_rules(board_id: int) -> Steps[list[AwardRule]]:
    """The rules of a board, by period and name.

    Source: `schema/functions/award_rules.sql`.
    """
    rows = yield Query(_RULES, (board_id,))
    return [
        AwardRule(
            period=period,
            name=name,
            numbering=Numbering(numbering),
            ranks=(rank_from, rank_to) if kind == "ranks" else None,
            percent=percent,
            score=score,
        )
        for period, name, kind, numbering, rank_from, rank_to, percent, score in rows
    ]


def list_awards(
    board_id: int | None,
    ranking: int | None,
    *,
    cohort: int | None = None,
    after: int,
    limit: int,
    unacknowledged: bool,
) -> Steps[list[Award]]:
    """Awards in the order of their changes, after one.

    Source: `schema/functions/awards.sql`.
    """
    rows = yield Query(_AWARDS, (board_id, ranking, after, limit, unacknowledged, cohort))
    return [
        Award(
            change=change,
            id=id_,
            board=board,
            season=season,
            rule=rule,
            member=member,
            state=state,
            revision=revision,
            rank=rank,
            score=score,
            changed_at=changed_at,
            acknowledged_at=acknowledged_at,
            acknowledged_by=acknowledged_by,
            acknowledged_state=acknowledged_state,
        )
        for (change, id_, board, season, rule, member, state, revision, rank, score, changed_at,
             acknowledged_at, acknowledged_by, acknowledged_state) in rows
    ]  # fmt: skip


def acknowledge(changes: Sequence[int], *, actor: str) -> Steps[int]:
    """Note that awards were dealt with; how many there are of these changes.

    Raises:
        InvalidInput: more than 1000 changes, or one that is no number of a change.

    Source: `schema/functions/acknowledge_awards.sql`.
    """
    actor, _ = who(actor, "acknowledged")
    check_whole("changes", len(changes), LIMIT_MAX)
    for change in changes:
        check_whole("changes", change, least=1)
    ((count,),) = yield Query(_ACKNOWLEDGE, (list(changes), actor))
    return int(count)


def _ranks(ranks: Sequence[int]) -> tuple[int, int]:
    if isinstance(ranks, str) or len(ranks) != 2:  # noqa: PLR2004 - from one to another
        raise InvalidInput("ranks are the first and the last", field="ranks")
    for rank in ranks:
        check_whole("ranks", rank, least=1)
    first, last = ranks
    if first > last:
        raise InvalidInput("the first rank comes before the last", field="ranks")
    return first, last


def _percent(text: str) -> Decimal:
    if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,20})?", str(text)) is None:
        raise InvalidInput("percent is a number such as 10 or 0.5", field="percent")
    percent = Decimal(text)
    if not 0 < percent <= 100:  # noqa: PLR2004 - it is percent
        raise InvalidInput("percent is more than 0, and at most 100", field="percent")
    return percent

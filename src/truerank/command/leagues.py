"""Divide the members of seasons into cohorts, with tiers that they move between."""

from typing import Any

from truerank.command.attach import who
from truerank.command.board import PERIODS, check_known
from truerank.command.submit import check_member, check_text
from truerank.errors import InvalidInput, SeasonUnknown
from truerank.model import League, LeagueRule
from truerank.paging import check_whole
from truerank.steps import Query, Steps

_SET = """
    SELECT truerank.set_league(%s, %s, %s::integer, %s, %s::text[], %s::integer, %s::integer, %s,
                               %s, %s)"""
_DROP = "SELECT truerank.drop_league(%s, %s, %s, %s)"
_LIST = """
    SELECT board, period, size, by_key, tiers, promote, demote, from_season, scanned, undivided,
           waits_for
    FROM truerank.leagues(%s)"""
_ASSIGN = "SELECT truerank.assign_league_key(%s, %s, %s)"
_DIVIDE = "SELECT truerank.divide_leagues(%s::integer)"
_INT_MAX = 2**31 - 1
_KEY_CHARS_MAX = 100
_MEMBERS_MAX = 500  # in one transaction, for which writers of these members wait


def set_league(
    board: str, rule: LeagueRule, *, from_season: str | None, actor: str, reason: str
) -> Steps[bool]:
    """Set, or change, how seasons of a period are divided; True where anything changed.

    Raises:
        InvalidInput: it makes no sense.
        SeasonUnknown: the board keeps no such first season.
        BoardUnknown: no board has this key.

    Source: `schema/functions/set_league.sql`.
    """
    check_text(board, "board")
    check_period(rule.period)
    for name in ("size", "promote", "demote"):
        check_whole(name, getattr(rule, name), _INT_MAX)
    for tier in rule.tiers:
        check_text(tier, "tiers")
    if from_season is not None:
        check_text(from_season, "from_season")
    ((outcome,),) = yield Query(
        _SET,
        (
            board,
            rule.period,
            rule.size,
            rule.by_key,
            list(rule.tiers),
            rule.promote,
            rule.demote,
            from_season,
            *who(actor, reason),
        ),
    )
    check_known(outcome, board)
    if outcome == "period_unknown":
        raise InvalidInput(f"board {board!r} has no seasons by {rule.period}", field="period")
    if outcome == "season_unknown":
        raise SeasonUnknown(f"board {board!r} has no season {from_season!r}", field="from_season")
    if outcome == "rule_invalid":
        raise InvalidInput(
            "a cohort has 2 to 1000 members; no more are promoted and demoted than it has; there "
            "are 1 to 20 tiers of different names, and for all and custom one, and nobody moves",
            field="rule",
        )
    return bool(outcome != "same")


def drop_league(board: str, period: str, *, actor: str, reason: str) -> Steps[None]:
    """Divide no more members of these seasons, and move none.

    Raises:
        InvalidInput: there is no such league.
        BoardUnknown: no board has this key.

    Source: `schema/functions/drop_league.sql`.
    """
    check_text(board, "board")
    check_period(period)
    ((outcome,),) = yield Query(_DROP, (board, period, *who(actor, reason)))
    check_known(outcome, board)
    if outcome == "league_unknown":
        raise InvalidInput(
            f"seasons by {period} of board {board!r} are not divided",
            code="league_unknown",
            field="period",
        )


def list_leagues(board: str | None) -> Steps[list[League]]:
    """The leagues of one board or of all, and how far they are.

    Raises:
        InvalidInput: the board's key is no text that PostgreSQL can store.

    Source: `schema/functions/leagues.sql`.
    """
    if board is not None:
        check_text(board, "board")
    rows = yield Query(_LIST, (board,))
    return [_league(*row) for row in rows]


def assign_key(board: str, member: str, key: str | None) -> Steps[bool]:
    """Say with whom a member is to share cohorts; True where that is new.

    Raises:
        InvalidInput: the key hasn't 1 to 100 characters.
        BoardUnknown: no board has this key.

    Source: `schema/functions/assign_league_key.sql`.
    """
    check_text(board, "board")
    check_member(member)
    if key is not None:
        check_text(key, "key")
        if not 1 <= len(key) <= _KEY_CHARS_MAX:
            raise InvalidInput("a key has 1 to 100 characters", field="key")
    ((outcome,),) = yield Query(_ASSIGN, (board, member, key))
    check_known(outcome, board)
    return bool(outcome == "assigned")


def divide(members_max: int = _MEMBERS_MAX) -> Steps[int]:
    """A piece of the work of dividing members; 0: nothing is to be done now.

    Raises:
        InvalidInput: `members_max` is outside 1 to 500.

    Source: `schema/functions/divide_leagues.sql`.
    """
    check_whole("members_max", members_max, _MEMBERS_MAX, least=1)
    ((done,),) = yield Query(_DIVIDE, (members_max,))
    return int(done)


def check_period(period: str) -> None:
    """Refuse what is no period.

    Raises:
        InvalidInput: it is another word.
    """
    if period not in (*PERIODS, "custom"):
        raise InvalidInput(f"a period is one of {', '.join((*PERIODS, 'custom'))}", field="period")


def _league(board: str, period: str, *rest: Any) -> League:
    size, by_key, tiers, promote, demote, from_season, scanned, undivided, waits_for = rest
    return League(
        board=board,
        rule=LeagueRule(
            period=period,
            size=size,
            by_key=by_key,
            tiers=tuple(tiers),
            promote=promote,
            demote=demote,
        ),
        from_season=from_season,
        scanned=scanned,
        undivided=undivided,
        waits_for=waits_for,
    )

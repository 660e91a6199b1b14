"""What the projection can't show: list it, and have it tried again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from truerank.paging import check_slice, check_whole
from truerank.steps import Query, Steps

_PARKED = "SELECT * FROM truerank.parked_standings(%s::bigint, %s::integer)"
_RETRY = "SELECT truerank.retry_standings(%s::bigint)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedStanding:
    """A ranking that readers get from PostgreSQL, because it can't be applied to a copy.

    `member` and `version` are the first standing that was refused; None: all of them are. The board
    and the season are None where the board was deleted since.
    """

    ranking: int
    group: int
    board: str | None
    season: str | None
    member: str | None
    version: int | None
    reason: str
    first_seen_at: datetime
    last_seen_at: datetime
    tries: int
    retry_at: datetime  # a worker tries it in a new copy, at the first heartbeat after this


def list_parked(*, after: int | None = None, limit: int = 1000) -> Steps[list[ParkedStanding]]:
    """Rankings that the projection can't show, in the order of their numbers.

    Args:
        after: go on after this ranking.
        limit: rows.

    Source: `schema/functions/parked_standings.sql`.
    """
    check_slice(limit)
    if after is not None:
        check_whole("after", after)
    rows: list[tuple[Any, ...]] = yield Query(_PARKED, (after, limit))
    return [_parked(row) for row in rows]


def retry_parked(ranking: int | None = None) -> Steps[int]:
    """Have a parked ranking, or all of them, tried again now; returns how many.

    The worker of its group fills a new copy, which goes live with it or without it.

    Source: `schema/functions/retry_standings.sql`.
    """
    if ranking is not None:
        check_whole("ranking", ranking)
    ((number,),) = yield Query(_RETRY, (ranking,))
    return int(number)


def _parked(row: Sequence[Any]) -> ParkedStanding:
    (ranking, group, board, season, member, version, reason, first_seen_at, last_seen_at, tries,
     retry_at) = row  # fmt: skip
    return ParkedStanding(
        ranking=ranking,
        group=group,
        board=board,
        season=season,
        member=member,
        version=version,
        reason=reason,
        first_seen_at=first_seen_at,
        last_seen_at=last_seen_at,
        tries=tries,
        retry_at=retry_at,
    )

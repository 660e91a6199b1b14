"""Which ranking a season's label names."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from truerank.command.submit import check_text
from truerank.errors import SeasonUnknown
from truerank.model import Board, Freshness, Listed, Season, Source
from truerank.steps import Query, Steps

_FIND = "SELECT * FROM truerank.find_season(%s, %s)"
_FIND_AT = "SELECT * FROM truerank.find_season(%s, NULL, %s)"
_SHOWN = "SELECT * FROM truerank.shown_ranking(%s)"
_FROZEN = "SELECT truerank.frozen_rankings(%s)"
_LIST = "SELECT * FROM truerank.seasons(%s, %s, %s::integer, %s::integer)"
_NAME = "SELECT ranking, season, label, cohort FROM truerank.name_rankings(%s::bigint[])"
_NOW = "SELECT now(), truerank.source_epoch()"
_CHARS_MAX = 100


@dataclass(frozen=True, slots=True)
class NamedRanking:
    """What a ranking is of; this never changes."""

    season: int  # the number of the season, also of a cohort
    label: str
    cohort: int | None


def find_season(board: Board, label: str | None) -> Steps[Season]:
    """The season of a label; without one `all` where the board has it, else the current one.

    A built-in season exists whether or not anything has happened in it.

    Raises:
        SeasonUnknown: the board keeps no such season.

    Source: `schema/functions/find_season.sql`.
    """
    if label is not None:
        check_text(label, "season")
    rows = [] if label and len(label) > _CHARS_MAX else (yield Query(_FIND, (board.id, label)))
    if not rows:
        named = "season that runs now" if label is None else f"season {label!r}"
        raise SeasonUnknown(f"board {board.spec.key!r} has no {named}", field="season")
    return season_of(board, rows[0])


def season_at(board: Board, at: datetime) -> Steps[Season]:
    """The season that answered for the board at an instant, as it is today.

    Raises:
        SeasonUnknown: none did.

    Source: `schema/functions/find_season.sql`.
    """
    rows = yield Query(_FIND_AT, (board.id, at))
    if not rows:
        raise SeasonUnknown(
            f"board {board.spec.key!r} had no season at {at.isoformat()}", field="season"
        )
    return season_of(board, rows[0])


def shown_season(season: Season) -> Steps[tuple[Season, int | None]]:
    """What the public is shown in place of a season, and the privacy tick it was told with.

    The season itself, and None, where it isn't frozen.

    Source: `schema/functions/shown_ranking.sql`.
    """
    rows = yield Query(_SHOWN, (season.ranking,))
    if not rows:
        return season, None
    ((ranking, frozen_at, projected, privacy_tick),) = rows
    shown = replace(season, ranking=ranking, frozen_at=frozen_at, projected=projected)
    return shown, privacy_tick


def told_season(board: Board, label: str | None) -> Steps[Season]:
    """The season of a label as it is, also where the public is shown it as it was, and since when.

    Raises:
        SeasonUnknown: the board keeps no such season.
    """
    season = yield from find_season(board, label)
    shown, _ = yield from shown_season(season)
    return replace(season, frozen_at=shown.frozen_at)


def frozen_rankings(board_id: int) -> Steps[frozenset[int]]:
    """The numbers of a board's seasons that are frozen.

    Source: `schema/functions/frozen_rankings.sql`.
    """
    ((rankings,),) = yield Query(_FROZEN, (board_id,))
    return frozenset(rankings)


def name_rankings(rankings: Collection[int]) -> Steps[dict[int, NamedRanking]]:
    """What rankings are of, by number; those that are of nothing are left out.

    Source: `schema/functions/name_rankings.sql`.
    """
    rows = yield Query(_NAME, (list(rankings),))
    return {ranking: NamedRanking(season, label, cohort) for ranking, season, label, cohort in rows}


def list_seasons(
    board: Board, *, period: str | None = None, limit: int = 1000, offset: int = 0
) -> Steps[Listed[Season]]:
    """The seasons in which something happened, and the custom ones; `all` first, then latest.

    Source: `schema/functions/seasons.sql`.
    """
    freshness = yield from fresh_from_now()
    rows = yield Query(_LIST, (board.id, period, limit, offset))
    seasons = (replace(season_of(board, row), frozen_at=at) for *row, at in rows)
    return Listed(seasons, freshness)


def fresh_from_now() -> Steps[Freshness]:
    """How true is what PostgreSQL is asked next.

    Source: `schema/functions/source_epoch.sql`.
    """
    ((now, epoch),) = yield Query(_NOW)
    return Freshness(
        source=Source.DATABASE,
        epoch=epoch.hex,
        generation=None,
        tick=None,
        projected_through=now,
        staleness_ms=0,
    )


def season_of(board: Board, row: Sequence[Any]) -> Season:
    """A season from a row as those of `schema/functions/find_season.sql`."""
    (ranking, period, label, starts_at, ends_at, state, closes_at, hold_until, settled_at,
     revision) = row  # fmt: skip
    return Season(
        board=board.spec.key,
        label=label,
        period=period,
        starts_at=starts_at,
        ends_at=ends_at,
        state=state,
        ranking=ranking,
        closes_at=closes_at,
        hold_until=hold_until,
        settled_at=settled_at,
        revision=revision,
    )

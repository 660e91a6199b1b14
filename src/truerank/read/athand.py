"""What Redis says of boards and seasons: only for readers whom PostgreSQL doesn't answer.

A worker writes down every board with its seasons of now, before and after. It is never asked while
PostgreSQL answers, and vouches for no answer that is much newer than itself: what was frozen or
renamed since isn't in it.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from truerank.errors import ProjectionUnavailable
from truerank.model import Board, Freshness, Season
from truerank.projection.keys import boards_key
from truerank.steps import HashGet, Steps

AS_OF = ""  # no board has this key
MORE = " and more"  # behind the instant: there are boards that aren't written down
_OLDER_MAX = timedelta(minutes=10)  # a worker goes through many boards within that


class ShownSeason(msgspec.Struct, frozen=True):
    """A season, and what readers are shown of it."""

    season: Season
    shown: Season  # another ranking where it is frozen


class BoardAtHand(msgspec.Struct, frozen=True):
    """A board as it is written down."""

    board: Board
    epoch: str
    privacy_tick: int
    seasons: tuple[ShownSeason, ...]


def read_board(prefix: str, key: str) -> Steps[tuple[BoardAtHand | None, datetime] | None]:
    """A board, and the instant as of which it is so at least; without one there was none then.

    Returns:
        None: Redis doesn't tell.
    """
    try:
        written, told = yield HashGet(boards_key(prefix), (key, AS_OF))
        if told is None:
            return None
        instant, *more = told.decode().split(MORE)
        as_of = datetime.fromisoformat(instant)
        if written is None:
            return None if more else (None, as_of)
        return msgspec.json.decode(written, type=BoardAtHand), as_of
    except (ProjectionUnavailable, msgspec.DecodeError, ValueError):
        return None  # who asks tells that PostgreSQL is away: the answer would have been its


def vouches(as_of: datetime, freshness: Freshness) -> bool:
    """Whether what was so at an instant may be said of an answer of the projection."""
    through = freshness.projected_through
    return through is not None and through <= as_of + _OLDER_MAX


def current_of(board: Board, seasons: Iterable[Season], now: datetime) -> Season | None:
    """Of these seasons of a board the one that answers where none is named.

    Source of the rule: `schema/functions/find_season.sql`.
    """
    period = "all" if "all" in board.spec.seasons else (*board.spec.seasons, "custom")[0]
    for season in seasons:
        begun = season.starts_at is None or season.starts_at <= now
        if season.period == period and begun and (season.ends_at is None or now < season.ends_at):
            return season
    return None

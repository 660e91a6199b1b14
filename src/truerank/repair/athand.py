"""Write down in Redis what readers need to know of boards while PostgreSQL is away.

`truerank.read.athand` reads it. A piece takes the next boards, and writes those that changed; the
last piece of a round removes what is gone.
"""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from truerank.command.board import board_of
from truerank.errors import ProjectionUnavailable
from truerank.model import Board
from truerank.outbox.ticks import Connection
from truerank.projection.keys import boards_key
from truerank.projection.link import Link, is_wrong_type
from truerank.read.athand import AS_OF, MORE, BoardAtHand, ShownSeason
from truerank.read.season import season_of

_BOARDS = "SELECT * FROM truerank.boards_at_hand(%s, %s)"
_SEASONS = "SELECT * FROM truerank.seasons_at_hand(%s::integer[])"
_SLICE = 50
_ROUND_BOARDS_MAX = 5000  # a round then takes 200 s; of more boards, those made first
_PAUSE_S = 2.0
_AGAIN_S = 60.0  # also what did not change: Redis may have gone back


class BoardsAtHand:
    """Goes round all boards. For one worker; others may do the same beside it.

    Args:
        prefix: of all keys.
    """

    def __init__(self, prefix: str) -> None:
        self._key = boards_key(prefix)
        self._after = 0
        self._as_of: str | None = None  # of the round: its first piece
        self._met: set[bytes] = set()
        self._written: dict[bytes, tuple[bytes, float]] = {}  # until when it needn't be again

    def keep(self, conn: Connection, link: Link) -> float:
        """Do a piece; in how many seconds the next is due.

        Args:
            conn: in autocommit mode.
            link: to Redis.

        Raises:
            ProjectionUnavailable: Redis doesn't answer.

        Source: `schema/functions/boards_at_hand.sql`, `schema/functions/seasons_at_hand.sql`.
        """
        rows = conn.execute(_BOARDS, (self._after, _SLICE)).fetchall()
        found = _seasons(conn, [(board_of(row[2:]), row[-1], row[-2]) for row in rows])
        if self._as_of is None and rows:
            self._as_of = rows[0][1].isoformat()
        self._write(link, found)
        self._met |= found.keys()
        self._after = (rows[0][0] if rows else None) or 0
        if self._after == 0 or len(self._met) >= _ROUND_BOARDS_MAX:
            self._end_round(link)
        return _PAUSE_S

    def _write(self, link: Link, found: Mapping[bytes, bytes]) -> None:
        now = time.monotonic()
        changed = {
            key: told
            for key, told in found.items()
            if self._written.get(key, (b"", 0.0))[0] != told or self._written[key][1] < now
        }
        if changed:
            words = [word for pair in changed.items() for word in pair]
            self._command(link, ["HSET", self._key, *words])
            self._written |= {key: (told, now + _AGAIN_S) for key, told in changed.items()}

    def _end_round(self, link: Link) -> None:
        """Remove the boards that are gone; what is there is as of the round's beginning."""
        there = set(self._command(link, ["HKEYS", self._key])) - {AS_OF.encode()}
        if gone := there - self._met:
            link.command("HDEL", self._key, *gone)
        if self._as_of is not None and self._met:
            whole = self._after == 0 and self._met <= there
            link.command("HSET", self._key, AS_OF, self._as_of + ("" if whole else MORE))
        # What somebody else took away is written again.
        self._written = {key: told for key, told in self._written.items() if key in there}
        self._after, self._as_of, self._met = 0, None, set()

    def _command(self, link: Link, words: Sequence[str | bytes]) -> Any:
        """A command on the key, which may have become one of another type."""
        try:
            return link.command(*words)
        except ProjectionUnavailable as exc:
            if not is_wrong_type(exc.__cause__):
                raise
        link.command("UNLINK", self._key)
        self._written.clear()
        return link.command(*words)


def _seasons(conn: Connection, boards: Sequence[tuple[Board, Any, int]]) -> dict[bytes, bytes]:
    """What is written of each board, by its key."""
    by_id = {board.id: board for board, _, _ in boards}
    seasons: dict[int, list[ShownSeason]] = defaultdict(list)
    for board_id, shown, frozen_at, logged, *row in conn.execute(_SEASONS, (list(by_id),)):
        season = season_of(by_id[board_id], row)
        instead = season
        if shown is not None:
            instead = replace(season, ranking=shown, frozen_at=frozen_at, projected=logged)
        seasons[board_id].append(ShownSeason(season, instead))
    return {
        board.spec.key.encode(): msgspec.json.encode(
            BoardAtHand(board, epoch.hex, privacy_tick, tuple(seasons[board.id]))
        )
        for board, epoch, privacy_tick in boards
    }

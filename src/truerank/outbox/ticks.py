"""Commit a snapshot with a nonce, and read what became visible between two of them.

The outbox is read by the difference of two snapshots: sequence numbers aren't in the order of
commits, so "newer than the last number" would lose the rows of slow transactions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg

from truerank.crashpoints import crashpoint

Connection = psycopg.Connection[tuple[Any, ...]]

_TAKE = "SELECT id, nonce::text, snapshot::text, taken_at FROM truerank.take_tick(%s, %s)"
_ROWS_WAIT = "SELECT truerank.rows_waiting(%s::pg_snapshot)"
_WAITS = "SELECT truerank.privacy_waits()"
_READ = """
    SELECT grp, ranking, key_bytes, packed, proven, floor_tick, reached::text,
           base, life, equal_bytes
    FROM truerank.read_batch(%s::pg_snapshot, %s::pg_snapshot, %s::smallint[], %s::bigint[],
                             %s::uuid[], %s)"""


@dataclass(frozen=True, slots=True)
class Tick:
    """A committed snapshot. `taken_at` is not later than the snapshot."""

    id: int
    nonce: str
    snapshot: str
    taken_at: datetime


@dataclass(frozen=True, slots=True)
class Part:
    """What changed in one ranking, packed as apply.lua takes it.

    With `key_bytes` -1: states of members, under the first number of a board or 0, which no ranking
    has. They come before all others. `equal_bytes` is 0, or, where the board asks to be counted
    densely, in how many bytes of a sort key equals agree.
    """

    ranking: int
    key_bytes: int
    rows: Sequence[bytes]
    equal_bytes: int = 0

    @property
    def board(self) -> int:
        """The board's number: the upper bits of a computed ranking id."""
        return self.ranking >> 36


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What became visible for some groups between a snapshot and a tick."""

    parts: dict[int, list[Part]]  # by group; groups without changes are absent
    proven: bool  # the ticks it rests on exist: the source didn't go backwards
    floor_tick: int  # ticks below may be gone; a start below it makes the batch void
    reached: str  # the tick's snapshot, or an earlier one where there was too much
    base: int | None  # the newest tick that `reached` contains
    life: str  # of the server that answered


def take_tick(conn: Connection, *, since: str | None, anyway: bool) -> Tick | None:
    """Commit a tick if rows wait that `since` doesn't show, or `anyway`.

    The connection must be in autocommit: the tick is of use only once it is committed.

    Raises:
        psycopg.errors.ReadOnlySqlTransaction: the server is a standby.

    Source: `schema/functions/take_tick.sql`.
    """
    crashpoint("before_tick")
    row = conn.execute(_TAKE, (since, anyway)).fetchone()
    crashpoint("after_tick")
    return Tick(*row) if row else None


def tick_now(conn: Connection) -> Tick:
    """Commit a tick though no rows may wait: it shows everything committed by now.

    Source: `schema/functions/take_tick.sql`.
    """
    tick = take_tick(conn, since=None, anyway=True)
    assert tick is not None, "a tick asked for anyway is always taken"
    return tick


def rows_wait(conn: Connection, since: str) -> bool:
    """Whether outbox rows are visible now that `since` doesn't show.

    Source: `schema/functions/rows_waiting.sql`.
    """
    return conn.execute(_ROWS_WAIT, (since,)).fetchone() == (True,)


def privacy_waits(conn: Connection) -> bool:
    """Whether somebody was taken out of sight whom no tick shows yet: the next one is urgent.

    Source: `schema/functions/privacy_waits.sql`.
    """
    return conn.execute(_WAITS).fetchone() == (True,)


def read_batch(
    conn: Connection,
    *,
    since: str,
    until: str,
    groups: Sequence[int],
    ticks: Sequence[tuple[int, str]],
    rows_max: int,
) -> Batch:
    """Read what became visible for `groups` between two snapshots.

    Args:
        conn: in autocommit.
        since: the snapshot that the groups have been read up to.
        until: the snapshot of a tick taken after that was known.
        groups: of which to return rows.
        ticks: id and nonce of every tick that must exist for the batch to mean anything.
        rows_max: more outbox rows, and the batch ends earlier; a transaction is never split.

    Source: `schema/functions/read_batch.sql`.
    """
    ids, nonces = [tick for tick, _ in ticks], [nonce for _, nonce in ticks]
    rows = conn.execute(
        _READ, (since, until, list(groups), ids, nonces, rows_max), binary=True
    ).fetchall()
    crashpoint("batch_read")
    parts: dict[int, list[Part]] = {}
    for group, ranking, key_bytes, packed, *_, equal_bytes in rows[1:]:
        parts.setdefault(group, []).append(Part(ranking, key_bytes, packed, equal_bytes))
    _, _, _, _, proven, floor_tick, reached, base, life, _ = rows[0]
    return Batch(
        parts=parts, proven=proven, floor_tick=floor_tick, reached=reached, base=base, life=life
    )

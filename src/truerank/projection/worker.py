"""Bring Valkey up to date: read a batch, apply it with its cursor, until told to stop.

No PostgreSQL transaction is open while Redis is called. A call that was refused or whose reply
was lost changes nothing here: the copy's meta is read again, and tells where to go on.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice

import psycopg
import structlog

from truerank.errors import DatabaseUnavailable, ProjectionUnavailable
from truerank.outbox import ticks
from truerank.outbox.leases import Worker
from truerank.outbox.retention import Turn, turn_ring
from truerank.outbox.ticks import Batch, Connection, Part, Tick
from truerank.projection.copies import named_tick
from truerank.projection.held import Held, Stamp, apply_calls
from truerank.projection.holding import Holding
from truerank.projection.link import Link
from truerank.projection.scripts import ApplyReply
from truerank.schema import migrate
from truerank.settings import Settings
from truerank.steps import ScriptCall

_CLOCK_JUMP_US_MAX = 100_000
_BACKOFF_S = (0.05, 0.1, 0.2, 0.5, 1.0)
_BUSY_S = 1.0  # after the last rows: who writes now and then is shown as soon as who writes a lot
_KNOWN_RANKINGS_MAX = 200_000
_CALLS_PER_ROUND_TRIP_MAX = 64
# What passes by itself: a server that restarts, a primary that became a standby.
_INTERRUPTIONS = (
    ProjectionUnavailable,
    DatabaseUnavailable,
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.ReadOnlySqlTransaction,
)


class Projector:
    """One worker: the groups it leases, the copies it holds, and its two connections.

    Not safe for several threads; `stop` of `run` may be set from any.
    """

    def __init__(
        self, conn: Connection, link: Link, settings: Settings, worker: Worker | None = None
    ) -> None:
        self._conn = conn
        self._link = link
        self._settings = settings
        self._holding = Holding(conn, link, settings.prefix, rows_max=settings.scan_rows_max)
        self._worker = worker or Worker.new(settings.lease_ms)
        self._groups: set[int] = set()
        self._known_rankings: set[int] = set()
        self._renew_at = 0.0
        self._heartbeat_at = 0.0
        self._turn = Turn.FRESH
        self._clock: tuple[int, float, str | None] | None = None

    def step(self) -> bool:
        """Do what is due now; return whether rows arrived.

        Raises:
            ProjectionUnavailable: Redis did not answer; call again later.
            psycopg.OperationalError: the connection to PostgreSQL is lost.
        """
        self._renew()
        self._holding.adopt()
        if not self._holding.held:
            return False
        now = time.monotonic()
        heartbeat = now >= self._heartbeat_at
        clock = self._read_clock()
        since = {held.since for held in self._holding.held}
        tick = ticks.take_tick(
            self._conn,
            since=min(since, default=None) if len(since) == 1 else None,
            anyway=heartbeat or self._holding.filling or len(since) > 1,
        )
        if tick is None:
            return False
        changed = self._project(tick, *clock, heartbeat=heartbeat)
        filled = self._holding.fill()
        self._note_rankings(part.ranking for part in filled)
        self._holding.switch()
        if heartbeat:
            self._heartbeat_at = now + self._settings.heartbeat_ms / 1000
            self._note_cursors()
            self._turn_ring()
        return changed

    @property
    def whole(self) -> bool:
        """Whether every group this worker leases has a live copy."""
        return not self._holding.unread and self._groups <= {
            h.copy.group for h in self._holding.held if h.live
        }

    @property
    def pressing(self) -> bool:
        """Whether a copy is being filled undisturbed, so that another step is due at once."""
        return self._holding.filling and not self._holding.unread

    def release(self) -> None:
        """Let all leases go."""
        self._worker.release(self._conn)

    def _renew(self) -> None:
        now = time.monotonic()
        if now < self._renew_at:
            return
        groups = self._worker.renew(self._conn)
        self._renew_at = now + self._settings.lease_ms / 3000
        self._holding.held = [held for held in self._holding.held if held.copy.group in groups]
        self._holding.unread = (self._holding.unread | (groups - self._groups)) & groups
        self._groups = groups

    def _read_clock(self) -> tuple[int | None, str | None]:
        # The bound on staleness is a difference of this clock; where it jumps there is none.
        now_us, run_id = self._link.clock()
        now = time.monotonic()
        before, self._clock = self._clock, (now_us, now, run_id)
        if before is not None and before[2] == run_id:
            jump_us = now_us - before[0] - (now - before[1]) * 1_000_000
            if abs(jump_us) > _CLOCK_JUMP_US_MAX:
                return None, run_id
        return now_us, run_id

    def _project(
        self, tick: Tick, time_us: int | None, run_id: str | None, *, heartbeat: bool
    ) -> bool:
        changed = False
        for since in {held.since for held in self._holding.held}:
            together = [held for held in self._holding.held if held.since == since]
            batch = ticks.read_batch(
                self._conn,
                since=since,
                until=tick.snapshot,
                groups=sorted({held.copy.group for held in together}),
                ticks=sorted(
                    {named for held in together for named in held.ticks()} | {(tick.id, tick.nonce)}
                ),
                rows_max=self._settings.batch_rows_max,
            )
            if not batch.proven or any(held.base < batch.floor_tick for held in together):
                self._holding.examine(together, batch, self._groups)
                continue
            stamp = Stamp(tick=tick, reached=batch.reached, time_us=time_us, run_id=run_id)
            self._apply(together, batch, stamp, everything=heartbeat)
            self._note_rankings(part.ranking for parts in batch.parts.values() for part in parts)
            changed = changed or bool(batch.parts)
        return changed

    def _apply(self, together: list[Held], batch: Batch, stamp: Stamp, *, everything: bool) -> None:
        queue = self._calls(together, batch, stamp, everything=everything)
        while piece := list(islice(queue, _CALLS_PER_ROUND_TRIP_MAX)):
            replies, _ = self._link.calls([call for _, call, _ in piece])
            for (held, call, last), reply in zip(piece, replies, strict=True):
                self._take_apply_reply(held, call, reply, stamp if last else None)
            # One large transaction may take longer than a lease lasts.
            self._renew()

    def _calls(
        self, together: list[Held], batch: Batch, stamp: Stamp, *, everything: bool
    ) -> Iterator[tuple[Held, ScriptCall, bool]]:
        for held in together:
            parts: list[Part] = batch.parts.get(held.copy.group, [])
            if parts or everything or held.pending or not held.live:
                for call, last in apply_calls(
                    held,
                    self._holding.copies.group(held.copy.group),
                    parts,
                    stamp,
                    rows_max=self._settings.call_rows_max,
                    publish="PUBLISH",
                ):
                    yield held, call, last
            else:
                held.since, held.since_tick = stamp.reached, (stamp.tick.id, stamp.tick.nonce)
                held.base = stamp.base(held)

    def _take_apply_reply(
        self, held: Held, call: ScriptCall, reply: object, stamp: Stamp | None
    ) -> None:
        group = held.copy.group
        if not isinstance(reply, list) or reply[0] != ApplyReply.APPLIED:
            # Refused or failed: only what Redis says now tells where to go on.
            _log().info("call_refused", group=group, reply=str(reply)[:200])
            self._holding.unread.add(group)
            return
        _, _, damaged, live = reply
        if damaged:
            self._holding.refill(held, damaged)
        if bool(live) != held.live:
            self._holding.unread.add(group)  # the pointer was lost, or moved by somebody else
        if stamp is not None and group not in self._holding.unread:
            held.cursor, held.pending = str(call.args[10]), ""
            held.since, held.since_tick = stamp.reached, named_tick(held.cursor)
            held.base = stamp.base(held)
            held.copy = replace(
                held.copy,
                cursor=held.cursor,
                base=str(held.base),
                pending="",
                snapshot=stamp.reached,
                covered=str(call.args[5]),
            )

    def _note_rankings(self, rankings: Iterable[int]) -> None:
        new = set(rankings) - self._known_rankings
        if not new:
            return
        self._conn.execute("SELECT truerank.note_rankings(%s::bigint[])", (sorted(new),))
        if len(self._known_rankings) > _KNOWN_RANKINGS_MAX:
            self._known_rankings.clear()
        self._known_rankings |= new

    def _note_cursors(self) -> None:
        copies = [held.copy for held in self._holding.held]
        self._conn.execute(
            "SELECT truerank.note_cursors(%s::uuid[], %s::bigint[], %s::pg_snapshot[])",
            (
                [copy.generation for copy in copies],
                [int(copy.base) for copy in copies],
                [copy.snapshot for copy in copies],
            ),
        )
        self._conn.execute("SELECT truerank.sweep_rates()")

    def _turn_ring(self) -> None:
        turn = turn_ring(
            self._conn,
            age_s=self._settings.segment_s,
            bytes_max=self._settings.segment_bytes_max,
            dead_s=self._settings.dead_s,
        )
        if turn not in {Turn.FRESH, self._turn}:
            _log().info("ring", turn=turn.value)
        self._turn = turn


def run(
    settings: Settings,
    stop: threading.Event,
    *,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Project until `stop` is set, through every failure of either side; then release all leases.

    Args:
        settings: with both URLs.
        stop: set from another thread or a signal handler; looked at after each step.
        ready: called once, when every group that this worker leases has a live copy.

    Raises:
        ProjectionUnsafe: the Redis server may evict keys.
        SchemaMismatch: the database isn't at the schema of this release.
    """
    assert settings.database_url is not None, "the caller resolves it"
    assert settings.redis_url is not None, "the caller resolves it"
    link = Link(settings.redis_url, timeout_ms=settings.redis_timeout_ms, connections_max=2)
    worker = Worker.new(settings.lease_ms)  # kept through failures, and its leases with it
    failures = 0
    busy_until = 0.0
    try:
        while not stop.is_set():
            try:
                with connect(settings.database_url, settings.database_timeout_ms) as conn:
                    link.check_policy()
                    projector = Projector(conn, link, settings, worker)
                    while not stop.is_set():
                        began = time.monotonic()
                        if projector.step():
                            busy_until = began + _BUSY_S
                        failures = 0
                        if projector.whole:
                            ready()
                            ready = _nothing
                        wait_ms = _wait_ms(settings, projector, busy=began < busy_until)
                        stop.wait(max(0.0, wait_ms / 1000 - (time.monotonic() - began)))
                    projector.release()
            except _INTERRUPTIONS as exc:
                wait_s = _BACKOFF_S[min(failures, len(_BACKOFF_S) - 1)]
                failures += 1
                _log().warning("interrupted", error=str(exc)[:300], retry_s=wait_s)
                stop.wait(wait_s)
    finally:
        link.close()


def connect(database_url: str, timeout_ms: int = 10_000) -> Connection:
    """A connection for a worker: autocommit, with a deadline for statements, the schema checked.

    Raises:
        DatabaseUnavailable: no connection.
        SchemaMismatch: the database isn't at the schema of this release.
    """
    try:
        conn = psycopg.connect(
            database_url,
            autocommit=True,
            application_name="truerank worker",
            connect_timeout=max(2, timeout_ms // 1000),
            options=f"-c statement_timeout={timeout_ms}",
        )
    except psycopg.OperationalError as exc:
        raise DatabaseUnavailable(f"no connection to PostgreSQL: {exc}") from exc
    try:
        migrate.check(conn)
    except BaseException:
        conn.close()
        raise
    return conn


def _wait_ms(settings: Settings, projector: Projector, *, busy: bool) -> int:
    if projector.pressing:
        return 0
    return settings.tick_busy_ms if busy else settings.tick_idle_ms


def _nothing() -> None:
    return None


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.worker")
    return log

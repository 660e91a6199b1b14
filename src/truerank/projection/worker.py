"""Bring Valkey up to date: read a batch, apply it with its cursor, until told to stop.

No PostgreSQL transaction is open while Redis is called. A call that was refused or whose reply
was lost changes nothing here: the copy's meta is read again, and tells where to go on.
"""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

import psycopg
import structlog

from truerank.errors import DatabaseUnavailable, ProjectionUnavailable
from truerank.outbox import ticks
from truerank.outbox.leases import Worker
from truerank.outbox.ticks import Batch, Connection, Part, Tick
from truerank.projection.copies import Copies, named_tick
from truerank.projection.filling import scan_chunk
from truerank.projection.held import Held, Stamp, apply_calls, fill_call
from truerank.projection.link import Link
from truerank.projection.scripts import ApplyReply, FillReply
from truerank.settings import Settings
from truerank.steps import ScriptCall

_CLOCK_JUMP_US_MAX = 100_000
_BACKOFF_S = (0.05, 0.1, 0.2, 0.5, 1.0)
_KNOWN_RANKINGS_MAX = 200_000
_CALLS_PER_ROUND_TRIP_MAX = 64


class Projector:
    """One worker: the groups it leases, the copies it holds, and its two connections.

    Not safe for several threads; `stop` of `run` may be set from any.
    """

    def __init__(self, conn: Connection, link: Link, settings: Settings) -> None:
        self._conn = conn
        self._link = link
        self._settings = settings
        self._copies = Copies(link, settings.prefix)
        self._worker = Worker.new(settings.lease_ms)
        self._epoch = ""
        self._groups: set[int] = set()
        self._held: list[Held] = []
        self._unread: set[int] = set()  # groups whose copies must be read from Redis first
        self._known_rankings: set[int] = set()
        self._renew_at = 0.0
        self._heartbeat_at = 0.0
        self._clock: tuple[int, float, str | None] | None = None

    def step(self) -> bool:
        """Do what is due now; return whether rows arrived.

        Raises:
            ProjectionUnavailable: Redis did not answer; call again later.
            psycopg.OperationalError: the connection to PostgreSQL is lost.
        """
        self._renew()
        self._adopt()
        now = time.monotonic()
        heartbeat = now >= self._heartbeat_at
        clock = self._read_clock()
        filling = any(held.copy.scan != "done" for held in self._held)
        since = {held.since for held in self._held}
        tick = ticks.take_tick(
            self._conn,
            since=min(since, default=None) if len(since) == 1 else None,
            anyway=heartbeat or filling or len(since) > 1,
        )
        if tick is None:
            return False
        changed = self._project(tick, *clock, heartbeat=heartbeat)
        self._fill()
        self._switch()
        if heartbeat:
            self._heartbeat_at = now + self._settings.heartbeat_ms / 1000
            self._note_cursors(tick)
        return changed

    @property
    def whole(self) -> bool:
        """Whether every group this worker leases has a live copy."""
        return not self._unread and self._groups <= {h.copy.group for h in self._held if h.live}

    def release(self) -> None:
        """Let all leases go."""
        self._worker.release(self._conn)

    def _renew(self) -> None:
        now = time.monotonic()
        if now < self._renew_at:
            return
        groups = self._worker.renew(self._conn)
        self._renew_at = now + self._settings.lease_ms / 3000
        self._held = [held for held in self._held if held.copy.group in groups]
        self._unread = (self._unread | (groups - self._groups)) & groups
        self._groups = groups

    def _adopt(self) -> None:
        if not self._unread:
            return
        row = self._conn.execute("SELECT truerank.current_epoch()").fetchone()
        assert row is not None, "the function returns one row"
        self._epoch = row[0].hex
        tick = None
        for group in sorted(self._unread):
            self._held = [held for held in self._held if held.copy.group != group]
            live = self._copies.live(group)
            if live is not None and live.epoch == self._epoch:
                self._held.append(Held.of(live, live=True))
            elif live is not None:
                # Its versions mean nothing in this epoch: better no answer than an invented one.
                self._copies.hide(group)
                self._copies.retire(self._conn, group, live.generation)
            for generation in self._copies.listed(self._conn, group):
                copy = self._copies.read(group, generation)
                if copy is not None and copy.epoch == self._epoch:
                    self._held.append(Held.of(copy, live=False))
                else:
                    self._copies.retire(self._conn, group, generation)
            if not any(held.copy.group == group for held in self._held):
                tick = tick or ticks.take_tick(self._conn, since=None, anyway=True)
                self._begin(group, tick)
            self._unread.discard(group)

    def _begin(self, group: int, tick: Tick | None) -> None:
        assert tick is not None, "a tick asked for anyway is always taken"
        copy = self._copies.begin(self._conn, group, self._epoch, tick)
        self._held.append(Held.of(copy, live=False))

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
        for since in {held.since for held in self._held}:
            together = [held for held in self._held if held.since == since]
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
            if not batch.proven or any(held.since_tick[0] < batch.floor_tick for held in together):
                self._examine(together, batch)
                continue
            stamp = Stamp(tick=tick, reached=batch.reached, time_us=time_us, run_id=run_id)
            self._apply(together, batch, stamp, everything=heartbeat)
            self._note_rankings(part.ranking for parts in batch.parts.values() for part in parts)
            changed = changed or bool(batch.parts)
        return changed

    def _apply(self, together: list[Held], batch: Batch, stamp: Stamp, *, everything: bool) -> None:
        queue: list[tuple[Held, ScriptCall, bool]] = []
        for held in together:
            parts: list[Part] = batch.parts.get(held.copy.group, [])
            if parts or everything or held.pending or not held.live:
                calls = apply_calls(
                    held,
                    self._copies.group(held.copy.group),
                    parts,
                    stamp,
                    rows_max=self._settings.call_rows_max,
                    publish="PUBLISH",
                )
                queue += [(held, call, call is calls[-1]) for call in calls]
            else:
                held.since, held.since_tick = stamp.reached, (stamp.tick.id, stamp.tick.nonce)
        for i in range(0, len(queue), _CALLS_PER_ROUND_TRIP_MAX):
            piece = queue[i : i + _CALLS_PER_ROUND_TRIP_MAX]
            replies, _ = self._link.calls([call for _, call, _ in piece])
            for (held, call, last), reply in zip(piece, replies, strict=True):
                self._take_apply_reply(held, call, reply, stamp if last else None)

    def _take_apply_reply(
        self, held: Held, call: ScriptCall, reply: object, stamp: Stamp | None
    ) -> None:
        group = held.copy.group
        if not isinstance(reply, list) or reply[0] != ApplyReply.APPLIED:
            # Refused or failed: only what Redis says now tells where to go on.
            _log().info("call_refused", group=group, reply=str(reply)[:200])
            self._unread.add(group)
            return
        _, _, damaged = reply
        if damaged and not any(h.copy.group == group and not h.live for h in self._held):
            _log().warning("ranking_damaged", group=group, rankings=damaged)
            self._begin(group, ticks.take_tick(self._conn, since=None, anyway=True))
        if stamp is not None and group not in self._unread:
            held.cursor, held.pending = str(call.args[10]), ""
            held.since, held.since_tick = stamp.reached, named_tick(held.cursor)
            held.copy = replace(
                held.copy,
                cursor=held.cursor,
                pending="",
                snapshot=stamp.reached,
                covered=str(call.args[5]),
            )

    def _examine(self, together: list[Held], batch: Batch) -> None:
        """Decide why ticks are missing: pruned means a new copy, regressed a new epoch."""
        pruned = all(held.since_tick[0] < batch.floor_tick for held in together)
        if not pruned:
            row = self._conn.execute("SELECT truerank.new_epoch(%s)", (self._epoch,)).fetchone()
            assert row is not None, "the function returns one row"
            _log().error("source_regressed", epoch=self._epoch, new_epoch=row[0].hex)
            self._epoch = row[0].hex
            self._unread |= self._groups
            return
        tick = ticks.take_tick(self._conn, since=None, anyway=True)
        for held in together:
            _log().warning("cursor_pruned", group=held.copy.group)
            self._held.remove(held)
            if not held.live:
                self._copies.retire(self._conn, held.copy.group, held.copy.generation)
            if not any(h.copy.group == held.copy.group for h in self._held):
                self._begin(held.copy.group, tick)

    def _fill(self) -> None:
        warming = [held for held in self._held if held.copy.scan != "done"]
        if not warming:
            return
        chunks = [
            scan_chunk(self._conn, held.copy, self._settings.scan_rows_max) for held in warming
        ]
        # After the chunks were read: it covers every row in them.
        tick = ticks.take_tick(self._conn, since=None, anyway=True)
        assert tick is not None, "a tick asked for anyway is always taken"
        calls = [
            fill_call(held, self._copies.group(held.copy.group), parts, position, tick)
            for held, (parts, position) in zip(warming, chunks, strict=True)
        ]
        replies, _ = self._link.calls(calls)
        for held, (parts, position), reply in zip(warming, chunks, replies, strict=True):
            if not isinstance(reply, list) or reply[0] != FillReply.APPLIED:
                self._unread.add(held.copy.group)
                continue
            self._note_rankings(part.ranking for part in parts)
            held.copy = replace(
                held.copy,
                scan=position,
                covered=f"{tick.id}:{tick.nonce}",
                high=tick.snapshot if position == "done" else "",
            )

    def _switch(self) -> None:
        for held in [h for h in self._held if not h.live and h.copy.warm]:
            group = held.copy.group
            live = next((h for h in self._held if h.live and h.copy.group == group), None)
            if self._copies.switch(self._conn, held.copy, live.copy if live else None):
                held.live = True
                if live is not None:
                    self._held.remove(live)
                    _log().info("switched", group=group, generation=held.copy.generation)
            else:
                self._unread.add(group)

    def _note_rankings(self, rankings: Iterable[int]) -> None:
        new = set(rankings) - self._known_rankings
        if not new:
            return
        self._conn.execute("SELECT truerank.note_rankings(%s::bigint[])", (sorted(new),))
        if len(self._known_rankings) > _KNOWN_RANKINGS_MAX:
            self._known_rankings.clear()
        self._known_rankings |= new

    def _note_cursors(self, tick: Tick) -> None:
        self._conn.execute(
            "SELECT truerank.note_cursors(%s::uuid[], %s, %s::pg_snapshot)",
            ([held.copy.generation for held in self._held], tick.id, tick.snapshot),
        )


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
    assert settings.database_url and settings.redis_url, "the caller resolves both addresses"
    link = Link(settings.redis_url, timeout_ms=settings.redis_timeout_ms, connections_max=2)
    failures = 0
    try:
        while not stop.is_set():
            try:
                with connect(settings.database_url) as conn:
                    link.check_policy()
                    projector = Projector(conn, link, settings)
                    while not stop.is_set():
                        began = time.monotonic()
                        busy = projector.step()
                        failures = 0
                        if projector.whole:
                            ready()
                            ready = _nothing
                        wait_ms = settings.tick_busy_ms if busy else settings.tick_idle_ms
                        stop.wait(max(0.0, wait_ms / 1000 - (time.monotonic() - began)))
                    projector.release()
            except (ProjectionUnavailable, DatabaseUnavailable, psycopg.OperationalError) as exc:
                wait_s = _BACKOFF_S[min(failures, len(_BACKOFF_S) - 1)]
                failures += 1
                _log().warning("interrupted", error=str(exc)[:300], retry_s=wait_s)
                stop.wait(wait_s)
    finally:
        link.close()


def connect(database_url: str) -> Connection:
    """A connection for a worker: autocommit, its deadlines set, the schema checked.

    Raises:
        DatabaseUnavailable: no connection.
        SchemaMismatch: the database isn't at the schema of this release.
    """
    try:
        conn = psycopg.connect(database_url, autocommit=True, application_name="truerank worker")
    except psycopg.OperationalError as exc:
        raise DatabaseUnavailable(f"no connection to PostgreSQL: {exc}") from exc
    return conn


def _nothing() -> None:
    return None


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.worker")
    return log

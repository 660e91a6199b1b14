"""Bring Valkey up to date: read a batch, apply it with its cursor.

No PostgreSQL transaction is open while Redis is called. A call that was refused or whose reply
was lost changes nothing here: the copy's meta is read again, and tells where to go on.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import structlog

from truerank.crashpoints import crashpoint
from truerank.errors import ProjectionUnavailable
from truerank.outbox import ticks
from truerank.outbox.leases import Worker
from truerank.outbox.snapshot import Snapshot
from truerank.outbox.ticks import Batch, Connection, Part, Tick
from truerank.projection.copies import named_tick
from truerank.projection.erasing import Erasing
from truerank.projection.headroom import is_out_of_memory
from truerank.projection.held import Held, Stamp, apply_calls
from truerank.projection.holding import Holding
from truerank.projection.link import Link
from truerank.projection.poison import is_poison
from truerank.projection.scripts import ApplyReply
from truerank.projection.trouble import Trouble
from truerank.settings import Settings
from truerank.steps import ScriptCall

_CLOCK_JUMP_US_MAX = 100_000
_KNOWN_RANKINGS_MAX = 200_000
_CALLS_PER_ROUND_TRIP_MAX = 64
_DRAIN_PAUSE_S = 0.005
_LOOK_S = 0.25  # whether Redis is still the same, where there is nothing to send to it
_SWEEP_S = 0.25  # a ban that has ended is lifted within a second
_SWEPT_MAX = 100


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
        self._trouble = Trouble()
        self._holding = Holding(
            conn,
            link,
            settings.prefix,
            scan_rows_max=settings.scan_rows_max,
            call_rows_max=settings.call_rows_max,
            share_percent=settings.rebuild_share_percent,
        )
        self._worker = worker or Worker.new(settings.lease_ms)
        self._groups: set[int] = set()
        self._known_rankings: set[int] = set()
        self._renew_at = 0.0
        self._heartbeat_at = 0.0
        self._housework: list[Callable[[], object]] = []
        self._sweep_at = 0.0
        self._busy = False  # rows arrived in the last step
        self._erasing = Erasing(conn, link, self._holding.copies, dead_s=settings.dead_s)
        self._clock: tuple[int, float, str | None] | None = None

    def step(self, *, anyway: bool = False) -> bool:
        """Do what is due now; return whether rows arrived.

        Args:
            anyway: take a tick though no rows wait, so that everything committed by now is shown.

        Raises:
            ProjectionUnavailable: Redis did not answer; call `interrupt`, and again later.
            ProjectionUnsafe: the server that Redis is now may evict keys; the same.
            SourceSuperseded: a server that was promoted later feeds the projection.
            psycopg.OperationalError: the connection to PostgreSQL is lost.
        """
        # A look at the outbox that most likely finds nothing needs no clock of Redis.
        clock = None if self._quiet(anyway=anyway) else self._read_clock()
        self._renew()  # after it: who can't reach Redis must not keep its leases
        self._sweep_members()
        self._holding.adopt(self._trouble.rested(self._holding.unread))
        self._holding.copies.retire_slice(self._conn)
        since = {held.since for held in self._ready()}
        if not since:
            self._housework.clear()
            return False
        if clock is None:
            if len(since) == 1 and not ticks.rows_wait(self._conn, *since):
                self._keep_house()
                return False
            clock = self._read_clock()
            anyway = True
        now = time.monotonic()
        heartbeat = now >= self._heartbeat_at
        if heartbeat:
            self._link.check_policy()
        tick = ticks.take_tick(
            self._conn,
            since=min(since, default=None) if len(since) == 1 else None,
            anyway=anyway or heartbeat or self._holding.filling or len(since) > 1,
        )
        if tick is None:
            self._busy = False
            self._keep_house()
            return False
        self._link.meter.tick_taken()
        changed = self._busy = self._project(tick, *clock, heartbeat=heartbeat)
        filled = self._holding.fill()
        self._note_rankings(part.ranking for part in filled)
        self._holding.switch()
        if heartbeat:
            self._heartbeat_at = now + self._settings.heartbeat_ms / 1000
            self._housework = [
                self._note_cursors,
                self._holding.look_round,
                self._holding.follow_dense,
                self._take_orders,
                self._retry,
                self._erase,
            ]
        self._keep_house()
        return changed

    def _quiet(self, *, anyway: bool) -> bool:
        """Whether a step has most likely nothing to do but to look for rows."""
        if self._clock is None or anyway or self._busy:
            return False
        if self._holding.unread or self._holding.filling:
            return False
        due_at = min(self._clock[1] + _LOOK_S, self._renew_at, self._heartbeat_at)
        return time.monotonic() < due_at

    def _keep_house(self) -> None:
        """Go on with what a heartbeat brings; who was taken out of sight doesn't wait for it."""
        while self._housework:
            self._housework.pop(0)()
            if self._housework and ticks.privacy_waits(self._conn):
                return

    def _take_orders(self) -> None:
        self._holding.take_orders(
            self._groups,
            every_s=self._settings.rebuild_every_s,
            keep_ms=self._settings.rebuild_keep_ms,
        )

    def _retry(self) -> None:
        self._holding.retry(self._groups)

    def _erase(self) -> None:
        ready = self._ready()
        self._erasing.keep([h.copy for h in ready], {h.copy.group for h in ready})

    def interrupt(self) -> None:
        """After a failure of Redis: read from it again where every group is."""
        self._holding.unread |= self._groups
        self._holding.copies.seek_anew()
        self._housework.clear()

    def drain(self, limit_s: float) -> None:
        """Show what is committed at this moment, for at most so long; then let all leases go."""
        deadline = time.monotonic() + limit_s
        try:
            tick = ticks.tick_now(self._conn)
            while self._lacks(Snapshot.parse(tick.snapshot)) and time.monotonic() < deadline:
                self.step(anyway=True)
                if self._holding.unread:
                    time.sleep(_DRAIN_PAUSE_S)
        finally:
            self.release()

    def _lacks(self, committed: Snapshot) -> bool:
        return bool(self._holding.unread) or any(
            held.live and not Snapshot.parse(held.since).contains(committed)
            for held in self._holding.held
        )

    def _ready(self) -> list[Held]:
        # Where a group is has to be read anew, its copies are left alone until then.
        return [h for h in self._holding.held if h.copy.group not in self._holding.unread]

    @property
    def whole(self) -> bool:
        """Whether every group this worker leases has a live copy."""
        return not self._holding.unread and self._groups <= {
            h.copy.group for h in self._holding.held if h.live
        }

    @property
    def pause_s(self) -> float | None:
        """Seconds until a copy that is filled, or housework, wants a step; None: none does."""
        if self._housework:
            return 0.0
        return None if self._holding.unread else self._holding.pause_s

    def release(self) -> None:
        """Let all leases go."""
        self._worker.release(self._conn)
        self._link.meter.leases_held(0)

    def _renew(self) -> None:
        now = time.monotonic()
        if now < self._renew_at:
            return
        stuck = sorted(self._trouble.hopeless(self._settings.stuck_ms / 1000))
        if stuck:
            _log().error("groups_left", groups=stuck, rest_ms=self._settings.rest_ms)
            self._worker.rest(self._conn, stuck, self._settings.rest_ms)
        groups = self._worker.renew(self._conn)
        self._trouble.keep(groups)
        self._renew_at = now + self._worker.renew_every_s
        self._holding.held = [held for held in self._holding.held if held.copy.group in groups]
        self._holding.unread = (self._holding.unread | (groups - self._groups)) & groups
        self._holding.postponed &= groups
        self._groups = groups
        self._link.meter.leases_held(len(groups))

    def _read_clock(self) -> tuple[int | None, str | None]:
        # The bound on staleness is a difference of this clock; where it jumps there is none.
        now_us, run_id = self._link.clock()
        now = time.monotonic()
        before, self._clock = self._clock, (now_us, now, run_id)
        if before is not None and before[2] != run_id:
            # Another server, or the same with other data: nothing that we remember holds for it.
            self.interrupt()
            self._link.check_policy()
        if before is not None and before[2] == run_id:
            jump_us = now_us - before[0] - (now - before[1]) * 1_000_000
            if abs(jump_us) > _CLOCK_JUMP_US_MAX:
                return None, run_id
        return now_us, run_id

    def _project(
        self, tick: Tick, time_us: int | None, run_id: str | None, *, heartbeat: bool
    ) -> bool:
        changed = False
        for since in {held.since for held in self._ready()}:
            together = [held for held in self._ready() if held.since == since]
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
            if self._holding.left_behind(batch):
                self._holding.unread |= self._groups
                return changed
            if not batch.proven or any(held.base < batch.floor_tick for held in together):
                self._holding.examine(together, batch, self._groups)
                continue
            self._link.meter.batch_read(
                sum(len(part.rows) for parts in batch.parts.values() for part in parts)
            )
            stamp = Stamp(
                tick=tick,
                reached=batch.reached,
                contained=batch.base or 0,
                time_us=time_us,
                run_id=run_id,
                source=self._holding.source,
                lives=self._holding.lives(batch, since),
            )
            self._apply(together, batch, stamp, everything=heartbeat)
            crashpoint("after_cursor")
            self._note_rankings(part.ranking for parts in batch.parts.values() for part in parts)
            changed = changed or bool(batch.parts)
        return changed

    def _apply(self, together: list[Held], batch: Batch, stamp: Stamp, *, everything: bool) -> None:
        queue = self._calls(together, batch, stamp, everything=everything)
        for piece in _round_trips(queue):
            crashpoint("before_apply")
            replies, _ = self._link.calls([call for _, call, _ in piece])
            crashpoint("after_apply")
            for (held, call, last), reply in zip(piece, replies, strict=True):
                self._take_apply_reply(held, call, reply, stamp if last else None)
            # One large transaction may take longer than a lease lasts.
            self._renew()
            if not piece[-1][2]:
                crashpoint("between_calls")

    def _calls(
        self, together: list[Held], batch: Batch, stamp: Stamp, *, everything: bool
    ) -> Iterator[tuple[Held, ScriptCall, bool]]:
        # A state goes to all groups: first to those in which the member stands.
        for held in sorted(together, key=lambda h: not _moves(batch.parts.get(h.copy.group, ()))):
            parts = self._holding.sound(held, batch.parts.get(held.copy.group, []), stamp)
            if parts is None:
                continue
            if parts or everything or held.pending or held.warming:
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
        if is_poison(reply):
            _log().warning("script_failed", group=group, error=str(reply)[:200])
            self._holding.suspect(held, "apply")
            return
        if is_out_of_memory(reply) and (
            self._holding.run_short() or held not in self._holding.held
        ):
            return  # what was given up is freed in the next steps
        if isinstance(reply, Exception):
            raise ProjectionUnavailable(f"apply: {reply}") from reply
        if not isinstance(reply, list) or reply[0] != ApplyReply.APPLIED:
            # Only what Redis says now tells where to go on, and the lease whether to.
            if group not in self._holding.unread:
                _log().info("call_refused", group=group, reply=str(reply)[:200])
                self._trouble.refused(group)
                self._holding.unread.add(group)
                self._renew_at = 0.0
            return
        _, _, damaged, live = reply
        if damaged:
            self._holding.refill(held, damaged)
        if bool(live) != held.live:
            self._holding.unread.add(group)  # the pointer was lost, or moved by somebody else
        if stamp is not None and group not in self._holding.unread:
            self._trouble.served(group)
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

    def _sweep_members(self) -> None:
        """Let bans end whose time has passed, and merges become complete."""
        now = time.monotonic()
        if now >= self._sweep_at:
            self._conn.execute("SELECT truerank.sweep_members(%s)", (_SWEPT_MAX,))
            self._sweep_at = now + _SWEEP_S

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


def _round_trips(
    queue: Iterator[tuple[Held, ScriptCall, bool]],
) -> Iterator[list[tuple[Held, ScriptCall, bool]]]:
    """Calls for one round trip each: those of the first group are not held up by the others."""
    first = []
    for each in islice(queue, _CALLS_PER_ROUND_TRIP_MAX):
        first.append(each)
        if each[2]:
            break
    if first:
        yield first
    while piece := list(islice(queue, _CALLS_PER_ROUND_TRIP_MAX)):
        yield piece


def _moves(parts: Sequence[Part]) -> bool:
    """Whether a state takes a member out of a ranking, or brings it back."""
    return any(part.key_bytes == 0 for part in parts)


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.worker")
    return log

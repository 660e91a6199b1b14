"""Deliver what is due, on a worker's own connection and in threads of its own.

A delivery is leased, sent, and marked, each in a transaction of its own; none is open while a
receiver is waited for. Who is killed in between leaves it to be sent again, under the same key.
"""

import queue
import threading
import time
from dataclasses import dataclass
from uuid import UUID, uuid4

import structlog

from truerank.crashpoints import crashpoint
from truerank.deliver.addresses import read_networks
from truerank.deliver.messages import Due, body_of, headers_of
from truerank.deliver.schedule import Schedule
from truerank.deliver.sending import Answer, Sending, Trust
from truerank.outbox.ticks import Connection
from truerank.settings import Settings
from truerank.telemetry.meter import Meter

_CLAIM = "SELECT * FROM truerank.claim_deliveries(%s, %s, %s)"
_END = "SELECT truerank.end_delivery(%s, %s, %s, %s, %s, %s, %s)"
_SWEEP = "SELECT truerank.sweep_deliveries(%s, %s::integer)"
_SWEPT_MAX = 1000
_SWEEP_EVERY_S = 60.0
_LEASE_MORE_S = 60.0  # than a request may take: names may take long to resolve
_LOOK_S = 0.05
_DRAIN_S = 1.0  # when told to stop; what isn't answered by then is sent again
_GONE = 410


@dataclass(frozen=True, slots=True, eq=False)
class _UnderWay:
    due: Due
    lease: UUID
    sending: Sending


class Deliverer:
    """What one process delivers; any number may be at it.

    Args:
        settings: of the process.
        schedule: when to try again; None: the usual one, with the attempts of the settings.

    Raises:
        SettingsInvalid: the networks can't be read.
    """

    def __init__(self, settings: Settings, schedule: Schedule | None = None) -> None:
        self._timeout_s = settings.webhook_timeout_ms / 1000
        self._at_once = settings.webhook_at_once
        self._pause_s = settings.webhook_ms / 1000
        self._keep_s = settings.webhook_keep_s
        self._networks = read_networks(settings.webhook_networks)
        self._schedule = schedule or Schedule(attempts_max=settings.webhook_attempts_max)
        self._answers: queue.SimpleQueue[tuple[_UnderWay, Answer]] = queue.SimpleQueue()
        self._under_way: set[_UnderWay] = set()
        self._trust = Trust()
        self._sweep_at = 0.0

    def deliver(self, conn: Connection, meter: Meter, stop: threading.Event) -> float:
        """Deliver until nothing is due or under way; in how many seconds to look again.

        Args:
            conn: in autocommit.
            meter: told how each attempt ended.
            stop: ends it soon; what is under way then is sent again later, unless it is answered
                within a second.

        Source: `schema/functions/claim_deliveries.sql`, `end_delivery.sql`.
        """
        while not stop.is_set():
            while self._mark_answered(conn, meter, 0.0):
                pass  # first, or what was answered while PostgreSQL was away would be sent again
            self._begin(conn)
            self._sweep(conn)
            if not self._under_way:
                return self._pause_s
            again_at = time.monotonic() + self._pause_s
            while not stop.is_set() and time.monotonic() < again_at:
                self._cut_overdue()
                if self._mark_answered(conn, meter, _LOOK_S):
                    break  # and there is room for another one
        deadline = time.monotonic() + _DRAIN_S
        while self._under_way and time.monotonic() < deadline:
            self._mark_answered(conn, meter, _LOOK_S)
        for each in self._under_way:
            each.sending.abort()
        return self._pause_s

    def _begin(self, conn: Connection) -> None:
        lease = uuid4()
        rows = conn.execute(
            _CLAIM, (lease, self._timeout_s + _LEASE_MORE_S, self._at_once), binary=True
        ).fetchall()
        if rows:
            crashpoint("delivery_claimed")
        for row in rows:
            due = Due(*row)
            sending = Sending(due.url, self._networks, self._timeout_s, self._trust)
            under_way = _UnderWay(due, lease, sending)
            self._under_way.add(under_way)
            # A daemon: a name that takes minutes to resolve keeps no process from ending.
            threading.Thread(
                target=self._send, args=(under_way,), name="truerank webhook", daemon=True
            ).start()

    def _send(self, under_way: _UnderWay) -> None:
        try:
            body = body_of(under_way.due)
            answer = under_way.sending.post(body, headers_of(under_way.due, body))
        except Exception as exc:  # noqa: BLE001 - our own mistake: told, and tried again as usual
            _log().error("delivery_failed", delivery=under_way.due.id, exc_info=exc)
            answer = Answer("failed")
        self._answers.put((under_way, answer))

    def _cut_overdue(self) -> None:
        for each in self._under_way:
            if each.sending.overdue:
                each.sending.abort()

    def _mark_answered(self, conn: Connection, meter: Meter, wait_s: float) -> bool:
        """Mark what was answered first; False where nothing was, or it can't be marked yet."""
        try:
            under_way, answer = self._answers.get(timeout=wait_s)
        except queue.Empty:
            return False
        if answer.delivered:
            crashpoint("delivery_sent")
        marked = False
        try:
            marked = self._mark(conn, meter, under_way, answer)
        finally:
            if marked:
                self._under_way.discard(under_way)
            else:
                self._answers.put((under_way, answer))  # for later, or when PostgreSQL is back
        return marked

    def _mark(self, conn: Connection, meter: Meter, under_way: _UnderWay, answer: Answer) -> bool:
        """Note how an attempt ended; False where somebody else's transaction has the delivery."""
        due = under_way.due
        pause_s = self._schedule.pause_s(due.attempts, answer.retry_after_s)
        parameters = (
            due.id,
            under_way.lease,
            answer.delivered,
            answer.outcome,
            # Who is gone is asked no more: it waits until somebody enables the webhook.
            (pause_s or 0.0) if answer.status == _GONE else pause_s,
            self._schedule.receiver_s,
            answer.status == _GONE,
        )
        row = conn.execute(_END, parameters).fetchone()
        assert row is not None, "the function returns one row"
        if row[0] == "busy":
            return False
        meter.delivery_ended(row[0])
        if row[0] == "parked":
            _log().warning("delivery_parked", delivery=due.id, kind=due.kind, error=answer.outcome)
        return True

    def _sweep(self, conn: Connection) -> None:
        if time.monotonic() < self._sweep_at:
            return
        (gone,) = conn.execute(_SWEEP, (self._keep_s, _SWEPT_MAX)).fetchone() or (0,)
        if gone < _SWEPT_MAX:
            self._sweep_at = time.monotonic() + _SWEEP_EVERY_S


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.deliver")
    return log

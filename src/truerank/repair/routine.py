"""The comparison as routine: a worker goes through everything, gently, again and again.

One worker at a time does it, piece by piece. Where it stands is kept in PostgreSQL: after a
restart, or with another worker, it goes on there.
"""

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import structlog
from psycopg.types.json import Jsonb

from truerank.outbox.ticks import Connection
from truerank.projection.link import Link
from truerank.repair.findings import Report
from truerank.repair.judging import Kind
from truerank.repair.points import Rules
from truerank.repair.reconcile import Position, Reconciliation
from truerank.settings import Settings
from truerank.telemetry.meter import Meter

_TAKE = """
    SELECT grp, ranking, sort_key, member, found
    FROM truerank.take_reconciling(%s, %s, %s)"""
_NOTE = "SELECT truerank.note_reconciling(%s, %s, %s, %s::bigint, %s, %s, %s)"
_HOLD_MS = 60_000
_REST_MS = 600_000  # after the end of a pass
_ELSEWHERE_S = 15.0  # another worker does it, or none is due
_WAIT_S = 1.0  # what is on its way for longer is looked at again in the next pass
_PIECE_S = 0.05
_PIECE_ROWS = _CHUNK_ROWS = 1000
_EXAMPLES_MAX = 100  # differences of one pass that are logged one by one


class Routine:
    """The comparison that one process contributes to.

    Args:
        settings: of the process.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._holder = uuid4()
        self._conn: Connection | None = None
        self._run: Reconciliation | None = None
        self._steps: Iterator[int] = iter(())
        self._before = _Found()  # what was found of the pass by others, or before a restart
        self._told = _Found()

    def keep(self, conn: Connection, link: Link, meter: Meter) -> float:
        """Do a piece of it; return in how many seconds the next one is due.

        Args:
            conn: in autocommit, to the source.
            link: to the server that holds the copies.
            meter: told what was compared, and what was found.

        Raises:
            SourceDoubtful: the database isn't the one that feeds the projection.
            ProjectionUnavailable: Redis is away.
        """
        run = self._run if self._conn is conn else None
        if run is None:
            run = self._begin(conn, link)
        if run is None:
            return _ELSEWHERE_S
        try:
            ended = self._piece()
        except BaseException:
            self._run = None  # the steps are over: begin again where it was noted last
            raise
        self._tell(run.report, meter)
        if not self._note(conn, run, ended=ended):
            self._run = None
            return _ELSEWHERE_S
        if ended:
            self._run = None
            if run.report.checked or run.report.other:  # nobody wants to hear of an empty board
                _log().info("reconciled", found=run.report.line())
        return self._settings.reconcile_ms / 1000

    def _begin(self, conn: Connection, link: Link) -> Reconciliation | None:
        row = conn.execute(_TAKE, (self._holder, _HOLD_MS, _REST_MS)).fetchone()
        if row is None:
            return None
        group, ranking, sort_key, member, found = row
        rules = Rules(repair=self._settings.reconcile_repair, wait_s=_WAIT_S, rows_max=_CHUNK_ROWS)
        report = Report(examples_max=_EXAMPLES_MAX)
        run = Reconciliation(conn, link, self._settings.prefix, rules, report)
        after = None if sort_key is None else (sort_key, member)
        self._before, self._told = _Found(found), _Found()
        self._conn, self._run = conn, run
        self._steps = run.everything(Position(group=group, ranking=ranking, after=after))
        return run

    def _piece(self) -> bool:
        """Go on for a moment; whether the pass has ended."""
        began, rows = time.monotonic(), 0
        while rows < _PIECE_ROWS and time.monotonic() - began < _PIECE_S:
            step = next(self._steps, None)
            if step is None:
                return True
            rows += step
        return False

    def _tell(self, report: Report, meter: Meter) -> None:
        found = _Found(report.to_json())
        for name, number in (found.numbers - self._told.numbers).items():
            if name in set(Kind):
                meter.standings_compared(name, number)
            elif name in {"other", "repaired"}:
                meter.drift_met(name, number)
        self._told = found
        for finding in report.examples:
            log = _log().error if finding.kind is Kind.AHEAD else _log().warning
            log("projection_differs", **finding.to_log())
        report.examples_max -= len(report.examples)
        report.examples.clear()

    def _note(self, conn: Connection, run: Reconciliation, *, ended: bool) -> bool:
        """Keep what was found, and where to go on; False where another worker has taken over."""
        at = run.position
        found = self._before.numbers + self._told.numbers
        row = conn.execute(
            _NOTE,
            (
                self._holder,
                _HOLD_MS,
                None if ended else at.group,
                None if ended else at.ranking,
                None if ended or at.after is None else at.after[0],
                None if ended or at.after is None else at.after[1],
                Jsonb(dict(found)),
            ),
        ).fetchone()
        return row is not None and bool(row[0])


class _Found:
    """Numbers of a report, which add up over the pieces of a pass."""

    def __init__(self, found: dict[str, Any] | None = None) -> None:
        found = found or {}
        other = found.get("other", 0)
        numbers = {name: number for name, number in found.items() if isinstance(number, int)}
        numbers["other"] = sum(other.values()) if isinstance(other, dict) else other
        self.numbers = Counter(numbers)


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.reconcile")
    return log

"""Compare everything that readers read from Redis with PostgreSQL, and mend it where told to.

In bounded chunks: no statement is long, no script looks at more than some hundred members. Traffic
is no drift: what differs is judged at one tick before it counts. The walk stops between any two
chunks for as long as its caller likes.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

import structlog

from truerank.client import Truerank
from truerank.connections import urls
from truerank.model import Board, Season
from truerank.outbox.ticks import Connection
from truerank.projection import worker
from truerank.projection.copies import Copy
from truerank.projection.link import Link
from truerank.repair.findings import EXAMPLES_MAX, Finding, Ranking, Report
from truerank.repair.judging import Kind
from truerank.repair.looking import (
    CopyMoved,
    CopyUnfit,
    KeyDamaged,
    Looker,
)
from truerank.repair.points import Points, Rules
from truerank.repair.source import At, rankings, read_points, season_label
from truerank.repair.states import States
from truerank.repair.strays import stray_rankings
from truerank.repair.walking import Progress, Walk
from truerank.settings import Settings

T = TypeVar("T")
Told = Callable[[int, int], object]

_MOVES_MAX = 10  # copies that may become live while one group is compared
_NEW_COPY_S_MAX = 60.0
_POLL_S = 0.05
_GROUPS = "SELECT groups FROM truerank.installation()"
_OF_SEASON = """
    SELECT n.ranking FROM truerank.name_rankings(%s::bigint[]) AS n WHERE n.season = %s"""
_PARKED = "SELECT ranking FROM truerank.parked_rankings(%s::smallint[], false)"


def reconcile(
    settings: Settings,
    *,
    board: str | None = None,
    season: str | None = None,
    repair: bool = False,
    accept_ahead: bool = False,
    wait_s: float = 10.0,
    examples_max: int = EXAMPLES_MAX,
    told: Told | None = None,
) -> Report:
    """Compare every standing that readers read from Redis with the source's.

    Workers and writers may go on. Without `repair` nothing is written to either store.

    Args:
        settings: with both addresses.
        board: only of this board; None: of all, and what no board has is looked for as well.
        season: only of this season of the board, and of its cohorts.
        repair: force what PostgreSQL says. What can't be mended in place (keys of another type,
            counts of a large ranking) is left to a worker, which fills a new copy; that is waited
            for.
        accept_ahead: also where the projection has a newer version than PostgreSQL, which says
            that PostgreSQL lost something: find out why before.
        wait_s: how long a change that is on its way is waited for, before it counts as lagging.
        examples_max: findings that are told one by one.
        told: called after each chunk with the standings compared so far, and about how many there
            are in all.

    Raises:
        SourceDoubtful: the database isn't the one that feeds the projection.
        BoardUnknown, SeasonUnknown: there is no such board or season.
        DatabaseUnavailable, ProjectionUnavailable: a store is away.
    """
    database_url, redis_url = urls(settings)
    found: Board | None = None
    named: Season | None = None
    if board is not None:
        with Truerank(settings) as client:
            found = client.board(board)
            named = client.season(board, season) if season is not None else None
    began = time.monotonic()
    rules = Rules(repair=repair, accept_ahead=accept_ahead, wait_s=wait_s)
    report = Report(examples_max=examples_max)
    with (
        worker.connect(database_url, settings.database_timeout_ms) as conn,
        closing(Link(redis_url, timeout_ms=settings.redis_timeout_ms, connections_max=2)) as link,
    ):
        run = Reconciliation(conn, link, settings.prefix, rules, report)
        groups = range(run.groups()) if found is None else [found.group]
        total = 0 if told is None else sum(run.size(group) for group in groups)
        steps = run.everything() if found is None else run.group(found.group, found, named)
        for _ in steps:
            if told is not None:
                told(report.checked, total)
        if repair:
            run.await_new_copies(_NEW_COPY_S_MAX)
    report.seconds = time.monotonic() - began
    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far a run over everything has come; None: at the beginning."""

    group: int = 0
    ranking: int | None = None
    after: tuple[bytes, str] | None = None  # the last sort key and member compared


class Reconciliation:
    """One run over groups, as steps of one chunk each.

    Args:
        conn: in autocommit, to the source.
        link: to the server that holds the copies.
        prefix: of all keys.
        rules: what to do with what is found.
        report: counts what is found.
    """

    def __init__(
        self, conn: Connection, link: Link, prefix: str, rules: Rules, report: Report
    ) -> None:
        self._conn = conn
        self._looker = Looker(link, prefix)
        self._rules = rules
        self._report = report
        self._points = Points(conn, self._looker, rules)
        self._walk = Walk(conn, self._looker, self._points, rules, report)
        self._states = States(conn, self._looker, self._points.mender, rules, report)
        self._copy: Copy | None = None
        self._position = Position()
        self._walked: set[int] = set()
        self._handed_over: dict[int, str] = {}  # by group the copy that is to be replaced

    @property
    def report(self) -> Report:
        """What was found so far."""
        return self._report

    @property
    def position(self) -> Position:
        """Where a run over everything stands: `everything` goes on from there."""
        return self._position

    def everything(self, begin: Position | None = None) -> Iterator[int]:
        """Compare all groups, and what no copy's list names; yields the standings of each chunk.

        Args:
            begin: where an earlier run stood.

        Raises:
            SourceDoubtful: the database isn't the one that feeds a copy.
        """
        self._position = begin or Position()
        for group in range(self._position.group, self.groups()):
            if group != self._position.group:
                self._position = Position(group=group)
            yield from self.group(group)
            yield 0
        if begin in {None, Position()}:  # else the rankings of before aren't known
            yield from self.strays()

    def groups(self) -> int:
        """How many groups the installation has."""
        row = self._conn.execute(_GROUPS).fetchone()
        assert row is not None, "the function returns one row"
        return int(row[0])

    def size(self, group: int) -> int:
        """About how many standings the live copy of a group has."""
        copy = self._looker.live(group)
        if copy is None:
            return 0
        try:
            counts = self._looker.counts(copy).values()
        except KeyDamaged:
            return 0
        numbers = [count.split() for count in counts]
        return sum(
            int(each[0]) + int(each[2])
            for each in numbers
            if len(each) > 2 and each[0].isdigit() and each[2].isdigit()  # noqa: PLR2004 - as counts
        )

    def group(
        self, group: int, board: Board | None = None, season: Season | None = None
    ) -> Iterator[int]:
        """Compare the live copy of one group; yields the standings of each chunk.

        Raises:
            SourceDoubtful: the database isn't the one that feeds the copy.
        """
        self._report.groups += 1
        self._copy = self._looker.live(group)
        if self._copy is None:
            self._report.without_copy.append(group)
            return
        try:
            # Before anything is said of it, also of what is equal.
            read_points(self._conn, At(copy=self._copy, since=self._copy.snapshot), None, [b"-"])
            yield from self._group(group, board, season)
        except KeyDamaged:
            self._hand_over(group, None, "a key of another type")
        except (CopyMoved, CopyUnfit):
            self._report.without_copy.append(group)

    def strays(self) -> Iterator[int]:
        """Compare rankings of which only their keys tell, for no copy's list names them.

        Raises:
            SourceDoubtful: the database isn't the one that feeds a copy.
        """
        for group, ids in stray_rankings(self._looker, range(self.groups())):
            self._copy = self._looker.live(group)
            if self._copy is None:
                continue
            left = [ranking for ranking in ids if ranking not in self._walked]
            try:
                for ranking in rankings(self._conn, group, board_id=None, also=left):
                    if ranking.id in left:
                        yield from self._ranking(ranking)
            except (CopyMoved, CopyUnfit):
                self._report.without_copy.append(group)

    def await_new_copies(self, limit_s: float) -> None:
        """Wait until workers have filled the copies that were left to them, and count them mended.

        Where no worker begins, the findings stay as they are.
        """
        deadline = time.monotonic() + limit_s
        waiting = dict(self._handed_over)
        while waiting and time.monotonic() < deadline:
            if not self._workers():
                return
            for group, generation in list(waiting.items()):
                copy = self._looker.live(group)
                if copy is not None and copy.generation != generation:
                    del waiting[group]
                    self._report.settle(group)
            time.sleep(_POLL_S)

    def _group(self, group: int, board: Board | None, season: Season | None) -> Iterator[int]:
        whole = board is None
        compared = self._position.ranking is None
        if whole and compared:
            for _ in self._again(group, self._states.walk):
                yield 0
        for ranking in self._rankings(group, board, season):
            before = self._report.unrepaired
            yield from self._ranking(ranking)
            compared = compared and self._report.unrepaired == before
        if whole:
            self._steady(group, lambda copy: self._states.finish(copy, mend=compared))

    def _rankings(
        self, group: int, board: Board | None, season: Season | None
    ) -> Iterable[Ranking]:
        assert self._copy is not None, "looked for before"
        also = [int(name) for name in self._looker.counts(self._copy) if name.isdigit()]
        found = rankings(self._conn, group, board_id=board.id if board else None, also=also)
        parked = {ranking for (ranking,) in self._conn.execute(_PARKED, ([group],)).fetchall()}
        wanted = None if season is None else self._of_season([each.id for each in found], season)
        for ranking in found:
            if wanted is not None and ranking.id not in wanted:
                continue
            if ranking.id < (self._position.ranking or 0):
                continue
            if ranking.id in parked:
                self._report.parked += 1
            else:
                yield ranking

    def _of_season(self, ids: Sequence[int], season: Season) -> set[int]:
        """Those of some rankings that are a season's own or one of its cohorts'."""
        rows = self._conn.execute(_OF_SEASON, (ids, season.ranking)).fetchall()
        return {season.ranking, *(ranking for (ranking,) in rows)}

    def _ranking(self, ranking: Ranking) -> Iterator[int]:
        group, progress, at = ranking.group, Progress(), self._position
        if ranking.id == at.ranking and at.after is not None:
            progress = Progress.resumed(at.after, ranking)
        else:
            self._position = Position(group=group, ranking=ranking.id)
        self._walked.add(ranking.id)
        self._report.rankings += 1
        try:
            for rows in self._walked_through(group, ranking, progress):
                self._name(ranking)
                yield rows
        except KeyDamaged:
            self._hand_over(group, ranking, "a key of another type")
        self._name(ranking)

    def _name(self, ranking: Ranking) -> None:
        """Look up the season of a ranking with findings that are told."""
        if ranking.season is None and any(e.ranking is ranking for e in self._report.examples):
            ranking.season = season_label(self._conn, ranking.id)

    def _walked_through(self, group: int, ranking: Ranking, progress: Progress) -> Iterator[int]:
        if not self._steady(group, lambda copy: self._walk.begin(copy, ranking, progress)):
            self._hand_over(group, ranking, "quarantined")
            return
        while not progress.walked:
            rows = self._steady(group, lambda copy: self._walk.chunk(copy, ranking, progress))
            self._position = Position(group=group, ranking=ranking.id, after=progress.after)
            yield rows
        for _ in self._again(group, lambda copy: self._walk.rest(copy, ranking, progress)):
            yield 0
        if not self._steady(group, lambda copy: self._walk.finish(copy, ranking, progress)):
            self._hand_over(group, ranking, "counts")

    def _hand_over(self, group: int, ranking: Ranking | None, detail: str) -> None:
        assert self._copy is not None, "it has a key that is damaged"
        if self._rules.repair and ranking is not None:
            self._quarantine(self._copy, ranking)
        self._handed_over[group] = self._copy.generation
        finding = Finding(
            kind=Kind.CORRUPT,
            detail=detail,
            group=group,
            ranking=ranking,
            handed_over=self._rules.repair,
        )
        self._report.take_other([finding])
        _log().error("projection_damaged", group=group, detail=detail)

    def _quarantine(self, copy: Copy, ranking: Ranking) -> None:
        try:
            self._points.mender.quarantine(copy, [ranking.id])
        except KeyDamaged:
            _log().error("copy_damaged", group=copy.group)  # a worker finds out by itself

    def _steady(self, group: int, work: Callable[[Copy], T]) -> T:
        """Do something with the live copy; with the next one where another becomes live."""
        for _ in range(_MOVES_MAX):
            if self._copy is None:
                break
            try:
                return work(self._copy)
            except CopyMoved:
                self._copy = self._looker.live(group)
        raise CopyMoved

    def _again(self, group: int, work: Callable[[Copy], Iterator[None]]) -> Iterator[None]:
        """The same with what takes several steps: from the beginning where the copy moved."""
        for _ in range(_MOVES_MAX):
            if self._copy is None:
                break
            try:
                yield from work(self._copy)
            except CopyMoved:
                self._copy = self._looker.live(group)
            else:
                return
        raise CopyMoved

    def _workers(self) -> bool:
        row = self._conn.execute("SELECT workers FROM truerank.status()").fetchone()
        return row is not None and row[0] > 0


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.reconcile")
    return log

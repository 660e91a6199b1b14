"""Prove that events, standings and every way to read a ranking say the same, at one tick.

The source is read in one snapshot. Once the projection shows that snapshot, every path is read, and
after each PostgreSQL is asked whether anything in this ranking changed since: where nothing did,
all of them were asked for one and the same state, and any difference is one. Where something did,
nothing is said, and all is read again; so traffic can't be taken for a difference.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count

import msgspec
import psycopg

from truerank.client import Truerank
from truerank.connections import translate, urls
from truerank.errors import TruerankError
from truerank.model import Source
from truerank.read.cohorts import in_cohort
from truerank.repair.cohorts import check_cohorts
from truerank.repair.recount import recount
from truerank.repair.reference import Reference, snapshot_of
from truerank.repair.settlement import check_places, check_settlement
from truerank.repair.verified import PathResult, Verdict, Verification
from truerank.repair.walks import Walks
from truerank.sessions import AWAY
from truerank.settings import Settings

_CHANGED = "SELECT truerank.changed_since(%s, %s::pg_snapshot)"
_ATTEMPTS_MAX = 5
_CHECKS = (check_settlement, check_places, check_cohorts)
_COHORT_CHECKS = (check_places,)  # the others are its season's

Progress = Callable[[str], None]


def verify(
    settings: Settings,
    board: str,
    season: str | None = None,
    *,
    cohort: int | None = None,
    cohort_of: str | None = None,
    url: str | None = None,
    progress: Progress = lambda _path: None,
    visible_s_max: float = 10.0,
) -> Verification:
    """Compare every path to one season of a board.

    It only reads, but keeps a snapshot of PostgreSQL open for as long as one attempt takes.

    Args:
        settings: with both addresses; a worker must run.
        board: the board's key.
        season: a label; None: as for readers.
        cohort: only this cohort of the season, by its number, as readers read it.
        cohort_of: or the cohort that this member is in.
        url: of an HTTP service that is to be asked as well, such as `http://127.0.0.1:8080`.
        progress: told the name of each path before it is read.
        visible_s_max: how long the projection may take to show the snapshot, in seconds.

    Returns:
        What each path said. Its verdict is `moving` where scores kept arriving: try again when
        the board is quieter, or a season that has ended.

    Raises:
        BoardUnknown, SeasonUnknown, NotInCohort: there is nothing to read.
        DatabaseUnavailable: PostgreSQL is away.
    """
    asked = in_cohort(season, cohort, cohort_of)
    began = time.monotonic()
    database_url, _ = urls(settings)
    ways = _Ways(database_url, url, visible_s_max, progress)
    try:
        # What is going on, where the public is shown a season as it was when it was frozen.
        with Truerank(msgspec.structs.replace(settings, operator=True)) as client:
            found = client.board(board)
            named = client.run(client.operations.known.season(found, asked))
            walks = Walks(client=client, board=found, season=named)
            for attempt in count(1):
                last = attempt == _ATTEMPTS_MAX
                made = _attempt(walks, ways, last=last)
                if last or made.verdict is not Verdict.MOVING:
                    took_ms = round((time.monotonic() - began) * 1000)
                    return replace(made, attempts=attempt, duration_ms=took_ms)
    except AWAY as exc:
        raise translate(exc) from exc
    raise AssertionError("the last attempt returns")


@dataclass(frozen=True, slots=True)
class _Ways:
    """How the paths are reached; see `verify`."""

    database_url: str
    url: str | None
    visible_s_max: float
    progress: Progress


def _attempt(walks: Walks, ways: _Ways, *, last: bool) -> Verification:
    """Read everything once; a path after which something has changed is the last one read."""
    paths: list[PathResult] = []
    with (
        snapshot_of(ways.database_url) as conn,
        Reference.read(conn, walks.board, walks.season) as reference,
        psycopg.connect(ways.database_url, autocommit=True) as now,
    ):
        tick, late = _shown(walks, reference, ways.visible_s_max)
        moving = False
        for path in _walked(walks, reference, ways, late):
            paths.append(path)
            row = now.execute(_CHANGED, (walks.season.ranking, reference.snapshot)).fetchone()
            assert row is not None, "a SELECT without FROM returns one row"
            if row[0]:
                moving = True
                break
        own = [reference.result()]
        if not moving or last:
            ways.progress("events")
            own.append(recount(conn, walks.season))
            for check in _CHECKS if walks.season.cohort is None else _COHORT_CHECKS:
                checked = check(conn, walks.season)
                own += [] if checked is None else [checked]
    # What the source says of itself is of one snapshot, whatever came after it.
    paths = own if moving else own + paths
    if not all(path.same for path in paths):
        verdict = Verdict.DIFFERENT
    else:
        verdict = Verdict.MOVING if moving else Verdict.SAME
    return Verification(
        board=walks.board.spec.key,
        season=walks.season.label,
        cohort=walks.season.cohort,
        state=walks.season.state,
        members=reference.members,
        digest=reference.digest,
        epoch=reference.epoch,
        tick=tick,
        snapshot=reference.snapshot,
        verdict=verdict,
        paths=tuple(paths),
    )


def _shown(walks: Walks, reference: Reference, timeout_s: float) -> tuple[str | None, str | None]:
    """Wait until the projection shows the snapshot; its tick then, or why there is none."""
    client, key = walks.client, walks.board.spec.key
    try:
        client.wait_visible(reference.token, [key], timeout_s=timeout_s)
        page = client.top(
            key, walks.season.label, cohort=walks.season.cohort, limit=0, source=Source.PROJECTION
        )
    except TruerankError as exc:
        return None, exc.message
    return str(page.freshness.tick), None


def _walked(
    walks: Walks, reference: Reference, ways: _Ways, late: str | None
) -> Iterator[PathResult]:
    for source in Source:
        ways.progress(source.value)
        if source is Source.PROJECTION and late is not None:
            yield PathResult(name=source.value, compared=0, error=late)
            continue
        yield from walks.lists(source, reference)
        yield walks.places(source, reference)
        yield walks.windows(source, reference)
    ways.progress("export")
    yield walks.export(reference)
    if ways.url is not None:
        ways.progress("http")
        yield walks.http(ways.url, reference)

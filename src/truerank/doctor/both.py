"""What is examined across both stores: clocks, and whether boards are kept up to date."""

from collections.abc import Callable, Iterator
from time import time

from truerank.doctor.findings import (
    Deployment,
    Finding,
    Severity,
    counted,
    name_of,
    ok,
    warning,
)
from truerank.read.verdict import Verdict

_APART_S_MAX = 1.0


def clocks(here: Deployment) -> Iterator[Finding]:
    """The clocks of PostgreSQL, Redis and this machine agree within a second."""
    database_s = _apart(lambda: _database_clock(here))
    redis_s = _apart(lambda: _redis_clock(here))
    apart = {"PostgreSQL": database_s, "Redis": redis_s}
    wrong = {name: s for name, s in apart.items() if abs(s) > _APART_S_MAX}
    for name, s in wrong.items():
        yield warning(
            clocks,
            f"the clock of {name} is {abs(s):.1f} s {'ahead of' if s > 0 else 'behind'} this"
            " machine's",
            "let NTP set all clocks: seasons begin and end by PostgreSQL's",
        )
    if not wrong:
        most_ms = max(abs(database_s), abs(redis_s), abs(database_s - redis_s)) * 1000
        yield ok(clocks, f"at most {most_ms:.0f} ms apart")


def pipeline(here: Deployment) -> Iterator[Finding]:
    """Boards are kept up to date: `truerank status` has nothing to say."""
    for problem in here.status.problems:
        bad = problem.verdict is Verdict.DEGRADED
        yield Finding(
            check=name_of(pipeline),
            severity=Severity.ERROR if bad else Severity.WARNING,
            message=problem.message,
            advice=problem.advice,
        )
    if not here.status.problems:
        status = here.status
        yield ok(
            pipeline,
            f"{counted(status.workers, 'worker holds', 'workers hold')} {status.groups_leased} of"
            f" {status.groups} groups; {status.groups_live} of them read from Redis",
        )


def _apart(ask: Callable[[], float]) -> float:
    """How far a clock is ahead of this machine's, in seconds, but for half of a round trip."""
    before = time()
    theirs = ask()
    return theirs - (before + time()) / 2


def _database_clock(here: Deployment) -> float:
    row = here.conn.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
    assert row is not None, "it returns one row"
    return float(row[0])


def _redis_clock(here: Deployment) -> float:
    seconds, micros = here.redis.time()
    return float(seconds) + micros / 1_000_000

"""What one event costs: statements, round trips, WAL, dead rows; beside the textbook."""

import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any

import psycopg
import redis

import truerank
from benchmarks import textbook
from benchmarks.load import Events
from benchmarks.pipeline import BOARD, EVENTS_PER_CALL, Truerank
from benchmarks.processes import started
from benchmarks.result import Bar, Result, median, versions
from truerank.embedded import Engines
from truerank.model import ScoreEvent

Connection = psycopg.Connection[Any]

ROUNDS = 3

_SETTLE_S = 0.5  # until the workers have shown what was committed

_DEAD_ROWS = """
    SELECT coalesce(sum(n_dead_tup + n_tup_upd + n_tup_del), 0)::bigint
    FROM pg_stat_user_tables WHERE schemaname = %s AND relname LIKE 'outbox%%'"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a number of events cost, per event."""

    statements: float
    round_trips: float
    wal_bytes: float
    script_calls: float


def cost(engines: Engines, progress: Callable[[str], None], *, short: bool) -> Result:
    """One connection and one worker a side, counted by PostgreSQL, Valkey and libpq themselves."""
    members = 10_000 if short else 100_000
    events, textbook_events = (5_000, 1_000) if short else (20_000, 5_000)
    ours, theirs = Truerank(engines, members), textbook.Textbook(engines, members)
    for side in (ours, theirs):
        progress(f"a standing for each of {members:,} members: {side.name}")
        side.prepare()
    costs: dict[str, list[Cost]] = {"truerank": [], "textbook": []}
    for number in range(ROUNDS):
        progress(f"round {number + 1} of {ROUNDS}")
        with started(ours.worker()):
            calls = events // EVENTS_PER_CALL
            costs["truerank"].append(_cost(engines, _submitting(members, number), calls, events))
        with started(theirs.worker()):
            commands = _commanding(members, number)
            costs["textbook"].append(_cost(engines, commands, textbook_events, textbook_events))
    dead = {name: _dead_rows(engines, name) for name in costs}
    wal = {name: [cost.wal_bytes for cost in rounds] for name, rounds in costs.items()}
    return Result(
        name="cost",
        short=short,
        ratio=median(wal["truerank"]) / median(wal["textbook"]),
        ratio_of="WAL bytes per event of Truerank by those of the textbook pipeline",
        bars=[Bar(of="rows updated, deleted or dead in the outbox", value=dead["truerank"], bar=0)],
        sizes={
            "members": members,
            "events_per_call": EVENTS_PER_CALL,
            "events_per_round": events,
            "textbook_events_per_round": textbook_events,
        },
        engines=versions(engines),
        rounds=wal,
        rounds_of="WAL bytes per event",
        figures={
            f"{name}, {what} per event": median([getattr(cost, field) for cost in rounds])
            for name, rounds in costs.items()
            for what, field in (
                ("statements", "statements"),
                ("round trips", "round_trips"),
                ("script calls", "script_calls"),
            )
        }
        | {"textbook, rows updated, deleted or dead in the outbox": dead["textbook"]},
    )


def _submitting(members: int, number: int) -> Callable[[Connection], None]:
    stream = Events(f"cost/{number}", members)

    def call(conn: Connection) -> None:
        conn.autocommit = True
        truerank.submit_scores(
            conn,
            BOARD,
            [
                ScoreEvent(event_id=event_id, member=member, value=value)
                for event_id, member, value in stream.draw(EVENTS_PER_CALL)
            ],
        )

    return call


def _commanding(members: int, number: int) -> Callable[[Connection], None]:
    stream = Events(f"cost/textbook/{number}", members)

    def call(conn: Connection) -> None:
        ((event_id, member, value),) = stream.draw(1)
        textbook.command(conn, conn.cursor(binary=True), event_id, member, value)

    return call


def _cost(engines: Engines, call: Callable[[Connection], None], calls: int, events: int) -> Cost:
    """Count over some calls; one before them pays for what is done once per connection."""
    with (
        psycopg.connect(engines.database_url, prepare_threshold=0) as conn,
        redis.Redis.from_url(engines.redis_url) as server,
        tempfile.TemporaryFile() as trace,
    ):
        call(conn)
        time.sleep(_SETTLE_S)
        wal_before, scripts_before = _wal_position(engines), _script_calls(server)
        conn.pgconn.trace(trace.fileno())
        for _ in range(calls):
            call(conn)
        conn.pgconn.untrace()
        time.sleep(_SETTLE_S)
        wal_bytes = _wal_position(engines) - wal_before
        script_calls = _script_calls(server) - scripts_before
        statements, round_trips = _traced(trace)
    return Cost(
        statements=statements / events,
        round_trips=round_trips / events,
        wal_bytes=wal_bytes / events,
        script_calls=script_calls / events,
    )


def _traced(trace: IO[bytes]) -> tuple[int, int]:
    """Statements and round trips, from what libpq noted of each message: time, direction, size."""
    trace.seek(0)
    lines = trace.read()
    executed = re.findall(rb"^[^\t\n]*\tF\t\d+\t(?:Execute|Query)\b", lines, re.MULTILINE)
    answered = re.findall(rb"^[^\t\n]*\tB\t\d+\tReadyForQuery\b", lines, re.MULTILINE)
    return len(executed), len(answered)


def _wal_position(engines: Engines) -> int:
    with psycopg.connect(engines.database_url) as conn:
        row = conn.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
    assert row is not None, "the function returns one row"
    return int(row[0])


def _script_calls(server: "redis.Redis") -> int:
    stats = server.info("commandstats")
    return sum(
        stats[f"cmdstat_{name}"]["calls"]
        for name in ("evalsha", "eval")
        if f"cmdstat_{name}" in stats
    )


def _dead_rows(engines: Engines, schema: str) -> int:
    # A session's counts arrive when it ends, and all sessions have ended.
    with psycopg.connect(engines.database_url) as conn:
        row = conn.execute(_DEAD_ROWS, (schema,)).fetchone()
    assert row is not None, "an aggregate returns one row"
    return int(row[0])

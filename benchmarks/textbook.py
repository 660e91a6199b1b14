"""The baseline: the outbox of the textbook, written as well as that design allows.

A command is one transaction of four statements: find the open season, insert the event if it is
new, add to the score, append to the outbox. Eight connections in two processes: blocking psycopg
in threads, which is as fast here as asyncio with uvloop, pipeline mode, or eight processes; every
statement prepared, results binary. The worker takes a hundred unpublished rows with SKIP LOCKED,
calls one script per row, marks them in one UPDATE, and goes on at once while there is work. Where
the worker isn't what is measured it sends its hundred calls in one round trip, to its advantage.

What it leaves out and Truerank does: telling a duplicate from a conflict, times of the events,
limits, tie-breaks, an exact order among equals, an index to read ranks from SQL, more than one
season, freshness, and a check of the projection. Its scores in Redis are doubles.
"""

import time
from collections.abc import Iterable, Sequence
from functools import partial
from importlib import resources
from typing import Any

import psycopg
import redis
from redis.client import Pipeline

from benchmarks.load import Events, Load, Pace, Submitted, member_id
from benchmarks.processes import Pipe, Task, stop_on_close
from benchmarks.threads import AwaitBegin, run_together
from truerank.embedded import Engines

RANKING, VERSIONS = "textbook:ranking", "textbook:versions"

_SEASON = "SELECT id FROM textbook.season WHERE id = %s AND starts_at <= now() AND now() < ends_at"
_EVENT = """
    INSERT INTO textbook.event (event_id, member, value) VALUES (%s, %s, %s)
    ON CONFLICT (event_id) DO NOTHING"""
_SCORE = """
    INSERT INTO textbook.score AS s (member, score, version) VALUES (%s, %s, 1)
    ON CONFLICT (member) DO UPDATE
        SET score = s.score + excluded.score, version = s.version + 1
    RETURNING score, version"""
_OUTBOX = """
    INSERT INTO textbook.outbox (event_id, member, score, version) VALUES (%s, %s, %s, %s)"""
_UNPUBLISHED = """
    SELECT id, event_id, member, score, version FROM textbook.outbox
    WHERE published_at IS NULL ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED"""
_PUBLISHED = "UPDATE textbook.outbox SET published_at = now() WHERE id = ANY (%s)"

_APPEND = (
    """
    INSERT INTO textbook.event (event_id, member, value)
    SELECT event_id, member, value FROM appended""",
    """
    INSERT INTO textbook.outbox (event_id, member, score, version)
    SELECT a.event_id, a.member,
           s.score + sum(a.value) OVER so_far, s.version + count(*) OVER so_far
    FROM appended AS a JOIN textbook.score AS s USING (member)
    WINDOW so_far AS (PARTITION BY a.member ORDER BY a.n) ORDER BY a.n""",
    """
    UPDATE textbook.score AS s SET score = s.score + a.total, version = s.version + a.events
    FROM (SELECT member, sum(value) AS total, count(*) AS events FROM appended GROUP BY member) AS a
    WHERE s.member = a.member""",
)

_CONNECTIONS = 8
_MARKER_S = 86_400
_IDLE_S = 0.02


class Textbook:
    """The textbook pipeline on the given engines; a `Pipeline`."""

    name = "textbook"

    def __init__(self, engines: Engines, members: int) -> None:
        self._engines = engines
        self._members = members
        self._total = 0

    def prepare(self) -> None:
        """Make the tables, and a standing for every member, on one event each."""
        with (
            psycopg.connect(self._engines.database_url, autocommit=True) as conn,
            redis.Redis.from_url(self._engines.redis_url) as client,
        ):
            conn.execute(_file("textbook.sql").decode())
            conn.execute(
                "INSERT INTO textbook.event (event_id, member, value)"
                " SELECT gen_random_uuid(), 'm' || lpad(n::text, 9, '0'), 1"
                " FROM generate_series(0, %s - 1) AS n ORDER BY random()",
                (self._members,),
            )
            conn.execute(
                "INSERT INTO textbook.score (member, score, version)"
                " SELECT member, value, 1 FROM textbook.event"
            )
            members = [member_id(number) for number in range(self._members)]
            for i in range(0, len(members), 500):
                client.zadd(RANKING, dict.fromkeys(members[i : i + 500], 1))
                client.hset(VERSIONS, mapping=dict.fromkeys(members[i : i + 500], 1))
        self._total = self._members

    def worker(self) -> Task:
        """The process that publishes."""
        return Task(work, (self._engines.database_url, self._engines.redis_url))

    def clients(self, load: Load) -> list[Task]:
        """The processes that submit: two, with half of the connections each."""
        return [
            Task(submit, (self._engines.database_url, load, f"{load.seed}/{process}"))
            for process in range(2)
        ]

    def await_visible(self, submitted: Sequence[Submitted]) -> None:
        """Wait until every row is published."""
        self._total += sum(client.total for client in submitted)
        with psycopg.connect(self._engines.database_url, autocommit=True) as conn:
            while conn.execute(
                "SELECT FROM textbook.outbox WHERE published_at IS NULL LIMIT 1"
            ).fetchall():
                time.sleep(0.01)

    def verify(self) -> None:
        """Fail unless Redis shows what PostgreSQL holds, and that is what was submitted."""
        with (
            psycopg.connect(self._engines.database_url) as conn,
            redis.Redis.from_url(self._engines.redis_url) as client,
        ):
            rows = conn.execute("SELECT member, score FROM textbook.score").fetchall()
            scores: dict[str, int] = dict(rows)
            shown = dict(client.zrange(RANKING, 0, -1, withscores=True))
        assert sum(scores.values()) == self._total, "the textbook pipeline lost or made points"
        assert shown == {member.encode(): score for member, score in scores.items()}, (
            "the textbook's ranking differs from its table"
        )


def submit(pipe: Pipe, database_url: str, load: Load, seed: str) -> None:
    """A client process: commands one after the other on each of its connections."""
    run_together(
        pipe,
        [
            partial(_submit, database_url, load, f"{seed}/{thread}")
            for thread in range(_CONNECTIONS // 2)
        ],
    )


def _submit(database_url: str, load: Load, seed: str, await_begin: AwaitBegin) -> Submitted:
    events = Events(seed, load.members)
    count = total = 0
    with psycopg.connect(database_url, prepare_threshold=0) as conn:
        cursor = conn.cursor(binary=True)
        await_begin()
        calls_per_s = None if load.rate is None else load.rate * 2 / _CONNECTIONS
        pace = Pace(load.seconds, calls_per_s)
        while pace.goes_on():
            ((event_id, member, value),) = events.draw(1)
            command(conn, cursor, event_id, member, value)
            count += 1
            total += value
    return Submitted(began=pace.began, ended=time.monotonic(), events=count, total=total)


def command(
    conn: psycopg.Connection[Any],
    cursor: psycopg.Cursor[Any],
    event_id: str,
    member: str,
    value: int,
) -> bool:
    """Apply one event in a transaction of its own; False where it was there or is too late."""
    if not cursor.execute(_SEASON, (1,)).fetchall():
        conn.rollback()
        return False
    if not cursor.execute(_EVENT, (event_id, member, value)).rowcount:
        conn.rollback()
        return False
    ((score, version),) = cursor.execute(_SCORE, (member, value)).fetchall()
    cursor.execute(_OUTBOX, (event_id, member, score, version))
    conn.commit()
    return True


def work(pipe: Pipe, database_url: str, redis_url: str) -> None:
    """The worker process: publish until the parent closes the pipe."""
    with (
        psycopg.connect(database_url, prepare_threshold=0) as conn,
        redis.Redis.from_url(redis_url) as client,
    ):
        sha1 = load_script(client)
        pipe.send(None)
        stop = stop_on_close(pipe)
        while not stop.is_set():
            if not publish(conn, client, sha1):
                stop.wait(_IDLE_S)


def load_script(client: "redis.Redis") -> str:
    """Have Redis know the worker's script; return its digest."""
    return str(client.script_load(_file("textbook.lua")))


def publish(
    conn: psycopg.Connection[Any], client: redis.Redis, sha1: str, *, together: bool = True
) -> int:
    """Publish up to a hundred rows; return how many.

    Args:
        conn: not in a transaction.
        client: of Redis.
        sha1: what `load_script` returned.
        together: the calls of all rows in one round trip, not one after the other.
    """
    with conn.transaction(), conn.cursor(binary=True) as cursor:
        rows = cursor.execute(_UNPUBLISHED).fetchall()
        if rows:
            calls = client.pipeline(transaction=False) if together else client
            for _, event_id, member, score, version in rows:
                calls.evalsha(
                    sha1, 3, f"textbook:seen:{event_id}", RANKING, VERSIONS,
                    member, score, version, _MARKER_S,
                )  # fmt: skip
            if isinstance(calls, Pipeline):
                calls.execute()
            cursor.execute(_PUBLISHED, ([row[0] for row in rows],))
        return len(rows)


def append(conn: psycopg.Connection[Any], events: Iterable[tuple[str, str, int]]) -> None:
    """Leave the outbox with exactly the rows that the commands of these events would leave there.

    Args:
        conn: in autocommit.
        events: id, member, and value of each, in the order of the commands; every member has a
            score already.
    """
    with conn.transaction():
        conn.execute("TRUNCATE textbook.outbox")
        conn.execute(
            "CREATE TEMPORARY TABLE appended (n bigint GENERATED ALWAYS AS IDENTITY,"
            " event_id uuid, member text, value bigint) ON COMMIT DROP"
        )
        with conn.cursor().copy("COPY appended (event_id, member, value) FROM STDIN") as copy:
            for event in events:
                copy.write_row(event)
        for statement in _APPEND:
            conn.execute(statement)
    conn.execute("VACUUM (ANALYZE) textbook.outbox, textbook.score")


def _file(name: str) -> bytes:
    return (resources.files("benchmarks") / name).read_bytes()

import dataclasses
from typing import Any

import psutil
import psycopg
import pytest
import redis

from benchmarks import textbook
from benchmarks.__main__ import BENCHMARKS
from benchmarks.catch_up import catch_up
from benchmarks.idle import cpu_s, idle
from benchmarks.projection import one_each, projection, several
from truerank.embedded import Engines

OUTBOX = "SELECT event_id::text, member, score, version FROM textbook.outbox ORDER BY id"


@pytest.fixture
def prepared(engines: Engines, database_url: str, redis_url: str) -> textbook.Textbook:
    own = dataclasses.replace(engines, database_url=database_url, redis_url=redis_url)
    side = textbook.Textbook(own, 5)
    side.prepare()
    return side


def rows(conn: psycopg.Connection[Any], sql: str) -> list[tuple[Any, ...]]:
    return conn.execute(sql).fetchall()


@pytest.mark.usefixtures("prepared")
def test_an_appended_backlog_is_what_the_commands_would_have_left(database_url: str) -> None:
    events = several("seed", 5, 20)
    scores = "SELECT member, score, version FROM textbook.score ORDER BY member"
    with psycopg.connect(database_url) as conn:
        for event in events:
            assert textbook.command(conn, conn.cursor(binary=True), *event)
        commanded = rows(conn, OUTBOX), rows(conn, scores)
        conn.execute("TRUNCATE textbook.outbox, textbook.event")
        conn.execute("UPDATE textbook.score SET score = 1, version = 1")

    with psycopg.connect(database_url, autocommit=True) as conn:
        textbook.append(conn, events)

        assert (rows(conn, OUTBOX), rows(conn, scores)) == commanded


@pytest.mark.usefixtures("prepared")
def test_a_backlog_that_was_left_is_not_published_with_the_next(
    database_url: str, redis_url: str
) -> None:
    with (
        psycopg.connect(database_url, autocommit=True) as conn,
        redis.Redis.from_url(redis_url) as client,
    ):
        textbook.append(conn, several("left", 5, 20))
        textbook.append(conn, one_each("next", 5))

        assert textbook.publish(conn, client, textbook.load_script(client)) == 5
        assert textbook.publish(conn, client, textbook.load_script(client)) == 0


def test_each_member_comes_once_in_a_backlog_without_repeats() -> None:
    members = [member for _, member, _ in one_each("seed", 100)]

    assert len(set(members)) == len(members) == 100
    assert members != sorted(members)


def test_the_time_of_a_process_never_runs_backwards() -> None:
    process = psutil.Process()
    before = cpu_s(process)

    sum(n * n for n in range(1_000_000))

    assert cpu_s(process) > before


def test_the_command_line_knows_the_benchmarks_of_the_projector() -> None:
    assert {"projection": projection, "idle": idle, "catch_up": catch_up}.items() <= (
        BENCHMARKS.items()
    )

"""Rows that were there before are taken in once, whatever else happens meanwhile."""

import csv
import gzip
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.attach.conftest import Bench
from truerank.command.attach import Backfilled
from truerank.errors import Contended, InvalidInput

Connection = psycopg.Connection[Any]
Connect = Callable[..., Connection]
Begin = Callable[..., Future[Any]]

_DEADLINE_S = 30.0
_BACKFILL = """
import sys
import truerank
from truerank.command.attach import backfill
with truerank.connect(sys.argv[1], sys.argv[2]) as tr:
    tr.run(backfill(int(sys.argv[3]), actor="test", rows_max=50,
                    progress=lambda part: print(part.rows, flush=True)))
"""


def fill(conn: Connection, rows: int, first: int = 1) -> None:
    conn.execute(
        "INSERT INTO public.completion (id, who, points)"
        " SELECT 'old' || g, 'm' || g %% 7, g %% 10 FROM generate_series(%s::int, %s::int) AS g",
        (first, first + rows - 1),
    )


def plain(conn: Connection, where: str = "true") -> dict[str, str]:
    rows = conn.execute(
        f"SELECT who, sum(points)::text FROM public.completion WHERE {where} GROUP BY who"
    )
    return dict(rows.fetchall())


def test_a_backfill_counts_what_it_did_and_tells_its_progress(bench: Bench) -> None:
    fill(bench.conn, 250)
    bench.conn.execute("UPDATE public.completion SET points = 5000 WHERE id = 'old7'")
    bench.tr.submit_score("b", event_id="old9", member="Z", value=1)
    attached = bench.attach(condition="id <> 'old8'")
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('new', 'N', 1)")
    parts: list[Backfilled] = []

    total = bench.backfill(attached.id, rows_max=100, progress=parts.append)

    assert total == Backfilled(rows=251, applied=247, duplicate=1, parked=2)
    assert [part.rows for part in parts] == [100, 100, 51]
    assert {p.event_id: p.code for p in bench.parked()} == {
        "old7": "value_out_of_range",
        "old9": "event_conflict",
    }
    shown = bench.shown(attached.id)
    assert (shown.backfill, shown.backfill_done_at is not None) == (total, True)


def test_a_finished_backfill_adds_nothing_when_it_runs_again(bench: Bench) -> None:
    fill(bench.conn, 120)
    attached = bench.attach()
    bench.backfill(attached.id)

    again = bench.backfill(attached.id)
    restarted = bench.backfill(attached.id, restart=True)

    assert again == Backfilled()
    assert restarted == Backfilled(rows=120, duplicate=120)
    assert bench.scores() == plain(bench.conn)


def test_a_backfill_parks_also_where_statements_would_raise(bench: Bench) -> None:
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5000)")
    attached = bench.attach(on_refusal="raise")

    assert bench.backfill(attached.id) == Backfilled(rows=1, parked=1)


def test_a_row_that_changed_before_its_turn_counts_once(bench: Bench) -> None:
    fill(bench.conn, 20)
    attached = bench.attach()

    bench.conn.execute("UPDATE public.completion SET points = 77 WHERE id = 'old3'")
    bench.conn.execute("UPDATE public.completion SET points = 78 WHERE id = 'old3'")
    bench.conn.execute("DELETE FROM public.completion WHERE id = 'old4'")
    bench.conn.execute("UPDATE public.completion SET id = 'moved' WHERE id = 'old5'")
    bench.backfill(attached.id)

    assert bench.scores() == plain(bench.conn)
    assert bench.parked() == []


def test_a_row_that_came_back_while_detached_is_found_by_the_next_backfill(bench: Bench) -> None:
    fill(bench.conn, 5)
    first = bench.attach()
    bench.backfill(first.id)
    bench.conn.execute("DELETE FROM public.completion WHERE id = 'old3'")
    bench.detach(first.id)
    fill(bench.conn, 1, first=3)

    second = bench.attach()
    bench.backfill(second.id)

    assert bench.scores() == plain(bench.conn)
    assert "old3~1" in bench.live()


def test_what_a_person_voided_stays_out_of_a_backfill(bench: Bench) -> None:
    fill(bench.conn, 5)
    attached = bench.attach()
    bench.backfill(attached.id)
    bench.tr.void_events("b", ["old3"], actor="judge", reason="cheated")

    bench.backfill(attached.id, restart=True)

    assert set(bench.live()) == {"old1", "old2", "old4", "old5"}


def test_a_writer_that_holds_a_row_stops_the_backfill_and_is_not_stopped(
    bench: Bench, connect: Connect
) -> None:
    fill(bench.conn, 10)
    attached = bench.attach()
    writer = connect()
    one = "SELECT applied FROM truerank.backfill_attached(%s, 10, 'test')"

    with writer.transaction():
        writer.execute("UPDATE public.completion SET points = 50 WHERE id = 'old5'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            bench.conn.execute(one, (attached.id,))
        writer.execute("UPDATE public.completion SET points = 60 WHERE id = 'old6'")
    bench.conn.execute(one, (attached.id,))

    assert bench.scores() == plain(bench.conn)


def test_a_backfill_gives_up_at_last_and_keeps_what_it_committed(
    bench: Bench, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(bench.conn, 9)
    # Its standing is nobody else's, so that only its row is in the way.
    bench.conn.execute("UPDATE public.completion SET who = 'alone' WHERE id = 'old9'")
    attached = bench.attach()
    monkeypatch.setattr("truerank.command.attach._TRIES_MAX", 2)
    writer = connect(autocommit=False)
    writer.execute("UPDATE public.completion SET points = 50 WHERE id = 'old9'")

    with pytest.raises(Contended):
        bench.backfill(attached.id, rows_max=3)
    writer.commit()

    committed = bench.shown(attached.id).backfill.rows
    assert 6 <= committed < 9
    assert bench.backfill(attached.id, rows_max=3).rows == 9 - committed
    assert bench.scores() == plain(bench.conn)


def test_a_change_of_a_row_that_is_being_taken_in_waits_and_counts(
    bench: Bench, connect: Connect, begin: Begin, until_blocked: Callable[[Connection], None]
) -> None:
    fill(bench.conn, 10)
    attached = bench.attach()
    filler, writer = connect(), connect()

    with filler.transaction():
        filler.execute("SELECT truerank.backfill_attached(%s, 100, 'test')", (attached.id,))
        update = begin(writer.execute, "UPDATE public.completion SET points = 50 WHERE id = 'old5'")
        until_blocked(writer)
    update.result()

    assert bench.live()["old5~1"] == 50
    assert bench.scores() == plain(bench.conn)


def test_killed_half_way_and_resumed_under_writers_the_totals_are_those_of_the_rows(
    bench: Bench, database_url: str, redis_url: str, connect: Connect, begin: Begin
) -> None:
    fill(bench.conn, 3000)
    attached = bench.attach()
    deadline = time.monotonic() + _DEADLINE_S
    writers = [connect() for _ in range(3)]
    resumed: list[bool] = []

    def write(number: int) -> int:
        conn, done = writers[number], 0
        while not resumed and time.monotonic() < deadline:
            # One row a statement: several at once may deadlock with each other, as any updates.
            old = f"old{(number + done * 3) % 3000 + 1}"
            conn.execute(
                "INSERT INTO public.completion (id, who, points) VALUES (%s, %s, 3)",
                (f"w{number}-{done}", f"m{done % 7}"),
            )
            conn.execute(
                "UPDATE public.completion SET points = points + 1 WHERE id = %s AND points < 900",
                (old,),
            )
            if done % 5 == 0:
                conn.execute("DELETE FROM public.completion WHERE id = %s", (old,))
            done += 1
        return done

    writing = [begin(write, number) for number in range(3)]
    with subprocess.Popen(
        [sys.executable, "-c", _BACKFILL, database_url, redis_url, str(attached.id)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout is not None
        for _ in range(10):
            process.stdout.readline()
        process.kill()
    halfway = bench.shown(attached.id)
    rest = bench.backfill(attached.id, rows_max=200)
    resumed.append(True)
    written = sum(future.result() for future in writing)

    assert process.returncode < 0
    assert 0 < halfway.backfill.rows < 3000
    assert halfway.backfill_done_at is None
    assert rest.rows > 0
    assert written > 10
    assert bench.parked() == []
    assert bench.scores() == plain(bench.conn)


def test_the_real_file_in_an_ordinary_table_gives_the_totals_of_the_file(
    bench: Bench, data_dir: Path
) -> None:
    bench.conn.execute(
        "CREATE TABLE public.task (event_id text PRIMARY KEY, board text, member text,"
        " points integer, occurred_at timestamptz)"
    )
    with gzip.open(data_dir / "completions.csv.gz", "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = sql.SQL(", ").join(map(sql.Identifier, rows[0]))
    copying = sql.SQL("COPY public.task ({}) FROM STDIN").format(names)
    with bench.conn.cursor() as cursor, cursor.copy(copying) as copy:
        for row in rows:
            copy.write_row(tuple(row.values()))
    whole: Counter[str] = Counter()
    again: Counter[str] = Counter()
    for row in rows:
        whole[row["member"]] += int(row["points"])
        if row["board"] == "project-c":
            again[row["member"]] += int(row["points"])

    bench.tr.create_board("real", seasons=("all",))
    attached = bench.attach(
        board="real",
        table="task",
        event_id="event_id",
        member="member",
        value="points",
        occurred_at="occurred_at",
    )
    total = bench.backfill(attached.id, rows_max=5000)
    standings = _all(bench)
    bench.conn.execute(
        "INSERT INTO public.task SELECT 'again:' || event_id, board, member, points, occurred_at"
        " FROM public.task WHERE board = 'project-c'"
    )

    assert total == Backfilled(rows=49_042, applied=49_042)
    assert standings == whole
    assert _all(bench) == whole + again


def test_a_row_of_a_writer_that_was_under_way_is_found_by_the_backfill(
    bench: Bench, connect: Connect, begin: Begin
) -> None:
    writer, watcher = connect(autocommit=False), connect()
    writer.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5)")

    attaching = begin(bench.attach)
    deadline = time.monotonic() + _DEADLINE_S
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation IS NOT NULL"
    while watcher.execute(waiting).fetchone() == (0,) and time.monotonic() < deadline:
        time.sleep(0.002)
    writer.execute("INSERT INTO public.completion (id, who, points) VALUES ('e2', 'A', 6)")
    writer.commit()
    attached = attaching.result()
    seen = bench.events()
    bench.backfill(attached.id)

    assert seen == []
    assert bench.live() == {"e1": 5, "e2": 6}


def test_two_boards_take_their_own_rows_of_one_table(bench: Bench) -> None:
    bench.tr.create_board("zeros", seasons=("all",))
    fill(bench.conn, 100)
    attached = bench.attach()
    zeros = bench.attach(board="zeros", value=None, value_fixed=1, condition="points = 0")

    for one in (attached, zeros):
        bench.backfill(one.id)
    bench.conn.execute("INSERT INTO public.completion VALUES ('new1', 'm1', 0), ('new2', 'm1', 4)")

    assert bench.scores() == plain(bench.conn)
    counts = bench.conn.execute(
        "SELECT who, count(*)::text FROM public.completion WHERE points = 0 GROUP BY who"
    )
    assert bench.scores("zeros") == dict(counts.fetchall())


def test_a_backfill_of_what_is_not_attached_says_so(bench: Bench) -> None:
    with pytest.raises(InvalidInput) as failed:
        bench.backfill(99)

    assert failed.value.reason == "attachment_unknown"


def _all(bench: Bench) -> dict[str, int]:
    rows = bench.conn.execute(
        "SELECT s.member, s.score FROM truerank.standing AS s JOIN truerank.board AS b"
        " ON b.id = s.ranking >> 36 WHERE b.key = 'real' AND s.ranking >> 32 & 15 = 1"
    )
    return dict(rows.fetchall())

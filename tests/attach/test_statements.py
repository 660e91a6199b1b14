"""What a statement writes to an attached table is on the board when it commits, in one call."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.attach.conftest import Bench

Connection = psycopg.Connection[Any]


def test_a_row_is_an_event_with_the_source_of_its_table(bench: Bench) -> None:
    bench.attach()

    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5)")

    assert bench.scores() == {"A": "5"}
    assert bench.scores(season="2024-06") == {"A": "5"}
    assert bench.conn.execute("SELECT source FROM truerank.event").fetchall() == [
        ("attach:public.completion",)
    ]


def test_the_rows_of_a_statement_come_in_one_call_and_in_their_order(bench: Bench) -> None:
    bench.attach()

    bench.conn.execute(
        "INSERT INTO public.completion (id, who, points)"
        " SELECT 'e' || g, 'm' || g % 3, 1 FROM generate_series(1, 9) AS g"
    )

    # One call reads the clock once and draws positions in the order of the rows.
    ((calls,),) = bench.conn.execute("SELECT count(DISTINCT received_at) FROM truerank.event")
    assert calls == 1
    assert [id_ for id_, *_ in bench.events()] == [f"e{n}" for n in range(1, 10)]
    assert bench.scores() == {"m0": "3", "m1": "3", "m2": "3"}


def test_one_statement_calls_the_board_once_however_many_rows(bench: Bench) -> None:
    bench.attach()
    calls = [0]
    for rows in (1, 1000):
        with bench.conn.transaction(force_rollback=True):
            bench.conn.execute("SET LOCAL track_functions = 'all'")
            bench.conn.execute(
                "INSERT INTO public.completion (id, who, points)"
                " SELECT 'e' || g, 'm', 1 FROM generate_series(1, %s) AS g",
                (rows,),
            )
            ((count,),) = bench.conn.execute(
                "SELECT pg_stat_get_xact_function_calls(p.oid) FROM pg_proc AS p"
                " WHERE p.proname = 'submit_scores'"
            )
            calls.append(count)

    # The counter goes on through a rollback.
    assert calls == [0, 1, 2]


def test_a_rolled_back_statement_leaves_neither_row_nor_event(bench: Bench) -> None:
    bench.attach()

    with bench.conn.transaction(force_rollback=True):
        bench.conn.execute("INSERT INTO public.completion VALUES ('e1', 'A', 5)")
        assert bench.live() == {"e1": 5}

    assert bench.live() == {}
    assert bench.conn.execute("SELECT count(*) FROM truerank.outbox").fetchone() == (0,)


def test_a_savepoint_takes_back_its_own_rows_only(bench: Bench) -> None:
    bench.attach()

    with bench.conn.transaction():
        bench.conn.execute("INSERT INTO public.completion VALUES ('e1', 'A', 5)")
        with bench.conn.transaction(force_rollback=True):
            bench.conn.execute("INSERT INTO public.completion VALUES ('e2', 'A', 7)")
            bench.conn.execute("UPDATE public.completion SET points = 9 WHERE id = 'e1'")

    assert bench.live() == {"e1": 5}
    assert bench.scores() == {"A": "5"}


def test_copy_brings_every_row(bench: Bench) -> None:
    bench.attach()

    copying = "COPY public.completion (id, who, points) FROM STDIN"
    with bench.conn.cursor() as cursor, cursor.copy(copying) as copy:
        for n in range(500):
            copy.write_row((f"e{n}", f"m{n % 7}", n % 5))

    expected: dict[str, int] = {}
    for n in range(500):
        expected[f"m{n % 7}"] = expected.get(f"m{n % 7}", 0) + n % 5
    assert bench.scores() == {member: str(total) for member, total in expected.items()}


def test_ten_thousand_rows_of_one_statement_add_up(bench: Bench) -> None:
    bench.attach()

    bench.conn.execute(
        "INSERT INTO public.completion (id, who, points)"
        " SELECT 'e' || g, 'm' || g % 101, g % 13 FROM generate_series(1, 10000) AS g"
    )

    plain = bench.conn.execute("SELECT who, sum(points)::text FROM public.completion GROUP BY who")
    assert bench.scores() == dict(plain.fetchall())
    ((calls,),) = bench.conn.execute("SELECT count(DISTINCT received_at) FROM truerank.event")
    assert calls == 1


def test_on_conflict_do_update_is_a_new_event_or_a_correction(bench: Bench) -> None:
    bench.attach()
    upsert = (
        "INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', %s), ('e2', 'B', %s)"
        " ON CONFLICT (id) DO UPDATE SET points = excluded.points"
    )
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5)")

    bench.conn.execute(upsert, (6, 7))
    bench.conn.execute(upsert, (6, 7))

    assert bench.live() == {"e1~1": 6, "e2": 7}
    assert bench.scores() == {"A": "6", "B": "7"}


def test_merge_inserts_updates_and_deletes_in_one_statement(bench: Bench) -> None:
    bench.attach()
    bench.conn.execute(
        "INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 1), ('e2', 'B', 2)"
    )

    bench.conn.execute(
        "MERGE INTO public.completion AS c"
        " USING (VALUES ('e1', 10), ('e2', NULL), ('e3', 30)) AS n (id, points) ON c.id = n.id"
        " WHEN MATCHED AND n.points IS NULL THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET points = n.points"
        " WHEN NOT MATCHED THEN INSERT (id, who, points) VALUES (n.id, 'C', n.points)"
    )

    assert bench.live() == {"e1~1": 10, "e3": 30}
    assert bench.scores() == {"C": "30", "A": "10"}


def test_rows_that_a_foreign_key_deletes_take_their_events_along(bench: Bench) -> None:
    bench.conn.execute("CREATE TABLE public.course (id int PRIMARY KEY)")
    bench.conn.execute(
        "ALTER TABLE public.completion ADD course int"
        " REFERENCES public.course (id) ON DELETE CASCADE"
    )
    bench.attach()
    bench.conn.execute("INSERT INTO public.course VALUES (1), (2)")
    bench.conn.execute(
        "INSERT INTO public.completion (id, who, points, course)"
        " VALUES ('e1', 'A', 1, 1), ('e2', 'A', 2, 2)"
    )

    bench.conn.execute("DELETE FROM public.course WHERE id = 1")

    assert bench.scores() == {"A": "2"}


def test_truncate_is_refused_until_the_table_is_detached(bench: Bench) -> None:
    attached = bench.attach()
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5)")

    with pytest.raises(psycopg.Error, match="truncate_refused") as failed:
        bench.conn.execute("TRUNCATE public.completion")
    assert failed.value.sqlstate == "TR002"
    assert bench.conn.execute("SELECT count(*) FROM public.completion").fetchone() == (1,)

    bench.detach(attached.id)
    bench.conn.execute("TRUNCATE public.completion")
    assert bench.scores() == {"A": "5"}


def test_a_role_without_any_right_on_truerank_writes_the_table(
    bench: Bench, connect: Callable[..., Connection]
) -> None:
    bench.attach()
    bench.conn.execute("DROP ROLE IF EXISTS clerk")
    bench.conn.execute("CREATE ROLE clerk")
    try:
        bench.conn.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON public.completion TO clerk")
        clerk = connect()
        clerk.execute("SET ROLE clerk")

        clerk.execute("INSERT INTO public.completion VALUES ('e1', 'A', 5), ('e2', 'A', 6)")
        clerk.execute("UPDATE public.completion SET points = 7 WHERE id = 'e1'")
        clerk.execute("DELETE FROM public.completion WHERE id = 'e2'")

        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            clerk.execute("SELECT truerank.submit_score('b', 'x', 'A', 1)")
        assert bench.scores() == {"A": "7"}
    finally:
        bench.conn.execute("DROP OWNED BY clerk")
        bench.conn.execute("DROP ROLE clerk")


def test_the_audit_names_who_changed_a_row(bench: Bench) -> None:
    bench.attach()
    bench.conn.execute("INSERT INTO public.completion VALUES ('e1', 'A', 5), ('e2', 'A', 6)")

    bench.conn.execute("DELETE FROM public.completion WHERE id = 'e1'")
    with bench.conn.transaction():
        bench.conn.execute("SET LOCAL truerank.actor = 'ann of the desk'")
        bench.conn.execute("DELETE FROM public.completion WHERE id = 'e2'")

    voids = bench.conn.execute(
        "SELECT subject, actor, reason FROM truerank.audit WHERE action = 'void' ORDER BY id"
    ).fetchall()
    assert voids == [
        ("e1", bench.conn.info.user, "attached table"),
        ("e2", "ann of the desk", "attached table"),
    ]

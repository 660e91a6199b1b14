"""What an update or a delete of a row means: a correction, nothing, or a refusal."""

from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future
from random import Random
from typing import Any

import psycopg
import pytest

import truerank
from tests.attach.conftest import Bench
from truerank import TieBreak

Connection = psycopg.Connection[Any]

ROWS = (
    "INSERT INTO public.completion (id, who, points, at) VALUES"
    " ('e1', 'A', 5, '2024-06-01'), ('e2', 'A', 7, '2024-06-02'), ('e3', 'B', 3, '2024-06-03')"
)


@pytest.mark.parametrize(
    ("operator", "before", "after_update", "after_delete"),
    [
        ("sum", "12", "10", "5"),
        ("best", "7", "5", "5"),
        ("latest", "7", "5", "5"),
    ],
)
def test_standings_follow_from_the_rows_that_remain(
    bench: Bench, operator: str, before: str, after_update: str, after_delete: str
) -> None:
    bench.tr.create_board(operator, operator=operator, seasons=("all",))
    bench.attach(board=operator)
    bench.conn.execute(ROWS)
    scores = [bench.scores(operator)["A"]]

    bench.conn.execute("UPDATE public.completion SET points = 5 WHERE id = 'e2'")
    scores.append(bench.scores(operator)["A"])
    bench.conn.execute("DELETE FROM public.completion WHERE id = 'e2'")
    scores.append(bench.scores(operator)["A"])

    assert scores == [before, after_update, after_delete]
    assert bench.scores(operator)["B"] == "3"


def test_nobody_can_take_the_ids_that_corrections_of_a_row_need(bench: Bench) -> None:
    bench.attach()
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5)")
    bench.tr.submit_scores(
        "b", [truerank.ScoreEvent(event_id=f"e1~{n}", member="eve", value=0) for n in range(1, 151)]
    )

    for points in (6, 7):
        bench.conn.execute("UPDATE public.completion SET points = %s", (points,))
    corrected = bench.scores()["A"]
    bench.conn.execute("DELETE FROM public.completion")

    assert corrected == "7"
    assert "A" not in bench.scores()
    assert bench.parked() == []


def test_each_change_of_a_row_is_the_next_revision_of_its_event(bench: Bench) -> None:
    bench.attach()
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5)")

    for points in (6, 7, 8):
        bench.conn.execute("UPDATE public.completion SET points = %s", (points,))

    assert bench.events() == [
        ("e1", 5, "A", True),
        ("e1~1", 6, "A", True),
        ("e1~2", 7, "A", True),
        ("e1~3", 8, "A", False),
    ]
    assert bench.scores() == {"A": "8"}


def test_an_update_that_says_nothing_new_writes_nothing(bench: Bench) -> None:
    bench.attach()
    bench.conn.execute(ROWS)
    before = bench.conn.execute("SELECT max(version) FROM truerank.outbox").fetchone()

    bench.conn.execute("UPDATE public.completion SET points = points, state = 'archived'")

    assert len(bench.events()) == 3
    assert bench.conn.execute("SELECT max(version) FROM truerank.outbox").fetchone() == before


def test_a_row_that_changes_its_member_moves_its_points(bench: Bench) -> None:
    bench.attach()
    bench.conn.execute(ROWS)

    bench.conn.execute("UPDATE public.completion SET who = 'B' WHERE id = 'e1'")

    assert bench.scores() == {"A": "7", "B": "8"}


def test_a_row_that_changes_its_time_moves_to_the_other_season(bench: Bench) -> None:
    bench.attach()
    bench.conn.execute(ROWS)

    bench.conn.execute("UPDATE public.completion SET at = '2024-05-20' WHERE id = 'e1'")

    assert bench.scores(season="2024-05") == {"A": "5"}
    assert bench.scores(season="2024-06") == {"A": "7", "B": "3"}


def test_a_changed_event_id_voids_the_old_event_and_submits_the_new_one(bench: Bench) -> None:
    bench.attach()
    bench.conn.execute(ROWS)

    bench.conn.execute("UPDATE public.completion SET id = 'e9' WHERE id = 'e1'")

    assert bench.live() == {"e2": 7, "e3": 3, "e9": 5}


def test_ids_that_change_places_in_one_statement_are_two_corrections(bench: Bench) -> None:
    bench.conn.execute(
        "ALTER TABLE public.completion DROP CONSTRAINT completion_pkey,"
        " ADD PRIMARY KEY (id) DEFERRABLE INITIALLY DEFERRED"
    )
    bench.attach()
    bench.conn.execute(ROWS)

    bench.conn.execute(
        "UPDATE public.completion SET id = CASE id WHEN 'e1' THEN 'e3' ELSE 'e1' END"
        " WHERE id IN ('e1', 'e3')"
    )

    assert bench.live() == {"e2": 7, "e1~1": 3, "e3~1": 5}
    assert bench.scores() == {"A": "12", "B": "3"}


def test_a_row_that_comes_back_after_a_delete_is_the_next_revision(bench: Bench) -> None:
    bench.attach()
    for _ in range(3):
        bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5)")
        bench.conn.execute("DELETE FROM public.completion")

    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5)")

    assert bench.live() == {"e1~3": 5}
    assert bench.scores() == {"A": "5"}


def test_a_revision_number_that_somebody_took_is_passed_over(bench: Bench) -> None:
    bench.attach()
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5)")
    bench.tr.submit_score("b", event_id="e1~1", member="Z", value=1)

    bench.conn.execute("UPDATE public.completion SET points = 6")

    assert bench.live() == {"e1~1": 1, "e1~2": 6}


def test_a_uuid_has_the_same_revisions_however_it_is_written(bench: Bench) -> None:
    bench.attach()
    lower = "550e8400-e29b-41d4-a716-446655440000"
    bench.conn.execute("INSERT INTO public.completion VALUES (%s, 'A', 5)", (lower,))
    bench.conn.execute("UPDATE public.completion SET points = 6")

    bench.conn.execute("UPDATE public.completion SET id = upper(id), points = 7")

    assert bench.live() == {f"{lower}~2": 7}


def test_what_a_person_voided_stays_out_when_its_row_changes(bench: Bench) -> None:
    bench.attach()
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5)")
    bench.tr.void_events("b", ["e1"], actor="judge", reason="cheated")

    bench.conn.execute("UPDATE public.completion SET points = 6")

    assert bench.live() == {}
    assert [(p.event_id, p.code) for p in bench.parked()] == [("e1", "event_void")]
    bench.conn.execute("DELETE FROM public.completion")
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5)")
    assert bench.live() == {}


def test_a_condition_makes_a_row_an_event_and_takes_it_back(bench: Bench) -> None:
    bench.attach(condition="state = 'done' -- nothing else counts")
    bench.conn.execute(
        "INSERT INTO public.completion (id, who, points, state)"
        " VALUES ('e1', 'A', 5, 'open'), ('e2', 'A', 7, 'done')"
    )
    seen = [bench.live()]

    for state in ("done", "open", "done"):
        bench.conn.execute("UPDATE public.completion SET state = %s WHERE id = 'e1'", (state,))
        seen.append(bench.live())
    bench.conn.execute("UPDATE public.completion SET points = 9 WHERE id = 'e1'")
    seen.append(bench.live())

    assert seen == [
        {"e2": 7},
        {"e2": 7, "e1": 5},
        {"e2": 7},
        {"e2": 7, "e1~1": 5},
        {"e2": 7, "e1~2": 9},
    ]


def test_a_row_that_is_no_event_may_change_and_go(bench: Bench) -> None:
    bench.attach(condition="state = 'done'", on_update="refuse", on_delete="refuse")
    bench.conn.execute(
        "INSERT INTO public.completion (id, who, points, state) VALUES ('e1', 'A', 5, 'open')"
    )

    bench.conn.execute("UPDATE public.completion SET points = 6")
    bench.conn.execute("DELETE FROM public.completion")

    assert bench.events() == []


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE public.completion SET points = 6 WHERE id = 'e1'", "update_refused"),
        ("UPDATE public.completion SET id = 'e9' WHERE id = 'e1'", "update_refused"),
        ("UPDATE public.completion SET state = 'open' WHERE id = 'e1'", "update_refused"),
        ("DELETE FROM public.completion WHERE id = 'e1'", "delete_refused"),
    ],
)
def test_refuse_fails_the_statement_that_would_change_an_event(
    bench: Bench, statement: str, code: str
) -> None:
    bench.attach(condition="state = 'done'", on_update="refuse", on_delete="refuse")
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5)")

    with pytest.raises(psycopg.Error, match=code) as failed:
        bench.conn.execute(statement)

    assert (failed.value.sqlstate, failed.value.diag.message_detail) == ("TR002", code)
    row = bench.conn.execute("SELECT id, points, state FROM public.completion").fetchone()
    assert row == ("e1", 5, "done")
    assert bench.live() == {"e1": 5}


def test_ignore_leaves_events_as_they_were(bench: Bench) -> None:
    bench.attach(condition="state = 'done'", on_update="ignore", on_delete="ignore")
    bench.conn.execute(ROWS)

    bench.conn.execute("UPDATE public.completion SET points = 100 WHERE id = 'e1'")
    bench.conn.execute("UPDATE public.completion SET id = 'e9' WHERE id = 'e2'")
    bench.conn.execute("UPDATE public.completion SET state = 'open' WHERE id = 'e3'")
    bench.conn.execute("DELETE FROM public.completion")

    assert bench.events() == [("e1", 5, "A", False), ("e2", 7, "A", False), ("e3", 3, "B", False)]


@pytest.mark.parametrize("on_update", ["ignore", "refuse"])
def test_a_row_that_becomes_an_event_counts_whatever_updates_mean(
    bench: Bench, on_update: str
) -> None:
    bench.attach(condition="state = 'done'", on_update=on_update)
    bench.conn.execute(
        "INSERT INTO public.completion (id, who, points, state) VALUES ('e1', 'A', 5, 'open')"
    )

    bench.conn.execute("UPDATE public.completion SET state = 'done'")

    assert bench.live() == {"e1": 5}


def test_without_a_time_column_a_correction_keeps_the_time_of_its_event(bench: Bench) -> None:
    bench.attach(occurred_at=None)
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5)")

    bench.conn.execute("UPDATE public.completion SET points = 6")

    times = bench.conn.execute("SELECT DISTINCT occurred_at FROM truerank.event WHERE kind = 's'")
    assert len(times.fetchall()) == 1
    assert bench.live() == {"e1~1": 6}


def test_writers_of_other_rows_of_the_same_members_do_not_deadlock(
    bench: Bench, connect: Callable[..., Connection], begin: Callable[..., Future[Any]]
) -> None:
    bench.attach()
    bench.conn.execute(
        "INSERT INTO public.completion (id, who, points)"
        " SELECT w || '-' || g, 'm' || g, 1 FROM generate_series(0, 4) AS w,"
        " generate_series(0, 19) AS g"
    )

    def write(number: int) -> None:
        conn, random = connect(), Random(number)
        for _ in range(15):
            rows = random.sample(range(20), 8)
            conn.execute(
                "UPDATE public.completion SET points = points + 1, who = 'm' || %s"
                " WHERE id = ANY (%s)",
                (random.randrange(20), [f"{number}-{row}" for row in rows]),
            )

    # Rows of 4 stay, so that no standing vanishes.
    for future in [begin(write, number) for number in range(4)]:
        future.result()

    totals = bench.conn.execute("SELECT who, sum(points)::text FROM public.completion GROUP BY who")
    assert bench.scores() == dict(totals.fetchall())


def test_tie_breaks_are_part_of_what_a_row_says(bench: Bench) -> None:
    bench.tr.create_board(
        "laps", operator="best", seasons=("all",), tie_breaks=[TieBreak(name="hits")]
    )
    bench.conn.execute("ALTER TABLE public.completion ADD hits smallint NOT NULL DEFAULT 0")
    bench.attach(board="laps", ties=("hits",))
    bench.conn.execute(
        "INSERT INTO public.completion (id, who, points, hits)"
        " VALUES ('e1', 'A', 5, 1), ('e2', 'B', 5, 2)"
    )
    first = list(bench.scores("laps"))

    bench.conn.execute("UPDATE public.completion SET hits = 3 WHERE id = 'e1'")

    assert [first, list(bench.scores("laps"))] == [["B", "A"], ["A", "B"]]


@pytest.mark.parametrize("operator", ["sum", "best", "latest"])
def test_after_any_history_the_board_is_what_the_rows_say(bench: Bench, operator: str) -> None:
    bench.tr.create_board(operator, operator=operator, seasons=("all",))
    bench.attach(board=operator, condition="state = 'done'")
    random = Random(operator)

    for _ in range(60):
        with bench.conn.transaction(force_rollback=random.random() < 0.2):
            bench.conn.execute(*_statement(random))

    rows = bench.conn.execute(
        "SELECT who, points FROM public.completion WHERE state = 'done' ORDER BY at, id"
    ).fetchall()
    assert rows
    assert bench.parked() == []
    assert bench.scores(operator) == {m: str(v) for m, v in _plain(operator, rows).items()}


def _statement(random: Random) -> tuple[str, tuple[Any, ...]]:
    low = random.randrange(30)
    insert = (
        "INSERT INTO public.completion (id, who, points, at, state)"
        " SELECT 'e' || g, 'm' || g %% 5, g * 7 %% 11, timestamptz '2024-06-01'"
        "        + g * interval '1 hour', CASE g %% 4 WHEN 0 THEN 'open' ELSE 'done' END"
        " FROM generate_series(%s::int, %s::int) AS g ON CONFLICT (id) DO UPDATE"
        " SET points = completion.points + 1"
    )
    some = " WHERE substr(id, 2)::int BETWEEN %s AND %s"
    other = " SET points = points * 3 %% 17, who = 'm' || points %% 5"
    toggled = " SET state = CASE state WHEN 'open' THEN 'done' ELSE 'open' END"
    statement = random.choice(
        [
            insert,
            "UPDATE public.completion" + other + some,
            "UPDATE public.completion" + toggled + some,
            "DELETE FROM public.completion" + some,
        ]
    )
    return statement, (low, low + random.randrange(1, 6))


def _plain(operator: str, rows: list[tuple[str, int]]) -> dict[str, int]:
    values: dict[str, list[int]] = defaultdict(list)
    for member, value in rows:
        values[member].append(value)
    return {
        member: {"sum": sum(found), "best": max(found), "latest": found[-1]}[operator]
        for member, found in values.items()
    }

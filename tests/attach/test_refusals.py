"""What a board refuses is parked, mended and tried again; or it fails the statement."""

from datetime import UTC, datetime

import psycopg
import pytest

from tests.attach.conftest import Bench
from truerank.errors import BoardAttached, InvalidInput

AT = datetime(2024, 6, 15, 12, tzinfo=UTC)
MIXED = (
    "INSERT INTO public.completion (id, who, points, at) VALUES"
    " ('e1', 'A', 5, '2024-06-15 12:00Z'), ('e2', 'A', 5000, '2024-06-15 12:00Z'),"
    " ('e3', NULL, 1, '2024-06-15 12:00Z'), ('e4', 'A', NULL, '2024-06-15 12:00Z'),"
    " ('e5', 'A', 1, NULL), ('e6', 'B', 2, 'infinity')"
)


def test_what_is_refused_is_parked_and_the_rest_counts(bench: Bench) -> None:
    bench.attach()

    bench.conn.execute(MIXED)

    assert bench.live() == {"e1": 5}
    assert bench.conn.execute("SELECT count(*) FROM public.completion").fetchone() == (6,)
    assert {(p.event_id, p.member, p.value, p.occurred_at, p.code) for p in bench.parked()} == {
        ("e2", "A", "5000", "2024-06-15T12:00:00.000000Z", "value_out_of_range"),
        ("e3", None, "1", "2024-06-15T12:00:00.000000Z", "member_invalid"),
        ("e4", "A", None, "2024-06-15T12:00:00.000000Z", "value_invalid"),
        ("e5", "A", "1", None, "occurred_at_invalid"),
        ("e6", "B", "2", "infinity", "occurred_at_invalid"),
    }


def test_a_mended_row_is_taken_in_by_a_retry_that_closes_it(bench: Bench) -> None:
    bench.attach()
    bench.conn.execute(MIXED)
    parked = {p.event_id: p.id for p in bench.parked()}

    outcomes = [
        bench.retry(parked["e2"]),
        bench.retry(parked["e2"], value=50),
        bench.retry(parked["e3"], member="C"),
        bench.retry(parked["e4"], value="7"),
        bench.retry(parked["e5"], occurred_at=AT),
        bench.retry(parked["e5"]),
    ]

    assert outcomes == ["value_out_of_range", "taken", "taken", "taken", "taken", "taken"]
    assert bench.live() == {"e1": 5, "e2": 50, "e3": 1, "e4": 7, "e5": 1}
    assert bench.scores() == {"A": "63", "C": "1"}
    assert [p.event_id for p in bench.parked()] == ["e6"]
    settled = {p.event_id: (p.done, p.tries) for p in bench.parked(done=True)}
    assert settled["e2"] == ("taken", 2)
    mends = bench.conn.execute(
        "SELECT subject, detail->>'value' FROM truerank.audit WHERE action = 'mend_parked'"
        " ORDER BY id LIMIT 1"
    ).fetchone()
    assert mends == ("e2", "50")


def test_a_parked_row_that_is_put_right_in_its_table_needs_no_retry(bench: Bench) -> None:
    bench.attach()
    bench.conn.execute(MIXED)

    bench.conn.execute("UPDATE public.completion SET points = 9 WHERE id = 'e2'")
    bench.conn.execute("DELETE FROM public.completion WHERE id = 'e3'")

    assert bench.live() == {"e1": 5, "e2": 9}
    assert {p.event_id for p in bench.parked()} == {"e4", "e5", "e6"}
    done = {p.event_id: p.done for p in bench.parked(done=True) if p.done}
    assert done == {"e2": "superseded", "e3": "superseded"}


def test_a_refused_change_voids_what_was_and_is_taken_in_when_mended(bench: Bench) -> None:
    bench.attach()
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5)")

    bench.conn.execute("UPDATE public.completion SET points = 5000")

    assert bench.live() == {}
    (parked,) = bench.parked()
    assert (parked.action, parked.code) == ("correct", "value_out_of_range")
    assert bench.retry(parked.id, value=500) == "taken"
    assert bench.live() == {"e1~1": 500}


def test_an_event_of_a_final_season_keeps_counting_and_its_change_is_parked(bench: Bench) -> None:
    bench.attach()
    bench.conn.execute(
        "INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5), ('e2', 'A', 6)"
    )
    _close(bench, "final")

    bench.conn.execute("UPDATE public.completion SET points = 9 WHERE id = 'e1'")
    bench.conn.execute("DELETE FROM public.completion WHERE id = 'e2'")

    assert bench.live() == {"e1": 5, "e2": 6}
    assert [(p.event_id, p.action, p.code) for p in bench.parked()] == [
        ("e1", "correct", "season_final"),
        ("e2", "void", "season_final"),
    ]
    _close(bench, "open")
    assert [bench.retry(p.id) for p in bench.parked()] == ["taken", "taken"]
    assert bench.live() == {"e1~1": 9}


def test_a_sealed_season_takes_what_changes_in_a_row_it_counts_and_no_new_rows(
    bench: Bench,
) -> None:
    bench.attach()
    bench.conn.execute(
        "INSERT INTO public.completion (id, who, points, at) VALUES"
        " ('e1', 'A', 5, '2024-06-15'), ('e2', 'A', 6, '2024-06-15'), ('e3', 'A', 1, '2024-06-16'),"
        " ('e4', 'A', 7, '2024-05-15')"
    )
    _close(bench, "sealed")

    bench.conn.execute("UPDATE public.completion SET points = 9, who = 'B' WHERE id = 'e1'")
    bench.conn.execute("DELETE FROM public.completion WHERE id = 'e2'")
    bench.conn.execute("UPDATE public.completion SET points = 5000 WHERE id = 'e3'")
    (refused,) = bench.parked()
    outcomes = [bench.retry(refused.id), bench.retry(refused.id, value=2)]
    bench.conn.execute("UPDATE public.completion SET points = 3 WHERE id = 'e1'")

    assert bench.live() == {"e1~2": 3, "e3~1": 2, "e4": 7}
    assert bench.scores(season="2024-06") == {"A": "2", "B": "3"}
    assert (refused.code, outcomes) == ("value_out_of_range", ["value_out_of_range", "taken"])
    # What was not in it comes into it by no way.
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e5', 'A', 4)")
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e2', 'A', 6)")
    bench.conn.execute("UPDATE public.completion SET at = '2024-06-15' WHERE id = 'e4'")
    parked = {p.event_id: (p.id, p.code) for p in bench.parked()}
    assert {event_id: code for event_id, (_, code) in parked.items()} == dict.fromkeys(
        ("e2", "e4", "e5"), "season_sealed"
    )
    assert {bench.retry(parked_id) for parked_id, _ in parked.values()} == {"season_sealed"}
    assert bench.scores(season="2024-06") == {"A": "2", "B": "3"}
    assert bench.conn.execute("SELECT FROM truerank.replacement").fetchall() == []


def test_a_change_of_a_row_is_a_correction_also_when_the_grace_is_over(bench: Bench) -> None:
    bench.attach()
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5)")
    bench.conn.execute("UPDATE truerank.board SET created_at = '2024-01-01'")
    bench.tr.update_board("b", {"late_grace": "1 day"}, actor="test", reason="a test")

    bench.conn.execute("UPDATE public.completion SET points = 9")
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e2', 'A', 5)")

    assert bench.live() == {"e1~1": 9}
    assert [(p.event_id, p.code) for p in bench.parked()] == [("e2", "season_over")]


def test_a_conflict_is_parked(bench: Bench) -> None:
    bench.attach()
    bench.tr.submit_score("b", event_id="e1", member="Z", value=1)

    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5)")

    assert [(p.event_id, p.code) for p in bench.parked()] == [("e1", "event_conflict")]
    assert bench.scores() == {"Z": "1"}


def test_a_parked_row_can_be_dismissed_with_a_reason(bench: Bench) -> None:
    bench.attach()
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5000)")
    (parked,) = bench.parked()

    outcomes = [bench.dismiss(parked.id), bench.dismiss(parked.id), bench.retry(parked.id)]

    assert outcomes == ["dismissed"] * 3
    assert (bench.parked(), bench.live()) == ([], {})
    with pytest.raises(InvalidInput, match="no parked row 99"):
        bench.dismiss(99)


def test_a_row_without_a_time_column_is_taken_in_at_the_time_it_came(bench: Bench) -> None:
    bench.attach(occurred_at=None)
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5000)")
    (parked,) = bench.parked()

    bench.retry(parked.id, value=5)

    ((at,),) = bench.conn.execute("SELECT occurred_at FROM truerank.event")
    assert parked.occurred_at is not None
    assert at == datetime.fromisoformat(parked.occurred_at)


def test_raise_fails_the_statement_with_the_code_and_the_row(bench: Bench) -> None:
    bench.attach(on_refusal="raise")

    with pytest.raises(psycopg.Error) as failed:
        bench.conn.execute(MIXED)

    assert (failed.value.sqlstate, failed.value.diag.message_detail) == (
        "TR002",
        "value_out_of_range",
    )
    assert failed.value.diag.message_primary == (
        "board 'b' refuses event 'e2' of public.completion: value_out_of_range (and 4 rows more)"
    )
    assert bench.conn.execute("SELECT count(*) FROM public.completion").fetchone() == (0,)
    assert bench.events() == []


def test_a_statement_that_raised_leaves_the_rest_of_its_transaction_usable(bench: Bench) -> None:
    bench.attach(on_refusal="raise")

    with bench.conn.transaction():
        bench.conn.execute("INSERT INTO public.completion VALUES ('e1', 'A', 5)")
        with pytest.raises(psycopg.Error, match="value_out_of_range"), bench.conn.transaction():
            bench.conn.execute("INSERT INTO public.completion VALUES ('e2', 'A', 5000)")

    assert bench.live() == {"e1": 5}


def test_a_total_out_of_range_parks_the_row_that_passes_it(bench: Bench) -> None:
    bench.tr.create_board("small", seasons=("all",), total_max=10)
    bench.attach(board="small")

    bench.conn.execute(
        "INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 6), ('e2', 'A', 7),"
        " ('e3', 'A', 4)"
    )

    assert bench.live("small") == {"e1": 6, "e3": 4}
    assert [(p.event_id, p.code) for p in bench.parked()] == [("e2", "total_out_of_range")]


def test_a_board_is_not_deleted_while_a_table_feeds_it(bench: Bench) -> None:
    attachment = bench.attach()

    with pytest.raises(BoardAttached):
        bench.tr.delete_board("b", actor="test", reason="over")
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5)")

    assert bench.scores("b") == {"A": "5"}
    bench.detach(attachment.id)
    bench.tr.delete_board("b", actor="test", reason="over")
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e2', 'A', 5)")
    assert bench.parked() == []


def test_a_renamed_board_is_fed_on(bench: Bench) -> None:
    bench.attach()
    bench.tr.rename_board("b", "c", actor="test", reason="a better name")

    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5)")

    assert bench.scores("c") == {"A": "5"}


def _close(bench: Bench, state: str) -> None:
    bench.conn.execute(
        "INSERT INTO truerank.ranking (id, board_id, period, season, starts_at, ends_at, state)"
        " SELECT s.ranking, b.id, s.period, s.label, s.starts_at, s.ends_at, %s"
        " FROM truerank.board AS b"
        " CROSS JOIN LATERAL truerank.seasons_of(b, ARRAY[timestamptz '2024-06-15 12:00Z']) AS s"
        " WHERE b.key = 'b' AND s.period = 'month'"
        " ON CONFLICT (id) DO UPDATE SET state = excluded.state",
        (state,),
    )

"""Rows of an attached table whose events the board has forgotten, or is about to forget."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tests.attach.conftest import Bench

OLD = datetime.now(UTC) - timedelta(days=20)
RECENT = datetime.now(UTC) - timedelta(days=1)
BY: dict[str, Any] = {"actor": "test", "reason": "test"}
_CALLS_MAX = 200


def rows(bench: Bench, at: datetime, **points: int) -> None:
    for id_, value in points.items():
        bench.conn.execute(
            "INSERT INTO public.completion (id, who, points, at) VALUES (%s, 'A', %s, %s)",
            (id_, value, at),
        )


def forget(bench: Bench, board: str = "b") -> None:
    """Let the board forget what is older than five days."""
    bench.tr.update_board(board, {"retention": "5 days"}, **BY)
    bench.tr.prune_events(board, at_once=True)
    for _ in range(_CALLS_MAX):
        if not bench.tr.prune_events(board).pending:
            return
    raise AssertionError("there is always more to do")


def raise_horizon(bench: Bench) -> None:
    """The board says what it is going to forget, and has it still."""
    bench.tr.update_board("b", {"retention": "5 days"}, **BY)
    bench.tr.prune_events("b", at_once=True)


def age(bench: Bench) -> None:
    """Twenty days go by for events that are stored."""
    bench.conn.execute("UPDATE truerank.event SET occurred_at = occurred_at - interval '20 days'")
    bench.conn.execute("UPDATE truerank.standing SET event_at = event_at - interval '20 days'")


def open_entries(bench: Bench) -> list[tuple[str | None, str, str]]:
    return [(p.event_id, p.action, p.code) for p in bench.parked()]


@pytest.mark.parametrize("gone", [True, False])
def test_a_row_whose_event_is_forgotten_counts_once_however_it_changes(
    bench: Bench, *, gone: bool
) -> None:
    bench.attach()
    rows(bench, OLD, e1=10, e2=10, e3=10)
    (forget if gone else raise_horizon)(bench)

    bench.conn.execute("UPDATE public.completion SET points = 11, at = now() WHERE id = 'e1'")
    bench.conn.execute("DELETE FROM public.completion WHERE id = 'e2'")
    bench.conn.execute("UPDATE public.completion SET points = 12 WHERE id = 'e3'")

    assert bench.scores() == {"A": "30"}
    assert open_entries(bench) == [
        ("e1", "correct", "history_incomplete"),
        ("e2", "void", "history_incomplete"),
        ("e3", "correct", "history_incomplete"),
    ]


@pytest.mark.parametrize("dismissed", [True, False])
def test_it_counts_once_after_further_changes_and_tries(bench: Bench, *, dismissed: bool) -> None:
    bench.attach()
    rows(bench, OLD, e1=10)
    raise_horizon(bench)
    bench.conn.execute("UPDATE public.completion SET points = 11, at = now()")
    forget(bench)
    (parked,) = bench.parked()

    tried = bench.retry(parked.id)
    if dismissed:
        bench.dismiss(parked.id)
    bench.conn.execute("UPDATE public.completion SET points = 12")
    bench.conn.execute("DELETE FROM public.completion")
    rows(bench, RECENT, e1=13)

    assert tried == "history_incomplete"
    assert bench.scores() == {"A": "10"}
    assert open_entries(bench) == [("e1", "submit", "history_incomplete")]


def test_a_row_without_a_time_is_known_by_what_is_left_of_its_event(bench: Bench) -> None:
    bench.attach(occurred_at=None)
    rows(bench, OLD, e1=10, e2=10)
    age(bench)
    forget(bench)

    bench.conn.execute("UPDATE public.completion SET points = 20 WHERE id = 'e1'")
    bench.conn.execute("DELETE FROM public.completion WHERE id = 'e2'")

    assert bench.scores() == {"A": "20"}
    assert [code for _, _, code in open_entries(bench)] == ["history_incomplete"] * 2


def test_a_row_whose_revision_is_forgotten_counts_once(bench: Bench) -> None:
    bench.attach(occurred_at=None)
    rows(bench, OLD, e1=10)
    bench.conn.execute("UPDATE public.completion SET points = 20")
    age(bench)
    forget(bench)
    assert bench.scores() == {"A": "20"}

    bench.conn.execute("UPDATE public.completion SET points = 21")
    bench.conn.execute("DELETE FROM public.completion")

    assert bench.scores() == {"A": "20"}
    assert open_entries(bench) == [("e1", "void", "history_incomplete")]


def test_a_row_that_was_parked_and_taken_in_counts_once(bench: Bench) -> None:
    bench.attach(occurred_at=None)
    rows(bench, OLD, e1=5000)
    bench.retry(bench.parked()[0].id, value=50)
    age(bench)
    forget(bench)
    assert bench.scores() == {"A": "50"}

    bench.conn.execute("UPDATE public.completion SET points = 60")

    assert bench.scores() == {"A": "50"}
    assert open_entries(bench) == [("e1", "correct", "history_incomplete")]


def test_rows_whose_events_are_remembered_change_as_ever(bench: Bench) -> None:
    bench.attach()
    rows(bench, OLD, e1=1)
    rows(bench, RECENT, e2=2, e3=3, e4=4)
    bench.conn.execute("UPDATE public.completion SET points = 20 WHERE id = 'e2'")
    bench.conn.execute("DELETE FROM public.completion WHERE id = 'e4'")
    forget(bench)

    bench.conn.execute("UPDATE public.completion SET points = 200 WHERE id IN ('e1', 'e2')")
    bench.conn.execute("DELETE FROM public.completion WHERE id = 'e3'")
    rows(bench, RECENT, e4=40)

    assert bench.live() == {"e2~2": 200, "e4~1": 40}
    assert bench.scores() == {"A": "241"}
    assert open_entries(bench) == [("e1", "correct", "history_incomplete")]


def test_an_attachment_that_raises_fails_the_statement(bench: Bench) -> None:
    bench.attach(on_refusal="raise")
    rows(bench, OLD, e1=10)
    forget(bench)

    for statement in (
        "UPDATE public.completion SET points = 11, at = now()",
        "DELETE FROM public.completion",
    ):
        with pytest.raises(psycopg.Error) as failed:
            bench.conn.execute(statement)
        assert failed.value.diag.message_detail == "history_incomplete"

    assert bench.scores() == {"A": "10"}

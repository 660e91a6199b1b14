"""Voids and amendments: what remains counts, what happened stays on record."""

from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

import truerank
from truerank.errors import EventConflict, EventRefused, InvalidInput

Connection = psycopg.Connection[Any]
BY: dict[str, Any] = {"actor": "ops", "reason": "a check"}


def day(number: int) -> datetime:
    return datetime(2026, 1, number, tzinfo=UTC)


def scores(tr: truerank.Truerank, board: str, season: str = "all") -> dict[str, str]:
    page = tr.top(board, season, limit=100, source="database")
    return {entry.member: entry.score for entry in page.entries}


def submit(tr: truerank.Truerank, board: str, *events: tuple[str, str, int, int]) -> None:
    receipts = tr.submit_scores(
        board,
        [
            truerank.ScoreEvent(event_id=id_, member=member, value=value, occurred_at=day(on))
            for id_, member, value, on in events
        ],
    )
    assert {receipt.outcome for receipt in receipts} == {truerank.Outcome.APPLIED}


def test_a_voided_event_leaves_every_season_and_stays_on_record(
    tr: truerank.Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=["all", "month"])
    submit(tr, "b", ("e1", "ann", 5, 1), ("e2", "ann", 7, 2), ("e3", "bob", 6, 3))

    (receipt,) = tr.void_events("b", ["e2"], **BY)

    assert receipt.outcome is truerank.Outcome.APPLIED
    assert {now.season: now.score for now in receipt.standings} == {"all": "5", "2026-01": "5"}
    assert scores(tr, "b") == scores(tr, "b", "2026-01") == {"bob": "6", "ann": "5"}
    assert [event.state for event in tr.explain("b", "ann")] == ["counted", "void"]
    row = conn.execute("SELECT actor, action, subject, reason FROM truerank.audit").fetchall()
    assert row == [("ops", "void", "e2", "a check")]


def test_a_member_whose_last_event_is_voided_has_no_standing(
    tr: truerank.Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=["all"])
    submit(tr, "b", ("e1", "ann", 5, 1), ("e2", "bob", 6, 2))

    (receipt,) = tr.void_events("b", ["e1"], **BY)

    assert receipt.standings[0].score is None
    assert scores(tr, "b") == {"bob": "6"}
    last = conn.execute(
        "SELECT op::text, member FROM truerank.outbox ORDER BY version DESC LIMIT 1"
    ).fetchone()
    assert last == ("d", "ann")


def test_voiding_again_changes_nothing_and_answers_duplicate(
    tr: truerank.Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=["all"])
    submit(tr, "b", ("e1", "ann", 5, 1), ("e2", "ann", 6, 2))
    tr.void_events("b", ["e1"], **BY)
    before = conn.execute("SELECT count(*) FROM truerank.outbox").fetchone()

    receipts = tr.void_events("b", ["e1", "e1"], **BY)

    assert [receipt.outcome for receipt in receipts] == [truerank.Outcome.DUPLICATE] * 2
    assert conn.execute("SELECT count(*) FROM truerank.outbox").fetchone() == before
    assert conn.execute("SELECT count(*) FROM truerank.audit").fetchone() == (1,)


def test_a_voided_event_sent_again_is_a_duplicate_and_does_not_count(
    tr: truerank.Truerank,
) -> None:
    tr.create_board("b", seasons=["all"])
    submit(tr, "b", ("e1", "ann", 5, 1), ("e2", "ann", 6, 2))
    tr.void_events("b", ["e1"], **BY)

    receipt = tr.submit_score("b", event_id="e1", member="ann", value=5, occurred_at=day(1))

    assert receipt.outcome is truerank.Outcome.DUPLICATE
    assert scores(tr, "b") == {"ann": "6"}


def test_an_amended_event_counts_at_the_time_it_always_had(tr: truerank.Truerank) -> None:
    tr.create_board("b", operator="best", seasons=["all"])
    submit(tr, "b", ("e1", "ann", 5, 3), ("e2", "bob", 9, 2))

    receipt = tr.amend_event("b", "e1", 9, correction_id="c1", **BY)

    assert receipt.standings[0].score == "9"
    page = tr.top("b", source="database", numbering="ordinal")
    assert [entry.member for entry in page.entries] == ["bob", "ann"]  # bob was there first
    (event,) = tr.explain("b", "ann")
    assert (event.state, str(event.value), str(event.first_value)) == ("amended", "9", "5")


def test_the_last_of_several_amendments_counts(tr: truerank.Truerank) -> None:
    tr.create_board("b", seasons=["all"])
    submit(tr, "b", ("e1", "ann", 5, 1))

    tr.amend_event("b", "e1", 7, correction_id="c1", **BY)
    tr.amend_event("b", "e1", 6, correction_id="c2", **BY)
    repeated = tr.amend_event("b", "e1", 7, correction_id="c1", **BY)

    assert repeated.outcome is truerank.Outcome.DUPLICATE
    assert scores(tr, "b") == {"ann": "6"}
    with pytest.raises(EventConflict):
        tr.amend_event("b", "e1", 8, correction_id="c1", **BY)


@pytest.mark.parametrize(
    "name", ["c1", "550e8400-e29b-41d4-a716-446655440000"], ids=["text", "UUID"]
)
def test_an_amendment_and_an_event_may_have_one_name(tr: truerank.Truerank, name: str) -> None:
    tr.create_board("b", seasons=["all"])
    submit(tr, "b", ("e1", "ann", 5, 1))

    amended = tr.amend_event("b", "e1", 7, correction_id=name, **BY)
    submit(tr, "b", (name, "ann", 1, 2))
    again = tr.amend_event("b", "e1", 7, correction_id=name.upper(), **BY)
    late = tr.amend_event("b", name, 2, correction_id="e1", **BY)

    assert amended.outcome is late.outcome is truerank.Outcome.APPLIED
    assert (again.outcome is truerank.Outcome.DUPLICATE) == (name != "c1")
    assert scores(tr, "b") == {"ann": "9"}


@pytest.mark.parametrize(
    ("changes", "values", "voids", "expected"),
    [
        ({"total_max": 50}, (80, 20), "e1", "80"),  # nearer, and still above
        ({"total_max": 50}, (80, 20), "e0", "20"),  # within
        ({"total_max": 50}, (120, -20), "e1", None),  # farther above
        ({"total_min": 0}, (-80, -20), "e1", "-80"),  # nearer, and still below
        ({"total_min": 0}, (-120, 20), "e1", None),  # farther below
        ({"total_min": 0, "total_max": 50}, (-80, 180), "e1", None),  # out at the other end
    ],
)
def test_a_total_left_outside_by_a_new_range_may_come_nearer_and_not_get_farther(
    tr: truerank.Truerank,
    changes: dict[str, int],
    values: tuple[int, int],
    voids: str,
    expected: str | None,
) -> None:
    tr.create_board("b", seasons=["all"])
    submit(tr, "b", *((f"e{n}", "ann", value, 1 + n) for n, value in enumerate(values)))
    tr.update_board("b", changes, **BY)

    (receipt,) = tr.void_events("b", [voids], **BY)

    if expected is None:
        assert receipt.code == "total_out_of_range"
        assert scores(tr, "b") == {"ann": str(sum(values))}
    else:
        assert scores(tr, "b") == {"ann": expected}


def test_scores_bring_a_total_back_into_a_new_range_step_by_step(tr: truerank.Truerank) -> None:
    tr.create_board("b", seasons=["all"])
    submit(tr, "b", ("e1", "ann", -10, 1), ("e2", "bob", 5, 1))
    tr.update_board("b", {"total_min": 0}, **BY)

    receipts = tr.submit_scores(
        "b",
        [
            truerank.ScoreEvent(event_id=f"s{n}", member=member, value=value)
            for n, (member, value) in enumerate(
                [("ann", 4), ("ann", -1), ("ann", 0), ("ann", 7), ("ann", -2), ("bob", -6)]
            )
        ],
    )

    refused = "total_out_of_range"
    assert [receipt.code for receipt in receipts] == [None, refused, None, None, refused, refused]
    assert scores(tr, "b") == {"ann": "1", "bob": "5"}


def test_corrections_that_leave_the_range_are_refused_and_the_others_stay(
    tr: truerank.Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=["all"], total_min=0)
    submit(tr, "b", ("e1", "ann", 5, 1), ("e2", "ann", -5, 2), ("e3", "bob", 6, 3))

    receipts = tr.void_events("b", ["e1", "e3", "nope"], **BY)

    assert [(receipt.outcome.value, receipt.code) for receipt in receipts] == [
        ("refused", "total_out_of_range"),
        ("applied", None),
        ("refused", "event_unknown"),
    ]
    assert scores(tr, "b") == {"ann": "0"}
    assert conn.execute("SELECT count(*) FROM truerank.event WHERE kind = 'v'").fetchone() == (1,)
    for value, code in ((2**63 - 1, "total_out_of_range"), ("0.5", "value_too_precise")):
        if code == "total_out_of_range":
            submit(tr, "b", ("e4", "ann", 7, 4))
        with pytest.raises(EventRefused) as refused:
            tr.amend_event("b", "e1", value, correction_id=f"c-{code}", **BY)
        assert refused.value.reason == code


def test_an_event_of_a_closed_season_can_not_be_corrected(
    tr: truerank.Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=["all", "month"])
    submit(tr, "b", ("e1", "ann", 5, 1))
    season = tr.season("b", "2026-01")
    conn.execute("SELECT truerank.note_rankings(ARRAY[%s::bigint])", (season.ranking,))
    conn.execute("UPDATE truerank.ranking SET state = 'final' WHERE id = %s", (season.ranking,))

    (receipt,) = tr.void_events("b", ["e1"], **BY)

    assert (receipt.outcome.value, receipt.code) == ("refused", "season_final")
    assert scores(tr, "b") == {"ann": "5"}


def test_many_events_are_voided_in_slices_by_member_and_time(tr: truerank.Truerank) -> None:
    tr.create_board("b", seasons=["all"])
    submit(tr, "b", *((f"a{n}", "ann", 1, 1 + n) for n in range(9)), ("x", "bob", 1, 1))

    counts = []
    while count := tr.void_where("b", member="ann", since=day(3), until=day(9), limit=4, **BY):
        counts.append(count)

    assert counts == [4, 2]
    assert scores(tr, "b") == {"ann": "3", "bob": "1"}
    with pytest.raises(InvalidInput):
        tr.void_where("b", **BY)


def test_a_void_that_waits_for_a_submit_counts_what_that_committed(
    connect: Callable[..., Connection],
    tr: truerank.Truerank,
    begin: Callable[..., Future[Any]],
    until_blocked: Callable[[Connection], None],
) -> None:
    tr.create_board("b", seasons=["all"])
    submit(tr, "b", ("e1", "ann", 5, 1))
    writer, corrector = connect(autocommit=False), connect()
    truerank.submit_score(
        writer, "b", truerank.ScoreEvent(event_id="e2", member="ann", value=100, occurred_at=day(2))
    )
    voided = begin(
        corrector.execute, "SELECT * FROM truerank.void_events('b', ARRAY['e1'], 'ops', 'check')"
    )
    until_blocked(corrector)

    writer.commit()
    voided.result()

    assert scores(tr, "b") == {"ann": "100"}


def test_nobody_can_take_the_place_of_a_void_that_is_still_to_come(
    tr: truerank.Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=["all"])
    event = "550e8400-e29b-41d4-a716-446655440000"
    submit(tr, "b", (f"void {event}", "eve", 0, 1), (event, "eve", 1_000_000, 2))

    (receipt,) = tr.void_events("b", [event], **BY)

    assert receipt.outcome is truerank.Outcome.APPLIED
    assert scores(tr, "b") == {"eve": "0"}
    with pytest.raises(psycopg.errors.UniqueViolation):
        conn.execute(
            "INSERT INTO truerank.event SELECT gen_random_uuid(), board_id, kind, occurred_given,"
            " position, value, occurred_at, received_at, xid, member, event_text, ties, target,"
            " metadata, source FROM truerank.event WHERE kind = 'v'"
        )


def test_a_void_reads_no_more_than_the_events_it_is_about(
    tr: truerank.Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=["all"])
    for n in range(0, 3000, 1000):
        submit(tr, "b", *((f"e{n + k}", f"m{(n + k) % 300}", 1, 1) for k in range(1000)))
    conn.execute("ANALYZE truerank.event")  # as it is when hardly an event has a target
    before = _index_rows(conn)

    for n in range(0, 900, 300):
        conn.execute(
            "SELECT count(*) FROM truerank.void_events('b', %s, 'ops', 'a check')",
            ([f"e{n + k}" for k in range(300)],),
        )

    assert _index_rows(conn) - before < 100_000


def _index_rows(conn: Connection) -> int:
    conn.execute("SELECT pg_stat_force_next_flush()")  # of what this connection has read
    row = conn.execute(
        "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes"
        " WHERE indexrelname IN ('event_target', 'event_void')"
    ).fetchone()
    assert row is not None
    return int(row[0] or 0)

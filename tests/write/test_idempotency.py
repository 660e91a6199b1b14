"""One event id is one effect, whatever is sent again, and a refusal leaves the id unused."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import psycopg
import pytest

import truerank
from truerank import Outcome, Receipt, ScoreEvent, TieBreak, Truerank
from truerank.errors import BoardUnknown, EventConflict, EventRefused, InvalidInput

Connection = psycopg.Connection[Any]
AT = datetime(2024, 6, 15, 12, tzinfo=UTC)
IDENTIFIER = "550e8400-e29b-41d4-a716-446655440000"


@pytest.fixture
def board(tr: Truerank) -> str:
    tr.create_board("b", seasons=("all", "month"))
    return "b"


def event(event_id: str = "e1", member: str = "A", value: int | str = 5, **more: Any) -> ScoreEvent:
    return ScoreEvent(event_id=event_id, member=member, value=value, **more)


def outcomes(receipts: list[Receipt]) -> list[str]:
    return [receipt.code or receipt.outcome.value for receipt in receipts]


def counts(conn: Connection) -> tuple[int, ...] | None:
    return conn.execute(
        "SELECT (SELECT count(*) FROM truerank.event), (SELECT count(*) FROM truerank.standing),"
        " (SELECT count(*) FROM truerank.outbox)"
    ).fetchone()


def scores(conn: Connection, board: str = "b") -> dict[str, int]:
    rows = conn.execute(
        "SELECT s.member, s.score FROM truerank.standing AS s JOIN truerank.board AS b"
        " ON b.id = s.ranking >> 36 WHERE b.key = %s AND s.ranking >> 32 & 15 = 1",
        (board,),
    )
    return dict(rows.fetchall())


# IDP-1
def test_the_same_event_three_times_is_one_effect_and_the_replays_say_so(
    conn: Connection, board: str
) -> None:
    receipts = [truerank.submit_score(conn, board, event(occurred_at=AT)) for _ in range(3)]

    assert outcomes(receipts) == ["applied", "duplicate", "duplicate"]
    assert {(r.standings, r.token) for r in receipts} == {
        (receipts[0].standings, receipts[0].token)
    }
    assert counts(conn) == (1, 2, 2)


def test_a_duplicate_tells_the_standing_as_it_is_now(conn: Connection, board: str) -> None:
    first = truerank.submit_score(conn, board, event(occurred_at=AT))
    truerank.submit_score(conn, board, event("e2", occurred_at=AT))

    again = truerank.submit_score(conn, board, event(occurred_at=AT))

    assert [(s.season, s.score) for s in again.standings] == [("all", "10"), ("2024-06", "10")]
    assert again.token == first.token


# IDP-2
@pytest.mark.parametrize(
    "other",
    [
        event(value=6, occurred_at=AT),
        event(member="B", occurred_at=AT),
        event(occurred_at=AT + timedelta(microseconds=1)),
        event(occurred_at=AT - timedelta(days=60)),
        event(occurred_at=None),
        event(occurred_at=AT, metadata={"level": 1}),
    ],
    ids=["value", "member", "time", "season", "no time", "metadata"],
)
def test_the_same_id_with_other_content_is_a_conflict_without_effect(
    conn: Connection, board: str, other: ScoreEvent
) -> None:
    first = truerank.submit_score(conn, board, event(occurred_at=AT))
    before = counts(conn)

    with pytest.raises(EventConflict) as caught:
        truerank.submit_score(conn, board, other)

    assert caught.value.field == "event_id"
    assert counts(conn) == before
    assert scores(conn) == {"A": 5}
    again = truerank.submit_score(conn, board, event(occurred_at=AT))
    assert (again.outcome, again.token) == (Outcome.DUPLICATE, first.token)


def test_a_time_that_was_not_given_first_is_a_conflict_when_given(
    conn: Connection, board: str
) -> None:
    truerank.submit_score(conn, board, event())
    row = conn.execute("SELECT occurred_at FROM truerank.event").fetchone()
    assert row is not None

    receipts = truerank.submit_scores(conn, board, [event(), event(occurred_at=row[0])])

    assert outcomes(receipts) == ["duplicate", "conflict"]


# IDP-5
@pytest.mark.parametrize(
    ("first", "again"),
    [
        ({"occurred_at": AT}, {"occurred_at": AT.astimezone(timezone(timedelta(hours=9)))}),
        ({"value": 5}, {"value": "5.0"}),
        ({"value": 0}, {"value": "-0"}),
        ({"metadata": {"a": 1, "b": [2]}}, {"metadata": {"b": [2], "a": 1}}),
        ({"metadata": {"n": 1}}, {"metadata": {"n": 1.0}}),
    ],
    ids=["offset", "decimal", "minus zero", "order of names", "number"],
)
def test_another_spelling_of_the_same_content_is_a_duplicate(
    conn: Connection, board: str, first: dict[str, Any], again: dict[str, Any]
) -> None:
    receipts = [truerank.submit_score(conn, board, event(**spelt)) for spelt in (first, again)]

    assert outcomes(receipts) == ["applied", "duplicate"]


def test_other_tie_breaks_are_other_content(tr: Truerank, conn: Connection) -> None:
    tr.create_board("ties", tie_breaks=(TieBreak(name="a"), TieBreak(name="b")))

    receipts = truerank.submit_scores(
        conn, "ties", [event(ties=(1, 2)), event(ties=(1, 2)), event(ties=(2, 1))]
    )

    assert outcomes(receipts) == ["applied", "duplicate", "conflict"]


# IDP-4
def test_an_event_id_belongs_to_one_board(tr: Truerank, conn: Connection, board: str) -> None:
    tr.create_board("b2", seasons=("all",))

    receipts = [
        truerank.submit_score(conn, board, event(value=10)),
        truerank.submit_score(conn, "b2", event(value=20)),
    ]

    assert outcomes(receipts) == ["applied", "applied"]
    assert (scores(conn), scores(conn, "b2")) == ({"A": 10}, {"A": 20})


# IDP-7
def test_repeats_inside_a_batch_count_once(conn: Connection, board: str) -> None:
    batch = [event("e1", "A", 5), event("e2", "A", 3), event("e1", "A", 5), event("e3", "B", 1)]

    receipts = truerank.submit_scores(conn, board, batch)

    assert outcomes(receipts) == ["applied", "applied", "duplicate", "applied"]
    assert [receipt.standings[0].score for receipt in receipts] == ["8", "8", "8", "1"]
    assert scores(conn) == {"A": 8, "B": 1}


# IDP-7
def test_of_two_contents_of_one_id_in_a_batch_the_first_is_applied(
    conn: Connection, board: str
) -> None:
    receipts = truerank.submit_scores(
        conn, board, [event("e4", value=1), event("e4", value=2), event("e4", value=1)]
    )

    assert outcomes(receipts) == ["applied", "conflict", "duplicate"]
    assert scores(conn) == {"A": 1}


# IDP-8
def test_a_refused_event_leaves_its_id_unused(tr: Truerank, conn: Connection) -> None:
    tr.create_board("b", value_max=100)

    with pytest.raises(InvalidInput):
        truerank.submit_score(conn, "b", event(value="abc"))
    with pytest.raises(BoardUnknown):
        truerank.submit_score(conn, "unknown", event())
    with pytest.raises(EventRefused) as caught:
        truerank.submit_score(conn, "b", event(value=101))
    applied = truerank.submit_score(conn, "b", event())

    assert (caught.value.reason, caught.value.field) == ("value_out_of_range", "value")
    assert applied.outcome is Outcome.APPLIED
    assert scores(conn) == {"A": 5}


# IDP-8
def test_an_id_refused_first_is_applied_later_in_the_same_batch(
    tr: Truerank, conn: Connection
) -> None:
    tr.create_board("b", value_max=100)

    receipts = truerank.submit_scores(conn, "b", [event(value=101), event(value=7), event(value=7)])

    assert outcomes(receipts) == ["value_out_of_range", "applied", "duplicate"]


def test_what_was_accepted_stays_a_duplicate_when_the_rules_refuse_it_today(
    conn: Connection, board: str
) -> None:
    truerank.submit_score(conn, board, event())
    conn.execute("UPDATE truerank.board SET accepting = false")

    receipts = truerank.submit_scores(conn, board, [event(), event(value=6), event("e2")])

    assert outcomes(receipts) == ["duplicate", "conflict", "board_closed"]


# IDP-9
@pytest.mark.parametrize(
    ("spelling", "outcome"),
    [
        (IDENTIFIER.upper(), "duplicate"),
        (IDENTIFIER.title(), "duplicate"),
        (f"{{{IDENTIFIER}}}", "applied"),
        (IDENTIFIER.replace("-", ""), "applied"),
        (f"{IDENTIFIER} ", "applied"),
        (f"urn:uuid:{IDENTIFIER}", "applied"),
        (IDENTIFIER.replace("-", "_"), "applied"),
        (IDENTIFIER.replace("5", "\N{FULLWIDTH DIGIT FIVE}"), "applied"),
        ("550e8400e-29b-41d4-a716-446655440000", "applied"),
    ],
)
def test_only_the_canonical_form_in_either_case_is_the_same_uuid(
    conn: Connection, board: str, spelling: str, outcome: str
) -> None:
    truerank.submit_score(conn, board, event(IDENTIFIER))

    receipts = truerank.submit_scores(conn, board, [event(spelling), event(spelling)])

    assert outcomes(receipts) == [outcome, "duplicate"]


def test_texts_that_differ_in_case_are_different_ids(conn: Connection, board: str) -> None:
    receipts = truerank.submit_scores(conn, board, [event("Order-1"), event("order-1")])

    assert outcomes(receipts) == ["applied", "applied"]


def test_the_uuid_made_from_a_text_does_not_pass_for_that_text(
    conn: Connection, board: str
) -> None:
    truerank.submit_score(conn, board, event("order 1"))
    row = conn.execute("SELECT event_uuid, event_text FROM truerank.event").fetchone()
    assert row is not None
    uuid, text = row

    (receipt,) = truerank.submit_scores(conn, board, [event(str(uuid))])

    assert (UUID(str(uuid)).version, text) == (8, "order 1")
    assert receipt.outcome is Outcome.CONFLICT
    assert scores(conn) == {"A": 5}

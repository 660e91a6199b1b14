"""Scores are exact 64-bit integers, or decimals kept as such; what does not fit is refused."""

from decimal import Decimal
from itertools import permutations
from typing import Any

import psycopg
import pytest

import truerank
from truerank import Receipt, ScoreEvent, TieBreak, Truerank
from truerank.command.submit import submit_parameters
from truerank.errors import InvalidInput

Connection = psycopg.Connection[Any]
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
STANDINGS = (
    "SELECT ranking, member, score, sort_key, event_at, event_position FROM truerank.standing"
    " ORDER BY ranking, member"
)


@pytest.fixture
def board(tr: Truerank) -> str:
    tr.create_board("b", seasons=("all", "week"))
    return "b"


def send(conn: Connection, board: str, *scores: tuple[str, Any, str]) -> list[Receipt]:
    """Submit (event id, value, member) in one batch."""
    events = [ScoreEvent(event_id=e, value=value, member=member) for e, value, member in scores]
    return truerank.submit_scores(conn, board, events)


def codes(receipts: list[Receipt]) -> list[str]:
    return [receipt.code or receipt.outcome.value for receipt in receipts]


def listed(tr: Truerank, board: str) -> list[tuple[str, int, str]]:
    page = tr.top(board, limit=100, source="database")
    return [(entry.member, entry.rank, entry.score) for entry in page.entries]


# NUM-1
def test_neighbours_above_two_to_the_53_keep_every_digit(
    tr: Truerank, conn: Connection, board: str
) -> None:
    low = 9007199254740991

    receipts = send(conn, board, ("1", low, "A"), ("2", low + 1, "B"), ("3", low + 2, "C"))

    assert [r.standings[0].score for r in receipts] == [str(low), str(low + 1), str(low + 2)]
    assert listed(tr, board) == [
        ("C", 1, "9007199254740993"),
        ("B", 2, "9007199254740992"),
        ("A", 3, "9007199254740991"),
    ]


# NUM-3
@pytest.mark.parametrize("sign", [1, -1])
def test_a_total_beyond_64_bits_is_refused_and_its_id_is_free(
    conn: Connection, board: str, sign: int
) -> None:
    near, rest = (9223372036854775800, 7) if sign > 0 else (-9223372036854775800, -8)
    send(conn, board, ("e0", near, "A"))

    refused = send(conn, board, ("e1", 100 * sign, "A"))
    applied = send(conn, board, ("e1", rest, "A"))

    assert codes(refused) == ["total_out_of_range"]
    assert codes(applied) == ["applied"]
    assert [s.score for s in applied[0].standings] == [str(near + rest)] * 2
    assert near + rest in {INT64_MIN, INT64_MAX}


# NUM-4
def test_numbers_around_32_bits_are_plain_numbers(
    tr: Truerank, conn: Connection, board: str
) -> None:
    send(conn, board, ("1", 2147483647, "A"), ("2", 2147483648, "B"), ("3", 4294967295, "C"))

    send(conn, board, ("4", 1, "A"))

    assert sorted(listed(tr, board)) == [
        ("A", 2, "2147483648"), ("B", 2, "2147483648"), ("C", 1, "4294967295"),
    ]  # fmt: skip


# NUM-5
@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), -float("inf"), 1e400, 1.5, 5.0, True, "", " ", "abc", None, [],
     {}, b"1", "NaN", "Infinity", "-inf", "0x10", "1_000", "١٢", " 5", "5\n", "1,5", "+-1",
     Decimal("NaN"), Decimal("Infinity"), "1e400",
     pytest.param(10**5000, id="int of 5001 digits"), pytest.param("9" * 5000, id="5000 digits")],
)  # fmt: skip
def test_what_is_no_exact_number_is_refused_before_anything_is_sent(value: Any) -> None:
    event = ScoreEvent(event_id="e1", member="A", value=value)

    with pytest.raises(InvalidInput) as caught:
        submit_parameters("b", [event], None)

    assert caught.value.field == "value"
    assert len(str(caught.value)) < 300


# NUM-5
@pytest.mark.parametrize("value", [0, "-0", "0.0", "-0.000", Decimal("-0")])
def test_minus_zero_is_zero(tr: Truerank, conn: Connection, board: str, value: Any) -> None:
    send(conn, board, ("1", value, "A"), ("2", 0, "B"))

    assert [(rank, score) for _, rank, score in listed(tr, board)] == [(1, "0"), (1, "0")]


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (INT64_MAX, "applied"),
        (INT64_MIN, "applied"),
        (INT64_MAX + 1, "value_out_of_range"),
        (INT64_MIN - 1, "value_out_of_range"),
        (10**30, "value_out_of_range"),
        ("9223372036854775807", "applied"),
        ("9223372036854775807.5", "value_too_precise"),
        ("1.5", "value_too_precise"),
        ("5.0", "applied"),
        ("1e3", "applied"),
        ("10", "applied"),
        ("1e30", "value_out_of_range"),
    ],
)
def test_a_value_is_taken_exactly_or_refused_by_code(
    conn: Connection, board: str, value: Any, code: str
) -> None:
    receipts = send(conn, board, ("e1", value, "A"))

    assert codes(receipts) == [code]
    if code == "applied":
        assert receipts[0].standings[0].score == str(int(Decimal(value)))


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400"])
def test_numbers_beyond_all_numbers_are_refused_in_sql(
    conn: Connection, board: str, value: str
) -> None:
    rows = conn.execute(
        "SELECT code FROM truerank.submit_score(%s, 'e1', 'A', %s::numeric)", (board, value)
    ).fetchall()

    assert rows == [("value_out_of_range",)]


def test_the_range_of_one_value_is_the_boards(tr: Truerank, conn: Connection) -> None:
    tr.create_board("b", value_min=-5, value_max=10)

    receipts = send(conn, "b", *((str(v), v, "A") for v in (-6, -5, 10, 11)))

    assert codes(receipts) == ["value_out_of_range", "applied", "applied", "value_out_of_range"]


def test_totals_that_leave_the_boards_range_are_refused_and_the_rest_is_applied(
    tr: Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=("all",), total_max=10)
    values = [1, 1, 1, 7, 1, 1, 1, 1, 7, 1, 1, 1]

    receipts = send(conn, "b", *((f"e{n}", value, "AB"[n // 6]) for n, value in enumerate(values)))
    again = send(conn, "b", ("x", 1, "C"), ("e4", 1, "C"), ("x", 1, "C"), ("e5", 1, "A"))

    applied, refused = "applied", "total_out_of_range"
    assert codes(receipts) == [applied] * 4 + [refused] * 2 + [applied] * 4 + [refused] * 2
    assert codes(again) == [applied, applied, "duplicate", refused]
    assert sorted(listed(tr, "b")) == [("A", 1, "10"), ("B", 1, "10"), ("C", 3, "2")]


@pytest.mark.parametrize("order", list(permutations([100, -100, 1])))
def test_the_order_inside_a_batch_decides_what_fits(
    tr: Truerank, conn: Connection, board: str, order: tuple[int, ...]
) -> None:
    send(conn, board, ("e0", INT64_MAX - 1, "A"))
    total, expected = INT64_MAX - 1, []
    for value in order:
        fits = total + value <= INT64_MAX
        total += value if fits else 0
        expected.append("applied" if fits else "total_out_of_range")

    receipts = send(conn, board, *((str(value), value, "A") for value in order))

    assert codes(receipts) == expected
    assert listed(tr, board) == [("A", 1, str(total))]


@pytest.mark.parametrize("column", [0, 1])
def test_totals_of_tie_breaks_count_in_the_order_of_the_batch_too(
    tr: Truerank, conn: Connection, column: int
) -> None:
    tr.create_board("b", seasons=("all",), tie_breaks=(TieBreak(name="x"), TieBreak(name="y")))

    def event(event_id: str, tie: int) -> ScoreEvent:
        ties = (tie, 0) if column == 0 else (0, tie)
        return ScoreEvent(event_id=event_id, member="A", value=1, ties=ties)

    truerank.submit_scores(conn, "b", [event("e0", INT64_MAX)])
    receipts = truerank.submit_scores(conn, "b", [event("e1", 1), event("e2", -1)])

    assert codes(receipts) == ["total_out_of_range", "applied"]


# NUM-8
def test_a_floor_refuses_what_would_go_below_it_and_replays_the_same(
    tr: Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=("all",), total_min=0)
    send(conn, "b", ("e0", 5, "A"))

    receipts = send(conn, "b", ("e1", -10, "A"), ("e2", 3, "A"))
    live = conn.execute(STANDINGS).fetchall()
    conn.execute(
        "SELECT truerank.recompute_standings(b, ARRAY[truerank.season_of_ranking(b, s.ranking)],"
        " ARRAY[s.ranking], ARRAY[s.member])"
        " FROM truerank.standing AS s JOIN truerank.board AS b ON b.id = s.ranking >> 36"
    )

    assert codes(receipts) == ["total_out_of_range", "applied"]
    assert listed(tr, "b") == [("A", 1, "8")]
    assert conn.execute(STANDINGS).fetchall() == live


def test_a_board_whose_totals_begin_above_zero_takes_what_reaches_that(
    tr: Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=("all",), total_min=5)

    receipts = send(conn, "b", ("e1", 4, "A"), ("e2", 7, "A"), ("e3", -3, "A"), ("e4", -2, "A"))

    refused = "total_out_of_range"
    assert codes(receipts) == [refused, "applied", refused, "applied"]
    assert listed(tr, "b") == [("A", 1, "5")]


@pytest.mark.parametrize("operator", ["sum", "best", "latest"])
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_the_extremes_stand_at_the_ends_of_every_board(
    tr: Truerank, conn: Connection, operator: str, order: str
) -> None:
    tr.create_board("b", seasons=("all",), operator=operator, order=order)
    values = [0, INT64_MAX, -1, INT64_MIN, 1, INT64_MIN + 1, INT64_MAX - 1]

    send(conn, "b", *((f"e{n}", value, f"m{n}") for n, value in enumerate(values)))

    shown = [int(score) for _, _, score in listed(tr, "b")]
    assert shown == sorted(values, reverse=order == "desc")


# NUM-6
def test_decimals_add_up_as_decimals(tr: Truerank, conn: Connection) -> None:
    tr.create_board("b", seasons=("all",), decimals=3)

    receipts = send(
        conn, "b", ("1", "0.1", "A"), ("2", "0.2", "A"), ("3", "0.3", "B"), ("4", "2.857", "C"),
        ("5", "2.8569999999999998", "D"), ("6", 3, "E"), ("7", "-0.0005", "E"),
    )  # fmt: skip

    assert codes(receipts)[4:] == ["value_too_precise", "applied", "value_too_precise"]
    assert sorted(listed(tr, "b")) == [
        ("A", 3, "0.300"), ("B", 3, "0.300"), ("C", 2, "2.857"), ("E", 1, "3.000"),
    ]  # fmt: skip
    assert receipts[0].standings[0].score == "0.300"


def test_eighteen_decimals_are_exact_to_the_last(tr: Truerank, conn: Connection) -> None:
    tr.create_board("b", seasons=("all",), decimals=18)

    receipts = send(
        conn, "b", ("1", "9.223372036854775807", "A"), ("2", "0.000000000000000001", "B"),
        ("3", "-9.223372036854775808", "C"), ("4", 10, "D"), ("5", "1e-18", "B"),
    )  # fmt: skip

    assert codes(receipts) == ["applied"] * 3 + ["value_out_of_range", "applied"]
    assert listed(tr, "b") == [
        ("A", 1, "9.223372036854775807"),
        ("B", 2, "0.000000000000000002"),
        ("C", 3, "-9.223372036854775808"),
    ]
    assert receipts[4].standings[0].score == "0.000000000000000002"


@pytest.mark.parametrize("ties", [(1.5,), (True,), ("1",), (2**63,), (None,)])
def test_a_tie_break_that_is_no_64_bit_integer_is_refused(ties: Any) -> None:
    event = ScoreEvent(event_id="e", member="A", value=1, ties=ties)

    with pytest.raises(InvalidInput) as caught:
        submit_parameters("b", [event], None)

    assert caught.value.field == "ties"


def test_a_tie_break_outside_its_range_is_refused(tr: Truerank, conn: Connection) -> None:
    tr.create_board("b", tie_breaks=(TieBreak(name="x", min=0, max=9), TieBreak(name="y")))

    receipts = truerank.submit_scores(
        conn,
        "b",
        [ScoreEvent(event_id=f"e{t}", member="A", value=1, ties=(t, 99)) for t in (-1, 0, 9, 10)],
    )

    assert codes(receipts) == ["tie_out_of_range", "applied", "applied", "tie_out_of_range"]

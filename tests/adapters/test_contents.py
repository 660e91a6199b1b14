"""What a score command says arrives the same through every library."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest

import truerank
from tests.adapters.libraries import Library
from truerank.errors import InvalidInput
from truerank.model import Operator, Order, Outcome, ScoreEvent, TieBreak

Connection = psycopg.Connection[Any]

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
ODD_TEXTS = ["NULL", "", '{"a,b"}', "\\", "it's 100%s (:p1) $1", "a\nb\t", "é\u0301 😀", " x "]
LISTED = [text for text in ODD_TEXTS if text]
ODD_METADATA = [{}, [], 0, False, "", "null", {"é": [None, 1.5, {"x": "\\u0000"}]}, '"', 10**300]
TIMES = [
    datetime(2026, 3, 29, 2, 30, 0, 123456, tzinfo=ZoneInfo("Europe/Berlin")),
    datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2026, 1, 1, 5, 45, tzinfo=timezone(timedelta(hours=5, minutes=45))),
]


def event(event_id: str, value: Any = 1, **fields: Any) -> ScoreEvent:
    return ScoreEvent(**{"event_id": event_id, "member": "ann", "value": value, **fields})


def stored(observer: Connection, board: str, column: str) -> list[Any]:
    """One column of the board's events, in the order they were given."""
    rows = observer.execute(
        f"""SELECT {column} FROM truerank.event AS e JOIN truerank.board AS b ON b.id = e.board_id
            WHERE b.key = %s ORDER BY position""",
        (board,),
    )
    return [value for (value,) in rows]


async def test_what_one_library_sends_is_a_duplicate_of_what_psycopg_sent(
    library: Library, make_board: Callable[..., str], observer: Connection
) -> None:
    board = make_board(decimals=3, tie_breaks=(TieBreak(name="time", order=Order.ASC),))
    events = [
        event("plain", 7, ties=(1,)),
        event("decimal", "12.345", ties=(INT64_MIN,), metadata={"level": 3, "é": [None, 0.1]}),
        event("timed", Decimal("-0.5"), ties=(INT64_MAX,), occurred_at=TIMES[0]),
        *(event(f"odd {text}", 1, ties=(0,), member=text) for text in LISTED),
    ]
    with observer.transaction():
        first = truerank.submit_scores(observer, board, events)

    async with library.begin("read committed") as caller:
        second = await caller.submit_many(board, events)

    assert {receipt.outcome for receipt in first} == {Outcome.APPLIED}
    assert {receipt.outcome for receipt in second} == {Outcome.DUPLICATE}
    assert [r.token for r in second] == [r.token for r in first]


async def test_scores_are_exact_to_both_ends_of_64_bits(
    library: Library, make_board: Callable[..., str]
) -> None:
    board = make_board(operator=Operator.LATEST)

    async with library.begin("read committed") as caller:
        low = await caller.submit(board, event("low", INT64_MIN))
        high = await caller.submit(board, event("high", INT64_MAX))
        beyond = await caller.submit_many(board, [event("over", 2**63), event("under", -(2**64))])

    assert [low.standings[0].score, high.standings[0].score] == [str(INT64_MIN), str(INT64_MAX)]
    assert [receipt.code for receipt in beyond] == ["value_out_of_range"] * 2


async def test_decimals_come_out_as_they_went_in(
    library: Library, make_board: Callable[..., str]
) -> None:
    board = make_board(decimals=3)
    shown_of = {
        "12.345": "12.345",
        "1e2": "100.000",
        Decimal("-0.001"): "-0.001",
        "9223372036854775.807": "9223372036854775.807",
        "-9223372036854775.808": "-9223372036854775.808",
        3: "3.000",
    }
    events = [event(f"e{n}", value, member=f"m{n}") for n, value in enumerate(shown_of)]

    async with library.begin("read committed") as caller:
        receipts = await caller.submit_many(board, events)

    assert [r.standings[0].score for r in receipts] == list(shown_of.values())


async def test_ties_decide_between_equal_scores_in_the_order_of_the_board(
    library: Library, make_board: Callable[..., str], observer: Connection
) -> None:
    board = make_board(
        operator=Operator.BEST,
        tie_breaks=(TieBreak(name="kills"), TieBreak(name="seconds", order=Order.ASC)),
    )

    async with library.begin("read committed") as caller:
        await caller.submit_many(
            board,
            [
                event("e1", 5, ties=(1, INT64_MAX)),
                event("e2", 5, ties=(2, 30)),
                event("e3", 5, ties=(2, 20)),
                event("e4", 5, ties=(2, 25)),
            ],
        )

    assert stored(observer, board, "ties") == [[1, INT64_MAX], [2, 30], [2, 20], [2, 25]]
    row = observer.execute(
        """SELECT s.ties FROM truerank.standing AS s
           JOIN truerank.board AS b ON b.id = s.ranking >> 36 WHERE b.key = %s""",
        (board,),
    ).fetchone()
    assert row == ([2, 20],)


async def test_texts_arrive_to_the_letter(
    library: Library, board: str, observer: Connection
) -> None:
    events = [event(text, member=text[::-1]) for text in LISTED]

    async with library.begin("read committed") as caller:
        receipts = await caller.submit_many(board, events)

    assert [receipt.event_id for receipt in receipts] == LISTED
    assert stored(observer, board, "event_text") == LISTED
    assert stored(observer, board, "member") == [text[::-1] for text in LISTED]


async def test_metadata_arrives_as_the_same_json(
    library: Library, board: str, observer: Connection
) -> None:
    given = [*ODD_METADATA, *ODD_TEXTS, None]

    async with library.begin("read committed") as caller:
        await caller.submit_many(
            board, [event(str(n), metadata=metadata) for n, metadata in enumerate(given)]
        )

    found = stored(observer, board, "metadata::text")
    assert [text if text is None else json.loads(text) for text in found] == given


async def test_times_arrive_as_the_same_instant_and_none_as_none_given(
    library: Library, board: str, observer: Connection
) -> None:
    given = [*TIMES, None]

    async with library.begin("read committed") as caller:
        await caller.submit_many(
            board, [event(str(n), occurred_at=at) for n, at in enumerate(given)]
        )

    assert stored(observer, board, "occurred_given") == [True] * len(TIMES) + [False]
    instants = stored(observer, board, "occurred_at")
    assert instants[:-1] == [at.astimezone(UTC) for at in TIMES]


async def test_a_batch_answers_for_each_event_in_order_and_one_bad_event_sinks_no_other(
    library: Library, make_board: Callable[..., str], observer: Connection
) -> None:
    board = make_board(seasons=("all", "year"), value_max=1000)
    at = datetime(2024, 5, 1, tzinfo=UTC)
    async with library.begin("read committed") as caller:
        await caller.submit(board, event("before", 1, occurred_at=at))

    async with library.begin("read committed") as caller:
        receipts = await caller.submit_many(
            board,
            [
                event("new", 10, occurred_at=at),
                event("before", 1, occurred_at=at),
                event("too much", 1001, occurred_at=at),
                event("before", 2, occurred_at=at),
                event("new", 10, occurred_at=at),
                event("other", 100, occurred_at=at, member="bob"),
            ],
        )
        nothing = await caller.submit_many(board, [])

    assert [(r.event_id, r.outcome.value, r.code) for r in receipts] == [
        ("new", "applied", None),
        ("before", "duplicate", None),
        ("too much", "refused", "value_out_of_range"),
        ("before", "conflict", None),
        ("new", "duplicate", None),
        ("other", "applied", None),
    ]
    assert {s.season: s.score for s in receipts[0].standings} == {"all": "11", "2024": "11"}
    assert {s.season: s.score for s in receipts[5].standings} == {"all": "100", "2024": "100"}
    assert nothing == []
    assert stored(observer, board, "value") == [1, 10, 100]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"event_id": "a\0"}, "event_id"),
        ({"member": "\ud800"}, "member"),
        ({"value": 0.5}, "value"),
        ({"value": "NaN"}, "value"),
        ({"occurred_at": datetime(2026, 1, 1)}, "occurred_at"),  # noqa: DTZ001 - that is the mistake
        ({"ties": (2**63,)}, "ties"),
        ({"metadata": float("nan")}, "metadata"),
        ({"metadata": {"a": "\0"}}, "metadata"),
        ({"metadata": ["\\\0"]}, "metadata"),
        ({"metadata": "\udc00"}, "metadata"),
        ({"metadata": {1, 2}}, "metadata"),
    ],
    ids=str,
)
def test_a_malformed_event_is_told_before_anything_is_sent(
    observer: Connection, board: str, fields: dict[str, Any], field: str
) -> None:
    with observer.transaction():
        with pytest.raises(InvalidInput) as caught:
            truerank.submit_score(observer, board, event(**{"event_id": "e1", **fields}))
        status = observer.info.transaction_status

    assert caught.value.field == field
    assert status == psycopg.pq.TransactionStatus.INTRANS

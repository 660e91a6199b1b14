"""Scores belong to the caller's transaction, whatever library it is in."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from tests.adapters.libraries import Library, sqlstate
from truerank.errors import BoardUnknown, EventConflict, EventRefused, InvalidInput
from truerank.model import Outcome, ScoreEvent

Connection = psycopg.Connection[Any]


class Undo(Exception):
    """Ends a block with a rollback."""


def event(event_id: str = "e1", value: int | str = 5, **fields: Any) -> ScoreEvent:
    return ScoreEvent(event_id=event_id, member="ann", value=value, **fields)


def purchase(board: str, id_: str = "p1") -> str:
    return f"INSERT INTO purchase VALUES ('{board}', '{board} {id_}')"


def committed(observer: Connection, board: str) -> tuple[int, int, str | None]:
    """How many purchases, how many events, and the score, as everybody sees them."""
    row = observer.execute(
        """SELECT (SELECT count(*) FROM purchase WHERE board = b.key),
                  (SELECT count(*) FROM truerank.event WHERE board_id = b.id),
                  (SELECT score::text FROM truerank.standing
                   WHERE ranking >> 36 = b.id AND member = 'ann')
           FROM truerank.board AS b WHERE b.key = %s""",
        (board,),
    ).fetchone()
    assert row
    purchases, events, score = row
    return purchases, events, score


async def test_the_score_commits_together_with_the_row_of_the_caller(
    library: Library, isolation: str, board: str, observer: Connection
) -> None:
    async with library.begin(isolation) as caller:
        await caller.execute(purchase(board))
        receipt = await caller.submit(board, event())
        before = committed(observer, board)

    assert receipt.outcome is Outcome.APPLIED
    assert before == (0, 0, None)
    assert committed(observer, board) == (1, 1, "5")


async def test_the_score_rolls_back_together_with_the_row_of_the_caller(
    library: Library, isolation: str, board: str, observer: Connection
) -> None:
    with suppress(Undo):
        async with library.begin(isolation) as caller:
            await caller.execute(purchase(board))
            await caller.submit(board, event())
            raise Undo

    assert committed(observer, board) == (0, 0, None)


async def test_a_rollback_frees_the_event_id_for_another_content(
    library: Library, board: str, observer: Connection
) -> None:
    with suppress(Undo):
        async with library.begin("read committed") as caller:
            await caller.submit(board, event(value=5))
            raise Undo

    async with library.begin("read committed") as caller:
        receipt = await caller.submit(board, event(value=7))

    assert receipt.outcome is Outcome.APPLIED
    assert committed(observer, board) == (0, 1, "7")


async def test_a_savepoint_that_rolls_back_takes_its_score_along_and_nothing_else(
    library: Library, isolation: str, board: str, observer: Connection
) -> None:
    async with library.begin(isolation) as caller:
        await caller.submit(board, event("outer", 1))
        with suppress(Undo):
            async with caller.savepoint():
                await caller.execute(purchase(board))
                await caller.submit(board, event("inner", 10))
                raise Undo
        again = await caller.submit(board, event("inner", 100))

    assert again.outcome is Outcome.APPLIED
    assert committed(observer, board) == (0, 2, "101")


async def test_a_savepoint_that_is_released_keeps_its_score(
    library: Library, board: str, observer: Connection
) -> None:
    async with library.begin("read committed") as caller, caller.savepoint():
        await caller.execute(purchase(board))
        await caller.submit(board, event())

    assert committed(observer, board) == (1, 1, "5")


async def test_after_a_caught_conflict_the_transaction_goes_on_and_commits(
    library: Library, isolation: str, board: str, observer: Connection
) -> None:
    async with library.begin(isolation) as caller:
        await caller.submit(board, event("e1", 5))
        with pytest.raises(EventConflict) as caught:
            await caller.submit(board, event("e1", 6))
        await caller.execute(purchase(board))
        await caller.submit(board, event("e2", 7))

    assert caught.value.field == "event_id"
    assert committed(observer, board) == (1, 2, "12")


async def test_after_caught_refusals_the_transaction_goes_on_and_commits(
    library: Library, isolation: str, board: str, observer: Connection
) -> None:
    refusals: list[tuple[ScoreEvent, str | None]] = [
        (event(value=1001), None),
        (event(value="0.5"), None),
        (event(""), None),
        (event(metadata="x" * 2000), None),
        (event(), "2020"),
    ]
    told = []

    async with library.begin(isolation) as caller:
        for refused, season in refusals:
            with pytest.raises(EventRefused) as caught:
                await caller.submit(board, refused, expected_season=season)
            told.append((caught.value.reason, caught.value.field))
        await caller.execute(purchase(board))
        await caller.submit(board, event(value=7))

    assert told == [
        ("value_out_of_range", "value"),
        ("value_too_precise", "value"),
        ("event_id_invalid", "event_id"),
        ("metadata_too_large", "metadata"),
        ("season_unexpected", "occurred_at"),
    ]
    assert committed(observer, board) == (1, 1, "7")


async def test_after_an_unknown_board_and_malformed_events_the_transaction_goes_on(
    library: Library, board: str, observer: Connection
) -> None:
    async with library.begin("read committed") as caller:
        with pytest.raises(BoardUnknown):
            await caller.submit("no such board", event())
        with pytest.raises(InvalidInput):
            await caller.submit(board, event(metadata={"a": "\0"}))
        with pytest.raises(InvalidInput):
            await caller.submit(board, event(), expected_season="a\0")
        await caller.execute(purchase(board))
        await caller.submit(board, event())

    assert committed(observer, board) == (1, 1, "5")


async def test_a_repeat_answers_with_the_standing_of_now_and_the_first_token(
    library: Library, board: str, observer: Connection
) -> None:
    async with library.begin("read committed") as caller:
        first = await caller.submit(board, event("e1", 5))
    async with library.begin("read committed") as caller:
        await caller.submit(board, event("e2", 7))

    async with library.begin("read committed") as caller:
        repeat = await caller.submit(board, event("e1", 5))

    assert repeat.outcome is Outcome.DUPLICATE
    assert [standing.score for standing in repeat.standings] == ["12"]
    assert repeat.token == first.token is not None
    assert committed(observer, board) == (0, 2, "12")


async def test_a_concurrent_repeat_waits_and_never_has_a_second_effect(
    library: Library,
    isolation: str,
    board: str,
    observer: Connection,
    until_blocked: Callable[[], Awaitable[None]],
) -> None:
    async def second() -> Outcome:
        async with library.begin(isolation) as caller:
            await caller.execute(purchase(board))
            return (await caller.submit(board, event())).outcome

    async with library.begin(isolation) as caller:
        await caller.submit(board, event())
        waiting = asyncio.create_task(second())
        await until_blocked()
    (ended,) = await asyncio.gather(waiting, return_exceptions=True)

    if isolation == "read committed":
        assert ended is Outcome.DUPLICATE
        assert committed(observer, board) == (1, 1, "5")
    else:
        assert isinstance(ended, library.serialization_failure)
        assert sqlstate(ended) == "40001"
        assert committed(observer, board) == (0, 1, "5")
        assert await second() is Outcome.DUPLICATE
        assert committed(observer, board) == (1, 1, "5")


async def test_where_the_first_rolls_back_the_waiting_repeat_applies(
    library: Library,
    isolation: str,
    board: str,
    observer: Connection,
    until_blocked: Callable[[], Awaitable[None]],
) -> None:
    async def second() -> Outcome:
        async with library.begin(isolation) as caller:
            return (await caller.submit(board, event())).outcome

    waiting = None
    with suppress(Undo):
        async with library.begin(isolation) as caller:
            await caller.submit(board, event())
            waiting = asyncio.create_task(second())
            await until_blocked()
            raise Undo
    assert waiting

    assert await waiting is Outcome.APPLIED
    assert committed(observer, board) == (0, 1, "5")

"""The projection, the database and a slow computation in Python give the same answers."""

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import count, product
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.conformance.conftest import World
from tests.conformance.oracle import Oracle
from truerank.model import Numbering, Order, Page, ScoreEvent, Source, TieBreak

START = datetime(2026, 3, 1, tzinfo=UTC)
INT64 = 2**63
ABSENT = "absent \N{CROSS MARK}"
_names = count(1)

NAMES = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1, max_size=6
)
SCORES = st.one_of(
    st.integers(-2, 2),
    st.sampled_from([-INT64, 1 - INT64, -(2**53) - 1, -(2**53), 2**53, 2**53 + 1, INT64 - 1]),
    st.integers(-INT64, INT64 - 1),
)
DIRECTIONS = st.sampled_from(Order)


@st.composite
def boards(draw: st.DrawFn) -> dict[str, Any]:
    """A board and one event for each of its members."""
    decimals = draw(st.sampled_from([0, 0, 3, 18]))
    ties = tuple(
        TieBreak(name=f"t{i}", order=order)
        for i, order in enumerate(draw(st.lists(DIRECTIONS, max_size=2)))
    )
    members = draw(st.lists(NAMES, max_size=12, unique=True))
    events = [
        {
            "member": member,
            "value": scaled(draw(SCORES), decimals),
            "occurred_at": START + timedelta(microseconds=draw(st.integers(0, 2))),
            "ties": tuple(draw(SCORES) for _ in ties),
        }
        for member in members
    ]
    return {"order": draw(DIRECTIONS), "decimals": decimals, "ties": ties, "events": events}


def scaled(number: int, decimals: int) -> str:
    """An integer of the board's smallest unit as text in the board's unit."""
    if not decimals:
        return str(number)
    digits = f"{abs(number):0{decimals + 1}}"
    return f"{'-' if number < 0 else ''}{digits[:-decimals]}.{digits[-decimals:]}"


def make(
    world: World, *, order: Order, decimals: int, ties: Iterable[TieBreak], events: list[Any]
) -> Oracle:
    """Create the board, submit the events, project them."""
    name = f"board {next(_names)}"
    ties = tuple(ties)
    world.client.create_board(
        name,
        operator="best",
        order=order,
        decimals=decimals,
        tie_breaks=ties,
        seasons=["all", "month"],
    )
    made = [ScoreEvent(event_id=f"e{i}", **event) for i, event in enumerate(events)]
    if made:
        receipts = world.submit(name, made)
        assert {receipt.outcome for receipt in receipts} == {"applied"}
    return Oracle(name, "all", order, decimals, ties, made)


def check_all(world: World, oracle: Oracle, members: list[str], limits: list[int]) -> None:
    """Ask everything of both sources, in both numberings."""
    client, board = world.client, oracle.board
    total = len(oracle.events)
    for source, numbering in product(Source, Numbering):
        how: Any = {"source": source, "numbering": numbering}

        def check(page: Page, asked: Source = source, **expected: Any) -> None:
            assert page.freshness.source is asked
            oracle.check(page, **expected)

        for offset, limit in product(
            {0, 1, total // 2, max(total - 1, 0), total, total + 5}, limits
        ):
            check(
                client.top(board, offset=offset, limit=limit, **how),
                entries=oracle.entries(offset, limit, numbering),
            )
        check(
            client.places(board, [*members, *members[:1]], **how),
            places=tuple(oracle.place(m, numbering) for m in (*members, *members[:1])),
        )
        for member, limit in product(members, limits):
            around = oracle.around(member, limit, numbering)
            place = oracle.place(member, numbering)
            check(client.place(board, member, **how), places=(place,))
            check(client.around(board, member, limit=limit, **how), places=(place,), around=around)
        member, limit = members[-1], limits[0]
        check(
            client.top(board, limit=limit, member=member, around_limit=3, **how),
            entries=oracle.entries(0, limit, numbering),
            places=(oracle.place(member, numbering),),
            around=oracle.around(member, 3, numbering),
        )


@given(board=boards())
@example(board={"order": Order.DESC, "decimals": 0, "ties": (), "events": []})
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_answer_is_the_same_wherever_it_comes_from(
    either: World, board: dict[str, Any]
) -> None:
    oracle = make(either, **board)
    rows = [member for member, _, _ in oracle.rows()]

    check_all(either, oracle, [*rows[:1], *rows[len(rows) // 2 :][:1], *rows[-1:], ABSENT], [1, 4])

    assert either.differences() == []


def test_large_boards_give_the_same_answers(either: World) -> None:
    random_ = random.Random(7)
    events = [
        {
            "member": f"m{i:04}",
            "value": int(random_.paretovariate(0.7)) - 3,
            "occurred_at": START + timedelta(seconds=random_.randrange(500)),
        }
        for i in range(3000)
    ]
    oracle = make(either, order=Order.DESC, decimals=0, ties=(), events=events)
    assert either.differences() == []
    ordered = oracle.rows()
    # The slow computation is too slow for thousands of ranks: compare the order it gives.
    firsts: dict[Any, int] = {}
    for i, (_, _, equals) in enumerate(ordered):
        firsts.setdefault(equals, i + 1)

    for offset, limit in [(0, 1000), (990, 20), (2500, 1000)]:
        page = either.top(oracle.board, offset=offset, limit=limit)
        assert [(e.member, e.score, e.rank) for e in page.entries] == [
            (member, score, firsts[equals])
            for member, score, equals in ordered[offset : offset + limit]
        ]
    asked = [member for member, _, _ in random_.sample(ordered, 300)]
    at = {member: i for i, (member, _, _) in enumerate(ordered)}
    assert [place.rank for place in either.places(oracle.board, asked).places] == [
        firsts[ordered[at[member]][2]] for member in asked
    ]
    for member in asked[:20]:
        assert len(either.around(oracle.board, member, limit=11).around) == 11


def test_seasons_of_one_board_are_rankings_of_their_own(either: World) -> None:
    events = [
        {"member": f"m{i}", "value": i, "occurred_at": START + timedelta(days=20 * (i % 2))}
        for i in range(1, 5)
    ]
    events[0]["occurred_at"] = START - timedelta(days=1)
    oracle = make(either, order=Order.ASC, decimals=0, ties=(), events=events)

    february = either.top(oracle.board, "2026-02")
    march = either.top(oracle.board, "2026-03")

    assert [(e.rank, e.member) for e in february.entries] == [(1, "m1")]
    assert [(e.rank, e.member) for e in march.entries] == [(1, "m2"), (2, "m3"), (3, "m4")]
    assert (february.season, february.total, march.total) == ("2026-02", 1, 3)

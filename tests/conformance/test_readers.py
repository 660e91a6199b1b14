"""The projection, the database and a slow computation in Python give the same answers."""

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count, pairwise, product
from types import MappingProxyType
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.conformance.conftest import World
from tests.conformance.oracle import Oracle
from truerank.model import (
    Entry,
    MemberState,
    Numbering,
    Order,
    Page,
    ScoreEvent,
    Source,
    TieBreak,
)

START = datetime(2026, 3, 1, tzinfo=UTC)
INT64 = 2**63
NOBODY: Mapping[str, MemberState] = MappingProxyType({})
ABSENT = "absent \N{CROSS MARK}"
ALONE = {"member": "m", "value": "-0.500", "occurred_at": START, "ties": ()}
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
STATES = st.sampled_from([*[MemberState.ACTIVE] * 4, MemberState.HIDDEN, MemberState.BANNED])


@st.composite
def boards(draw: st.DrawFn) -> dict[str, Any]:
    """A board, one event for each of its members, and who of them takes no place."""
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
    states = {member: draw(STATES) for member in members}
    return {
        "order": draw(DIRECTIONS),
        "decimals": decimals,
        "ties": ties,
        "events": events,
        "withheld": {m: state for m, state in states.items() if state is not MemberState.ACTIVE},
        "dense": draw(st.booleans()),
    }


def scaled(number: int, decimals: int) -> str:
    """An integer of the board's smallest unit as text in the board's unit."""
    if not decimals:
        return str(number)
    digits = f"{abs(number):0{decimals + 1}}"
    return f"{'-' if number < 0 else ''}{digits[:-decimals]}.{digits[-decimals:]}"


def make(
    world: World,
    *,
    order: Order,
    decimals: int,
    ties: Iterable[TieBreak],
    events: list[Any],
    withheld: Mapping[str, MemberState] = NOBODY,
    dense: bool = False,
) -> Oracle:
    """Create the board, submit the events, hide and ban, project it all."""
    name = f"board {next(_names)}"
    ties = tuple(ties)
    world.client.create_board(
        name,
        operator="best",
        order=order,
        decimals=decimals,
        tie_breaks=ties,
        seasons=["all", "month"],
        dense=dense,
    )
    made = [ScoreEvent(event_id=f"e{i}", **event) for i, event in enumerate(events)]
    if made:
        receipts = world.submit(name, made)
        assert {receipt.outcome for receipt in receipts} == {"applied"}
    withhold(world, name, withheld)
    seen = [event for event in made if event.member not in withheld]
    return Oracle(name, "all", order, decimals, ties, seen, withheld)


def withhold(world: World, board: str, withheld: Mapping[str, MemberState]) -> None:
    """Hide and ban members on one board, and project it."""
    for member, state in withheld.items():
        banned = state is MemberState.BANNED
        say = world.client.ban_member if banned else world.client.hide_member
        say(member, actor="op", reason="test", board=board, timeout_s=0.0)
    world.project()


def asked(dense: bool) -> list[tuple[Source, Numbering]]:  # noqa: FBT001
    """Every source with every numbering that it gives."""
    return [
        (source, numbering)
        for source, numbering in product(Source, Numbering)
        if dense or source is Source.DATABASE or numbering is not Numbering.DENSE
    ]


def check_all(
    world: World, oracle: Oracle, members: list[str], limits: list[int], *, dense: bool
) -> None:
    """Ask everything of both sources, in all numberings."""
    client, board = world.client, oracle.board
    total = len(oracle.events)
    for source, numbering in asked(dense):
        how: Any = {"source": source, "numbering": numbering}

        def check(page: Page, one: Source = source, **expected: Any) -> None:
            assert page.freshness.source is one
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
        entries, around = oracle.entries(0, limit, numbering), oracle.around(member, 3, numbering)
        check(
            client.top(board, limit=limit, member=member, around_limit=3, **how),
            entries=entries,
            places=(oracle.place(member, numbering),),
            around=tuple(entry for entry in around if entry not in entries),
        )


def check_scores(world: World, oracle: Oracle, scores: list[str], *, dense: bool) -> None:
    """Ask about scores and ranks, and page by cursors, of both sources."""
    client, board = world.client, oracle.board
    order = [member for member, _, _ in oracle.rows()]
    for source, numbering in asked(dense):
        how: Any = {"source": source, "numbering": numbering}
        pages, page = [], client.top(board, limit=3, **how)
        while page.next is not None:
            pages.append(page)
            page = client.top(board, limit=3, cursor=page.next, **how)
        back = page
        for earlier in reversed(pages):
            assert back.previous is not None
            back = client.top(board, limit=3, cursor=back.previous, **how)
            assert back.entries == earlier.entries
        assert back.previous is None
        shown = [entry for one in (*pages, page) for entry in one.entries]
        assert tuple(shown) == oracle.entries(0, len(order), numbering)

        for rank in {1, 2, len(order) or 1, len(order) + 3}:
            page = client.around(board, rank=rank, limit=3, **how)
            first = max(0, min(rank - 2, len(order) - 3))
            assert page.around == oracle.entries(first, 3, numbering)

        for low, high in product([None, *scores[:2]], [None, *scores[-2:]]):
            if low is not None and high is not None and Decimal(low) > Decimal(high):
                continue  # refused
            page = client.between(board, low, high, limit=1000, **how)
            within = oracle.between(*(s if s is None else Decimal(s) for s in (low, high)))
            assert [entry.member for entry in page.entries] == within
            assert (page.matching, page.next, page.previous) == (len(within), None, None)
            half = client.between(board, low, high, limit=1, offset=1, **how)
            assert [entry.member for entry in half.entries] == within[1:2]
            assert (half.next is None, half.previous is None) == (len(within) < 3, len(within) < 2)
            assert half.entries == page.entries[1:2]
    for source, numbering in asked(dense):
        _check_friends(world, oracle, order, source, numbering)
        _check_counts(world, oracle, scores, source, numbering)


def _check_friends(
    world: World, oracle: Oracle, order: list[str], source: Source, numbering: Numbering
) -> None:
    client, board = world.client, oracle.board
    how: Any = {"among": True, "source": source, "numbering": numbering}
    withheld = [*oracle.withheld, ABSENT]
    page = client.places(board, [*order, *withheld], percentile=True, **how)
    assert page.places[len(order) :] == tuple(oracle.place(m, numbering) for m in withheld)
    for place in page.places[: len(order)]:
        assert place.rank_among == place.rank
        assert place.percentile == oracle.beside(place.member)[0]
    friends = client.places(board, [*oracle.withheld, *order[1::2]], **how)
    ranks = [place.rank for place in friends.places if place.rank is not None]
    among = sorted(set(ranks)) if numbering is Numbering.DENSE else ranks
    assert [place.rank_among for place in friends.places] == [
        *[None] * len(oracle.withheld),
        *(1 + among.index(rank) for rank in ranks),
    ]


def _check_counts(
    world: World, oracle: Oracle, scores: list[str], source: Source, numbering: Numbering
) -> None:
    client, board = world.client, oracle.board
    how: Any = {"source": source, "numbering": numbering}
    counts = client.counts(board, scores, **how).counts
    signs = [-1 if oracle.order is Order.DESC else 1]
    signs += [-1 if tie.order is Order.DESC else 1 for tie in oracle.tie_breaks]
    whole: tuple[Decimal, ...]
    for score, told in zip(scores, counts, strict=True):
        whole = (signs[0] * Decimal(score),)
        assert (told.better, told.equal) == oracle.counts(whole)
        assert told.rank == oracle.reached(whole, numbering)
    for event in [] if not oracle.tie_breaks else oracle.events[:2]:
        (told,) = client.counts(board, [event.value], ties=event.ties, **how).counts
        given = (Decimal(event.value), *map(Decimal, event.ties))
        whole = tuple(sign * number for sign, number in zip(signs, given, strict=True))
        assert (told.better, told.equal) == oracle.counts(whole)
        assert told.rank == oracle.reached(whole, numbering)
    edges = sorted({Decimal(score) for score in scores})
    spread = client.histogram(board, [f"{edge:f}" for edge in edges], source=source)
    members = [Decimal(score) for _, score, _ in oracle.rows()]
    assert [bucket.members for bucket in spread.buckets] == [
        sum((low is None or score >= low) and (high is None or score < high) for score in members)
        for low, high in pairwise([None, *edges, None])
    ]


@given(board=boards())
@example(board={"order": Order.DESC, "decimals": 0, "ties": (), "events": [], "dense": True})
@example(board={"order": Order.ASC, "decimals": 3, "ties": (), "events": [ALONE], "dense": True})
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_answer_is_the_same_wherever_it_comes_from(
    either: World, board: dict[str, Any]
) -> None:
    oracle = make(either, **board)
    rows = [member for member, _, _ in oracle.rows()]

    members = [*rows[:1], *rows[len(rows) // 2 :][:1], *rows[-1:], *oracle.withheld][:5]
    dense = board["dense"]
    check_all(either, oracle, [*members, ABSENT], [1, 4], dense=dense)
    scores = {score for _, score, _ in oracle.rows()} | {scaled(1, board["decimals"])}
    check_scores(either, oracle, sorted(scores, key=Decimal), dense=dense)

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


def test_a_hundred_thousand_members_give_the_same_answers(either: World) -> None:
    board, total = "many", 100_000
    either.client.create_board(board, operator="best", seasons=["all"])
    ((applied,),) = either.pipeline.conn.execute(
        """SELECT count(*) FILTER (WHERE r.outcome = 'applied')
           FROM (SELECT array_agg('e' || i), array_agg('m' || i),
                        array_agg((i * 7919::bigint %% 1000 - 500)::numeric)
                 FROM generate_series(1, %s) AS i) AS s (ids, members, scores),
                truerank.submit_scores(%s, s.ids, s.members, s.scores) AS r""",
        (total, board),
    ).fetchall()
    assert applied == total
    either.project()
    # Best first, and of equals the one whose event was stored first.
    order = sorted(range(1, total + 1), key=lambda i: (-(i * 7919 % 1000 - 500), i))
    gone = {f"m{i}": MemberState.HIDDEN for i in (order[0], order[150], order[50_000], order[-1])}
    withhold(either, board, gone)
    rows = [(f"m{i}", i * 7919 % 1000 - 500) for i in order if f"m{i}" not in gone]
    firsts: dict[int, int] = {}
    for at, (_, score) in enumerate(rows):
        firsts.setdefault(score, at + 1)
    expected = [(firsts[score], member, str(score)) for member, score in rows]

    def told(entries: Iterable[Entry]) -> list[tuple[int, str, str]]:
        return [(entry.rank, entry.member, entry.score) for entry in entries]

    for at in (149, 49_990):
        page = either.top(board, offset=at, limit=20)
        assert (page.total, told(page.entries)) == (len(rows), expected[at : at + 20])
    page = either.top(board, offset=len(rows) - 10, limit=20)
    assert told(page.entries) == expected[-10:]
    back = either.top(board, limit=20, cursor=page.previous)
    assert told(back.entries) == expected[-30:-10]
    middle = len(rows) // 2
    around = either.around(board, rows[middle][0], limit=11).around
    assert told(around) == expected[middle - 5 : middle + 6]
    # Deep places take PostgreSQL a walk each: a few of them.
    asked = random.Random(3).sample(range(len(rows)), 5)
    places = either.places(board, [rows[at][0] for at in asked], percentile=True).places
    assert [(p.rank, p.member, p.score) for p in places] == [expected[at] for at in asked]
    equals = Counter(score for _, score in rows)
    assert [p.percentile for p in places] == [
        100 * (len(rows) + 1 - firsts[score] - equals[score]) / (len(rows) - 1)
        for score in (rows[at][1] for at in asked)
    ]
    for source in Source:
        page = either.client.between(board, 7, 9, limit=1000, source=source)
        within = [row for row in expected if 7 <= int(row[2]) <= 9]
        assert (told(page.entries), page.matching) == (within, len(within))
        window = either.client.around(board, rank=middle, limit=11, source=source)
        assert told(window.around) == expected[middle - 6 : middle + 5]
        values = [499, 0, -500, 500]
        counts = either.client.counts(board, values, source=source).counts
        assert [(count.better, count.equal) for count in counts] == [
            (sum(score > value for _, score in rows), equals[value]) for value in values
        ]
        spread = either.client.histogram(board, [-250, 0, 499], source=source)
        assert [bucket.members for bucket in spread.buckets] == [
            sum(low <= score < high for _, score in rows)
            for low, high in pairwise([-1000, -250, 0, 499, 1000])
        ]

"""Situations that have broken other leaderboards; every question is put to both sources."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.conformance.conftest import World
from truerank.errors import BoardUnknown
from truerank.model import Page, ScoreEvent

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def ranks(page: Page) -> list[tuple[int, str]]:
    return [(entry.rank, entry.member) for entry in page.entries]


def table(page: Page) -> list[tuple[int, str, str]]:
    return [(entry.rank, entry.member, entry.score) for entry in page.entries]


def board(world: World, key: str = "b", **settings: Any) -> None:
    world.client.create_board(key, **{"seasons": ["all"], **settings})


def delete(world: World, key: str) -> None:
    """Delete a board with everything that it has left."""
    world.client.delete_board(key, actor="test", reason="test")
    while world.client.purge_boards():
        world.project()


def test_no_score_means_no_rank(either: World) -> None:
    """RNK-1."""
    board(either)
    either.scores("b", ("A", 10), ("B", 5))

    page = either.top("b", member="Z")

    assert (page.total, page.around) == (2, ())
    (place,) = page.places
    assert (place.member, place.rank, place.score) == ("Z", None, None)


def test_where_low_is_good_absent_is_not_zero(either: World) -> None:
    """RNK-2."""
    board(either, order="asc", operator="best")
    either.scores("b", ("A", 61000))
    assert table(either.top("b")) == [(1, "A", "61000")]
    assert either.place("b", "B").places[0].rank is None

    either.scores("b", ("B", 0))

    assert table(either.top("b")) == [(1, "B", "0"), (2, "A", "61000")]


def test_negative_totals_stay_in_the_table(either: World) -> None:
    """RNK-3."""
    board(either)
    either.scores("b", ("A", 10), ("B", 0), ("C", -5), ("D", -20))
    assert ranks(either.top("b")) == [(1, "A"), (2, "B"), (3, "C"), (4, "D")]

    either.scores("b", ("D", 30))

    assert ranks(either.top("b")) == [(1, "A"), (1, "D"), (3, "B"), (4, "C")]


def test_equals_share_their_rank_in_both_directions(either: World) -> None:
    """RNK-5."""
    scores = [(f"m{i}", value) for i, value in enumerate((40, 31, 25, 25, 25, 19, 12, 3))]
    for order in ("desc", "asc"):
        board(either, order, order=order)
        either.scores(order, *scores)

    desc, asc = (either.top(order) for order in ("desc", "asc"))

    assert [entry.rank for entry in desc.entries] == [1, 2, 3, 3, 3, 6, 7, 8]
    assert [(entry.score, entry.rank) for entry in asc.entries] == [
        *(("3", 1), ("12", 2), ("19", 3)),
        *(("25", 4), ("25", 4), ("25", 4), ("31", 7), ("40", 8)),
    ]


def test_to_repeat_ones_own_best_changes_nothing(either: World) -> None:
    """RNK-6."""
    board(either, order="asc", operator="best")
    either.scores("b", ("A", 1000), ("B", 1200), ("C", 1300))
    query = "SELECT array_agg(s ORDER BY member) FROM truerank.standing AS s"
    before = either.pipeline.conn.execute(query).fetchall()
    ticks = either.pipeline.meta(0), either.pipeline.meta(1)

    either.scores("b", ("B", 1200))

    assert ranks(either.top("b")) == [(1, "A"), (2, "B"), (3, "C")]
    assert either.pipeline.conn.execute(query).fetchall() == before
    assert (either.pipeline.meta(0), either.pipeline.meta(1)) == ticks, "nothing was projected"


def test_numbering_is_the_readers_choice_on_the_same_data(either: World) -> None:
    """TIE-1."""
    board(either, dense=True)
    either.scores("b", ("a", 101), ("b", 100), ("c", 100), ("d", 99))
    before = either.pipeline.rankings()
    metas = either.pipeline.meta(0), either.pipeline.meta(1)

    shared = either.top("b", numbering="competition")
    dense = either.top("b", numbering="dense")
    unique = either.top("b", numbering="ordinal")

    assert ranks(shared) == [(1, "a"), (2, "b"), (2, "c"), (4, "d")]
    assert ranks(dense) == [(1, "a"), (2, "b"), (2, "c"), (3, "d")]
    assert ranks(unique) == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    for numbering, rank in (("competition", 4), ("dense", 3), ("ordinal", 4)):
        assert either.place("b", "d", numbering=numbering).places[0].rank == rank
    assert either.pipeline.rankings() == before
    assert (either.pipeline.meta(0), either.pipeline.meta(1)) == metas, "nothing was projected"


def test_a_tie_that_spans_pages_keeps_its_rank(either: World) -> None:
    """TIE-3."""
    board(either)
    either.scores("b", *((f"m{i}", 100) for i in range(250)), ("last", 99))

    pages = [either.top("b", limit=100, offset=o) for o in (0, 100, 200)]

    assert [e.rank for page in pages for e in page.entries] == [1] * 250 + [251]
    places = either.places("b", ["m0", "m249", "last"]).places
    assert [place.rank for place in places] == [1, 1, 251]


def test_a_tie_on_the_edge_of_a_page(either: World) -> None:
    """TIE-4."""
    board(either)
    scores = [1000 - i for i in range(48)] + [500] * 7 + [400, 399]
    either.scores("b", *((f"m{i}", score) for i, score in enumerate(scores)))

    first = either.top("b", limit=50)
    second = either.top("b", limit=50, offset=50)

    assert [e.rank for e in first.entries] == [*range(1, 49), 49, 49]
    assert [e.rank for e in second.entries] == [49] * 5 + [56, 57]


def test_paging_through_ties_loses_nobody(either: World) -> None:
    """TIE-5."""
    board(either)
    either.scores("b", *((f"m{i}", 0 if 90 <= i < 130 else 200 - i) for i in range(250)))

    passes = [
        [
            entry.member
            for offset in range(0, 250, 50)
            for entry in either.top("b", limit=50, offset=offset).entries
        ]
        for _ in range(3)
    ]

    assert len(set(passes[0])) == 250
    assert passes[0] == passes[1] == passes[2]


def test_a_tie_for_the_third_place(either: World) -> None:
    """TIE-7."""
    board(either)
    either.scores("b", ("a", 100), ("b", 90), ("e", 80), ("d", 80), ("c", 80))

    top = either.top("b", limit=3)
    podium = [row for row in ranks(either.top("b")) if row[0] <= 3]

    assert ranks(top) == [(1, "a"), (2, "b"), (3, "e")], "who got there first"
    assert podium == [(1, "a"), (2, "b"), (3, "e"), (3, "d"), (3, "c")]


@pytest.mark.parametrize(
    ("members", "member", "limit", "expected"),
    [
        (10, "m2", 4, [1, 2, 3, 4]),  # RED-1
        (10, "m1", 4, [1, 2, 3, 4]),
        (10, "m10", 4, [7, 8, 9, 10]),
        (3, "m2", 7, [1, 2, 3]),  # RED-2
        (3, "m3", 100, [1, 2, 3]),
        (1, "m1", 5, [1]),
    ],
)
def test_around_me_at_both_ends(
    either: World, members: int, member: str, limit: int, expected: list[int]
) -> None:
    board(either)
    either.scores("b", *((f"m{i}", 100 - i) for i in range(1, members + 1)))

    page = either.around("b", member, limit=limit)

    assert [entry.rank for entry in page.around] == expected
    assert page.places[0].member == member


def test_nothing_there(either: World) -> None:
    """RED-10. A season of a calendar exists before anything happens in it."""
    board(either, seasons=["all", "month"])

    for season in ("all", None, "2099-01"):
        page = either.top("b", season, member="Z")
        assert (page.total, page.entries, page.around) == (0, (), ())
        assert page.places[0].rank is None
        assert either.around("b", "Z", season).around == ()
    for ask in (either.client.top, either.client.season):
        with pytest.raises(BoardUnknown):
            ask("no such board")


def test_neighbours_above_53_bits_are_told_apart(either: World) -> None:
    """NUM-1, NUM-2 and NUM-7: every digit, as text."""
    board(either)
    numbers = [
        *(9223372036854775807, 9007199254740993, 9007199254740992, 9007199254740991),
        *(1824192940134586, 100000000000000, 99999999999999, -9223372036854775808),
    ]
    either.scores("b", *((f"m{i}", number) for i, number in reversed(list(enumerate(numbers)))))

    page = either.top("b")

    assert table(page) == [(i + 1, f"m{i}", str(number)) for i, number in enumerate(numbers)]
    assert either.differences() == []


@pytest.mark.parametrize("decimals", [1, 3, 18])
def test_decimals_are_shown_with_all_their_places(either: World, decimals: int) -> None:
    board(either, decimals=decimals)
    either.scores("b", ("A", "0.1"), ("B", "-0.5"), ("C", 0))
    either.scores("b", ("A", "0.2"), ("D", "0.3"))

    zeros = "0" * (decimals - 1)
    assert table(either.top("b")) == [
        (1, "A", f"0.3{zeros}"),
        (1, "D", f"0.3{zeros}"),
        (3, "C", f"0.0{zeros}"),
        (4, "B", f"-0.5{zeros}"),
    ]


def test_separators_in_ids_do_not_make_them_collide(either: World) -> None:
    """IDS-3."""
    for key in ("a", "a:b"):
        board(either, key)
    either.scores("a", ("b:c", 1))
    either.scores("a:b", ("c", 2))

    assert table(either.top("a")) == [(1, "b:c", "1")]
    assert table(either.top("a:b")) == [(1, "c", "2")]

    delete(either, "a")
    assert table(either.top("a:b")) == [(1, "c", "2")]


def test_wildcards_in_keys_are_letters(either: World) -> None:
    """IDS-4: a copy of one group goes, then a board, and nothing of the others."""
    keys = ["s*", "s1", "s?", "s[12]"]
    for i, key in enumerate(keys):
        board(either, key)
        either.scores(key, (f"player of {key}", i))
    group = either.client.board("s*").group
    generation = either.pipeline.generation(group)
    assert generation is not None
    either.pipeline.redis.delete(either.pipeline.keys(group).generation(generation).meta)

    either.scores("s*", ("another", -1))

    assert either.pipeline.generation(group) != generation
    assert either.differences() == []
    delete(either, "s*")
    assert either.differences() == []
    for i, key in enumerate(keys[1:], start=1):
        assert table(either.top(key, limit=1)) == [(1, f"player of {key}", str(i))]


def test_ids_are_exact(either: World) -> None:
    """IDS-5 and IDS-8."""
    board(either)
    ids = ["007", "7", "7.0", "1e3", "0x10", "-0", "null", "true", "None", "NaN", "Ann", "ann"]
    ids += [
        " ann",
        "e\N{COMBINING ACUTE ACCENT}",
        "é",
        "\N{ZERO WIDTH SPACE}",
        "'",
        '"',
        "\\",
        "%s",
    ]
    either.scores("b", *((name, i) for i, name in enumerate(ids)))

    page = either.places("b", [*ids, "ANN", "07"])

    assert page.total == len(ids)
    assert [place.score for place in page.places] == [*map(str, range(len(ids))), None, None]
    top = either.top("b", limit=100)
    assert [entry.member for entry in top.entries] == ids[::-1]


@pytest.mark.parametrize("unit", ["a", "é", "\N{GRINNING FACE}"], ids=["ascii", "latin", "emoji"])
def test_ids_of_200_characters_are_read_whole(either: World, unit: str) -> None:
    """IDS-7: characters, not bytes."""
    board(either)
    longest, sibling, shorter = unit * 200, unit * 199 + "z", unit * 199
    either.scores("b", (longest, 3), (sibling, 2), (shorter, 1))
    too_long = ScoreEvent(event_id="too long", member=unit * 201, value=4)
    assert either.submit("b", [too_long])[0].outcome == "refused"

    page = either.top("b", member=sibling)

    assert ranks(page) == [(1, longest), (2, sibling), (3, shorter)]
    assert page.places[0].rank == 2


def test_who_reached_the_score_first_is_ahead_whoever_wrote_first(either: World) -> None:
    board(either)
    either.submit(
        "b",
        [
            ScoreEvent(event_id="1", member="late", value=5, occurred_at=NOON + timedelta(days=1)),
            ScoreEvent(event_id="2", member="early", value=5, occurred_at=NOON),
            ScoreEvent(event_id="3", member="same", value=5, occurred_at=NOON),
        ],
    )

    page = either.top("b", numbering="ordinal")

    assert ranks(page) == [(1, "early"), (2, "same"), (3, "late")]

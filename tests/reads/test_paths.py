"""Situations that have broken other leaderboards, on every way on which a board is read."""

from functools import partial

import pytest

from tests.members.conftest import BY
from tests.projection.pipeline import wait_until
from tests.reads.command_line import Row
from tests.reads.paths import Paths, board, rows
from truerank.model import Numbering, Place

ABSENT = Place(member="Z", rank=None, score=None)


def members(table: list[Row]) -> list[tuple[int, str]]:
    return [(rank, member) for rank, member, _ in table]


def test_no_score_means_no_rank(paths: Paths) -> None:
    """RNK-1."""
    board(paths)
    paths.world.scores("b", ("A", 10), ("B", 5))

    page = paths.top("b", member="Z")

    assert paths.table("b") == [(1, "A", "10"), (2, "B", "5")]
    assert (page.total, page.places, page.around) == (2, (ABSENT,), ())
    assert paths.place("b", "Z", percentile=True) == ABSENT
    assert paths.around("b", "Z") == []
    assert paths.places("b", ["Z", "A"], among=True)[0] == ABSENT


def test_where_low_is_good_absent_is_not_zero(paths: Paths) -> None:
    """RNK-2."""
    board(paths, order="asc", operator="best")
    board(paths, "positive", order="asc", operator="best", value_min=1)
    paths.world.scores("b", ("A", 61000))
    assert paths.table("b") == [(1, "A", "61000")]
    assert paths.compared("b", "B") is None

    paths.world.scores("b", ("B", 0))
    (refused,) = paths.world.scores("positive", ("B", 0))

    assert paths.table("b") == [(1, "B", "0"), (2, "A", "61000")]
    assert refused.outcome == "refused"
    assert paths.table("positive") == []


def test_negative_totals_stay_in_the_table(paths: Paths) -> None:
    """RNK-3."""
    board(paths)
    paths.world.scores("b", ("A", 10), ("B", 0), ("C", -5), ("D", -20))
    assert members(paths.table("b")) == [(1, "A"), (2, "B"), (3, "C"), (4, "D")]

    paths.world.scores("b", ("D", 30))

    assert members(paths.table("b")) == [(1, "A"), (1, "D"), (3, "B"), (4, "C")]


def test_a_hidden_leader_takes_no_place(paths: Paths) -> None:
    """RNK-4."""
    board(paths)
    paths.world.scores("b", ("A", 100), ("B", 90), ("C", 80))

    paths.client.hide_member("A", **BY)
    paths.world.project()

    assert paths.table("b") == [(1, "B", "90"), (2, "C", "80")]
    assert paths.compared("b", "B") == (1, "B", "90")
    assert paths.compared("b", "C") == (2, "C", "80")
    assert paths.compared("b", "A") is None
    assert paths.places("b", ["A", "B"], among=True)[1].rank_among == 1


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("desc", [(40, 1), (31, 2), (25, 3), (25, 3), (25, 3), (19, 6), (12, 7), (3, 8)]),
        ("asc", [(3, 1), (12, 2), (19, 3), (25, 4), (25, 4), (25, 4), (31, 7), (40, 8)]),
    ],
)
def test_equals_share_their_rank_in_both_directions(
    paths: Paths, order: str, expected: list[tuple[int, int]]
) -> None:
    """RNK-5."""
    board(paths, order=order)
    paths.world.scores("b", *((f"m{i}", v) for i, v in enumerate((40, 31, 25, 25, 25, 19, 12, 3))))

    table = paths.table("b", step=3)

    assert [(int(score), rank) for rank, _, score in table] == expected
    for rank, member, score in table:
        assert paths.compared("b", member) == (rank, member, score)


def test_to_repeat_ones_own_best_changes_nothing_and_is_no_news(paths: Paths) -> None:
    """RNK-6."""
    board(paths, order="asc", operator="best")
    paths.world.scores("b", ("A", 1000), ("B", 1200), ("C", 1300))
    before = paths.client.standing("b", "B")
    assert before is not None
    group = paths.client.board("b").group
    with paths.world.pipeline.redis.pubsub(ignore_subscribe_messages=True) as hints:
        hints.subscribe(paths.world.pipeline.keys(group).hints)

        paths.world.scores("b", ("B", 1200))
        paths.world.scores("b", ("C", 1250))

        first = wait_until(partial(hints.get_message, timeout=0.02), "a hint")
        rest = [message for _ in range(3) if (message := hints.get_message(timeout=0.02))]
    assert members(paths.table("b")) == [(1, "A"), (2, "B"), (3, "C")]
    assert paths.client.standing("b", "B") == before
    assert first["type"] == "message"
    assert rest == [], "one hint, and that of what came later"


def test_a_correction_may_lower_a_score(paths: Paths) -> None:
    """RNK-7."""
    board(paths)
    paths.world.scores("b", ("A", 100), ("B", 90))
    assert paths.table("b") == [(1, "A", "100"), (2, "B", "90")]

    paths.world.scores("b", ("A", -50))
    assert paths.table("b") == [(1, "B", "90"), (2, "A", "50")]
    assert paths.compared("b", "A") == (2, "A", "50")

    paths.client.reset_member("A", **BY)
    paths.world.project()
    assert paths.table("b") == [(1, "B", "90")]
    assert paths.compared("b", "A") is None

    paths.world.scores("b", ("A", 0))
    assert paths.table("b") == [(1, "B", "90"), (2, "A", "0")]


@pytest.mark.parametrize("action", ["hide", "ban", "reset", "delete"])
def test_who_leaves_is_gone_from_every_live_board_until_its_own_return(
    paths: Paths, action: str
) -> None:
    """RNK-10."""
    board(paths, seasons=["all", "month", "week"])
    board(paths, "friends", seasons=["all"])
    rankings = [("friends", "all"), *(("b", p) for p in ("all", "month", "week"))]
    for key in ("b", "friends"):
        paths.world.scores(key, ("A", 3), ("B", 2), ("C", 1))
    rankings = [
        (key, period if period == "all" else paths.client.seasons(key, period=period)[0].label)
        for key, period in rankings
    ]

    getattr(paths.client, f"{action}_member")("A", **BY)
    paths.world.project()

    for key, season in rankings:
        assert paths.table(key, season) == [(1, "B", "2"), (2, "C", "1")]
        assert paths.compared(key, "A", season) is None
    for key in ("b", "friends"):
        paths.world.scores(key, ("C", 4))
        paths.world.scores(key, ("A", 7))
    back = action in {"reset", "delete"}
    others: list[Row] = [(1 + back, "C", "5"), (2 + back, "B", "2")]
    for key, season in rankings:
        assert paths.table(key, season) == [*([(1, "A", "7")] if back else []), *others]


@pytest.mark.parametrize(
    ("numbering", "expected"),
    [(Numbering.COMPETITION, [1, 2, 2, 4]), (Numbering.ORDINAL, [1, 2, 3, 4])],
)
def test_numbering_is_the_readers_choice_on_the_same_data(
    paths: Paths, numbering: Numbering, expected: list[int]
) -> None:
    """TIE-1."""
    board(paths)
    paths.world.scores("b", ("a", 101), ("b", 100), ("c", 100), ("d", 99))
    before = paths.world.pipeline.rankings()

    table = paths.table("b", numbering=numbering, step=2)

    assert table == [
        (rank, member, score)
        for rank, member, score in zip(expected, "abcd", ("101", "100", "100", "99"), strict=True)
    ]
    assert paths.place("b", "d", numbering=numbering).rank == 4
    assert paths.around("b", "c", limit=3, numbering=numbering) == table[1:]
    assert paths.world.pipeline.rankings() == before, "nothing was written"


def test_a_tie_that_spans_pages_keeps_its_rank(paths: Paths) -> None:
    """TIE-3."""
    board(paths)
    paths.world.scores("b", *((f"m{i:03}", 100) for i in range(250)), ("last", 99))

    table = paths.table("b", step=100)

    assert [rank for rank, _, _ in table] == [1] * 250 + [251]
    assert [row for page in paths.by_offset("b", 100) for row in page] == table
    for member, rank in (("m000", 1), ("m249", 1), ("last", 251)):
        assert paths.compared("b", member) == (rank, member, "100" if rank == 1 else "99")


def test_a_tie_on_the_edge_of_a_page(paths: Paths) -> None:
    """TIE-4."""
    board(paths)
    scores = [1000 - i for i in range(48)] + [500] * 7 + [400, 399]
    paths.world.scores("b", *((f"m{i:02}", score) for i, score in enumerate(scores)))

    table = paths.table("b", step=50)
    first, second = paths.by_offset("b", 50)

    assert [rank for rank, _, _ in first] == [*range(1, 49), 49, 49]
    assert [rank for rank, _, _ in second] == [49] * 5 + [56, 57]
    assert [*first, *second] == table


def test_paging_through_ties_loses_nobody(paths: Paths) -> None:
    """TIE-5."""
    board(paths)
    paths.world.scores("b", *((f"m{i:03}", 500 if 90 <= i < 130 else 900 - i) for i in range(250)))

    table = paths.table("b", step=50)
    passes = [paths.by_offset("b", 50) for _ in range(2)]

    assert len({member for _, member, _ in table}) == 250
    assert passes == [[table[at : at + 50] for at in range(0, 250, 50)]] * 2


def test_a_tie_for_the_third_place(paths: Paths) -> None:
    """TIE-7: three rows, or all of the podium."""
    board(paths)
    paths.world.scores("b", ("a", 100), ("b", 90), ("e", 80), ("d", 80), ("c", 80), ("z", 1))

    top = rows(paths.top("b", limit=3).entries)
    ((_, _, third),) = paths.around_rank("b", 3, limit=1)
    podium = paths.between("b", third, None)

    assert members(top) == [(1, "a"), (2, "b"), (3, "e")], "who got there first"
    assert members(rows(podium.entries)) == [(1, "a"), (2, "b"), (3, "e"), (3, "d"), (3, "c")]
    assert (podium.matching, podium.next) == (5, None)
    assert [paths.place("b", member).rank for member in "edc"] == [3, 3, 3]

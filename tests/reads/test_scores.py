"""What a score means: percentiles, counts, ranges, histograms; and numbers that are none."""

from collections.abc import Callable

import pytest

from tests.projection.pipeline import Pipeline
from truerank.errors import InvalidInput
from truerank.model import Source, TieBreak
from truerank.projection.projector import Projector

BOTH = pytest.mark.parametrize("source", Source)


@BOTH
def test_a_percentile_is_the_share_of_the_others_strictly_below(
    idle: Pipeline, projector: Projector, source: Source
) -> None:
    idle.client.create_board("five", seasons=["all"])
    idle.submit("five", {"a": 50, "b": 40, "c": 40, "d": 30, "e": 10})
    idle.settle(projector)

    page = idle.client.places("five", [*"abcde", "z"], percentile=True, source=source)
    alone = idle.client.place("b", "ann", percentile=True, source=source)

    assert [place.percentile for place in page.places] == [100, 50, 50, 25, 0, None]
    assert alone.places[0].percentile == 100
    unasked = idle.client.place("five", "a", source=source)
    assert (unasked.places[0].percentile, unasked.places[0].rank_among) == (None, None)


@BOTH
def test_a_score_nobody_has_yet_gets_the_rank_it_would_have(
    idle: Pipeline, projector: Projector, source: Source
) -> None:
    idle.client.create_board(
        "laps",
        order="asc",
        operator="best",
        decimals=3,
        seasons=["all"],
        tie_breaks=[TieBreak(name="penalties")],
    )
    for i, (score, penalties) in enumerate([("61.5", 2), ("61.5", 0), ("60.001", 0)]):
        idle.client.submit_score(
            "laps", event_id=f"e{i}", member=f"m{i}", value=score, ties=[penalties]
        )
    idle.settle(projector)

    def ask(*scores: int | str, ties: tuple[int, ...] = ()) -> list[tuple[str, int, int]]:
        page = idle.client.counts("laps", scores, ties=ties, source=source)
        return [(count.score, count.better, count.equal) for count in page.counts]

    assert ask("61.5", "61.499", 60) == [
        ("61.500", 1, 2),
        ("61.499", 1, 0),
        ("60.000", 0, 0),
    ]
    # More penalties come first here, strange as it is: the order of a tie-break is its own.
    assert ask("61.5", ties=(1,)) == [("61.500", 2, 0)]


@pytest.mark.parametrize(
    ("ask", "field"),
    [
        (lambda idle: idle.client.counts("b", ["x"]), "scores"),
        (lambda idle: idle.client.counts("b", [1.5]), "scores"),
        (lambda idle: idle.client.counts("b", ["1.5"]), "scores"),
        (lambda idle: idle.client.counts("b", [2**63]), "scores"),
        (lambda idle: idle.client.counts("b", [1], ties=[1]), "ties"),
        (lambda idle: idle.client.counts("b", range(1001)), "scores"),
        (lambda idle: idle.client.between("b", "1e400"), "score_min"),
        (lambda idle: idle.client.between("b", None, True), "score_max"),  # noqa: FBT003
        (lambda idle: idle.client.between("b", 2, 1), "score_min"),
        (lambda idle: idle.client.histogram("b", [2**63]), "edges"),
        (lambda idle: idle.client.histogram("b", range(1001)), "edges"),
        (lambda idle: idle.client.histogram("b", [3, 3]), "edges"),
        (lambda idle: idle.client.histogram("b", [3, 2]), "edges"),
        (lambda idle: idle.client.around("b", rank=0), "rank"),
        (lambda idle: idle.client.around("b", rank=1, limit=1001), "limit"),
    ],
)
def test_what_no_board_can_hold_is_refused(
    stopped: Pipeline, ask: Callable[[Pipeline], object], field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        ask(stopped)

    assert caught.value.field == field


@BOTH
def test_the_ends_of_64_bits_are_scores_like_any_other(
    idle: Pipeline, projector: Projector, source: Source
) -> None:
    least, most = -(2**63), 2**63 - 1
    for order in ("asc", "desc"):
        idle.client.create_board(order, order=order, operator="latest", seasons=["all"])
        idle.submit(order, {"low": least, "zero": 0, "high": most})
    idle.settle(projector)

    for order in ("asc", "desc"):
        counts = idle.client.counts(order, [least, most], source=source).counts
        assert [(c.better, c.equal) for c in counts] == (
            [(0, 1), (2, 1)] if order == "asc" else [(2, 1), (0, 1)]
        )
        page = idle.client.between(order, least, most, source=source)
        assert page.matching == 3
        assert idle.client.between(order, most, most, source=source).matching == 1
        spread = idle.client.histogram(order, [least, 0, most], source=source)
        assert [bucket.members for bucket in spread.buckets] == [0, 1, 1, 1]


@BOTH
def test_a_board_without_players_has_answers_too(
    idle: Pipeline, projector: Projector, source: Source
) -> None:
    idle.client.create_board("empty", seasons=["all"])
    idle.settle(projector)

    assert idle.client.around("empty", rank=1, source=source).around == ()
    assert idle.client.between("empty", 0, source=source).matching == 0
    assert idle.client.counts("empty", [5], source=source).counts[0].better == 0
    assert [b.members for b in idle.client.histogram("empty", [5], source=source).buckets] == [0, 0]
    page = idle.client.top("empty", source=source)
    assert (page.entries, page.next, page.previous) == ((), None, None)

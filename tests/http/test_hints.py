"""Hints are parsed, named and merged; nothing else gets through."""

import psycopg
import pytest

from truerank.read.hints import Hint, Kind, Notice, Pending, parse, season_label
from truerank.read.season import NamedRanking

GENERATION = "0123456789abcdef" * 2
BOARD = 7


def ranking(period: int, index: int, board: int = BOARD) -> int:
    return (board << 36) | (period << 32) | (index + 2**31)


def message(tick: int, *rankings: int) -> bytes:
    changed = ",".join(map(str, rankings))
    return f"{BOARD} {tick}:0d6f1c3e-0000-4000-8000-000000000000 {GENERATION} {changed}".encode()


def pending(*messages: bytes) -> Pending:
    waiting = Pending(0.25)
    for text in messages:
        hint = parse(text)
        assert hint is not None
        waiting.add(hint)
    return waiting


def test_a_message_of_the_projection_is_read_whole() -> None:
    hint = parse(message(12, ranking(1, 0), ranking(3, 5)))

    assert hint is not None
    assert (hint.board, hint.tick, hint.generation) == (BOARD, 12, GENERATION)
    assert hint.rankings == (ranking(1, 0), ranking(3, 5))


@pytest.mark.parametrize(
    "text",
    [
        b"", b"7", message(1), message(1, 5) + b"\n", b" " + message(1, 5), message(1, 5) + b",",
        message(1, 5).replace(b"7 ", b"\xd9\xa7 "), message(1, 5).upper(),
        message(1, 5)[:-1] + b"x", b"-" + message(1, 5), b"9" * 400_000,
    ],
)  # fmt: skip
def test_anything_else_is_no_hint(text: bytes) -> None:
    assert parse(text) is None


def test_labels_are_those_of_the_database(database_url: str) -> None:
    asked = [(1, 0)] + [
        (period, index)
        for period, indices in (
            (2, range(-30_000, 40_000, 377)),
            (3, range(-4_000, 6_000, 53)),
            (4, range(1900 * 12, 2200 * 12, 7)),
            (5, range(1900, 2200, 3)),
        )
        for index in indices
    ]
    names = ("all", "day", "week", "month", "year")
    with psycopg.connect(database_url) as conn:
        rows = conn.execute(
            "SELECT truerank.ranking_id(%s, p, i), truerank.period_label(p, i)"
            " FROM unnest(%s::text[], %s::integer[]) AS u (p, i)",
            (BOARD, [names[period - 1] for period, _ in asked], [index for _, index in asked]),
        ).fetchall()

    assert [number for number, _ in rows] == [ranking(*one) for one in asked]
    assert [season_label(number) for number, _ in rows] == [label for _, label in rows]


NAMED = {
    ranking(6, 5): NamedRanking(ranking(6, 5), "spring", None),
    ranking(8, 1): NamedRanking(ranking(8, 1), "2026", None),  # what a freeze shows
    ranking(9, 7): NamedRanking(ranking(1, 0), "all", 2),
    ranking(9, 8): NamedRanking(ranking(1, 0), "all", 1),
    ranking(9, 9): NamedRanking(ranking(6, 5), "spring", 1),
}


def taken(
    waiting: Pending,
    unseen: frozenset[int] = frozenset(),
    named: dict[int, NamedRanking] = NAMED,
) -> Notice:
    notice = waiting.take().told(named, unseen=unseen)
    assert notice is not None
    return notice


@pytest.mark.parametrize("period", [0, 2, 3, 4, 5, 6, 7, 15])
def test_a_number_that_no_built_in_season_has_gets_no_name(period: int) -> None:
    assert season_label(ranking(period, -(2**31))) is None
    assert season_label(ranking(period, 2**31 - 1)) is None


def test_hints_that_wait_become_one_notice_with_the_latest_tick() -> None:
    waiting = pending(message(1, ranking(1, 0)), message(2, ranking(5, 2026), ranking(1, 0)))

    notice = taken(waiting)

    assert (notice.kind, notice.tick, notice.generation) == (Kind.HINT, 2, GENERATION)
    assert (notice.seasons, notice.cohorts) == (("all", "2026"), {})
    assert waiting.due_in(100.0) is None


def test_the_next_notice_waits_for_its_gap() -> None:
    waiting = pending(message(1, ranking(1, 0)))
    assert waiting.due_in(100.0) == 0
    waiting.take()
    waiting.gave(100.0)

    hint = parse(message(2, ranking(1, 0)))
    assert hint is not None
    waiting.add(hint)

    assert waiting.due_in(100.1) == pytest.approx(0.15)
    assert waiting.due_in(100.3) == 0


def test_many_seasons_or_one_that_nobody_can_name_are_told_as_any() -> None:
    many = pending(message(1, *(ranking(2, day) for day in range(100))))
    custom = pending(message(1, ranking(1, 0), ranking(6, 5)))
    cohorts = pending(message(1, ranking(1, 0), *(ranking(9, at) for at in range(300))))
    unknown = pending(message(1, ranking(1, 0), ranking(9, 7), ranking(9, 99)))

    assert taken(many).seasons is None
    assert taken(custom, named={}).seasons is None
    for waiting in (cohorts, unknown):
        notice = taken(waiting)
        assert (notice.seasons, notice.cohorts) == (("all",), None)


def test_custom_seasons_and_cohorts_are_told_by_what_they_are_called() -> None:
    waiting = pending(message(1, *NAMED, ranking(5, 2026)))

    waited = waiting.take()

    assert waited.unnamed == NAMED.keys()
    notice = waited.told(NAMED)
    assert notice is not None
    assert notice.seasons == ("2026", "spring")
    assert notice.cohorts == {"all": (2, 1), "spring": (1,)}
    divided = taken(pending(message(2, ranking(9, 8))))  # of which the season says nothing new
    assert (divided.seasons, divided.cohorts) == ((), {"all": (1,)})


def test_nothing_is_told_of_what_goes_on_behind_a_freeze() -> None:
    frozen, custom, cohort = ranking(1, 0), ranking(6, 5), ranking(9, 7)
    many = tuple(ranking(9, at) for at in range(1000, 1300))
    unseen = frozenset({frozen, custom})
    for hidden in (
        (frozen,), (custom,), (frozen, custom), (frozen, cohort), (cohort,),
        (frozen, ranking(9, 99)), (frozen, *many), many,
    ):  # fmt: skip
        waiting = pending(message(1, *hidden))
        assert waiting.take().told(NAMED, unseen=unseen) is None
        assert waiting.due_in(0.0) is None
        waiting.add(Hint(board=BOARD, tick=2, generation=GENERATION, rankings=(1,)))
        assert waiting.due_in(0.0) == 0  # and nothing waits for it

    waiting = pending(message(1, frozen, cohort, ranking(9, 9), ranking(5, 2026)))

    notice = taken(waiting, unseen=frozenset({frozen}))
    assert (notice.seasons, notice.cohorts) == (("2026",), {"spring": (1,)})


def test_what_may_have_been_lost_is_told_as_a_resync_whatever_waits() -> None:
    waiting = pending(message(1, ranking(1, 0)))
    waiting.lost()
    hint = parse(message(2, ranking(1, 0)))
    assert hint is not None
    waiting.add(hint)

    notice = taken(waiting)

    assert (notice.kind, notice.tick, notice.seasons) == (Kind.RESYNC, 2, None)
    assert notice.cohorts is None

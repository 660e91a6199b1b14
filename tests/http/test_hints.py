"""Hints are parsed, named and merged; nothing else gets through."""

import psycopg
import pytest

from truerank.read.hints import Kind, Notice, Pending, parse, season_label

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


def taken(waiting: Pending, now: float, unseen: frozenset[int] = frozenset()) -> Notice:
    notice = waiting.take(now, unseen=unseen)
    assert notice is not None
    return notice


@pytest.mark.parametrize("period", [0, 2, 3, 4, 5, 6, 7, 15])
def test_a_number_that_no_built_in_season_has_gets_no_name(period: int) -> None:
    assert season_label(ranking(period, -(2**31))) is None
    assert season_label(ranking(period, 2**31 - 1)) is None


def test_hints_that_wait_become_one_notice_with_the_latest_tick() -> None:
    waiting = pending(message(1, ranking(1, 0)), message(2, ranking(5, 2026), ranking(1, 0)))

    notice = taken(waiting, now=100.0)

    assert (notice.kind, notice.tick, notice.generation) == (Kind.HINT, 2, GENERATION)
    assert notice.seasons == ("all", "2026")
    assert waiting.due_in(100.0) is None


def test_the_next_notice_waits_for_its_gap() -> None:
    waiting = pending(message(1, ranking(1, 0)))
    assert waiting.due_in(100.0) == 0
    waiting.take(now=100.0)

    hint = parse(message(2, ranking(1, 0)))
    assert hint is not None
    waiting.add(hint)

    assert waiting.due_in(100.1) == pytest.approx(0.15)
    assert waiting.due_in(100.3) == 0


def test_many_seasons_or_a_custom_one_are_told_as_any() -> None:
    many = pending(message(1, *(ranking(2, day) for day in range(100))))
    custom = pending(message(1, ranking(1, 0), ranking(6, 5)))

    assert taken(many, now=0.0).seasons is None
    assert taken(custom, now=0.0).seasons is None


def test_nothing_is_told_of_what_goes_on_behind_a_freeze() -> None:
    frozen, custom, cohort = ranking(1, 0), ranking(6, 5), ranking(9, 7)
    for hidden in ((frozen,), (custom,), (frozen, custom), (frozen, cohort)):
        waiting = pending(message(1, *hidden))
        assert waiting.take(now=0.0, unseen=frozenset({frozen, custom})) is None
        assert waiting.due_in(0.0) is None

    waiting = pending(message(1, frozen, cohort, ranking(5, 2026)))

    assert taken(waiting, now=0.0, unseen=frozenset({frozen})).seasons == ("2026",)


def test_what_may_have_been_lost_is_told_as_a_resync_whatever_waits() -> None:
    waiting = pending(message(1, ranking(1, 0)))
    waiting.lost()
    hint = parse(message(2, ranking(1, 0)))
    assert hint is not None
    waiting.add(hint)

    notice = taken(waiting, now=0.0)

    assert (notice.kind, notice.tick, notice.seasons) == (Kind.RESYNC, 2, None)

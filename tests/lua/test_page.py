"""page.lua: slices, places and neighbourhoods of one snapshot, or the reason why there is none."""

from typing import Any

import pytest

from tests.lua.harness import END, KEY_BYTES, RANKING, START, Scripts, drop, key, part, put
from truerank.projection.scripts import PageReply

TEN = [f"m{n:02}" for n in range(1, 11)]


@pytest.fixture(autouse=True)
def _copy(scripts: Scripts) -> None:
    scripts.begin()
    scripts.go_live()


@pytest.fixture
def ten(scripts: Scripts) -> Scripts:
    """Ten members m01 to m10 on places 0 to 9."""
    scripts.apply(part(*(put(member, i + 1, at=i) for i, member in enumerate(TEN))))
    return scripts


def names(rows: list[bytes]) -> list[str]:
    return [row[KEY_BYTES:].decode() for row in rows]


def slice_of(reply: list[Any]) -> tuple[list[str], int]:
    _, rows, better, _, _ = reply[4]
    return names(rows), better


def around_of(reply: list[Any]) -> tuple[int, list[str], int]:
    first, rows, better = reply[6]
    return first, names(rows), better


@pytest.mark.parametrize(
    ("offset", "limit", "expected"),
    [
        (0, 3, TEN[:3]),
        (4, 3, TEN[4:7]),
        (8, 5, TEN[8:]),
        (10, 5, []),
        (2**31 - 1, 1000, []),
        (0, 0, []),
        (0, 1000, TEN),
    ],
)
def test_a_slice_holds_the_rows_asked_for(
    ten: Scripts, offset: int, limit: int, expected: list[str]
) -> None:
    reply = ten.page(offset=offset, limit=limit)

    assert (reply[0], reply[3]) == (PageReply.OK, 10)
    assert slice_of(reply) == (expected, offset if expected else 0)


@pytest.mark.parametrize(
    ("member", "limit", "first"),
    [
        ("m02", 4, 0),  # RED-1
        ("m01", 4, 0),
        ("m05", 4, 3),
        ("m05", 5, 2),
        ("m09", 4, 6),
        ("m10", 4, 6),
        ("m10", 1, 9),
        ("m01", 10, 0),
        ("m07", 1000, 0),  # RED-2
    ],
)
def test_a_neighbourhood_has_as_many_rows_as_asked_for_at_both_ends(
    ten: Scripts, member: str, limit: int, first: int
) -> None:
    reply = ten.page(member, around=limit)

    assert around_of(reply) == (first, TEN[first : first + limit], first)


def test_a_member_without_a_place_has_neither_place_nor_neighbourhood(ten: Scripts) -> None:
    ten.apply_next(part(drop("m01", 99)))

    reply = ten.page("m01", around=3)
    assert (reply[5], reply[6]) == ([[]], [])

    reply = ten.page("nobody", "m02", "", "m01", "m02")
    assert reply[5] == [[], [0, 0, key(1), 0], [], [], [0, 0, key(1), 0]]


def test_equals_share_the_number_of_those_who_are_better(scripts: Scripts) -> None:
    # The first four of eight bytes decide who is equal; 40, 30, 30, 30, 20 in the usual order.
    at = {
        m: group << 32 | i
        for i, (m, group) in enumerate(zip("abcde", (1, 2, 2, 2, 3), strict=True))
    }
    scripts.apply(part(*(put(m, i + 1, at=n) for i, (m, n) in enumerate(at.items()))))

    reply = scripts.page(*"abcde", offset=2, limit=3, around=3, row_bytes=4, up_to=1)

    assert slice_of(reply) == (["c", "d", "e"], 1)
    assert [(place, better, up_to) for place, better, _, up_to in reply[5]] == [
        (0, 0, 1),
        (1, 1, 4),
        (2, 1, 4),
        (3, 1, 4),
        (4, 4, 5),
    ]
    assert around_of(reply) == (0, ["a", "b", "c"], 0)


def test_equals_with_the_greatest_bytes_there_are_end_with_the_ranking(scripts: Scripts) -> None:
    scripts.apply(part(put("a", 1, at=2**64 - 2**32), put("b", 2, at=2**64 - 1)))

    reply = scripts.page("a", "b", row_bytes=4, up_to=1)

    assert [up_to for _, _, _, up_to in reply[5]] == [2, 2]


def row(member: str, at: int) -> bytes:
    return key(at) + member.encode()


@pytest.mark.parametrize(
    ("start", "beside", "limit", "expected"),
    [
        ("after", row("m03", 3 - 1), 3, TEN[3:6]),
        ("after", row("m02zz", 1), 3, TEN[2:5]),  # a row that is there no more
        ("after", row("m10", 9), 3, []),
        ("after", b"", 2, TEN[:2]),
        ("before", row("m04", 3), 2, TEN[1:3]),
        ("before", row("m04", 3), 9, TEN[:3]),
        ("before", row("m01", 0), 3, []),
        ("before", row("m99", 99), 2, TEN[8:]),
    ],
)
def test_a_slice_starts_beside_a_row_that_is_there_or_was(
    ten: Scripts, start: str, beside: bytes, limit: int, expected: list[str]
) -> None:
    reply = ten.page(start=start, beside=beside, limit=limit)

    first = TEN.index(expected[0]) if expected else {"after": 10, "before": 0}[start]
    assert reply[4][0] == first
    assert slice_of(reply) == (expected, first if expected else 0)


@pytest.mark.parametrize(
    ("asked", "first", "expected"),
    [
        ({"limit": 9}, 2, TEN[2:6]),
        ({"limit": 9, "offset": 1}, 3, TEN[3:6]),
        ({"limit": 9, "offset": 9}, 11, []),
        ({"limit": 2, "start": "after", "beside": row("m03", 2)}, 3, TEN[3:5]),
        ({"limit": 2, "start": "after", "beside": b""}, 2, TEN[2:4]),
        ({"limit": 2, "start": "before", "beside": row("m99", 99)}, 4, TEN[4:6]),
        ({"limit": 9, "start": "before", "beside": row("m05", 4)}, 2, TEN[2:4]),
    ],
)
def test_a_slice_stays_between_its_bounds(
    ten: Scripts, asked: dict[str, Any], first: int, expected: list[str]
) -> None:
    reply = ten.page(low=key(2), high=key(6), **asked)

    assert (reply[4][0], reply[4][3:]) == (first, [2, 6])
    assert names(reply[4][1]) == expected


def test_bounds_that_cross_hold_nothing(ten: Scripts) -> None:
    assert names(ten.page(low=key(6), high=key(2), limit=9)[4][1]) == []


@pytest.mark.parametrize(
    ("middle", "limit", "first"), [(0, 4, 0), (4, 5, 2), (9, 4, 6), (500, 4, 6), (3, 1, 3)]
)
def test_a_neighbourhood_may_lie_around_a_place(
    ten: Scripts, middle: int, limit: int, first: int
) -> None:
    reply = ten.page(around=limit, middle=middle)

    assert around_of(reply) == (first, TEN[first : first + limit], first)


def test_how_many_come_before_a_key_is_counted(ten: Scripts) -> None:
    reply = ten.page("m01", marks=[key(0), key(3), key(3)[:7], b"\xff" * 64])

    assert reply[7] == [0, 3, 0, 10]


def test_an_empty_ranking_is_an_answer(scripts: Scripts) -> None:
    reply = scripts.page("ann", ranking=RANKING + 7, limit=10, around=5)

    assert (reply[0], reply[3], reply[4], reply[5], reply[6]) == (
        *(PageReply.OK, 0, [0, [], 0, 0, 0]),
        *([[]], []),
    )


def test_an_answer_carries_the_meta_of_its_copy_and_the_time(scripts: Scripts) -> None:
    _, meta, (seconds, micros), *_ = scripts.page()
    assert meta == [b"e1", b"1", b"", b"", b"", b"", b"", b""]

    scripts.apply()
    now_s, _ = scripts.link.command("TIME")
    shown = scripts.page(snapshot=1)[1]
    assert shown == [b"e1", b"2", b"", b"", b"7", b"", b"20:20:", b""]
    assert 0 <= int(now_s) - int(seconds) < 60
    assert 0 <= int(micros) < 1_000_000


def test_an_answer_says_that_a_batch_is_under_way(scripts: Scripts) -> None:
    scripts.apply(part(put("ann", 1, at=1)), then=f"{END}|1")

    assert scripts.page()[1][2] == f"{END}|1".encode()
    assert scripts.meta()["cursor"] == START


def test_who_believes_in_another_copy_is_told_the_live_one(scripts: Scripts) -> None:
    scripts.go_live("g2")

    assert scripts.page(limit=1) == [PageReply.MOVED, b"g2"]


def test_without_a_pointer_there_is_no_copy_to_move_to(scripts: Scripts) -> None:
    scripts.link.command("DEL", scripts.group.pointer)

    assert scripts.page(limit=1) == [PageReply.MOVED, b""]


def test_a_copy_without_meta_is_missing(scripts: Scripts) -> None:
    scripts.link.command("DEL", scripts.copy().meta)

    assert scripts.page(limit=1) == [PageReply.MISSING]


@pytest.mark.parametrize(
    "lost", ["places", "shown", "counts", "all", "a place", "a version", "flagged"]
)
def test_a_damaged_ranking_gives_no_answer_and_its_neighbour_does(ten: Scripts, lost: str) -> None:
    ten.apply_next(part(put("ann", 99, at=1), ranking=RANKING + 1))
    copy = ten.copy()
    match lost:
        case "places":
            ten.link.command("DEL", copy.places(RANKING))
        case "shown":
            ten.link.command("DEL", copy.shown(RANKING))
        case "counts":
            ten.link.command("HDEL", copy.counts, RANKING)
        case "all":
            ten.link.command("HDEL", copy.counts, RANKING)
            ten.link.command("DEL", copy.places(RANKING), copy.shown(RANKING))
        case "a place":
            ten.link.command("ZREMRANGEBYRANK", copy.places(RANKING), 3, 3)
        case "a version":
            ten.link.command("HDEL", copy.shown(RANKING), "m04")
        case _:
            ten.link.command("HSET", copy.counts, RANKING, "damaged")

    assert ten.page(limit=3) == [PageReply.DAMAGED]
    assert ten.page(limit=3, ranking=RANKING + 1)[0] == PageReply.OK


def test_a_member_whose_place_and_version_disagree_damages_the_answer(ten: Scripts) -> None:
    copy = ten.copy()
    ten.link.command("HSET", copy.shown(RANKING), "m04", (4).to_bytes(8) + key(7_000))

    assert ten.page("m04") == [PageReply.DAMAGED]

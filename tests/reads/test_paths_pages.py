"""Windows and pages: whole at both ends, the same back and forth, and honest while others move."""

from typing import Any

import pytest

from tests.members.conftest import BY
from tests.projection.pipeline import Pipeline
from tests.reads.paths import Paths, board, rows
from truerank.errors import InvalidInput

PLAYERS = [f"p{i:03}" for i in range(1, 101)]


def falling(count: int) -> list[tuple[str, int]]:
    return [(f"p{i:03}", 100 * (count - i)) for i in range(1, count + 1)]


def names(page: Any) -> list[str]:
    return [entry["member"] for entry in page["entries"]]


WINDOWS = [
    (10, 2, 4, [1, 2, 3, 4]),  # RED-1
    (10, 1, 4, [1, 2, 3, 4]),
    (10, 9, 4, [7, 8, 9, 10]),
    (10, 10, 1, [10]),
    (3, 2, 7, [1, 2, 3]),  # RED-2
    (3, 3, 100, [1, 2, 3]),
    (1, 1, 1000, [1]),
]


def test_a_window_is_whole_at_both_ends(paths: Paths) -> None:
    for total in (10, 3, 1):
        board(paths, f"of {total}")
        paths.world.scores(f"of {total}", *falling(total))

    for total, rank, limit, expected in WINDOWS:
        key = f"of {total}"
        table = rows(paths.top(key, limit=1000).entries)
        member = table[rank - 1][1]
        around = paths.around(key, member, limit=limit)
        page = paths.top(key, limit=0, member=member, around_limit=limit)
        assert [place for place, _, _ in around] == expected
        assert rows(page.around) == around == [table[place - 1] for place in expected]
        assert page.places == (paths.place(key, member),)
        assert paths.around_rank(key, rank, limit=limit) == around


@pytest.mark.parametrize(
    ("slice_of_it", "left"),
    [
        ({"limit": 4}, [5, 6, 7]),
        ({"limit": 3}, [4, 5, 6, 7]),
        ({"limit": 2}, [3, 4, 5, 6, 7]),
        ({"limit": 1000}, []),
        ({"limit": 2, "offset": 4}, [3, 4, 7]),
        ({"limit": 5, "offset": 6}, [3, 4, 5, 6]),
        ({"limit": 5, "offset": 7}, [3, 4, 5, 6, 7]),
        ({"limit": 5, "offset": 100}, [3, 4, 5, 6, 7]),
    ],
)
def test_a_page_and_the_neighbourhood_beside_it_share_no_row(
    paths: Paths, slice_of_it: dict[str, Any], left: list[int]
) -> None:
    board(paths)
    paths.world.scores("b", *falling(10))

    page = paths.top("b", member="p005", around_limit=5, **slice_of_it)

    assert [rank for rank, _, _ in rows(page.around)] == left
    assert page.places[0].rank == 5


def test_a_window_of_nothing_is_empty_and_a_rank_beyond_the_last_ends_with_it(paths: Paths) -> None:
    board(paths)
    paths.world.scores("b", *falling(5))

    assert paths.around("b", "p002", limit=0) == []
    assert [member for _, member, _ in paths.around_rank("b", 99, limit=2)] == ["p004", "p005"]


def test_pages_back_are_the_pages_forth(paths: Paths) -> None:
    """RED-4."""
    board(paths)
    paths.world.scores("b", *((f"m{i:03}", i // 7) for i in range(120)))

    for fetch in paths.readers("b"):
        forth = [fetch(limit=20)]
        for _ in range(3):
            forth.append(fetch(limit=20, cursor=forth[-1]["next"]))
        back = [forth[-1]]
        for _ in range(3):
            back.append(fetch(limit=20, cursor=back[-1]["previous"]))

        for went, came in zip(forth[:3], back[:0:-1], strict=True):
            assert came["entries"] == went["entries"]
            assert (came["next"], came["previous"]) == (went["next"], went["previous"])
        assert back[-1]["previous"] is None
        assert len({name for page in forth for name in names(page)}) == 80


@pytest.mark.parametrize("way", range(4), ids=["projection", "http", "database", "http, database"])
def test_who_does_not_move_is_shown_once_whoever_else_moves_while_one_pages(
    paths: Paths, way: int
) -> None:
    """RED-5: up over the reader, down past it, out of sight, into sight, and back to nothing."""
    board(paths)
    paths.world.scores("b", *falling(100))
    paths.client.hide_member("p090", **BY)
    paths.world.project()
    fetch = list(paths.readers("b"))[way]
    moved = {"p070", "p005", "p030", "p090", "p020", "p060"}

    page = fetch(limit=20)
    read = [page]
    paths.world.scores("b", ("p070", 20_000), ("p005", -9_050))
    paths.client.hide_member("p030", **BY)
    paths.client.show_member("p090", **BY)
    paths.client.ban_member("p020", **BY)  # the row that the cursor names
    paths.client.delete_member("p060", **BY)
    paths.world.project()
    while page["next"] is not None:
        page = fetch(limit=20, cursor=page["next"])
        read.append(page)

    seen = [name for one in read for name in names(one)]
    assert [name for name in seen if name not in moved] == [n for n in PLAYERS if n not in moved]
    assert "p030" not in seen
    assert "p060" not in seen
    assert "p090" in seen
    # p070 now stands before the reader, p005, p020 and p030 no longer do.
    assert read[1]["entries"][0] == {"rank": 20, "member": "p021", "score": "7900"}
    assert all(one["freshness"]["projected_through"] for one in read)
    assert read[0]["freshness"]["projected_through"] < read[1]["freshness"]["projected_through"]


def test_percentiles_are_the_share_of_the_others_strictly_below(paths: Paths) -> None:
    """RED-6."""
    board(paths)
    board(paths, "alone")
    paths.world.scores("b", ("a", 50), ("b", 40), ("c", 40), ("d", 30), ("e", 10), ("h", 45))
    paths.world.scores("alone", ("a", 1), ("h", 2))
    paths.client.hide_member("h", **BY)
    paths.world.project()

    places = paths.places("b", [*"abcdehz"], percentile=True)

    assert [place.percentile for place in places] == [100, 50, 50, 25, 0, None, None]
    assert paths.place("alone", "a", percentile=True).percentile == 100
    assert paths.place("b", "a").percentile is None, "not asked for"
    paths.table("b")
    paths.table("alone")


WHOLE = [
    "-1",
    "1.5",
    "abc",
    "007",
    "00",
    "+5",
    " 5",
    "5 ",
    "1e3",
    "0x10",
    "1_000",
    "\u0663",
    "",
    "NaN",
]
LIMITS = [*WHOLE, "1001", "1000000000", "9999999999", "10000000000", "1" * 5000]
OFFSETS = [*WHOLE, "2147483648", "1000000000000", "9" * 400]
ROUTES = [
    *[("top", "limit", text) for text in LIMITS],
    *[("top", "offset", text) for text in OFFSETS],
    *[("between", "limit", text) for text in LIMITS],
    *[("between", "offset", text) for text in OFFSETS],
    *[("around?member=p001", "limit", text) for text in LIMITS],
    *[("around", "rank", text) for text in [*OFFSETS, "0"]],
    *[("top?member=p001", "around_limit", text) for text in LIMITS],
    *[("seasons", "limit", text) for text in LIMITS],
    *[("seasons", "offset", text) for text in OFFSETS],
]


def test_a_page_of_another_size_than_can_be_is_refused_and_named(paths: Paths) -> None:
    """RED-7, over HTTP: refused, never cut to size, never the whole board, never a crash."""
    board(paths)
    paths.world.scores("b", *falling(300))

    for route, name, text in ROUTES:
        path, _, query = route.partition("?")
        given = [pair.partition("=")[::2] for pair in query.split("&") if pair]
        answer = paths.http.get(f"/v1/boards/b/{path}", params=[*given, (name, text)])
        told = answer.json()
        asked = (route, name, text[:20])
        assert answer.status_code == 422, asked
        assert told["field"] == name, asked
        assert set(told) == {"code", "message", "field"}, asked
    for name in ("limit", "offset"):
        twice = paths.http.get(f"/v1/boards/b/top?{name}=1&{name}=1")
        assert (twice.status_code, twice.json()["field"]) == (422, name)


def test_pages_of_every_size_that_can_be_have_their_rows(paths: Paths) -> None:
    """RED-7."""
    board(paths)
    paths.world.scores("b", *falling(300))

    def sizes(**how: Any) -> int:
        size = len(paths.top("b", **how).entries)
        assert len(paths.between("b", None, None, **how).entries) == size
        return size

    assert [sizes(limit=limit) for limit in (0, 1, 100, 101, 300, 1000)] == [
        0,
        1,
        100,
        101,
        300,
        300,
    ]
    assert [sizes(offset=at, limit=100) for at in (0, 250, 299, 300, 2**31 - 1)] == [
        100,
        50,
        1,
        0,
        0,
    ]
    assert sizes() == 10, "the same number of rows by default everywhere"
    beyond = paths.top("b", offset=300)
    assert (beyond.total, beyond.next, beyond.previous) == (300, None, None)
    assert paths.around_rank("b", 2**31 - 1, limit=1) == [(300, "p300", "0")]


@pytest.mark.parametrize("given", [-1, 1.5, "10", True, None, 1001, 10**9, 2**70])
def test_the_library_takes_whole_numbers_only(stopped: Pipeline, given: Any) -> None:
    for ask in (stopped.client.top, stopped.client.between):
        with pytest.raises(InvalidInput) as caught:
            ask("b", limit=given)
        assert caught.value.field == "limit"
    with pytest.raises(InvalidInput):
        stopped.client.around("b", "m", limit=given)

"""Members who take no place: crossed with ties, directions, pages, windows, friends and counts."""

from decimal import Decimal
from typing import Any

import pytest

from tests.members.conftest import BY
from tests.reads.paths import Paths, board, rows
from truerank.model import MemberState, Numbering, Order, Profile, ScoreEvent, TieBreak

ORDERS = pytest.mark.parametrize("order", ["desc", "asc"])


def say(paths: Paths, action: str, *members: str, **how: Any) -> None:
    """One command about each, and the projection knows."""
    for member in members:
        getattr(paths.client, f"{action}_member")(member, **BY, **how)
    paths.world.project()


def tied(paths: Paths, order: str, key: str = "b") -> list[str]:
    """A board of 24 members in three ties of 8; its members in order."""
    board(paths, key, operator="best", order=order, dense=True)
    paths.world.scores(key, *((f"m{i:02}", i % 3) for i in range(24)))
    return [member for _, member, _ in rows(paths.top(key, limit=100).entries)]


def withhold(paths: Paths, action: str, *members: str) -> None:
    """Take members off their places; "merge" makes them one with somebody who is hidden."""
    if action != "merge":
        say(paths, action, *members)
        return
    say(paths, "hide", "hidden one")
    for member in members:
        paths.client.merge_members(member, "hidden one", **BY)
    paths.world.project()


@ORDERS
@pytest.mark.parametrize("action", ["hide", "ban", "delete", "merge"])
def test_withheld_members_part_no_ties_and_shift_everybody_below(
    paths: Paths, order: str, action: str
) -> None:
    everybody = tied(paths, order)
    withheld = [*everybody[:2], everybody[7], everybody[8], *everybody[-2:]]
    withhold(paths, action, *withheld)

    tables = {numbering: paths.table("b", numbering=numbering, step=9) for numbering in Numbering}

    left = [member for member in everybody if member not in withheld]
    expected = {
        Numbering.COMPETITION: [1] * 5 + [6] * 7 + [13] * 6,
        Numbering.DENSE: [1] * 5 + [2] * 7 + [3] * 6,
        Numbering.ORDINAL: list(range(1, 19)),
    }
    for numbering, table in tables.items():
        assert [row[:2] for row in table] == list(zip(expected[numbering], left, strict=True))
        for at in (4, 5, 17):  # at borders of ties
            assert paths.around_rank("b", at + 1, limit=1, numbering=numbering) == [table[at]]


@ORDERS
def test_a_frozen_list_goes_on_without_whoever_is_withheld_since(paths: Paths, order: str) -> None:
    everybody = tied(paths, order)
    say(paths, "hide", everybody[2], everybody[10])
    paths.client.freeze_season("b", "all", **BY)
    paths.world.project()
    best = 9 if order == "desc" else -9
    paths.world.scores("b", *((member, best) for member in everybody[12::4]))
    gone = {"hide": everybody[0], "ban": everybody[9], "delete": everybody[16]}
    gone["merge"] = everybody[23]
    for action, member in gone.items():
        withhold(paths, action, member)
    say(paths, "show", everybody[10])  # it stood in the list all the time

    table = paths.table("b", "all", step=5)

    left = [m for m in everybody if m not in {everybody[2], *gone.values()}]
    ranks = dict(zip(left, [1] * 6 + [7] * 7 + [14] * 6, strict=True))
    assert [row[:2] for row in table] == [(ranks[member], member) for member in left]
    assert paths.top("b", "all").freshness.frozen_at is not None
    listed = {member: (rank, member, score) for rank, member, score in table}
    for member in (everybody[at] for at in (0, 1, 2, 9, 10, 12, 16, 23)):
        assert paths.compared("b", member, "all") == listed.get(member)
    friends = [everybody[at] for at in (20, 9, 12, 0, 1, 10, 23)]
    places = paths.places("b", friends, "all", among=True)
    assert [(p.rank_among, p.rank) for p in places] == [
        *((4, 14), (None, None), (2, 7), (None, None), (1, 1), (2, 7), (None, None)),
    ]


@ORDERS
def test_the_first_of_a_tie_hides_and_nobody_elses_rank_moves_but_those_below(
    paths: Paths, order: str
) -> None:
    everybody = tied(paths, order)
    say(paths, "hide", everybody[8])

    for at, member in enumerate(everybody):
        row = paths.compared("b", member)
        expected = (1, 9, 16)[at // 8]
        assert row is None if at == 8 else row is not None and row[0] == expected


def test_a_member_that_shows_itself_again_stands_where_it_stood(paths: Paths) -> None:
    everybody = tied(paths, "desc")
    before = paths.table("b")
    say(paths, "hide", *everybody[3:12])
    assert paths.top("b").total == 15

    say(paths, "show", *everybody[3:12])

    assert paths.table("b") == before


@ORDERS
@pytest.mark.parametrize("action", ["hide", "ban", "delete", "reset"])
def test_paging_goes_on_both_ways_from_a_row_that_is_withheld_meanwhile(
    paths: Paths, action: str, order: str
) -> None:
    ways = len(list(paths.readers("any")))
    for way in range(ways):
        key = f"board {way}"
        everybody = tied(paths, order, key)
        fetch = list(paths.readers(key))[way]
        second = fetch(limit=5, cursor=fetch(limit=5)["next"])
        assert [e["member"] for e in second["entries"]] == everybody[5:10]
        # Both rows that its cursors name go, and the first row of the page after it.
        say(paths, action, *(everybody[at] for at in (5, 9, 10)), board=key)

        after = fetch(limit=3, cursor=second["next"])
        before = fetch(limit=3, cursor=second["previous"])

        assert [e["member"] for e in after["entries"]] == everybody[11:14]
        assert [e["member"] for e in before["entries"]] == everybody[2:5]
        assert [e["rank"] for e in before["entries"]] == [1, 1, 1]
        assert [e["rank"] for e in after["entries"]] == [8, 8, 8], "one of eight is gone above"
        again = fetch(limit=5, cursor=after["previous"])
        assert [e["member"] for e in again["entries"]] == [everybody[at] for at in (3, 4, 6, 7, 8)]


def test_members_who_page_through_a_tie_see_one_who_is_shown_again_at_most_once(
    paths: Paths,
) -> None:
    everybody = tied(paths, "desc")
    for fetch in paths.readers("b"):
        say(paths, "hide", everybody[3], everybody[12])
        page = fetch(limit=6)
        seen = [e["member"] for e in page["entries"]]
        say(paths, "show", everybody[3], everybody[12])
        while page["next"] is not None:
            page = fetch(limit=6, cursor=page["next"])
            seen += [e["member"] for e in page["entries"]]

        assert seen == [m for m in everybody if m != everybody[3]], "shown behind the reader's back"


@ORDERS
def test_friends_who_are_withheld_take_no_place_among_friends(paths: Paths, order: str) -> None:
    everybody = tied(paths, order)
    friends = [everybody[at] for at in (20, 9, 1, 8, 0, 16)]
    say(paths, "hide", friends[2])
    say(paths, "ban", friends[3])

    places = paths.places("b", [*friends, "stranger", friends[0]], among=True, percentile=True)

    assert [(p.rank_among, p.rank) for p in places] == [
        *((3, 15), (2, 8), (None, None), (None, None), (1, 1), (3, 15)),
        *((None, None), (3, 15)),
    ]
    states = [place.state.value for place in places]
    assert states == ["active"] * 2 + ["hidden", "banned"] + ["active"] * 4
    ordinal = paths.places("b", friends, among=True, numbering=Numbering.ORDINAL)
    assert [place.rank_among for place in ordinal] == [4, 2, None, None, 1, 3]
    assert {place.percentile for place in places[:1]} == {0.0}


@ORDERS
def test_ranges_counts_and_buckets_are_of_members_with_a_place(paths: Paths, order: str) -> None:
    everybody = tied(paths, order)
    withheld = {everybody[0], everybody[9], everybody[15], everybody[23]}
    say(paths, "hide", *withheld)
    left = [member for member in everybody if member not in withheld]

    def within(low: int, high: int) -> list[str]:
        return [m for m in left if low <= int(m[1:]) % 3 <= high]

    for low, high in ((0, 0), (1, 1), (0, 1), (1, 2), (3, 9)):
        page = paths.between("b", low, high, limit=100)
        assert [entry.member for entry in page.entries] == within(low, high)
        assert page.matching == len(within(low, high))
        half = paths.between("b", low, high, limit=2, offset=1)
        assert half.entries == page.entries[1:3]
        if half.next is not None:
            rest = paths.between("b", low, high, limit=100, cursor=half.next)
            assert rest.entries == page.entries[3:]
            assert rest.matching == page.matching
    sizes = [len(within(score, score)) for score in range(3)]
    assert paths.histogram("b", [0, 1, 2]) == [0, *sizes]
    better = [sum(sizes[s + 1 :]) if order == "desc" else sum(sizes[:s]) for s in range(3)]
    assert paths.counts("b", [0, 1, 2]) == list(zip(better, sizes, strict=True))


@ORDERS
def test_percentiles_count_nobody_who_is_withheld(paths: Paths, order: str) -> None:
    everybody = tied(paths, order)
    say(paths, "ban", everybody[0], everybody[23])
    say(paths, "hide", everybody[10])

    places = paths.places("b", everybody, percentile=True)

    numbers = [place.percentile for place in places]
    assert [numbers[at] for at in (0, 10, 23)] == [None] * 3
    assert numbers[1] == 100 * 14 / 20
    assert numbers[8] == 100 * 7 / 20
    assert numbers[16] == 0
    assert len({round(n, 9) for n in numbers if n is not None}) == 3, "equals are equal"


def test_a_board_of_withheld_members_is_an_empty_board(paths: Paths) -> None:
    everybody = tied(paths, "desc")
    say(paths, "hide", *everybody)

    assert paths.table("b") == []
    assert paths.compared("b", everybody[0]) is None
    assert paths.around_rank("b", 1) == []
    assert paths.counts("b", [1]) == [(0, 0)]
    assert paths.histogram("b", [1]) == [0, 0]
    page = paths.between("b", 0, 2)
    assert (page.total, page.matching, page.entries) == (0, 0, ())


def test_what_one_is_told_of_oneself_says_why_there_is_no_place_and_the_public_is_not_told(
    paths: Paths,
) -> None:
    board(paths)
    board(paths, "other")
    for key in ("b", "other"):
        paths.world.scores(key, *((m, 9) for m in ("hid", "ban", "both", "gone", "twin", "rest")))
    say(paths, "hide", "hid")
    say(paths, "ban", "ban", board="b")
    say(paths, "hide", "both")
    say(paths, "ban", "both")
    say(paths, "delete", "gone")
    paths.client.merge_members("twin", "rest", **BY)
    say(paths, "hide", "unheard of")
    expected = {
        "hid": ("hidden", "hidden"),
        "ban": ("banned", "active"),
        "both": ("banned", "banned"),
        "gone": ("active", "active"),
        "twin": ("merged", "merged"),
        "rest": ("active", "active"),
        "unheard of": ("hidden", "hidden"),
        "never": ("active", "active"),
    }

    for at, key in enumerate(("b", "other")):
        places = paths.places(key, list(expected))
        assert {p.member: p.state.value for p in places} == {m: s[at] for m, s in expected.items()}
        for place in places:
            assert paths.place(key, place.member) == place
            assert (place.rank is None) == (place.member not in shown(paths, key))
            if place.rank is None:
                told = public(paths, key, place.member)
                assert told == {"rank": None, "member": place.member, "score": None}
    assert shown(paths, "b") == {"rest": "18"}
    assert shown(paths, "other") == {"ban": "9", "rest": "18"}


def shown(paths: Paths, key: str) -> dict[str, str]:
    return {member: score for _, member, score in paths.table(key)}


def public(paths: Paths, key: str, member: str) -> Any:
    """What HTTP tells of a member, wherever it is asked; the same everywhere."""
    alone = paths.http.get(f"/v1/boards/{key}/place", params={"member": member}).json()
    around = paths.http.get(f"/v1/boards/{key}/around", params={"member": member}).json()
    beside = paths.http.get(f"/v1/boards/{key}/top", params={"member": member}).json()
    assert alone["place"] == around["place"] == beside["place"]
    assert around["around"] == beside["around"] == []
    return alone["place"]


def test_a_life_after_deletion_begins_in_sight_and_at_zero(paths: Paths) -> None:
    board(paths)
    paths.world.scores("b", ("A", 30), ("B", 20))
    say(paths, "hide", "A")
    say(paths, "delete", "A")
    assert paths.compared("b", "A") is None

    paths.world.scores("b", ("A", 5))

    assert paths.table("b") == [(1, "B", "20"), (2, "A", "5")]
    assert paths.compared("b", "A") == (2, "A", "5")


def test_who_was_merged_is_found_under_the_other_name_with_the_others_state(paths: Paths) -> None:
    board(paths)
    paths.world.scores("b", ("A", 10), ("B", 7), ("C", 12))
    paths.client.merge_members("B", "A", **BY)
    paths.world.project()
    assert paths.table("b") == [(1, "A", "17"), (2, "C", "12")]

    paths.world.scores("b", ("B", 1))
    assert paths.compared("b", "A") == (1, "A", "18")
    assert paths.compared("b", "B") is None

    say(paths, "hide", "A")
    assert paths.table("b") == [(1, "C", "12")]
    assert [p.state for p in paths.places("b", ["A", "B"])] == [
        MemberState.HIDDEN,
        MemberState.MERGED,
    ]


@ORDERS
def test_tie_breaks_and_decimals_are_crossed_with_withheld_members(
    paths: Paths, order: str
) -> None:
    board(
        paths,
        operator="best",
        order=order,
        decimals=3,
        tie_breaks=[TieBreak(name="t", order=Order.ASC)],
    )
    events = [
        ScoreEvent(event_id=f"e{i}", member=f"m{i:02}", value=f"{i % 4 - 2}.5", ties=(i % 2,))
        for i in range(16)
    ]
    paths.world.submit("b", events)
    everybody = paths.table("b")
    say(paths, "hide", *[member for _, member, _ in everybody[::5]])

    left = [row for at, row in enumerate(everybody) if at % 5]
    table = paths.table("b", step=4)

    assert [row[1:] for row in table] == [row[1:] for row in left]
    equals = [(score, int(member[1:]) % 2) for _, member, score in table]
    assert [rank for rank, _, _ in table] == [1 + equals.index(row) for row in equals]
    assert all(Decimal(score) % 1 in {Decimal("0.5"), Decimal("-0.5")} for _, _, score in table)


def test_names_stand_beside_members_with_and_without_a_place(paths: Paths) -> None:
    board(paths)
    paths.world.scores("b", ("A", 3), ("B", 2), ("C", 1))
    paths.client.set_profiles([Profile(member=m, name=f"name of {m}") for m in "ABCZ"])
    say(paths, "hide", "B")

    page = paths.top("b", limit=1, member="A", names=True)
    places = paths.places("b", [*"ABCZ"], names=True)

    named = [row.profile.name for row in (*page.entries, *page.around) if row.profile is not None]
    assert named == ["name of A", "name of C"]
    assert [p.profile.name for p in places if p.profile is not None] == [
        f"name of {m}" for m in "ABCZ"
    ]
    assert [place.rank for place in places] == [1, None, 2, None]

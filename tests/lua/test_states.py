"""The states of members in Redis: facts with versions, which move what the table itself holds."""

import random
import struct
from itertools import permutations, product
from typing import Any

import pytest

from tests.lua.harness import (
    BOARD,
    COPY,
    END,
    OTHER,
    OTHER_BOARD,
    RANKING,
    SIBLING,
    Scripts,
    drop,
    key,
    part,
    put,
)
from truerank.outbox.ticks import Part
from truerank.projection.scripts import ApplyReply, FillReply, PageReply

HIDDEN, BANNED, MERGED, ACTIVE = b"h", b"b", b"m", b"a"


def states(*facts: tuple[str, int, bytes], board: int = 0) -> Part:
    """Facts of one scope: member, version, letter."""
    rows = [
        b"s" + struct.pack(">Q", version) + letter + member.encode()
        for member, version, letter in facts
    ]
    return Part(board << 36, -1, rows)


def moves(*members: str, ranking: int = RANKING) -> Part:
    """Bring these members of a ranking in line with their states."""
    return Part(ranking, 0, [b"m" + bytes(8) + member.encode() for member in members])


def held(scripts: Scripts, member: str) -> set[tuple[int, int, bytes]]:
    """Board, version and letter of what is held of a member."""
    record: Any = scripts.link.command("HGET", scripts.copy().members, member) or b""
    return {struct.unpack(">IQc", record[at : at + 13]) for at in range(0, len(record), 13)}


@pytest.fixture(autouse=True)
def _copy(scripts: Scripts) -> None:
    scripts.begin(scan="done", high="5:5:")
    scripts.go_live()


@pytest.mark.parametrize("letter", [HIDDEN, BANNED, MERGED])
@pytest.mark.parametrize("board", [0, BOARD])
def test_a_state_takes_the_place_and_leaves_the_standing(
    scripts: Scripts, letter: bytes, board: int
) -> None:
    scripts.apply_next(part(put("ann", 1, at=1), put("bob", 2, at=2)))

    reply = scripts.apply_next(states(("ann", 3, letter), board=board), moves("ann"))

    assert reply == [ApplyReply.APPLIED, 0, [], 1]
    assert (scripts.order(), scripts.version("ann"), scripts.counts()) == (["bob"], 1, "1 0 1")
    assert scripts.structures() == (1, 2)
    scripts.apply_next(states(("ann", 4, ACTIVE), board=board), moves("ann"))
    assert (scripts.order(), scripts.counts()) == (["ann", "bob"], "2 0 0")
    assert held(scripts, "ann") == set()


def test_a_state_on_another_board_withholds_nothing_here(scripts: Scripts) -> None:
    scripts.apply_next(part(put("ann", 1, at=1)), part(put("ann", 2, at=1), ranking=OTHER))

    scripts.apply_next(
        states(("ann", 3, HIDDEN), board=OTHER_BOARD), moves("ann"), moves("ann", ranking=OTHER)
    )

    assert (scripts.order(), scripts.order(OTHER)) == (["ann"], [])


@pytest.mark.parametrize("last", ["everywhere", "board"])
def test_of_two_states_both_must_end(scripts: Scripts, last: str) -> None:
    scripts.apply_next(part(put("ann", 1, at=1)))
    scripts.apply_next(
        states(("ann", 2, HIDDEN)), states(("ann", 3, BANNED), board=BOARD), moves("ann")
    )

    ends = [states(("ann", 4, ACTIVE)), states(("ann", 5, ACTIVE), board=BOARD)]
    for end in ends if last == "board" else reversed(ends):
        assert (scripts.order(), scripts.counts()) == ([], "0 0 1")
        scripts.apply_next(end, moves("ann"))

    assert (scripts.order(), scripts.counts()) == (["ann"], "1 0 0")


def test_scores_of_a_withheld_member_go_on_unseen(scripts: Scripts) -> None:
    scripts.apply_next(states(("ann", 1, HIDDEN)))

    scripts.apply_next(part(put("ann", 2, at=5), put("bob", 3, at=6)))
    scripts.apply_next(part(put("ann", 4, at=7)))

    assert (scripts.order(), scripts.version("ann"), scripts.counts()) == (["bob"], 4, "1 0 1")
    scripts.apply_next(states(("ann", 5, ACTIVE)), moves("ann"))
    assert scripts.order() == ["bob", "ann"]


def test_a_withheld_standing_that_goes_leaves_a_tombstone_and_may_come_back(
    scripts: Scripts,
) -> None:
    scripts.apply_next(states(("ann", 1, HIDDEN)), part(put("ann", 2, at=5)))

    scripts.apply_next(part(drop("ann", 3)))
    assert (scripts.counts(), scripts.structures()) == ("0 1 0", (0, 1))
    scripts.apply_next(part(put("ann", 4, at=5)))
    assert (scripts.counts(), scripts.structures()) == ("0 0 1", (0, 1))


def test_everything_in_any_order_and_twice_ends_at_the_same_state(scripts: Scripts) -> None:
    calls = [
        [states(("ann", 1, HIDDEN))],
        [states(("ann", 4, BANNED))],
        [part(put("ann", 2, at=5))],
        [part(put("ann", 3, at=6), put("bob", 5, at=7))],
    ]

    for i, order in enumerate(permutations(calls)):
        generation = f"g{i}x"
        scripts.begin(generation, scan="done", high="5:5:")
        for call in (*order, *reversed(order)):
            # The projector names every ranking in which the member may have a standing.
            extra = [moves("ann")] if call[0].key_bytes == -1 else []
            scripts.apply_next(*call, *extra, generation=generation)

        assert scripts.order(generation=generation) == ["bob"]
        assert scripts.counts(generation=generation) == "1 0 1"
        assert scripts.version("ann", generation=generation) == 3


def test_versions_of_states_are_compared_as_unsigned_numbers_of_64_bits(scripts: Scripts) -> None:
    versions = [0, 64, 97, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63, 2**64 - 1]
    pairs = list(product(versions, repeat=2))

    scripts.apply_next(states(*((f"{a}-{b}", a, HIDDEN) for a, b in pairs)))
    scripts.apply_next(states(*((f"{a}-{b}", b, BANNED) for a, b in pairs)))

    for a, b in pairs:
        assert held(scripts, f"{a}-{b}") == {(0, max(a, b), BANNED if b > a else HIDDEN)}


def test_a_state_that_is_there_already_still_moves(scripts: Scripts) -> None:
    scripts.apply_next(part(put("ann", 1, at=1)))
    scripts.apply_next(states(("ann", 2, HIDDEN)))  # its moves were cut off
    assert scripts.order() == ["ann"]

    scripts.apply_next(states(("ann", 2, HIDDEN)), moves("ann", "nobody"))

    assert (scripts.order(), scripts.counts(), scripts.structures()) == ([], "0 0 1", (0, 1))


@pytest.mark.parametrize("letter", [HIDDEN, ACTIVE])
def test_a_row_that_is_not_newer_still_obeys_a_state(scripts: Scripts, letter: bytes) -> None:
    row = part(put("ann", 1, at=1))
    if letter == ACTIVE:
        scripts.apply_next(states(("ann", 2, HIDDEN)))
    scripts.apply_next(row)
    scripts.apply_next(states(("ann", 3, letter)))

    scripts.apply_next(row)

    assert scripts.order() == (["ann"] if letter == ACTIVE else [])


def test_while_a_copy_is_filled_active_keeps_its_version(scripts: Scripts) -> None:
    scripts.begin("g2")
    scripts.apply_next(states(("ann", 5, ACTIVE)), generation="g2")

    reply = scripts.fill(
        states(("ann", 4, HIDDEN), ("bob", 3, BANNED)),
        part(put("ann", 1, at=1), put("bob", 2, at=2)),
        generation="g2",
    )

    assert reply == [FillReply.APPLIED, 2, []]
    assert scripts.order(generation="g2") == ["ann"]
    assert scripts.counts(generation="g2") == "1 0 1"


def test_a_scan_withholds_what_the_log_placed_before_its_states_came(scripts: Scripts) -> None:
    scripts.begin("g2")
    scripts.apply_next(part(put("ann", 7, at=1)), generation="g2")
    assert scripts.order(generation="g2") == ["ann"]

    scripts.fill(states(("ann", 3, HIDDEN)), generation="g2")
    scripts.fill(part(put("ann", 7, at=1)), generation="g2", scan="p1", then="done", high="5:5:")

    assert scripts.order(generation="g2") == []
    assert scripts.counts(generation="g2") == "0 0 1"


@pytest.mark.parametrize("lost", ["all", "one", "one too many"])
def test_where_the_members_are_not_whole_nothing_is_applied_or_read(
    scripts: Scripts, lost: str
) -> None:
    scripts.apply_next(states(("ann", 1, HIDDEN), ("bob", 2, HIDDEN)), part(put("ann", 3, at=1)))
    match lost:
        case "all":
            scripts.link.command("DEL", scripts.copy().members)
        case "one":
            scripts.link.command("HDEL", scripts.copy().members, "ann")
        case _:
            scripts.link.command("HSET", scripts.copy().members, "cid", "x" * 13)

    reply = scripts.apply_next(part(put("ann", 4, at=1), put("cid", 5, at=2)))

    assert reply == [ApplyReply.APPLIED, 0, [b"0"], 1]
    assert scripts.apply_next() == [ApplyReply.APPLIED, 0, [b"0"], 1]
    assert (scripts.order(), scripts.meta()["cursor"]) == ([], END)
    assert scripts.page("ann") == [PageReply.DAMAGED]


def test_a_page_tells_the_state_of_the_members_asked_for(scripts: Scripts) -> None:
    scripts.apply_next(
        states(("ann", 1, HIDDEN), ("bob", 2, MERGED), ("cid", 3, HIDDEN), ("none", 4, HIDDEN)),
        states(("cid", 5, BANNED), ("dan", 6, BANNED), board=BOARD),
        states(("eve", 7, BANNED), board=OTHER_BOARD),
        part(*(put(name, 10, at=i) for i, name in enumerate(["ann", "cid", "dan", "eve"]))),
    )

    members = scripts.page("ann", "bob", "cid", "dan", "eve", "none", "never")[5]

    assert members == [[b"h"], [b"m"], [b"b"], [b"b"], [0, 0, key(3), 0], [b"h"], []]


def test_a_page_within_a_batch_tells_the_state_before_the_place_is_moved(scripts: Scripts) -> None:
    scripts.apply_next(part(put("ann", 1, at=1)))
    meta = scripts.meta()
    scripts.apply(states(("ann", 2, HIDDEN)), cursor=meta["cursor"], then="3:n3:30|1")

    assert scripts.page("ann")[5] == [[b"h"]]

    scripts.apply(moves("ann"), cursor=meta["cursor"], pending="3:n3:30|1")
    assert scripts.page("ann")[5] == [[b"h"]]


def test_a_place_that_contradicts_a_state_is_damage(scripts: Scripts) -> None:
    scripts.apply_next(states(("ann", 1, HIDDEN)), part(put("ann", 2, at=1), put("bob", 3, at=2)))
    places = scripts.copy().places(RANKING)
    scripts.link.command("ZREM", places, key(2) + b"bob")
    scripts.link.command("ZADD", places, 0, key(1) + b"ann")

    assert scripts.page("ann") == [PageReply.DAMAGED]
    assert scripts.page("bob") == [PageReply.DAMAGED]


@pytest.mark.parametrize("seed", range(3))
def test_random_facts_and_rows_end_as_a_plain_computation_says(scripts: Scripts, seed: int) -> None:
    random_ = random.Random(seed)
    members = [f"m{i}" for i in range(12)]
    rankings = [RANKING, SIBLING, OTHER]
    facts: dict[tuple[int, str], tuple[int, bytes]] = {}
    shown: dict[tuple[int, str], tuple[int, int | None]] = {}
    for version in range(1, 200):
        member = random_.choice(members)
        if random_.random() < 0.4:
            board = random_.choice([0, BOARD, OTHER_BOARD])
            letter = random_.choice([HIDDEN, BANNED, ACTIVE])
            facts[board, member] = (version, letter)
            touched = [r for r in rankings if board in {0, r >> 36}]
            call = [
                states((member, version, letter), board=board),
                *(moves(member, ranking=r) for r in touched),
            ]
        else:
            ranking = random_.choice(rankings)
            at = random_.randrange(50) if random_.random() < 0.8 else None
            shown[ranking, member] = (version, at)
            row = drop(member, version) if at is None else put(member, version, at=at)
            call = [part(row, ranking=ranking)]
        scripts.apply_next(*call)
        if random_.random() < 0.2:
            scripts.apply_next(*call)

    for ranking in rankings:
        standing = {m: at for (r, m), (_, at) in shown.items() if r == ranking and at is not None}
        seen = [
            m
            for m in standing
            if all(facts.get((b, m), (0, ACTIVE))[1] == ACTIVE for b in (0, ranking >> 36))
        ]
        assert scripts.order(ranking) == sorted(seen, key=lambda m: (key(standing[m]), m))
        gone = sum(at is None for (r, _), (_, at) in shown.items() if r == ranking)
        assert scripts.counts(ranking) == f"{len(seen)} {gone} {len(standing) - len(seen)}"
    known = {m for (_, m), (_, letter) in facts.items() if letter != ACTIVE}
    assert scripts.meta()["members"] == str(len(known))
    assert scripts.meta(COPY)["scan"] == "done"

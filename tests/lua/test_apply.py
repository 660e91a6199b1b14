"""apply.lua: what is newer is shown, the cursor moves in the same call, and nothing else does."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import pytest
import redis

from tests.lua.harness import (
    BOARD,
    COPY,
    END,
    OTHER,
    OTHER_BOARD,
    RANKING,
    SIBLING,
    START,
    Scripts,
    drop,
    part,
    put,
)
from truerank.projection.scripts import ApplyReply

# Bytes that dictionaries sort in another order than memcmp does, and halves that differ in sign.
VERSIONS = sorted(
    {0, 1, 64, 66, 97, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1}
    | {base + step for base in (2**32, 2**53) for step in (-1, 0, 1)}
    | {base << 32 | low for base in (66, 97) for low in (0, 65, 2**32 - 1)}
)


@pytest.fixture(autouse=True)
def _copy(scripts: Scripts) -> None:
    scripts.begin()
    scripts.go_live()


def test_a_put_gives_the_member_a_place_a_version_and_a_count(scripts: Scripts) -> None:
    reply = scripts.apply(part(put("ann", 7, at=2), put("bob", 8, at=1)))

    assert reply == [ApplyReply.APPLIED, 2, [], 1]
    assert scripts.order() == ["bob", "ann"]
    assert (scripts.version("ann"), scripts.version("bob")) == (7, 8)
    assert scripts.counts() == "2 0 0"


def test_a_newer_put_moves_the_member_and_leaves_the_counts(scripts: Scripts) -> None:
    scripts.apply_next(part(put("ann", 1, at=1), put("bob", 2, at=2)))

    scripts.apply_next(part(put("ann", 3, at=3)))

    assert scripts.order() == ["bob", "ann"]
    assert scripts.counts() == "2 0 0"


def test_a_newer_put_of_the_same_place_raises_only_the_version(scripts: Scripts) -> None:
    scripts.apply_next(part(put("ann", 1, at=1)))

    reply = scripts.apply_next(part(put("ann", 2, at=1)))

    assert reply == [ApplyReply.APPLIED, 1, [], 1]
    assert (scripts.order(), scripts.version("ann"), scripts.counts()) == (["ann"], 2, "1 0 0")


@pytest.mark.parametrize("version", [4, 5], ids=["older", "equal"])
@pytest.mark.parametrize("row", [put("ann", 4, at=9), drop("ann", 4)], ids=["put", "drop"])
def test_a_row_that_is_not_newer_changes_nothing(
    scripts: Scripts, version: int, row: bytes
) -> None:
    scripts.apply_next(part(put("ann", 5, at=1)))
    before = scripts.link.command("HGETALL", scripts.copy().shown(RANKING))

    reply = scripts.apply_next(part(row[:1] + version.to_bytes(8) + row[9:]))

    assert reply == [ApplyReply.APPLIED, 0, [], 1]
    assert scripts.link.command("HGETALL", scripts.copy().shown(RANKING)) == before
    assert (scripts.order(), scripts.counts()) == (["ann"], "1 0 0")


def test_a_drop_leaves_a_tombstone_that_an_older_put_does_not_pass(scripts: Scripts) -> None:
    scripts.apply_next(part(put("ann", 1, at=1)))
    scripts.apply_next(part(drop("ann", 3)))

    scripts.apply_next(part(put("ann", 2, at=1)))

    assert (scripts.order(), scripts.version("ann"), scripts.counts()) == ([], 3, "0 1 0")


def test_a_drop_of_an_unknown_member_leaves_a_tombstone_too(scripts: Scripts) -> None:
    scripts.apply_next(part(drop("ann", 3)))
    scripts.apply_next(part(put("ann", 2, at=1)))

    assert (scripts.order(), scripts.version("ann"), scripts.counts()) == ([], 3, "0 1 0")


def test_a_newer_put_brings_a_dropped_member_back(scripts: Scripts) -> None:
    scripts.apply_next(part(drop("ann", 3)))
    scripts.apply_next(part(drop("ann", 4)))

    scripts.apply_next(part(put("ann", 5, at=1)))

    assert (scripts.order(), scripts.version("ann"), scripts.counts()) == (["ann"], 5, "1 0 0")


def test_versions_are_compared_as_unsigned_numbers_of_64_bits(scripts: Scripts) -> None:
    pairs = list(product(range(len(VERSIONS)), repeat=2))
    older = [put(f"{i}-{j}", VERSIONS[i], at=1) for i, j in pairs]
    newer = [put(f"{i}-{j}", VERSIONS[j], at=1) for i, j in pairs]

    scripts.apply_next(part(*older))
    _, applied, *_ = scripts.apply_next(part(*newer))

    assert applied == sum(i < j for i, j in pairs)
    assert {f"{i}-{j}": scripts.version(f"{i}-{j}") for i, j in pairs} == {
        f"{i}-{j}": max(VERSIONS[i], VERSIONS[j]) for i, j in pairs
    }


@pytest.mark.parametrize("seed", range(3))
def test_random_versions_end_at_the_highest_in_any_order(scripts: Scripts, seed: int) -> None:
    random_ = random.Random(seed)
    versions = {str(m): [random_.getrandbits(64) for _ in range(3)] for m in range(300)}

    for turn in range(3):
        scripts.apply_next(part(*(put(m, v[turn], at=v[turn]) for m, v in versions.items())))

    highest = {member: max(v) for member, v in versions.items()}
    assert {member: scripts.version(member) for member in versions} == highest
    assert scripts.order() == sorted(highest, key=lambda member: highest[member])
    assert scripts.counts() == "300 0 0"


def test_rows_delivered_in_any_order_and_twice_end_at_the_same_state(scripts: Scripts) -> None:
    rows = [put("ann", 1, at=5), drop("ann", 2), put("ann", 3, at=2), put("bob", 4, at=3)]

    for i, order in enumerate(permutations(rows)):
        ranking = RANKING + 100 + i
        for row in (*order, *reversed(order)):
            scripts.apply_next(part(row, ranking=ranking))

        assert scripts.order(ranking) == ["ann", "bob"]
        assert scripts.version("ann", ranking) == 3
        assert scripts.counts(ranking) == "2 0 0"


def test_members_of_any_text_and_sort_keys_of_any_length_are_kept_apart(scripts: Scripts) -> None:
    members = ["é", "e\N{COMBINING ACUTE ACCENT}", "\N{GRINNING FACE}" * 200, "0", "p", "-", " "]
    rows = [put(m, i + 1, at=i) for i, m in enumerate(members)]

    scripts.apply(part(*rows))

    assert scripts.order() == members
    assert [scripts.version(m) for m in members] == list(range(1, len(members) + 1))


def test_the_last_call_moves_the_cursor_and_writes_the_fields_of_meta(scripts: Scripts) -> None:
    scripts.apply(part(put("ann", 1, at=1)))

    meta = scripts.meta()
    assert (meta["cursor"], meta["pending"], meta["tick"]) == (END, "", "2")
    assert (meta["covered"], meta["time"], meta["snapshot"]) == ("2:n2", "7", "20:20:")


def test_an_empty_batch_moves_the_cursor(scripts: Scripts) -> None:
    assert scripts.apply() == [ApplyReply.APPLIED, 0, [], 1]

    assert scripts.meta()["cursor"] == END


def test_a_batch_of_several_calls_moves_the_cursor_only_at_its_end(scripts: Scripts) -> None:
    scripts.apply(part(put("ann", 1, at=1)), then=f"{END}|1")
    assert (scripts.meta()["cursor"], scripts.meta()["pending"]) == (START, f"{END}|1")
    assert scripts.meta()["covered"] == "2:n2"

    scripts.apply(part(put("bob", 2, at=2)), pending=f"{END}|1", then=f"{END}|2")
    scripts.apply(part(put("cid", 3, at=3)), pending=f"{END}|2")

    assert (scripts.meta()["cursor"], scripts.meta()["pending"]) == (END, "")
    assert scripts.order() == ["ann", "bob", "cid"]


@pytest.mark.parametrize(
    ("cursor", "pending"),
    [(START, f"{END}|2"), (START, f"{END}|1x"), (END, f"{END}|1"), (START, "")],
    ids=["a later call", "another batch", "another cursor", "the first call again"],
)
def test_a_call_that_expects_another_progress_changes_nothing_and_learns_it(
    scripts: Scripts, cursor: str, pending: str
) -> None:
    scripts.apply(part(put("ann", 1, at=1)), then=f"{END}|1")
    before = scripts.meta()

    reply = scripts.apply(part(put("bob", 2, at=2)), cursor=cursor, pending=pending)

    assert reply == [ApplyReply.CURSOR, START.encode(), f"{END}|1".encode()]
    assert scripts.meta() == before
    assert scripts.order() == ["ann"]


def test_a_copy_without_meta_is_missing_and_stays_empty(scripts: Scripts) -> None:
    scripts.link.command("DEL", scripts.copy().meta)

    assert scripts.apply(part(put("ann", 1, at=1))) == [ApplyReply.MISSING]

    assert scripts.link.command("KEYS", "*") == [scripts.group.pointer.encode()]


def test_a_worker_of_another_epoch_is_fenced(scripts: Scripts) -> None:
    before = scripts.meta()

    assert scripts.apply(part(put("ann", 1, at=1)), epoch="e0") == [ApplyReply.FENCED]

    assert (scripts.meta(), scripts.order()) == (before, [])


@pytest.mark.parametrize("lost", ["places", "shown", "one place", "one version"])
def test_a_damaged_ranking_is_named_and_left_alone_while_the_others_go_on(
    scripts: Scripts, lost: str
) -> None:
    scripts.apply_next(
        part(put("ann", 1, at=1), put("bob", 2, at=2)), part(put("cid", 3, at=3), ranking=SIBLING)
    )
    copy = scripts.copy()
    match lost:
        case "places":
            scripts.link.command("DEL", copy.places(RANKING))
        case "shown":
            scripts.link.command("DEL", copy.shown(RANKING))
        case "one place":
            scripts.link.command("ZREMRANGEBYRANK", copy.places(RANKING), 0, 0)
        case _:
            scripts.link.command("HDEL", copy.shown(RANKING), "ann")
    damaged = scripts.structures()

    reply = scripts.apply_next(
        part(put("dan", 4, at=4)),
        part(put("dan", 5, at=4), ranking=SIBLING),
        part(put("dan", 6, at=4), ranking=OTHER),
    )

    assert reply == [ApplyReply.APPLIED, 2, [str(RANKING).encode()], 1]
    assert scripts.structures() == damaged
    assert scripts.counts() == "damaged"
    assert (scripts.order(SIBLING), scripts.order(OTHER)) == (["cid", "dan"], ["dan"])
    assert scripts.meta()["cursor"] == END


@pytest.mark.parametrize("lost", ["its count", "all of it"])
def test_where_a_count_is_lost_no_ranking_passes_for_a_new_one(scripts: Scripts, lost: str) -> None:
    scripts.apply_next(
        part(put("ann", 1, at=1), put("bob", 2, at=2)), part(put("cid", 3, at=3), ranking=SIBLING)
    )
    copy = scripts.copy()
    scripts.link.command("HDEL", copy.counts, RANKING)
    if lost == "all of it":
        scripts.link.command("DEL", copy.places(RANKING), copy.shown(RANKING))

    reply = scripts.apply_next(
        part(put("dan", 4, at=4)),
        part(put("dan", 5, at=4), ranking=SIBLING),
        part(put("dan", 6, at=4), ranking=OTHER),
    )

    # The other is new, but could as well be one that was lost.
    damaged = [str(RANKING).encode(), str(OTHER).encode()]
    assert reply == [ApplyReply.APPLIED, 1, damaged, 1]
    assert (scripts.order(SIBLING), scripts.order(OTHER)) == (["cid", "dan"], [])


def test_a_ranking_once_damaged_stays_so(scripts: Scripts) -> None:
    scripts.apply_next(part(put("ann", 1, at=1)))
    scripts.link.command("HSET", scripts.copy().counts, RANKING, "damaged")

    for version in (2, 3):
        _, applied, damaged, _ = scripts.apply_next(part(put("ann", version, at=version)))

        assert (applied, damaged) == (0, [str(RANKING).encode()])


@dataclass
class Hints:
    """What a subscriber of the group's channel heard."""

    client: redis.Redis
    channel: str

    def __post_init__(self) -> None:
        self._heard: Any = self.client.pubsub()  # type: ignore[no-untyped-call]  # untyped there
        self._heard.subscribe(self.channel)
        assert self._heard.get_message(timeout=5.0) is not None

    def all(self) -> list[str]:
        """All hints so far: a message of our own, sent last, ends them."""
        self.client.publish(self.channel, "end")
        hints: list[str] = []
        while (message := self._heard.get_message(timeout=5.0)) is not None:
            if message["data"] == b"end":
                return hints
            hints.append(message["data"].decode())
        raise AssertionError("our own message did not arrive")

    def close(self) -> None:
        self._heard.close()


@pytest.fixture
def hints(scripts: Scripts, server_url: str) -> Iterator[Hints]:
    with redis.Redis.from_url(server_url) as client:
        hints = Hints(client, scripts.group.hints)
        yield hints
        hints.close()


def test_a_call_gives_one_hint_for_each_board_that_changed(scripts: Scripts, hints: Hints) -> None:
    scripts.apply(
        part(put("ann", 1, at=1), put("bob", 2, at=2)),
        part(put("ann", 3, at=1), ranking=SIBLING),
        part(put("ann", 4, at=1), ranking=OTHER),
    )

    assert hints.all() == [
        f"{BOARD} 2:n2 {COPY} {RANKING},{SIBLING}",
        f"{OTHER_BOARD} 2:n2 {COPY} {OTHER}",
    ]


def test_rows_that_change_nothing_give_no_hint(scripts: Scripts, hints: Hints) -> None:
    scripts.apply_next(part(put("ann", 2, at=1)))
    scripts.apply_next(part(put("ann", 1, at=5)), part(drop("ann", 2)))

    assert len(hints.all()) == 1


def test_a_copy_that_readers_do_not_read_gives_no_hint(scripts: Scripts, hints: Hints) -> None:
    scripts.begin("g2")

    scripts.apply(part(put("ann", 1, at=1)), generation="g2")

    assert hints.all() == []
    assert scripts.order(generation="g2") == ["ann"]


def test_a_call_takes_thousands_of_rows(scripts: Scripts) -> None:
    rows = [put(str(i), i + 1, at=i) for i in range(9000)]

    assert scripts.apply(part(*rows))[1] == 9000

    assert scripts.counts() == "9000 0 0"

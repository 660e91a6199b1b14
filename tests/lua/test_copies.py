"""begin.lua, fill.lua and switch.lua: a copy is begun once, filled in order, and then read."""

import pytest

from tests.lua.harness import END, OTHER, RANKING, SIBLING, START, Scripts, drop, part, put
from truerank.projection.scripts import FillReply, SwitchReply


def test_a_copy_is_begun_once(scripts: Scripts) -> None:
    assert scripts.begin() == 1
    scripts.apply(part(put("ann", 1, at=1)))

    assert scripts.begin(cursor="9:other:90") == 0

    assert scripts.meta()["cursor"] == END


def test_a_chunk_brings_its_rows_and_moves_the_scan(scripts: Scripts) -> None:
    scripts.begin()

    reply = scripts.fill(
        part(put("ann", 1, at=2), put("bob", 2, at=1)), part(put("ann", 3, at=1), ranking=OTHER)
    )

    assert reply == [FillReply.APPLIED, 3, []]
    assert (scripts.order(), scripts.order(OTHER)) == (["bob", "ann"], ["ann"])
    meta = scripts.meta()
    assert (meta["scan"], meta["covered"], meta["high"]) == ("p1", "3:n3", "")
    assert (meta["cursor"], meta["pending"]) == (START, "")


def test_the_last_chunk_names_the_snapshot_that_the_cursor_must_contain(scripts: Scripts) -> None:
    scripts.begin()

    scripts.fill(then="done", high="30:31:30")

    assert (scripts.meta()["scan"], scripts.meta()["high"]) == ("done", "30:31:30")


def test_a_chunk_from_another_position_changes_nothing(scripts: Scripts) -> None:
    scripts.begin()
    scripts.fill(part(put("ann", 1, at=1)))
    before = scripts.meta()

    assert scripts.fill(part(put("bob", 2, at=2))) == [FillReply.SCAN, b"p1"]

    assert (scripts.meta(), scripts.order()) == (before, ["ann"])


def test_a_late_chunk_does_not_bring_back_what_the_log_removed(scripts: Scripts) -> None:
    scripts.begin()
    scripts.apply_next(part(drop("ann", 5), put("bob", 6, at=9)))

    scripts.fill(part(put("ann", 4, at=1), put("bob", 3, at=1), put("cid", 2, at=1)))

    assert scripts.order() == ["cid", "bob"]
    assert scripts.version("ann") == 5
    assert scripts.counts() == "2 1 0"


def test_a_chunk_for_a_copy_without_meta_is_missing(scripts: Scripts) -> None:
    assert scripts.fill(part(put("ann", 1, at=1))) == [FillReply.MISSING]

    assert scripts.link.command("DBSIZE") == 0


def test_a_chunk_of_another_epoch_is_fenced(scripts: Scripts) -> None:
    scripts.begin()

    assert scripts.fill(part(put("ann", 1, at=1)), epoch="e0") == [FillReply.FENCED]

    assert (scripts.order(), scripts.meta()["scan"]) == ([], "")


def test_a_chunk_goes_around_a_damaged_ranking(scripts: Scripts) -> None:
    scripts.begin()
    scripts.fill(part(put("ann", 1, at=1)), part(put("ann", 2, at=1), ranking=SIBLING))
    scripts.link.command("DEL", scripts.copy().places(RANKING))

    reply = scripts.fill(
        part(put("bob", 3, at=2)), part(put("bob", 4, at=2), ranking=SIBLING), scan="p1", then="p2"
    )

    assert reply == [FillReply.APPLIED, 1, [str(RANKING).encode()]]
    assert (scripts.order(), scripts.order(SIBLING)) == ([], ["ann", "bob"])
    assert scripts.meta()["scan"] == "p2"


def test_a_filled_copy_becomes_the_one_that_readers_read(scripts: Scripts) -> None:
    scripts.begin()
    scripts.fill(then="done")

    assert scripts.switch("g1") == SwitchReply.SWITCHED

    assert scripts.link.command("GET", scripts.group.pointer) == b"g1"


def test_readers_move_from_one_copy_to_the_next(scripts: Scripts) -> None:
    scripts.begin()
    scripts.begin("g2", cursor=END, scan="done")
    scripts.go_live()

    reply = scripts.switch("g2", "g1", cursor=END, live_cursor=START)

    assert reply == SwitchReply.SWITCHED
    assert scripts.link.command("GET", scripts.group.pointer) == b"g2"


@pytest.mark.parametrize(
    "moved",
    ["epoch", "cursor", "pending", "scan", "pointer", "pointer appeared", "cursor of the live one"],
)
def test_nothing_switches_after_something_has_moved(scripts: Scripts, moved: str) -> None:
    scripts.begin()
    scripts.begin("g2", scan="done")
    scripts.go_live()
    seen_live, seen_cursor = "g1", START
    match moved:
        case "pointer":
            scripts.go_live("g3")
        case "pointer appeared":
            seen_live, seen_cursor = "", ""
        case "cursor of the live one":
            scripts.apply()
        case field:
            scripts.link.command("HSET", scripts.copy("g2").meta, field, "moved")
    pointer = scripts.link.command("GET", scripts.group.pointer)

    reply = scripts.switch("g2", seen_live, live_cursor=seen_cursor)

    assert reply == SwitchReply.CHANGED
    assert scripts.link.command("GET", scripts.group.pointer) == pointer


def test_a_copy_that_vanished_is_not_switched_to(scripts: Scripts) -> None:
    scripts.begin()
    scripts.go_live()

    assert scripts.switch("g2", "g1", live_cursor=START) == SwitchReply.MISSING

    assert scripts.link.command("GET", scripts.group.pointer) == b"g1"


def test_a_live_copy_that_lost_its_meta_is_replaced(scripts: Scripts) -> None:
    scripts.begin("g2", scan="done")
    scripts.go_live("g1")

    assert scripts.switch("g2", "g1") == SwitchReply.SWITCHED

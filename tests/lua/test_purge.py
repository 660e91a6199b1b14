"""Forgetting that members were removed: only where nothing can bring them back."""

from typing import Any

import pytest

from tests.lua.harness import COPY, EPOCH, RANKING, SIBLING, Scripts, drop, part, put
from tests.lua.test_states import ACTIVE, HIDDEN, held, states
from truerank.projection.scripts import ApplyReply, PurgeReply
from truerank.steps import ScriptCall

RANKINGS = (RANKING, SIBLING)


def purge(scripts: Scripts, *members: str, floor_tick: int = 2, epoch: str = EPOCH) -> Any:
    copy = scripts.copy()
    (reply,), _ = scripts.link.calls(
        [
            ScriptCall(
                "purge",
                [copy.meta, copy.counts, copy.members, *map(copy.shown, RANKINGS)],
                [epoch, floor_tick, len(members), *members, *RANKINGS],
            )
        ]
    )
    return reply


def counts(scripts: Scripts, ranking: int = RANKING) -> Any:
    return scripts.link.command("HGET", scripts.copy().counts, ranking)


@pytest.fixture(autouse=True)
def _removed(scripts: Scripts) -> None:
    """Ann was removed from one ranking and never was in the other; bob has a place in both."""
    scripts.begin(scan="done", high="5:5:", base="2")
    scripts.go_live()
    scripts.apply_next(
        part(put("ann", 1, 5), put("bob", 2, 6), drop("cid", 3)),
        part(put("bob", 4, 6), ranking=SIBLING),
    )
    scripts.apply_next(part(drop("ann", 7)))
    assert counts(scripts) == b"1 2 0"


def test_a_tombstone_goes_and_what_has_a_place_stays(scripts: Scripts) -> None:
    assert purge(scripts, "ann", "bob", "eve") == PurgeReply.PURGED

    shown = scripts.link.command("HKEYS", scripts.copy().shown(RANKING))
    assert set(shown) == {b"bob", b"cid"}
    assert (counts(scripts), counts(scripts, SIBLING)) == (b"1 1 0", b"1 0 0")
    assert purge(scripts, "ann", "bob", "eve") == PurgeReply.PURGED
    assert counts(scripts) == b"1 1 0"
    assert scripts.apply_next(part(put("ann", 9, 1)))[0] == ApplyReply.APPLIED


@pytest.mark.parametrize(
    ("fields", "asked", "reply"),
    [
        ({"base": "1"}, {}, PurgeReply.BEHIND),
        ({"scan": "5 x"}, {}, PurgeReply.BEHIND),
        ({"base": "9"}, {"floor_tick": 10}, PurgeReply.BEHIND),
        ({}, {"epoch": "e2"}, PurgeReply.FENCED),
    ],
)
def test_a_copy_that_may_still_be_told_of_the_member_keeps_it(
    scripts: Scripts, fields: dict[str, str], asked: dict[str, Any], reply: PurgeReply
) -> None:
    for name, value in fields.items():
        scripts.link.command("HSET", scripts.copy().meta, name, value)

    assert purge(scripts, "ann", **asked) == reply

    assert counts(scripts) == b"1 2 0"


def test_a_copy_that_is_gone_is_told_so(scripts: Scripts) -> None:
    scripts.link.command("DEL", scripts.copy(COPY).meta)

    assert purge(scripts, "ann") == PurgeReply.MISSING


def test_an_active_state_that_was_kept_for_a_scan_goes_and_another_stays(
    scripts: Scripts,
) -> None:
    scripts.link.command("HSET", scripts.copy().meta, "scan", "")
    scripts.apply_next(states(("ann", 8, ACTIVE), ("bob", 9, HIDDEN)))
    scripts.link.command("HSET", scripts.copy().meta, "scan", "done")
    assert held(scripts, "ann") == {(0, 8, ACTIVE)}

    assert purge(scripts, "ann", "bob") == PurgeReply.PURGED

    assert held(scripts, "ann") == set()
    assert held(scripts, "bob") == {(0, 9, HIDDEN)}
    assert scripts.apply_next(part(put("eve", 10, 1)))[0:3:2] == [ApplyReply.APPLIED, []]

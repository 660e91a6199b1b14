"""Damage to what a copy keeps of members who aren't active, and to places that hang on it."""

from collections.abc import Callable

import pytest

from tests.projection.pipeline import Pipeline, differences
from tests.repair.damage import Target, reconciled


@pytest.fixture
def withheld(single: Pipeline) -> Target:
    """`hid` is hidden on the board, `ban` banned everywhere; `ann` is active, `gone` went."""
    single.submit("b", {"ann": 1, "hid": 2, "ban": 3, "gone": 4})
    single.client.hide_member("hid", board="b", actor="a", reason="r", timeout_s=0)
    single.client.ban_member("ban", actor="a", reason="r", timeout_s=0)
    single.settle(single.projector())
    single.client.delete_member("gone", actor="a", reason="r", timeout_s=0)
    single.settle(single.projector())
    (ranking,) = single.rankings()
    return Target(single, ranking, "hid")


def record(target: Target) -> bytes:
    found: bytes = target.redis.hget(target.keys.members, target.member)
    return found


def forgotten(target: Target) -> None:
    target.redis.hdel(target.keys.members, target.member)


def of_another_kind(target: Target) -> None:
    target.redis.hset(target.keys.members, target.member, record(target)[:-1] + b"b")


def of_an_older_version(target: Target) -> None:
    board, version = record(target)[:4], int.from_bytes(record(target)[4:12])
    older = board + (version - 1).to_bytes(8) + b"a"
    target.redis.hset(target.keys.members, target.member, older)


def of_nonsense(target: Target) -> None:
    target.redis.hset(target.keys.members, target.member, b"nonsense")


def of_one_more_board(target: Target) -> None:
    extra = (0).to_bytes(4) + (1).to_bytes(8) + b"h"
    target.redis.hset(target.keys.members, target.member, extra + record(target))


def of_somebody_active(target: Target) -> None:
    target.redis.hset(target.keys.members, "ann", record(target))


def of_no_text(target: Target) -> None:
    target.redis.hset(target.keys.members, b"\xff", record(target))


def a_place(target: Target) -> None:
    target.redis.zadd(target.places, {target.place: 0})


def no_entry(target: Target) -> None:
    target.redis.hdel(target.shown, target.member)


DAMAGES = [
    forgotten,
    of_another_kind,
    of_an_older_version,
    of_nonsense,
    of_one_more_board,
    of_somebody_active,
    of_no_text,
    a_place,
    no_entry,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_to_states_is_found_and_mended(
    withheld: Target, damage: Callable[[Target], None]
) -> None:
    damage(withheld)

    told = reconciled(withheld.pipeline)
    mended = reconciled(withheld.pipeline, repair=True)
    again = reconciled(withheld.pipeline)

    assert told.drift >= 1
    assert (told.repaired + told.other_repaired, mended.unrepaired) == (0, 0)
    assert (again.drift, again.checked) == (0, 3)
    assert differences(withheld.pipeline) == []


def test_a_state_of_a_newer_version_than_the_sources_is_not_taken_back_unasked(
    withheld: Target,
) -> None:
    newer = record(withheld)[:4] + (1 << 40).to_bytes(8) + b"b"
    withheld.redis.hset(withheld.keys.members, "hid", newer)

    kept = reconciled(withheld.pipeline, repair=True)
    left = record(withheld)
    forced = reconciled(withheld.pipeline, repair=True, accept_ahead=True)

    assert (kept.unrepaired, left) == (1, newer)
    assert forced.unrepaired == 0
    assert differences(withheld.pipeline) == []


def test_a_change_of_state_on_its_way_is_no_drift(withheld: Target) -> None:
    withheld.pipeline.client.show_member("hid", board="b", actor="a", reason="r", timeout_s=0)
    withheld.pipeline.client.hide_member("ann", actor="a", reason="r", timeout_s=0)

    report = reconciled(withheld.pipeline, wait_s=0.05)

    assert report.drift == 0

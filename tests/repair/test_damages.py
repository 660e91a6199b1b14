"""Every kind of damage, at every position, on every sort of board: found, named, and mended."""

from collections.abc import Callable
from typing import Any

import pytest

import truerank
from tests.projection.pipeline import Pipeline, differences
from tests.repair.damage import DAMAGES, Damage, Target, reconciled, to_a_newer_one
from truerank.model import Order, ScoreEvent, TieBreak

POSITIONS = {"first": 0, "middle": 2, "last": -1, "only": 0}
MEMBERS = ["ann", "bob", "cid", "d\u00e9\n", "eve"]


def plain(pipeline: Pipeline, members: list[str]) -> None:
    pipeline.client.create_board("t", seasons=["all"])
    pipeline.submit("t", {member: 10 * n for n, member in enumerate(members)})


def tied(pipeline: Pipeline, members: list[str]) -> None:
    ties = [TieBreak(name="time", order=Order.ASC), TieBreak(name="level", order=Order.DESC)]
    pipeline.client.create_board("t", operator="best", seasons=["all"], tie_breaks=ties)
    for n, member in enumerate(members):
        event = ScoreEvent(event_id=member, member=member, value=7, ties=(n % 2, n))
        truerank.submit_scores(pipeline.conn, "t", [event])


def ascending(pipeline: Pipeline, members: list[str]) -> None:
    pipeline.client.create_board("t", operator="best", order="asc", decimals=3, seasons=["all"])
    for n, member in enumerate(members):
        event = ScoreEvent(event_id=member, member=member, value=f"{n}.125")
        truerank.submit_scores(pipeline.conn, "t", [event])


def dense(pipeline: Pipeline, members: list[str]) -> None:
    pipeline.client.create_board("t", seasons=["all"], dense=True)
    pipeline.submit("t", {member: n // 2 for n, member in enumerate(members)})


def latest(pipeline: Pipeline, members: list[str]) -> None:
    pipeline.client.create_board("t", operator="latest", seasons=["all"])
    for score in (5, -1):
        pipeline.submit("t", {member: score + n for n, member in enumerate(members)})


def with_hidden(pipeline: Pipeline, members: list[str]) -> None:
    """Beside these members two who are withheld, and one who went."""
    plain(pipeline, members)
    pipeline.submit("t", {"hid": 15, "ban": 25, "gone": 35})
    pipeline.client.hide_member("hid", board="t", actor="a", reason="r", timeout_s=0)
    pipeline.client.ban_member("ban", actor="a", reason="r", timeout_s=0)
    pipeline.settle(pipeline.projector())
    pipeline.client.delete_member("gone", actor="a", reason="r", timeout_s=0)


BOARDS = [plain, tied, ascending, dense, latest, with_hidden]


def targets(pipeline: Pipeline, position: str) -> Target:
    """The member at a position of the ranking of board `t`."""
    (ranking,) = [r for r, (_, shown) in pipeline.rankings().items() if len(shown) > 0]
    places: Any = pipeline.redis.zrange(
        pipeline.keys().generation(pipeline.generation() or "").places(ranking), 0, -1
    )
    named = {
        shown[8:] + member.encode(): member
        for member, shown in pipeline.rankings()[ranking][1].items()
    }
    return Target(pipeline, ranking, named[places[POSITIONS[position]]])


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("board", BOARDS)
def test_every_damage_is_named_and_mended(
    single: Pipeline, board: Callable[[Pipeline, list[str]], None], position: str
) -> None:
    board(single, MEMBERS[:1] if position == "only" else MEMBERS)
    single.settle(single.projector())
    target = targets(single, position)
    standings = len(single.rankings()[target.ranking][1])

    for damage, (kinds, other) in DAMAGES.items():
        damage(target)
        told = reconciled(single)
        mended = reconciled(single, repair=True, accept_ahead=damage is to_a_newer_one)

        assert_named(damage, told.to_json(), kinds, other, standings)
        assert_named(damage, mended.to_json(), kinds, other, standings)
        assert (told.repaired, mended.unrepaired) == (0, 0), damage.__name__
        assert differences(single) == [], damage.__name__


def assert_named(
    damage: Damage,
    found: dict[str, Any],
    kinds: dict[str, int],
    other: set[str],
    standings: int,
) -> None:
    named = {kind: found[kind] for kind in ("missing", "stale", "ahead", "corrupt", "ghost")}
    wrong = {kind: number for kind, number in named.items() if number}
    assert wrong == kinds, f"{damage.__name__}: {found}"
    assert set(found["other"]) == other, f"{damage.__name__}: {found}"
    in_place = sum(number for kind, number in kinds.items() if kind != "ghost")
    assert found["current"] == standings - in_place, f"{damage.__name__}: {found}"


def a_prefix_away(target: Target) -> None:
    target.redis.zrem(target.keys.prefixes(target.ranking), target.place[:8])


def a_prefix_more(target: Target) -> None:
    target.redis.zadd(target.keys.prefixes(target.ranking), {b"\x01" * 8: 0})


def a_prefix_more_at_the_end(target: Target) -> None:
    target.redis.zadd(target.keys.prefixes(target.ranking), {b"\xff" * 8: 0})


def a_prefix_of_another_length(target: Target) -> None:
    target.redis.zadd(target.keys.prefixes(target.ranking), {target.place[:5]: 0})


def all_prefixes_away(target: Target) -> None:
    target.redis.delete(target.keys.prefixes(target.ranking))


PREFIXES = [
    a_prefix_away,
    a_prefix_more,
    a_prefix_more_at_the_end,
    a_prefix_of_another_length,
    all_prefixes_away,
]


@pytest.mark.parametrize("position", POSITIONS)
def test_damage_to_what_is_kept_for_dense_numbering_is_mended(
    single: Pipeline, position: str
) -> None:
    dense(single, MEMBERS[:1] if position == "only" else MEMBERS)
    single.settle(single.projector())
    target = targets(single, position)

    for damage in PREFIXES:
        damage(target)
        told = reconciled(single)
        mended = reconciled(single, repair=True)

        assert set(told.other) == {"dense prefixes"}, damage.__name__
        assert set(mended.other) == {"dense prefixes"}, damage.__name__
        assert (mended.unrepaired, mended.kinds.total()) == (0, told.checked), damage.__name__
        assert differences(single) == [], damage.__name__

"""Boards that ask to be counted densely (1223), from when they ask until they no longer do."""

from typing import Any

import pytest

from tests.projection.pipeline import Pipeline, differences
from tests.projection.test_crashes import LOST, cut_off_everywhere
from truerank.errors import NumberingNotKept, ProjectionUnavailable
from truerank.model import Source, TieBreak

SCORES = {"a": 101, "b": 100, "c": 100, "d": 99}
RANKS = {"a": 1, "b": 2, "c": 2, "d": 3}


def dense(single: Pipeline, board: str = "b", **how: Any) -> tuple[dict[str, int], Source]:
    """The dense rank of each member, and who said so."""
    page = single.client.top(board, numbering="dense", **how)
    return {entry.member: entry.rank for entry in page.entries}, page.freshness.source


def reached(single: Pipeline, *scores: int, **how: Any) -> tuple[list[int], Source]:
    """The dense rank of whoever reached each score, and who said so."""
    page = single.client.counts("b", scores, numbering="dense", **how)
    return [count.rank for count in page.counts], page.freshness.source


def ask(single: Pipeline, wanted: bool, board: str = "b") -> None:  # noqa: FBT001
    """Turn dense counting on or off."""
    assert single.client.update_board(board, {"dense": wanted}, actor="ops", reason="as asked")


def warming(single: Pipeline) -> list[Any]:
    """The copies that are being filled."""
    query = "SELECT id FROM truerank.generation WHERE state = 'warming'"
    return single.conn.execute(query).fetchall()


def test_a_board_that_does_not_ask_is_counted_by_postgresql(single: Pipeline) -> None:
    single.submit("b", SCORES)
    single.settle(single.projector())

    assert dense(single) == (RANKS, Source.DATABASE)
    with pytest.raises(NumberingNotKept) as caught:
        dense(single, source="projection")
    assert (caught.value.reason, caught.value.field) == ("numbering_not_kept", "numbering")
    assert reached(single, 100, 98) == ([2, 4], Source.DATABASE)
    with pytest.raises(NumberingNotKept):
        reached(single, 100, source="projection")
    assert not list(single.redis.scan_iter("*:d"))


def test_it_is_turned_on_for_a_live_board_while_scores_come(single: Pipeline) -> None:
    single.submit("b", SCORES)
    projector = single.projector(heartbeat_ms=0, scan_rows_max=2)
    single.settle(projector)
    generation = single.generation()

    ask(single, wanted=True)
    assert dense(single) == (RANKS, Source.DATABASE), "the copy is of before"
    with pytest.raises(ProjectionUnavailable):
        dense(single, source="projection")
    for _ in range(6):
        single.submit("b", {"late": 10, "c": 1})
        projector.step()
        assert single.client.top("b").freshness.source is Source.PROJECTION
    single.settle(projector)

    assert single.generation() != generation
    assert dense(single) == ({"c": 1, "a": 2, "b": 3, "d": 4, "late": 5}, Source.PROJECTION)
    assert reached(single, 100, 98, 0) == ([3, 5, 6], Source.PROJECTION)


def test_it_is_turned_off_again_and_nothing_is_left_of_it(single: Pipeline) -> None:
    ask(single, wanted=True)
    single.submit("b", SCORES)
    projector = single.projector(heartbeat_ms=0)
    single.settle(projector)
    assert dense(single) == (RANKS, Source.PROJECTION)

    ask(single, wanted=False)
    assert dense(single) == (RANKS, Source.DATABASE)
    single.submit("b", {"a": 1})
    single.settle(projector)

    assert dense(single) == (RANKS, Source.DATABASE)
    assert not list(single.redis.scan_iter("*:d"))


def test_a_change_that_comes_while_a_copy_is_filled_begins_another(single: Pipeline) -> None:
    single.submit("b", {f"m{i}": i // 2 for i in range(9)})
    projector = single.projector(heartbeat_ms=0, scan_rows_max=2)
    projector.step()
    projector.step()
    assert not projector.whole

    ask(single, wanted=True)
    ask(single, wanted=False)
    (before,) = warming(single)
    projector.step()
    (after,) = warming(single)
    ask(single, wanted=True)
    single.settle(projector)

    assert before != after, "given up, for nobody would read it"

    shown, source = dense(single)
    assert (sorted(shown.values()), source) == ([1, 2, 2, 3, 3, 4, 4, 5, 5], Source.PROJECTION)


def test_a_change_that_came_while_no_worker_ran_is_noticed(single: Pipeline) -> None:
    single.submit("b", SCORES)
    single.settle(single.projector())

    ask(single, wanted=True)
    single.settle(single.projector(heartbeat_ms=0))

    assert dense(single) == (RANKS, Source.PROJECTION)


def test_a_new_board_that_asks_fills_no_other_anew(single: Pipeline) -> None:
    single.submit("b", SCORES)
    projector = single.projector(heartbeat_ms=0)
    single.settle(projector)
    generation = single.generation()

    single.client.create_board(
        "new", seasons=["all", "month"], dense=True, tie_breaks=[TieBreak(name="t")]
    )
    single.client.submit_score("new", event_id="e1", member="ann", value=5, ties=[1])
    single.client.submit_score("new", event_id="e2", member="bob", value=5, ties=[1])
    single.client.submit_score("new", event_id="e3", member="cid", value=5, ties=[0])
    single.settle(projector)

    assert single.generation() == generation
    assert dense(single, "new") == ({"ann": 1, "bob": 1, "cid": 2}, Source.PROJECTION)
    assert single.client.board("new").spec.dense
    assert not single.client.board("b").spec.dense


def test_a_member_that_is_hidden_is_not_counted(single: Pipeline) -> None:
    ask(single, wanted=True)
    single.submit("b", SCORES)
    projector = single.projector()
    single.settle(projector)

    single.client.hide_member("a", actor="ops", reason="its wish", timeout_s=0)
    single.settle(projector)

    assert dense(single) == ({"b": 1, "c": 1, "d": 2}, Source.PROJECTION)


def test_what_is_lost_of_a_quiet_board_is_served_from_postgresql_and_refilled(
    single: Pipeline,
) -> None:
    ask(single, wanted=True)
    single.submit("b", SCORES)
    projector = single.projector(heartbeat_ms=0)
    single.settle(projector)
    (name,) = single.redis.scan_iter("*:d")

    single.redis.delete(name)
    assert dense(single) == (RANKS, Source.DATABASE)
    assert single.client.top("b").freshness.source is Source.PROJECTION, "who doesn't need it"
    single.settle(projector)

    assert dense(single) == (RANKS, Source.PROJECTION)


@LOST
def test_a_worker_cut_off_at_any_call_leaves_the_counts_to_the_next(
    single: Pipeline, lost: str
) -> None:
    ask(single, wanted=True)
    single.submit("b", {f"m{i}": i // 2 for i in range(6)})
    single.settle(single.projector())

    for _ in cut_off_everywhere(single, lost=lost, call_rows_max=1):
        single.settle(single.projector())
        single.submit("b", {"m1": 10, "m2": 10, "m3": 9, "m5": 1})

    single.settle(single.projector())
    assert differences(single) == []

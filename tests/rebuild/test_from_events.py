"""Standings are computed again from their events: what differs is told, and mended when told to."""

from typing import Any

import pytest

from tests.projection.pipeline import Pipeline
from truerank.errors import BoardUnknown
from truerank.repair.recompute import Recomputation, recompute

BY: Any = {"actor": "test", "reason": "test"}
WITHOUT_WAIT: Any = BY | {"timeout_s": 0.0}


def recomputed(pipeline: Pipeline, board: str | None = None, **how: Any) -> Recomputation:
    return pipeline.client.run(recompute(board, **how))


def found(pipeline: Pipeline, **how: Any) -> set[tuple[str, str, str | None, str | None]]:
    differing = recomputed(pipeline, **how).differing
    return {(each.member, each.kind, each.stored, each.recomputed) for each in differing}


def filled(single: Pipeline) -> None:
    single.submit("b", {"ann": 3, "bob": 5, "cid": 7, "dee": 9})
    single.submit("b", {"ann": 4})


def test_standings_that_are_what_their_events_come_to_are_not_told(single: Pipeline) -> None:
    for operator in ("best", "latest"):
        single.client.create_board(operator, operator=operator, seasons=["all", "day"])
    for board in ("b", "best", "latest"):
        first, *_ = single.submit(board, {"ann": 3, "bob": 5, "eve": 1})
        single.submit(board, {"ann": 2, "bob": 8})
        single.client.void_events(board, [first.event_id], **BY)
    single.client.reset_member("eve", **WITHOUT_WAIT)
    single.client.merge_members("bob", "ann", **WITHOUT_WAIT)

    told = recomputed(single)

    assert (told.differing, told.rankings) == ([], 5)


def test_what_was_changed_by_hand_is_told_and_left_alone(single: Pipeline) -> None:
    filled(single)
    single.conn.execute("UPDATE truerank.standing SET score = 999 WHERE member = 'ann'")
    single.conn.execute("DELETE FROM truerank.standing WHERE member = 'bob'")
    single.conn.execute("UPDATE truerank.standing SET member = 'zoe' WHERE member = 'cid'")

    expected = {
        ("ann", "different", "999", "7"),
        ("bob", "missing", None, "5"),
        ("cid", "missing", None, "7"),
        ("zoe", "extra", "7", None),
    }
    assert found(single) == expected
    assert found(single, board="b") == expected


def test_what_is_mended_is_what_events_come_to_and_readers_see_it(single: Pipeline) -> None:
    filled(single)
    projector = single.projector()
    single.settle(projector)
    single.conn.execute("UPDATE truerank.standing SET score = 999 WHERE member = 'ann'")
    single.conn.execute("DELETE FROM truerank.standing WHERE member = 'bob'")
    single.conn.execute("UPDATE truerank.standing SET member = 'zoe' WHERE member = 'cid'")

    mended = recomputed(single, repair=True)

    assert (len(mended.differing), mended.left) == (4, 0)
    assert found(single) == set()
    single.settle(projector)
    page = single.client.top("b", source="projection")
    scores = {entry.member: entry.score for entry in page.entries}
    assert scores == {"ann": "7", "bob": "5", "cid": "7", "dee": "9"}


def test_a_standing_left_under_a_merged_id_goes(single: Pipeline) -> None:
    filled(single)
    single.client.merge_members("bob", "ann", **WITHOUT_WAIT)
    single.conn.execute("UPDATE truerank.standing SET member = 'bob' WHERE member = 'ann'")

    assert recomputed(single, repair=True).left == 0

    rows = single.conn.execute("SELECT member, score FROM truerank.standing ORDER BY 1").fetchall()
    assert rows == [("ann", 12), ("cid", 7), ("dee", 9)]


def test_what_was_forgotten_counts_by_what_was_carried_over(single: Pipeline) -> None:
    filled(single)
    single.client.update_board("b", {"retention": "1 day"}, **BY)
    single.conn.execute("UPDATE truerank.event SET occurred_at = now() - interval '3 days'")
    single.conn.execute("UPDATE truerank.standing SET event_at = now() - interval '3 days'")
    recomputed(single, repair=True)
    while single.client.prune_events("b").pending:
        pass
    assert single.conn.execute("SELECT FROM truerank.event WHERE kind = 's'").fetchall() == []
    single.submit("b", {"ann": 1})

    assert found(single) == set()
    single.conn.execute("UPDATE truerank.standing SET score = 1 WHERE member = 'ann'")
    assert found(single, repair=True) == {("ann", "different", "1", "8")}
    assert found(single) == set()


def test_a_board_that_does_not_exist_is_refused(single: Pipeline) -> None:
    with pytest.raises(BoardUnknown):
        recomputed(single, "nowhere")

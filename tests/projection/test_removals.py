"""Standings that go, in the projection too: by corrections, and with their board."""

import pytest

from tests.projection.pipeline import Pipeline, differences


def places(single: Pipeline) -> dict[str, str]:
    page = single.client.top("b", source="projection")
    return {entry.member: entry.score for entry in page.entries}


def void(single: Pipeline, *receipts: str) -> None:
    single.client.void_events("b", receipts, actor="test", reason="test")


def test_a_member_without_events_is_gone_and_may_come_back(single: Pipeline) -> None:
    projector = single.projector()
    first, second = single.submit("b", {"ann": 3, "bob": 2})
    single.settle(projector)

    void(single, first.event_id)
    single.settle(projector)
    assert places(single) == {"bob": "2"}

    single.submit("b", {"ann": 1})
    void(single, second.event_id)
    single.settle(projector)
    assert places(single) == {"ann": "1"}


@pytest.mark.parametrize("order", ["void, score", "score, void"])
def test_a_removal_and_a_return_in_one_batch_end_as_in_sql(single: Pipeline, order: str) -> None:
    projector = single.projector()
    (first,) = single.submit("b", {"ann": 3})
    single.settle(projector)

    for step in order.split(", "):
        if step == "void":
            void(single, first.event_id)
        else:
            single.submit("b", {"ann": 1})

    single.settle(projector)
    assert places(single) == {"ann": "1"}


def test_a_member_removed_while_a_copy_is_filled_stays_away(single: Pipeline) -> None:
    receipts = single.submit("b", {f"m{i}": i for i in range(8)})
    projector = single.projector(scan_rows_max=3)
    projector.step()
    assert single.generation() is None

    void(single, receipts[0].event_id, receipts[7].event_id)

    single.settle(projector)
    assert places(single).keys() == {f"m{i}" for i in range(1, 7)}


def test_a_deleted_board_leaves_no_place_behind(single: Pipeline) -> None:
    single.client.create_board("other", seasons=["all"])
    single.submit("other", {"ann": 1})
    single.submit("b", {"ann": 1, "bob": 2})
    projector = single.projector()
    single.settle(projector)

    single.client.delete_board("b", actor="test", reason="test")
    while single.client.purge_boards(1):
        projector.step()

    single.settle(projector)
    single.redis.flushdb()
    single.settle(single.projector())
    assert differences(single) == []
    assert len(list(single.redis.scan_iter("*:z"))) == 1

"""Ties, bans, merges and the ends of a range: cases of the field on every way to read a board."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx
import pytest

from tests.members.conftest import BY
from tests.reads.command_line import Row
from tests.reads.paths import Paths, board
from truerank.model import Numbering, Outcome, ScoreEvent
from truerank.repair.recompute import recompute

TEN = datetime(2024, 6, 15, 10, tzinfo=UTC)


def send(paths: Paths, *scores: tuple[str, str, Any], at: datetime | None = None) -> list[str]:
    """Submit (event id, member, value) in one batch to board `b`, and project; the outcomes."""
    events = [ScoreEvent(event_id=e, member=m, value=v, occurred_at=at) for e, m, v in scores]
    receipts = paths.world.submit("b", events)
    return [receipt.code or receipt.outcome.value for receipt in receipts]


def post(paths: Paths, event_id: str, member: str, value: str) -> httpx.Response:
    """The same over HTTP, the value as it is to stand in the JSON."""
    body = f'{{"event_id": "{event_id}", "member": "{member}", "value": {value}}}'
    answer = paths.http.post(
        "/v1/boards/b/scores", content=body, headers={"content-type": "application/json"}
    )
    paths.world.project()
    return answer


def rebuild(paths: Paths) -> None:
    """Lose every standing and all of the projection; make both again, from the events."""
    pipeline = paths.world.pipeline
    pipeline.conn.execute("DELETE FROM truerank.standing")
    assert paths.client.run(recompute("b", repair=True)).left == 0
    pipeline.redis.flushdb()
    paths.world.projector = pipeline.projector()
    paths.world.project()


def listed(paths: Paths) -> list[Row]:
    """All rows, each with a rank of its own, page by page of one."""
    return paths.table("b", numbering=Numbering.ORDINAL, step=1)


def test_who_reaches_a_score_again_is_behind_who_kept_it_and_so_after_a_rebuild(
    paths: Paths,
) -> None:
    """TIE-2."""
    board(paths)
    lists = []
    for i, (member, value, after_s) in enumerate(
        [("A", 100, 0), ("B", 100, 5), ("A", -10, 30), ("A", 10, 60)]
    ):
        send(paths, (f"e{i}", member, value), at=TEN + timedelta(seconds=after_s))
        lists.append(listed(paths))

    again = [(1, "B", "100"), (2, "A", "100")]
    assert lists[1:] == [
        [(1, "A", "100"), (2, "B", "100")],
        [(1, "B", "100"), (2, "A", "90")],
        again,
    ]
    rebuild(paths)
    assert listed(paths) == again
    assert [rank for rank, _, _ in paths.table("b")] == [1, 1]


def test_equals_of_one_batch_stand_in_its_order_and_so_after_a_rebuild(paths: Paths) -> None:
    """TIE-6: ids and members sort the other way round than the batch."""
    board(paths)
    send(paths, ("z3", "C", 100), ("z2", "B", 100), ("z1", "A", 100))

    batch = [(1, "C", "100"), (2, "B", "100"), (3, "A", "100")]
    assert listed(paths) == batch
    rebuild(paths)
    assert listed(paths) == batch
    assert [rank for rank, _, _ in paths.table("b")] == [1, 1, 1]


def test_decimals_that_add_up_to_the_same_share_a_rank(paths: Paths) -> None:
    """NUM-6."""
    board(paths, decimals=3, dense=True)
    outcomes = send(
        paths,
        *(("1", "A", "0.1"), ("2", "A", "0.2"), ("3", "B", "0.3"), ("4", "C", "2.857")),
        *(("5", "D", "2.8569999999999998"), ("6", "E", "0.300")),
    )

    assert outcomes == [*["applied"] * 4, "value_too_precise", "applied"]
    tied = [(2, "A", "0.300"), (2, "B", "0.300"), (2, "E", "0.300")]
    for numbering in (Numbering.COMPETITION, Numbering.DENSE):
        assert paths.table("b", numbering=numbering, step=2) == [(1, "C", "2.857"), *tied]
    assert paths.compared("b", "D") is None
    assert paths.counts("b", ["0.3", "2.857"]) == [(1, 3), (0, 1)]


def test_what_would_fall_below_a_floor_is_refused_and_stays_so_after_a_rebuild(
    paths: Paths,
) -> None:
    """NUM-8."""
    board(paths, total_min=0)
    assert send(paths, ("e0", "A", 5), ("e1", "A", -10)) == ["applied", "total_out_of_range"]
    refused = post(paths, "e2", "A", "-10")
    assert (refused.status_code, refused.json()["code"]) == (422, "total_out_of_range")
    assert paths.table("b") == [(1, "A", "5")]

    assert send(paths, ("e3", "A", 3)) == ["applied"]

    assert paths.table("b") == [(1, "A", "8")]
    rebuild(paths)
    assert paths.table("b") == [(1, "A", "8")]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_total_beyond_64_bits_is_refused_and_its_id_is_free(paths: Paths, sign: int) -> None:
    """NUM-3."""
    near, rest = (9223372036854775800, 7) if sign > 0 else (-9223372036854775800, -8)
    board(paths)
    send(paths, ("e0", "A", near), ("e1", "B", 1))

    assert send(paths, ("e2", "A", 100 * sign)) == ["total_out_of_range"]
    refused = post(paths, "e2", "A", str(100 * sign))
    assert (refused.status_code, refused.json()["code"]) == (422, "total_out_of_range")
    order = [("A", str(near)), ("B", "1")][::sign]
    assert paths.table("b", step=1) == [(1 + at, *row) for at, row in enumerate(order)]

    assert post(paths, "e2", "A", str(rest)).status_code == 200
    order = [("A", str(near + rest)), ("B", "1")][::sign]
    assert paths.table("b", step=1) == [(1 + at, *row) for at, row in enumerate(order)]
    assert near + rest in {-(2**63), 2**63 - 1}


def test_minus_zero_ties_with_zero_and_what_is_no_number_harms_no_list(paths: Paths) -> None:
    """NUM-5."""
    board(paths)
    assert post(paths, "e1", "A", "-0").json()["standings"][0]["score"] == "0"
    assert post(paths, "e2", "C", '"-0"').status_code == 200
    send(paths, ("e3", "B", 0), ("e4", "D", "-0.000"))
    for text in ("NaN", "-Infinity", "1e400", "1.5", "true", "null", '"NaN"', '""', "[]", "{}"):
        assert post(paths, "bad", "bad", text).status_code in {400, 422}, text

    zeros = [(1, member, "0") for member in "ACBD"]
    assert paths.table("b", step=3) == zeros
    assert paths.counts("b", ["-0", -1, 1]) == [(0, 4), (4, 0), (0, 0)]
    assert post(paths, "bad", "Z", "-1").status_code == 200, "the id is free"
    assert paths.table("b", step=3) == [*zeros, (5, "Z", "-1")]


def test_a_ban_is_a_flag_and_the_score_goes_on_behind_it(paths: Paths) -> None:
    """RNK-8."""
    board(paths)
    paths.world.scores("b", ("A", 80), ("B", 70), ("C", 60))
    rest = [(1, "B", "70"), (2, "C", "60")]

    paths.client.ban_member("A", **BY)
    paths.world.project()
    assert paths.table("b") == rest
    stored = paths.client.standing("b", "A")
    assert stored is not None
    assert stored.score == "80"
    (receipt,) = paths.world.scores("b", ("A", 5))
    assert receipt.outcome is Outcome.APPLIED
    assert paths.table("b") == rest
    assert paths.compared("b", "A") is None

    paths.client.unban_member("A", **BY)
    paths.world.project()
    assert paths.table("b") == [(1, "A", "85"), (2, "B", "70"), (3, "C", "60")]


def test_merging_two_accounts_counts_a_pending_row_and_a_retry_once(paths: Paths) -> None:
    """RNK-9."""
    board(paths)
    merge = partial(paths.client.merge_members, "B", "A", **BY)
    paths.world.scores("b", ("A", 10), ("C", 12))
    send(paths, ("old", "B", 3))
    paths.world.pipeline.submit("b", {"B": 4})  # its row in the outbox is still pending
    merged = [(1, "A", "17"), (2, "C", "12")]

    assert merge().changed
    paths.world.project()
    assert paths.table("b") == merged

    assert send(paths, ("old", "B", 3)) == ["duplicate"]
    assert post(paths, "old", "B", "3").json()["outcome"] == "duplicate"
    assert not merge().changed
    paths.world.project()
    assert paths.table("b") == merged
    assert paths.compared("b", "B") is None


def test_merging_two_accounts_keeps_the_better_score_where_the_earlier_of_both_stood(
    paths: Paths,
) -> None:
    """RNK-9."""
    board(paths, operator="best")
    paths.world.scores("b", ("B", 9), ("rival", 9), ("A", 9), ("A", 5))
    assert listed(paths) == [(1, "B", "9"), (2, "rival", "9"), (3, "A", "9")]

    paths.client.merge_members("B", "A", **BY)
    paths.world.project()

    assert listed(paths) == [(1, "A", "9"), (2, "rival", "9")]

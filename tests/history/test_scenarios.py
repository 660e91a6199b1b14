"""Failures known from other pipelines, each driven step by step."""

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.projection.pipeline import (
    FailingLink,
    InterruptedLink,
    Pipeline,
    differences,
    pipeline,
)
from truerank.errors import ProjectionUnavailable
from truerank.outbox.snapshot import Snapshot
from truerank.projection.link import Link
from truerank.settings import Settings
from truerank.steps import ScriptCall

STEPS_MAX = 60


@pytest.fixture
def single(database_url: str, redis_url: str) -> Iterator[Pipeline]:
    """One group with one board `b`, and nothing that moves by itself."""
    still = Settings(
        database_url=database_url,
        redis_url=redis_url,
        heartbeat_ms=3_600_000,
        lease_ms=3_600_000,
        board_cache_ms=1,
    )
    with pipeline(still, groups=1) as made:
        made.client.create_board("b", seasons=["all"])
        yield made


def ticks(single: Pipeline) -> int:
    row = single.conn.execute("SELECT count(*) FROM truerank.tick").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("cut_at", range(6))
def test_who_takes_over_from_a_dead_worker_is_done_within_two_ticks(
    single: Pipeline, cut_at: int
) -> None:
    single.submit("b", {f"m{i}": i for i in range(6)})
    single.settle(single.projector())
    link: FailingLink = single.link(FailingLink)
    dead = single.projector(link, call_rows_max=1)
    dead.step()
    single.submit("b", {f"m{i}": 10 for i in range(6)})
    link.fails_at, link.executed = cut_at, True
    with pytest.raises(ProjectionUnavailable):
        dead.step()
    before = ticks(single)

    heir = single.projector()
    while differences(single):
        heir.step()
        assert ticks(single) <= before + 2


def test_work_longer_than_a_lease_has_no_double_effect_and_comes_to_an_end(
    single: Pipeline,
) -> None:
    """After each call the lease has passed, and the other worker begins: as often as it can."""
    single.submit("b", {f"m{i}": i for i in range(8)})
    single.settle(single.projector())
    links: list[InterruptedLink] = [single.link(InterruptedLink) for _ in range(2)]
    workers = [single.projector(link, call_rows_max=1, lease_ms=1) for link in links]
    for worker in workers:
        worker.step()
    interrupting: list[int] = []

    def let_other_begin(other: int) -> None:
        if not interrupting:
            interrupting.append(other)
            single.free_leases()
            workers[other].step()
            interrupting.clear()

    for n, link in enumerate(links):
        link.after_batch = lambda other=1 - n: let_other_begin(other)
    for round_ in range(5):
        single.submit("b", {f"m{i}": round_ + 1 for i in range(8)})
        for _ in range(STEPS_MAX):
            if not differences(single):
                break
            workers[round_ % 2].step()
        assert differences(single) == []


class Unfilling(Link):
    """Brings batches, and is cut off before a chunk of a scan."""

    def calls(self, calls: Sequence[ScriptCall]) -> tuple[list[Any], str | None]:
        if any(call.script == "fill" for call in calls):
            raise ProjectionUnavailable("the connection was cut")
        return super().calls(calls)


class Late(Link):
    """Lets something happen once while a chunk of a scan is on its way."""

    before_fill: Callable[[], object] | None = None

    def calls(self, calls: Sequence[ScriptCall]) -> tuple[list[Any], str | None]:
        if self.before_fill is not None and any(call.script == "fill" for call in calls):
            happen, self.before_fill = self.before_fill, None
            happen()
        return super().calls(calls)


def test_a_chunk_that_comes_late_leaves_what_the_log_has_brought_since(single: Pipeline) -> None:
    """Neither cursor nor position tells: only the versions do."""
    receipts = single.submit("b", {f"m{i}": i + 1 for i in range(4)})
    link: Late = single.link(Late)
    slow = single.projector(link, scan_rows_max=2)

    def overtake() -> None:
        single.submit("b", {"m0": 100})
        single.client.void_events("b", [receipts[1].event_id], actor="test", reason="test")
        with pytest.raises(ProjectionUnavailable):
            single.projector(single.link(Unfilling)).step()

    link.before_fill = overtake
    slow.step()
    assert link.before_fill is None, "a chunk was on its way"

    single.settle(single.projector())
    assert shown(single) == {"m0", "m2", "m3"}


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_are_brought_again_in_any_order_bring_nobody_back(
    single: Pipeline, seed: int
) -> None:
    """The oldest rows come again after a removal, in the live copy and in one being filled."""
    rng = random.Random(seed)
    projector = single.projector(batch_rows_max=1)
    single.settle(projector)
    starts = single.meta()
    receipts = single.submit("b", {f"m{i}": i + 1 for i in range(6)})
    gone = rng.sample(range(6), 3)
    single.settle(projector)
    for i in rng.sample(gone, 3):
        single.client.void_events("b", [receipts[i].event_id], actor="test", reason="test")
        single.submit("b", {f"m{rng.choice([j for j in range(6) if j not in gone])}": 1})
    single.settle(projector)
    left = {f"m{i}" for i in range(6)} - {f"m{i}" for i in gone}

    rewind(single, starts)
    single.settle(single.projector(batch_rows_max=1, call_rows_max=1))
    assert shown(single) == left

    single.redis.flushdb()
    filling = single.projector(scan_rows_max=2, batch_rows_max=1)
    filling.step()
    assert single.generation() is None, "it is being filled"
    rewind(single, starts)
    single.settle(filling)
    single.settle(single.projector(scan_rows_max=2))
    assert shown(single) == left


def rewind(single: Pipeline, meta: dict[str, str]) -> None:
    """Let every copy read the outbox again from where it began."""
    for key in single.redis.scan_iter("*:meta"):
        single.redis.hset(
            key, mapping={name: meta[name] for name in ("cursor", "base", "snapshot", "pending")}
        )


def shown(single: Pipeline) -> set[str]:
    page = single.client.top("b", limit=100, source="projection")
    return {entry.member for entry in page.entries}


def test_batches_and_calls_in_any_pieces_end_at_the_same_copy(single: Pipeline) -> None:
    single.settle(single.projector())
    rng = random.Random(5)
    for _ in range(25):
        pieces: Any = {
            "batch_rows_max": rng.randrange(1, 6),
            "call_rows_max": rng.randrange(1, 4),
        }
        projector = single.projector(**pieces)
        for _ in range(rng.randrange(1, 4)):
            single.submit("b", {f"m{rng.randrange(6)}": rng.randrange(1, 9) for _ in range(3)})
            projector.step()

    single.settle(single.projector())


XIDS = range(10, 16)


@st.composite
def histories(draw: st.DrawFn) -> list[Snapshot]:
    """Snapshots that one server gives one after the other, while transactions begin and end."""
    running: set[int] = set()
    next_xid = XIDS.start
    taken = []
    for _ in range(draw(st.integers(2, 8))):
        for _ in range(draw(st.integers(0, 2))):
            running.add(next_xid)
            next_xid += 1
        if running:
            running -= draw(st.sets(st.sampled_from(sorted(running))))
        taken.append(Snapshot(min(running, default=next_xid), next_xid, frozenset(running)))
    return taken


@given(taken=histories())
@settings(max_examples=60)
def test_a_token_once_shown_stays_shown_and_the_order_never_turns(taken: list[Snapshot]) -> None:
    for older, newer in pairwise(taken):
        assert newer.contains(older)
        assert all(newer.shows(xid) for xid in range(30) if older.shows(xid))
    for one in taken:
        for other in taken:
            if one.contains(other) and other.contains(one):
                assert [one.shows(x) for x in range(30)] == [other.shows(x) for x in range(30)]

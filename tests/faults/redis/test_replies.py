"""A wire that is cut inside a request or a reply, at each of its calls."""

from collections.abc import Iterator

import msgspec
import pytest

from tests.faults.proxy import Proxy, Side, redis_through
from tests.projection.pipeline import Pipeline, differences, pipeline, wait_until
from truerank.errors import ProjectionUnavailable
from truerank.projection.projector import Projector
from truerank.settings import Settings

_ROWS = 6


@pytest.fixture
def cut_off(settings: Settings, redis_url: str) -> Iterator[tuple[Pipeline, Projector, Proxy]]:
    """A board whose worker, driven by steps, goes through a proxy: one standing in each call."""
    beside = msgspec.structs.replace(settings, redis_url=redis_url, heartbeat_ms=1)
    with redis_through(redis_url) as (proxy, url), pipeline(beside, groups=1) as made:
        made.client.create_board("b", seasons=["all"])
        made.submit("b", {f"m{number}": 1 for number in range(_ROWS)})
        through = msgspec.structs.replace(beside, redis_url=url)
        with pipeline(through, groups=1) as behind:
            projector = behind.projector(call_rows_max=1, scan_rows_max=2)
            yield made, projector, proxy


def step(projector: Projector) -> None:
    """One step, which may be interrupted as in a worker's loop."""
    try:
        projector.step()
    except ProjectionUnavailable:
        return


def settle(made: Pipeline, projector: Projector) -> None:
    """Step until both stores agree, through interruptions and the pauses after refusals."""

    def agree() -> bool:
        step(projector)
        return projector.whole and not differences(made)

    wait_until(agree, "both stores agree")


def test_a_reply_lost_after_execution_repeats_nothing(
    cut_off: tuple[Pipeline, Projector, Proxy],
) -> None:
    """At every round trip of a first fill, and of the batches that come meanwhile."""
    made, projector, proxy = cut_off
    for nth in range(10):
        made.redis.flushdb()
        made.submit("b", {"m0": 1})
        proxy.lose_reply(b"EVALSHA", nth=nth)

        settle(made, projector)
        proxy.mend()
    assert proxy.faults >= 6


@pytest.mark.parametrize(("side", "stride"), [(Side.REQUESTS, 97), (Side.REPLIES, 7)])
def test_a_wire_cut_anywhere_in_a_batch_repeats_and_loses_nothing(
    cut_off: tuple[Pipeline, Projector, Proxy], side: Side, stride: int
) -> None:
    """The calls of a batch go in one round trip, so that some are carried out and some are not."""
    made, projector, proxy = cut_off
    settle(made, projector)
    applied: set[int] = set()
    for at in range(0, 40 * stride, stride):
        before = made.meta()["cursor"]
        made.submit("b", {f"m{number}": 1 for number in range(_ROWS)})
        proxy.cut_after(at, side)
        step(projector)
        pending = made.meta()["pending"]
        applied.add(int(pending.split("|")[1]) if pending else 0)
        proxy.mend()

        settle(made, projector)
        assert made.meta()["cursor"] != before
    assert proxy.faults >= 20
    if side is Side.REQUESTS:
        assert len(applied) >= 4, "it was cut between several calls"

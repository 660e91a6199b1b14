"""Readers and writers at full speed notice nothing of copies that replace each other."""

import os

import pytest

from tests.history.scene import Scene, wait_until
from truerank.repair.rebuild import ask_rebuilds, rebuild_states

SEED = int(os.environ.get("TRUERANK_SEED", "1"))


def rebuilt(scene: Scene, *, back: bool, keep_ms: int) -> None:
    """Rebuild both groups, and wait until both have switched."""
    client = scene.pipeline.client
    requests = client.run(
        ask_rebuilds([0, 1], actor="test", back=back, keep_ms=keep_ms, throttled=False)
    )
    wait_until(
        lambda: all(each.ended for each in client.run(rebuild_states(requests))), "both switched"
    )
    found = client.run(rebuild_states(requests))
    assert {each.state for each in found} == {"switched"}
    assert {each.tries for each in found} == {0 if back else 1}, "traffic was taken for damage"


def switched(scene: Scene, live: set[str | None]) -> bool:
    return not live & {scene.pipeline.generation(group) for group in range(2)}


@pytest.mark.parametrize(
    "switches",
    [18, pytest.param(102, marks=[pytest.mark.soak, pytest.mark.timeout(900)])],
)
def test_switches_in_a_row_take_no_reader_back_and_lose_no_write(
    observed: Scene, switches: int
) -> None:
    """To new copies, and every third time back to the copy that was live before."""
    observed.pieces = {"scan_rows_max": 20, "call_rows_max": 10, "heartbeat_ms": 5}
    observed.project()
    with observed.traffic(SEED) as traffic:
        observed.start_worker()
        for turn in range(switches // 2):  # of two groups each
            live = {observed.pipeline.generation(group) for group in range(2)}
            back = turn % 3 == 2
            rebuilt(observed, back=back, keep_ms=60_000 if turn % 3 == 1 else 0)
            assert switched(observed, live)
        observed.finish(traffic, seed=SEED)

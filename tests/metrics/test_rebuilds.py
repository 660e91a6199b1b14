"""How far copies are that are being filled, and what became of them."""

from typing import Any

import truerank
from tests.metrics.scrape import counted, told
from tests.projection.pipeline import Pipeline
from tests.rebuild.stages import ask, carry_out, state, step_until
from truerank.projection.link import Link
from truerank.telemetry.metrics import Metrics

PIECES: Any = {"heartbeat_ms": 1, "scan_rows_max": 4, "rebuild_share_percent": 100}


def test_a_rebuild_tells_how_far_it_is_and_counts_at_its_end(
    single: Pipeline, watcher: truerank.Truerank
) -> None:
    numbers = Metrics()
    assert single.settings.redis_url is not None
    link = Link(single.settings.redis_url, timeout_ms=5000, meter=numbers)
    projector = single.projector(link, **PIECES)
    single.submit("b", {f"m{n}": n for n in range(40)})
    single.settle(projector)
    request = ask(single, keep_ms=0)

    step_until(projector, lambda: state(single, request).rows > 4, "some rows are in")
    filling = told(watcher.status())
    step_until(projector, lambda: state(single, request).checked > 4, "some rows are checked")
    checking = told(watcher.status())
    carry_out(single, projector, request)
    single.settle(projector)

    assert 4 < (filling("truerank_rebuild_rows", group="0") or 0) < 40
    assert filling("truerank_rebuild_rows_about", group="0") == 40
    assert filling("truerank_rebuild_checked_rows", group="0") == 0
    assert checking("truerank_rebuild_rows", group="0") == 40
    assert (checking("truerank_rebuild_checked_rows", group="0") or 0) > 4
    assert told(watcher.status())("truerank_rebuild_rows", group="0") is None
    ended = counted(numbers)
    assert ended("truerank_rebuilds_total", cause="asked", outcome="switched") == 1
    assert ended("truerank_rebuilds_total", cause="lost", outcome="switched") == 1
    link.close()

"""What the comparison of all standings counts, and what is told of the last one."""

import msgspec
import pytest

import truerank
from tests.metrics.scrape import counted, told
from tests.projection.pipeline import Pipeline, wait_until
from tests.repair.damage import Target, its_score
from truerank.repair.routine import Routine
from truerank.telemetry.metrics import Metrics


@pytest.mark.parametrize("repair", [True, False])
def test_a_comparison_is_counted_and_the_last_one_told(
    single: Pipeline, watcher: truerank.Truerank, *, repair: bool
) -> None:
    single.submit("b", {"ann": 2, "bob": 1})
    single.settle(single.projector())
    (ranking,) = single.rankings()
    its_score(Target(single, ranking, "bob"))
    single.redis.hincrby(Target(single, ranking, "bob").keys.meta, "members", 1)
    settings = msgspec.structs.replace(single.settings, reconcile_repair=repair)
    routine, numbers, link = Routine(settings), Metrics(), single.link()
    before = told(watcher.status())

    wait_until(
        lambda: (
            routine.keep(single.worker_connection(), link, numbers),
            watcher.status().reconciled_at,
        )[1],
        "its end",
    )

    after, now = counted(numbers), told(watcher.status())
    assert before("truerank_reconcile_last_standings") is None
    assert after("truerank_reconciled_standings_total", kind="current") == 1
    assert after("truerank_reconciled_standings_total", kind="corrupt") == 1
    assert after("truerank_reconciled_drift_total", what="other") == 1
    assert after("truerank_reconciled_drift_total", what="repaired") == (2 if repair else None)
    assert now("truerank_reconcile_last_standings") == 2
    assert now("truerank_reconcile_last_drift") == 2
    assert now("truerank_reconcile_last_unrepaired") == (0 if repair else 2)
    assert now("truerank_problem", code="drift_left") == (None if repair else 1)
    assert now("truerank_reconcile_last_age_seconds") is not None
    assert now("truerank_reconcile_last_seconds") is not None

"""Every act keeps its promises, on engines of its own that leave nothing behind."""

import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.commands import Command
from tests.drill.drills import DEADLINE_S, drilled
from tests.processes import descendants, runs
from tests.projection.pipeline import wait_until
from truerank.drill.play import ACTS

ALL_S_MAX = 600.0
pytestmark = pytest.mark.timeout(ALL_S_MAX + 60)
# What a drill must not take any notice of.
ELSEWHERE = {
    "TRUERANK_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
    "TRUERANK_REDIS_URL": "redis://127.0.0.1:1/0",
    "TRUERANK_PREFIX": "elsewhere",
    "TRUERANK_CALL_ROWS_MAX": "nonsense",
}


def test_every_act_keeps_its_promises_on_engines_of_its_own(tmp_path: Path) -> None:
    status, told = drilled(deadline_s=ALL_S_MAX, **ELSEWHERE, XDG_DATA_HOME=str(tmp_path))

    assert [act["act"] for act in told["acts"]] == [act.name for act in ACTS]
    checks = [(act["act"], check) for act in told["acts"] for check in act["checks"]]
    assert [(act, check) for act, check in checks if not check["kept"]] == []
    assert (status, told["passed"]) == (0, True)
    assert {act for act, number in Counter(act for act, _ in checks).items() if number < 2} == set()
    assert {act["passed"] for act in told["acts"]} == {True}
    assert list(tmp_path.iterdir()) == []


def test_a_drill_that_is_told_to_stop_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    process = Command(None).start("drill", "--act", "flushed", TMPDIR=str(folder))
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            if "FLUSHALL" in line:
                break
        started = descendants(process.pid)
        assert started

        process.send_signal(signal.SIGTERM)

        process.stdout.read()
        assert process.wait(DEADLINE_S) == 130
    wait_until(lambda: not any(map(runs, started)), "everything that it started has ended")
    assert list(folder.iterdir()) == []

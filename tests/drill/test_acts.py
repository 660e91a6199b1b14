"""Every act keeps its promises, on engines of its own that leave nothing behind."""

import signal
from pathlib import Path

import pytest

from tests.cli.commands import Command
from tests.drill.drills import DEADLINE_S, drilled
from tests.processes import descendants, runs
from tests.projection.pipeline import wait_until
from truerank.drill.play import ACTS

pytestmark = pytest.mark.timeout(240)
# What a drill must not take any notice of.
ELSEWHERE = {
    "TRUERANK_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
    "TRUERANK_REDIS_URL": "redis://127.0.0.1:1/0",
    "TRUERANK_PREFIX": "elsewhere",
    "TRUERANK_CALL_ROWS_MAX": "nonsense",
}


@pytest.mark.parametrize("name", [act.name for act in ACTS])
def test_an_act_keeps_its_promises_on_engines_of_its_own(name: str, tmp_path: Path) -> None:
    status, told = drilled("--act", name, **ELSEWHERE, XDG_DATA_HOME=str(tmp_path))

    (act,) = told["acts"]
    assert [check for check in act["checks"] if not check["kept"]] == []
    assert (status, told["passed"], act["passed"]) == (0, True, True)
    assert len(act["checks"]) >= 2
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

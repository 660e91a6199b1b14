"""`truerank.sandbox()` in a plain script: nothing set up before, nothing left after."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.processes import descendants, runs
from tests.projection.pipeline import wait_until

SCRIPT = """
import json, sys
import truerank

with truerank.sandbox() as tr:
    tr.create_board("weekly points")
    receipt = tr.submit_score("weekly points", event_id="e1", member="ann", value=5)
    tr.wait_visible(receipt.token, ["weekly points"])
    page = tr.top("weekly points")
    entries = [(entry.rank, entry.member, entry.score) for entry in page.entries]
    print(json.dumps([receipt.outcome, page.freshness.source, entries]), flush=True)
    sys.stdin.read()
    if "fail" in sys.argv:
        raise KeyError("of the caller")
"""
TOLD = ["applied", "projection", [[1, "ann", "5"]]]


@contextmanager
def script(temporary: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_script_gets_a_whole_truerank_and_leaves_nothing(tmp_path: Path) -> None:
    with script(tmp_path) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == TOLD
        children = descendants(process.pid)
        assert len(children) >= 2
        assert list(tmp_path.iterdir())

        _, errors = process.communicate("")

    assert (process.returncode, errors) == (0, "")
    wait_until(lambda: not any(map(runs, children)), "the end of every engine")
    assert list(tmp_path.iterdir()) == []


def test_an_error_in_the_block_stops_the_engines_and_is_told(tmp_path: Path) -> None:
    with script(tmp_path, "fail") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == TOLD
        children = descendants(process.pid)

        _, errors = process.communicate("")

    assert process.returncode == 1
    assert "KeyError: 'of the caller'" in errors
    wait_until(lambda: not any(map(runs, children)), "the end of every engine")


def test_a_script_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    with script(tmp_path) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == TOLD
        children = descendants(process.pid)
        assert children

        process.kill()
        process.wait()

    wait_until(lambda: not any(map(runs, children)), "the end of every engine")

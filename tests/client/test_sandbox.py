"""`truerank.sandbox()` in a plain script: nothing set up before, nothing left after."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.projection.pipeline import wait_until

SCRIPT = """
import json, os, sys
from pathlib import Path
import truerank
from truerank.steps import Query

with truerank.sandbox(Path(sys.argv[1]) if sys.argv[1:] and sys.argv[1] else None) as tr:
    tr.create_board("weekly points")
    receipt = tr.submit_score("weekly points", event_id="e1", member="ann", value=5)
    tr.wait_visible(receipt.token, ["weekly points"])
    page = tr.top("weekly points")
    ((postmaster,),) = tr.run(Query("SELECT pg_read_file('postmaster.pid')"))
    folder = tr.run(Query("SHOW data_directory"))[0][0]
    print(json.dumps({
        "entries": [(e.rank, e.member, e.score) for e in page.entries],
        "outcome": receipt.outcome,
        "source": page.freshness.source,
        "postmaster": int(postmaster.split()[0]),
        "folder": os.path.dirname(folder) if folder.startswith("/") else folder,
    }), flush=True)
    if "wait" in sys.argv:
        sys.stdin.read()
    if "fail" in sys.argv:
        raise KeyError("of the caller")
"""


def children_of(pid: int) -> set[int]:
    """All descendants of a process."""
    found: set[int] = set()
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, tasks.read_text().split()):
            found |= {child} | children_of(child)
    return found


def alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if Path(f"/proc/{pid}").exists()}


@contextmanager
def script(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_script_gets_a_whole_truerank_and_leaves_no_process(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with script(str(folder), "wait") as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        children = children_of(process.pid)
        assert told["postmaster"] in children

        _, errors = process.communicate("")

    assert (process.returncode, errors) == (0, "")
    assert told["entries"] == [[1, "ann", "5"]]
    assert (told["outcome"], told["source"]) == ("applied", "projection")
    wait_until(lambda: not alive(children), "the end of every engine")
    assert folder.is_dir(), "a folder that was asked for is kept"


def test_an_error_in_the_block_stops_the_engines_and_is_told() -> None:
    with script() as process:
        _, errors = process.communicate()
    assert process.returncode == 0, errors

    with script("", "wait", "fail") as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        children = children_of(process.pid)
        _, errors = process.communicate("")
    assert json.loads(line)["entries"] == [[1, "ann", "5"]]
    assert process.returncode == 1
    assert "KeyError: 'of the caller'" in errors
    wait_until(lambda: not alive(children), "the end of every engine")


@pytest.mark.parametrize("how", ["terminate", "kill"])
def test_a_script_that_is_ended_leaves_no_process(tmp_path: Path, how: str) -> None:
    with script(str(tmp_path / "data"), "wait") as process:
        assert process.stdout is not None
        process.stdout.readline()
        children = children_of(process.pid)
        assert children

        getattr(process, how)()
        process.wait()

    wait_until(lambda: not alive(children), "the end of every engine")

"""The command line as people and scripts use it: processes on data folders of their own."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.commands import DEADLINE_S, Command


@pytest.fixture
def truerank(tmp_path: Path, preloaded_truerank: Path) -> Command:
    """The command on an empty data folder."""
    return Command(tmp_path / "data", preloaded_truerank)


@pytest.fixture
def started() -> Iterator[Callable[[subprocess.Popen[str]], subprocess.Popen[str]]]:
    """Takes processes that the test starts; those that still run at its end are ended."""
    processes: list[subprocess.Popen[str]] = []

    def take(process: subprocess.Popen[str]) -> subprocess.Popen[str]:
        processes.append(process)
        return process

    yield take
    for process in processes:
        with process:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()


@pytest.fixture
def wait_until() -> Callable[[Callable[[], bool], str], None]:
    """Wait for a condition, and fail with what was awaited where it does not come true."""

    def wait(condition: Callable[[], bool], awaited: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, f"still not true: {awaited}"
            time.sleep(0.01)

    return wait

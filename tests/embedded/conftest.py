"""Processes that run engines, which tests end in every way there is."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_DEADLINE_S = 60.0
_PROGRAM = """
import json, sys
from dataclasses import fields
from pathlib import Path
from truerank.embedded import start_engines

with start_engines(Path(sys.argv[1])) as engines:
    told = {
        each.name: getattr(engines, each.name)
        for each in fields(engines)
        if each.name != "processes"
    }
    print(json.dumps(told, default=str), flush=True)
    sys.stdin.read()
"""


@dataclass
class Starter:
    """Another process that called start_engines() and holds what it got until its input ends."""

    process: subprocess.Popen[str]

    def engines(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"ended with status {self.process.wait(_DEADLINE_S)} before it was ready"
        told: dict[str, Any] = json.loads(line)
        return told

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(_DEADLINE_S)

    def tell_to_end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def end(self) -> None:
        self.tell_to_end()
        assert self.process.wait(_DEADLINE_S) == 0


@pytest.fixture
def starter() -> Iterator[Callable[[Path], Starter]]:
    """Start such a process on a folder; those that a test leaves running are ended."""
    started: list[subprocess.Popen[str]] = []

    def start(data: Path) -> Starter:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(data)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return Starter(process)

    yield start
    for process in started:
        with process:  # closes its pipes, and waits
            process.kill()


@pytest.fixture
def wait_until() -> Callable[[Callable[[], bool], str], None]:
    """Wait for a condition, and fail with what was awaited where it does not come true."""

    def wait(condition: Callable[[], bool], awaited: str) -> None:
        deadline = time.monotonic() + _DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, f"still not true: {awaited}"
            time.sleep(0.005)

    return wait

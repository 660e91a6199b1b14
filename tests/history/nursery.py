"""Processes of Truerank that can be killed: forked from one that has loaded everything already.

A fork costs milliseconds where the start of an interpreter costs half a second. Run as a program
it reads requests, one JSON object a line, and answers each with one.
"""

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import psutil
import psycopg
import structlog

import truerank
from truerank import Truerank, upkeep
from truerank.command.attach import backfill
from truerank.crashpoints import VARIABLE
from truerank.embedded import start_engines
from truerank.gatherer import Gatherer
from truerank.intake.lines import Row
from truerank.intake.load import Loader
from truerank.model import ScoreEvent
from truerank.projection import worker
from truerank.settings import Settings

_REPOSITORY = Path(__file__).resolve().parents[2]
_DEADLINE_S = 60.0
_POLL_S = 0.002


class Nursery:
    """Starts processes, kills them, and tells how they ended. Close it at the end."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.history.nursery"],
            cwd=_REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        self._running: set[int] = set()

    def start(self, role: str, settings: Settings, *, crash_at: str = "", **arguments: Any) -> int:
        """Start a process in one of the roles below, and give its number."""
        pid = int(
            self._ask(
                role=role,
                settings=msgspec.to_builtins(settings),
                crash_at=crash_at,
                arguments=msgspec.to_builtins(arguments),
            )
        )
        self._running.add(pid)
        return pid

    def ended(self, pid: int) -> int | None:
        """How a process ended: its status, or the negative number of a signal; None: it runs."""
        status = self._ask(ended=pid)
        if status is not None:
            self._running.discard(pid)
        return None if status is None else int(status)

    def stands_still(self, pid: int) -> bool:
        """Whether a process that hasn't been waited for was told to stand still."""
        return psutil.Process(pid).status() == psutil.STATUS_STOPPED

    def wait(self, pid: int) -> int:
        """Wait for a process to end; see `ended`."""
        deadline = time.monotonic() + _DEADLINE_S
        while (status := self.ended(pid)) is None:
            assert time.monotonic() < deadline, "it does not end"
            time.sleep(_POLL_S)
        return status

    def signal(self, pid: int, number: signal.Signals) -> None:
        """Send a signal to a process that hasn't been waited for."""
        assert pid in self._running, "its number may be somebody else's by now"
        os.kill(pid, number)

    def kill_all(self) -> None:
        """Kill whatever still runs."""
        for pid in list(self._running):
            self.signal(pid, signal.SIGKILL)
            self.wait(pid)

    def close(self) -> None:
        """Kill whatever still runs, and the nursery."""
        self.kill_all()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(_DEADLINE_S)
        self._process.stdout.close()

    def _ask(self, **request: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def work(settings: Settings) -> None:
    """Project until told to stop."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    chores = threading.Thread(target=upkeep.run, args=(settings, stop))
    chores.start()
    worker.run(settings, stop)
    chores.join()


def submit(settings: Settings, board: str, events: list[ScoreEvent]) -> None:
    """Submit through the client, all at once."""
    with Truerank(settings) as client:
        client.submit_scores(board, events)


def submit_with_row(settings: Settings, board: str, events: list[ScoreEvent]) -> None:
    """Submit in a transaction that writes a row of one's own as well."""
    assert settings.database_url is not None
    with psycopg.connect(settings.database_url) as conn:
        conn.execute(
            "INSERT INTO own (event_id) SELECT unnest(%s::text[])", ([e.event_id for e in events],)
        )
        truerank.submit_scores(conn, board, events)


def gather(settings: Settings, board: str, events: list[ScoreEvent]) -> None:
    """Submit one by one, at the same time, through a gatherer."""

    async def run() -> None:
        async with Gatherer(settings) as gatherer:
            await asyncio.gather(*(gatherer.submit_score(board, event) for event in events))

    asyncio.run(run())


def fill_back(settings: Settings, attachment: int, rows_max: int) -> None:
    """Take in the rows of an attached table."""
    with Truerank(settings) as client:
        client.run(backfill(attachment, actor="test", rows_max=rows_max))


def load(settings: Settings, board: str, events: list[ScoreEvent], batch_events: int) -> None:
    """Load events as lines of a file."""
    with Truerank(settings) as client:
        rows = [Row(line=n, board=board, event=event) for n, event in enumerate(events, 1)]
        Loader(client, batch_events=batch_events).load(rows)


def purge(settings: Settings, rows_max: int) -> None:
    """Remove what deleted boards have left, slice by slice."""
    with Truerank(settings) as client:
        while client.purge_boards(rows_max):
            pass


def own_engines(settings: Settings, folder: str) -> None:
    """Start embedded engines, and write to them."""
    del settings
    with start_engines(Path(folder)) as engines, psycopg.connect(engines.database_url) as conn:
        conn.execute("CREATE TABLE IF NOT EXISTS started (at timestamptz DEFAULT now())")
        conn.execute("INSERT INTO started DEFAULT VALUES")


_ROLES: Mapping[str, Callable[..., None]] = {
    role.__name__: role
    for role in (work, submit, submit_with_row, gather, fill_back, load, purge, own_engines)
}


def main() -> None:
    """Serve requests until standard input ends; kill what runs then."""
    running: set[int] = set()
    for line in sys.stdin:
        request = json.loads(line)
        if "role" in request:
            pid = os.fork()
            if pid == 0:
                _be(request)
            running.add(pid)
            _answer(pid)
            continue
        found, status = os.waitpid(request["ended"], os.WNOHANG)
        running.discard(found)
        _answer(os.waitstatus_to_exitcode(status) if found else None)
    for pid in running:
        os.kill(pid, signal.SIGKILL)


def _answer(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _be(request: dict[str, Any]) -> None:
    # Whatever happens, this process must not go on as a second nursery.
    status = 1
    try:
        sys.stdin.close()
        os.environ[VARIABLE] = request["crash_at"]
        # Standard output belongs to the nursery.
        structlog.configure(
            wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        )
        arguments = request["arguments"]
        if "events" in arguments:
            arguments["events"] = msgspec.convert(arguments["events"], list[ScoreEvent])
        _ROLES[request["role"]](msgspec.convert(request["settings"], Settings), **arguments)
        status = 0
    except BaseException:  # noqa: BLE001 - the test sees the status, and this
        traceback.print_exc()
    finally:
        os._exit(status)


if __name__ == "__main__":
    main()

"""Workers as processes of their own, which can be killed, frozen and thawed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import truerank
from truerank.crashpoints import VARIABLE
from truerank.settings import Settings

WAIT_S_MAX = 40.0
_POLL_S = 0.005
_STOP_S_MAX = 20.0
_READY = b"ready"


class DrillStuck(Exception):
    """Something that a drill waited for did not happen in time. The message says what."""


def wait_for(condition: Callable[[], bool], awaited: str, *, limit_s: float = WAIT_S_MAX) -> float:
    """Wait until something holds; how long that took, in seconds.

    Raises:
        DrillStuck: it took longer than `limit_s`.
    """
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > limit_s:
            raise DrillStuck(f"after {limit_s:.0f} s still not so: {awaited}")
        time.sleep(_POLL_S)
    return time.monotonic() - began


class Worker:
    """One `truerank worker`.

    Args:
        process: as started.
        log: what it writes; read by nobody but `is_ready` and whoever wants to know why it ended.
    """

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log
        self._stopped = False

    @property
    def is_ready(self) -> bool:
        """Whether it said that the projection is kept up to date."""
        self._check()
        return _READY in self._log.read_bytes()

    @property
    def is_frozen(self) -> bool:
        """Whether it stands still."""
        self._check()
        return self._stopped

    @property
    def ended_by(self) -> int | None:
        """The signal that ended it; 0 where it ended by itself, None while it runs."""
        self._look()
        status = self._process.returncode
        return None if status is None else max(0, -status)

    def freeze(self) -> None:
        """Let it stand still, as a machine does that is out of breath."""
        self._process.send_signal(signal.SIGSTOP)
        wait_for(lambda: self.is_frozen, "the worker stands still")

    def thaw(self) -> None:
        """Let it go on."""
        self._stopped = False
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it as `kill -9` does: it can't do anything about it."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Tell it to end, and wait for it."""
        if self._stopped:
            self.kill()
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self.ended_by is None:
            self._process.send_signal(number)
        deadline = time.monotonic() + _STOP_S_MAX
        while self.ended_by is None:
            if time.monotonic() > deadline:
                self._process.kill()
            time.sleep(_POLL_S)

    def _check(self) -> None:
        self._look()
        if self._process.returncode is not None:
            raise DrillStuck(f"the worker ended: {self._log.read_text(errors='replace')[-500:]}")

    def _look(self) -> None:
        """Learn from the system whether it stopped or ended; subprocess would miss the former."""
        while self._process.returncode is None:
            pid, status = os.waitpid(self._process.pid, os.WNOHANG | os.WUNTRACED)
            if pid == 0:
                return
            if os.WIFSTOPPED(status):
                self._stopped = True
            else:
                self._process.returncode = os.waitstatus_to_exitcode(status)


@contextmanager
def worker(
    settings: Settings,
    folder: Path,
    *,
    crash_at: str | None,
    redis_url: str | None,
    further: Mapping[str, str],
) -> Iterator[Worker]:
    """Run a worker for the length of the block, or until it ends.

    Args:
        settings: of which it gets the time that a lease holds.
        folder: whose engines run; it ends with them, however this process ends.
        crash_at: see `truerank.crashpoints`; None: nowhere.
        redis_url: another way to Redis.
        further: environment variables.
    """
    # Its routine would mend what an act damages before anybody has looked.
    quiet = {"TRUERANK_RECONCILE_MS": "0"}
    names = {"TRUERANK_LEASE_MS": str(settings.lease_ms), **quiet, **further}
    engines = ["--data", str(folder)]
    if redis_url is not None:
        assert settings.database_url is not None, "the stage has engines"
        names |= {"TRUERANK_DATABASE_URL": settings.database_url, "TRUERANK_REDIS_URL": redis_url}
        engines = []
    if crash_at is not None:
        names[VARIABLE] = crash_at
    log = folder / f"worker-{time.monotonic_ns()}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            # -P: a folder `truerank` where the drill was started isn't the package.
            [sys.executable, "-P", "-m", "truerank", *engines, "worker"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment() | names,
            start_new_session=True,  # Ctrl-C is for the drill, which ends its workers
        )
    made = Worker(process, log)
    try:
        yield made
    finally:
        made.stop()


def environment() -> dict[str, str]:
    """Of a process that runs the same code as this one, whatever Truerank's variables say."""
    found = importing_from(Path(truerank.__file__).parent.parent)
    return {name: text for name, text in found.items() if not name.startswith("TRUERANK_")}


def importing_from(folder: Path) -> dict[str, str]:
    """Of a process that imports the package from a folder, and is otherwise as this one."""
    path = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path)}

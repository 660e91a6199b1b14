"""What a process is made of that runs until it is told to stop: signals, threads, one folder."""

import fcntl
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

import psycopg

from truerank.cli.output import note
from truerank.embedded import Engines, start_engines
from truerank.embedded.folder import DataFolder, write_private
from truerank.embedded.state import running
from truerank.errors import DatabaseUnavailable, EngineError, ProjectionUnavailable

_POLL_S = 0.05
_WATCH_S = 0.5
_TURN_S = 0.2
_READY_S_MAX = 60.0
# Of a turn of the interpreter, in seconds. Most parts wait for the network, and compute little: one
# that computes for long would hold each of their steps up by the usual 5 ms.
_TURN_OF_THREADS_S = 0.001


class AlreadyUp(EngineError):
    """Another `truerank up` serves this data folder. Use that one, or stop it first."""

    code = "already_up"


class EnginesGone(EngineError):
    """The process whose engines were used has ended, and the engines with it. Start again."""

    code = "engines_gone"


class PartEnded(EngineError):
    """A part of the process ended that should run until the process is told to stop."""

    code = "part_ended"


@contextmanager
def until_told() -> Iterator[None]:
    """Leave the block, from wherever it is, on SIGINT or SIGTERM; further ones are ignored."""

    def leave(_number: int, _frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {each: signal.signal(each, leave) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class Parts:
    """The threads of a process. The failure of one ends all; leaving the block ends all too."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._threads: list[threading.Thread] = []
        sys.setswitchinterval(_TURN_OF_THREADS_S)

    def start(self, name: str, run: Callable[[], None], *, passing: bool = False) -> None:
        """Run a part in a thread.

        Args:
            name: of the thread, and in messages.
            run: returns soon after `stop` is set.
            passing: it may end before.
        """
        thread = threading.Thread(target=self._run, args=(name, run, passing), name=name)
        self._threads.append(thread)
        thread.start()

    def wait_ready(self, ready: threading.Event, name: str) -> None:
        """Wait for a part to get ready.

        Raises:
            PartEnded: it did not in time; or the error with which a part ended.
        """
        deadline = time.monotonic() + _READY_S_MAX
        while not ready.wait(_POLL_S):
            self.check()
            if time.monotonic() > deadline:
                raise PartEnded(f"the {name} was not ready after {_READY_S_MAX:.0f} s")

    def wait(self) -> None:
        """Wait until a part ends; signals come through.

        Raises:
            PartEnded: or the error with which the part ended.
        """
        self._ended.wait()
        self.check()

    def check(self) -> None:
        """Raise what a part ended with, where one has ended.

        Raises:
            PartEnded: or the error with which the part ended.
        """
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, name: str, run: Callable[[], None], passing: bool) -> None:  # noqa: FBT001
        try:
            run()
        except BaseException as exc:  # noqa: BLE001 - raised again in the main thread
            self._fail(exc)
        else:
            if not passing and not self.stop.is_set():
                self._fail(PartEnded(f"the {name} ended by itself"))

    def _fail(self, failure: BaseException) -> None:
        self._failure = self._failure or failure
        self._ended.set()


@contextmanager
def only_up(data: Path) -> Iterator[DataFolder]:
    """Be the only `truerank up` on a data folder for the length of the block.

    Raises:
        AlreadyUp: there is another; the message has its address.
    """
    folder = DataFolder(data)
    with ExitStack() as stack:
        try:
            stack.enter_context(folder.holding("up", fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError as exc:
            raise AlreadyUp(_other(folder)) from exc
        stack.callback(_address(folder).unlink, missing_ok=True)
        yield folder


def publish_address(folder: DataFolder, url: str) -> None:
    """Let another `truerank up` tell where this one is."""
    told = {"url": url, "pid": os.getpid()}
    write_private(_address(folder), json.dumps(told) + "\n", folder.account)


@contextmanager
def own_engines(folder: DataFolder, *, tcp: bool) -> Iterator[Engines]:
    """Start engines that end with this process and no earlier.

    Where a command runs some just now, they would end with that command: it is waited for.
    """
    waiting = False
    while True:
        others = running(folder)
        if others is None:
            with start_engines(folder.path, tcp=tcp) as engines:
                if not engines.attached:
                    yield engines
                    return
        elif not waiting:
            note(f"process {others.owner_pid} works on {folder.path}: waiting for it to end")
            waiting = True
        time.sleep(_TURN_S)


def watch_owner(engines: Engines, stop: threading.Event) -> None:
    """Fail once the process ends that owns the engines we attached to.

    Raises:
        EnginesGone: it has ended.
    """
    folder = DataFolder(engines.data)
    while not stop.wait(_WATCH_S):
        if not folder.is_locked("owner"):
            raise _gone(engines)


def watch_engines(engines: Engines, stop: threading.Event) -> None:
    """Fail once an engine ends that this process started.

    Raises:
        EngineEnded: it has ended.
    """
    while not stop.wait(_WATCH_S):
        engines.check_alive()


@contextmanager
def telling_of_owner(engines: Engines) -> Iterator[None]:
    """Let an error in the block say that the engines we attached to have gone, where they have.

    Raises:
        EnginesGone: in place of the error of a store that went away with its owner.
    """
    try:
        yield
    except (DatabaseUnavailable, ProjectionUnavailable, psycopg.OperationalError) as exc:
        now = running(DataFolder(engines.data))  # None as soon as the owner begins to end
        if now is None or now.owner_pid != engines.owner_pid:
            raise _gone(engines) from exc
        raise


def _gone(engines: Engines) -> EnginesGone:
    return EnginesGone(
        f"process {engines.owner_pid}, which ran the engines of {engines.data}, has ended"
    )


def _other(folder: DataFolder) -> str:
    try:
        told = json.loads(_address(folder).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return f"another `truerank up` is just starting on {folder.path}"
    return f"process {told['pid']} serves {folder.path} already, at {told['url']}"


def _address(folder: DataFolder) -> Path:
    return folder.path / "up.json"

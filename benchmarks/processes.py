"""Processes that say when they are ready, begin when told, and hand back one result.

Started with spawn, so that nothing of the parent is shared. A child whose parent is gone reads
the end of its pipe, and ends.
"""

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

Pipe: TypeAlias = "Connection[Any, Any]"

_READY_S_MAX = 60.0
_RESULT_S_MAX = 600.0
_END_S_MAX = 20.0


@dataclass(frozen=True, slots=True)
class Task:
    """A module's function that takes a pipe and these arguments; all of it can be pickled."""

    target: Callable[..., None]
    args: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Child:
    """A process that is ready, and this end of its pipe."""

    name: str
    pipe: Pipe
    pid: int

    def begin(self) -> None:
        """Let it go on from where it said that it is ready."""
        self.pipe.send(None)

    def result(self) -> Any:
        """What it hands back at its end.

        Raises:
            ChildFailed: it ended without a result, or took too long.
        """
        return _received(self.name, self.pipe, _RESULT_S_MAX)


class ChildFailed(RuntimeError):
    """A process ended early or hangs; what it printed says more."""


@contextmanager
def started(task: Task) -> Iterator[Child]:
    """Run a task in a process of its own for the length of the block; yields once it is ready.

    At the end of the block its pipe is closed, which tells a worker to stop.

    Raises:
        ChildFailed: it did not get ready.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=task.target, args=(theirs, *task.args), daemon=True)
    process.start()
    theirs.close()
    try:
        assert process.pid is not None, "it was started"
        child = Child(task.target.__qualname__, ours, process.pid)
        _received(child.name, ours, _READY_S_MAX)
        yield child
    finally:
        ours.close()
        process.join(_END_S_MAX)
        if process.is_alive():
            process.kill()
            process.join()


def ready(pipe: Pipe) -> None:
    """Called in the child: say that all is set up, and wait to be told to begin."""
    pipe.send(None)
    pipe.recv()


def stop_on_close(pipe: Pipe) -> threading.Event:
    """Called in the child: an event that is set when the parent closes the pipe, or is gone."""
    stop = threading.Event()

    def wait() -> None:
        # Closed at the other end, or, when this process ends by itself, at this one.
        with suppress(EOFError, OSError):
            pipe.recv()
        stop.set()

    threading.Thread(target=wait, daemon=True).start()
    return stop


def _received(name: str, pipe: Pipe, seconds_max: float) -> Any:
    try:
        if pipe.poll(seconds_max):
            return pipe.recv()
    except EOFError as exc:
        raise ChildFailed(f"{name} ended early") from exc
    raise ChildFailed(f"{name} gave no answer in {seconds_max:.0f} s")

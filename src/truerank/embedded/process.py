"""Run one engine so that it never outlives the process that started it.

A shell between the two holds the read end of a pipe. When the starter ends, however it ends, the
pipe closes, and the shell sends the engine the signal that makes it stop cleanly.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from truerank.embedded.account import Account
from truerank.embedded.errors import EngineStartFailed
from truerank.embedded.folder import DataFolder
from truerank.errors import EngineError

START_S_MAX = 300.0  # recovery after a crash may have much to read
STOP_S_MAX = 60.0  # a last checkpoint on a slow disk
POLL_S = 0.005
_LOG_BYTES_MAX = 10 * 1024 * 1024
_LOG_LINES_SHOWN = 20

# Arguments: signal, file for stdin, folder of sockets, then the program. The reader is a process
# of its own, so the engine is stopped even where somebody kills the shell. It repeats the signal:
# an engine that has only just begun does not listen yet. A trapped signal ends `wait` early, hence
# the loop. After clean stops the last shell finds the folder empty.
_WATCH = r"""
exec 3<&0
signal=$1 input=$2 sockets=$3
shift 3
"$@" <"$input" 3<&- &
engine=$!
trap 'kill -s "$signal" $engine 2>/dev/null' INT TERM HUP
(
  read -r _ <&3
  trap 'kill $pause 2>/dev/null; exit' TERM
  while kill -s "$signal" $engine 2>/dev/null; do sleep 0.2 & pause=$!; wait $pause; done
) &
reader=$!
wait $engine; status=$?
while kill -0 $engine 2>/dev/null; do wait $engine; status=$?; done
kill $reader 2>/dev/null
[ $status -eq 0 ] && rmdir "$sockets" 2>/dev/null
exit $status
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """The log file of one engine; `start` is where this run begins in it, in bytes."""

    path: Path
    start: int

    def end(self) -> str:
        """Give the last lines of this run."""
        with self.path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(self.start, size - 16 * 1024))
            lines = file.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-_LOG_LINES_SHOWN:]) or "(the log is empty)"

    def says(self, text: bytes) -> bool:
        """Tell whether a line of this run has the text."""
        with self.path.open("rb") as file:
            file.seek(self.start)
            return any(text in line for line in file)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An engine that was started and not yet stopped."""

    name: str
    shell: subprocess.Popen[bytes]
    log: Log

    def check_alive(self, error: type[EngineError] = EngineStartFailed) -> None:
        """Raise if the engine has ended.

        Raises:
            EngineStartFailed: or the error given; with the end of the log.
        """
        if self.shell.poll() is not None:
            raise error(
                f"{self.name} ended with status {self.shell.returncode}. "
                f"The end of {self.log.path}:\n{self.log.end()}"
            )

    def polls(self) -> Iterator[None]:
        """Yield every few milliseconds, for a caller that waits for the engine to get ready.

        Raises:
            EngineStartFailed: the engine ended, or `START_S_MAX` passed.
        """
        deadline = time.monotonic() + START_S_MAX
        while time.monotonic() < deadline:
            self.check_alive()
            yield
            time.sleep(POLL_S)
        raise EngineStartFailed(
            f"{self.name} was not ready after {START_S_MAX:.0f} s. "
            f"The end of {self.log.path}:\n{self.log.end()}"
        )

    def stop(self) -> None:
        """Stop cleanly and wait for it; kill what has not ended after `STOP_S_MAX`."""
        assert self.shell.stdin is not None
        self.shell.stdin.close()
        try:
            self.shell.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(self.shell.pid, signal.SIGKILL)  # both engines recover at their next start
            self.shell.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where engines run: the folder, the one for their sockets, and the lock they inherit."""

    folder: DataFolder
    sockets: Path
    lock: int

    @property
    def account(self) -> Account:
        """The user the engines run as."""
        return self.folder.account


def environment() -> dict[str, str]:
    """Give the engines' environment: the caller's home and PG* variables are meant for clients."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    kept.pop("HOME", None)
    return kept | {"LC_ALL": "C", "TZ": "UTC"}


@contextmanager
def launched(
    name: str,
    command: Sequence[str],
    *,
    place: Place,
    inherited: Sequence[int],
    stop_signal: str,
    stdin: str = "/dev/null",
) -> Iterator[Engine]:
    """Start an engine; stop it at the end of the block. It need not be ready yet when given.

    Args:
        name: names the log file, in lower case, and the engine in messages.
        command: the program and its arguments.
        place: user, folder and lock.
        inherited: descriptors to pass on besides the lock.
        stop_signal: the signal of a clean stop, without SIG.
        stdin: the file that the engine gets as its standard input.
    """
    log_fd, log = _open_log(place.folder.logs / f"{name.lower()}.log", place.account)
    try:
        shell = subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, "sh", stop_signal, stdin, str(place.sockets), *command],
            stdin=subprocess.PIPE,
            stdout=log_fd,
            stderr=log_fd,
            cwd="/",
            env=environment(),
            pass_fds=(place.lock, *inherited),
            start_new_session=True,  # Ctrl-C is for the starter, which stops the engines last
            **place.account.process_options(),
        )
    finally:
        os.close(log_fd)
    engine = Engine(name=name, shell=shell, log=log)
    try:
        yield engine
    finally:
        engine.stop()


def _open_log(path: Path, account: Account) -> tuple[int, Log]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(path, flags, 0o600)
    account.own(fd)
    if os.fstat(fd).st_size > _LOG_BYTES_MAX:
        os.ftruncate(fd, 0)
    return fd, Log(path=path, start=os.fstat(fd).st_size)

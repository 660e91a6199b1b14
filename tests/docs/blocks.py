"""Run the blocks of one page from top to bottom, in one folder, and compare what they answer.

`console` holds commands behind `$ ` and what they print; `sh` a script; `python` a program; `sql`
statements; `http` a request, and in the next block its answer. What differs from run to run (ages,
times, ids made up) is not compared. A comment on the line before a block, unseen by readers, says:

not run: WHY      it is only shown
file: NAME        it is the content of this file
output            it is what the block before printed
status: N         the command ends with this exit status; without it with 0
background        the command stays, and is ready when it prints `ready`; ended with the page
retry             what it answers takes a moment to become so

The page itself says what it stands on: `page: embedded` (nothing), or `page: servers` (addresses in
variables, migrated unless `empty`), with `worker` and `http` where these run.
"""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from tests.docs.pages import Block

RUN = {"console", "sh", "python", "sql", "http"}

_ENDS_S_MAX = 60.0
_READY_S_MAX = 60.0
_RETRY_S_MAX = 60.0
_PAUSE_S = 0.05
_READY = re.compile(r"^ready.*\n|\"ready\"", re.MULTILINE)
_STATUS = re.compile(r"status: (\d+)")
_VARYING = (
    (re.compile(r"\b\d+(\.\d+)? (ms|s|min|h)\b"), "AGE"),
    (re.compile(r"\b\d+(\.\d+)? (bytes|[KMGT]iB)\b"), "SIZE"),
    (re.compile(r"\b\d+ (a second|waiting)\b"), r"N \1"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"truerank-\w+"), "FOLDER"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "DIGEST"),
    (re.compile(r"settled  \S+ by"), "settled  TIME by"),
    (re.compile(r"history, as of \S+ \S+"), "history, as of TIME"),
    (re.compile(r"^  (tick .*, )?epoch \w{8}\b.*$", re.MULTILINE), "  THE SAME BY NAMES"),
    (re.compile(r"^(PostgreSQL|Redis) +.*", re.MULTILINE), r"\1"),
    (re.compile(r"^reconciled +.*\n", re.MULTILINE), ""),  # there once a first pass has ended
)
_VARYING_NAMES = {
    "epoch",
    "generation",
    "lines_per_s",
    "next",
    "projected_through",
    "seconds",
    "staleness_ms",
    "tick",
    "token",
    "version",
}


@dataclass(slots=True)
class Runner:
    """What the blocks of one page share: the folder, the variables, what runs beside them.

    Args:
        folder: where files are written and commands run.
        environ: with the addresses, where the page has some.
        commands: where `truerank` is that starts at once; what stays beside is the program itself.
        url: of the service, where the page has one.
    """

    folder: Path
    environ: Mapping[str, str]
    commands: Path
    url: str | None = None
    output: str = ""
    request: tuple[str, str, bool] | None = None  # the last one; whether it may be sent again
    beside: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def run(self, block: Block) -> None:
        """Run one block; fails where it doesn't do what the page says."""
        if block.note.startswith("not run"):
            return
        if block.note.startswith("file: "):
            name = block.note.removeprefix("file: ")
            (self.folder / name).write_text(block.text, encoding="utf-8")
        elif block.note == "output":
            _expect(self.output, block.text)
        elif block.language in RUN:
            runners: dict[str, Callable[[Block], None]] = {
                "console": self._console,
                "http": self._http,
                "python": self._python,
                "sh": self._shell,
                "sql": self._sql,
            }
            _tried(lambda: runners[block.language](block), again=block.note == "retry")

    def serve(self) -> None:
        """Start the service that requests go to."""
        self._start("truerank serve --port 0", "ready http://127.0.0.1:8080/")
        self.url = self.output.split()[1]

    def close(self) -> None:
        """End what runs beside."""
        for process in reversed(self.beside):
            os.killpg(process.pid, signal.SIGINT)
        for process in reversed(self.beside):
            assert process.wait(_ENDS_S_MAX) == 0, process.args

    def _console(self, block: Block) -> None:
        for command, told in _commands(block.text):
            if block.note == "background":
                self._start(command, told)
                continue
            status = _STATUS.search(block.note)
            self._ended(["/bin/sh", "-c", command], status=int(status[1]) if status else 0)
            if told:
                _expect(self.output, told)

    def _shell(self, block: Block) -> None:
        self._ended(["/bin/sh", "-ec", block.text])

    def _python(self, block: Block) -> None:
        self._ended([sys.executable, "-c", block.text])

    def _sql(self, block: Block) -> None:
        with psycopg.connect(self.environ["TRUERANK_DATABASE_URL"], autocommit=True) as conn:
            conn.execute(block.text.encode())

    def _http(self, block: Block) -> None:
        head, _, body = block.text.partition("\n\n")
        if not head.startswith("HTTP/"):
            self.request = head, body, block.note == "retry"
            return
        assert self.request is not None, "a request stands before its answer"
        *sent, again = self.request

        def attempt() -> None:
            status, answer = self._fetch(*sent)
            assert status == int(head.split()[1]), f"{status}: {answer}"
            _expect(json.dumps(answer), body)

        _tried(attempt, again=again)

    def _fetch(self, head: str, body: str) -> tuple[int, Any]:
        (method, path), *lines = [line.split(" ", 1) for line in head.splitlines()]
        headers = {name.removesuffix(":"): value for name, value in lines}
        assert self.url is not None, "the page says that it needs `http`"
        connection = http.client.HTTPConnection(self.url.split("/")[2])
        try:
            connection.request(method, path, body.encode() or None, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def _ended(self, command: list[str], *, status: int = 0) -> None:
        path = os.pathsep.join((str(self.commands), self.environ["PATH"]))
        ended = subprocess.run(
            command,
            cwd=self.folder,
            env={**self.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=_ENDS_S_MAX,
            check=False,
        )
        self.output = ended.stdout or ended.stderr
        assert ended.returncode == status, f"{command[-1]}\n{ended.stdout}{ended.stderr}"

    def _start(self, command: str, told: str) -> None:
        printed = self.folder.parent / f"printed-{len(self.beside)}"
        with printed.open("w", encoding="utf-8") as output:
            process = subprocess.Popen(
                ["/bin/sh", "-c", f"exec {command}"],
                cwd=self.folder,
                env=dict(self.environ),
                stdout=output,
                start_new_session=True,
            )
        self.beside.append(process)
        deadline = time.monotonic() + _READY_S_MAX
        self.output = ""
        while not _READY.search(self.output):
            assert process.poll() is None, f"{command} ended"
            assert time.monotonic() < deadline, f"{command} is not ready: {self.output}"
            time.sleep(_PAUSE_S)
            self.output = printed.read_text(encoding="utf-8")
        _expect(self.output, told)


@contextmanager
def running(runner: Runner) -> Iterator[Runner]:
    """End what the blocks started, also where one failed."""
    try:
        yield runner
    except BaseException:
        for process in runner.beside:
            process.kill()
            process.wait()
        raise
    runner.close()


def _tried(attempt: Callable[[], None], *, again: bool) -> None:
    deadline = time.monotonic() + _RETRY_S_MAX
    while True:
        try:
            attempt()
        except AssertionError:
            if not again or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def _commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command with what is printed after it."""
    _, *parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
    for part in parts:
        command, _, told = part.replace("\\\n", " ").partition("\n")
        yield command, told


def _expect(printed: str, told: str) -> None:
    assert _steady(printed) == _steady(told), f"it answers:\n{printed}\nand the page says:\n{told}"


def _steady(text: str) -> Any:
    """What must be equal in every run."""
    try:
        return _steady_json(json.loads(text))
    except ValueError:
        for pattern, instead in _VARYING:
            text = pattern.sub(instead, text)
        return [" ".join(line.split()) for line in text.strip().splitlines()]


def _steady_json(value: Any) -> Any:
    match value:
        case dict():
            return {
                name: type(each).__name__ if name in _VARYING_NAMES else _steady_json(each)
                for name, each in value.items()
            }
        case list():
            return [_steady_json(each) for each in value]
        case _:
            return value

"""Run `truerank` as a process of its own, apart from the environment of the tests."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEADLINE_S = 60.0


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Command:
    """Runs `truerank`, with `--data` where there is a folder.

    Args:
        data_or_none: that folder.
        preloaded: a program that runs commands, but for those that stay; None: the real one.
    """

    data_or_none: Path | None
    preloaded: Path | None = None

    @property
    def data(self) -> Path:
        assert self.data_or_none is not None
        return self.data_or_none

    def __call__(self, *arguments: str, text: str | None = None, **environ: str) -> Done:
        program, *line = self._line(arguments)
        if self.preloaded is not None:
            program, line = str(self.preloaded), line[2:]
        done = subprocess.run(
            [program, *line],
            input=text,
            stdin=None if text is not None else subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            env=self._environ(environ),
            timeout=DEADLINE_S,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def modules(self, *arguments: str) -> set[str]:
        """The modules that a command loads."""
        program = (
            "import sys; from truerank.cli.app import run; run(sys.argv[1:]);"
            "print(*sys.modules, file=sys.stderr)"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            capture_output=True,
            encoding="utf-8",
            env=self._environ({}),
            timeout=DEADLINE_S,
            check=True,
        )
        return set(done.stderr.split())

    def start(self, *arguments: str, **environ: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._line(arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=self._environ(environ),
        )

    def _line(self, arguments: tuple[str, ...]) -> list[str]:
        folder = [] if self.data_or_none is None else ["--data", str(self.data_or_none)]
        return [sys.executable, "-m", "truerank", *folder, *arguments]

    @staticmethod
    def _environ(further: dict[str, str]) -> dict[str, str]:
        kept = {name: text for name, text in os.environ.items() if not name.startswith("TRUERANK_")}
        return kept | further

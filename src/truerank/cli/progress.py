"""How far a long command is, for a person who watches."""

import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Silent:
    """Nobody watches."""

    def __call__(self, lines: int) -> None:
        """Count nothing."""

    def close(self) -> None:
        """End nothing."""


class Bar:
    """A progress bar on standard error: how much of the file, how many lines, how fast."""

    def __init__(self, source: io.BufferedReader) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
        from rich.progress import TimeRemainingColumn as Remaining

        size = Path(f"/dev/fd/{source.fileno()}").stat().st_size
        self._source = source
        self._began = time.monotonic()
        self._lines = 0
        self._progress = Progress(
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[lines]} lines, {task.fields[rate]} a second"),
            Remaining(),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task("", total=size or None, lines=0, rate=0)
        self._progress.start()

    def __call__(self, lines: int) -> None:
        """Count lines that were judged."""
        self._lines += lines
        rate = round(self._lines / max(time.monotonic() - self._began, 0.001))
        place = self._source.tell() if self._source.seekable() else 0
        self._progress.update(self._task, completed=place, lines=self._lines, rate=rate)

    def close(self) -> None:
        """Leave the bar as it stands."""
        self._progress.stop()


@contextmanager
def progress_bar(source: io.BufferedReader) -> Iterator[Bar | Silent]:
    """A bar where standard error is a terminal, closed at the end of the block."""
    bar: Bar | Silent = Bar(source) if sys.stderr.isatty() else Silent()
    try:
        yield bar
    finally:
        bar.close()


class Counting:
    """A progress bar on standard error: how many of about how many, how fast."""

    def __init__(self, what: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Remaining

        self._progress = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(what),
            Remaining(),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task("", total=None)
        self._progress.start()

    def __call__(self, done: int, total: int) -> None:
        """Tell how far it is; the total may turn out to be more."""
        self._progress.update(self._task, completed=done, total=max(done, total) or None)

    def close(self) -> None:
        """Leave the bar as it stands."""
        self._progress.stop()


@contextmanager
def counting_bar(what: str) -> Iterator[Counting | None]:
    """A bar where standard error is a terminal, else None; closed at the end of the block."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = Counting(what)
    try:
        yield bar
    finally:
        bar.close()

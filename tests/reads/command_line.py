"""The command line in this process, on a client that is open already."""

import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from typing import Any

from cyclopts import App

from truerank.cli import app as cli
from truerank.cli.context import Context
from truerank.client import Truerank
from truerank.model import Numbering, Source

Row = tuple[int, str, str]  # rank, member, score

_POSITIONAL = ("member", "members", "scores", "edges")  # behind the board, but of `top`
_REPEATED = {"ties": "tie"}


@dataclass(frozen=True, kw_only=True)
class _Open(Context):
    """Commands run on this client, whatever they need."""

    opened: Truerank

    @contextmanager
    def client(self, *, project: bool = False) -> Iterator[Truerank]:
        del project
        yield self.opened

    @contextmanager
    def reader(self, *, project: bool) -> Iterator[Truerank]:
        del project
        yield self.opened

    def installation(self, **how: Any) -> Any:
        raise AssertionError(f"engines of its own: {how}")


class CommandLine:
    """Puts questions as people write them, and reads what they are answered.

    To assemble the commands takes a while, so one serves many clients.
    """

    def __init__(self) -> None:
        self._app: App = cli._app()  # noqa: SLF001 - parsing alone has no other way in

    def ask(self, client: Truerank, question: str, board: str, **how: Any) -> Any:
        """The JSON that a command prints; arguments as the client's question of that name has."""
        words = [*_words(question, how), "--", board, *_arguments(question, how)]
        return json.loads(self.printed(client, question, "--json", *words))

    def printed(self, client: Truerank, *words: str) -> bytes:
        """What a command prints on standard output."""
        command, bound, _ = self._app.parse_args(
            words, exit_on_error=False, print_error=False, help_on_error=False
        )
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
        given = _Open(data=None, log_level=None, opened=client)
        with redirect_stdout(out):
            status = command(*bound.args, **bound.kwargs, given=given)
        assert not status
        out.flush()
        out.seek(0)
        return out.buffer.read()


def _is_argument(question: str, name: str) -> bool:
    return name in _POSITIONAL and question != "top"


def _arguments(question: str, how: dict[str, Any]) -> Iterator[str]:
    for name, value in how.items():
        if _is_argument(question, name):
            yield from map(str, [value] if name == "member" else value)


def _words(question: str, how: dict[str, Any]) -> Iterator[str]:
    for name, value in how.items():
        option = f"--{_REPEATED.get(name, name).replace('_', '-')}"
        if _is_argument(question, name) or value is None or value is False:
            continue
        if value is True:
            yield option
        elif name in _REPEATED:
            yield from (f"{option}={each}" for each in value)
        else:
            yield f"{option}={value}"


class Typed:
    """Puts questions to the command line as well: to read its words is slow, so not all of them.

    Args:
        command_line: the commands.
        client: on which they run.
    """

    def __init__(self, command_line: CommandLine, client: Truerank) -> None:
        self._ask = partial(command_line.ask, client)
        self._print = partial(command_line.printed, client)
        self._done: Counter[str] = Counter()

    def check(self, question: str, board: str, how: dict[str, Any], expected: Any) -> None:
        """A question, once from each store for each choice of parameters.

        Args:
            question: its name.
            board: its key.
            how: all other arguments of the client.
            expected: the answer without its freshness.
        """
        kind = f"{question} {sorted(name for name, value in how.items() if value is not None)}"
        if self._done[kind] == len(Source):
            return
        source = list(Source)[self._done[kind]]
        self._done[kind] += 1
        told = self._ask(question, board, source=source, **how)
        assert told.pop("freshness")["source"] == source
        assert told == expected

    def check_pages(
        self, *expected: list[Row], board: str, season: str | None, numbering: Numbering
    ) -> None:
        """The first pages by cursors, there and back, once."""
        if self._done["pages"] or not all(expected):
            return
        self._done["pages"] += 1
        how: dict[str, Any] = {"season": season, "numbering": numbering.value}
        ask = partial(self._ask, "top", board, limit=len(expected[0]), **how)
        first = ask()
        second = ask(cursor=first["next"])
        again = ask(cursor=second["previous"])
        shown = [
            [(entry["rank"], entry["member"], entry["score"]) for entry in page["entries"]]
            for page in (first, second, again)
        ]
        assert shown == [*expected, expected[0]]

    def check_file(
        self, file: bytes, *, board: str, season: str | None, numbering: Numbering
    ) -> None:
        """The same CSV but for its instant, once."""
        if self._done["file"]:
            return
        self._done["file"] += 1
        options = [] if season is None else [f"--season={season}"]
        typed = self._print("export", f"--numbering={numbering.value}", *options, "--", board)
        instant = re.compile(rb",[^,]+Z,[0-9a-f]{32}")
        assert instant.sub(b"", typed) == instant.sub(b"", file)

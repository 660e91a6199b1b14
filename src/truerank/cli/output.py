"""What people and scripts see: tables, JSON, ages in words, errors with their codes.

Answers go to standard output, everything else to standard error. Ids are anybody's text, so what
could move the cursor or forge a line is shown escaped.
"""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from truerank.model import Freshness, Source
from truerank.telemetry.safe import escaped, without_passwords

__all__ = [
    "complain",
    "duration_words",
    "escaped",
    "freshness_lines",
    "freshness_words",
    "note",
    "pairs",
    "say",
    "say_freshness",
    "shown",
    "table",
    "write_json",
]

_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff]")
_ISOLATED = "\u2068{}\u2069"  # from here on in its own direction, until there
_UNITS_MS = (("ms", 1, 1000), ("s", 1000, 60_000), ("min", 60_000, 3_600_000))
_ID_CHARS = 8  # of 32: enough to tell by sight
_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000


def write_json(shape: Any) -> None:
    """Print one JSON value on one line, in UTF-8 whatever the locale says.

    A byte of a file's name that is no UTF-8 is half of a surrogate pair in Python's text; written
    as one of JSON's own escapes, it is still the same value.
    """
    text = json.dumps(shape, ensure_ascii=False)
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode(errors="backslashreplace") + b"\n")
    sys.stdout.buffer.flush()


def say(line: str) -> None:
    """Print one line of an answer, at once."""
    print(line, flush=True)  # noqa: T201 - this is what a command line is for


def note(line: str) -> None:
    """Tell something beside the answer."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - as above


def complain(code: str, message: str) -> None:
    """Tell why a command failed."""
    note(f"error[{escaped(code)}]: {_told(message)}")


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], *, left: str = "") -> list[str]:
    """Lines of a table: numbers to the right, the columns named in `left` to the left.

    Put ids last: nothing stands after them, so no script, width or direction moves a column.

    Args:
        headers: one word each.
        rows: text that is already safe, as `escaped` and `shown` give it.
        left: names of columns, with spaces between.
    """
    from rich.cells import cell_len

    cells = [list(headers), *(list(row) for row in rows)]
    widths = [max(cell_len(row[i]) for row in cells) for i in range(len(headers))]
    to_left = [header in left.split() for header in headers]
    lines = []
    for row in cells:
        padded = [
            cell + pad if begins else pad + cell
            for cell, width, begins in zip(row, widths, to_left, strict=True)
            for pad in (" " * (width - cell_len(cell)),)
        ]
        lines.append("  ".join(padded).rstrip())
    return lines


def pairs(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Lines of names with what each is; text that is already safe."""
    return table(("name", "value"), rows, left="name value")[1:]


def shown(name: str) -> str:
    """A member or board as a line shows it; on a terminal it keeps its direction to itself."""
    safe = escaped(name)
    if sys.stdout.isatty() and _RIGHT_TO_LEFT.search(safe):
        return _ISOLATED.format(safe)
    return safe


def freshness_words(freshness: Freshness) -> str:
    """How true an answer is, for people."""
    said = []
    if freshness.as_of is not None:
        said.append(f"authoritative, from the history, as of {_second(freshness.as_of)}")
    if freshness.frozen_at is not None:
        said.append(f"frozen as of {_second(freshness.frozen_at)}")
    if said:
        return "; ".join(said)
    if freshness.settled:
        return "from the settlement, which nothing moves"
    if freshness.source is Source.DATABASE:
        return "from PostgreSQL, as of now"
    if freshness.staleness_ms is None:
        return "from the projection, of unknown age"
    words = f"from the projection, as of {duration_words(freshness.staleness_ms)} ago"
    return f"{words}, with part of what came later" if freshness.partial else words


def freshness_lines(freshness: Freshness) -> list[str]:
    """How true an answer is: in words, and by what other answers can be told to say the same."""
    told = [] if freshness.tick is None else [f"tick {freshness.tick}"]
    if freshness.generation is not None:
        told.append(f"generation {freshness.generation[:_ID_CHARS]}")
    told.append(f"epoch {freshness.epoch[:_ID_CHARS]}")
    if freshness.projected_through is not None:
        through = freshness.projected_through.astimezone(UTC)
        told.append(f"all before {through:%Y-%m-%d %H:%M:%S.%f}Z")
    return [freshness_words(freshness), f"  {', '.join(told)}"]


def say_freshness(freshness: Freshness) -> None:
    """Print how true an answer is."""
    for line in freshness_lines(freshness):
        say(line)


def _second(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"


def duration_words(ms: int) -> str:
    """A duration in the largest unit that keeps it a number of more than one digit or so."""
    for unit, size, limit in _UNITS_MS:
        if ms < limit:
            return f"{ms // size} {unit}"
    return f"{ms // _HOUR_MS} h" if ms < 2 * _DAY_MS else f"{ms // _DAY_MS} days"


def _told(message: str) -> str:
    # A driver quotes the address that it can't read, with the password in it.
    return escaped(without_passwords(message.strip().expandtabs(4)), lines=True)

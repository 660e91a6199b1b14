"""Turn NDJSON into events, one JSON object a line; a line that can't be read spoils no other.

Plain or gzipped, in UTF-8. Texts and numbers are exact: no number becomes a float.
"""

import io
from collections.abc import Iterator, Mapping
from typing import Any

from truerank import strictly
from truerank.command.submit import check_text
from truerank.errors import InvalidInput
from truerank.intake.lines import TIES, Line, Malformed, Naming, Row, lines_of, row_of

# How `truerank export` calls them, as every other answer in JSON does.
_EXPORTED = {"points": "score", "occurred_at": "reached_at"}
_SUFFIXES = (".ndjson", ".jsonl")
_BLANKS = " \t\r\n"
_NUMBERS = {"points", TIES}  # what may be a number as well as text


class _Number(str):
    """A number of JSON as it is spelt."""

    __slots__ = ()


def is_ndjson(name: str) -> bool:
    """Whether a file's name says so, gzipped or not."""
    return name.lower().removesuffix(".gz").endswith(_SUFFIXES)


def read_objects(file: io.BufferedIOBase, naming: Naming) -> Iterator[Row | Malformed]:
    """Read a file from its beginning to its end.

    Args:
        file: at its beginning, as `decompressed` gives it.
        naming: where names differ from `COLUMNS`. Others are passed over. In a file that was
            exported they are those of the export, and `ties` are taken too.

    Returns:
        One answer for each line, in file order, read as it is asked for. Empty lines are passed
        over.
    """
    named = naming.named({} if naming.exported is None else _EXPORTED)
    for line in lines_of(file):
        if isinstance(line, Malformed):
            yield line
        elif line.text.strip(_BLANKS):
            yield _read(line, named, naming)


def _read(line: Line, named: Mapping[str, str], naming: Naming) -> Row | Malformed:
    try:
        found = strictly.read_json(line.text, parse_int=_Number, parse_float=_Number)
    except ValueError as exc:
        return Malformed(line.number, "json_invalid", f"no JSON that we take: {exc}")
    if not isinstance(found, dict):
        return Malformed(line.number, "json_invalid", "it is JSON, but no object")
    missing = [name for name in named.values() if name not in found]
    if missing:
        return Malformed(line.number, "fields_missing", f"it lacks {', '.join(missing)}")
    try:
        texts = {column: _text(found[name], column) for column, name in named.items()}
        ties = _ties(found.get(TIES, {})) if naming.exported is not None else {}
        return row_of(line.number, texts, ties, naming)
    except InvalidInput as exc:
        return Malformed(line.number, f"{exc.field}_invalid", exc.message)


def _text(value: Any, column: str) -> str:
    """A text; of points also a number, as it is spelt.

    Raises:
        InvalidInput: something else. An id that is a number has several spellings.
    """
    if not isinstance(value, str) or (isinstance(value, _Number) and column not in _NUMBERS):
        allowed = "text or a number" if column in _NUMBERS else "text"
        raise InvalidInput(f"{column} is not {allowed}", field=column)
    check_text(value, column)
    return str(value)


def _ties(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise InvalidInput("ties is an object of names and numbers", field=TIES)
    return {name: _text(tie, TIES) for name, tie in value.items()}

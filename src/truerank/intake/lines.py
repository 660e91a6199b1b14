"""Turn a CSV file into events, one by one; a line that can't be read never spoils the others.

RFC 4180 in UTF-8, plain or gzipped (told by content). The first line names the columns. Fields are
exact text: nothing is trimmed or folded.
"""

import csv
import gzip
import io
import zlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from truerank.errors import InvalidInput, TruerankError
from truerank.instants import read_instant
from truerank.intake.fields import read_value
from truerank.model import ScoreEvent

COLUMNS = ("event_id", "board", "member", "points", "occurred_at")

TIES = "ties"
_TIE = "tie "  # what columns of tie-breaks begin with, where a file was exported

_GZIP_MAGIC = b"\x1f\x8b"
_LINE_BYTES_MAX = 100_000
_RECORD_LINES_MAX = 50  # of one record with line breaks inside quotes
_QUOTE_OPEN = "a quote is opened and not closed"


class FileUnusable(TruerankError):
    """The file can't be read, or its first line does not name the columns. Nothing was sent."""

    code = "file_unusable"


@dataclass(frozen=True, slots=True)
class Row:
    """One event of a file; `line` counts from 1, the header included."""

    line: int
    board: str
    event: ScoreEvent
    tie_names: tuple[str, ...] = ()  # what the file calls the event's ties, each in its place


@dataclass(frozen=True, slots=True)
class Malformed:
    """A line that says no event, and why."""

    line: int
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How the file names our columns; `board`, where given, is that of every line."""

    columns: Mapping[str, str] = field(default_factory=dict)
    board: str | None = None
    exported: str | None = None  # what ids of this installation's own exports begin with

    def named(self, usual: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
        """The columns that a file must have, and how it calls each.

        Args:
            usual: how such files call columns that don't bear our names.
        """
        takes_board = self.board is None or self.exported is not None
        return {
            column: self.columns.get(column, usual.get(column, column))
            for column in COLUMNS
            if column != "board" or takes_board
        }


def decompressed(file: io.BufferedReader) -> io.BufferedIOBase:
    """The text of a file, whether or not it is gzipped."""
    if file.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC):
        return gzip.GzipFile(fileobj=file)
    return file


def read_events(file: io.BufferedIOBase, naming: Naming) -> Iterator[Row | Malformed]:
    """Read a file from its header to its end.

    Args:
        file: at its beginning, as `decompressed` gives it.
        naming: where the header differs from `COLUMNS`. Other columns are passed over.

    Returns:
        One answer for each record, in file order, read as it is asked for. Empty lines are passed
        over.

    Raises:
        FileUnusable: there is no header that names the columns.
    """
    records = _Records(file)
    header = records.next()
    if header is None:
        raise FileUnusable("the file is empty: its first line names the columns")
    if isinstance(header, Malformed):
        raise FileUnusable(f"line {header.line}, the header: {header.message}")
    places = _places(header.fields, naming)
    ties = _tie_places(header.fields) if naming.exported is not None else {}
    records.width = len(header.fields)
    return _rows(records, _Places(places, ties), naming)


@dataclass(frozen=True, slots=True)
class _Places:
    """Which fields of a record are what."""

    columns: Mapping[str, int]
    ties: Mapping[str, int]  # by name


def _rows(records: "_Records", places: _Places, naming: Naming) -> Iterator[Row | Malformed]:
    while (record := records.next()) is not None:
        if isinstance(record, Malformed):
            yield record
            continue
        try:
            row = _row(record, places, naming)
        except InvalidInput as exc:
            yield Malformed(record.line, f"{exc.field}_invalid", exc.message)
        else:
            yield row


def _places(header: Sequence[str], naming: Naming) -> dict[str, int]:
    named = naming.named()
    missing = [name for name in named.values() if name not in header]
    if missing:
        raise FileUnusable(
            f"the header lacks {', '.join(missing)}; it names {', '.join(map(repr, header))}"
        )
    twice = [name for name in named.values() if header.count(name) > 1]
    if twice:
        raise FileUnusable(f"the header names {', '.join(twice)} more than once")
    return {column: header.index(name) for column, name in named.items()}


def _tie_places(header: Sequence[str]) -> dict[str, int]:
    return {
        name.removeprefix(_TIE).removeprefix("'"): place
        for place, name in enumerate(header)
        if name.startswith(_TIE)
    }


def _row(record: "_Record", places: _Places, naming: Naming) -> Row:
    fields = record.fields
    texts = {column: fields[place] for column, place in places.columns.items()}
    if naming.exported is not None:
        for name in ("board", "member"):
            texts[name] = texts[name].removeprefix("'")
    ties = {name: fields[place] for name, place in places.ties.items()}
    return row_of(record.line, texts, ties, naming)


def row_of(line: int, texts: Mapping[str, str], ties: Mapping[str, str], naming: Naming) -> Row:
    """The event that the fields of a line say.

    Args:
        line: its number.
        texts: of the columns that are needed, by our names.
        ties: of the tie-breaks, by name.
        naming: where the line is to go.

    Raises:
        InvalidInput: `field` says what is wrong; or the line was exported from the board that it
            is to go to, where it counts already.
    """
    origin = texts.get("board", "")
    board = origin if naming.board is None else naming.board
    for name in ("event_id", "member"):
        _check(name, texts[name])
    _check("board", board)
    own = naming.exported
    if own is not None and texts["event_id"].startswith(own) and board == origin:
        raise InvalidInput(
            "it was exported from this board, and counts there; --board names another",
            field="event_id",
        )
    event = ScoreEvent(
        event_id=texts["event_id"],
        member=texts["member"],
        value=read_value(texts["points"], "points"),
        occurred_at=read_instant(texts["occurred_at"], "occurred_at"),
        ties=tuple(_tie(tie) for tie in ties.values()),
    )
    return Row(line, board, event, tuple(ties))


def _check(name: str, text: str) -> None:
    if not text or "\0" in text:
        problem = "contains a NUL character" if text else "is empty"
        raise InvalidInput(f"{name} {problem}", field=name)


def _tie(text: str) -> int:
    tie = read_value(text, TIES)
    if isinstance(tie, str):
        raise InvalidInput(f"ties {text!r} is not an integer", field=TIES)
    return tie


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file, counted from 1."""

    number: int
    text: str  # with its line ending


@dataclass(frozen=True, slots=True)
class _Record:
    line: int
    fields: list[str]


class _Records:
    """The records of a file. `width` is the number of fields of each, once the header told."""

    def __init__(self, file: io.BufferedIOBase) -> None:
        self.width: int | None = None
        self._lines = lines_of(file)
        self._ahead: deque[Line | Malformed] = deque()  # read to look for a closing quote

    def next(self) -> _Record | Malformed | None:
        """The next record that isn't empty, None at the end."""
        while True:
            line = self._ahead.popleft() if self._ahead else next(self._lines, None)
            if line is None or isinstance(line, Malformed):
                return line
            text = _stripped(line.text)
            if text:
                return self._quoted(line) if '"' in text or "\r" in text else self._plain(line)

    def _plain(self, line: Line) -> _Record | Malformed:
        return self._checked(line.number, _stripped(line.text).split(","))

    def _quoted(self, line: Line) -> _Record | Malformed:
        """Parse a record with quotes, over several lines where a quote stays open.

        Where that fails, only its first line is given up: the quote may be a mistake.
        """
        text, taken = line.text, 0
        while True:
            try:
                (fields,) = csv.reader([_stripped(text)], strict=True)
            except csv.Error as exc:
                # The only way to tell this case; without it a record ends at its line.
                if "unexpected end of data" not in str(exc):
                    reason = _QUOTE_OPEN if taken else str(exc)
                    return Malformed(line.number, "csv_invalid", reason)
            else:
                record = self._checked(line.number, fields)
                if isinstance(record, Malformed) and taken:
                    return Malformed(line.number, "csv_invalid", _QUOTE_OPEN)
                for _ in range(taken):
                    self._ahead.popleft()
                return record
            more = self._line_ahead(taken) if taken < _RECORD_LINES_MAX else None
            if not isinstance(more, Line):
                return Malformed(line.number, "csv_invalid", _QUOTE_OPEN)
            text += more.text
            taken += 1

    def _line_ahead(self, index: int) -> Line | Malformed | None:
        if index == len(self._ahead):
            line = next(self._lines, None)
            if line is None:
                return None
            self._ahead.append(line)
        return self._ahead[index]

    def _checked(self, number: int, fields: list[str]) -> _Record | Malformed:
        if self.width is None or len(fields) == self.width:
            return _Record(number, fields)
        code = "fields_missing" if len(fields) < self.width else "fields_extra"
        return Malformed(number, code, f"{len(fields)} fields, and the header names {self.width}")


def lines_of(file: io.BufferedIOBase) -> Iterator[Line | Malformed]:
    """The lines of a file as `decompressed` gives it, one by one; UTF-8, of a bounded length."""
    number = 0
    while True:
        number += 1
        try:
            raw = file.readline(_LINE_BYTES_MAX + 1)
            long = len(raw) > _LINE_BYTES_MAX
            rest = raw
            while long and rest and not rest.endswith(b"\n"):
                rest = file.readline(_LINE_BYTES_MAX)
        except (EOFError, gzip.BadGzipFile, zlib.error) as exc:
            yield Malformed(number, "gzip_damaged", f"nothing after this was read: {exc}")
            return
        if not raw:
            return
        if long:
            yield Malformed(number, "line_too_long", f"more than {_LINE_BYTES_MAX} bytes")
            continue
        try:
            # Spreadsheets begin UTF-8 files with a byte order mark.
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as exc:
            yield Malformed(number, "encoding_invalid", f"byte {exc.start + 1} is not UTF-8")
        else:
            yield Line(number, text)


def _stripped(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")

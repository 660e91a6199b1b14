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

from truerank.errors import InvalidInput, TruerankError
from truerank.instants import read_instant
from truerank.intake.fields import read_value
from truerank.model import ScoreEvent

COLUMNS = ("event_id", "board", "member", "points", "occurred_at")

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
    ties = _tie_places(header.fields) if naming.exported is not None else []
    records.width = len(header.fields)
    return _rows(records, _Places(places, ties), naming)


@dataclass(frozen=True, slots=True)
class _Places:
    """Which fields of a record are what."""

    columns: Sequence[int]  # in the order of `COLUMNS`
    ties: Sequence[int]


def _rows(records: "_Records", places: _Places, naming: Naming) -> Iterator[Row | Malformed]:
    while (record := records.next()) is not None:
        if isinstance(record, Malformed):
            yield record
            continue
        try:
            row = Row(record.line, *_event(record.fields, places, naming))
        except InvalidInput as exc:
            yield Malformed(record.line, f"{exc.field}_invalid", exc.message)
        else:
            yield row


def _places(header: Sequence[str], naming: Naming) -> list[int]:
    takes_board = naming.board is None or naming.exported is not None
    columns = [column for column in COLUMNS if column != "board" or takes_board]
    named = [naming.columns.get(column, column) for column in columns]
    missing = [name for name in named if name not in header]
    if missing:
        raise FileUnusable(
            f"the header lacks {', '.join(missing)}; it names {', '.join(map(repr, header))}"
        )
    twice = [name for name in named if header.count(name) > 1]
    if twice:
        raise FileUnusable(f"the header names {', '.join(twice)} more than once")
    return [header.index(name) for name in named]


def _tie_places(header: Sequence[str]) -> list[int]:
    return [place for place, name in enumerate(header) if name.startswith(_TIE)]


def _event(fields: Sequence[str], places: _Places, naming: Naming) -> tuple[str, ScoreEvent]:
    picked = [fields[place] for place in places.columns]
    if naming.exported is not None:
        picked = _unquoted(picked, naming, naming.exported)
    elif naming.board is not None:
        picked.insert(COLUMNS.index("board"), naming.board)
    event_id, board, member, points, occurred_at = picked
    for name, text in (("event_id", event_id), ("board", board), ("member", member)):
        if not text or "\0" in text:
            problem = "contains a NUL character" if text else "is empty"
            raise InvalidInput(f"{name} {problem}", field=name)
    return board, ScoreEvent(
        event_id=event_id,
        member=member,
        value=read_value(points, "points"),
        occurred_at=read_instant(occurred_at, "occurred_at"),
        ties=tuple(_tie(fields[place]) for place in places.ties),
    )


def _tie(text: str) -> int:
    tie = read_value(text, "ties")
    if isinstance(tie, str):
        raise InvalidInput(f"ties {text!r} is not an integer", field="ties")
    return tie


def _unquoted(picked: list[str], naming: Naming, own: str) -> list[str]:
    """The fields of a line that was exported, for the board it is to go to.

    Raises:
        InvalidInput: that is the board it comes from, where it counts already.
    """
    event_id, board, member, points, occurred_at = picked
    origin = board.removeprefix("'")
    target = origin if naming.board is None else naming.board
    if event_id.startswith(own) and target == origin:
        raise InvalidInput(
            "it was exported from this board, and counts there; --board names another",
            field="event_id",
        )
    return [event_id, target, member.removeprefix("'"), points, occurred_at]


@dataclass(frozen=True, slots=True)
class _Line:
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
        self._lines = _lines(file)
        self._ahead: deque[_Line | Malformed] = deque()  # read to look for a closing quote

    def next(self) -> _Record | Malformed | None:
        """The next record that isn't empty, None at the end."""
        while True:
            line = self._ahead.popleft() if self._ahead else next(self._lines, None)
            if line is None or isinstance(line, Malformed):
                return line
            text = _stripped(line.text)
            if text:
                return self._quoted(line) if '"' in text or "\r" in text else self._plain(line)

    def _plain(self, line: _Line) -> _Record | Malformed:
        return self._checked(line.number, _stripped(line.text).split(","))

    def _quoted(self, line: _Line) -> _Record | Malformed:
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
            if not isinstance(more, _Line):
                return Malformed(line.number, "csv_invalid", _QUOTE_OPEN)
            text += more.text
            taken += 1

    def _line_ahead(self, index: int) -> _Line | Malformed | None:
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


def _lines(file: io.BufferedIOBase) -> Iterator[_Line | Malformed]:
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
            yield _Line(number, text)


def _stripped(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")

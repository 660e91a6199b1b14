"""A whole season as rows, from one snapshot of PostgreSQL, and as lines of a file.

The rows of CSV are those that `truerank import --exported` reads back. A cell of text that a
spreadsheet would take for a formula is written behind an apostrophe, and so is one that begins
with an apostrophe itself: so it can be taken off again.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import psycopg

from truerank.connections import translate
from truerank.model import Board, Numbering, Season
from truerank.read.scores import number_at, row_bytes, score_text
from truerank.read.shapes import time_text
from truerank.sessions import AWAY, plain

CSV_COLUMNS = ("event_id", "board", "rank", "member", "points", "occurred_at")
_SLICE = "SELECT * FROM truerank.export_slice(%s, %s, %s, %s)"
ROWS_PER_SLICE = 5000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "'")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedRow:
    """One place of a season."""

    rank: int
    member: str
    score: str  # in the board's unit, exact
    ties: tuple[int, ...]
    version: int
    reached_at: datetime


def export_rows(
    database_url: str,
    board: Board,
    season: Season,
    *,
    numbering: Numbering = Numbering.COMPETITION,
    rows_per_slice: int = ROWS_PER_SLICE,
) -> Iterator[ExportedRow]:
    """Every member of a season whom readers may see, in order, from one snapshot.

    The snapshot lasts as long as the rows are read: read on without a break.

    Args:
        database_url: of PostgreSQL, with a pooler before it or not.
        board: whose season.
        season: which of its rankings.
        numbering: how equals are counted.
        rows_per_slice: how many rows one statement reads.

    Raises:
        DatabaseUnavailable: the connection could not be made, or was lost on the way.
    """
    equal_bytes = row_bytes(board)
    key, member = b"", ""
    place = rank = 0
    equals = b""
    try:
        options = plain(database_url)
        with psycopg.connect(database_url, application_name="truerank export", **options) as conn:
            conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            conn.read_only = True
            while True:
                slice_ = (season.ranking, key, member, rows_per_slice)
                rows = conn.execute(_SLICE, slice_, binary=True).fetchall()
                for member, key, ties, version in rows:
                    place += 1
                    if numbering is Numbering.ORDINAL:
                        rank = place
                    elif key[:equal_bytes] != equals:
                        rank = rank + 1 if numbering is Numbering.DENSE else place
                        equals = key[:equal_bytes]
                    yield ExportedRow(
                        rank=rank,
                        member=member,
                        score=score_text(board, key),
                        ties=tuple(ties or ()),
                        version=version,
                        reached_at=_EPOCH + timedelta(microseconds=number_at(key, equal_bytes)),
                    )
                if len(rows) < rows_per_slice:
                    return
    except AWAY as exc:
        raise translate(exc) from exc


def event_ids_of(installation: str) -> str:
    """How the ids begin under which rows of this installation are taken in elsewhere."""
    return f"standing-{installation.replace('-', '')[:12]}-"


def csv_lines(board: Board, rows: Iterable[ExportedRow], *, installation: str) -> Iterator[bytes]:
    """The lines of a CSV file, with a header; RFC 4180, UTF-8.

    The ids are the same whenever a standing is exported, and differ between installations.
    """
    begins = event_ids_of(installation)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    ties = [tie.name for tie in board.spec.tie_breaks]
    writer.writerow([*CSV_COLUMNS, *(f"tie {_inert(name)}" for name in ties)])
    yield _taken(buffer)
    for row in rows:
        writer.writerow(
            [
                f"{begins}{row.version}",
                _inert(board.spec.key),
                row.rank,
                _inert(row.member),
                row.score,
                time_text(row.reached_at),
                *row.ties,
            ],
        )
        yield _taken(buffer)


def ndjson_lines(board: Board, season: Season, rows: Iterable[ExportedRow]) -> Iterator[bytes]:
    """One JSON object a line; scores, ties and versions are strings of digits."""
    names = [tie.name for tie in board.spec.tie_breaks]
    for row in rows:
        shape: dict[str, Any] = {
            "board": board.spec.key,
            "season": season.label,
            "rank": row.rank,
            "member": row.member,
            "score": row.score,
            "ties": {name: str(tie) for name, tie in zip(names, row.ties, strict=True)},
            "version": str(row.version),
            "reached_at": row.reached_at,
        }
        yield msgspec.json.encode(shape) + b"\n"


def _inert(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def _taken(buffer: io.StringIO) -> bytes:
    line = buffer.getvalue().encode()
    buffer.seek(0)
    buffer.truncate()
    return line

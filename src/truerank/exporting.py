"""A whole season as rows, or as lines of a file, from one snapshot of PostgreSQL.

Every row says of which season and as of when it is, wherever it ends up, and under which id it is
an event elsewhere: `truerank import --exported` reads both formats back. A cell of CSV that a
spreadsheet would take for a formula is written behind an apostrophe, and so is one that begins with
an apostrophe itself: so it can be taken off again.
"""

import asyncio
import csv
import io
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar

import msgspec
import psycopg

from truerank.connections import AFTER_SERVER_S, limiting, translate, urls
from truerank.errors import InvalidInput
from truerank.patience import Patience, cut
from truerank.read.exported import ExportedRow, ExportHead, Slices, Wish
from truerank.read.shapes import time_text
from truerank.sessions import LIMIT_TRANSACTION, Limits, plain
from truerank.settings import Settings
from truerank.steps import Query, Request, run_awaiting, run_blocking

Format = Literal["csv", "ndjson"]
CSV_COLUMNS = ("event_id", "board", "rank", "member", "points", "occurred_at")
TOLD_COLUMNS = ("season", "as_of", "epoch")  # of the transaction, the same in all rows
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "'")
_END = Query("ROLLBACK")  # it only read; behind a pooler the session can be another's

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Encoding(Generic[T]):
    """What stands before the rows, and what becomes of them."""

    opening: Callable[[ExportHead], list[T]]
    encode: Callable[[ExportHead, Sequence[ExportedRow]], list[T]]


class _Exporting(Generic[T]):
    """What an export is, however it is run."""

    _ROWS_PER_SLICE = 5000

    def __init__(
        self,
        settings: Settings,
        wish: Wish,
        encoding: Encoding[T],
        *,
        rows_per_slice: int | None = None,
    ) -> None:
        self._url, _ = urls(settings)
        timeout_ms = settings.database_timeout_ms
        self._options = plain(self._url) | {
            "application_name": "truerank export",
            "connect_timeout": max(2, timeout_ms // 1000),
        }
        self._encoding = encoding
        limits = Limits(statement_ms=timeout_ms)
        self._limiting = Query(LIMIT_TRANSACTION, limits.of_transaction())
        self._limit_s = timeout_ms / 1000 + AFTER_SERVER_S
        self._slices = Slices(wish, rows_max=rows_per_slice or self._ROWS_PER_SLICE)
        self._head: ExportHead | None = None
        self._first = True

    @property
    def head(self) -> ExportHead:
        """What the rows are of: board, season, instant and epoch. Known once it is open."""
        assert self._head is not None, "read inside `with`, or from the first row on"
        return self._head

    def _encoded(self, rows: Sequence[ExportedRow]) -> list[T]:
        opening = self._encoding.opening(self.head) if self._first else []
        self._first = False
        return opening + self._encoding.encode(self.head, rows)


class Export(_Exporting[T]):
    """The rows or lines of one season, once.

    `with client.export(...) as export: for row in export: ...`

    It has a connection of its own, and one transaction from the beginning to the end of the block:
    read on without a break, for PostgreSQL keeps what the snapshot shows.

    Args:
        settings: with both URLs, that of PostgreSQL with a pooler before it or not.
        wish: what is wanted.
        encoding: what becomes of the rows of a slice.
        rows_per_slice: how many rows one statement reads; so many are in memory. None: as is usual.

    Raises, when it is opened or read:
        BoardUnknown, SeasonUnknown, NotInCohort: there is nothing to read.
        SeasonFrozen: a cohort of a season of which the public is shown what it was.
        NotSettled: there is no such settlement.
        DatabaseUnavailable: the connection could not be made, or was lost on the way.
    """

    _conn: psycopg.Connection[tuple[Any, ...]] | None = None
    _patience: Patience | None = None

    def __enter__(self) -> Self:
        """Connect, and begin the transaction."""
        self._patience = Patience()
        try:
            self._conn = psycopg.connect(self._url, **self._options)
            self._conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            self._conn.read_only = True
            self._do(self._limiting)
            self._head = run_blocking(self._slices.head(), self._do)
        except psycopg.Error as exc:
            self.close()
            raise translate(exc) from exc
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[T]:
        """All rows; where it wasn't opened, it is for as long as they are read."""
        if self._conn is None:
            with self:
                yield from self
            return
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[list[T]]:
        """The same, slice by slice."""
        while not self._slices.ended:
            rows = run_blocking(self._slices.next(self.head), self._do)
            if self._slices.ended:
                self._do(_END)
            yield self._encoded(rows)

    def close(self) -> None:
        """End the transaction, and the connection."""
        if self._conn is not None:
            self._conn.close()
        if self._patience is not None:
            self._patience.close()

    def _do(self, request: Request) -> list[tuple[Any, ...]]:
        assert isinstance(request, Query), "an export asks PostgreSQL alone"
        assert self._conn is not None, "it is open"
        assert self._patience is not None, "they come together"
        try:
            with self._patience.limiting(self._conn, self._limit_s):
                cursor = self._conn.execute(request.sql, request.params, binary=True)
                return cursor.fetchall() if cursor.description else []
        except psycopg.Error as exc:
            raise translate(exc) from exc


class AsyncExport(_Exporting[T]):
    """See `Export`; opened by `async with`, read by `async for`."""

    _ROWS_PER_SLICE = 1000  # others wait while they are encoded
    _conn: psycopg.AsyncConnection[tuple[Any, ...]] | None = None

    async def __aenter__(self) -> Self:
        """Connect, and begin the transaction."""
        try:
            self._conn = await psycopg.AsyncConnection.connect(self._url, **self._options)
            await self._conn.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
            await self._conn.set_read_only(True)
            await self._do(self._limiting)
            self._head = await run_awaiting(self._slices.head(), self._do)
        except psycopg.Error as exc:
            await self.close()
            raise translate(exc) from exc
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[T]:
        """All rows; where it wasn't opened, it is for as long as they are read."""
        if self._conn is None:
            async with self:
                async for row in self:
                    yield row
            return
        async for batch in self.batches():
            for row in batch:
                yield row

    async def batches(self) -> AsyncIterator[list[T]]:
        """The same, slice by slice."""
        while not self._slices.ended:
            rows = await run_awaiting(self._slices.next(self.head), self._do)
            if self._slices.ended:
                await self._do(_END)
            yield self._encoded(rows)

    async def close(self) -> None:
        """End the transaction, and the connection."""
        if self._conn is not None:
            await self._conn.close()

    async def _do(self, request: Request) -> list[tuple[Any, ...]]:
        assert isinstance(request, Query), "an export asks PostgreSQL alone"
        assert self._conn is not None, "it is open"
        fd = self._conn.fileno()
        asked = asyncio.create_task(_asked(self._conn, request))
        try:
            with limiting(self._conn, self._limit_s):
                return await asyncio.shield(asked)
        except asyncio.CancelledError:
            # psycopg would first ask the server to cancel, by another connection, and wait for
            # that. Where a pooler of PgBouncer 1.18 stands between, such a request may be its end.
            asked.add_done_callback(lambda task: task.cancelled() or task.exception())
            cut(fd)
            await asyncio.wait({asked})
            raise
        except psycopg.Error as exc:
            raise translate(exc) from exc


async def _asked(
    conn: psycopg.AsyncConnection[tuple[Any, ...]], query: Query
) -> list[tuple[Any, ...]]:
    cursor = await conn.execute(query.sql, query.params, binary=True)
    return await cursor.fetchall() if cursor.description else []


def encoding_of(kind: str | None) -> Encoding[Any]:
    """How the lines of a file of this format are made; None: rows as they are.

    Raises:
        InvalidInput: there is no such format.
    """
    if kind is None:
        return ROWS
    if kind not in _ENCODINGS:
        raise InvalidInput(f"format is one of {', '.join(_ENCODINGS)}", field="format")
    return _ENCODINGS[kind]


def event_ids_of(installation: str) -> str:
    """How the ids begin under which rows of this installation are taken in elsewhere.

    With the version they are the same whenever a standing is exported, and differ between
    installations.
    """
    return f"standing-{installation.replace('-', '')[:12]}-"


def csv_header(head: ExportHead) -> list[bytes]:
    """The first line of a CSV file; it names the columns."""
    ties = [f"tie {inert(tie.name)}" for tie in head.board.spec.tie_breaks]
    cohort = ("cohort",) if head.divided else ()
    return [csv_line([*CSV_COLUMNS, *ties, *TOLD_COLUMNS, *cohort])]


def csv_lines(head: ExportHead, rows: Sequence[ExportedRow]) -> list[bytes]:
    """The other lines of a CSV file; RFC 4180, UTF-8. Ids as in `event_ids_of`."""
    begins = event_ids_of(head.installation)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    lines = []
    board = inert(head.board.spec.key)
    told = (inert(head.season.label), time_text(head.as_of), head.freshness.epoch)
    for row in rows:
        writer.writerow(
            [
                f"{begins}{row.version}",
                board,
                row.rank,
                inert(row.member),
                row.score,
                time_text(row.reached_at),
                *row.ties,
                *told,
                *((row.cohort,) if head.divided else ()),
            ],
        )
        lines.append(_taken(buffer))
    return lines


def ndjson_lines(head: ExportHead, rows: Sequence[ExportedRow]) -> list[bytes]:
    """One JSON object a line; scores, ties and versions are strings of digits; ids as in CSV."""
    names = [tie.name for tie in head.board.spec.tie_breaks]
    begins = event_ids_of(head.installation)
    encode = msgspec.json.Encoder().encode
    told = {"as_of": time_text(head.as_of), "epoch": head.freshness.epoch}
    return [
        encode(
            {
                "event_id": f"{begins}{row.version}",
                "board": head.board.spec.key,
                "season": head.season.label,
                "rank": row.rank,
                "member": row.member,
                "score": row.score,
                "ties": {name: str(tie) for name, tie in zip(names, row.ties, strict=True)},
                "version": str(row.version),
                "reached_at": row.reached_at,
                **told,
                **({"cohort": row.cohort} if head.divided else {}),
            }
        )
        + b"\n"
        for row in rows
    ]


def _nothing(_head: ExportHead) -> list[Any]:
    return []


def _as_they_are(_head: ExportHead, rows: Sequence[ExportedRow]) -> list[ExportedRow]:
    return list(rows)


ROWS = Encoding(_nothing, _as_they_are)
_ENCODINGS = {
    "csv": Encoding(csv_header, csv_lines),
    "ndjson": Encoding(_nothing, ndjson_lines),
}


def csv_line(cells: Sequence[object]) -> bytes:
    """One line of a CSV file; RFC 4180, UTF-8. Nothing stands for None."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\r\n").writerow(cells)
    return buffer.getvalue().encode()


def inert(text: str) -> str:
    """A text as a cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def _taken(buffer: io.StringIO) -> bytes:
    line = buffer.getvalue().encode()
    buffer.seek(0)
    buffer.truncate()
    return line

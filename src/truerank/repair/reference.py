"""The ranking as the source has it at one snapshot: what every path is compared with.

Its rows lie in a temporary file, so that a board of any size is compared in little memory.
"""

import hashlib
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Self

import psycopg

from truerank.model import Board, Season, Token
from truerank.read.scores import row_bytes, score_text
from truerank.read.tokens import of_answer
from truerank.repair.verified import EXAMPLES_MAX, Difference, PathResult, Row, digest_line
from truerank.sessions import alive_only, primary_only

Source = psycopg.Connection[tuple[Any, ...]]

_SNAPSHOT = """
    SELECT pg_current_snapshot()::text, truerank.lives(), replace(truerank.source_epoch()::text,
           '-', '')"""
_SLICE = "SELECT member, sort_key FROM truerank.export_slice(%s, %s, %s, %s)"
_ROWS_PER_SLICE = 5000


@contextmanager
def snapshot_of(database_url: str) -> Iterator[Source]:
    """A connection that sees one state of the source for the length of the block."""
    with psycopg.connect(
        database_url,
        application_name="truerank verify",
        **alive_only(database_url),
        **primary_only(database_url),
    ) as conn:
        conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        conn.read_only = True
        yield conn


class Reference:
    """The rows of a ranking in order, their digest, and the snapshot they are of."""

    def __init__(self, file: IO[bytes], *, snapshot: str, lives: str, epoch: str) -> None:
        self._file = file
        self.snapshot = snapshot
        self.epoch = epoch
        self.token: Token = of_answer(snapshot, lives)
        self.members = 0
        self.digest = ""
        self.disorder: list[Difference] = []

    @classmethod
    @contextmanager
    def read(cls, conn: Source, board: Board, season: Season) -> Iterator[Self]:
        """Read a ranking in the transaction of a connection, from its first statement on."""
        row = conn.execute(_SNAPSHOT).fetchone()
        assert row is not None, "a SELECT without FROM returns one row"
        snapshot, lives, epoch = row
        with tempfile.TemporaryFile(prefix="truerank-verify-") as file:
            made = cls(file, snapshot=snapshot, lives=lives, epoch=epoch)
            made._fill(conn, board, season)
            yield made

    def rows(self) -> Iterator[Row]:
        """All rows, in order. One walk at a time."""
        self._file.seek(0)
        for ordinal, line in enumerate(self._file, 1):
            competition, dense, member, score = json.loads(line)
            yield Row(
                ordinal=ordinal, competition=competition, dense=dense, member=member, score=score
            )

    def sample(self, rows_max: int) -> list[Row]:
        """All rows, or as many spread evenly, the first and the last among them."""
        if self.members <= rows_max:
            return list(self.rows())
        last = self.members - 1
        wanted = {round(i * last / (rows_max - 1)) + 1 for i in range(rows_max)}
        return [row for row in self.rows() if row.ordinal in wanted]

    def result(self) -> PathResult:
        """Whether the source's own rows stand in the order of their bytes."""
        return PathResult(
            name="standings",
            compared=self.members,
            digest=self.digest,
            differences=tuple(self.disorder[:EXAMPLES_MAX]),
        )

    def _fill(self, conn: Source, board: Board, season: Season) -> None:
        whole = hashlib.sha256()
        equal_bytes = row_bytes(board)
        key, member = b"", ""
        competition = dense = 0
        equals: bytes | None = None
        while True:
            slice_ = (season.ranking, key, member, _ROWS_PER_SLICE)
            rows = conn.execute(_SLICE, slice_, binary=True).fetchall()
            for next_member, next_key in rows:
                if (next_key, next_member.encode()) <= (key, member.encode()):
                    self.disorder.append(
                        Difference(subject=next_member, expected=f"before {member!r}", found=None)
                    )
                key, member = next_key, next_member
                self.members += 1
                if key[:equal_bytes] != equals:
                    equals = key[:equal_bytes]
                    competition, dense = self.members, dense + 1
                score = score_text(board, key)
                whole.update(digest_line(competition, member, score))
                self._file.write(json.dumps([competition, dense, member, score]).encode() + b"\n")
            if len(rows) < _ROWS_PER_SLICE:
                break
        self.digest = whole.hexdigest()

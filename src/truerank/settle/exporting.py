"""A settlement as rows, for who pays out: everybody's own id, in the order that was settled."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg

from truerank.connections import translate
from truerank.errors import NotSettled
from truerank.exporting import ROWS_PER_SLICE, ExportedRow
from truerank.model import Board, Numbering, Season
from truerank.read.scores import number_at, row_bytes, score_text
from truerank.sessions import AWAY, plain

_NEWEST = "SELECT max(revision) FROM truerank.settlements(%s)"
_SLICE = "SELECT * FROM truerank.export_settled(%s, %s, %s, %s)"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def settled_rows(
    database_url: str,
    board: Board,
    season: Season,
    *,
    revision: int | None = None,
    numbering: Numbering = Numbering.COMPETITION,
) -> Iterator[ExportedRow]:
    """Every place of a settlement, also of who is hidden or banned today.

    Of who was deleted since, the stand-in. The version of a row is the stand-in's number, which
    no other row has.

    Args:
        database_url: of PostgreSQL, with a pooler before it or not.
        board: whose season.
        season: which of them.
        revision: None: the newest.
        numbering: how equals were counted.

    Raises:
        NotSettled: there is no such settlement.
        DatabaseUnavailable: the connection could not be made, or was lost on the way.
    """
    equal_bytes = row_bytes(board)
    options = plain(database_url)
    try:
        with psycopg.connect(
            database_url, autocommit=True, application_name="truerank export", **options
        ) as conn:
            (newest,) = conn.execute(_NEWEST, (season.ranking,)).fetchone() or (None,)
            number = newest if revision is None else revision
            if newest is None or number is None or not 1 <= number <= newest:
                raise NotSettled(f"season {season.label} has no such settlement")
            last = 0
            while True:
                # Rows of a settlement never change: each slice may have a snapshot of its own.
                rows = conn.execute(
                    _SLICE, (season.ranking, number, last, ROWS_PER_SLICE), binary=True
                ).fetchall()
                for ordinal, competition, dense, member, key, ties, stand_in in rows:
                    last = ordinal
                    ranks = {
                        Numbering.ORDINAL: ordinal,
                        Numbering.COMPETITION: competition,
                        Numbering.DENSE: dense,
                    }
                    yield ExportedRow(
                        rank=ranks[numbering],
                        member=member,
                        score=score_text(board, key),
                        ties=tuple(ties or ()),
                        version=int.from_bytes(stand_in),
                        reached_at=_EPOCH + timedelta(microseconds=number_at(key, equal_bytes)),
                    )
                if len(rows) < ROWS_PER_SLICE:
                    return
    except AWAY as exc:
        raise translate(exc) from exc

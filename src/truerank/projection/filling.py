"""Read one chunk of the scan that fills a new copy of a group."""

import json

from truerank.crashpoints import crashpoint
from truerank.outbox.ticks import Connection, Part
from truerank.projection.copies import Copy

_SCAN = """
    SELECT ranking, key_bytes, packed, equal_bytes, last_member
    FROM truerank.scan_group(%s::smallint, %s, %s, %s)"""


def scan_chunk(conn: Connection, copy: Copy, rows_max: int) -> tuple[list[Part], str]:
    """Read the standings after the copy's scan position.

    Returns:
        The rows by ranking, and the position after them: `done` where nothing is left.

    Source: `schema/functions/scan_group.sql`.
    """
    ranking, member = json.loads(copy.scan) if copy.scan else (None, None)
    rows = conn.execute(_SCAN, (copy.group, ranking, member, rows_max), binary=True).fetchall()
    crashpoint("chunk_read")
    parts = [Part(*part) for *part, _ in rows]
    if sum(len(part.rows) for part in parts) < rows_max:
        return parts, "done"
    ranking, *_, last_member = rows[-1]
    return parts, json.dumps([ranking, last_member])

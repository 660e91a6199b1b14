"""What PostgreSQL says: rankings, slices of them in order, members at a point, states.

Each statement is short and has a snapshot of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from truerank.errors import SourceDoubtful
from truerank.outbox.ticks import Connection
from truerank.projection.copies import Copy, named_tick
from truerank.repair.findings import Ranking
from truerank.repair.judging import Standing, withheld_on
from truerank.repair.looking import CopyUnfit

_RANKINGS = """
    SELECT ranking, board, decimals, descending, key_bytes, equal_bytes
    FROM truerank.compared_rankings(%s::smallint, %s, %s::bigint[])"""
_SLICE = """
    SELECT members, shown, places, last_key, last_member
    FROM truerank.compared_slice(%s, %s, %s, %s)"""
_MOVERS = "SELECT * FROM truerank.compared_movers(%s::pg_snapshot, %s::smallint, %s, %s)"
_STATES = "SELECT * FROM truerank.compared_states(%s::smallint, %s, %s)"
_POINTS = """
    SELECT ord, version, sort_key, states, logged_version, logged_key, under_way,
           state_under_way, doubt, source, floor_tick
    FROM truerank.compared_points(
        %s::pg_snapshot, %s::pg_snapshot, %s::smallint, %s::bigint, %s::text[], %s::uuid,
        %s::bigint[], %s::uuid[])
    ORDER BY ord"""


@dataclass(frozen=True, slots=True)
class Slice:
    """Standings of a ranking in order, as a copy holds them; `last` is where the next begins."""

    members: Sequence[bytes] = ()
    shown: Sequence[bytes] = ()
    places: Sequence[bytes] = ()  # of those that take one
    last: tuple[bytes, str] | None = None  # None: nothing is left

    def wanted(self) -> dict[bytes, bytes]:
        """By member the place that its standing names, also of those that take none."""
        return {
            member: shown[8:] + member
            for member, shown in zip(self.members, self.shown, strict=True)
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What the source says of one member, as of the snapshot a copy has reached.

    `settled` False: not to be told yet, because a change is on its way to the copy.
    """

    settled: bool
    standing: Standing | None
    states: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """Where a copy stood when it was looked at, and where when it was looked at first."""

    copy: Copy  # with cursor, snapshot, base and covered as they were read
    since: str  # the snapshot of the first look


def rankings(
    conn: Connection, group: int, *, board_id: int | None, also: Sequence[int]
) -> list[Ranking]:
    """The rankings of a group in either store, in order of their numbers.

    Source: `schema/functions/compared_rankings.sql`.
    """
    rows = conn.execute(_RANKINGS, (group, board_id, list(also))).fetchall()
    return [
        Ranking(
            id=ranking,
            group=group,
            board=board,
            decimals=decimals or 0,
            descending=descending is not False,
            key_bytes=key_bytes,
            equal_bytes=equal_bytes,
        )
        for ranking, board, decimals, descending, key_bytes, equal_bytes in rows
    ]


def season_label(conn: Connection, ranking: int) -> str | None:
    """The label of a ranking's season.

    Source: `schema/functions/compared_season.sql`.
    """
    row = conn.execute("SELECT truerank.compared_season(%s)", (ranking,)).fetchone()
    return None if row is None else row[0]


def read_slice(conn: Connection, ranking: int, after: tuple[bytes, str], rows_max: int) -> Slice:
    """The standings after a sort key and member.

    Source: `schema/functions/compared_slice.sql`.
    """
    row = conn.execute(_SLICE, (ranking, *after, rows_max), binary=True).fetchone()
    assert row is not None, "the function returns one row"
    members, shown, places, last_key, last_member = row
    if members is None:
        return Slice()
    return Slice(members, shown, places or [], (last_key, last_member))


def read_movers(conn: Connection, ranking: Ranking, since: str, rows_max: int) -> list[bytes]:
    """Members whose standing changed since a snapshot.

    Source: `schema/functions/compared_movers.sql`.
    """
    rows = conn.execute(_MOVERS, (since, ranking.group, ranking.id, rows_max)).fetchall()
    return [member.encode() for (member,) in rows]


def read_states(conn: Connection, group: int, after: str, rows_max: int) -> list[tuple[str, bytes]]:
    """Members after one of them of whom something is withheld in a group, and their states.

    Source: `schema/functions/compared_states.sql`.
    """
    return conn.execute(_STATES, (group, after, rows_max), binary=True).fetchall()


def read_points(
    conn: Connection, at: At, ranking: int | None, members: Sequence[bytes]
) -> list[Point]:
    """What the source says of some members, in their order.

    Args:
        conn: in autocommit.
        at: where the copy stood.
        ranking: None: only of their states.
        members: as a copy spells them; one that is no text has no standing.

    Raises:
        SourceDoubtful: this server isn't the one that feeds the copy.
        CopyUnfit: nobody has brought the copy forward for so long that the log is gone.

    Source: `schema/functions/compared_points.sql`.
    """
    copy = at.copy
    ticks = sorted({named_tick(copy.cursor), named_tick(copy.covered)})
    rows = conn.execute(
        _POINTS,
        (
            at.since,
            copy.snapshot,
            copy.group,
            ranking,
            [_text(member) for member in members],
            copy.epoch,
            [tick for tick, _ in ticks],
            [nonce for _, nonce in ticks],
        ),
        binary=True,
    ).fetchall()
    (*_, doubt, source, floor_tick), *found = rows
    if doubt is None and found:
        doubt = found[0][8]
    if doubt is None:
        doubt = _superseded(source, copy.source)
    if doubt is not None:
        raise SourceDoubtful(
            f"group {copy.group} of the projection is not of this database: {doubt}"
        )
    if int(copy.base) < floor_tick:
        raise CopyUnfit(f"group {copy.group}: what changed since it was brought up to date is gone")
    return [_point(row, (ranking or 0) >> 36) for row in found]


def _point(row: tuple[object, ...], board: int) -> Point:
    _, version, key, states, logged_version, logged_key, under_way, state_under_way, *_ = row
    if under_way:
        # What was logged and has arrived since the first look is what the copy must show by now.
        version, key = logged_version, logged_key
    states = states if isinstance(states, bytes) else b""
    standing = (
        Standing(version=version, sort_key=key, withheld=withheld_on(states, board))
        if isinstance(version, int) and isinstance(key, bytes)
        else None
    )
    settled = not state_under_way and (not under_way or logged_version is not None)
    return Point(settled=settled, standing=standing, states=states)


def _text(member: bytes) -> str:
    # No member's id is empty: what is no text is asked for under a name that nobody has.
    try:
        text = member.decode()
    except UnicodeDecodeError:
        return ""
    return "" if "\0" in text else text


def _superseded(source: str | None, fed_from: str) -> str | None:
    cluster, _, timeline = (source or "").partition(":")
    fed_cluster, _, fed_timeline = fed_from.partition(":")
    if (
        cluster == fed_cluster
        and fed_timeline.isdecimal()
        and timeline.isdecimal()
        and int(fed_timeline) > int(timeline)
    ):
        return f"timeline {fed_timeline} feeds it, and this server is still on {timeline}"
    return None

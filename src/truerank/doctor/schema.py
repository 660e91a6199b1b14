"""What is examined of Truerank's own in PostgreSQL: schema, indexes, zones, what holds it back."""

from collections.abc import Iterator

from truerank.doctor.findings import Deployment, Finding, error, ok, warning
from truerank.errors import SchemaMismatch
from truerank.schema import migrate, sql
from truerank.telemetry.words import bytes_words

_OPEN_MS_MAX = 300_000
_XIDS_MAX = 1_000_000
_NAMED_MAX = 5
_LATE_MS_MAX = 60_000
_MEMBERS_MAX = 5_000_000
# Without reading a standing: the planner knows how frequent the most frequent rankings are.
_LARGEST = """
    SELECT b.key, (truerank.season_of_ranking(b, s.ranking)).label,
           (s.share * c.reltuples)::bigint AS members
    FROM pg_stats AS p, pg_class AS c,
         unnest(p.most_common_vals::text::bigint[], p.most_common_freqs) AS s (ranking, share)
         JOIN truerank.board AS b ON b.id = s.ranking >> 36
    WHERE p.schemaname = 'truerank' AND p.tablename = 'standing' AND p.attname = 'ranking'
      AND c.oid = 'truerank.standing'::regclass AND s.share * c.reltuples > %s
    ORDER BY members DESC"""
_LET_GO = {
    "lock": "end its transaction: SELECT pg_terminate_backend(pid)",
    "copy": "bring Redis back; a copy that nobody brings forward is given up after"
    " TRUERANK_DEAD_S, or once the outbox exceeds TRUERANK_OUTBOX_BYTES_MAX",
}
# Those without which a common question reads a whole table.
_INDEXES = {
    "board_key",
    "event_of_member",
    "event_pkey",
    "generation_pkey",
    "lease_pkey",
    "ranking_pkey",
    "standing_order",
    "standing_pkey",
    *(f"outbox_{segment}_xid_idx" for segment in range(4)),
    *(f"tick_{segment}_id_idx" for segment in range(4)),
}


def schema_version(here: Deployment) -> Iterator[Finding]:
    """Tables and functions are those of this release."""
    try:
        migrate.check(here.conn)
    except SchemaMismatch as exc:
        yield error(schema_version, exc.message, "run `truerank migrate` of this release")
    else:
        newest = sql.migrations()[-1].name
        yield ok(schema_version, f"{newest}, and the functions of this release")


def indexes(here: Deployment) -> Iterator[Finding]:
    """Every index that common questions rely on is there, and every index is valid."""
    rows = here.conn.execute(
        """SELECT c.relname, i.indisvalid AND i.indisready
           FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
           WHERE c.relnamespace = 'truerank'::regnamespace"""
    ).fetchall()
    found: dict[str, bool] = dict(rows)
    missing = sorted(_INDEXES - found.keys())
    invalid = sorted(name for name, valid in found.items() if not valid)
    if missing:
        yield error(
            indexes,
            f"missing: {', '.join(missing)}",
            "create it as the migrations do: every question that needs it reads whole tables",
        )
    if invalid:
        yield error(
            indexes,
            f"not valid: {', '.join(invalid)}",
            f"REINDEX INDEX CONCURRENTLY truerank.{invalid[0]}",
        )
    if not missing and not invalid:
        yield ok(indexes, f"{len(found)} indexes, all valid")


def time_zones(here: Deployment) -> Iterator[Finding]:
    """The server knows the time zone of every board."""
    rows = here.conn.execute(
        """SELECT b.zone, min(b.key), count(*) FROM truerank.boards() AS b
           WHERE NOT EXISTS (SELECT FROM pg_timezone_names AS z WHERE z.name = b.zone)
           GROUP BY b.zone ORDER BY b.zone"""
    ).fetchall()
    for zone, board, boards in rows[:_NAMED_MAX]:
        yield error(
            time_zones,
            f"the server does not know {zone}, the zone of {boards} boards, {board!r} for one",
            "install the server's time zone data, or upgrade it: events of these boards fail",
        )
    if not rows:
        yield ok(time_zones, "the zones of all boards are known")


def outbox(here: Deployment) -> Iterator[Finding]:
    """The outbox is emptied in turn: nothing holds up a segment that is due."""
    status, settings = here.status, here.settings
    if status.segment is None or status.segment_age_ms is None:
        yield warning(outbox, "could not be examined", "see what `truerank status` says")
        return
    late_ms = status.segment_age_ms - settings.segment_s * 1000
    large = status.segment_bytes[status.segment] > settings.segment_bytes_max
    if late_ms < _LATE_MS_MAX and not large:
        size = bytes_words(status.outbox_bytes or 0)
        yield ok(outbox, f"{size}, written to one segment for {status.segment_age_ms // 1000} s")
        return
    due = f"overdue for {late_ms // 1000} s" if late_ms > 0 else "larger than it should be"
    held = here.conn.execute("SELECT kind, name, age_ms FROM truerank.ring_held_by()").fetchall()
    for kind, name, age_ms in held[:_NAMED_MAX]:
        age = "" if age_ms is None else f" for {age_ms // 1000} s"
        told = f"{name} has a lock on it{age}" if kind == "lock" else f"{name} is behind{age}"
        yield warning(
            outbox,
            f"the segment that is written to is {due}, and the next can't be emptied: {told}",
            _LET_GO[kind],
        )
    if not held:
        yield warning(
            outbox,
            f"the segment that is written to is {due}, though nothing holds up the next",
            "see that a worker runs, and what its log says",
        )


def large_rankings(here: Deployment) -> Iterator[Finding]:
    """No season of a board has more members than this release is measured with."""
    rows = here.conn.execute(_LARGEST, (_MEMBERS_MAX,)).fetchall()
    for board, label, members in rows[:_NAMED_MAX]:
        yield warning(
            large_rankings,
            f"board {board!r}, season {label}: about {members:,} members",
            "let Redis have room for two copies, and expect a rebuild to take minutes; where most"
            " are idle, a season of its own per month is smaller than one for ever",
        )
    if not rows:
        yield ok(large_rankings, f"none has more than {_MEMBERS_MAX:,} members, by estimate")


def held_back(here: Deployment) -> Iterator[Finding]:
    """No old transaction or replication slot keeps dead rows of the score table."""
    old = [
        each
        for each in here.status.held_back
        if (each.age_ms or 0) > _OPEN_MS_MAX or each.xids > _XIDS_MAX
    ]
    advice = {
        "session": "end it: SELECT pg_terminate_backend(pid)",
        "prepared": "COMMIT PREPARED or ROLLBACK PREPARED it",
        "slot": "let its consumer go on, or drop it: SELECT pg_drop_replication_slot(name)",
    }
    for each in old:
        age = f"open for {each.age_ms // 1000} s, " if each.age_ms is not None else ""
        yield warning(
            held_back,
            f"{each.kind} {each.name}: {age}{each.xids} transactions begun since; the score table"
            " grows meanwhile",
            advice[each.kind],
        )
    if not old:
        yield ok(held_back, "nothing old is open")

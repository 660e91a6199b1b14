"""What is examined of Truerank's own in PostgreSQL: schema, indexes, zones, what holds it back."""

from collections.abc import Iterator

from truerank.doctor.findings import Deployment, Finding, error, ok, warning
from truerank.errors import SchemaMismatch
from truerank.schema import migrate, sql

_OPEN_MS_MAX = 300_000
_XIDS_MAX = 1_000_000
_NAMED_MAX = 5
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

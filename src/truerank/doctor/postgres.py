"""What is examined in PostgreSQL: the server, its settings, the role."""

from collections.abc import Iterator

from truerank.doctor.findings import Connection, Deployment, Finding, error, ok, warning

_VERSIONS = range(15, 19)
_CONNECTIONS_BESIDE_POOLS = 7  # a worker, four lanes of its chores, two that /metrics asks on


def postgresql_version(here: Deployment) -> Iterator[Finding]:
    """The major version is one that this release is tested on."""
    yield judge_version(here.conn.info.server_version)


def judge_version(number: int) -> Finding:
    """Judge a version such as 180006."""
    major = number // 10_000
    if major in _VERSIONS:
        return ok(postgresql_version, f"PostgreSQL {major}.{number % 10_000}")
    tested = f"{_VERSIONS[0]} to {_VERSIONS[-1]}"
    if major < _VERSIONS[0]:
        return error(
            postgresql_version, f"PostgreSQL {major} is too old", f"use PostgreSQL {tested}"
        )
    return warning(
        postgresql_version,
        f"PostgreSQL {major} is newer than what this release was tested on",
        f"use PostgreSQL {tested}, or a newer release of Truerank",
    )


def primary(here: Deployment) -> Iterator[Finding]:
    """The server takes writes: it is no standby, and not read-only."""
    if _one(here.conn, "SELECT pg_is_in_recovery()"):
        yield error(
            primary, "the server is a standby", "point TRUERANK_DATABASE_URL at the primary"
        )
    elif _one(here.conn, "SHOW default_transaction_read_only") == "on":
        yield error(
            primary,
            "default_transaction_read_only is on: no score can be written",
            "turn it off for this role and database",
        )
    else:
        yield ok(primary, "the server takes writes")


def durability(here: Deployment) -> Iterator[Finding]:
    """What was acknowledged survives a crash: fsync, full_page_writes, synchronous_commit."""
    off = [
        name for name in ("fsync", "full_page_writes") if _one(here.conn, f"SHOW {name}") == "off"
    ]
    if off:
        yield error(
            durability,
            f"{' and '.join(off)} off: a crash of the machine may destroy the database",
            "turn it on, unless the data is for tests alone",
        )
    if _one(here.conn, "SHOW synchronous_commit") == "off":
        yield warning(
            durability,
            "synchronous_commit is off: the last scores before a crash may be lost though they"
            " were acknowledged",
            "turn it on for the roles that submit scores",
        )
    elif not off:
        yield ok(durability, "commits are on disk before they are acknowledged")


def autovacuum(here: Deployment) -> Iterator[Finding]:
    """Dead rows of the score table are removed: autovacuum is on, for the server and each table."""
    if _one(here.conn, "SHOW autovacuum") == "off" or _one(here.conn, "SHOW track_counts") == "off":
        yield error(
            autovacuum,
            "autovacuum is off: the score table grows without end",
            "turn autovacuum and track_counts on",
        )
        return
    tables = _column(
        here.conn,
        """SELECT c.relname FROM pg_class AS c
           WHERE c.relnamespace = 'truerank'::regnamespace
             AND c.reloptions && ARRAY['autovacuum_enabled=false', 'autovacuum_enabled=off']""",
    )
    if tables:
        yield error(
            autovacuum,
            f"autovacuum is off for {', '.join(tables)}",
            f"ALTER TABLE truerank.{tables[0]} RESET (autovacuum_enabled)",
        )
    else:
        yield ok(autovacuum, "autovacuum is on")


def privileges(here: Deployment) -> Iterator[Finding]:
    """The role may do what the command needs: the owner all, a caller only submit and read."""
    role = _one(here.conn, "SELECT current_user")
    if _one(
        here.conn,
        "SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = 'truerank'",
    ):
        yield ok(privileges, f"{role} owns the schema: it may run everything")
    elif _one(
        here.conn,
        """SELECT has_schema_privilege('truerank', 'USAGE') AND bool_and(
                      has_function_privilege(p.oid, 'EXECUTE'))
           FROM pg_proc AS p WHERE p.pronamespace = to_regnamespace('truerank')
             AND p.proname IN ('submit_scores', 'read_page')""",
    ):
        yield warning(
            privileges,
            f"{role} is a caller: enough to submit and read, not for a worker or the service",
            "let those connect as the owner of the schema",
        )
    else:
        yield error(
            privileges,
            f"{role} may not use the schema truerank",
            f"as the owner: SELECT truerank.grant_caller('{role}')",
        )


def statistics(here: Deployment) -> Iterator[Finding]:
    """The role sees what other roles' sessions do, so that long transactions can be told."""
    if _one(here.conn, "SELECT pg_has_role('pg_read_all_stats', 'USAGE')"):
        yield ok(statistics, "sessions of all roles can be seen")
    else:
        yield warning(
            statistics,
            "transactions of other roles can't be seen: metrics and this examination miss them",
            "GRANT pg_read_all_stats TO the owner of the schema",
        )


def pooler(here: Deployment) -> Iterator[Finding]:
    """No pooler in transaction mode stands before the database."""
    # Behind a pooler the number of the backend that a client was told is the pooler's invention.
    if _one(here.conn, "SELECT pg_backend_pid()") == here.conn.info.backend_pid:
        yield ok(pooler, "connections are direct")
    else:
        yield warning(
            pooler,
            "a pooler stands between: fine for applications, the service and the command line",
            "let workers connect directly",
        )


def connections(here: Deployment) -> Iterator[Finding]:
    """The server, the database and the role let as many connect as the pools may open."""
    limits = _row(
        here.conn,
        """SELECT current_setting('max_connections')::integer
                  - current_setting('superuser_reserved_connections')::integer
                  - coalesce(current_setting('reserved_connections', true)::integer, 0),
                  nullif(d.datconnlimit, -1), nullif(r.rolconnlimit, -1)
           FROM pg_database AS d, pg_roles AS r
           WHERE d.datname = current_database() AND r.rolname = current_user""",
    )
    most = min(limit for limit in limits if limit is not None)
    needed = 2 * here.settings.pool_max + _CONNECTIONS_BESIDE_POOLS
    if most < needed:
        yield warning(
            connections,
            f"{most} connections are allowed, and one service with one worker may open {needed}",
            "raise max_connections or the limit of the role, or lower TRUERANK_POOL_MAX",
        )
    else:
        yield ok(connections, f"{most} allowed; one service with one worker opens up to {needed}")


def _one(conn: Connection, sql: str) -> object:
    row = conn.execute(sql.encode()).fetchone()
    return row[0] if row else None


def _row(conn: Connection, sql: str) -> tuple[int | None, ...]:
    row = conn.execute(sql.encode()).fetchone()
    assert row is not None, "of catalogs that always have it"
    return row


def _column(conn: Connection, sql: str) -> list[str]:
    return [str(row[0]) for row in conn.execute(sql.encode()).fetchall()]

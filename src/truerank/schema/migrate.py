"""Bring a database to the schema of this release, one runner at a time.

Migrations are additive and never edited once released; each is one transaction, which holds the
runner's lock. Functions are replaced as a whole, in one transaction as well, whenever their digest
differs. Old code keeps running meanwhile: a changed signature is a new function.
"""

import time

import psycopg

from truerank.errors import DatabaseUnavailable, MigrationEdited, SchemaMismatch
from truerank.schema import sql
from truerank.sessions import plain

# Any number that only this runner uses.
_RUNNER_LOCK = 0x7472_6D69_6772
_LOCK_WAIT_S_MAX = 60.0
_LOCK_RETRY_S = 0.1
_LOCK_TIMEOUT = "5s"

_HISTORY = """
    CREATE TABLE IF NOT EXISTS public.truerank_migration (
        version integer PRIMARY KEY,
        name text NOT NULL,
        sha256 text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )"""
# Kept under the number 0, so that one table tells the whole state.
_FUNCTIONS = (0, "functions")
_NAMED = """
    SELECT p.oid::regprocedure::text FROM pg_proc AS p
    WHERE p.pronamespace = 'truerank'::regnamespace AND p.proname = %s"""
# With the transaction that made each: what is replaced gets another.
_ALL = """
    SELECT p.oid::regprocedure::text, p.xmin::text FROM pg_proc AS p
    WHERE p.pronamespace = 'truerank'::regnamespace"""
# They are to call what is new as well, and what had to be dropped.
_CALLERS = """
    SELECT DISTINCT a.grantee::regrole::text
    FROM pg_proc AS p CROSS JOIN LATERAL aclexplode(p.proacl) AS a
    WHERE p.pronamespace = 'truerank'::regnamespace AND p.proname = 'submit_scores'
      AND a.grantee <> p.proowner AND a.grantee <> 0"""


def migrate(database_url: str) -> list[int]:
    """Apply what is missing, and replace the functions if they differ.

    Safe to run again, and from several processes at once: one works, the others wait and find
    nothing to do. One that is killed leaves what it had finished, and no lock.

    Args:
        database_url: of a role that owns the database's schema; through a pooler as well.

    Returns:
        The numbers of the migrations applied now, in order.

    Raises:
        MigrationEdited: an applied migration differs from the file of this release.
        SchemaMismatch: the database was migrated by a newer release, or isn't UTF-8.
        DatabaseUnavailable: no connection, or another runner holds the lock for too long.
    """
    try:
        connection = psycopg.connect(database_url, autocommit=True, **plain(database_url))
    except psycopg.OperationalError as exc:
        raise DatabaseUnavailable(f"no connection to PostgreSQL: {exc}") from exc
    with connection:
        connection.prepare_threshold = None  # a pooler may stand between
        _check_encoding(connection)
        applied: list[int] = []
        while (step := _step(connection)) is not None:
            applied += step
        return applied


def check(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    """Fail unless the database is exactly at the schema of this release.

    Raises:
        SchemaMismatch: it isn't; the message says what to do.
    """
    row = connection.execute("SELECT to_regclass('public.truerank_migration')").fetchone()
    done = _done(connection) if row and row[0] else {}
    problem = mismatch(done)
    if problem:
        raise SchemaMismatch(problem)


def mismatch(done: dict[int, str]) -> str | None:
    """Why the applied versions (number to SHA-256) don't fit this release, or None."""
    wanted = _numbered()
    missing = sorted(set(wanted) - set(done))
    if missing:
        return f"the database lacks migration {missing[0]:04}: run `truerank migrate`"
    newer = sorted(set(done) - set(wanted) - {_FUNCTIONS[0]})
    if newer:
        return f"the database has migration {newer[-1]:04} of a newer release: upgrade this one"
    if done.get(_FUNCTIONS[0]) != sql.functions_digest():
        return "the SQL functions are those of another release: run `truerank migrate`"
    return None


def mismatch_error() -> SchemaMismatch:
    """The error for a database that lacks what this release calls."""
    return SchemaMismatch("the database lacks the schema of this release: run `truerank migrate`")


def _numbered() -> dict[int, sql.SqlFile]:
    return {int(file.name[:4]): file for file in sql.migrations()}


def _check_encoding(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    row = connection.execute("SHOW server_encoding").fetchone()
    if row is None or row[0] != "UTF8":
        raise SchemaMismatch(f"the database must be UTF8, and is {row and row[0]}")


def _step(connection: "psycopg.Connection[tuple[object, ...]]") -> list[int] | None:
    """Do the next thing that is missing, in one transaction; None where nothing is."""
    # Never wait inside pg_advisory_lock(): the waiter's snapshot would hold up others.
    deadline = time.monotonic() + _LOCK_WAIT_S_MAX
    while True:
        with connection.transaction():
            row = connection.execute(
                "SELECT pg_try_advisory_xact_lock(%s)", (_RUNNER_LOCK,)
            ).fetchone()
            if row and row[0]:
                connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
                return _apply_next(connection)
        if time.monotonic() > deadline:
            raise DatabaseUnavailable("another migration has been running for a minute")
        time.sleep(_LOCK_RETRY_S)


def _done(connection: "psycopg.Connection[tuple[object, ...]]") -> dict[int, str]:
    rows = connection.execute("SELECT version, sha256 FROM public.truerank_migration").fetchall()
    return {int(str(version)): str(sha256) for version, sha256 in rows}


def _apply_next(connection: "psycopg.Connection[tuple[object, ...]]") -> list[int] | None:
    connection.execute(_HISTORY)
    done = _done(connection)
    files = _numbered()
    newer = sorted(set(done) - set(files) - {_FUNCTIONS[0]})
    if newer:
        raise SchemaMismatch(
            f"the database has migration {newer[-1]:04} of a newer release: upgrade this one"
        )
    edited = [
        file.name for number, file in files.items() if done.get(number, file.sha256) != file.sha256
    ]
    if edited:
        raise MigrationEdited(f"{edited[0]}.sql was edited after it was applied")
    for number, file in files.items():
        if number not in done:
            connection.execute(file.text.encode())
            connection.execute(
                "INSERT INTO public.truerank_migration (version, name, sha256) VALUES (%s, %s, %s)",
                (number, file.name, file.sha256),
            )
            return [number]
    if done.get(_FUNCTIONS[0]) != sql.functions_digest():
        _replace_functions(connection)
        return []
    return None


def _drop(
    connection: "psycopg.Connection[tuple[object, ...]]", functions: list[tuple[object, ...]]
) -> None:
    for (function,) in functions:
        connection.execute(f"DROP FUNCTION {function}".encode())


def _replace_functions(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    # Bodies name each other; the order of files must not matter.
    connection.execute("SET LOCAL check_function_bodies = off")
    callers = connection.execute(_CALLERS).fetchall()
    before = set(connection.execute(_ALL).fetchall())
    for file in sql.functions():
        try:
            with connection.transaction():
                connection.execute(file.text.encode())
        except psycopg.errors.InvalidFunctionDefinition:
            # What it returns has changed, which a replacement can't.
            _drop(connection, connection.execute(_NAMED, (file.name,)).fetchall())
            connection.execute(file.text.encode())
    # Functions, and shapes of functions, of other releases.
    left = before & set(connection.execute(_ALL).fetchall())
    _drop(connection, [(name,) for name, _ in left])
    connection.execute("REVOKE ALL ON ALL FUNCTIONS IN SCHEMA truerank FROM PUBLIC")
    for (caller,) in callers:
        connection.execute("SELECT truerank.grant_caller(%s::regrole)", (caller,))
    connection.execute(
        "INSERT INTO public.truerank_migration (version, name, sha256) VALUES (%s, %s, %s)"
        " ON CONFLICT (version) DO UPDATE SET sha256 = excluded.sha256,"
        " applied_at = clock_timestamp()",
        (*_FUNCTIONS, sql.functions_digest()),
    )

"""Bring a database to the schema of this release: once, by one runner, or not at all."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql as psql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from truerank.errors import DatabaseUnavailable, MigrationEdited, SchemaMismatch
from truerank.schema import sql
from truerank.schema.migrate import check, migrate

Connection = psycopg.Connection[Any]
NUMBERS = [int(file.name[:4]) for file in sql.migrations()]
HISTORY = "SELECT * FROM public.truerank_migration ORDER BY version"


@pytest.fixture
def conn(empty_database_url: str) -> Iterator[Connection]:
    with psycopg.connect(empty_database_url, autocommit=True) as conn:
        yield conn


def test_an_empty_database_gets_every_migration_in_order(
    empty_database_url: str, conn: Connection
) -> None:
    applied = migrate(empty_database_url)

    assert applied == NUMBERS == sorted(NUMBERS)
    check(conn)


def test_a_second_run_changes_nothing(empty_database_url: str, conn: Connection) -> None:
    migrate(empty_database_url)
    before = conn.execute(HISTORY).fetchall()

    applied = migrate(empty_database_url)

    assert applied == []
    assert conn.execute(HISTORY).fetchall() == before


def test_runners_at_once_do_each_step_once(empty_database_url: str, conn: Connection) -> None:
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(migrate, [empty_database_url] * 4))

    # A step is a transaction, so several may take turns.
    assert sorted(number for done in found for number in done) == NUMBERS
    check(conn)
    held = conn.execute(
        "SELECT FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database"
        " WHERE l.locktype = 'advisory' AND d.datname = current_database()"
    )
    assert held.rowcount == 0


def test_a_runner_waits_for_the_one_that_holds_the_lock(
    empty_database_url: str, conn: Connection
) -> None:
    conn.execute("SELECT pg_advisory_lock(%s)", (0x7472_6D69_6772,))
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(migrate, empty_database_url)
        with pytest.raises(TimeoutError):
            waiting.result(0.5)

        conn.execute("SELECT pg_advisory_unlock(%s)", (0x7472_6D69_6772,))

        assert waiting.result(30) == NUMBERS


def test_an_edited_migration_is_refused(empty_database_url: str, conn: Connection) -> None:
    migrate(empty_database_url)
    conn.execute("UPDATE public.truerank_migration SET sha256 = 'other' WHERE version = 1")
    before = conn.execute(HISTORY).fetchall()

    with pytest.raises(MigrationEdited, match="0001"):
        migrate(empty_database_url)

    assert conn.execute(HISTORY).fetchall() == before


def test_a_database_of_a_newer_release_is_refused(
    empty_database_url: str, conn: Connection
) -> None:
    migrate(empty_database_url)
    conn.execute(
        "INSERT INTO public.truerank_migration (version, name, sha256) VALUES (9999, 'new', 'x')"
    )

    with pytest.raises(SchemaMismatch, match="9999"):
        migrate(empty_database_url)
    with pytest.raises(SchemaMismatch, match="9999"):
        check(conn)


def test_a_database_that_was_never_migrated_is_told_so(conn: Connection) -> None:
    with pytest.raises(SchemaMismatch, match="truerank migrate"):
        check(conn)


def test_functions_of_another_release_are_replaced(
    empty_database_url: str, conn: Connection
) -> None:
    migrate(empty_database_url)
    conn.execute("UPDATE public.truerank_migration SET sha256 = 'other' WHERE version = 0")
    conn.execute(
        "CREATE OR REPLACE FUNCTION truerank.lock_class() RETURNS integer LANGUAGE sql"
        " AS 'SELECT 1'"
    )
    with pytest.raises(SchemaMismatch, match="functions"):
        check(conn)

    applied = migrate(empty_database_url)

    assert applied == []
    check(conn)
    assert conn.execute("SELECT truerank.lock_class()").fetchone() == (21586,)


def test_a_failed_migration_leaves_nothing_behind(
    empty_database_url: str, conn: Connection
) -> None:
    conn.execute("CREATE SCHEMA truerank")

    with pytest.raises(psycopg.errors.DuplicateSchema):
        migrate(empty_database_url)
    conn.execute("DROP SCHEMA truerank")

    assert migrate(empty_database_url) == NUMBERS


def test_a_role_granted_before_functions_are_replaced_keeps_its_grants(
    empty_database_url: str, conn: Connection
) -> None:
    migrate(empty_database_url)
    role = f"kept_{conn.info.dbname}"
    conn.execute(psql.SQL("CREATE ROLE {}").format(psql.Identifier(role)))
    try:
        conn.execute("SELECT truerank.grant_caller(%s::regrole)", (role,))
        conn.execute("UPDATE public.truerank_migration SET sha256 = 'other' WHERE version = 0")
        migrate(empty_database_url)
        granted = conn.execute(
            "SELECT bool_and(has_function_privilege(%s, p.oid, 'EXECUTE')) FROM pg_proc AS p"
            " WHERE p.pronamespace = 'truerank'::regnamespace AND p.proname ~ '^submit_score'",
            (role,),
        ).fetchone()
    finally:
        conn.execute(psql.SQL("DROP OWNED BY {}").format(psql.Identifier(role)))
        conn.execute(psql.SQL("DROP ROLE {}").format(psql.Identifier(role)))

    assert granted == (True,)


def test_functions_of_another_shape_make_way_and_callers_may_call_what_is_new(
    empty_database_url: str, conn: Connection
) -> None:
    migrate(empty_database_url)
    role = f"caller_{conn.info.dbname}"
    name = psql.Identifier(role)
    conn.execute(psql.SQL("CREATE ROLE {}").format(name))
    try:
        conn.execute("SELECT truerank.grant_caller(%s::regrole)", (role,))
        # As an earlier release may have left it: another result, other parameters, one too many.
        conn.execute("DROP FUNCTION truerank.profiles(text[])")
        conn.execute("CREATE FUNCTION truerank.profiles(text[]) RETURNS int RETURN 1")
        conn.execute("CREATE FUNCTION truerank.profiles(text[], int) RETURNS int RETURN 1")
        conn.execute("CREATE FUNCTION truerank.gone() RETURNS int RETURN 1")
        conn.execute("UPDATE public.truerank_migration SET sha256 = 'other' WHERE version = 0")

        migrate(empty_database_url)

        check(conn)
        shapes = conn.execute(
            "SELECT p.oid::regprocedure::text FROM pg_proc AS p"
            " WHERE pronamespace = 'truerank'::regnamespace AND proname IN ('profiles', 'gone')"
        ).fetchall()
        assert shapes == [("truerank.profiles(text[])",)]
        conn.execute(psql.SQL("SET ROLE {}").format(name))
        assert conn.execute("SELECT * FROM truerank.profiles('{a}')").fetchall() == []
    finally:
        conn.execute("RESET ROLE")
        conn.execute(psql.SQL("DROP OWNED BY {}").format(name))
        conn.execute(psql.SQL("DROP ROLE {}").format(name))


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_is_not_utf8_is_refused_and_left_as_it_is(
    empty_database_url: str, conn: Connection, encoding: str
) -> None:
    name = f"{conn.info.dbname}_{encoding.lower()}"
    given = {**conninfo_to_dict(empty_database_url), "dbname": name}
    url = make_conninfo(**{key: str(value) for key, value in given.items()})
    conn.execute(
        psql.SQL(
            "CREATE DATABASE {} TEMPLATE template0 ENCODING {} LC_COLLATE 'C' LC_CTYPE 'C'"
        ).format(psql.Identifier(name), psql.Literal(encoding))
    )
    try:
        with pytest.raises(SchemaMismatch, match=encoding):
            migrate(url)
        with psycopg.connect(url) as other:
            found = other.execute(
                "SELECT to_regclass('public.truerank_migration'), to_regnamespace('truerank')"
            ).fetchone()
    finally:
        conn.execute(psql.SQL("DROP DATABASE {} WITH (FORCE)").format(psql.Identifier(name)))

    assert found == (None, None)


def test_a_server_that_is_away_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailable):
        migrate(f"postgresql:///truerank?host={tmp_path}")


def test_every_function_file_opens_with_its_name_and_makes_that_function(
    empty_database_url: str, conn: Connection
) -> None:
    migrate(empty_database_url)

    rows = conn.execute(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'truerank'::regnamespace"
    ).fetchall()

    assert sorted(name for (name,) in rows) == [file.name for file in sql.functions()]


def test_a_function_file_with_another_first_line_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "functions"
    folder.mkdir()
    (folder / "right.sql").write_text("-- right: do it.\nSELECT 1")
    monkeypatch.setattr(resources, "files", lambda _: tmp_path)

    assert [file.name for file in sql.functions()] == ["right"]
    (folder / "wrong.sql").write_text("-- right: do it.\nSELECT 1")
    with pytest.raises(SchemaMismatch, match=r"wrong\.sql"):
        sql.functions()


def test_functions_that_callers_reach_run_as_their_owner_with_a_fixed_search_path(
    empty_database_url: str, conn: Connection
) -> None:
    migrate(empty_database_url)

    rows = conn.execute(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'truerank'::regnamespace AND prosecdef"
        " AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (proconfig), false)"
    ).fetchall()
    public = conn.execute(
        "SELECT proname FROM pg_proc AS p WHERE p.pronamespace = 'truerank'::regnamespace"
        " AND EXISTS (SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a"
        " WHERE a.grantee = 0)"
    ).fetchall()

    assert (rows, public) == ([], [])


def test_every_text_that_takes_part_in_an_order_compares_by_bytes(
    empty_database_url: str, conn: Connection
) -> None:
    migrate(empty_database_url)

    rows = conn.execute(
        "SELECT c.relname, a.attname"
        " FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid"
        " WHERE c.relnamespace = 'truerank'::regnamespace AND c.relkind IN ('r', 'p')"
        " AND a.attname IN ('key', 'member', 'season', 'cohort', 'event_text')"
        " AND a.attcollation NOT IN (0, 'pg_catalog.\"C\"'::regcollation)"  # 0: no text
    ).fetchall()

    assert rows == []


@pytest.mark.parametrize("file", sql.migrations()[3:], ids=lambda file: str(file.name))
def test_a_migration_takes_no_function_away_from_who_still_calls_it(file: sql.SqlFile) -> None:
    # Those of the release arrive in a later transaction, and take away what is left over then.
    assert "DROP FUNCTION" not in file.text


def test_the_kinds_of_events_are_widened_without_a_scan(
    empty_database_url: str, conn: Connection
) -> None:
    migrate(empty_database_url)

    checked = conn.execute(
        "SELECT convalidated FROM pg_constraint WHERE conname = 'event_kind_check'"
        " AND conrelid = 'truerank.event'::regclass"
    ).fetchone()

    assert checked == (False,)

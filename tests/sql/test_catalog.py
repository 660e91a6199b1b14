"""What PostgreSQL's catalog must say of the schema."""

import psycopg

FOREIGN_KEYS = """
    SELECT c.conname, EXISTS (
        SELECT FROM pg_index AS i
        WHERE i.indrelid = c.conrelid AND i.indpred IS NULL AND i.indisvalid
          AND (i.indkey::int2[])[0:cardinality(c.conkey) - 1] @> c.conkey)
    FROM pg_constraint AS c
    WHERE c.contype = 'f' AND c.connamespace = 'truerank'::regnamespace"""

COMPILED = """
    SELECT p.proname, 'jit=off' = ANY (p.proconfig) IS NOT TRUE
    FROM pg_proc AS p
    WHERE p.pronamespace = 'truerank'::regnamespace
      AND (p.proname = 'log_states' OR 'enable_sort=off' = ANY (p.proconfig))"""


def test_every_foreign_key_has_an_index_by_which_its_rows_are_found(database_url: str) -> None:
    with psycopg.connect(database_url) as conn:
        indexed: dict[str, bool] = dict(conn.execute(FOREIGN_KEYS).fetchall())

    assert len(indexed) > 5
    assert [name for name, has in indexed.items() if not has] == []


def test_what_is_called_often_and_looks_dear_to_the_planner_is_never_compiled(
    database_url: str,
) -> None:
    with psycopg.connect(database_url) as conn:
        compiled: dict[str, bool] = dict(conn.execute(COMPILED).fetchall())

    assert len(compiled) > 3
    assert [name for name, may_be in compiled.items() if may_be] == []

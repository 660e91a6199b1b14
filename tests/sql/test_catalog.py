"""What PostgreSQL's catalog must say of the schema."""

import psycopg

FOREIGN_KEYS = """
    SELECT c.conname, EXISTS (
        SELECT FROM pg_index AS i
        WHERE i.indrelid = c.conrelid AND i.indpred IS NULL AND i.indisvalid
          AND (i.indkey::int2[])[0:cardinality(c.conkey) - 1] @> c.conkey)
    FROM pg_constraint AS c
    WHERE c.contype = 'f' AND c.connamespace = 'truerank'::regnamespace"""


def test_every_foreign_key_has_an_index_by_which_its_rows_are_found(database_url: str) -> None:
    with psycopg.connect(database_url) as conn:
        indexed: dict[str, bool] = dict(conn.execute(FOREIGN_KEYS).fetchall())

    assert len(indexed) > 5
    assert [name for name, has in indexed.items() if not has] == []

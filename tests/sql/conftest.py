"""One migrated database for a file of tests that call functions and keep nothing."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from truerank.embedded import Engines

Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def shared(engines: Engines, template: str, numbers: Iterator[int]) -> Iterator[Connection]:
    """A connection to a database that the tests of one file share."""
    name = f"shared_{next(numbers)}"
    with psycopg.connect(engines.database_url, autocommit=True) as maker:
        copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        maker.execute(copy.format(sql.Identifier(name), sql.Identifier(template)))
        url = make_conninfo(engines.database_url, dbname=name)
        with psycopg.connect(url, autocommit=True) as conn:
            yield conn
        maker.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))


@pytest.fixture
def rolled_back(shared: Connection) -> Iterator[Connection]:
    """The shared connection, in a transaction of this test's own that is rolled back."""
    with shared.transaction(force_rollback=True):
        yield shared

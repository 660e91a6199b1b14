"""What errors of PostgreSQL and of its driver mean to a caller."""

import psycopg
import pytest

from tests.projection.pipeline import Pipeline
from truerank.errors import InvalidInput, SchemaMismatch
from truerank.steps import Query, Steps


def rows(sql: str, *params: object) -> Steps[object]:
    return (yield Query(sql, params))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT truerank.not_of_this_release(1)",
        "SELECT absent_schema.boards(NULL)",
        "SELECT 1 FROM truerank.not_of_this_release",
    ],
)
def test_what_the_schema_lacks_is_a_mismatch(idle: Pipeline, sql: str) -> None:
    with pytest.raises(SchemaMismatch):
        idle.client.run(rows(sql))


@pytest.mark.parametrize("sql", ["SELECT not_of_ours(1)", "SELECT 1 + true"])
def test_a_function_that_is_not_of_the_schema_says_nothing_of_it(idle: Pipeline, sql: str) -> None:
    with pytest.raises(psycopg.errors.UndefinedFunction):
        idle.client.run(rows(sql))


def test_text_that_can_not_be_sent_is_the_callers_mistake(idle: Pipeline) -> None:
    with pytest.raises(InvalidInput, match="NUL"):
        idle.client.rename_board("b", "c", actor="a\0", reason="r")


@pytest.mark.parametrize("number", [2**31, 2**63, 2**70])
def test_a_number_too_great_is_the_callers_mistake(idle: Pipeline, number: int) -> None:
    with pytest.raises(InvalidInput):
        idle.client.seasons("b", offset=number)
    with pytest.raises(InvalidInput):
        idle.client.seasons("b", limit=number)
    with pytest.raises(InvalidInput):
        idle.client.purge_boards(number)
    with pytest.raises(InvalidInput):
        idle.client.void_where("b", member="ann", actor="a", reason="r", limit=number)

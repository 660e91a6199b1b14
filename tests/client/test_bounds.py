"""Numbers that no list can be asked for are refused as such, by every operation that takes one."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import truerank
from truerank.command.parked import dismiss_parked
from truerank.command.parked import list_parked as list_rows
from truerank.errors import InvalidInput
from truerank.operations import Operations
from truerank.projection.parked import list_parked as list_standings
from truerank.steps import Steps

BOUNDS = {"after", "around_limit", "before", "limit", "members_max", "offset", "rank", "revision",
          "rows_max"}  # fmt: skip
MALFORMED = (-1, 2**63, True, 1.5, "1")
GIVEN: dict[str, Any] = {
    "board": "b", "season": "all", "member": "m", "score_min": 1, "score_max": 2, "rank": 1,
    "actor": "test", "reason": "a test", "webhook": "w", "period": "month",
}  # fmt: skip


def bounds(function: Callable[..., Any]) -> Iterator[str]:
    """The names of the numbers that a function takes to bound a list."""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in BOUNDS and "int" in str(parameter.annotation):
            yield parameter.name


def required(function: Callable[..., Any]) -> dict[str, Any]:
    """Arguments that a function can't be called without."""
    return {
        parameter.name: GIVEN[parameter.name]
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty and parameter.name != "self"
    }


def refused_as(function: Callable[..., Any], arguments: dict[str, Any]) -> str | None:
    """The name of what a call refuses; None where it doesn't."""
    try:
        function(**arguments)
    except InvalidInput as exc:
        return exc.field
    return None


def test_no_operation_takes_a_bound_that_no_list_has(database_url: str, redis_url: str) -> None:
    met = set()
    with truerank.connect(database_url, redis_url) as tr:
        tr.create_board("b", seasons=["all"])
        for name, function in inspect.getmembers(Operations, inspect.isfunction):
            for bound in bounds(function):
                met.add((name, bound))
                for value in MALFORMED:
                    assert refused_as(getattr(tr, name), required(function) | {bound: value}) == (
                        bound
                    ), (name, bound, value)
    assert {("freezes", "limit"), ("settlement_changes", "revision"), ("top", "offset")} <= met


@pytest.mark.parametrize("function", [list_rows, list_standings])
def test_no_list_of_what_is_parked_takes_one(function: Callable[..., Steps[Any]]) -> None:
    for bound in bounds(function):
        for value in MALFORMED:
            with pytest.raises(InvalidInput) as refused:
                next(function(**{bound: value}))
            assert refused.value.field == bound


def test_a_number_that_no_row_has_is_refused(database_url: str, redis_url: str) -> None:
    with truerank.connect(database_url, redis_url) as tr:
        for change in (0, -1, 2**63):
            with pytest.raises(InvalidInput) as refused:
                tr.acknowledge_awards([change], actor="test")
            assert refused.value.field == "changes"
        with pytest.raises(InvalidInput):
            tr.awards(season="all")  # of which board?
    with pytest.raises(InvalidInput) as unknown:
        next(dismiss_parked(2**63, actor="test", reason="a test"))
    assert unknown.value.field == "parked"

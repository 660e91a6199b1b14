"""What an answer asks its store for, as counts that do not depend on the machine."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

import truerank
from tests.projection.pipeline import Pipeline
from truerank.model import Board, BoardSpec, PageRequest, Season, Source
from truerank.read import database
from truerank.steps import Query, Request, ScriptCall, Steps, run_blocking

QUESTIONS: dict[str, Callable[[truerank.Truerank, Source], Steps[Any]]] = {
    "top": lambda tr, source: tr.operations.top("b", limit=100, source=source),
    "top and a member": lambda tr, source: tr.operations.top("b", member="ann", source=source),
    "around": lambda tr, source: tr.operations.around("b", "ann", source=source),
    "place": lambda tr, source: tr.operations.place("b", "ann", source=source),
    "places": lambda tr, source: tr.operations.places("b", ["ann"] * 9, source=source),
    "scores": lambda tr, source: tr.operations.counts("b", [1, 2], source=source),
}
BOARD = Board(id=1, group=1, spec=BoardSpec(key="b"))
SEASON = Season(
    board="b", label="all", period="all", starts_at=None, ends_at=None, state="open",
    ranking=1 << 36,
)  # fmt: skip


@pytest.fixture
def reader(stopped: Pipeline) -> Iterator[truerank.Truerank]:
    """A client that remembers the board for the length of the test."""
    settings = msgspec.structs.replace(stopped.settings, board_cache_ms=60_000)
    with truerank.Truerank(settings) as client:
        client.top("b", limit=1)
        yield client


def requests_of(client: truerank.Truerank, steps: Steps[Any]) -> list[Request]:
    """Run steps on a client; what they asked for."""
    made: list[Request] = []

    def do(request: Request) -> Any:
        made.append(request)
        return client.run(_one(request))

    run_blocking(steps, do)
    return made


def _one(request: Request) -> Steps[Any]:
    return (yield request)


@pytest.mark.parametrize("source", Source)
def test_an_answer_takes_one_round_trip_to_one_store(
    reader: truerank.Truerank, source: Source
) -> None:
    kinds = {
        name: [type(request) for request in requests_of(reader, ask(reader, source))]
        for name, ask in QUESTIONS.items()
    }

    one = [ScriptCall if source is Source.PROJECTION else Query]
    assert kinds == dict.fromkeys(QUESTIONS, one)


@pytest.mark.parametrize(
    "request_of",
    [
        lambda n: PageRequest(limit=100, offset=n),
        lambda n: PageRequest(members=(f"m{n}",)),
        lambda n: PageRequest(members=tuple(f"m{i}" for i in range(10 + n))),
    ],
    ids=["page", "place", "places"],
)
def test_the_same_kind_of_question_is_the_very_same_statement(
    request_of: Callable[[int], PageRequest],
) -> None:
    first, second = (statement(request_of(n)) for n in (1, 2))

    assert first.sql is second.sql  # by which the driver knows that it has seen it


def test_a_page_asks_for_no_column_of_members() -> None:
    sql = statement(PageRequest(limit=100, around_limit=5)).sql

    assert "slice" in sql
    assert not any(name in sql for name in ("member", "around", "snapshot", "lives", "counts"))


def statement(request: PageRequest) -> Query:
    """The statement that PostgreSQL is asked."""
    asked = next(database.read_page(BOARD, SEASON, request))
    assert isinstance(asked, Query)
    return asked

"""Options that several commands share, described once."""

from typing import Annotated, Literal

from cyclopts import Parameter

from truerank.cli.context import Context

Given = Annotated[Context, Parameter(parse=False)]

Json = Annotated[
    bool,
    Parameter(
        name="--json",
        negative=(),
        help="Print one JSON object on standard output, and nothing else.",
    ),
]
SeasonLabel = Annotated[
    str | None,
    Parameter(
        name="--season",
        help="A label such as 2026-W35, 2026-11, or all. "
        "Without it: all where the board has it, else the current season.",
    ),
]
Numbers = Annotated[
    Literal["competition", "ordinal"],
    Parameter(name="--numbering", help="How equals are counted: 1224 or 1234."),
]
From = Annotated[
    Literal["projection", "database"] | None,
    Parameter(
        name="--source",
        help="Insist on one store. Without it: the projection, "
        "and PostgreSQL while that is not whole.",
    ),
]
Seasons = Annotated[
    str,
    Parameter(name="--seasons", help="Any of all, day, week, month, year, with commas between."),
]


def words(text: str) -> tuple[str, ...]:
    """The words of a list with commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())

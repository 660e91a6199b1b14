"""Options that several commands share, described once."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from truerank.cli.context import Context
from truerank.instants import read_instant
from truerank.read.consistency import consistency_of

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
    Literal["competition", "ordinal", "dense"],
    Parameter(name="--numbering", help="How equals are counted: 1224, 1234 or 1223."),
]
CohortNumber = Annotated[
    int | None,
    Parameter(
        name="--cohort", help="Only this cohort of the season, by its number; see `league cohorts`."
    ),
]
CohortOf = Annotated[
    str | None,
    Parameter(name="--cohort-of", help="Only the cohort of the season that this member is in."),
]
Period = Literal["all", "day", "week", "month", "year", "custom"]
From = Annotated[
    Literal["projection", "database"] | None,
    Parameter(
        name="--source",
        help="Insist on one store. Without it: the projection, "
        "and PostgreSQL while that is not whole.",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Needed:
    """Of which season, how fresh, and from where an answer is wanted."""

    season: SeasonLabel = None
    consistency: Annotated[
        str | None,
        Parameter(
            help="any (the default), authoritative (PostgreSQL's own) "
            "or settled (the final result of a closed season, else it is refused)."
        ),
    ] = None
    at_least: Annotated[
        str | None, Parameter(help="Show the write, or the answer, behind this token.")
    ] = None
    max_age: Annotated[
        str | None, Parameter(help="Miss nothing older than this, such as 500ms or 5s.")
    ] = None
    monotonic: Annotated[
        str | None,
        Parameter(
            help="Show nothing older than the answer with this token, or new: where there was "
            "none. The answer's own token is freshness.token in JSON."
        ),
    ] = None
    wait: Annotated[
        str | None,
        Parameter(
            help="How long to wait for the projection to show a token, such as 2s; then "
            "PostgreSQL answers."
        ),
    ] = None
    otherwise: Annotated[
        Literal["pending"] | None,
        Parameter(
            name="--else",
            help="pending: don't wait for --at-least; mark the members asked for as pending.",
        ),
    ] = None
    source: From = None

    @property
    def projects(self) -> bool:
        """Whether the projection may answer."""
        return self.source != "database"

    def how(self) -> dict[str, Any]:
        """The same for a client.

        Raises:
            InvalidInput: the options contradict each other, or one makes no sense.
        """
        needed = consistency_of(
            consistency=self.consistency,
            at_least=self.at_least,
            max_age=self.max_age,
            monotonic=self.monotonic,
            wait=self.wait,
            pending=self.otherwise is not None,
        )
        return {
            "season": self.season,
            "consistency": needed,
            "source": self.source,
        }


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Asked(Needed):
    """The same where it may also be of one cohort of the season."""

    cohort: CohortNumber = None
    cohort_of: CohortOf = None

    def how(self) -> dict[str, Any]:
        """The same for a client; see `Needed.how`."""
        return super().how() | {"cohort": self.cohort, "cohort_of": self.cohort_of}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Listed(Asked):
    """The same where members are listed: with their names, and numbered."""

    names: Annotated[
        bool, Parameter(name="--names", negative=(), help="Show the members' names as well.")
    ] = False
    numbering: Numbers = "competition"

    def how(self) -> dict[str, Any]:
        """The same for a client; see `Needed.how`."""
        return super().how() | {"names": self.names, "numbering": self.numbering}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LookedBack(Listed):
    """The same where the history is looked at."""

    as_of: Annotated[
        str | None,
        Parameter(
            help="Show the board as it stood at this time, such as 2026-08-29T12:00:00Z, from its "
            "events."
        ),
    ] = None
    since: Annotated[
        str | None,
        Parameter(help="Show how the ranks changed since this time, such as 2026-08-28T12:00:00Z."),
    ] = None

    @property
    def projects(self) -> bool:
        """Whether the projection may answer."""
        return super().projects and self.as_of is None and self.since is None

    def how(self) -> dict[str, Any]:
        """The same for a client; see `Needed.how`."""
        back = {
            name: None if text is None else read_instant(text, name)
            for name, text in (("as_of", self.as_of), ("since", self.since))
        }
        return super().how() | back


NEEDED, ASKED, LISTED, LOOKED_BACK = Needed(), Asked(), Listed(), LookedBack()
Seasons = Annotated[
    str,
    Parameter(name="--seasons", help="Any of all, day, week, month, year, with commas between."),
]


def words(text: str) -> tuple[str, ...]:
    """The words of a list with commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())

"""What a verification found, as values, and the lines that its digest is made of."""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

EXAMPLES_MAX = 10  # differences that are told of each path


class Verdict(StrEnum):
    """What a verification comes to."""

    SAME = "same"  # every path gives the same ranking, at one tick
    DIFFERENT = "different"
    MOVING = "moving"  # scores arrived faster than all paths could be read: nothing is proven


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One place of a ranking, as the source has it."""

    ordinal: int
    competition: int
    dense: int
    member: str
    score: str  # in the board's unit, exact


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that a path says otherwise; None: nothing is there."""

    subject: str  # a member, `row 17`, or what was asked
    expected: str | None
    found: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PathResult:
    """What one way to read the ranking said."""

    name: str
    compared: int  # rows, members or answers
    whole: bool = True  # False: a part was compared, for the rest would take too long
    digest: str | None = None  # where whole rows in their order were read, and all of them
    differences: tuple[Difference, ...] = ()  # the first ones
    error: str | None = None  # why it could not be read
    note: str = ""

    @property
    def same(self) -> bool:
        """Whether all that was compared is as in the source."""
        return not self.differences and self.error is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """A board's season, or one cohort of it, read in every way at one tick."""

    board: str
    season: str
    state: str
    members: int
    digest: str  # of the source's rows: see `digest_line`
    epoch: str
    tick: str | None  # of the projection; None: it could not be read
    snapshot: str  # of PostgreSQL, which all paths were compared with
    verdict: Verdict
    paths: tuple[PathResult, ...]
    cohort: int | None = None
    attempts: int = 1
    duration_ms: int = 0


def digest_line(rank: int, member: str, score: str) -> bytes:
    r"""One row as the digest takes it: `[1,"ada","25"]` and a line feed, JSON in UTF-8.

    The SHA-256 over these lines, in order, is the digest: ranks count equals alike (1224), scores
    are exact text in the board's unit. From a file that `truerank export --format ndjson` wrote,
    `jq -c '[.rank,.member,.score]' | sha256sum` gives the same.
    """
    return json.dumps([rank, member, score], ensure_ascii=False, separators=(",", ":")).encode() + (
        b"\n"
    )


def verification_json(found: Verification) -> dict[str, Any]:
    """A verification as a plain value for JSON; each path says whether it is the `same`."""
    shape = asdict(found)
    shape["paths"] = [asdict(path) | {"same": path.same} for path in found.paths]
    return shape

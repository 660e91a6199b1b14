"""What a reconciliation found: each difference, and the counts of all."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from truerank.model import Board, BoardSpec, Order
from truerank.read.scores import score_text
from truerank.repair.judging import Kind

EXAMPLES_MAX = 20
_SCORE_BYTES = 8


@dataclass(slots=True, kw_only=True)
class Ranking:
    """A ranking that is compared; `board` None: no board of the group has it.

    `season` is looked up where something is found, and None before.
    """

    id: int
    group: int
    board: str | None
    season: str | None = None
    decimals: int = 0
    descending: bool = True
    key_bytes: int = 24
    equal_bytes: int = 0  # 0: not counted densely

    @property
    def board_id(self) -> int:
        """The board's number: the upper bits of a computed ranking id."""
        return self.id >> 36

    def score(self, sort_key: bytes) -> str | None:
        """The score in a sort key, in the board's unit; None where it can't be read."""
        if len(sort_key) < _SCORE_BYTES or self.board is None:
            return None
        order = Order.DESC if self.descending else Order.ASC
        spec = BoardSpec(key=self.board, order=order, decimals=self.decimals)
        return score_text(Board(id=self.board_id, group=self.group, spec=spec), sort_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one store holds of a member."""

    version: int | None
    score: str | None
    places: int  # how many it takes; the source: 0 where it is withheld


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One difference. `member` None: it is about a whole ranking, or a whole copy."""

    kind: Kind
    detail: str
    group: int
    ranking: Ranking | None = None  # None: about states of members, or the whole copy
    member: str | None = None
    source: Side | None = None
    projection: Side | None = None
    repaired: bool = False
    handed_over: bool = False  # left to a worker, which fills a new copy

    def to_json(self) -> dict[str, Any]:
        """The same as an object of JSON; versions are text, for they may need 64 bits."""
        ranking = self.ranking
        return {
            "kind": self.kind,
            "detail": self.detail,
            "board": ranking.board if ranking else None,
            "season": ranking.season if ranking else None,
            "ranking": str(ranking.id) if ranking else None,
            "member": self.member,
            "source": _side_json(self.source),
            "projection": _side_json(self.projection),
            "repaired": self.repaired,
            "handed_over": self.handed_over,
        }

    def to_log(self) -> dict[str, Any]:
        """The same for the log, which keeps nobody's id: who is erased must not stand there."""
        told = self.to_json()
        del told["member"]
        return told


@dataclass(slots=True, kw_only=True)
class Report:
    """The counts of a run, and some of its findings.

    `checked` is the number of standings that were compared: it is the sum of all kinds. What is
    wrong with a ranking or a copy as such (counts, states) is counted in `other`.
    """

    kinds: Counter[Kind] = field(default_factory=Counter)
    repaired: int = 0  # standings
    other: Counter[str] = field(default_factory=Counter)  # by what is wrong
    other_repaired: int = 0
    rankings: int = 0
    groups: int = 0
    without_copy: list[int] = field(default_factory=list)  # groups that readers get from PostgreSQL
    parked: int = 0  # rankings that the copies leave out
    examples: list[Finding] = field(default_factory=list)
    examples_max: int = EXAMPLES_MAX
    seconds: float = 0.0
    _handed_over: Counter[int] = field(default_factory=Counter)  # by group

    @property
    def handed_over(self) -> int:
        """Findings that are left to workers, which have yet to fill new copies."""
        return self._handed_over.total()

    @property
    def checked(self) -> int:
        """Standings that were compared."""
        return self.kinds.total()

    @property
    def drift(self) -> int:
        """Everything that was wrong."""
        standings = self.checked - self.kinds[Kind.CURRENT] - self.kinds[Kind.LAGGING]
        return standings + self.other.total()

    @property
    def unrepaired(self) -> int:
        """What was wrong and still is."""
        return self.drift - self.repaired - self.other_repaired

    @property
    def ahead(self) -> int:
        """Standings whose version the source never had."""
        return self.kinds[Kind.AHEAD]

    def count_current(self, number: int) -> None:
        """So many standings are as they should be."""
        self.kinds[Kind.CURRENT] += number

    def take(self, findings: Sequence[Finding]) -> None:
        """Count what was found of standings."""
        for finding in findings:
            self.kinds[finding.kind] += 1
            self.repaired += finding.repaired
            self._keep(finding)

    def take_other(self, findings: Sequence[Finding]) -> None:
        """Count what was found of rankings and copies as such."""
        for finding in findings:
            self.other[finding.detail] += 1
            self.other_repaired += finding.repaired
            self._keep(finding)

    def _keep(self, finding: Finding) -> None:
        if finding.handed_over:
            self._handed_over[finding.group] += 1
        if finding.kind is not Kind.LAGGING and len(self.examples) < self.examples_max:
            self.examples.append(finding)

    def settle(self, group: int) -> None:
        """A worker has filled a new copy of a group: what was left to it is mended."""
        for at, finding in enumerate(self.examples):
            if finding.group == group and finding.handed_over:
                self.examples[at] = replace(finding, repaired=True)
        self.other_repaired += self._handed_over.pop(group, 0)

    def line(self) -> str:
        """All of it in one line, such as `checked 2: corrupt 1, current 1, repaired 1`."""
        told = [f"{kind} {number}" for kind, number in sorted(self.kinds.items()) if number]
        if self.other:
            told.append(f"other {self.other.total()}")
        mended = self.repaired + self.other_repaired
        if mended:
            told.append(f"repaired {mended}")
        if self.handed_over:
            told.append(f"handed over {self.handed_over}")
        return f"checked {self.checked}: {', '.join(told) or 'nothing there'}"

    def to_json(self) -> dict[str, Any]:
        """The same as an object of JSON."""
        return {
            "checked": self.checked,
            "drift": self.drift,
            **{str(kind): self.kinds[kind] for kind in Kind},
            "other": dict(sorted(self.other.items())),
            "repaired": self.repaired + self.other_repaired,
            "handed_over": self.handed_over,
            "unrepaired": self.unrepaired,
            "rankings": self.rankings,
            "groups": self.groups,
            "groups_without_copy": self.without_copy,
            "parked": self.parked,
            "examples": [finding.to_json() for finding in self.examples],
            "seconds": round(self.seconds, 3),
        }


def _side_json(side: Side | None) -> dict[str, Any] | None:
    if side is None:
        return None
    return {
        "version": None if side.version is None else str(side.version),
        "score": side.score,
        "places": side.places,
    }

"""What a drill tells while it runs, and what is left of it at the end."""

from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One promise that was looked at."""

    promise: str
    kept: bool
    found: str = ""  # what was there, for people


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """What both stores say of some members; None: no place."""

    source: dict[str, str | None]  # member to score, in PostgreSQL
    projection: dict[str, str | None]  # the same in Redis


@dataclass(slots=True, kw_only=True)
class ActResult:
    """One act, with all that was done, seen and checked."""

    name: str
    title: str
    checks: list[Check] = field(default_factory=list)
    did: list[str] = field(default_factory=list)
    saw: list[str] = field(default_factory=list)
    tables: list[SideBySide] = field(default_factory=list)
    whole_after_ms: int | None = None  # until Redis showed all there is again
    duration_ms: int = 0

    @property
    def passed(self) -> bool:
        """Whether every promise was kept, and there were some."""
        return bool(self.checks) and all(check.kept for check in self.checks)


class Teller(Protocol):
    """Hears of everything as it happens."""

    def begins(self, number: int, act: ActResult) -> None:
        """An act begins."""

    def did(self, text: str) -> None:
        """Something was done to the pipeline."""

    def saw(self, text: str) -> None:
        """A reader saw this."""

    def compared(self, sides: SideBySide) -> None:
        """Both stores were asked."""

    def checked(self, check: Check) -> None:
        """A promise was looked at."""

    def ends(self, act: ActResult) -> None:
        """An act is over."""


class Silent:
    """Nobody listens."""

    def begins(self, number: int, act: ActResult) -> None:
        """See `Teller`."""

    def did(self, text: str) -> None:
        """See `Teller`."""

    def saw(self, text: str) -> None:
        """See `Teller`."""

    def compared(self, sides: SideBySide) -> None:
        """See `Teller`."""

    def checked(self, check: Check) -> None:
        """See `Teller`."""

    def ends(self, act: ActResult) -> None:
        """See `Teller`."""


def act_json(act: ActResult) -> dict[str, Any]:
    """An act as a plain value for JSON."""
    return {
        "act": act.name,
        "title": act.title,
        "passed": act.passed,
        "did": act.did,
        "saw": act.saw,
        "tables": [
            {"source": sides.source, "projection": sides.projection} for sides in act.tables
        ],
        "checks": [
            {"promise": check.promise, "kept": check.kept, "found": check.found}
            for check in act.checks
        ],
        "whole_after_ms": act.whole_after_ms,
        "duration_ms": act.duration_ms,
    }

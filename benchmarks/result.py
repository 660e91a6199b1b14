"""What a benchmark found, as one JSON object and as something to read."""

import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import psycopg

from truerank.embedded import Engines


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A promise about one measured value."""

    of: str  # what is measured, with its unit
    value: float
    bar: float
    at_least: bool = False  # else at most

    @property
    def holds(self) -> bool:
        """Whether the promise is kept."""
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    def __str__(self) -> str:
        sign = "at least" if self.at_least else "at most"
        return f"{self.of}: {self.value:,.4g}, {sign} {self.bar:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One benchmark. The first bar is the one that its `bar` and `value` in JSON tell."""

    name: str
    short: bool
    ratio: float  # of the medians, to the baseline
    ratio_of: str  # what is divided by what
    bars: Sequence[Bar]
    sizes: Mapping[str, float]
    engines: Mapping[str, str]
    rounds: Mapping[str, Sequence[float]]  # per side, in the order they were run
    rounds_of: str  # what the numbers of the rounds are, with their unit
    figures: Mapping[str, float | str] = field(default_factory=dict)  # for information

    @property
    def holds(self) -> bool:
        """Whether every bar holds."""
        return all(bar.holds for bar in self.bars)

    def to_json(self) -> dict[str, Any]:
        """The object that --json prints."""
        first, *_ = self.bars
        return {
            "name": self.name,
            "ratio": self.ratio,
            "ratio_of": self.ratio_of,
            "value": first.value,
            "value_of": first.of,
            "bar": first.bar,
            "holds": self.holds,
            "bars": [asdict(bar) | {"holds": bar.holds} for bar in self.bars],
            "short": self.short,
            "sizes": dict(self.sizes),
            "engines": dict(self.engines),
            "rounds_of": self.rounds_of,
            "rounds": {side: list(values) for side, values in self.rounds.items()},
            "medians": {side: median(values) for side, values in self.rounds.items()},
            "spread": {side: spread(values) for side, values in self.rounds.items()},
            "figures": dict(self.figures),
        }


def median(values: Sequence[float]) -> float:
    """The middle value."""
    return float(statistics.median(values))


def spread(values: Sequence[float]) -> float:
    """How far the rounds lie apart: largest minus smallest, as a part of the median."""
    middle = median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def percentile(values: Sequence[float], part: float) -> float:
    """The smallest value that at least this part of the values doesn't exceed."""
    ordered = sorted(values)
    return ordered[max(0, -int(-part * len(ordered) // 1) - 1)]


def versions(engines: Engines) -> dict[str, str]:
    """The versions of whatever takes part."""
    return {
        "postgresql": engines.postgres_version,
        "valkey": engines.valkey_version,
        "python": platform.python_version(),
        "psycopg": f"{psycopg.__version__} ({psycopg.pq.__impl__})",
    }

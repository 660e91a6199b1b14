"""Run the benchmarks: `python -m benchmarks [NAME...] [--short] [--json]`.

Each runs on engines of its own, with the defaults and durable, in a temporary folder. Baselines
run in the same way, in turns of three rounds; a ratio is that of the medians. The exit status is
1 where a bar does not hold.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from rich.console import Console

from benchmarks.catch_up import catch_up
from benchmarks.close import close
from benchmarks.cost import cost
from benchmarks.end_to_end import end_to_end
from benchmarks.hide import hide
from benchmarks.hot_member import hot_member
from benchmarks.http_page import http_page
from benchmarks.idle import idle
from benchmarks.lag import lag
from benchmarks.memory import memory
from benchmarks.projection import projection
from benchmarks.reading import depth, fallback, own_rank, page
from benchmarks.rebuild import rebuild
from benchmarks.reconcile import reconcile
from benchmarks.report import show
from benchmarks.result import Result
from benchmarks.seasons import seasons
from benchmarks.write import write
from truerank.embedded import Engines, start_engines
from truerank.schema.migrate import migrate


class Benchmark(Protocol):
    """Measures something on fresh engines, and tells how far it is."""

    def __call__(
        self, engines: Engines, progress: Callable[[str], None], /, *, short: bool
    ) -> Result:
        """Run it; `progress` is told what is being done."""
        ...


BENCHMARKS: dict[str, Benchmark] = {
    "end_to_end": end_to_end,
    "lag": lag,
    "hide": hide,
    "memory": memory,
    "cost": cost,
    "projection": projection,
    "rebuild": rebuild,
    "reconcile": reconcile,
    "idle": idle,
    "catch_up": catch_up,
    "write": write,
    "hot_member": hot_member,
    "seasons": seasons,
    "close": close,
    "page": page,
    "own_rank": own_rank,
    "depth": depth,
    "fallback": fallback,
    "http_page": http_page,
}


def main() -> int:
    """Run what the command line asks for; return the exit status."""
    arguments = _parser().parse_args()
    told = Console(stderr=True)
    failed = False
    for name in arguments.names or BENCHMARKS:
        result = _run(name, told, short=arguments.short)
        failed = failed or not result.holds
        if arguments.json:
            print(json.dumps(result.to_json(), ensure_ascii=False))
        else:
            show(Console(), result)
    return int(failed)


def _run(name: str, told: Console, *, short: bool) -> Result:
    with (
        told.status(name) as status,
        tempfile.TemporaryDirectory(prefix="truerank-bench-") as folder,
        start_engines(Path(folder) / "data") as engines,
    ):
        migrate(engines.database_url)
        return BENCHMARKS[name](engines, lambda step: status.update(f"{name}: {step}"), short=short)


def _known(name: str) -> str:
    # Not by `choices`: with `*` some releases of Python then refuse that there is none at all.
    if name not in BENCHMARKS:
        raise argparse.ArgumentTypeError(f"{name!r} is none of them")
    return name


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure Truerank beside its baselines."
    )
    parser.add_argument(
        "names", nargs="*", type=_known, metavar="NAME",
        help=f"some of {', '.join(BENCHMARKS)}; without any all run in turn",
    )  # fmt: skip
    parser.add_argument(
        "--short", action="store_true", help="within 40 s each, with a tenth of the sizes"
    )
    parser.add_argument("--json", action="store_true", help="one object per benchmark and line")
    return parser


if __name__ == "__main__":
    sys.exit(main())

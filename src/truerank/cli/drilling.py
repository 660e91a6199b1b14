"""`truerank drill`: break the pipeline on real engines, and look whether it keeps its promises."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from truerank.cli.options import Json
from truerank.cli.output import write_json

ActName = Literal[
    "experiment",
    "killed",
    "late",
    "replies",
    "flushed",
    "hole",
    "rolled-back",
    "source",
    "rebuild",
]
BreakKind = Literal["fence", "cursor", "idempotency", "epoch", "counts"]
_BROKEN_S_MAX = 20.0
_FAILED = 1
_INTERRUPTED = 130


def drill(
    *,
    act: Annotated[tuple[ActName, ...], Parameter(name="--act", negative=())] = (),
    break_: Annotated[BreakKind | None, Parameter(name="--break", show_default=False)] = None,
    broken: Annotated[BreakKind | None, Parameter(name="--broken", show=False)] = None,
    json: Json = False,
) -> int:
    """Break the pipeline in every way we know, on real engines, and look whether promises are kept.

    A PostgreSQL and a Valkey of its own are started in a temporary folder, workers as processes
    that can be killed; nothing outside that folder is touched, whatever the variables say. Each
    act tells what it did, what a reader saw meanwhile and how long it took until Redis showed all
    again, and checks its promises. It takes about a minute.

    Exit status: 0 every promise was kept; 1 at least one was not.

    Args:
        act: Play only this act; may be given several times. Without it, all.
        break_: Take one rule out of a copy of the code first, to see that the drill notices.
        broken: Which rule is missing in the code that runs.
    """
    from truerank.cli.foreground import until_told
    from truerank.drill.play import ACTS

    names: tuple[str, ...] = act or tuple(each.name for each in ACTS)
    status = _INTERRUPTED
    with until_told():
        if break_ is not None:
            status = _play_broken(break_, names, json=json)
        else:
            status = _FAILED * (not _play(names, broken, json=json))
    return status


def _play(names: Sequence[str], broken: BreakKind | None, *, json: bool) -> bool:
    """Play acts in this process; whether every promise was kept."""
    from rich.console import Console

    from truerank.drill.breaking import BREAKS
    from truerank.drill.play import drill_json, play
    from truerank.drill.processes import WAIT_S_MAX
    from truerank.drill.story import Silent
    from truerank.drill.telling import Told
    from truerank.telemetry.logs import configure_logging

    configure_logging(level="error")
    # What is broken on purpose mostly stays so.
    patience_s = WAIT_S_MAX if broken is None else _BROKEN_S_MAX
    if json:
        played = play(names, Silent(), patience_s=patience_s)
        write_json(drill_json(played, broken=broken))
        return played.passed
    told = Told(Console(file=sys.stdout))
    if broken is not None:
        told.broken(broken, BREAKS[broken].about)
    played = play(names, told, patience_s=patience_s, opening=told.opening)
    told.ending(played)
    return played.passed


def _play_broken(kind: BreakKind, names: Sequence[str], *, json: bool) -> int:
    """Play in a process that runs a copy of the code with one rule taken out; its exit status."""
    from truerank.drill.breaking import broken_copy
    from truerank.drill.processes import importing_from

    options = ["--json"] * json
    for name in names:
        options += "--act", name
    with tempfile.TemporaryDirectory(prefix="truerank-broken-") as folder:
        command = [sys.executable, "-P", "-m", "truerank", "drill", "--broken", kind, *options]
        child = subprocess.Popen(command, env=importing_from(broken_copy(kind, Path(folder))))
        try:
            return child.wait()
        finally:
            child.terminate()  # it may have been told as well
            child.wait()

"""`truerank import` and `truerank demo`: many events at once."""

import io
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from truerank.cli.options import Given, Json, Seasons, words
from truerank.cli.output import complain, escaped, note, say, shown, table, write_json
from truerank.cli.progress import progress_bar
from truerank.errors import DatabaseUnavailable, InvalidInput
from truerank.instants import read_instant

if TYPE_CHECKING:
    from truerank.client import Truerank
    from truerank.intake.lines import Malformed, Naming, Row
    from truerank.intake.load import Loader, Summary

_USAGE, _SOME_REFUSED = 2, 1
_BOARDS_NAMED_MAX = 20
_AGAIN = "run the same command again to go on; what is stored stays and is not counted twice"

Wait = Annotated[
    bool, Parameter(name="--no-wait", negative=(), help="Return as soon as PostgreSQL has it all.")
]
Timeout = Annotated[
    float,
    Parameter(name="--timeout", help="Seconds to wait at the end for the projection to show it."),
]


def import_file(
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    create_boards: Annotated[bool, Parameter(negative=())] = False,
    zone: str = "UTC",
    seasons: Seasons = "all,week,month",
    operator: Literal["sum", "best", "latest"] = "sum",
    order: Literal["desc", "asc"] = "desc",
    decimals: int = 0,
    board: str | None = None,
    mapped: Annotated[tuple[str, ...], Parameter(name="--map", negative=())] = (),
    exported: Annotated[bool, Parameter(negative=())] = False,
    kind: Annotated[
        Literal["csv", "ndjson"] | None, Parameter(name="--format", show_default=False)
    ] = None,
    no_wait: Wait = False,
    timeout_s: Timeout = 60.0,
    json: Json = False,
    given: Given,
) -> int:
    """Take in a file of events, as CSV or NDJSON, plain or gzipped, in UTF-8.

    The first line of CSV names the columns: event_id, board, member, points, occurred_at, in any
    order; NDJSON is one JSON object a line with these names. Others are passed over. Times are RFC
    3339 with an offset. A line that can't be read or is refused is told with its number and kept
    out; the rest goes in. A file may be taken in again: what is stored counts once, so an import
    that was ended is taken up by running it again.

    Exit status 1 tells that some lines were kept out, 2 that the file could not be used.

    Args:
        file: The file; - is standard input.
        create_boards: Make boards that don't exist, with the settings below.
        zone: Of new boards: IANA name of the time zone in which their seasons begin.
        operator: Of new boards: how the events of a member become one score.
        order: Of new boards: which scores come first.
        decimals: Of new boards: places of a score, 0 to 18.
        board: Put every line into this board; the file then needs no such column.
        mapped: The file's name for a column, as COLUMN=NAME; may be given for each.
        exported: The file was written by `truerank export`: tie-breaks are taken in too, and in
            CSV ids may stand behind an apostrophe. Lines are not taken into the board that they
            come from: there they count already.
        kind: csv, or ndjson. Without it ndjson where the file's name ends so, or in .jsonl, with
            or without .gz after it; else csv.
    """
    from truerank.exporting import event_ids_of
    from truerank.intake.lines import FileUnusable, decompressed, read_events
    from truerank.intake.load import Loader
    from truerank.intake.objects import is_ndjson, read_objects

    naming = _naming(mapped, board)
    ndjson = is_ndjson(file) if kind is None else kind == "ndjson"
    read = read_objects if ndjson else read_events
    new = {
        "operator": operator,
        "order": order,
        "decimals": decimals,
        "seasons": words(seasons),
        "zone": zone,
    }
    try:
        with ExitStack() as stack:
            source = stack.enter_context(_opened(file))
            if exported:
                client = stack.enter_context(given.client(project=not no_wait))
                naming = replace(naming, exported=event_ids_of(client.installation()))
                rows = read(decompressed(source), naming)
            else:
                # A file that can't be used is told before anything starts.
                rows = read(decompressed(source), naming)
                client = stack.enter_context(given.client(project=not no_wait))
            progress = stack.enter_context(progress_bar(source))
            loader = Loader(client, create=new if create_boards else None, progress=progress)
            run = _Run(loader, rows)
            run.load()
            progress.close()
            waited = run.wait(None if no_wait else timeout_s)
    except FileUnusable as exc:
        complain(exc.reason, f"{file}: {exc.message}")
        return _USAGE
    _tell(run, json=json, visible=waited, extra={"file": file})
    return _SOME_REFUSED if loader.summary.not_taken_in or waited is False else 0


def demo(
    *,
    until: str | None = None,
    no_wait: Wait = False,
    timeout_s: Timeout = 60.0,
    json: Json = False,
    given: Given,
) -> int:
    """Fill in boards with a year of invented scores; made again, it adds only what is new.

    Args:
        until: The end of the year, such as 2026-11-01T00:00:00Z. Without it, the last full hour.
    """
    end = None if until is None else read_instant(until, "until")
    with given.client(project=not no_wait) as client:
        run = fill_demo(client, end)
        waited = run.wait(None if no_wait else timeout_s)
    _tell(run, json=json, visible=waited, extra={})
    return _SOME_REFUSED if run.loader.summary.not_taken_in or waited is False else 0


@dataclass(slots=True)
class _Run:
    """One load, timed; what it did so far is told when it is broken off."""

    loader: "Loader"
    rows: "Iterator[Row | Malformed]"
    seconds: float = 0.0

    @property
    def summary(self) -> "Summary":
        return self.loader.summary

    def load(self) -> None:
        began = time.monotonic()
        try:
            self.loader.load(self.rows)
        except (KeyboardInterrupt, DatabaseUnavailable):
            note(f"ended after {self.summary.lines} lines: {_AGAIN}")
            raise
        finally:
            self.seconds = time.monotonic() - began

    def wait(self, timeout_s: float | None) -> bool | None:
        """Wait for the projection; None where nobody asked to."""
        from truerank.errors import NotVisibleYet

        if timeout_s is None:
            return None
        try:
            self.loader.wait_visible(timeout_s=timeout_s)
        except NotVisibleYet as exc:
            complain(exc.reason, exc.message)
            return False
        return True


def fill_demo(client: "Truerank", until: datetime | None) -> _Run:
    """Make the boards of the demo and load their events.

    Args:
        client: to load through.
        until: aware; None: the last full hour.

    Raises:
        BoardExists: somebody's board has the name of one of ours; nothing was loaded.
    """
    from truerank import demo as made
    from truerank.intake.lines import Row
    from truerank.intake.load import Loader

    end = until or made.latest_until(datetime.now(UTC))
    created = []
    for board in made.BOARDS:
        spec = board.spec
        if client.create_board(
            spec.key,
            operator=spec.operator,
            order=spec.order,
            seasons=spec.seasons,
            zone=spec.zone,
            decimals=spec.decimals,
        ):
            created.append(spec.key)
    loader = Loader(client)
    loader.summary.boards_created = created
    rows = (
        Row(number, board.spec.key, event)
        for board in made.BOARDS
        for number, event in enumerate(made.events(board, end), 1)
    )
    run = _Run(loader, rows)
    run.load()
    return run


def _naming(mapped: tuple[str, ...], board: str | None) -> "Naming":
    from truerank.intake.lines import COLUMNS, Naming

    columns = {}
    for text in mapped:
        column, sign, name = text.partition("=")
        if column not in COLUMNS or not sign or not name:
            raise InvalidInput(
                f"--map {text!r} is not COLUMN=NAME with a column of {', '.join(COLUMNS)}",
                field="map",
            )
        columns[column] = name
    return Naming(columns=columns, board=board)


@contextmanager
def _opened(file: str) -> Iterator[io.BufferedReader]:
    from truerank.intake.lines import FileUnusable

    if file == "-":
        yield sys.stdin.buffer  # type: ignore[misc]  # typed as any binary stream
        return
    try:
        source = Path(file).open("rb")  # noqa: SIM115 - the block below closes it
    except OSError as exc:
        raise FileUnusable(exc.strerror or str(exc)) from exc
    with source:
        yield source


def _tell(run: _Run, *, json: bool, visible: bool | None, extra: dict[str, Any]) -> None:
    summary = run.summary
    rate = round(summary.lines / run.seconds) if run.seconds else 0
    if json:
        write_json(
            extra
            | {
                "lines": summary.lines,
                "applied": summary.applied,
                "duplicate": summary.duplicate,
                "conflict": summary.conflict,
                "refused": summary.refused.total(),
                "malformed": summary.malformed.total(),
                "refused_by_code": dict(sorted(summary.refused.items())),
                "malformed_by_code": dict(sorted(summary.malformed.items())),
                "problems": [
                    {"line": problem.line, "code": problem.code, "message": problem.message}
                    for problem in summary.problems
                ],
                "boards_created": sorted(summary.boards_created),
                "boards_kept": sorted(summary.boards_kept),
                "seconds": round(run.seconds, 3),
                "lines_per_s": rate,
                "visible": visible,
            }
        )
        return
    say(f"{summary.lines} lines in {run.seconds:.1f} s, {rate} a second")
    counts = [
        ("applied", str(summary.applied), ""),
        ("duplicate", str(summary.duplicate), ""),
        ("conflict", str(summary.conflict), ""),
        ("refused", str(summary.refused.total()), _by_code(summary.refused)),
        ("malformed", str(summary.malformed.total()), _by_code(summary.malformed)),
    ]
    for line in table(("outcome", "lines", "codes"), counts, left="outcome codes")[1:]:
        say(f"  {line}")
    for problem in summary.problems:
        say(f"line {problem.line}: {escaped(problem.code)}: {escaped(problem.message)}")
    if more := summary.not_taken_in - len(summary.problems):
        say(f"and {more} more lines")
    if "board_unknown" in summary.refused:
        say("with --create-boards, boards that don't exist are made")
    _say_boards("made:", summary.boards_created)
    _say_boards("existed with other settings, which they keep:", summary.boards_kept)
    if visible:
        say("the projection shows it all")


def _by_code(counted: Counter[str]) -> str:
    return ", ".join(f"{escaped(code)} {count}" for code, count in counted.most_common())


def _say_boards(what: str, keys: list[str]) -> None:
    if not keys:
        return
    named = ", ".join(shown(key) for key in sorted(keys)[:_BOARDS_NAMED_MAX])
    more = len(keys) - _BOARDS_NAMED_MAX
    number = "1 board" if len(keys) == 1 else f"{len(keys)} boards"
    say(f"{number} {what} {named}" + (f" and {more} more" if more > 0 else ""))

"""`truerank export`: a whole season as CSV or NDJSON."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

from cyclopts import Parameter

from truerank.cli.options import Given, Numbers, SeasonLabel
from truerank.cli.output import note, shown
from truerank.model import Numbering


def export(
    board: str,
    /,
    *,
    season: SeasonLabel = None,
    kind: Annotated[Literal["csv", "ndjson"], Parameter(name="--format")] = "csv",
    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
    numbering: Numbers = "competition",
    settled: Annotated[bool, Parameter(negative=())] = False,
    revision: Annotated[int | None, Parameter(show_default=False)] = None,
    given: Given,
) -> None:
    """Write every member of a season whom readers may see, in order, from one snapshot.

    Rows come from PostgreSQL, slice by slice in one transaction. In CSV a text that a spreadsheet
    would take for a formula stands behind an apostrophe; `truerank import --exported` takes it off.

    Args:
        board: The board's key.
        kind: csv, or ndjson with one JSON object a line.
        output: Write to this file, made anew, instead of standard output.
        settled: The settlement of a final season, also of members who were hidden or banned since:
            what payouts may read.
        revision: Of the settlement; without it, the newest.
    """
    from truerank.client import Truerank
    from truerank.exporting import csv_lines, export_rows, ndjson_lines
    from truerank.settle.exporting import settled_rows

    with (
        given.installation(project=False) as installation,
        Truerank(installation.settings) as client,
    ):
        found, named = client.board(board), client.season(board, season)
        url = installation.settings.database_url
        assert url is not None, "an installation has both addresses"
        as_of = named.frozen_at or datetime.now(UTC)
        if settled:
            rows = settled_rows(
                url, found, named, revision=revision, numbering=Numbering(numbering)
            )
        else:
            rows = export_rows(url, found, named, numbering=Numbering(numbering))
        if kind == "csv":
            lines = csv_lines(found, rows, installation=client.installation())
        else:
            lines = ndjson_lines(found, named, rows)
        count = 0
        with _written(output) as file:
            for line in lines:
                file.write(line)
                count += 1
    members = count - (kind == "csv")
    what = "1 member" if members == 1 else f"{members} members"
    when = f"{as_of.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
    frozen = "" if named.frozen_at is None else "frozen "
    note(f"{what} of {shown(board)}, season {shown(named.label)}, {frozen}as of {when}")


@contextmanager
def _written(path: Path | None) -> Iterator[BinaryIO]:
    from truerank.intake.lines import FileUnusable

    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    # Whoever finds the file finds all of it.
    unfinished = path.with_name(f"{path.name}.part")
    try:
        with unfinished.open("wb") as file:
            yield file
        unfinished.replace(path)
    except OSError as exc:
        raise FileUnusable(f"{path}: {exc.strerror or exc}") from exc
    finally:
        with suppress(OSError):
            unfinished.unlink()

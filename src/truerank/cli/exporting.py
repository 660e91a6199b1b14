"""`truerank export`: a whole season as CSV or NDJSON."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

from cyclopts import Parameter

from truerank.cli.options import CohortNumber, CohortOf, Given, Numbers, SeasonLabel
from truerank.cli.output import freshness_lines, note, shown


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
    cohort: CohortNumber = None,
    cohort_of: CohortOf = None,
    given: Given,
) -> None:
    """Write every member of a season whom readers may see, in order, from one snapshot.

    Rows come from PostgreSQL, slice by slice in one transaction. In CSV a text that a spreadsheet
    would take for a formula stands behind an apostrophe; `truerank import --exported` takes it off.
    Of a season that is divided each row says which cohort the member is in.

    Args:
        board: The board's key.
        kind: csv, or ndjson with one JSON object a line.
        output: Write to this file, made anew, instead of standard output.
        settled: The settlement of a final season, also of members who were hidden or banned since:
            what payouts may read.
        revision: Of the settlement; without it, the newest.
    """
    with (
        given.client() as client,
        client.export(
            board,
            season,
            format=kind,
            numbering=numbering,
            settled=settled,
            revision=revision,
            cohort=cohort,
            cohort_of=cohort_of,
        ) as exported,
    ):
        head, count = exported.head, 0
        with written(output) as file:
            for line in exported:
                file.write(line)
                count += 1
    members = count - (kind == "csv")
    what = "1 member" if members == 1 else f"{members} members"
    season_words = f"season {shown(head.season.label)}"
    if head.season.cohort is not None:
        season_words += f", cohort {head.season.cohort}"
    if head.season.state != "open":
        season_words += f", {head.season.state}"
    if settled:
        season_words += f", settlement {head.season.revision}"
    when = f"{head.as_of.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
    frozen = "" if head.season.frozen_at is None else "frozen "
    note(f"{what} of {shown(board)}, {season_words}, {frozen}as of {when}")
    for words in freshness_lines(head.freshness):
        note(words)


@contextmanager
def written(path: Path | None) -> Iterator[BinaryIO]:
    """A file that is there once all of it is; None: standard output."""
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

"""`truerank reconcile`: compare what readers read from Redis with PostgreSQL, and mend it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from truerank.cli.options import Given, Json
from truerank.cli.output import escaped, say, shown, table, write_json
from truerank.cli.progress import counting_bar

if TYPE_CHECKING:
    from truerank.repair.findings import Finding, Report, Side

_NOT_WELL = 1


def reconcile(
    board: str | None = None,
    /,
    *,
    season: Annotated[
        str | None,
        Parameter(help="Only this season of the board, with its cohorts: 2026-W35, or all."),
    ] = None,
    repair: Annotated[bool, Parameter(negative=())] = False,
    accept_ahead: Annotated[bool, Parameter(negative=())] = False,
    wait: Annotated[float, Parameter(show_default=True)] = 10.0,
    json: Json = False,
    given: Given,
) -> int:
    """Compare every standing that readers read from Redis with PostgreSQL, at one tick each.

    Workers and writers may go on: what is on its way is no difference. Without --repair nothing
    is written. Exit status: 0 all was compared, and nothing is wrong, or all of it was mended;
    1 something is wrong, or could not be compared.

    Args:
        board: Only this board; without it all, and what no board has is looked for as well.
        repair: Force what PostgreSQL says.
        accept_ahead: With --repair, also where the projection has a newer version than PostgreSQL.
            That says that PostgreSQL lost something: find out why before.
        wait: Seconds that a change on its way is waited for before it counts as lagging.
    """
    from truerank.errors import InvalidInput
    from truerank.repair.reconcile import reconcile as compare

    if season is not None and board is None:
        raise InvalidInput("a season is one of a board: name the board as well", field="season")
    if accept_ahead and not repair:
        raise InvalidInput("--accept-ahead says what --repair may do", field="accept_ahead")
    with (
        given.installation(project=True) as installation,
        counting_bar("standings") as told,
    ):
        report = compare(
            installation.settings,
            board=board,
            season=season,
            repair=repair,
            accept_ahead=accept_ahead,
            wait_s=wait,
            told=told,
        )
    if json:
        write_json(report.to_json())
    else:
        for line in _lines(report):
            say(line)
    return _NOT_WELL if report.unrepaired or report.without_copy else 0


def _lines(report: "Report") -> Iterator[str]:
    if report.examples:
        rows = [_row(finding) for finding in report.examples]
        headers = ("kind", "source", "projection", "mended", "board", "season", "member", "what")
        yield from table(
            headers, rows, left="kind source projection mended board season member what"
        )
        if report.drift > len(rows):
            yield f"... and {report.drift - len(rows)} more"
        yield ""
    yield report.line()
    for detail, number in sorted(report.other.items()):
        yield f"  other: {detail}: {number}"
    if report.ahead and report.unrepaired:
        yield (
            "The projection has newer versions than PostgreSQL, which lost something or was set"
            " back. Find out why; --accept-ahead takes PostgreSQL's word for it."
        )
    if report.without_copy:
        groups = ", ".join(map(str, report.without_copy[:10]))
        yield f"not compared, for no worker keeps a whole copy of them: groups {groups}"
    if report.parked:
        yield f"not compared, for they are parked: {report.parked} rankings"
    yield f"{report.rankings} rankings in {report.seconds:.1f} s"


def _row(finding: "Finding") -> tuple[str, ...]:
    ranking = finding.ranking
    mended = "yes" if finding.repaired else "by a worker" if finding.handed_over else "no"
    return (
        finding.kind,
        _side(finding.source),
        _side(finding.projection),
        mended,
        escaped((ranking and ranking.board) or "-"),
        escaped((ranking and ranking.season) or "-"),
        "-" if finding.member is None else shown(finding.member),
        finding.detail,
    )


def _side(side: "Side | None") -> str:
    if side is None or (side.version is None and side.score is None):
        return "-"
    return f"{'?' if side.score is None else side.score} (v{side.version})"

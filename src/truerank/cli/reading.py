"""`truerank top`, `rank` and `around`: where members stand."""

from collections.abc import Iterable
from typing import Annotated

from cyclopts import Parameter

from truerank.cli.options import From, Given, Json, Numbers, SeasonLabel
from truerank.cli.output import freshness_words, say, shown, table, write_json
from truerank.model import Entry, Page, Place
from truerank.read.shapes import around_json, page_json, places_json

_HEADERS = ("rank", "score", "member")


def top(
    board: str,
    /,
    *,
    season: SeasonLabel = None,
    limit: Annotated[int, Parameter(name=("--limit", "-n"))] = 10,
    offset: int = 0,
    member: str | None = None,
    numbering: Numbers = "competition",
    source: From = None,
    json: Json = False,
    given: Given,
) -> None:
    """Show the first places of a board.

    Args:
        board: The board's key.
        limit: Rows, at most 1000.
        offset: Rows passed over.
        member: Show also where this member stands, and who is near, in the same answer.
    """
    with given.client(project=source != "database") as client:
        page = client.top(
            board,
            season,
            limit=limit,
            offset=offset,
            member=member,
            numbering=numbering,
            source=source,
        )
    if json:
        write_json(page_json(page))
        return
    _say_head(page)
    _say_rows(page.entries)
    if member is not None:
        say("")
        _say_rows(page.around or page.places)
    say(freshness_words(page.freshness))


def rank(
    board: str,
    members: Annotated[tuple[str, ...], Parameter(name="MEMBER", consume_multiple=True)],
    /,
    *,
    season: SeasonLabel = None,
    numbering: Numbers = "competition",
    source: From = None,
    json: Json = False,
    given: Given,
) -> None:
    """Show where members stand, all from one snapshot.

    Args:
        board: The board's key.
        members: One id or more, at most 1000.
    """
    with given.client(project=source != "database") as client:
        page = client.places(board, members, season, numbering=numbering, source=source)
    if json:
        write_json(places_json(page))
        return
    _say_head(page)
    _say_rows(page.places)
    say(freshness_words(page.freshness))


def around(
    board: str,
    member: str,
    /,
    *,
    season: SeasonLabel = None,
    limit: Annotated[int, Parameter(name=("--limit", "-n"))] = 11,
    numbering: Numbers = "competition",
    source: From = None,
    json: Json = False,
    given: Given,
) -> None:
    """Show who stands around a member.

    Args:
        board: The board's key.
        member: The member in the middle.
        limit: Rows, at most 1000.
    """
    with given.client(project=source != "database") as client:
        page = client.around(board, member, season, limit=limit, numbering=numbering, source=source)
    if json:
        write_json(around_json(page))
        return
    _say_head(page)
    _say_rows(page.around or page.places)
    say(freshness_words(page.freshness))


def _say_head(page: Page) -> None:
    members = "1 member" if page.total == 1 else f"{page.total} members"
    say(f"{shown(page.board)}, season {shown(page.season)}, {members}")


def _say_rows(rows: Iterable[Entry | Place]) -> None:
    cells = [
        ("-" if row.rank is None else str(row.rank), row.score or "-", shown(row.member))
        for row in rows
    ]
    for line in table(_HEADERS, cells, left="member"):
        say(line)

"""`truerank top`, `place`, `places`, `around` and so on: where members stand."""

from collections.abc import Iterable
from typing import Annotated

from cyclopts import Parameter

from truerank.cli.options import (
    ASKED,
    LISTED,
    LOOKED_BACK,
    Asked,
    Given,
    Json,
    Listed,
    LookedBack,
    Numbers,
)
from truerank.cli.output import say, say_freshness, shown, table, write_json
from truerank.errors import InvalidInput
from truerank.model import Entry, Histogram, MemberState, Page, Place
from truerank.read.shapes import (
    around_json,
    between_json,
    counts_json,
    histogram_json,
    page_json,
    place_json,
    places_json,
    window_json,
)

Score = Annotated[str | None, Parameter(allow_leading_hyphen=True)]

_BESIDE_ROWS = 5  # of the neighbourhood beside a top list
_HEADERS = ("rank", "score", "member")


def top(
    board: str,
    /,
    *,
    limit: Annotated[int, Parameter(name=("--limit", "-n"))] = 10,
    offset: int = 0,
    cursor: str | None = None,
    member: str | None = None,
    around_limit: Annotated[int | None, Parameter(show_default=False)] = None,
    listed: LookedBack = LOOKED_BACK,
    json: Json = False,
    given: Given,
) -> None:
    """Show the first places of a board.

    Args:
        board: The board's key.
        limit: Rows, at most 1000.
        offset: Rows passed over.
        cursor: Go on after, or before, another page: its `next` or `previous` in JSON.
        member: Show also where this member stands, and who is near, in the same answer.
        around_limit: Rows of the neighbourhood of that member, without those listed above; 5 where
            it isn't given.
    """
    if around_limit is not None and member is None:
        raise InvalidInput(
            "--around-limit says how many rows, of the --member given beside it",
            field="around_limit",
        )
    how = listed.how()
    with given.reader(project=listed.projects) as client:
        page = client.top(
            board,
            limit=limit,
            offset=offset,
            cursor=cursor,
            member=member,
            around_limit=_BESIDE_ROWS if around_limit is None else around_limit,
            **how,
        )
    if json:
        write_json(page_json(page))
        return
    _say_head(page)
    _say_rows(page.entries, compared=page.since is not None)
    listed_above = {entry.member for entry in page.entries}
    beside = [row for row in page.around or page.places if row.member not in listed_above]
    if beside:
        say("")
        _say_rows(beside, compared=page.since is not None)
    say_freshness(page.freshness)


def place(
    board: str,
    member: str,
    /,
    *,
    percentile: Annotated[bool, Parameter(negative=())] = False,
    listed: LookedBack = LOOKED_BACK,
    json: Json = False,
    given: Given,
) -> None:
    """Show where a member stands.

    Args:
        board: The board's key.
        member: Whose place.
        percentile: Say also how many percent of the others are below.
    """
    how = listed.how()
    with given.reader(project=listed.projects) as client:
        page = client.place(board, member, percentile=percentile, **how)
    if json:
        write_json(place_json(page, percentile=percentile))
        return
    _say_head(page)
    _say_places(page, among=False, percentile=percentile)
    say_freshness(page.freshness)


def places(
    board: str,
    members: Annotated[tuple[str, ...], Parameter(name="MEMBER", consume_multiple=True)],
    /,
    *,
    among: Annotated[bool, Parameter(negative=())] = False,
    percentile: Annotated[bool, Parameter(negative=())] = False,
    listed: LookedBack = LOOKED_BACK,
    json: Json = False,
    given: Given,
) -> None:
    """Show where members stand, all from one snapshot.

    Args:
        board: The board's key.
        members: One id or more, at most 1000.
        among: Rank them also among themselves.
        percentile: Say also how many percent of the others are below.
    """
    how = listed.how()
    with given.reader(project=listed.projects) as client:
        page = client.places(
            board,
            members,
            among=among,
            percentile=percentile,
            **how,
        )
    if json:
        write_json(places_json(page, among=among, percentile=percentile))
        return
    _say_head(page)
    _say_places(page, among=among, percentile=percentile)
    say_freshness(page.freshness)


def around(
    board: str,
    member: str | None = None,
    /,
    *,
    rank: int | None = None,
    limit: Annotated[int, Parameter(name=("--limit", "-n"))] = 11,
    listed: LookedBack = LOOKED_BACK,
    json: Json = False,
    given: Given,
) -> None:
    """Show who stands around a member, or around a rank.

    Args:
        board: The board's key.
        member: The member in the middle.
        rank: The rank in the middle, instead of a member.
        limit: Rows, at most 1000.
    """
    how = listed.how()
    if (member is None) == (rank is None):
        raise InvalidInput("give a member, or --rank", field="member")
    with given.reader(project=listed.projects) as client:
        page = client.around(board, member, rank=rank, limit=limit, **how)
    if json:
        write_json(window_json(page) if member is None else around_json(page))
        return
    _say_head(page)
    _say_rows(page.around or page.places, compared=page.since is not None)
    say_freshness(page.freshness)


def between(
    board: str,
    /,
    *,
    score_min: Score = None,
    score_max: Score = None,
    limit: Annotated[int, Parameter(name=("--limit", "-n"))] = 10,
    offset: int = 0,
    cursor: str | None = None,
    listed: Listed = LISTED,
    json: Json = False,
    given: Given,
) -> None:
    """Show the members whose scores lie between two, both included.

    Args:
        board: The board's key.
        score_min: The lowest score; without it there is no bound.
        score_max: The highest score.
        limit: Rows, at most 1000.
        offset: Rows passed over.
        cursor: Go on after, or before, another page: its `next` or `previous` in JSON.
    """
    how = listed.how()
    with given.reader(project=listed.projects) as client:
        page = client.between(
            board,
            score_min,
            score_max,
            limit=limit,
            offset=offset,
            cursor=cursor,
            **how,
        )
    if json:
        write_json(between_json(page))
        return
    _say_head(page)
    _say_rows(page.entries)
    say(f"{page.matching} between these scores")
    say_freshness(page.freshness)


def counts(
    board: str,
    scores: Annotated[
        tuple[str, ...],
        Parameter(name="SCORE", consume_multiple=True, allow_leading_hyphen=True),
    ],
    /,
    *,
    tie: Annotated[
        tuple[int, ...], Parameter(name="--tie", negative=(), allow_leading_hyphen=True)
    ] = (),
    numbering: Numbers = "competition",
    asked: Asked = ASKED,
    json: Json = False,
    given: Given,
) -> None:
    """Show how many are better than scores, how many share them, and which ranks they would be.

    Nobody need have them: the rank is the one of whoever reached the score now.

    Args:
        board: The board's key.
        scores: One or more, at most 1000, in the board's unit.
        tie: The tie-breaks beside each score, one after the other, in the board's order. Without
            them equals are those of equal score.
    """
    how = asked.how()
    with given.reader(project=asked.projects) as client:
        page = client.counts(board, scores, ties=tie, numbering=numbering, **how)
    if json:
        write_json(counts_json(page))
        return
    _say_head(page)
    rows = [
        (count.score, str(count.better), str(count.equal), str(count.rank)) for count in page.counts
    ]
    for line in table(("score", "better", "equal", "rank"), rows):
        say(line)
    say_freshness(page.freshness)


def histogram(
    board: str,
    edges: Annotated[
        tuple[str, ...],
        Parameter(name="EDGE", consume_multiple=True, allow_leading_hyphen=True),
    ],
    /,
    *,
    asked: Asked = ASKED,
    json: Json = False,
    given: Given,
) -> None:
    """Show how many members have scores below, between and from some edges on.

    Args:
        board: The board's key.
        edges: Scores in the board's unit, rising; each begins a bucket.
    """
    how = asked.how()
    with given.reader(project=asked.projects) as client:
        spread = client.histogram(board, edges, **how)
    if json:
        write_json(histogram_json(spread))
        return
    _say_head(spread)
    rows = [(bucket.low or "", bucket.high or "", str(bucket.members)) for bucket in spread.buckets]
    for line in table(("from", "below", "members"), rows):
        say(line)
    say_freshness(spread.freshness)


def _say_head(page: Page | Histogram) -> None:
    members = "1 member" if page.total == 1 else f"{page.total} members"
    cohort = "" if page.cohort is None else f", cohort {page.cohort}"
    state = "" if page.state == "open" else f", {page.state}"
    say(f"{shown(page.board)}, season {shown(page.season)}{state}{cohort}, {members}")


def _say_rows(rows: Iterable[Entry | Place], *, compared: bool = False) -> None:
    """Print places; with how each has changed where they are compared with earlier ones."""
    cells = [
        (
            "-" if row.rank is None else str(row.rank),
            *([_change(row)] if compared else []),
            row.score or "-",
            _who(row),
        )
        for row in rows
    ]
    headers = (_HEADERS[0], "change", *_HEADERS[1:]) if compared else _HEADERS
    for line in table(headers, cells, left="member"):
        say(line)


def _change(row: Entry | Place) -> str:
    if row.rank is None:
        return "-"
    if row.change is None:
        return "new"
    return f"{row.change:+}" if row.change else "="


def _who(row: Entry | Place) -> str:
    """A member's id; its name where asked for and it has one; why it is shown without a place."""
    who = shown(row.member)
    if row.profile is not None and row.profile.name is not None:
        who += f" ({shown(row.profile.name)})"
    if isinstance(row, Place) and row.state is not MemberState.ACTIVE:
        who += f", {row.state}"
    if isinstance(row, Place) and row.pending:
        who += ", pending"
    return who


def _say_places(page: Page, *, among: bool, percentile: bool) -> None:
    if not among and not percentile:
        _say_rows(page.places, compared=page.since is not None)
        return
    compared = page.since is not None
    headers = ["rank", *(["change"] if compared else []), *(["among"] if among else [])]
    headers += ["percentile"] if percentile else []
    rows = []
    for place in page.places:
        numbers: list[object] = [place.rank]
        if among:
            numbers.append(place.rank_among)
        if percentile:
            numbers.append(None if place.percentile is None else f"{place.percentile:.2f}")
        cells = ["-" if number is None else str(number) for number in numbers]
        if compared:
            cells.insert(1, _change(place))
        rows.append([*cells, place.score or "-", _who(place)])
    for line in table([*headers, "score", "member"], rows, left="member"):
        say(line)

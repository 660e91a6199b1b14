"""`truerank board` and `truerank season`: what is ranked, and in which periods."""

from datetime import UTC, datetime
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cyclopts import Parameter

from truerank.cli.options import Given, Json, Seasons, words
from truerank.cli.output import pairs, say, say_freshness, shown, table, write_json
from truerank.errors import InvalidInput
from truerank.instants import read_instant
from truerank.model import Board, Order, TieBreak
from truerank.read.shapes import board_json, season_json, seasons_json

_PAGE = 1000


def create(
    board: str,
    /,
    *,
    operator: Literal["sum", "best", "latest"] = "sum",
    order: Literal["desc", "asc"] = "desc",
    seasons: Seasons = "all,week,month",
    zone: str = "UTC",
    decimals: int = 0,
    tie_breaks: Annotated[tuple[str, ...], Parameter(name="--tie-break", negative=())] = (),
    value_min: int = -(2**63),
    value_max: int = 2**63 - 1,
    total_min: int = -(2**63),
    total_max: int = 2**63 - 1,
    dense: Annotated[bool, Parameter(negative=())] = False,
    json: Json = False,
    given: Given,
) -> None:
    """Make a board; one that exists with the same settings is left as it is.

    Args:
        board: Its key: 1 to 100 characters, no control characters, no / and no backslash.
        operator: How the events of a member become one score.
        order: Which scores come first: desc the high ones, asc the low ones.
        zone: IANA name of the time zone in which seasons begin.
        decimals: Places of a score, 0 to 18.
        tie_breaks: A column that decides between equal scores, as NAME, NAME:asc or
            NAME:desc:MIN:MAX; may be given four times.
        value_min: Smallest value of one event, in the last place: with 2 decimals 100 means 1.00.
        value_max: Largest value of one event, likewise.
        total_min: Smallest total, likewise; an event that would go below is refused.
        total_max: Largest total, likewise.
        dense: Keep in Valkey what it takes to count places densely (1223) at any depth.
    """
    with given.client() as client:
        created = client.create_board(
            board,
            operator=operator,
            order=order,
            seasons=words(seasons),
            zone=zone,
            decimals=decimals,
            tie_breaks=[_tie_break(text) for text in tie_breaks],
            value_min=value_min,
            value_max=value_max,
            total_min=total_min,
            total_max=total_max,
            dense=dense,
        )
        made = client.board(board)
    if json:
        write_json({"created": created, "board": board_json(made)})
    else:
        say(f"board {shown(board)} {'created' if created else 'exists with these settings'}")


def show_all(*, json: Json = False, given: Given) -> None:
    """List all boards, in order of their keys."""
    with given.client() as client:
        boards = client.boards()
    if json:
        write_json({"boards": [board_json(board) for board in boards]})
        return
    rows = [
        (
            board.spec.operator.value,
            board.spec.order.value,
            str(board.spec.decimals),
            _seasons(board),
            board.spec.zone,
            shown(board.spec.key),
        )
        for board in boards
    ]
    headers = ("operator", "order", "decimals", "seasons", "zone", "board")
    for line in table(headers, rows, left="operator order seasons zone board"):
        say(line)


def show(board: str, /, *, json: Json = False, given: Given) -> None:
    """Show what a board is made of.

    Args:
        board: The board's key.
    """
    with given.client() as client:
        found = client.board(board)
    if json:
        write_json({"board": board_json(found)})
        return
    spec = found.spec
    ties = [f"{shown(tie.name)} ({tie.order}, {tie.min} to {tie.max})" for tie in spec.tie_breaks]
    rows = [
        ("board", shown(spec.key)),
        ("operator", spec.operator.value),
        ("order", spec.order.value),
        ("seasons", _seasons(found)),
        ("zone", spec.zone),
        ("decimals", str(spec.decimals)),
        ("tie-breaks", ", ".join(ties) or "none"),
        ("values", f"{spec.value_min} to {spec.value_max}"),
        ("totals", f"{spec.total_min} to {spec.total_max}"),
        ("dense", "yes" if spec.dense else "no"),
        ("group", str(found.group)),
    ]
    for line in pairs(rows):
        say(line)


def list_seasons(
    board: str,
    /,
    *,
    period: Literal["all", "day", "week", "month", "year", "custom"] | None = None,
    json: Json = False,
    given: Given,
) -> None:
    """List the seasons in which something happened, and the custom ones; the latest first.

    Args:
        board: The board's key.
        period: Only seasons of this length.
    """
    with given.client() as client:
        zone = client.board(board).spec.zone
        seasons = client.seasons(board, period=period, limit=_PAGE)
        while page := client.seasons(board, period=period, limit=_PAGE, offset=len(seasons)):
            seasons += page
    if json:
        write_json(seasons_json(board, seasons))
        return
    frozen = any(season.frozen_at is not None for season in seasons)
    rows = [
        (
            season.period,
            season.state,
            _local(season.starts_at, zone),
            _local(season.ends_at, zone),
            *(["-" if season.frozen_at is None else _local(season.frozen_at, zone)] * frozen),
            shown(season.label),
        )
        for season in seasons
    ]
    headers = ("period", "state", "starts", "ends", *(["frozen"] * frozen), "season")
    for line in table(headers, rows, left=" ".join(headers)):
        say(line)
    say_freshness(seasons.freshness)


def create_season(
    board: str, season: str, starts_at: str, ends_at: str, /, *, json: Json = False, given: Given
) -> None:
    """Add a season of your own to a board; it holds the events from its start to before its end.

    Args:
        board: The board's key.
        season: Its label, 1 to 100 characters; none that looks like a built-in one.
        starts_at: Such as 2026-06-01T00:00:00+02:00.
        ends_at: Likewise.
    """
    bounds = read_instant(starts_at, "starts_at"), read_instant(ends_at, "ends_at")
    with given.client() as client:
        created = client.create_season(board, season, *bounds)
        found = client.season(board, season)
    if json:
        write_json({"created": created, "board": board, "season": season_json(found)})
    else:
        say(f"season {shown(season)} {'created' if created else 'exists with these bounds'}")


def _seasons(board: Board) -> str:
    return ",".join((*board.spec.seasons, *(["custom"] if board.custom_seasons else [])))


def _local(at: datetime | None, zone: str) -> str:
    """An instant as people of a board's zone read it; in UTC where this machine lacks the zone."""
    if at is None:
        return "-"
    try:
        return at.astimezone(ZoneInfo(zone)).isoformat(sep=" ")
    except (ZoneInfoNotFoundError, ValueError):
        return at.astimezone(UTC).isoformat(sep=" ")


def _tie_break(text: str) -> TieBreak:
    name, *rest = text.split(":")
    order, *bounds = rest or ["desc"]
    if order not in {"asc", "desc"} or len(bounds) not in {0, 2}:
        raise InvalidInput(
            f"tie-break {text!r} is not NAME, NAME:asc or NAME:desc:MIN:MAX", field="tie_breaks"
        )
    try:
        numbers = [int(bound) for bound in bounds]
    except ValueError as exc:
        raise InvalidInput(
            f"the bounds of tie-break {text!r} are no numbers", field="tie_breaks"
        ) from exc
    low, high = numbers or (-(2**63), 2**63 - 1)
    return TieBreak(name=name, order=Order(order), min=low, max=high)

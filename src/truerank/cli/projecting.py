"""`truerank projection parked` and `retry`: what can't be shown from Redis."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from truerank.cli.options import Given, Json
from truerank.cli.output import escaped, say, shown, table, write_json
from truerank.errors import InvalidInput
from truerank.read.shapes import time_text

if TYPE_CHECKING:
    from truerank.projection.parked import ParkedStanding

_PAGE = 1000


def show_parked(*, json: Json = False, given: Given) -> None:
    """List rankings that can't be applied to a copy in Redis; readers get them from PostgreSQL.

    Each with the first standing that was refused, and why. A worker tries them again by itself,
    ever later.
    """
    from truerank.projection.parked import list_parked

    found: list[ParkedStanding] = []
    with given.client() as client:
        while page := client.run(
            list_parked(after=found[-1].ranking if found else None, limit=_PAGE)
        ):
            found += page
    if json:
        write_json({"parked": [_parked_json(each) for each in found]})
        return
    rows = [
        (
            str(each.ranking),
            "-" if each.board is None else escaped(each.board),
            "-" if each.season is None else escaped(each.season),
            "-" if each.member is None else shown(each.member),
            str(each.tries),
            time_text(each.first_seen_at) or "",
            time_text(each.retry_at) or "",
            escaped(each.reason),
        )
        for each in found
    ]
    headers = ("ranking", "board", "season", "member", "tries", "since", "again", "reason")
    for line in table(headers, rows, left="board season member since again reason"):
        say(line)


def retry(ranking: int | None = None, /, *, json: Json = False, given: Given) -> None:
    """Have a parked ranking tried again now, in a new copy; without one: all of them.

    Args:
        ranking: Its number, as `truerank projection parked` shows it.
    """
    from truerank.projection.parked import retry_parked

    with given.client() as client:
        number = client.run(retry_parked(ranking))
    if ranking is not None and number == 0:
        raise InvalidInput(
            f"ranking {ranking} is not parked", code="parked_unknown", field="ranking"
        )
    if json:
        write_json({"retried": number})
    else:
        say(f"{number} to be tried again" if number else "nothing is parked")


def _parked_json(each: "ParkedStanding") -> dict[str, object]:
    return asdict(each) | {
        "ranking": str(each.ranking),
        "version": None if each.version is None else str(each.version),
        "first_seen_at": time_text(each.first_seen_at),
        "last_seen_at": time_text(each.last_seen_at),
        "retry_at": time_text(each.retry_at),
    }

"""`truerank season close`, `show`, `reopen` and `revise`: what a season comes to in the end."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from truerank.cli.attach import Actor, Reason, login
from truerank.cli.options import CohortNumber, CohortOf, Given, Json
from truerank.cli.output import duration_words, escaped, note, pairs, say, shown, table, write_json
from truerank.errors import InvalidInput
from truerank.model import Close, Excluded, Season, Settlement, SettlementChange, Writer
from truerank.read.settlement import (
    close_json,
    excluded_json,
    revised_json,
    settlement_change_json,
    settlement_json,
)
from truerank.read.shapes import season_json, time_text

_PAGE = 1000
_STILL_WAITS = 1

Revision = Annotated[
    int | None,
    Parameter(name="--revision", help="Of the settlement; without it, the newest."),
]


def close(
    board: str,
    season: str,
    /,
    *,
    now: Annotated[bool, Parameter(negative=())] = False,
    reason: Annotated[str | None, Parameter(show_default=False)] = None,
    actor: Actor = None,
    wait_s: float = 60.0,
    json: Json = False,
    given: Given,
) -> None:
    """Close a season: it takes no more events, and its standings become final.

    Safe to repeat, and to run on several machines at once: a season is settled once. Transactions
    that began before are waited for, and nobody waits for them in turn. On a board with a hold the
    season is sealed, and final when that is over; until then its events can be corrected.

    Args:
        board: The board's key.
        season: Its label.
        now: Before its end and the board's late_grace have passed, and without a hold.
        reason: Why, for the audit; needed with --now.
        wait_s: How many seconds to wait for open transactions.
    """
    if now and reason is None:
        raise InvalidInput("--now takes a --reason", field="reason")
    told: set[int | None] = set()

    def tell(writers: Sequence[Writer]) -> None:
        for writer in writers:
            if writer.pid not in told:
                told.add(writer.pid)
                age = duration_words(writer.age_ms or 0)
                name = escaped(writer.name or "?")
                note(f"waiting for a transaction open for {age}: {name}, pid {writer.pid}")

    with given.client() as client:
        closed = client.close_season(
            board,
            season,
            actor=login(actor),
            now=now,
            timeout_s=wait_s,
            on_waiting=tell,
            **({} if reason is None else {"reason": reason}),
        )
        settlements = client.settlements(board, season)
    _answer(board, closed, settlements, json=json)


def close_due(
    *, wait_s: float = 60.0, actor: Actor = None, json: Json = False, given: Given
) -> int:
    """Close all seasons that are to be closed by themselves now, as a worker does.

    On boards with auto_close those that ended since it was switched on, and whose late_grace is
    over; on all boards sealed ones whose hold is over. The oldest first.

    Args:
        wait_s: How many seconds to wait for open transactions, of each season.
    """
    met: dict[tuple[str, str], Close] = {}
    with given.client() as client:
        while True:
            page = client.close_due(actor=login(actor), limit=_PAGE, timeout_s=wait_s)
            new = {
                (each.board, each.season): each
                for each in page
                if each.waits is None or (each.board, each.season) not in met
            }
            met |= new
            # Those that wait come last: there is no other where they are met again.
            if len(page) < _PAGE or not new:
                break
    closes = list(met.values())
    if json:
        write_json({"closed": [close_json(each) for each in closes]})
    else:
        for each in closes:
            waits = "" if each.waits is None else f": {escaped(each.waits)}"
            say(f"{shown(each.board)}, season {shown(each.season)}{waits}")
        if not closes:
            say("nothing is due")
    return _STILL_WAITS if any(each.waits is not None for each in closes) else 0


def reopen(
    board: str,
    season: str,
    /,
    *,
    reason: Reason,
    actor: Actor = None,
    json: Json = False,
    given: Given,
) -> None:
    """Let a season take events again, sealed or beyond its late_grace; a final one stays final.

    It isn't closed by itself afterwards: close it.

    Args:
        board: The board's key.
        season: Its label.
    """
    with given.client() as client:
        reopened = client.reopen_season(board, season, actor=login(actor), reason=reason)
    if json:
        write_json({"board": board, "season": season, "reopened": reopened})
    else:
        say(f"season {shown(season)} {'takes events again' if reopened else 'is open'}")


def show(
    board: str,
    season: str,
    /,
    *,
    cohort: CohortNumber = None,
    cohort_of: CohortOf = None,
    json: Json = False,
    given: Given,
) -> None:
    """Show the state of a season, and what it, or one of its cohorts, came to.

    Args:
        board: The board's key.
        season: Its label.
    """
    with given.client() as client:
        found = client.season(board, season)
        settlements = client.settlements(board, season, cohort=cohort, cohort_of=cohort_of)
    _answer(board, found, settlements, json=json)


def revise(
    board: str,
    season: str,
    /,
    *,
    reason: Reason,
    void: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    amend: Annotated[str | None, Parameter(show_default=False)] = None,
    value: Annotated[str | None, Parameter(show_default=False)] = None,
    tie: Annotated[tuple[int, ...], Parameter(negative=())] = (),
    correction_id: Annotated[str | None, Parameter(show_default=False)] = None,
    actor: Actor = None,
    json: Json = False,
    given: Given,
) -> None:
    """Correct what a final season came to, as another numbered revision.

    With neither --void nor --amend, today's states of members are brought in: who was banned since
    gives up the place. What was settled before stays readable under its number.

    Args:
        board: The board's key.
        season: Its label.
        void: Id of an event that is to count no longer; may be given several times.
        amend: Or the id of one event that is to count with another value.
        value: That value, in the board's unit.
        tie: Its tie-breaks, one after the other.
        correction_id: Names the amendment; without it, made from the event's id and the value.
    """
    if (amend is None) != (value is None):
        raise InvalidInput("--amend and --value come together", field="value")
    with given.client() as client:
        revised = client.revise_season(
            board,
            season,
            actor=login(actor),
            reason=reason,
            void=void,
            amend=amend,
            value=value or 0,
            ties=tie,
            correction_id=correction_id or f"{amend}={value}",
        )
    if json:
        write_json({"board": board, "revised": [revised_json(each) for each in revised]})
        return
    for each in revised:
        what = f"{each.changed} places changed" if each.changed else "nothing changed"
        say(f"season {shown(each.season)}, revision {each.revision}: {what}")


def changes(
    board: str,
    season: str,
    /,
    *,
    revision: Revision = None,
    since: Annotated[int | None, Parameter(show_default=False)] = None,
    cohort: CohortNumber = None,
    cohort_of: CohortOf = None,
    json: Json = False,
    given: Given,
) -> None:
    """List the places in which a revision of a settlement differs from an earlier one.

    First those who have a place now, then those who have none any more.

    Args:
        board: The board's key.
        season: Its label.
        since: The earlier revision; without it, the one before.
    """
    found: list[SettlementChange] = []
    with given.client() as client:
        page = client.settlement_changes(
            board, season, revision, since=since, limit=_PAGE, cohort=cohort, cohort_of=cohort_of
        )
        found += page.changes
        while page.next is not None:
            page = client.settlement_changes(
                board, season, limit=_PAGE, cursor=page.next, cohort=page.cohort
            )
            found += page.changes
    if json:
        write_json(
            {
                "since": page.since,
                "revision": page.revision,
                "changes": [settlement_change_json(each) for each in found],
                **_cohort(page.cohort),
            }
        )
        return
    rows = [
        (
            _or_dash(each.rank_before),
            _or_dash(each.rank),
            _or_dash(each.score_before),
            _or_dash(each.score),
            shown(each.member),
        )
        for each in found
    ]
    headers = ("rank-before", "rank", "score-before", "score", "member")
    for line in table(headers, rows, left="member"):
        say(line)


def excluded(
    board: str,
    season: str,
    /,
    *,
    revision: Revision = None,
    cohort: CohortNumber = None,
    cohort_of: CohortOf = None,
    json: Json = False,
    given: Given,
) -> None:
    """List the members who had a score and no place when a season was settled, and why.

    Args:
        board: The board's key.
        season: Its label.
    """
    found: list[Excluded] = []
    with given.client() as client:
        page = client.settlement_excluded(
            board, season, revision, limit=_PAGE, cohort=cohort, cohort_of=cohort_of
        )
        found += page.excluded
        while page.next is not None:
            page = client.settlement_excluded(
                board, season, limit=_PAGE, cursor=page.next, cohort=page.cohort
            )
            found += page.excluded
    if json:
        write_json(
            {
                "revision": page.revision,
                "excluded": [excluded_json(each) for each in found],
                **_cohort(page.cohort),
            }
        )
        return
    rows = [(each.why, _or_dash(each.score), shown(each.member)) for each in found]
    for line in table(("why", "score", "member"), rows, left="why member"):
        say(line)


def _answer(board: str, season: Season, settlements: Sequence[Settlement], *, json: bool) -> None:
    from truerank.read.revisions import as_settled

    season = as_settled(season, settlements)
    if json:
        write_json(
            {
                "board": board,
                "season": season_json(season),
                "settlements": [settlement_json(each) for each in settlements],
            }
        )
        return
    rows = [
        ("season", shown(season.label)),
        ("state", season.state),
        ("closes", time_text(season.closes_at) or "-"),
    ]
    if season.state == "sealed":
        rows.append(("held until", time_text(season.hold_until) or "-"))
    for each in settlements:
        rows += [
            *([] if each.cohort is None else [("cohort", str(each.cohort))]),
            ("revision", str(each.revision)),
            ("  settled", f"{time_text(each.settled_at)} by {escaped(each.actor)}"),
            ("  reason", escaped(each.reason)),
            ("  members", f"{each.population}, and {each.excluded} without a place"),
            ("  total", each.total),
            ("  changed", str(each.changed)),
            ("  digest", each.digest),
        ]
    for line in pairs(rows):
        say(line)


def _cohort(number: int | None) -> dict[str, int]:
    return {} if number is None else {"cohort": number}


def _or_dash(value: object) -> str:
    return "-" if value is None else str(value)


COMMANDS = (
    (
        "close",
        close,
        (
            "truerank season close project-a 2026-11",
            "truerank season close project-a 2026-12 --now --reason 'the contest ends early'",
        ),
    ),
    ("close-due", close_due, ("truerank season close-due", "truerank season close-due --json")),
    ("show", show, ("truerank season show project-a 2026-11",)),
    ("reopen", reopen, ("truerank season reopen project-a 2026-11 --reason 'a late import'",)),
    (
        "revise",
        revise,
        (
            "truerank season revise project-a 2026-11 --void run-1 --reason cheating",
            "truerank season revise project-a 2026-11 --reason 'banned since'",
        ),
    ),
    ("changes", changes, ("truerank season changes project-a 2026-11 --revision 2",)),
    ("excluded", excluded, ("truerank season excluded project-a 2026-11",)),
)

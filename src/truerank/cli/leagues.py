"""`truerank league`: cohorts of a season's members, and the tiers they move between."""

from typing import Annotated

from cyclopts import Parameter

from truerank.cli.attach import Actor, Reason, login
from truerank.cli.options import NEEDED, Given, Json, Needed, Period, SeasonLabel, words
from truerank.cli.output import escaped, say, say_freshness, shown, table, write_json
from truerank.model import LeaguePlace, LeagueRule, TierMember
from truerank.read.leagues import cohorts_json, league_json, league_place_json, tier_json

_PAGE = 1000


def set_league(
    board: str,
    period: Period,
    /,
    *,
    size: int,
    tiers: str = "league",
    promote: int = 0,
    demote: int = 0,
    by_key: Annotated[bool, Parameter(name="--by-key", negative=())] = False,
    from_season: Annotated[str | None, Parameter(name="--from", show_default=False)] = None,
    reason: Reason,
    actor: Actor = None,
    json: Json = False,
    given: Given,
) -> None:
    """Divide the members of a board's seasons into cohorts, or change how they are divided.

    Who scores in a season for the first time is put into a cohort within a second, first come,
    first served. When a season is closed, the first of each cohort go up a tier and the last go
    down, of equals those who were first stand higher. The next season waits for that.

    Args:
        board: The board's key.
        period: Of the seasons: all, day, week, month, year or custom.
        size: Members of a cohort, 2 to 1000.
        tiers: Their names with commas between, the lowest first.
        promote: So many of each cohort go up.
        demote: So many go down.
        by_key: Members with the same key share cohorts; see `league assign`.
        from_season: The label of the first season that is divided; without it the current one.
    """
    rule = LeagueRule(
        period=period,
        size=size,
        by_key=by_key,
        tiers=words(tiers),
        promote=promote,
        demote=demote,
    )
    with given.client() as client:
        changed = client.set_league(
            board, rule, from_season=from_season, actor=login(actor), reason=reason
        )
    if json:
        write_json({"board": board, "period": period, "changed": changed})
    else:
        done = "are divided" if changed else "are divided like this already"
        say(f"seasons of {shown(board)} by {period} {done}")


def drop(
    board: str,
    period: Period,
    /,
    *,
    reason: Reason,
    actor: Actor = None,
    json: Json = False,
    given: Given,
) -> None:
    """Divide no more members of these seasons; cohorts that are there go on to the close.

    Args:
        board: The board's key.
        period: Of the seasons.
    """
    with given.client() as client:
        client.drop_league(board, period, actor=login(actor), reason=reason)
    if json:
        write_json({"board": board, "period": period, "dropped": True})
    else:
        say(f"seasons of {shown(board)} by {period} are divided no longer")


def show(board: str | None = None, /, *, json: Json = False, given: Given) -> None:
    """Show how seasons are divided, and how far that is.

    Args:
        board: The board's key; without it, of all boards.
    """
    with given.client() as client:
        found = client.leagues(board)
    if json:
        write_json({"leagues": [league_json(league) for league in found]})
        return
    rows = [
        (
            escaped(each.board),
            each.rule.period,
            str(each.rule.size),
            escaped(", ".join(each.rule.tiers)),
            str(each.rule.promote),
            str(each.rule.demote),
            str(each.undivided),
            "-" if each.waits_for is None else escaped(each.waits_for),
        )
        for each in found
    ]
    head = ("board", "period", "size", "tiers", "up", "down", "undivided", "waits for")
    for line in table(head, rows, left="board period tiers"):
        say(line)


def cohorts(
    board: str,
    /,
    *,
    season: SeasonLabel = None,
    json: Json = False,
    given: Given,
) -> None:
    """List the cohorts of a season.

    Args:
        board: The board's key.
    """
    with given.client() as client:
        found = client.cohorts(board, season, limit=_PAGE)
        while found and (
            page := client.cohorts(board, season, after=found[-1].number, limit=_PAGE)
        ):
            found += page
    if json:
        write_json(cohorts_json(board, found))
        return
    rows = [
        (
            str(each.number),
            escaped(each.tier_name or str(each.tier)),
            escaped(each.key),
            f"{each.members}/{each.size}",
            str(each.population),
        )
        for each in found
    ]
    for line in table(("cohort", "tier", "key", "places", "members"), rows, left="tier key"):
        say(line)
    say_freshness(found.freshness)


def place(
    board: str,
    member: str,
    /,
    *,
    needed: Needed = NEEDED,
    json: Json = False,
    given: Given,
) -> None:
    """Show the cohort and tier that a member is in, and what its place there comes to.

    Args:
        board: The board's key.
        member: Whose.
    """
    how = needed.how()
    with given.client(project=needed.projects) as client:
        found = client.league_place(board, member, **how)
    if json:
        write_json(league_place_json(found))
        return
    _say_place(found)
    say_freshness(found.freshness)


def _say_place(found: LeaguePlace) -> None:
    if found.cohort is None:
        say(f"{shown(found.member)} is in no cohort of season {shown(found.season)}")
        return
    rank = "no place" if found.rank is None else f"rank {found.rank} of {found.population}"
    say(
        f"season {shown(found.season)}, cohort {found.cohort}, tier "
        f"{shown(found.tier_name or str(found.tier))}: {rank}"
        + ("" if found.zone is None else f", {found.zone.value}")
    )


def tiers(board: str, period: Period, /, *, json: Json = False, given: Given) -> None:
    """List who is in another tier than the lowest.

    Args:
        board: The board's key.
        period: Of the league.
    """
    found: list[TierMember] = []
    with given.client() as client:
        while page := client.league_tiers(
            board, period, after=found[-1].member if found else "", limit=_PAGE
        ):
            found += page
    if json:
        write_json({"board": board, "members": [tier_json(each) for each in found]})
        return
    rows = [(escaped(each.tier_name), escaped(each.season), shown(each.member)) for each in found]
    for line in table(("tier", "since", "member"), rows, left="tier since member"):
        say(line)


def assign(
    board: str,
    member: str,
    key: Annotated[str | None, Parameter(name="KEY")] = None,
    /,
    *,
    json: Json = False,
    given: Given,
) -> None:
    """Say with whom a member is to share cohorts from now on; without a key, with anybody.

    Args:
        board: The board's key.
        member: Whose key it is.
        key: 1 to 100 characters, the same for all who are to be together.
    """
    with given.client() as client:
        changed = client.assign_league_key(board, member, key)
    if json:
        write_json({"board": board, "member": member, "changed": changed})
    else:
        say(f"{shown(member)} {'has' if changed else 'had'} this key")


COMMANDS = (
    (
        "set",
        set_league,
        ("truerank league set project-a week --size 50 --tiers low,high --promote 10 --reason so",),
    ),
    ("drop", drop, ("truerank league drop project-a week --reason 'no more leagues'",)),
    ("show", show, ("truerank league show", "truerank league show project-a --json")),
    ("cohorts", cohorts, ("truerank league cohorts project-a --season 2026-W35",)),
    ("place", place, ("truerank league place project-a ada --season 2026-W35",)),
    ("tiers", tiers, ("truerank league tiers project-a week",)),
    ("assign", assign, ("truerank league assign project-a ada berlin",)),
)

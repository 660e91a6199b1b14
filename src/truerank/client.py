"""Truerank for blocking code: one client with its own connections to both stores."""

import time
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, overload

from truerank.connections import Database, urls
from truerank.exporting import Export, Format, encoding_of
from truerank.model import Numbering
from truerank.operations import Operations
from truerank.operations.arguments import check_arguments
from truerank.projection.link import Link
from truerank.read.exported import ExportedRow, Wish
from truerank.settings import Settings, load
from truerank.steps import (
    Commands,
    Get,
    HashGet,
    Pause,
    Query,
    Request,
    ScriptCall,
    Steps,
    T,
    run_blocking,
)
from truerank.telemetry.meter import Meter

P = ParamSpec("P")


def blocking(
    operation: Callable[Concatenate[Operations, P], Steps[T]],
) -> "Callable[Concatenate[Truerank, P], T]":
    """The blocking method that runs an operation's steps."""

    @wraps(operation)
    def method(self: "Truerank", /, *args: P.args, **kwargs: P.kwargs) -> T:
        check_arguments(operation, args, kwargs)
        return self.run(operation(self.operations, *args, **kwargs))

    return method


class Truerank:
    """One installation of Truerank. Open it once per process; it is safe for several threads.

    Args:
        settings: with both URLs.
        meter: told what this client does; None: nobody is.
    """

    def __init__(self, settings: Settings, meter: Meter | None = None) -> None:
        database_url, redis_url = urls(settings)
        self.operations = Operations(settings, meter)
        self._settings = settings
        self._link = Link(
            redis_url,
            timeout_ms=settings.redis_timeout_ms,
            connections_max=settings.pool_max,
            meter=meter,
        )
        self._database = Database(database_url, settings, application="truerank")
        self._database.open()

    create_board = blocking(Operations.create_board)
    update_board = blocking(Operations.update_board)
    rename_board = blocking(Operations.rename_board)
    delete_board = blocking(Operations.delete_board)
    purge_boards = blocking(Operations.purge_boards)
    prune_events = blocking(Operations.prune_events)
    create_season = blocking(Operations.create_season)
    change_season = blocking(Operations.change_season)
    installation = blocking(Operations.installation)
    boards = blocking(Operations.boards)
    board = blocking(Operations.board)
    seasons = blocking(Operations.seasons)
    season = blocking(Operations.season)
    submit_score = blocking(Operations.submit_score)
    submit_scores = blocking(Operations.submit_scores)
    void_events = blocking(Operations.void_events)
    void_where = blocking(Operations.void_where)
    amend_event = blocking(Operations.amend_event)
    hide_member = blocking(Operations.hide_member)
    show_member = blocking(Operations.show_member)
    ban_member = blocking(Operations.ban_member)
    unban_member = blocking(Operations.unban_member)
    reset_member = blocking(Operations.reset_member)
    delete_member = blocking(Operations.delete_member)
    merge_members = blocking(Operations.merge_members)
    erase_member = blocking(Operations.erase_member)
    erasures = blocking(Operations.erasures)
    wait_erased = blocking(Operations.wait_erased)
    freeze_season = blocking(Operations.freeze_season)
    reveal_season = blocking(Operations.reveal_season)
    freezes = blocking(Operations.freezes)
    set_league = blocking(Operations.set_league)
    drop_league = blocking(Operations.drop_league)
    leagues = blocking(Operations.leagues)
    assign_league_key = blocking(Operations.assign_league_key)
    divide_members = blocking(Operations.divide_members)
    cohorts = blocking(Operations.cohorts)
    league_tiers = blocking(Operations.league_tiers)
    league_place = blocking(Operations.league_place)
    member_states = blocking(Operations.member_states)
    close_season = blocking(Operations.close_season)
    close_due = blocking(Operations.close_due)
    reopen_season = blocking(Operations.reopen_season)
    revise_season = blocking(Operations.revise_season)
    settlements = blocking(Operations.settlements)
    make_award_rule = blocking(Operations.make_award_rule)
    drop_award_rule = blocking(Operations.drop_award_rule)
    award_rules = blocking(Operations.award_rules)
    awards = blocking(Operations.awards)
    acknowledge_awards = blocking(Operations.acknowledge_awards)
    add_webhook = blocking(Operations.add_webhook)
    change_webhook = blocking(Operations.change_webhook)
    rotate_webhook = blocking(Operations.rotate_webhook)
    remove_webhook = blocking(Operations.remove_webhook)
    webhooks = blocking(Operations.webhooks)
    webhook = blocking(Operations.webhook)
    deliveries = blocking(Operations.deliveries)
    retry_deliveries = blocking(Operations.retry_deliveries)
    test_webhook = blocking(Operations.test_webhook)
    add_seasons = blocking(Operations.add_seasons)
    fill_seasons = blocking(Operations.fill_seasons)
    seasons_filling = blocking(Operations.seasons_filling)
    settlement_places = blocking(Operations.settlement_places)
    settlement_changes = blocking(Operations.settlement_changes)
    settlement_excluded = blocking(Operations.settlement_excluded)
    explain = blocking(Operations.explain)
    standing = blocking(Operations.standing)
    top = blocking(Operations.top)
    around = blocking(Operations.around)
    place = blocking(Operations.place)
    places = blocking(Operations.places)
    set_profiles = blocking(Operations.set_profiles)
    between = blocking(Operations.between)
    counts = blocking(Operations.counts)
    histogram = blocking(Operations.histogram)
    wait_visible = blocking(Operations.wait_visible)
    status = blocking(Operations.status)

    @overload
    def export(
        self,
        board: str,
        season: str | None = None,
        *,
        format: None = None,
        numbering: Numbering | str = Numbering.COMPETITION,
        settled: bool = False,
        revision: int | None = None,
        cohort: int | None = None,
        cohort_of: str | None = None,
    ) -> Export[ExportedRow]: ...

    @overload
    def export(
        self,
        board: str,
        season: str | None = None,
        *,
        format: Format,
        numbering: Numbering | str = Numbering.COMPETITION,
        settled: bool = False,
        revision: int | None = None,
        cohort: int | None = None,
        cohort_of: str | None = None,
    ) -> Export[bytes]: ...

    def export(
        self,
        board: str,
        season: str | None = None,
        *,
        format: Format | None = None,  # noqa: A002 - as in every other place
        numbering: Numbering | str = Numbering.COMPETITION,
        settled: bool = False,
        revision: int | None = None,
        cohort: int | None = None,
        cohort_of: str | None = None,
    ) -> Export[Any]:
        """Every member of a season whom readers may see, in order, from one snapshot of PostgreSQL.

        `with client.export("b") as export: for row in export: ...`, in asyncio with `async with`
        and `async for`, reads slice by slice, on a connection of its own. `export.head` says which
        season, as of when, and of which epoch.

        Args:
            board: the board's key.
            season: as in `top`.
            format: `csv` or `ndjson`: the lines of a file, as bytes; None: `ExportedRow`s.
            numbering: `competition` 1224, `ordinal` 1234 or `dense` 1223.
            settled: the settlement of a final season, also of who was hidden or banned since, under
                their own ids: what payouts may read.
            revision: of the settlement; None: the newest.
            cohort: only this cohort of the season, by its number.
            cohort_of: or the cohort that this member is in.

        Returns:
            Rows of a season that is divided say in `cohort` which cohort a member is in.

        Raises:
            InvalidInput: there is no such format or numbering. All else when it is opened: see
                `truerank.exporting.Export`.
        """
        check_arguments(
            Truerank.export,
            (board, season),
            {
                "numbering": numbering,
                "settled": settled,
                "revision": revision,
                "cohort": cohort,
                "cohort_of": cohort_of,
            },
        )
        wish = Wish(
            board=board,
            season=season,
            numbering=numbering,
            settled=settled,
            revision=revision,
            cohort=cohort,
            cohort_of=cohort_of,
            operator=self._settings.operator,
        )
        return Export(self._settings, wish, encoding_of(format))

    def run(self, steps: Steps[T]) -> T:
        """Run steps on this client's connections."""
        return run_blocking(steps, self._do)

    def close(self) -> None:
        """Close all connections."""
        self._database.close()
        self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    def _do(self, request: Request) -> Any:
        match request:
            case Query(sql, params, limit_s, snapshot, slow, yields):
                return self._database.query(
                    sql, params, limit_s, snapshot=snapshot, slow=slow, yields=yields
                )
            case ScriptCall():
                return self._link.call(request)
            case Get(key):
                return self._link.command("GET", key)
            case HashGet(key, fields):
                return self._link.command("HMGET", key, *fields)
            case Commands(commands):
                return self._link.commands(commands)
            case Pause(seconds):
                time.sleep(seconds)
                return time.monotonic()


def connect(database_url: str | None = None, redis_url: str | None = None) -> Truerank:
    """A client for two addresses; those not given come from TRUERANK_* variables.

    Raises:
        SettingsInvalid: an address is neither given nor set.
    """
    return Truerank(load(database_url=database_url, redis_url=redis_url))

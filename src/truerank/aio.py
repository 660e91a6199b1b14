"""Truerank for asyncio: the names of `truerank`, asynchronous."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, overload

import psycopg
from psycopg.rows import tuple_row

from truerank.command.submit import SUBMIT, or_raise, receipts, submit_parameters
from truerank.connections import AsyncDatabase, urls
from truerank.exporting import AsyncExport, Format, encoding_of
from truerank.model import Numbering, Receipt, ScoreEvent
from truerank.operations import Operations
from truerank.operations.arguments import check_arguments
from truerank.projection.alink import AsyncLink
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
    run_awaiting,
)
from truerank.telemetry.meter import Meter

P = ParamSpec("P")


def awaitable(
    operation: Callable[Concatenate[Operations, P], Steps[T]],
) -> "Callable[Concatenate[Truerank, P], Awaitable[T]]":
    """The coroutine method that runs an operation's steps."""

    @wraps(operation)
    async def method(self: "Truerank", /, *args: P.args, **kwargs: P.kwargs) -> T:
        check_arguments(operation, args, kwargs)
        return await self.run(operation(self.operations, *args, **kwargs))

    return method


class Truerank:
    """One installation of Truerank, for one event loop. Open it with `async with`.

    Args:
        settings: with both URLs.
        meter: told what this client does; None: nobody is.
    """

    def __init__(self, settings: Settings, meter: Meter | None = None) -> None:
        database_url, redis_url = urls(settings)
        self.operations = Operations(settings, meter)
        self._settings = settings
        self._link = AsyncLink(
            redis_url,
            timeout_ms=settings.redis_timeout_ms,
            connections_max=settings.pool_max,
            meter=meter,
        )
        self._database = AsyncDatabase(database_url, settings, application="truerank")

    create_board = awaitable(Operations.create_board)
    update_board = awaitable(Operations.update_board)
    rename_board = awaitable(Operations.rename_board)
    delete_board = awaitable(Operations.delete_board)
    purge_boards = awaitable(Operations.purge_boards)
    prune_events = awaitable(Operations.prune_events)
    create_season = awaitable(Operations.create_season)
    change_season = awaitable(Operations.change_season)
    installation = awaitable(Operations.installation)
    boards = awaitable(Operations.boards)
    board = awaitable(Operations.board)
    seasons = awaitable(Operations.seasons)
    season = awaitable(Operations.season)
    submit_score = awaitable(Operations.submit_score)
    submit_scores = awaitable(Operations.submit_scores)
    void_events = awaitable(Operations.void_events)
    void_where = awaitable(Operations.void_where)
    amend_event = awaitable(Operations.amend_event)
    hide_member = awaitable(Operations.hide_member)
    show_member = awaitable(Operations.show_member)
    ban_member = awaitable(Operations.ban_member)
    unban_member = awaitable(Operations.unban_member)
    reset_member = awaitable(Operations.reset_member)
    delete_member = awaitable(Operations.delete_member)
    merge_members = awaitable(Operations.merge_members)
    erase_member = awaitable(Operations.erase_member)
    erasures = awaitable(Operations.erasures)
    wait_erased = awaitable(Operations.wait_erased)
    freeze_season = awaitable(Operations.freeze_season)
    reveal_season = awaitable(Operations.reveal_season)
    freezes = awaitable(Operations.freezes)
    set_league = awaitable(Operations.set_league)
    drop_league = awaitable(Operations.drop_league)
    leagues = awaitable(Operations.leagues)
    assign_league_key = awaitable(Operations.assign_league_key)
    divide_members = awaitable(Operations.divide_members)
    cohorts = awaitable(Operations.cohorts)
    league_tiers = awaitable(Operations.league_tiers)
    league_place = awaitable(Operations.league_place)
    member_states = awaitable(Operations.member_states)
    close_season = awaitable(Operations.close_season)
    close_due = awaitable(Operations.close_due)
    reopen_season = awaitable(Operations.reopen_season)
    revise_season = awaitable(Operations.revise_season)
    settlements = awaitable(Operations.settlements)
    make_award_rule = awaitable(Operations.make_award_rule)
    drop_award_rule = awaitable(Operations.drop_award_rule)
    award_rules = awaitable(Operations.award_rules)
    awards = awaitable(Operations.awards)
    acknowledge_awards = awaitable(Operations.acknowledge_awards)
    add_webhook = awaitable(Operations.add_webhook)
    change_webhook = awaitable(Operations.change_webhook)
    rotate_webhook = awaitable(Operations.rotate_webhook)
    remove_webhook = awaitable(Operations.remove_webhook)
    webhooks = awaitable(Operations.webhooks)
    webhook = awaitable(Operations.webhook)
    deliveries = awaitable(Operations.deliveries)
    retry_deliveries = awaitable(Operations.retry_deliveries)
    test_webhook = awaitable(Operations.test_webhook)
    add_seasons = awaitable(Operations.add_seasons)
    fill_seasons = awaitable(Operations.fill_seasons)
    seasons_filling = awaitable(Operations.seasons_filling)
    settlement_places = awaitable(Operations.settlement_places)
    settlement_changes = awaitable(Operations.settlement_changes)
    settlement_excluded = awaitable(Operations.settlement_excluded)
    explain = awaitable(Operations.explain)
    standing = awaitable(Operations.standing)
    top = awaitable(Operations.top)
    around = awaitable(Operations.around)
    place = awaitable(Operations.place)
    places = awaitable(Operations.places)
    set_profiles = awaitable(Operations.set_profiles)
    between = awaitable(Operations.between)
    counts = awaitable(Operations.counts)
    histogram = awaitable(Operations.histogram)
    wait_visible = awaitable(Operations.wait_visible)
    status = awaitable(Operations.status)

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
    ) -> AsyncExport[ExportedRow]: ...

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
    ) -> AsyncExport[bytes]: ...

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
    ) -> AsyncExport[Any]:
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
        return AsyncExport(self._settings, wish, encoding_of(format))

    async def run(self, steps: Steps[T]) -> T:
        """Run steps on this client's connections."""
        return await run_awaiting(steps, self._do)

    async def open(self) -> None:
        """Open the connections."""
        await self._database.open()

    async def close(self) -> None:
        """Close all connections."""
        await self._database.close()
        await self._link.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()

    async def _do(self, request: Request) -> Any:
        match request:
            case Query(sql, params, limit_s, snapshot, slow, yields):
                return await self._database.query(
                    sql, params, limit_s, snapshot=snapshot, slow=slow, yields=yields
                )
            case ScriptCall():
                return await self._link.call(request)
            case Get(key):
                return await self._link.command("GET", key)
            case HashGet(key, fields):
                return await self._link.command("HMGET", key, *fields)
            case Commands(commands):
                return await self._link.commands(commands)
            case Pause(seconds):
                await asyncio.sleep(seconds)
                return time.monotonic()


def connect(database_url: str | None = None, redis_url: str | None = None) -> Truerank:
    """A client for two addresses; those not given come from TRUERANK_* variables."""
    return Truerank(load(database_url=database_url, redis_url=redis_url))


async def submit_score(
    conn: psycopg.AsyncConnection[Any],
    board: str,
    event: ScoreEvent,
    *,
    expected_season: str | None = None,
    source: str | None = None,
    expected_operator: str | None = None,
) -> Receipt:
    """Apply one score event in the transaction that `conn` is in; see `truerank.submit_score`."""
    (receipt,) = await submit_scores(
        conn,
        board,
        [event],
        expected_season=expected_season,
        source=source,
        expected_operator=expected_operator,
    )
    return or_raise(board, receipt)


async def submit_scores(
    conn: psycopg.AsyncConnection[Any],
    board: str,
    events: Sequence[ScoreEvent],
    *,
    expected_season: str | None = None,
    source: str | None = None,
    expected_operator: str | None = None,
) -> list[Receipt]:
    """Apply several events in the transaction of `conn`; see `truerank.submit_scores`."""
    if not events:
        return []
    parameters = submit_parameters(board, events, expected_season, source, expected_operator)
    # The connection may be set up for rows of another shape, or for cursors of another kind.
    async with psycopg.AsyncCursor(conn, row_factory=tuple_row) as cursor:
        await cursor.execute(SUBMIT, parameters, binary=True)
        return receipts(events, await cursor.fetchall())

"""Truerank for asyncio: the names of `truerank`, asynchronous."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self

import psycopg
from psycopg.rows import tuple_row

from truerank.command.submit import SUBMIT, or_raise, receipts, submit_parameters
from truerank.connections import AsyncDatabase, urls
from truerank.model import Receipt, ScoreEvent
from truerank.operations import Operations
from truerank.projection.alink import AsyncLink
from truerank.settings import Settings, load
from truerank.steps import Commands, Get, HashGet, Pause, Query, Request, ScriptCall, Steps, T
from truerank.telemetry.meter import Meter

P = ParamSpec("P")


def awaitable(
    operation: Callable[Concatenate[Operations, P], Steps[T]],
) -> "Callable[Concatenate[Truerank, P], Awaitable[T]]":
    """The coroutine method that runs an operation's steps."""

    @wraps(operation)
    async def method(self: "Truerank", /, *args: P.args, **kwargs: P.kwargs) -> T:
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
    add_seasons = awaitable(Operations.add_seasons)
    fill_seasons = awaitable(Operations.fill_seasons)
    count_members = awaitable(Operations.count_members)
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
    around_rank = awaitable(Operations.around_rank)
    count_scores = awaitable(Operations.count_scores)
    histogram = awaitable(Operations.histogram)
    wait_visible = awaitable(Operations.wait_visible)
    status = awaitable(Operations.status)

    async def run(self, steps: Steps[T]) -> T:
        """Run steps on this client's connections."""
        try:
            request = next(steps)
            while True:
                try:
                    result = await self._do(request)
                except Exception as exc:  # noqa: BLE001 - whatever it is, the steps decide
                    request = steps.throw(exc)
                else:
                    request = steps.send(result)
        except StopIteration as stop:
            answer: T = stop.value
            return answer

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
            case Query(sql, params, limit_s, snapshot):
                return await self._database.query(sql, params, limit_s, snapshot=snapshot)
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

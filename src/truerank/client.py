"""Truerank for blocking code: one client with its own connections to both stores."""

import time
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self

from truerank.connections import Database, urls
from truerank.operations import Operations
from truerank.projection.link import Link
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
    add_seasons = blocking(Operations.add_seasons)
    fill_seasons = blocking(Operations.fill_seasons)
    count_members = blocking(Operations.count_members)
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
    around_rank = blocking(Operations.around_rank)
    count_scores = blocking(Operations.count_scores)
    histogram = blocking(Operations.histogram)
    wait_visible = blocking(Operations.wait_visible)
    status = blocking(Operations.status)

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
            case Query(sql, params, limit_s, snapshot):
                return self._database.query(sql, params, limit_s, snapshot=snapshot)
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

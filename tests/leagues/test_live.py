"""Live hints tell which cohorts changed, so that nobody is refreshed for another one's sake."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

import truerank
from tests.http.conftest import serving, stream
from tests.http.conftest import settings as _settings
from tests.projection.pipeline import wait_until
from truerank.errors import NotInCohort, ProjectionUnavailable
from truerank.local import running_worker
from truerank.model import LeagueRule, Source
from truerank.repair.verified import Verdict
from truerank.repair.verify import verify
from truerank.settings import Settings

__all__ = ["stream"]

Stream = Callable[..., Any]
BY: Any = {"actor": "op", "reason": "test"}
shared = _settings


@pytest.fixture
def settings(shared: Settings) -> Settings:
    return msgspec.structs.replace(shared, board_cache_ms=1)


@pytest.fixture
def league(settings: Settings) -> Iterator[truerank.Truerank]:
    """A board of all time and by year; A and B are in cohort 1 of all time, C in cohort 2."""
    with running_worker(settings), truerank.Truerank(settings) as tr:
        tr.create_board("b", seasons=["all", "year"])
        tr.set_league("b", LeagueRule(period="all", size=2), **BY)
        for member in ("A", "B", "C"):
            tr.submit_score("b", event_id=member, member=member, value=1)
        wait_until(lambda: projected(tr, 1) == 2 and projected(tr, 2) == 1, "two cohorts")
        yield tr


@pytest.fixture
def served(settings: Settings) -> Iterator[str]:
    with serving(settings) as url:
        yield url


def projected(tr: truerank.Truerank, cohort: int) -> int:
    """How many the projection shows in a cohort."""
    try:
        return tr.top("b", cohort=cohort, source=Source.PROJECTION).total
    except NotInCohort:
        return 0


def frozen(tr: truerank.Truerank) -> bool:
    """Whether the projection shows the frozen season, and so has hinted at it."""
    try:
        page = tr.top("b", source=Source.PROJECTION)
    except ProjectionUnavailable:
        return False
    return page.freshness.frozen_at is not None and page.total == 3


async def scored(tr: truerank.Truerank, events: Any, member: str, number: int) -> Any:
    """What is told of cohorts once the season's change by a score has been told, by season."""
    receipt = await asyncio.to_thread(
        tr.submit_score, "b", event_id=f"{member}{number}", member=member, value=1
    )
    labels = [standing.season for standing in receipt.standings]
    while True:
        name, hint = await events.next()
        assert name == "hint"
        if hint["seasons"] == labels:
            return hint["cohorts"]


async def test_a_stream_names_the_cohorts_that_changed_and_no_others(
    league: truerank.Truerank, settings: Settings, served: str, stream: Stream
) -> None:
    async with stream(served, "b") as events:
        name, beginning = await events.next()
        assert (name, beginning["seasons"], beginning["cohorts"]) == ("tick", None, None)

        assert await scored(league, events, "A", 1) == {"all": [1]}
        assert await scored(league, events, "C", 1) == {"all": [2]}
        told = [await scored(league, events, "D", 1)]  # who is in none yet, and then in one
        while {"all": [2]} not in told:
            _, hint = await events.next()
            assert hint["seasons"] == []  # of the season nothing changed by that
            told.append(hint["cohorts"])
        assert told[:-1] in ([], [{}])

    proven = await asyncio.to_thread(verify, settings, "b", cohort_of="D", url=served)
    assert (proven.verdict, proven.cohort, proven.members) == (Verdict.SAME, 2, 2)
    assert {path.name for path in proven.paths} >= {"projection", "events", "export", "http"}


async def test_a_stream_tells_nothing_of_cohorts_behind_a_freeze(
    league: truerank.Truerank, served: str, stream: Stream
) -> None:
    await asyncio.to_thread(league.freeze_season, "b", "all", **BY)
    await asyncio.to_thread(wait_until, lambda: frozen(league), "the frozen season in Redis")
    async with stream(served, "b") as events:
        await events.next()
        for member in ("A", "C"):
            receipt = await asyncio.to_thread(
                league.submit_score, "b", event_id=f"{member}9", member=member, value=1
            )
            _, hint = await events.next()
            assert ["all", *hint["seasons"]] == [each.season for each in receipt.standings]
            assert hint["cohorts"] == {}

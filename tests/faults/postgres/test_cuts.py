"""The connection to PostgreSQL ends anywhere: what was committed and not told has one effect."""

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import msgspec
import psycopg
import pytest

import truerank
from tests.faults.proxy import Proxy, Side, postgresql_through
from tests.projection.pipeline import Pipeline, differences, wait_until
from truerank import aio
from truerank.errors import DatabaseUnavailable
from truerank.gatherer import Gatherer
from truerank.local import running_worker
from truerank.model import Outcome, ScoreEvent, Source
from truerank.projection import worker
from truerank.projection.projector import Projector
from truerank.settings import Settings

EVENT = ScoreEvent(event_id="e1", member="ann", value=5)


@pytest.fixture
def wire(settings: Settings) -> Iterator[tuple[Proxy, Settings]]:
    """A proxy before PostgreSQL, and the settings that lead through it."""
    assert settings.database_url is not None
    with postgresql_through(settings.database_url) as (proxy, url):
        yield proxy, msgspec.structs.replace(settings, database_url=url)


def held(pipeline: Pipeline) -> list[tuple[str, int, int]]:
    """Every standing as SQL has it, and the number of events."""
    rows = pipeline.conn.execute(
        """SELECT s.member, s.score, (SELECT count(*) FROM truerank.event)
           FROM truerank.standing AS s"""
    ).fetchall()
    return [(member, int(score), int(events)) for member, score, events in rows]


@pytest.mark.parametrize("executed", [True, False], ids=["reply lost", "request lost"])
def test_a_worker_cut_off_at_any_statement_goes_on_from_there(
    lone: Pipeline, wire: tuple[Proxy, Settings], *, executed: bool
) -> None:
    """From connecting to letting its leases go."""
    proxy, settings = wire
    assert settings.database_url is not None
    cuts = 0
    for nth in count():
        lone.submit("b", {"ann": 1, f"m{nth}": nth + 1})
        lone.free_leases()
        faults = proxy.faults
        if executed:
            proxy.lose_reply(b"", nth=nth)
        else:
            proxy.lose_request(b"", nth=nth)
        try:
            with worker.connect(settings.database_url) as conn:
                projector = Projector(conn, lone.link(), settings)
                for _ in range(3):
                    projector.step()
                projector.release()
        except (psycopg.OperationalError, DatabaseUnavailable):
            cuts += 1
        proxy.mend()
        lone.settle(lone.projector())
        if proxy.faults == faults:
            break
    assert cuts == nth
    assert cuts > 8, "each statement of a worker's start, batch and end is cut once"


@contextmanager
def lost(proxy: Proxy, statement: bytes, *, executed: bool) -> Iterator[None]:
    """One request with these bytes is carried out and not answered, or does not arrive."""
    faults = proxy.faults
    if executed:
        proxy.lose_reply(statement)
    else:
        proxy.lose_request(statement)
    yield
    assert proxy.faults == faults + 1
    proxy.mend()


@pytest.mark.parametrize("executed", [True, False], ids=["reply lost", "request lost"])
def test_a_commit_whose_reply_was_lost_is_repeated_to_one_effect(
    lone: Pipeline, wire: tuple[Proxy, Settings], *, executed: bool
) -> None:
    """The score belongs to a transaction of the caller, who can't know whether it committed."""
    proxy, settings = wire
    assert settings.database_url is not None
    lone.conn.execute("CREATE TABLE purchase (id text PRIMARY KEY)")

    def buy(conn: psycopg.Connection) -> Outcome:
        with conn.transaction():
            conn.execute("INSERT INTO purchase VALUES ('e1') ON CONFLICT DO NOTHING")
            return truerank.submit_score(conn, "b", EVENT).outcome

    with (
        pytest.raises(psycopg.OperationalError),
        psycopg.connect(settings.database_url, autocommit=True) as conn,
        lost(proxy, b"COMMIT", executed=executed),
    ):
        buy(conn)

    with psycopg.connect(settings.database_url, autocommit=True) as conn:
        assert buy(conn) is (Outcome.DUPLICATE if executed else Outcome.APPLIED)
        assert buy(conn) is Outcome.DUPLICATE
    assert held(lone) == [("ann", 5, 1)]
    lone.settle(lone.projector())


@pytest.mark.parametrize("executed", [True, False], ids=["reply lost", "request lost"])
def test_a_submit_of_a_blocking_client_is_repeated_to_one_effect(
    lone: Pipeline, wire: tuple[Proxy, Settings], *, executed: bool
) -> None:
    proxy, settings = wire
    with truerank.Truerank(settings) as client:

        def submit() -> Outcome:
            return client.submit_score("b", event_id="e1", member="ann", value=5).outcome

        client.top("b", source=Source.DATABASE)
        with lost(proxy, b"submit_scores", executed=executed), pytest.raises(DatabaseUnavailable):
            submit()

        assert submit() is (Outcome.DUPLICATE if executed else Outcome.APPLIED)
    assert held(lone) == [("ann", 5, 1)]


@pytest.mark.parametrize("executed", [True, False], ids=["reply lost", "request lost"])
async def test_a_submit_of_an_asyncio_client_is_repeated_to_one_effect(
    lone: Pipeline, wire: tuple[Proxy, Settings], *, executed: bool
) -> None:
    proxy, settings = wire
    async with aio.Truerank(settings) as client:

        async def submit() -> Outcome:
            return (await client.submit_score("b", event_id="e1", member="ann", value=5)).outcome

        await client.top("b", source=Source.DATABASE)
        with lost(proxy, b"submit_scores", executed=executed), pytest.raises(DatabaseUnavailable):
            await submit()

        assert await submit() is (Outcome.DUPLICATE if executed else Outcome.APPLIED)
    assert held(lone) == [("ann", 5, 1)]


@pytest.mark.parametrize("executed", [True, False], ids=["reply lost", "request lost"])
async def test_who_was_gathered_into_a_lost_commit_repeats_to_one_effect_each(
    lone: Pipeline, wire: tuple[Proxy, Settings], *, executed: bool
) -> None:
    """All get an error, none an invented answer; each repeats its own event."""
    proxy, settings = wire
    events = [ScoreEvent(event_id=f"e{n}", member=f"m{n % 3}", value=1) for n in range(12)]
    async with Gatherer(settings) as gatherer:

        async def submitted(event: ScoreEvent) -> Outcome | None:
            try:
                return (await gatherer.submit_score("b", event)).outcome
            except DatabaseUnavailable:
                return None

        with lost(proxy, b"submit_scores", executed=executed):
            first = await asyncio.gather(*map(submitted, events))
        told = {event.event_id for event, outcome in zip(events, first, strict=True) if outcome}
        again = await asyncio.gather(*map(submitted, events))

    assert None in first
    assert set(again) <= {Outcome.DUPLICATE, Outcome.APPLIED}
    assert told <= {
        event.event_id
        for event, outcome in zip(events, again, strict=True)
        if outcome is Outcome.DUPLICATE
    }
    assert (Outcome.APPLIED in again) is not executed
    assert sorted(held(lone)) == [("m0", 4, 12), ("m1", 4, 12), ("m2", 4, 12)]


def test_a_wire_that_is_cut_at_any_byte_loses_nothing_and_doubles_nothing(
    lone: Pipeline, wire: tuple[Proxy, Settings]
) -> None:
    """Of the worker and of the writer, in the middle of a message either way."""
    proxy, settings = wire
    dice = random.Random(48)
    expected = 0
    with running_worker(settings), truerank.Truerank(settings) as client:
        for number in range(60):
            side = dice.choice(list(Side))
            proxy.cut_after(dice.randrange(1500), side)
            expected += 1

            def acknowledged(number: int = number) -> bool:
                try:
                    client.submit_score("b", event_id=f"e{number}", member="ann", value=1)
                except DatabaseUnavailable:
                    return False
                return True

            wait_until(acknowledged, "an acknowledgement")
        proxy.mend()
        wait_until(lambda: not differences(lone), "both stores agree")
    assert proxy.faults > 20
    assert held(lone) == [("ann", expected, expected)]

"""Whoever is taken out of sight stays there, whatever the projection shows or fell back to."""

import asyncio
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
import psycopg
import pytest

import truerank
from tests.http.stand import Stand, deafen, until
from tests.members.conftest import BY, Club
from tests.projection.pipeline import Pipeline, pipeline, wait_until
from truerank.errors import DatabaseUnavailable, ProjectionUnavailable
from truerank.model import Erasure, PageRequest, Source
from truerank.projection.projector import Projector
from truerank.read.answers import Question
from truerank.read.checking import Outcome
from truerank.read.floors import Floors
from truerank.settings import Settings
from truerank.steps import Query

REMOVALS = ["hide", "ban", "delete", "reset", "merge", "erase"]
_HOUR_MS = 3_600_000


IN_SQL = {
    "hide": "set_member_state('ann', 'hide', 'op', 'why', 'b')",
    "ban": "set_member_state('ann', 'ban', 'op', 'why')",
    "delete": "set_member_state('ann', 'delete', 'op', 'why')",
    "reset": "set_member_state('ann', 'reset', 'op', 'why', 'b')",
    "merge": "merge_members('ann', 'bob', 'op', 'why')",
    "erase": "erase_member('ann', 'op', 'why')",
}


def remove(pipeline: Pipeline, action: str, member: str = "ann") -> truerank.MemberChange | Erasure:
    """Take a member out of sight; nobody projects it."""
    if action == "merge":
        return pipeline.client.merge_members(member, "bob", **BY)
    change: truerank.MemberChange | Erasure = getattr(pipeline.client, f"{action}_member")(
        member, **BY
    )
    return change


def seen(client: truerank.Truerank, **kwargs: Any) -> tuple[set[str], Source]:
    """Who is shown to whoever takes any answer, and by which source."""
    page = client.top("b", **kwargs)
    return {entry.member for entry in page.entries}, page.freshness.source


@pytest.fixture
def projector(single: Pipeline) -> Projector:
    """Ann has 3, bob 2, and both are shown."""
    single.submit("b", {"ann": 3, "bob": 2})
    projector = single.projector()
    single.settle(projector)
    return projector


@pytest.fixture
def client(single: Pipeline) -> Iterator[Callable[..., truerank.Truerank]]:
    """A function that opens a client of another process."""
    opened: list[truerank.Truerank] = []

    def open_client(**changes: Any) -> truerank.Truerank:
        opened.append(truerank.Truerank(msgspec.structs.replace(single.settings, **changes)))
        return opened[-1]

    yield open_client
    for each in opened:
        each.close()


@pytest.mark.parametrize("action", REMOVALS)
def test_without_a_worker_the_call_is_pending_and_postgresql_answers(
    single: Pipeline, projector: Projector, action: str
) -> None:
    assert seen(single.client) == ({"ann", "bob"}, Source.PROJECTION)

    assert remove(single, action).pending

    assert seen(single.client) == ({"bob"}, Source.DATABASE)
    with pytest.raises(ProjectionUnavailable):
        single.client.top("b", source=Source.PROJECTION)
    assert single.client.place("b", "ann").freshness.source is Source.DATABASE
    single.settle(projector)
    wait_until(lambda: seen(single.client) == ({"bob"}, Source.PROJECTION), "the projection again")


@pytest.mark.parametrize("action", REMOVALS)
def test_another_process_learns_of_it_with_its_next_look_at_the_board(
    single: Pipeline, projector: Projector, client: Callable[..., Any], action: str
) -> None:
    other = client(board_cache_ms=1)
    assert seen(other) == ({"ann", "bob"}, Source.PROJECTION)

    assert remove(single, action).pending

    wait_until(lambda: seen(other) == ({"bob"}, Source.DATABASE), "the other to learn of it")
    assert {seen(other)[1] for _ in range(5)} == {Source.DATABASE}
    single.settle(projector)
    wait_until(lambda: seen(other) == ({"bob"}, Source.PROJECTION), "the projection again")


def test_a_process_that_begins_later_does_not_trust_a_copy_from_before(
    single: Pipeline, projector: Projector, client: Callable[..., Any]
) -> None:
    remove(single, "ban")

    assert seen(client()) == ({"bob"}, Source.DATABASE)
    single.settle(projector)
    assert seen(client()) == ({"bob"}, Source.PROJECTION)


@pytest.mark.parametrize("action", REMOVALS)
def test_what_is_said_in_a_transaction_of_ones_own_is_in_force_from_its_commit(
    single: Pipeline, projector: Projector, client: Callable[..., Any], action: str
) -> None:
    with single.connection() as saying:
        saying.execute(f"SELECT truerank.{IN_SQL[action]}".encode())
        assert seen(client()) == ({"ann", "bob"}, Source.PROJECTION)
        saying.commit()

    assert seen(client()) == ({"bob"}, Source.DATABASE)
    single.settle(projector)
    assert seen(client()) == ({"bob"}, Source.PROJECTION)


def test_showing_a_member_again_keeps_nobody_from_the_projection(
    single: Pipeline, projector: Projector, client: Callable[..., Any]
) -> None:
    remove(single, "hide")
    single.settle(projector)
    single.conn.execute("SELECT truerank.set_member_state('ann', 'show', 'op', 'why')")

    assert seen(client()) == ({"bob"}, Source.PROJECTION)
    single.settle(projector)
    assert seen(client()) == ({"ann", "bob"}, Source.PROJECTION)


@pytest.mark.parametrize("knows", ["what it saw", "what PostgreSQL says"])
def test_after_redis_fell_back_nobody_appears_again(
    single: Pipeline, projector: Projector, client: Callable[..., Any], knows: str
) -> None:
    before = dumped(single)
    # It asks PostgreSQL once, and never again; or it begins after the ban.
    reader = client(board_cache_ms=_HOUR_MS)
    if knows == "what it saw":
        seen(reader)
    remove(single, "ban")
    single.settle(projector)
    assert seen(reader) == ({"bob"}, Source.PROJECTION)
    if knows == "what PostgreSQL says":
        reader = client(board_cache_ms=_HOUR_MS)

    restored(single, before)

    assert seen(reader) == ({"bob"}, Source.DATABASE)
    projector.interrupt()
    single.settle(projector)
    assert seen(reader) == ({"bob"}, Source.PROJECTION)


def test_a_fall_back_is_noticed_by_who_saw_more_though_nobody_was_hidden(
    single: Pipeline, projector: Projector
) -> None:
    before = dumped(single)
    single.submit("b", {"ann": 1})
    single.settle(projector)
    assert single.client.top("b").entries[0].score == "4"

    restored(single, before)

    page = single.client.top("b")
    assert (page.entries[0].score, page.freshness.source) == ("4", Source.DATABASE)


def test_a_check_of_both_sources_says_nothing_of_a_copy_that_fell_back(
    single: Pipeline, projector: Projector
) -> None:
    before = dumped(single)
    remove(single, "hide")
    single.settle(projector)
    seen(single.client)
    restored(single, before)
    answers = single.client.operations.answers
    found, season, epoch = single.client.run(single.client.operations.known.located("b", None))

    outcome = single.client.run(
        answers.check(Question(found, season, PageRequest(limit=10), epoch))
    )

    assert outcome is Outcome.UNJUDGED


@pytest.mark.parametrize("redis", ["stopped", "hanging"])
def test_without_redis_the_call_returns_within_its_budget_and_is_in_force(
    single: Pipeline, projector: Projector, client: Callable[..., Any], redis: str
) -> None:
    # The path of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="tr-") as folder, socket.socket(socket.AF_UNIX) as mute:
        path = Path(folder) / "s"
        if redis == "hanging":
            mute.bind(str(path))
            mute.listen()
        cut = client(redis_url=f"unix://{path}", redis_timeout_ms=50)
        assert cut.hide_member("ann", actor="op", reason="test", timeout_s=0.2).pending
        assert seen(cut) == ({"bob"}, Source.DATABASE)

    assert seen(client()) == ({"bob"}, Source.DATABASE)  # Redis is there again, the worker isn't
    single.settle(projector)
    assert seen(client()) == ({"bob"}, Source.PROJECTION)


@pytest.mark.usefixtures("projector")
def test_who_can_learn_it_from_nobody_gets_no_answer(single: Pipeline) -> None:
    remove(single, "hide")
    reader = single.client
    seen(reader)
    reader._database.close()  # noqa: SLF001 - PostgreSQL is away from now on

    with pytest.raises(DatabaseUnavailable):
        seen(reader)


def test_whatever_tick_is_named_every_later_one_shows_the_change(single: Pipeline) -> None:
    take = "SELECT id FROM truerank.take_tick(NULL, true)"
    tell = "SELECT truerank.privacy_tick(0::smallint)"
    early: psycopg.Connection[Any] = single.connection()
    ((before,),) = early.execute(take).fetchall()  # and isn't committed yet

    single.conn.execute("SELECT truerank.set_member_state('ann', 'hide', 'op', 'why')")
    assert single.conn.execute(tell).fetchall() == [(2**63 - 1,)]
    taking: psycopg.Connection[Any] = single.connection()
    ((tick,),) = taking.execute(take).fetchall()
    assert single.conn.execute(tell).fetchall() == [(2**63 - 1,)]
    ((later,),) = single.conn.execute(take).fetchall()  # it waits for nobody
    taking.commit()
    early.commit()

    assert single.conn.execute(tell).fetchall() == [(tick,)]
    assert before < tick < later


def test_in_a_new_epoch_ticks_of_the_old_one_keep_nobody_from_the_projection(
    single: Pipeline, projector: Projector, client: Callable[..., Any]
) -> None:
    reader = client()
    remove(single, "hide")
    single.settle(projector)
    wait_until(lambda: seen(reader) == ({"bob"}, Source.PROJECTION), "the projection")
    # A copy of the database by logical means brings no sequences.
    single.conn.execute("SELECT setval('truerank.tick_id', 1, false)")
    single.conn.execute("SELECT truerank.new_epoch(s.epoch, 'test') FROM truerank.setting AS s")

    projector.interrupt()
    single.settle(projector)

    wait_until(lambda: seen(reader) == ({"bob"}, Source.PROJECTION), "the projection again")


async def test_a_server_holds_no_page_beyond_the_bound_though_no_worker_shows_it(
    single: Pipeline, projector: Projector
) -> None:
    stand = Stand(single, projector)
    async with stand.serving(board_cache_ms=1, cache_max_ms=300) as served:
        await served.hearing()
        deafen(served, noticed=False)
        assert (await served.scores()).keys() == {"ann", "bob"}
        await asyncio.to_thread(remove, single, "hide")

        async def is_gone() -> bool:
            return (await served.scores()).keys() == {"bob"}

        await until(is_gone, "the page to go")
        for _ in range(5):
            assert await is_gone()
            await asyncio.sleep(0.05)  # as long as a page of PostgreSQL is held


def dumped(pipeline: Pipeline) -> dict[bytes, bytes]:
    """All that Redis holds now."""
    keys: Any = pipeline.redis.keys()
    return {key: pipeline.redis.dump(key) for key in keys}


def restored(pipeline: Pipeline, keys: dict[bytes, bytes]) -> None:
    """Let Redis fall back to what it held."""
    pipeline.redis.flushdb()
    for key, value in keys.items():
        pipeline.redis.restore(key, 0, value)


def test_pages_of_many_readers_at_once_are_not_taken_for_a_fall_back(
    settings: Settings,
) -> None:
    with pipeline(settings, groups=1) as made, ThreadPoolExecutor(4) as threads:
        made.client.create_board("b", seasons=["all"])
        made.submit("b", {"ann": 1})
        projector = made.projector()
        made.settle(projector)
        done = Event()

        def read() -> set[Source]:
            sources = set()
            while not done.is_set():
                sources.add(made.client.top("b").freshness.source)
            return sources

        reading = [threads.submit(read) for _ in range(3)]
        try:
            for _ in range(100):
                made.submit("b", {"ann": 1})
                projector.step()
        finally:
            done.set()

        assert set().union(*(each.result() for each in reading)) == {Source.PROJECTION}


def test_who_hides_does_not_wait_for_what_a_heartbeat_brings(club: Club) -> None:
    """The worker looks between the pieces of its housework, and shows it before the rest."""
    club.scores("b", ("ann", 9), ("bob", 7))
    projector = club.pipeline.projector(heartbeat_ms=3_600_000)
    done: list[str] = []

    def piece() -> None:
        done.append("a piece")
        if len(done) == 2:
            club.does("hide", "ann")

    def step() -> float | None:
        projector.step()
        return projector.pause_s

    step()  # the one heartbeat, and what it brings
    projector._housework = [piece] * 4  # noqa: SLF001 - pieces that this test can count

    assert (step(), len(done)) == (0.0, 2)
    assert (step(), len(done)) == (None, 4)
    page = club.client.top("b", source=Source.PROJECTION)
    assert [entry.member for entry in page.entries] == ["bob"]


def test_a_doubt_holds_for_groups_that_were_never_read_and_are_asked_of_meanwhile() -> None:
    floors, asked_at = Floors(), time.monotonic()

    floors.doubt(None)
    floors.learn(7, 3, asked_at=asked_at)  # an answer from before

    asked = next(floors.before(7))
    assert isinstance(asked, Query)
    assert "privacy_tick" in asked.sql

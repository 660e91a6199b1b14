"""Both sources are compared where nothing lies between them, and only there."""

import asyncio
import random
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import msgspec
import pytest
import structlog
from msgspec.structs import replace

import truerank
from tests.projection.pipeline import Pipeline, wait_until
from truerank import aio
from truerank.local import running_worker
from truerank.model import Consistency, Page, PageRequest, Source
from truerank.projection.projector import Projector
from truerank.read.answers import Answers, Question
from truerank.read.checking import Outcome, judge
from truerank.serve.checks import LiveChecks
from truerank.settings import Settings
from truerank.steps import Query, Request, ScriptCall, Steps, changed
from truerank.telemetry.meter import Meter

TOP = PageRequest(limit=10)


class Reader:
    """A client's answers, whose requests a test may look at before they go out."""

    def __init__(self, client: truerank.Truerank) -> None:
        self._client = client
        self.answers: Answers = client.operations.answers
        self.before: Callable[[Request], None] = lambda _request: None

    def check(self, request: PageRequest = TOP, board: str = "b") -> Outcome:
        """Compare what both sources answer."""
        return self._client.run(changed(self._check(request, board), self._look))

    def _check(self, request: PageRequest, board: str) -> Steps[Outcome]:
        question = Question(*(yield from self._located(board, request)))
        return (yield from self.answers.check(question))

    def _located(self, board: str, request: PageRequest) -> Steps[tuple[Any, ...]]:
        found, season, epoch = yield from self._client.operations.known.located(board, None)
        return found, season, request, epoch

    def _look(self, request: Request) -> Request:
        self.before(request)
        return request


@pytest.fixture
def reader(stopped: Pipeline) -> Reader:
    return Reader(stopped.client)


def corrupt(pipeline: Pipeline) -> None:
    """Give ann another score in Redis, in every place where it stands."""
    generation = pipeline.generation()
    assert generation is not None
    keys = pipeline.keys().generation(generation)
    ranking, (_, shown) = min(pipeline.rankings().items())  # that of the first board
    version, sort_key = shown["ann"][:8], shown["ann"][8:]
    (score,) = struct.unpack(">Q", sort_key[:8])
    wrong = struct.pack(">Q", score - 5) + sort_key[8:]
    assert pipeline.redis.zrem(keys.places(ranking), sort_key + b"ann") == 1
    pipeline.redis.zadd(keys.places(ranking), {wrong + b"ann": 0})
    pipeline.redis.hset(keys.shown(ranking), "ann", version + wrong)


def test_sources_that_agree_are_equal(reader: Reader) -> None:
    assert reader.check() is Outcome.EQUAL
    assert reader.check(PageRequest(members=("ann", "bob"))) is Outcome.EQUAL
    assert reader.check(PageRequest(around_rank=1, around_limit=3)) is Outcome.EQUAL
    assert reader.check(PageRequest(scores=((10, ()), (11, ())))) is Outcome.EQUAL


def test_a_wrong_score_in_redis_that_nothing_else_tells_of_is_found(
    stopped: Pipeline, reader: Reader
) -> None:
    corrupt(stopped)

    assert reader.check() is Outcome.DIFFERENT


def test_a_wrong_score_in_postgresql_is_found(stopped: Pipeline, reader: Reader) -> None:
    stopped.conn.execute("UPDATE truerank.standing SET sort_key = set_byte(sort_key, 7, 0)")

    assert reader.check() is Outcome.DIFFERENT


@pytest.mark.parametrize("action", ["score", "hide", "hide on the board"])
def test_what_the_projection_does_not_show_yet_is_no_difference(
    stopped: Pipeline, reader: Reader, action: str
) -> None:
    if action == "score":
        stopped.submit("b", {"ann": 5})
    else:
        board = "b" if action == "hide on the board" else None
        stopped.client.hide_member("ann", actor="op", reason="test", board=board, timeout_s=0)

    assert reader.check() is Outcome.UNJUDGED


def test_what_another_board_got_meanwhile_keeps_nobody_from_judging(
    stopped: Pipeline, reader: Reader
) -> None:
    stopped.client.create_board("other", seasons=["all"])
    stopped.submit("other", {"ann": 5})
    stopped.client.hide_member("ann", actor="op", reason="test", board="other", timeout_s=0)

    assert reader.check() is Outcome.EQUAL
    corrupt(stopped)
    assert reader.check() is Outcome.DIFFERENT


def test_a_transaction_that_was_open_at_the_tick_is_no_difference(
    idle: Pipeline, projector: Projector
) -> None:
    with idle.connection() as writer:
        idle.submit("b", {"ann": 5}, writer)
        idle.submit("b", {"bob": 1})
        idle.settle(projector)  # a tick with the writer in it, as one that is under way
        writer.commit()

    assert Reader(idle.client).check() is Outcome.UNJUDGED


def test_a_score_that_comes_and_goes_while_both_are_asked_is_no_difference(
    stopped: Pipeline, reader: Reader
) -> None:
    def before(request: Request) -> None:
        if isinstance(request, Query) and "read_page" in request.sql:
            stopped.submit("b", {"ann": 5})
        elif isinstance(request, Query) and "changed_since" in request.sql:
            stopped.submit("b", {"ann": -5})

    reader.before = before

    assert reader.check() is Outcome.UNJUDGED


def test_a_tick_between_two_looks_is_no_difference(idle: Pipeline, projector: Projector) -> None:
    reader = Reader(idle.client)
    pages: list[Request] = []

    def before(request: Request) -> None:
        if isinstance(request, ScriptCall) and len(pages) % 2 == 1:
            idle.submit("b", {"ann": 5})
            idle.settle(projector)
        if isinstance(request, ScriptCall):
            pages.append(request)

    reader.before = before

    assert reader.check() is Outcome.UNJUDGED
    assert len(pages) > 2, "it tries again, for most ticks are soon over"


@pytest.mark.parametrize(
    "moved", [{"tick": 0}, {"generation": "another"}, {"partial": True}, {"token": "1:1:.x"}]
)
def test_a_copy_that_moved_between_two_looks_is_not_judged(
    stopped: Pipeline, moved: dict[str, Any]
) -> None:
    needed = Consistency.monotonic_after(None)
    before, source = (
        stopped.client.top("b", consistency=needed, source=each)
        for each in (Source.PROJECTION, Source.DATABASE)
    )
    after = replace(before, freshness=replace(before.freshness, **moved))

    assert judge(before, source, before, changed=False) is Outcome.EQUAL
    assert judge(before, source, after, changed=False) is Outcome.UNJUDGED


def test_a_copy_that_shows_half_a_batch_is_not_judged(stopped: Pipeline, reader: Reader) -> None:
    generation = stopped.generation()
    assert generation is not None
    stopped.redis.hset(stopped.keys().generation(generation).meta, "pending", "1 x 1")

    assert reader.check() is Outcome.UNJUDGED


def test_a_source_that_is_away_is_not_judged(stopped: Pipeline) -> None:
    reader = Reader(stopped.client)
    stopped.redis.flushdb()

    assert reader.check() is Outcome.UNJUDGED


def test_random_questions_under_writes_never_differ(settings: Settings, idle: Pipeline) -> None:
    settings = msgspec.structs.replace(settings, tick_busy_ms=5, tick_idle_ms=5)
    members = [f"m{number}" for number in range(8)]
    draw = random.Random("questions")
    reader = Reader(idle.client)
    over = Event()

    def write() -> int:
        scores, count = random.Random("scores"), 0
        assert settings.database_url is not None
        with truerank.Truerank(settings) as writer:
            while not over.wait(0.004):
                board = scores.choice(["b", "other", "third"])
                value = scores.choice([-1, 1, 5])
                member = scores.choice(members)
                writer.submit_score(board, event_id=f"w {count}", member=member, value=value)
                count += 1
                if count % 40 == 0:
                    word = scores.choice(["hide", "show"])
                    getattr(writer, f"{word}_member")(
                        member, actor="op", reason="test", timeout_s=0
                    )
        return count

    found = dict.fromkeys(Outcome, 0)
    for board in ("other", "third"):
        idle.client.create_board(board, seasons=["all"])
    with running_worker(settings), ThreadPoolExecutor(1) as threads:
        wait_until(lambda: reader.check() is Outcome.EQUAL, "a copy of the group")
        writing = threads.submit(write)
        try:
            for _ in range(500):
                request = draw.choice(
                    [
                        PageRequest(limit=draw.randint(1, 10), offset=draw.randint(0, 3)),
                        PageRequest(members=tuple(draw.sample(members, 3)), among=True),
                        PageRequest(around=members[0], members=(members[0],), around_limit=5),
                        PageRequest(scores=((draw.randint(-5, 20), ()),)),
                    ]
                )
                found[reader.check(request, draw.choice(["b", "other", "third"]))] += 1
        finally:
            over.set()
        assert writing.result() > 0

    assert found[Outcome.DIFFERENT] == 0
    assert found[Outcome.EQUAL] > 0, "or nothing was compared"


class Counts(Meter):
    """Keeps what was compared."""

    def __init__(self) -> None:
        self.outcomes: list[str] = []

    def live_checked(self, outcome: str) -> None:
        self.outcomes.append(outcome)


async def test_reads_are_checked_behind_the_readers_back_and_differences_logged_once(
    stopped: Pipeline,
) -> None:
    counts = Counts()
    with structlog.testing.capture_logs() as logs:
        async with aio.Truerank(stopped.settings) as client:
            checks = LiveChecks(client, counts, percent=100)
            await _read_until(client, counts, "equal")
            corrupt(stopped)
            counts.outcomes.clear()
            page = await _read_until(client, counts, "different")
            counts.outcomes.clear()
            await _read_until(client, counts, "different")
            await checks.close()

    assert page.entries[0].score == "15", "the reader's answer is what it was"
    (entry,) = [entry for entry in logs if entry["event"] == "live_check_differs"]
    assert (entry["board"], entry["season"], entry["log_level"]) == ("b", "all", "error")
    assert entry["asked"] == {"limit": 10, "around_limit": 5}


async def test_no_read_is_checked_where_the_setting_says_so(stopped: Pipeline) -> None:
    counts = Counts()
    async with aio.Truerank(stopped.settings) as client:
        checks = LiveChecks(client, counts, percent=0)
        for _ in range(20):
            await client.top("b")
        await checks.close()

    assert counts.outcomes == []


async def _read_until(client: aio.Truerank, counts: Counts, outcome: str) -> Page:
    async with asyncio.timeout(20):
        while True:
            page = await client.top("b")
            if outcome in counts.outcomes:
                return page
            await asyncio.sleep(0.005)

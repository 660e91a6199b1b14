"""Who watches the readers finds every kind of lie."""

import time
from collections.abc import Callable, Iterator

import msgspec
import psycopg
import pytest

from tests.faults.watching import BUSY, STILL, make_boards, watching
from tests.projection.pipeline import Pipeline, pipeline
from truerank.local import running_worker
from truerank.projection.keys import GenerationKeys
from truerank.settings import Settings


@pytest.fixture
def idle(database_url: str, redis_url: str) -> Iterator[Pipeline]:
    """Both boards, and no worker."""
    settings = Settings(database_url=database_url, redis_url=redis_url, fallback_max=1000)
    with pipeline(msgspec.structs.replace(settings, tick_idle_ms=5), groups=2) as made:
        make_boards(made)
        yield made


def watch_harm(idle: Pipeline, harm: Callable[[Pipeline], object]) -> None:
    """Watch readers of a copy that no worker brings forward any more, and that is harmed."""
    with watching(idle.settings) as watch:
        with running_worker(idle.settings):
            watch.await_whole(time.monotonic())
        watch.await_traffic(time.monotonic())
        harm(idle)
        watch.await_traffic(time.monotonic())


def copy_of(idle: Pipeline) -> GenerationKeys:
    generation = idle.generation()
    assert generation is not None
    return idle.keys().generation(generation)


def better_the_first(idle: Pipeline) -> None:
    places = copy_of(idle).places(min(idle.rankings()))
    (first, *_) = idle.redis.zrange(places, 0, 0)
    idle.redis.zadd(places, {(int.from_bytes(first[:8]) - 1000).to_bytes(8) + first[8:]: 0})
    idle.redis.zrem(places, first)


def make_younger(idle: Pipeline) -> None:
    idle.redis.hset(copy_of(idle).meta, "time", int(time.time() * 1_000_000))


def name_a_newer_tick(idle: Pipeline) -> None:
    ((tick,),) = idle.conn.execute("SELECT id FROM truerank.take_tick(NULL, true)").fetchall()
    idle.redis.hset(copy_of(idle).meta, "tick", tick)


def lose_the_last(idle: Pipeline) -> None:
    copy, ranking = copy_of(idle), min(idle.rankings())
    (last,) = idle.redis.zrange(copy.places(ranking), -1, -1)
    idle.redis.zrem(copy.places(ranking), last)
    idle.redis.hdel(copy.shown(ranking), last[-3:])
    idle.redis.hset(copy.counts, str(ranking), "11 0 0")


@pytest.mark.parametrize(
    ("harm", "lie"),
    [
        (better_the_first, "invented"),
        (make_younger, "where it must be"),
        (name_a_newer_tick, "where it must be"),
        (lose_the_last, "invented"),
    ],
)
def test_an_answer_that_is_not_true_is_found(
    idle: Pipeline, harm: Callable[[Pipeline], object], lie: str
) -> None:
    with pytest.raises(AssertionError, match=lie):
        watch_harm(idle, harm)


def test_a_copy_that_only_ages_is_no_lie(idle: Pipeline) -> None:
    watch_harm(idle, lambda _: None)


def test_a_transaction_left_open_is_found(idle: Pipeline) -> None:
    assert idle.settings.database_url is not None
    with psycopg.connect(idle.settings.database_url, application_name="truerank worker") as conn:
        conn.execute("SELECT FROM truerank.board")
        with pytest.raises(AssertionError, match="no transaction stays open"):
            watch_harm(idle, lambda _: None)


def test_readers_without_a_copy_are_told_the_truth_by_postgresql(idle: Pipeline) -> None:
    with watching(idle.settings) as watch:
        watch.await_traffic(time.monotonic())

    assert {answer.board for answer in watch.answers} == {BUSY, STILL}

"""What Redis loses is noticed, served from PostgreSQL meanwhile, and refilled."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conftest import StartRedis
from tests.projection.pipeline import Pipeline, differences, pipeline, wait_until
from truerank.errors import NotVisibleYet, ProjectionUnavailable
from truerank.local import running_worker
from truerank.model import Source
from truerank.settings import Settings

SCORES = {"ann": 3, "bob": 2, "cid": 1}


def ranking(single: Pipeline) -> int:
    (number,) = single.rankings()
    return number


def lose_everything(single: Pipeline) -> None:
    single.redis.flushdb()


def lose_pointer(single: Pipeline) -> None:
    single.redis.delete(single.keys().pointer)


def _lose(*keys: str) -> Callable[[Pipeline], None]:
    def lose(single: Pipeline) -> None:
        generation = single.generation()
        assert generation is not None
        copy = single.keys().generation(generation)
        found = [getattr(copy, key) for key in keys]
        names = [name if isinstance(name, str) else name(ranking(single)) for name in found]
        assert single.redis.delete(*names) == len(keys)

    return lose


def lose_half_of_meta(single: Pipeline) -> None:
    generation = single.generation()
    assert generation is not None
    single.redis.hdel(single.keys().generation(generation).meta, "snapshot", "covered")


LOSSES = {
    "everything": lose_everything,
    "pointer": lose_pointer,
    "meta": _lose("meta"),
    "counts": _lose("counts"),
    "places": _lose("places"),
    "shown": _lose("shown"),
}


def answer(single: Pipeline) -> tuple[dict[str, int], Source]:
    page = single.client.top("b")
    return {e.member: int(e.score) for e in page.entries}, page.freshness.source


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_is_served_from_postgresql_until_it_is_refilled(single: Pipeline, loss: str) -> None:
    single.submit("b", SCORES)
    projector = single.projector(heartbeat_ms=1)
    single.settle(projector)
    assert answer(single) == (SCORES, Source.PROJECTION)

    LOSSES[loss](single)
    assert answer(single) == (SCORES, Source.DATABASE)
    with pytest.raises(ProjectionUnavailable):
        single.client.top("b", source="projection")

    single.submit("b", {"bob": 5})
    projector.step()
    now = {**SCORES, "bob": 7}
    assert answer(single)[0] == now
    single.settle(projector)
    assert answer(single) == (now, Source.PROJECTION)


@pytest.mark.parametrize("loss", ["everything", "pointer", "meta"])
def test_a_loss_of_what_every_heartbeat_touches_is_mended_without_traffic(
    single: Pipeline, loss: str
) -> None:
    single.submit("b", SCORES)
    projector = single.projector(heartbeat_ms=1)
    single.settle(projector)

    LOSSES[loss](single)

    single.settle(projector)
    assert answer(single) == (SCORES, Source.PROJECTION)


@pytest.mark.parametrize(
    "garbled",
    ["pointer", "epoch", "cursor", "base", "pending", "snapshot", "scan", "high", "covered"],
)
def test_a_copy_whose_meta_makes_no_sense_is_filled_anew_by_the_next_worker(
    single: Pipeline, garbled: str
) -> None:
    single.submit("b", SCORES)
    single.settle(single.projector())
    generation = single.generation()
    assert generation is not None
    if garbled == "pointer":
        single.redis.set(single.keys().pointer, b"\xff")
    else:
        single.redis.hset(single.keys().generation(generation).meta, garbled, b"\xff x")

    assert answer(single)[0] == SCORES
    told = single.client.status().projection
    assert (told == "whole") == (garbled not in {"pointer", "epoch"})
    token = single.submit("b", {"bob": 0})[0].token
    assert token is not None
    with pytest.raises(NotVisibleYet):
        single.client.wait_visible(token, ["b"], timeout_s=0)
    single.settle(single.projector())

    assert answer(single) == (SCORES, Source.PROJECTION)


def test_a_ranking_that_lost_all_of_itself_is_not_an_empty_board(single: Pipeline) -> None:
    single.submit("b", SCORES)
    projector = single.projector(heartbeat_ms=1)
    single.settle(projector)
    generation = single.generation()
    assert generation is not None
    copy = single.keys().generation(generation)
    (ranking,) = single.rankings()
    single.redis.delete(copy.places(ranking), copy.shown(ranking), copy.counts)

    assert answer(single) == (SCORES, Source.DATABASE)
    single.submit("b", {"bob": 5})
    single.settle(projector)

    assert answer(single) == ({**SCORES, "bob": 7}, Source.PROJECTION)


def test_a_lost_pointer_is_set_again_to_the_copy_that_is_there(single: Pipeline) -> None:
    single.submit("b", SCORES)
    projector = single.projector(heartbeat_ms=1)
    single.settle(projector)
    generation = single.generation()

    lose_pointer(single)

    single.settle(projector)
    assert single.generation() == generation


def test_half_a_meta_is_as_good_as_none(single: Pipeline) -> None:
    single.submit("b", SCORES)
    single.settle(single.projector())

    lose_half_of_meta(single)

    single.settle(single.projector())
    assert answer(single) == (SCORES, Source.PROJECTION)


def test_a_loss_while_a_copy_is_filled_begins_it_anew(single: Pipeline) -> None:
    single.submit("b", {f"m{i}": i for i in range(10)})
    projector = single.projector(scan_rows_max=2)
    projector.step()
    projector.step()
    assert single.generation() is None

    single.redis.flushdb()

    single.settle(projector)


def test_a_ranking_damaged_while_it_is_filled_is_not_what_readers_get(single: Pipeline) -> None:
    single.submit("b", {f"m{i}": i for i in range(10)})
    projector = single.projector(scan_rows_max=2)
    projector.step()
    projector.step()
    places = list(single.redis.scan_iter("*:z"))
    assert single.redis.delete(*places) == 1

    single.settle(projector)


def test_a_redis_that_went_back_in_time_is_read_on_from_there(single: Pipeline) -> None:
    """PRJ-7: data and cursor go back together, whatever the worker remembers."""
    single.submit("b", SCORES)
    projector = single.projector()
    single.settle(projector)
    generation = single.generation()
    saved: Any = {name: single.redis.dump(name) for name in single.redis.scan_iter()}
    single.submit("b", {"ann": 10, "new": 1})
    single.settle(projector)

    single.redis.flushdb()
    for name, value in saved.items():
        single.redis.restore(name, 0, value)
    assert answer(single)[0] == SCORES

    single.submit("b", {"cid": 1})
    single.settle(projector)
    assert single.generation() == generation, "nothing had to be filled anew"


def test_scripts_forgotten_all_the_time_stop_nothing(settings: Settings, single: Pipeline) -> None:
    """PRJ-5, the script cache."""
    stop = threading.Event()

    def forget() -> None:
        while not stop.is_set():
            single.redis.script_flush()

    settings = msgspec.structs.replace(settings, tick_busy_ms=1, tick_idle_ms=1, call_rows_max=2)
    with running_worker(settings):
        flushing = threading.Thread(target=forget)
        flushing.start()
        try:
            for _ in range(30):
                receipts = single.submit("b", {f"m{i}": 1 for i in range(5)})
                token = receipts[-1].token
                assert token is not None
                single.client.wait_visible(token, ["b"])
                page = single.client.top("b")
                assert page.freshness.source is Source.PROJECTION
        finally:
            stop.set()
            flushing.join()
        assert differences(single) == []


@pytest.fixture
def own_redis(
    settings: Settings, start_redis: StartRedis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Pipeline, Callable[[], None]]]:
    """A pipeline on a Redis of its own, and a function that restarts that."""
    folder: Path = tmp_path_factory.mktemp("r")
    options = ("--appendonly", "yes", "--appendfsync", "always")
    url, process = start_redis(*options, folder=folder)

    def restart() -> None:
        nonlocal process
        process.terminate()
        process.wait()
        _, process = start_redis(*options, folder=folder)

    settings = msgspec.structs.replace(settings, redis_url=url)
    with ExitStack() as stack:
        made = stack.enter_context(pipeline(settings, groups=1))
        made.client.create_board("b", seasons=["all"])
        yield made, restart


def test_a_restart_of_redis_loses_nothing_and_makes_the_age_unknown(
    own_redis: tuple[Pipeline, Callable[[], None]],
) -> None:
    """PRJ-5, the restart."""
    single, restart = own_redis
    single.submit("b", SCORES)
    projector = single.projector()
    single.settle(projector)
    generation = single.generation()
    staleness_ms = single.client.top("b").freshness.staleness_ms
    assert staleness_ms is not None
    assert staleness_ms < 30_000

    restart()
    page = wait_until(lambda: single.client.top("b"), "an answer after the restart")
    if page.freshness.source is Source.DATABASE:  # the old connection was the first to be tried
        page = single.client.top("b")
    assert page.freshness.source is Source.PROJECTION
    assert page.freshness.staleness_ms is None, "another server's clock tells nothing"

    single.submit("b", {"bob": 5})
    single.settle(single.projector())
    assert single.generation() == generation
    assert single.client.top("b").freshness.staleness_ms is not None


def test_a_worker_outlives_a_restart_of_redis(
    own_redis: tuple[Pipeline, Callable[[], None]],
) -> None:
    single, restart = own_redis
    single.submit("b", SCORES)
    with running_worker(single.settings):
        generation = single.generation()

        restart()
        (receipt,) = single.submit("b", {"ann": 4})
        assert receipt.token is not None
        single.client.wait_visible(receipt.token, ["b"])

        assert single.generation() == generation
        assert differences(single) == []


@pytest.mark.parametrize(
    "keys", [("places",), ("shown",), ("counts",), ("places", "shown", "counts")], ids="+".join
)
def test_a_ranking_nobody_writes_to_is_mended_too(single: Pipeline, keys: Sequence[str]) -> None:
    single.submit("b", {"ann": 1, "bob": 2})
    projector = single.projector(heartbeat_ms=1)
    single.settle(projector)

    _lose(*keys)(single)

    single.settle(projector)
    assert single.client.top("b").freshness.source is Source.PROJECTION


def test_a_mark_of_damage_that_a_worker_left_is_mended_by_the_next(single: Pipeline) -> None:
    single.submit("b", {"ann": 1})
    single.settle(single.projector())
    generation = single.generation()
    assert generation is not None
    (number,) = single.rankings()
    single.redis.hset(single.keys().generation(generation).counts, str(number), "damaged")

    single.settle(single.projector(heartbeat_ms=1))

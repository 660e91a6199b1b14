"""Any single key is lost, or holds something of another type."""

import struct
from collections.abc import Callable, Iterator
from functools import partial

import msgspec
import pytest
import redis

from tests.faults.watching import BUSY, STILL
from tests.projection.pipeline import Pipeline, differences, pipeline, wait_until
from truerank.local import running_worker
from truerank.model import Source
from truerank.projection.keys import boards_key
from truerank.settings import Settings

HIDDEN = {"hid": 2, "veiled": 3}
SCORES = {f"m{number}": number for number in range(5)}
WRONG_TYPES: dict[str, Callable[[Pipeline, str], object]] = {
    "text": lambda both, key: both.redis.set(key, "x"),
    "list": lambda both, key: both.redis.rpush(key, "x"),
    "hash": lambda both, key: both.redis.hset(key, "x", "x"),
    "sorted set": lambda both, key: both.redis.zadd(key, {"x": 0}),
}


@pytest.fixture
def both(settings: Settings, redis_url: str) -> Iterator[Pipeline]:
    """Two boards of one group with two seasons each, and a worker that runs.

    One is counted densely; two members are hidden.
    """
    settings = msgspec.structs.replace(settings, redis_url=redis_url, heartbeat_ms=10)
    with pipeline(settings, groups=1) as made:
        for board in (BUSY, STILL):
            made.client.create_board(board, seasons=["all", "year"], dense=board == STILL)
            made.submit(board, SCORES | HIDDEN)
        for member in HIDDEN:
            made.client.hide_member(member, actor="test", reason="a test", timeout_s=0)
        with running_worker(settings):
            wait_until(partial(agree, made), "both stores agree")
            yield made


def keys_of(both: Pipeline) -> list[str]:
    """The names of all keys, with the generation's left open."""
    generation = both.generation()
    assert generation is not None
    keys = sorted(key.decode() for key in both.redis.scan_iter())
    keys = [key for key in keys if key != boards_key(both.settings.prefix)]  # no part of a copy
    rankings = both.rankings()
    assert len(keys) == 4 + 2 * len(rankings) + len(both.dense(rankings)), (
        "pointer, meta, counts, members; two of each ranking, and one more where it is dense"
    )
    return [key.replace(generation, "*") for key in keys]


def harm_each_key(both: Pipeline, harm: Callable[[str], object]) -> None:
    """Harm one key after another; each time the truth is told, and Redis is whole again."""
    truth = {board: dict(SCORES) for board in (BUSY, STILL)}
    for name in keys_of(both):
        generation = both.generation()
        assert generation is not None
        harm(name.replace("*", generation))
        assert_truth(both, truth)

        both.submit(BUSY, {"m1": 1})
        truth[BUSY]["m1"] += 1
        wait_until(partial(agree, both), f"both stores agree after {name}")
        for board, scores in truth.items():
            page = wait_until(partial(projected, both, board), f"{board} from Redis")
            assert {e.member: int(e.score) for e in page.entries} == scores
        dense = wait_until(partial(projected, both, STILL, numbering="dense"), "dense places")
        assert [e.rank for e in dense.entries] == [1, 2, 3, 4, 5], "its scores are all different"


def assert_truth(both: Pipeline, truth: dict[str, dict[str, int]]) -> None:
    """Whoever answers, the answer is true: nothing is written just now."""
    for board, scores in truth.items():
        for season in (None, both.client.season(board).label):
            page = both.client.top(board, season, member="m3")
            assert {e.member: int(e.score) for e in page.entries} == scores
            assert page.places[0].score == str(scores["m3"])
            dense = both.client.top(board, season, numbering="dense")
            different = sorted(set(scores.values()), reverse=True)
            assert [different[e.rank - 1] for e in dense.entries] == sorted(
                scores.values(), reverse=True
            )


def agree(both: Pipeline) -> bool:
    try:
        return not differences(both)
    except (redis.ResponseError, ValueError, struct.error):
        return False  # a key of another type, or a name that is none


def projected(both: Pipeline, board: str, numbering: str = "competition") -> object:
    page = both.client.top(board, numbering=numbering)
    return page if page.freshness.source is Source.PROJECTION else None


def test_a_key_that_is_deleted_is_noticed_and_made_again(both: Pipeline) -> None:
    harm_each_key(both, both.redis.delete)


@pytest.mark.parametrize("kind", WRONG_TYPES)
def test_a_key_of_another_type_is_noticed_and_made_again(both: Pipeline, kind: str) -> None:
    def garble(key: str) -> None:
        both.redis.delete(key)
        WRONG_TYPES[kind](both, key)

    harm_each_key(both, garble)

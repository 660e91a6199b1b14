"""A rebuild that Redis has no memory for harms nothing: it isn't begun, or given up."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.conftest import StartRedis
from tests.projection.pipeline import Pipeline, pipeline
from tests.rebuild.stages import ask, carry_out, generations, state, step_until
from truerank.model import Source
from truerank.settings import Settings

SCORES = {f"member number {i}": i for i in range(2000)}
PIECES: Any = {"scan_rows_max": 500, "call_rows_max": 100}


@pytest.fixture
def alone(settings: Settings, start_redis: StartRedis) -> Iterator[Pipeline]:
    """A pipeline on a Redis of its own, whose memory can be limited; a copy of 2,000 is in it."""
    url, _ = start_redis()
    with pipeline(msgspec.structs.replace(settings, redis_url=url), groups=1) as made:
        made.client.create_board("b", seasons=["all"])
        made.submit("b", SCORES)
        made.settle(made.projector(**PIECES))
        yield made


def limit(pipeline: Pipeline, beyond_bytes: int) -> None:
    """Let Redis use so much more than it does now."""
    info: Any = pipeline.redis.info("memory")
    pipeline.redis.config_set("maxmemory", info["used_memory"] + beyond_bytes)


def test_a_rebuild_is_refused_where_one_more_copy_would_not_fit(alone: Pipeline) -> None:
    before = alone.generation()
    limit(alone, 100_000)

    done = carry_out(alone, alone.projector(**PIECES), ask(alone))

    assert (done.state, done.code, done.tries) == ("failed", "headroom_missing", 0)
    assert "maxmemory" in str(done.message)
    assert alone.generation() == before


def test_a_rebuild_begins_where_one_more_copy_fits(alone: Pipeline) -> None:
    limit(alone, 3_000_000)

    done = carry_out(alone, alone.projector(**PIECES), ask(alone, keep_ms=0))

    assert done.state == "switched"


def test_a_rebuild_that_runs_out_of_memory_is_given_up_and_the_live_copy_untouched(
    alone: Pipeline,
) -> None:
    before = alone.generation()
    projector = alone.projector(**PIECES)
    request = ask(alone)
    step_until(projector, lambda: state(alone, request).rows > 0, "some rows are in")

    limit(alone, -1)
    done = carry_out(alone, projector, request)

    assert (done.state, done.code) == ("failed", "memory_short")
    assert (generations(alone, "warming"), alone.generation()) == ([], before)
    alone.redis.config_set("maxmemory", 0)
    alone.submit("b", {"late": 5})
    alone.settle(projector)


def test_a_first_copy_that_does_not_fit_is_tried_again_when_there_is_room(alone: Pipeline) -> None:
    alone.redis.flushdb()
    limit(alone, 50_000)
    projector = alone.projector(**PIECES)
    for _ in range(5):
        projector.step()
    assert alone.generation() is None
    assert alone.client.top("b").freshness.source is Source.DATABASE

    alone.redis.config_set("maxmemory", 0)

    alone.settle(projector)

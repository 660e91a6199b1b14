"""A server that isn't the one it was: the worker finds out, and trusts it with nothing."""

import msgspec
import pytest

from tests.conftest import StartRedis
from tests.projection.pipeline import Pipeline, submit_and_wait, wait_until, working
from truerank.errors import DatabaseUnavailable, ProjectionUnsafe, SourceSuperseded
from truerank.model import Source
from truerank.projection.link import Link
from truerank.telemetry.meter import Meter


class OtherServerLink(Link):
    """Says that it reached another server, as after a failover that cut no connection."""

    run_id: str | None = None

    def clock(self) -> tuple[int, str | None]:
        now_us, run_id = super().clock()
        return now_us, self.run_id or run_id


class Failures(Meter):
    """The codes of what the worker could not do."""

    def __init__(self) -> None:
        self.codes: list[str] = []

    def failed(self, part: str, code: str) -> None:
        assert part == "worker"
        self.codes.append(code)


def set_source(single: Pipeline, text: str) -> None:
    generation = single.generation()
    assert generation is not None
    single.redis.hset(single.keys().generation(generation).meta, "source", text)


def test_of_two_primaries_the_worker_of_the_older_one_leaves_everything_as_it_is(
    single: Pipeline,
) -> None:
    """The copy is even of another epoch, which else would be thrown away."""
    single.submit("b", {"ann": 1})
    single.settle(single.projector())
    cluster, timeline = single.meta()["source"].split(":")
    set_source(single, f"{cluster}:{int(timeline) + 1}")
    generation = single.generation()
    assert generation is not None
    single.redis.hset(single.keys().generation(generation).meta, "epoch", "0" * 32)
    before = single.meta()

    superseded = single.projector()
    with pytest.raises(SourceSuperseded, match="two primaries"):
        superseded.step()

    assert single.meta() == before
    assert single.generation() == generation


@pytest.mark.parametrize("source", ["1234567890:99", "garbled", "", ":", "x:y"])
def test_another_cluster_or_nonsense_supersedes_nobody(single: Pipeline, source: str) -> None:
    single.submit("b", {"ann": 1})
    single.settle(single.projector())
    own = single.meta()["source"]
    set_source(single, source)

    single.settle(single.projector())

    assert single.meta()["source"] == own


def test_a_superseded_worker_goes_on_by_itself_once_it_is_the_newer_one(single: Pipeline) -> None:
    settings = msgspec.structs.replace(single.settings, tick_idle_ms=5)
    single.settle(single.projector())
    single.free_leases()
    own = single.meta()["source"]
    set_source(single, own.split(":")[0] + ":99")
    meter = Failures()

    with working(settings, meter=meter):
        wait_until(lambda: SourceSuperseded.code in meter.codes, "an alarm")
        set_source(single, own)
        submit_and_wait(single, ["b"])
    assert set(meter.codes) <= {SourceSuperseded.code, DatabaseUnavailable.code}


def test_a_server_that_comes_to_evict_is_left_alone_until_it_does_not(
    single: Pipeline, start_redis: StartRedis
) -> None:
    url, _ = start_redis()
    single.settings = msgspec.structs.replace(
        single.settings, redis_url=url, heartbeat_ms=20, tick_idle_ms=5
    )
    link = Link(url, timeout_ms=5000)
    meter = Failures()
    with working(single.settings, meter=meter):
        wait_until(lambda: link.command("KEYS", "*:live"), "a live copy")
        link.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        wait_until(lambda: ProjectionUnsafe.code in meter.codes, "an alarm")
        single.submit("b", {"ann": 1})
        seen = len(meter.codes)
        wait_until(lambda: len(meter.codes) > seen + 2, "more alarms")
        assert link.command("KEYS", "*:z") == []

        link.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
        wait_until(lambda: link.command("KEYS", "*:z"), "the score")
    link.close()


def test_another_server_is_not_trusted_with_what_the_one_before_knew(single: Pipeline) -> None:
    """It may lack what was written last: here the mark of a ranking that is left out."""
    link: OtherServerLink = single.link(OtherServerLink)
    projector = single.projector(link)
    single.submit("b", {"ann": 1})
    single.settle(projector)
    (number,) = single.rankings()
    single.conn.execute(
        """INSERT INTO truerank.parked_standing (ranking, grp, reason, retry_at)
           VALUES (%s, 0, 'made up', clock_timestamp() + interval '1 hour')""",
        (number,),
    )
    heir = single.projector(link)
    heir.step()
    assert single.client.top("b").freshness.source is Source.DATABASE
    generation = single.generation()
    assert generation is not None
    counts = single.keys().generation(generation).counts
    single.redis.hset(counts, str(number), "1 0 0")

    link.run_id = "another"

    def damaged() -> bool:
        heir.step()
        return bool(single.redis.hget(counts, str(number)) == b"damaged")

    wait_until(damaged, "a look at what the other server holds")
    assert single.client.top("b").freshness.source is Source.DATABASE


def test_a_worker_alarms_at_once_where_the_server_after_a_failover_may_evict(
    single: Pipeline, start_redis: StartRedis
) -> None:
    url, _ = start_redis()
    link = OtherServerLink(url, timeout_ms=5000)
    projector = single.projector(link)
    projector.step()
    link.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    assert projector.step() is False, "no heartbeat is due for an hour"

    link.run_id = "another"
    with pytest.raises(ProjectionUnsafe, match="allkeys-lru"):
        wait_until(projector.step, "nothing")
    link.close()

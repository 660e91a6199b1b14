"""Copies that nobody reads any more are removed, a slice at a time, whoever began with it."""

from collections.abc import Iterator, Sequence
from typing import Any

from tests.projection.pipeline import Pipeline
from truerank.projection.link import Link
from truerank.projection.projector import Projector

NAME = "0" * 32


class CountingLink(Link):
    """The longest batch of commands, and how often it looked among all keys."""

    longest = 0
    looks = 0

    def try_commands(self, commands: Sequence[Sequence[str | bytes | int]]) -> list[Any]:
        self.longest = max(self.longest, len(commands))
        self.looks += sum(words[0] == "SCAN" for words in commands)
        return super().try_commands(commands)


def list_copy(single: Pipeline, state: str) -> None:
    single.conn.execute(
        """INSERT INTO truerank.generation (id, grp, epoch, state, cursor_tick, cursor_snapshot)
           SELECT %s, 0, s.epoch, %s, 1, pg_current_snapshot() FROM truerank.setting AS s""",
        (NAME, state),
    )


def test_a_large_copy_is_retired_in_slices(single: Pipeline) -> None:
    link: CountingLink = single.link(CountingLink)
    projector = single.projector(link, heartbeat_ms=1)
    single.submit("b", {"ann": 1})
    single.settle(projector)
    stem = single.keys().generation(NAME)
    rankings = range(1 << 40, (1 << 40) + 3000)
    with single.redis.pipeline(transaction=False) as pipe:
        for ranking in rankings:
            pipe.zadd(stem.places(ranking), {"x": 0})
            pipe.hset(stem.shown(ranking), "x", "y")
            pipe.hset(stem.counts, str(ranking), "1 0 0")
        pipe.hset(stem.meta, "epoch", "of before")
        pipe.execute()
    list_copy(single, "warming")
    link.longest = 0

    heir = single.projector(link, heartbeat_ms=1)
    heir.step()
    assert single.redis.exists(stem.meta) == 0
    left: Any = single.redis.hlen(stem.counts)
    assert left > 1000, "not in one go"
    for _ in range(20):
        before: Any = single.redis.hlen(stem.counts)
        heir.step()
        now: Any = single.redis.hlen(stem.counts)
        assert before - now <= 600

    single.settle(heir)
    assert link.longest <= 1100


def test_a_copy_half_retired_is_finished_by_the_next_worker(single: Pipeline) -> None:
    single.submit("b", {"ann": 1})
    single.settle(single.projector())
    stem = single.keys().generation(NAME)
    for ranking in range(5):
        single.redis.zadd(stem.places(ranking), {"x": 0})
        single.redis.hset(stem.counts, str(ranking), "1 0 0")
    list_copy(single, "retired")

    single.settle(single.projector())


def looks_for_a_copy(single: Pipeline, heir: Projector, link: CountingLink) -> Iterator[int]:
    """How often each step looks among all keys for a copy that lost its counts, until it's gone."""
    stem = single.keys().generation(NAME)
    single.redis.hset(stem.meta, mapping={"epoch": "of before", "rankings": 1})
    single.redis.zadd(stem.places(1 << 40), {"x": 0})
    list_copy(single, "warming")
    heir.interrupt()
    while True:
        link.looks = 0
        heir.step()
        if link.looks == 0:
            break
        yield link.looks
    assert single.redis.exists(stem.places(1 << 40)) == 0


def test_a_copy_without_its_counts_is_looked_for_among_all_keys_in_slices(
    single: Pipeline,
) -> None:
    link: CountingLink = single.link(CountingLink)
    heir = single.projector(link)
    single.settle(heir)
    foreign = {f"foreign:{n}": b"" for n in range(30_000)}
    single.redis.mset(foreign)

    looks = list(looks_for_a_copy(single, heir, link))

    assert max(looks) <= 2 * 20, "where it is given up, and once more in the same step"
    assert len(looks) > 1, "not in one go"
    single.redis.delete(*foreign)
    single.settle(heir)


def test_a_look_among_all_keys_begins_anew_where_redis_may_be_another_server(
    single: Pipeline,
) -> None:
    link: CountingLink = single.link(CountingLink)
    heir = single.projector(link)
    single.settle(heir)
    single.redis.mset({f"foreign:{n}": b"" for n in range(30_000)})
    all_looks = sum(looks_for_a_copy(single, heir, link))
    single.conn.execute("DELETE FROM truerank.generation WHERE state = 'retired'")

    looks = looks_for_a_copy(single, heir, link)
    done = next(looks)
    heir.interrupt()

    assert 0 < done < all_looks
    assert sum(looks) > all_looks - done

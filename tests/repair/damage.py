"""Ways to damage a ranking in Redis by hand, past the scripts that keep it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.projection.pipeline import Pipeline
from truerank.projection.keys import GenerationKeys
from truerank.projection.link import Link
from truerank.repair.findings import Report
from truerank.repair.points import Rules
from truerank.repair.reconcile import Reconciliation


@dataclass(frozen=True)
class Target:
    """One member of a ranking in the live copy of group 0, as it stands there."""

    pipeline: Pipeline
    ranking: int
    member: str

    @property
    def redis(self) -> Any:
        return self.pipeline.redis

    @property
    def keys(self) -> GenerationKeys:
        return self.pipeline.keys().generation(self.pipeline.generation() or "")

    @property
    def places(self) -> str:
        return self.keys.places(self.ranking)

    @property
    def shown(self) -> str:
        return self.keys.shown(self.ranking)

    @property
    def entry(self) -> bytes:
        entry: bytes = self.redis.hget(self.shown, self.member)
        return entry

    @property
    def place(self) -> bytes:
        return self.entry[8:] + self.member.encode()

    @property
    def other_key(self) -> bytes:
        """A sort key that is nobody's, and comes before all others."""
        return bytes(len(self.entry) - 8)

    def set_entry(self, version: int, key: bytes) -> None:
        self.redis.hset(self.shown, self.member, version.to_bytes(8) + key)

    @property
    def version(self) -> int:
        return int.from_bytes(self.entry[:8])


def all_of_it(target: Target) -> None:
    target.redis.zrem(target.places, target.place)
    target.redis.hdel(target.shown, target.member)


def its_entry(target: Target) -> None:
    target.redis.hdel(target.shown, target.member)


def its_place(target: Target) -> None:
    target.redis.zrem(target.places, target.place)


def its_score(target: Target) -> None:
    """Both are changed by hand, and agree."""
    target.redis.zrem(target.places, target.place)
    target.set_entry(target.version, target.other_key)
    target.redis.zadd(target.places, {target.place: 0})


def where_it_stands(target: Target) -> None:
    target.redis.zrem(target.places, target.place)
    target.redis.zadd(target.places, {target.other_key + target.member.encode(): 0})


def to_an_older_one(target: Target) -> None:
    target.redis.zrem(target.places, target.place)
    target.set_entry(target.version - 1, target.other_key)
    target.redis.zadd(target.places, {target.place: 0})


def to_one_that_went(target: Target) -> None:
    target.redis.zrem(target.places, target.place)
    target.set_entry(target.version - 1, b"")


def to_a_newer_one(target: Target) -> None:
    target.redis.zrem(target.places, target.place)
    target.set_entry(target.version + 1000, target.other_key)
    target.redis.zadd(target.places, {target.place: 0})


def a_second_place(target: Target) -> None:
    target.redis.zadd(target.places, {target.other_key + target.member.encode(): 0})


def a_second_place_at_the_end(target: Target) -> None:
    last = b"\xff" * len(target.other_key)
    target.redis.zadd(target.places, {last + target.member.encode(): 0})


def out_of_order(target: Target) -> None:
    target.redis.zincrby(target.places, 5, target.place)


def out_of_order_before_all(target: Target) -> None:
    target.redis.zincrby(target.places, -5, target.place)


def its_bytes(target: Target) -> None:
    target.redis.hset(target.shown, target.member, b"short")


def a_member_more(target: Target) -> None:
    entry = (7).to_bytes(8) + target.entry[8:]
    target.redis.hset(target.shown, "nobody", entry)
    target.redis.zadd(target.places, {entry[8:] + b"nobody": 0})


def a_place_more(target: Target) -> None:
    target.redis.zadd(target.places, {target.entry[8:] + b"nobody": 0})


def an_entry_more(target: Target) -> None:
    target.redis.hset(target.shown, "nobody", (7).to_bytes(8) + target.other_key)


def a_place_of_no_text(target: Target) -> None:
    target.redis.zadd(target.places, {target.entry[8:] + b"\xff\xfe": 0})


def a_place_that_is_short(target: Target) -> None:
    target.redis.zadd(target.places, {target.entry[8:12]: 0})


def the_member_of_its_place(target: Target) -> None:
    target.redis.zrem(target.places, target.place)
    target.redis.zadd(target.places, {target.place + b"\xff": 0})


def the_counts(target: Target) -> None:
    target.redis.hset(target.keys.counts, str(target.ranking), "99 0 0")


def the_counts_to_nonsense(target: Target) -> None:
    target.redis.hset(target.keys.counts, str(target.ranking), "many")


def the_counts_away(target: Target) -> None:
    target.redis.hdel(target.keys.counts, str(target.ranking))


def how_many_rankings(target: Target) -> None:
    target.redis.hincrby(target.keys.meta, "rankings", 1)


def how_many_states(target: Target) -> None:
    target.redis.hincrby(target.keys.meta, "members", 1)


Damage = Callable[[Target], None]
# What is done, and how the report names it: standings by kind, and other things by what is wrong.
DAMAGES: dict[Damage, tuple[dict[str, int], set[str]]] = {
    all_of_it: ({"missing": 1}, set()),
    its_entry: ({"corrupt": 1}, set()),
    its_place: ({"corrupt": 1}, set()),
    its_score: ({"corrupt": 1}, set()),
    where_it_stands: ({"corrupt": 1}, set()),
    to_an_older_one: ({"stale": 1}, set()),
    to_one_that_went: ({"stale": 1}, set()),
    to_a_newer_one: ({"ahead": 1}, set()),
    a_second_place: ({"corrupt": 1}, set()),
    a_second_place_at_the_end: ({"corrupt": 1}, set()),
    out_of_order: ({"corrupt": 1}, set()),
    out_of_order_before_all: ({"corrupt": 1}, set()),
    its_bytes: ({"corrupt": 1}, set()),
    a_member_more: ({"ghost": 1}, set()),
    a_place_more: ({"ghost": 1}, set()),
    an_entry_more: ({"ghost": 1}, set()),
    a_place_of_no_text: ({"ghost": 1}, set()),
    a_place_that_is_short: ({"ghost": 1}, set()),
    the_member_of_its_place: ({"corrupt": 1, "ghost": 1}, set()),
    the_counts: ({}, {"counts"}),
    the_counts_to_nonsense: ({}, {"counts"}),
    the_counts_away: ({}, {"counts", "number of rankings"}),
    how_many_rankings: ({}, {"number of rankings"}),
    how_many_states: ({}, {"number of states"}),
}


def reconciled(pipeline: Pipeline, link: Link | None = None, **rules: Any) -> Report:
    """What a run over all groups finds, in small chunks, with rules of its own."""
    report = Report()
    run = Reconciliation(
        pipeline.worker_connection(),
        link or pipeline.link(),
        pipeline.settings.prefix,
        Rules(**{"wait_s": 0.2, "rows_max": 2, **rules}),
        report,
    )
    for group in range(run.groups()):
        for _ in run.group(group):
            pass
    for _ in run.strays():
        pass
    return report

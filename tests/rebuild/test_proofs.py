"""Readers are let to a copy only once all of it is what the source says."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.projection.pipeline import Pipeline
from tests.rebuild.stages import ask, carry_out, generations, state, step_until
from truerank.projection.keys import GenerationKeys
from truerank.projection.proof import Expected, Found, judge

SCORES = {f"m{i}": i for i in range(11)}
RANKING = 1 << 36
KEY = b"k" * 24


def all_time(single: Pipeline) -> int:
    ((ranking,),) = single.conn.execute("SELECT DISTINCT ranking FROM truerank.standing").fetchall()
    return int(ranking)


def changed_score(single: Pipeline, keys: GenerationKeys, ranking: int) -> None:
    """Another score for one member, at its own version, as if that had been in the source."""
    shown: Any = single.redis.hget(keys.shown(ranking), "m3")
    other = shown[:-17] + bytes([shown[-17] ^ 1]) + shown[-16:]
    single.redis.hset(keys.shown(ranking), "m3", other)
    single.redis.zrem(keys.places(ranking), shown[8:] + b"m3")
    single.redis.zadd(keys.places(ranking), {other[8:] + b"m3": 0})


def older_version(single: Pipeline, keys: GenerationKeys, ranking: int) -> None:
    shown: Any = single.redis.hget(keys.shown(ranking), "m3")
    single.redis.hset(keys.shown(ranking), "m3", bytes(8) + shown[8:])


def lost_member(single: Pipeline, keys: GenerationKeys, ranking: int) -> None:
    shown: Any = single.redis.hget(keys.shown(ranking), "m3")
    single.redis.hdel(keys.shown(ranking), "m3")
    single.redis.zrem(keys.places(ranking), shown[8:] + b"m3")
    single.redis.hset(keys.counts, str(ranking), "10 0 0")


def invented_member(single: Pipeline, keys: GenerationKeys, ranking: int) -> None:
    shown: Any = single.redis.hget(keys.shown(ranking), "m3")
    single.redis.hset(keys.shown(ranking), "zoe", shown)
    single.redis.zadd(keys.places(ranking), {shown[8:] + b"zoe": 0})
    single.redis.hset(keys.counts, str(ranking), "12 0 0")


def invented_ranking(single: Pipeline, keys: GenerationKeys, ranking: int) -> None:
    shown: Any = single.redis.hget(keys.shown(ranking), "m3")
    single.redis.hset(keys.shown(ranking + 5), "zoe", shown)
    single.redis.zadd(keys.places(ranking + 5), {shown[8:] + b"zoe": 0})
    single.redis.hset(keys.counts, str(ranking + 5), "1 0 0")
    single.redis.hincrby(keys.meta, "rankings", 1)


def lost_place(single: Pipeline, keys: GenerationKeys, ranking: int) -> None:
    shown: Any = single.redis.hget(keys.shown(ranking), "m3")
    single.redis.zrem(keys.places(ranking), shown[8:] + b"m3")
    single.redis.hset(keys.counts, str(ranking), "10 0 1")


def places_of_another_type(single: Pipeline, keys: GenerationKeys, ranking: int) -> None:
    single.redis.set(keys.places(ranking), "x")


def entries_of_another_type(single: Pipeline, keys: GenerationKeys, ranking: int) -> None:
    single.redis.set(keys.shown(ranking), "x")


def count_of_no_ranking(single: Pipeline, keys: GenerationKeys, _: int) -> None:
    single.redis.hset(keys.counts, "x", "1 0 0")
    single.redis.hincrby(keys.meta, "rankings", 1)


DAMAGES = [
    changed_score, older_version, lost_member, invented_member, invented_ranking, lost_place,
    places_of_another_type, entries_of_another_type, count_of_no_ranking,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_copy_that_is_not_what_the_source_says_is_never_read_and_begun_anew(
    single: Pipeline, damage: Callable[[Pipeline, GenerationKeys, int], None]
) -> None:
    single.submit("b", SCORES)
    projector = single.projector()
    single.settle(projector)
    before = single.generation()
    request = ask(single, keep_ms=0)
    step_until(projector, lambda: state(single, request).rows == 11, "all rows are in")
    (broken,) = generations(single, "warming")

    damage(single, single.keys().generation(broken), all_time(single))
    done = carry_out(single, projector, request)

    assert (done.state, done.tries) == ("switched", 2)
    assert single.generation() not in {before, broken}
    single.settle(projector)


def test_a_copy_that_does_not_know_who_is_hidden_is_never_read(single: Pipeline) -> None:
    """Whoever has no standing yet would be seen with the first one."""
    single.submit("b", SCORES)
    single.client.hide_member("zoe", actor="test", reason="test", timeout_s=0.0)
    projector = single.projector()
    single.settle(projector)
    request = ask(single, keep_ms=0)
    step_until(projector, lambda: state(single, request).rows == 12, "all rows are in")
    (broken,) = generations(single, "warming")
    keys = single.keys().generation(broken)
    single.redis.hdel(keys.members, "zoe")
    single.redis.hset(keys.meta, "members", 0)

    done = carry_out(single, projector, request)

    assert (done.state, done.tries) == ("switched", 2)
    assert single.generation() != broken
    single.settle(projector)


def test_a_rebuild_whose_copies_are_always_wrong_ends_after_three(single: Pipeline) -> None:
    single.submit("b", SCORES)
    projector = single.projector()
    single.settle(projector)
    before = single.generation()
    request = ask(single)
    broken = set[str]()

    while not state(single, request).ended:
        for name in generations(single, "warming"):
            if name not in broken and state(single, request).rows == 11:
                older_version(single, single.keys().generation(name), all_time(single))
                broken.add(name)
        projector.step()

    done = state(single, request)
    assert (done.state, done.code, done.tries) == ("failed", "rebuild_check_failed", 3)
    assert "of a member the source has version" in str(done.message)
    assert "m3" not in str(done.message), "it is kept, and goes into the log"
    assert single.generation() == before
    single.settle(projector)


def test_hidden_members_and_dense_places_are_right_in_a_proven_copy(single: Pipeline) -> None:
    single.client.update_board("b", {"dense": True}, actor="test", reason="test")
    single.submit("b", SCORES | {"n1": 3, "n2": 3})
    single.client.hide_member("m3", actor="test", reason="test", timeout_s=0)
    projector = single.projector()
    single.settle(projector)

    done = carry_out(single, projector, ask(single, keep_ms=0))

    assert done.state == "switched"
    single.settle(projector)


def test_wrong_prefixes_of_a_dense_ranking_are_found(single: Pipeline) -> None:
    single.client.update_board("b", {"dense": True}, actor="test", reason="test")
    single.submit("b", SCORES)
    projector = single.projector()
    single.settle(projector)
    request = ask(single, keep_ms=0)
    step_until(projector, lambda: state(single, request).rows == 11, "all rows are in")
    (broken,) = generations(single, "warming")
    key = single.keys().generation(broken).prefixes(all_time(single))
    first: Any = single.redis.zrange(key, 0, 0)
    single.redis.zrem(key, *first)
    single.redis.zadd(key, {first[0] + b"\0": 0})

    done = carry_out(single, projector, request)

    assert (done.state, done.tries) == ("switched", 2)


def version(number: int) -> bytes:
    return number.to_bytes(8) + KEY


def at(*places: bytes) -> frozenset[bytes]:
    return frozenset(places)


@pytest.mark.parametrize(
    ("before", "found", "after", "right"),
    [
        (version(2), version(2), version(2), True),
        (version(2), version(1), version(2), False),
        (version(2), version(3), version(2), False),
        (version(2), version(3), version(4), True),
        (version(2), version(1), version(4), None),
        (None, None, None, True),
        (None, bytes(8), None, True),
        (None, version(1), None, False),
        (version(2), bytes(8), None, None),
    ],
)
def test_an_entry_is_judged_by_the_source_before_and_after(
    before: bytes | None,
    found: bytes | None,
    after: bytes | None,
    right: bool | None,  # noqa: FBT001 - a value of the table
) -> None:
    places = at(KEY + b"ann") if found and len(found) > 8 else at()

    judged = judge(b"ann", Expected(before), Found(found, places), Expected(after))

    assert judged is right


def test_a_withheld_member_takes_no_place_and_another_exactly_one() -> None:
    shown, hidden = Expected(version(2)), Expected(version(2), withheld=True)
    place, other = KEY + b"ann", b"x" * 24 + b"ann"

    assert judge(b"ann", hidden, Found(version(2), at()), hidden) is True
    assert judge(b"ann", hidden, Found(version(2), at(place)), hidden) is False
    assert judge(b"ann", shown, Found(version(2), at()), shown) is False
    assert judge(b"ann", shown, Found(version(2), at(place, other)), shown) is False

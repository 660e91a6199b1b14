"""A rebuild that is asked for fills a new copy beside the live one, and leads back as well."""

import random
from typing import Any

import pytest

from tests.projection.pipeline import Pipeline, differences
from tests.rebuild.stages import ask, carry_out, expire, generations, state, step_until
from truerank.errors import NoWayBack, RebuildError

SCORES = {f"m{i}": i for i in range(23)}


def test_a_rebuild_ends_in_a_new_copy_that_is_the_source(single: Pipeline) -> None:
    single.submit("b", SCORES)
    projector = single.projector()
    single.settle(projector)
    before = single.generation()

    done = carry_out(single, projector, ask(single, keep_ms=0))

    assert (done.state, done.code, done.tries) == ("switched", None, 1)
    assert single.generation() not in {None, before}
    single.settle(projector)


def test_what_is_asked_for_twice_is_done_once(single: Pipeline) -> None:
    projector = single.projector()
    single.settle(projector)

    assert ask(single) == ask(single)


def test_writes_between_all_steps_of_a_rebuild_are_in_the_new_copy(single: Pipeline) -> None:
    single.submit("b", SCORES)
    projector = single.projector()
    single.settle(projector)
    request = ask(single, keep_ms=0)
    turn = 0

    while not state(single, request).ended:
        single.submit("b", {f"m{turn % 23}": 1, f"n{turn}": turn, "m7": 1})
        projector.step()
        turn += 1

    assert state(single, request).state == "switched"
    single.settle(projector)


@pytest.mark.parametrize("seed", range(3))
def test_members_hidden_shown_and_deleted_meanwhile_are_right_in_the_new_copy(
    single: Pipeline, seed: int
) -> None:
    rng = random.Random(seed)
    single.submit("b", SCORES)
    projector = single.projector()
    single.settle(projector)
    request = ask(single, keep_ms=0)
    by: dict[str, Any] = {"actor": "test", "reason": "test", "timeout_s": 0.0}
    client = single.client

    while not state(single, request).ended:
        member = f"m{rng.randrange(26)}"  # some of whom nobody knows yet
        rng.choice([client.hide_member, client.show_member, client.delete_member])(member, **by)
        single.submit("b", {f"m{rng.randrange(26)}": rng.randrange(5)})
        projector.step()

    assert (state(single, request).state, state(single, request).tries) == ("switched", 1)
    single.settle(projector)


def test_the_copy_before_follows_along_until_its_time_is_over(single: Pipeline) -> None:
    single.submit("b", SCORES)
    projector = single.projector()
    single.settle(projector)
    before = single.generation()

    carry_out(single, projector, ask(single))
    assert generations(single, "former") == [before]

    expire(single)
    single.settle(projector)
    assert generations(single, "former") == []


def test_readers_go_back_to_the_copy_before_and_miss_nothing(single: Pipeline) -> None:
    single.submit("b", SCORES)
    projector = single.projector()
    single.settle(projector)
    before = single.generation()
    carry_out(single, projector, ask(single))
    (receipt,) = single.submit("b", {"late": 5})

    done = carry_out(single, projector, ask(single, back=True))

    assert (done.state, single.generation()) == ("switched", before)
    assert receipt.token is not None
    single.client.wait_visible(receipt.token, ["b"])
    page = single.client.place("b", "late", source="projection")
    assert page.places[0].score == "5"
    single.settle(projector)


def test_a_new_rebuild_ends_the_way_back_from_the_last(single: Pipeline) -> None:
    single.submit("b", SCORES)
    projector = single.projector()
    single.settle(projector)
    carry_out(single, projector, ask(single))
    live = single.generation()

    request = ask(single)
    step_until(projector, lambda: generations(single, "warming"), "a copy is begun")

    assert generations(single, "former") == []
    carry_out(single, projector, request)
    assert generations(single, "former") == [live]


def test_there_is_no_way_back_after_its_time_nor_without_one(single: Pipeline) -> None:
    projector = single.projector()
    single.settle(projector)
    carry_out(single, projector, ask(single, keep_ms=0))

    with pytest.raises(NoWayBack):
        ask(single, back=True)


def test_the_way_back_and_a_rebuild_are_not_asked_for_at_once(single: Pipeline) -> None:
    projector = single.projector()
    single.settle(projector)
    carry_out(single, projector, ask(single))
    ask(single)

    with pytest.raises(RebuildError) as refused:
        ask(single, back=True)

    assert refused.value.reason == "rebuild_open"


def test_another_worker_goes_on_where_the_first_was(single: Pipeline) -> None:
    single.submit("b", SCORES)
    first = single.projector()
    single.settle(first)
    request = ask(single, keep_ms=0)
    step_until(first, lambda: state(single, request).rows > 4, "some rows are in")
    (filled,) = generations(single, "warming")

    second = single.projector()
    carry_out(single, second, request)

    assert single.generation() == filled
    single.settle(second)


def test_another_worker_knows_the_way_back(single: Pipeline) -> None:
    single.submit("b", SCORES)
    first = single.projector()
    single.settle(first)
    before = single.generation()
    carry_out(single, first, ask(single))
    second = single.projector()
    single.submit("b", {"m1": 4})

    carry_out(single, second, ask(single, back=True))

    assert single.generation() == before
    single.settle(second)


def test_a_copy_before_serves_where_the_live_one_is_lost(single: Pipeline) -> None:
    single.submit("b", SCORES)
    projector = single.projector()
    single.settle(projector)
    before = single.generation()
    carry_out(single, projector, ask(single))
    live = single.generation()
    assert live is not None
    single.redis.delete(single.keys().generation(live).meta)

    second = single.projector()
    step_until(second, lambda: single.generation() == before, "readers read the copy before")

    single.settle(second)


def test_on_a_schedule_copies_are_replaced_when_they_are_old(single: Pipeline) -> None:
    single.submit("b", SCORES)
    projector = single.projector(rebuild_every_s=3600, rebuild_keep_ms=0)
    single.settle(projector)
    first = single.generation()
    for _ in range(5):
        projector.step()
    assert single.generation() == first

    single.conn.execute("UPDATE truerank.generation SET made_at = made_at - interval '2 hours'")
    step_until(projector, lambda: single.generation() != first, "the old copy is replaced")

    single.settle(projector)


def test_a_request_survives_that_redis_loses_everything(single: Pipeline) -> None:
    single.submit("b", SCORES)
    projector = single.projector()
    single.settle(projector)
    request = ask(single, keep_ms=0)
    step_until(projector, lambda: state(single, request).rows > 0, "some rows are in")

    single.redis.flushdb()
    projector.interrupt()
    done = carry_out(single, projector, request)

    assert done.state == "switched"
    assert differences(single) == []

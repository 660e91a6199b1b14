"""A state commutes with every score in flight, with fills, losses and batches cut off half-way."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.members.conftest import BY
from tests.projection.pipeline import FailingLink, InterruptedLink, Pipeline, differences
from truerank.errors import ProjectionUnavailable
from truerank.model import ScoreEvent, Source
from truerank.projection.projector import Projector

SAY = "SELECT truerank.set_member_state(%s, %s, 'op', 'test')"


def shown(pipeline: Pipeline, board: str = "b") -> dict[str, str]:
    """What readers of the projection see, and of nothing else."""
    page = pipeline.client.top(board, source=Source.PROJECTION, limit=1000)
    return {entry.member: entry.score for entry in page.entries}


def say(pipeline: Pipeline, action: str, member: str, **kwargs: Any) -> None:
    getattr(pipeline.client, f"{action}_member")(member, **BY, **kwargs)


def step_on(projector: Projector) -> None:
    for _ in range(10):
        projector.step()


@pytest.mark.parametrize("action", ["hide", "show"])
@pytest.mark.parametrize("order", ["score, state", "state, score"])
@pytest.mark.parametrize("steps_between", [0, 1])
def test_a_state_and_a_score_in_flight_commute(
    single: Pipeline, action: str, order: str, steps_between: int
) -> None:
    single.submit("b", {"ann": 1, "bob": 2})
    if action == "show":
        say(single, "hide", "ann")
    projector = single.projector()
    single.settle(projector)
    score, state = single.connection(), single.connection()
    single.submit("b", {"ann": 4}, score)
    state.execute(SAY, ("ann", action))

    for name in order.split(", "):
        (score if name == "score" else state).commit()
        for _ in range(steps_between):
            projector.step()

    single.settle(projector)
    assert shown(single) == ({"bob": "2"} if action == "hide" else {"ann": "5", "bob": "2"})


@pytest.mark.parametrize("first", ["state", "score"])
def test_the_first_standing_of_a_season_that_a_ban_could_not_see_is_withheld(
    single: Pipeline, first: str
) -> None:
    single.submit("b", {"bob": 2})
    projector = single.projector()
    single.settle(projector)
    score, state = single.connection(), single.connection()
    single.submit("b", {"ann": 4}, score)
    state.execute(SAY, ("ann", "ban"))

    for conn in (state, score) if first == "state" else (score, state):
        conn.commit()
        projector.step()

    single.settle(projector)
    assert shown(single) == {"bob": "2"}
    say(single, "unban", "ann")
    single.settle(projector)
    assert shown(single) == {"ann": "4", "bob": "2"}


@pytest.mark.parametrize("scan_rows_max", [1, 2, 3, 5])
@pytest.mark.parametrize("seen_by_the_scan", [True, False])
def test_states_that_turn_while_a_copy_is_filled_end_as_in_sql(
    single: Pipeline, scan_rows_max: int, *, seen_by_the_scan: bool
) -> None:
    single.submit("b", {f"m{i}": i for i in range(8)})
    for member in ("m0", "m4", "m7"):
        say(single, "hide", member)
    projector = single.projector(scan_rows_max=scan_rows_max)
    if seen_by_the_scan:
        projector.step()
        assert single.generation() is None

    turns = iter(["show m0", "ban m1", "show m4", "hide m4", "ban m6", "unban m6", "hide m7"])
    for turn in turns:
        action, member = turn.split()
        say(single, action, member)
        single.submit("b", {member: 100})
        projector.step()

    single.settle(projector)
    assert shown(single).keys() == {"m0", "m2", "m3", "m5", "m6"}


def test_a_scan_that_read_a_state_before_it_turned_does_not_bring_it_back(
    single: Pipeline,
) -> None:
    single.submit("b", {"ann": 1, "bob": 2})
    say(single, "hide", "ann")
    link = single.link(InterruptedLink)
    projector = single.projector(link)
    calls = 0

    def show_once() -> None:
        # The scan of this step was not yet read at the first call of a batch.
        nonlocal calls
        calls += 1
        if calls == 1:
            say(single, "show", "ann")

    link.after_batch = show_once
    single.settle(projector)
    assert shown(single) == {"ann": "1", "bob": "2"}


@pytest.mark.parametrize("executed", [True, False])
@pytest.mark.parametrize("fails_at", range(4))
def test_a_batch_cut_off_half_way_moves_every_place_in_the_end(
    single: Pipeline, fails_at: int, *, executed: bool
) -> None:
    for day in range(1, 6):
        at = f"2026-03-{day:02}T00:00:00+00:00"
        single.conn.execute(
            "SELECT truerank.submit_scores('b', %s, %s, %s, array_fill(%s::timestamptz, ARRAY[2]))",
            ([f"a{day}", f"b{day}"], ["ann", "bob"], [day, 1], at),
        )
    projector = single.projector()
    single.settle(projector)
    say(single, "hide", "ann")
    single.submit("b", {"bob": 5, "cid": 6})
    link = single.link(FailingLink)
    cut = single.projector(link, call_rows_max=2)
    cut.step()
    link.fails_at, link.executed = fails_at, executed
    say(single, "ban", "bob")
    single.submit("b", {"ann": 1, "cid": 1})

    with pytest.raises(ProjectionUnavailable):
        step_on(cut)

    single.settle(single.projector(call_rows_max=2))
    assert shown(single) == {"cid": "7"}


def test_a_batch_of_several_calls_brings_the_states_first(single: Pipeline) -> None:
    single.submit("b", {f"m{i}": i for i in range(6)})
    link = single.link(InterruptedLink)
    projector = single.projector(link, call_rows_max=1)
    single.settle(projector)
    for i in range(6):
        single.submit("b", {f"m{i}": 10})
    single.submit("b", {"new": 1})
    say(single, "hide", "new")
    seen: set[str] = set()
    link.after_batch = lambda: seen.update(shown(single))

    single.settle(projector)

    assert "new" not in seen
    assert seen == {f"m{i}" for i in range(6)}


@pytest.mark.parametrize("loss", ["everything", "pointer", "meta", "members", "one member"])
def test_after_a_loss_nobody_who_is_hidden_is_seen(single: Pipeline, loss: str) -> None:
    single.submit("b", {"ann": 3, "bob": 2, "cid": 1})
    say(single, "hide", "ann")
    say(single, "ban", "bob", board="b")
    single.settle(single.projector())
    generation = single.generation()
    assert generation is not None
    copy = single.keys().generation(generation)
    match loss:
        case "everything":
            single.redis.flushdb()
        case "pointer":
            single.redis.delete(single.keys().pointer)
        case "meta":
            single.redis.delete(copy.meta)
        case "members":
            single.redis.delete(copy.members)
        case _:
            single.redis.hdel(copy.members, "ann")

    single.submit("b", {"ann": 1, "bob": 1, "cid": 1})
    projector = single.projector()
    for _ in range(50):
        assert {e.member for e in single.client.top("b").entries} == {"cid"}
        projector.step()

    single.settle(projector)
    assert shown(single) == {"cid": "2"}


def test_a_copy_whose_members_were_lost_is_not_read(single: Pipeline) -> None:
    single.submit("b", {"ann": 3, "bob": 2})
    say(single, "hide", "ann")
    single.settle(single.projector())
    generation = single.generation()
    assert generation is not None
    single.redis.delete(single.keys().generation(generation).members)

    with pytest.raises(ProjectionUnavailable):
        single.client.place("b", "ann", source=Source.PROJECTION)

    assert single.client.top("b").freshness.source is Source.DATABASE


@pytest.mark.parametrize("again", [False, True])
def test_a_new_copy_knows_all_states_however_many_there_are(
    single: Pipeline, *, again: bool
) -> None:
    single.client.create_board("c", seasons=["all"])
    single.submit("b", {f"m{i}": i for i in range(9)})
    single.submit("c", {f"m{i}": i for i in range(9)})
    for i in range(0, 9, 2):
        say(single, "hide", f"m{i}")
    for i in range(0, 9, 3):
        say(single, "ban", f"m{i}", board="c")
    projector = single.projector(scan_rows_max=2)
    single.settle(projector)
    if again:
        for i in range(9):
            say(single, "show", f"m{i}")
        single.redis.flushdb()
        projector = single.projector(scan_rows_max=2)
        single.settle(projector)

    assert shown(single).keys() == {f"m{i}" for i in range(9) if again or i % 2}
    assert shown(single, "c").keys() == {f"m{i}" for i in range(9) if i % 3 and (again or i % 2)}


def test_two_workers_on_one_group_end_as_in_sql(single: Pipeline) -> None:
    first, second = single.projector(), single.projector()
    single.submit("b", {f"m{i}": i for i in range(5)})
    for turn in range(12):
        say(single, "hide" if turn % 2 else "show", f"m{turn % 5}")
        single.submit("b", {f"m{turn % 5}": 1})
        single.free_leases()
        (first if turn % 3 else second).step()

    single.settle(single.projector())
    assert differences(single) == []


@pytest.fixture
def at_hint(single: Pipeline) -> Iterator[Callable[[], list[bytes]]]:
    """Everything said on the group's channel since the last call."""
    heard: Any = single.redis.pubsub(ignore_subscribe_messages=True)
    heard.subscribe(single.keys().hints)
    heard.get_message(timeout=5.0)

    def since_last() -> list[bytes]:
        single.redis.publish(single.keys().hints, "end")
        messages = []
        while (message := heard.get_message(timeout=5.0)) is None or message["data"] != b"end":
            if message is not None:
                messages.append(message["data"])
        return messages

    yield since_last
    heard.close()


def test_a_state_hints_at_its_boards_and_the_score_of_a_hidden_member_at_none(
    single: Pipeline, at_hint: Callable[[], list[bytes]]
) -> None:
    projector = single.projector()
    single.submit("b", {"ann": 1, "bob": 2})
    single.settle(projector)
    at_hint()

    say(single, "hide", "ann")
    projector.step()
    (hint,) = at_hint()
    single.submit("b", {"ann": 5})
    projector.step()
    silent = at_hint()
    say(single, "show", "ann")
    projector.step()
    (again,) = at_hint()

    assert silent == []
    rankings = sorted(single.rankings())
    assert [hint.split()[0], again.split()[0]] == [str(rankings[0] >> 36).encode()] * 2
    assert sorted(int(r) for r in hint.split()[3].split(b",")) == rankings
    assert b"ann" not in hint + again


def test_a_hidden_member_s_events_in_one_batch_with_its_state_are_never_seen(
    single: Pipeline,
) -> None:
    projector = single.projector()
    single.settle(projector)
    with single.connection() as conn:
        conn.execute(SAY, ("ann", "hide"))
        single.client.submit_scores("b", [ScoreEvent(event_id="e", member="bob", value=1)])
        single.submit("b", {"ann": 1}, conn)

    single.settle(projector)
    assert shown(single) == {"bob": "1"}

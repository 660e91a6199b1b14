"""The ring of segments turns without losing a row that some copy has not read."""

from typing import Any

import pytest

from tests.projection.pipeline import InterruptedLink, Pipeline, differences
from truerank.outbox.retention import Turn, turn_ring
from truerank.projection.projector import Projector

DAY_S = 86_400


def turn(pipeline: Pipeline, *, anyway: bool = True, **limits: int) -> Turn:
    due = {"age_s": DAY_S, "bytes_max": 1 << 30, "dead_s": DAY_S, **limits}
    return turn_ring(pipeline.conn, **due, anyway=anyway)


def segment(pipeline: Pipeline) -> int:
    ((number,),) = pipeline.conn.execute("SELECT segment FROM truerank.ring").fetchall()
    return int(number)


def rows(pipeline: Pipeline) -> int:
    ((number,),) = pipeline.conn.execute("SELECT count(*) FROM truerank.outbox").fetchall()
    return int(number)


def beat(pipeline: Pipeline, projector: Projector) -> None:
    """Settle, and let the worker note its cursors."""
    pipeline.settle(projector)
    projector.step()


@pytest.fixture
def projector(single: Pipeline) -> Projector:
    """A worker whose every step is a heartbeat, all settled; the ring is in segment 0."""
    projector = single.projector(heartbeat_ms=1)
    single.submit("b", {"ann": 1})
    beat(single, projector)
    return projector


def test_a_segment_is_turned_when_it_is_old_or_large(
    single: Pipeline, projector: Projector
) -> None:
    assert projector.whole
    assert turn(single, anyway=False) is Turn.FRESH
    assert turn(single, anyway=False, bytes_max=1) is Turn.TURNED
    assert turn(single, anyway=False, age_s=0) is Turn.TURNED
    assert segment(single) == 2


def test_rows_live_for_three_turns(single: Pipeline, projector: Projector) -> None:
    for expected in (1, 1, 1, 0):
        assert rows(single) == 1
        beat(single, projector)
        assert turn(single) is Turn.TURNED
        assert rows(single) == expected
    assert segment(single) == 0

    single.submit("b", {"ann": 1})
    single.settle(projector)


def test_a_row_that_no_copy_has_read_is_kept(single: Pipeline, projector: Projector) -> None:
    single.submit("b", {"bob": 1})
    assert [turn(single) for _ in range(4)] == [Turn.TURNED] * 3 + [Turn.UNREAD]

    beat(single, projector)
    assert turn(single) is Turn.TURNED
    assert differences(single) == []


def test_the_row_of_a_slow_transaction_is_kept(single: Pipeline, projector: Projector) -> None:
    writer = single.connection()
    single.submit("b", {"bob": 1}, conn=writer)
    for _ in range(3):
        beat(single, projector)
        assert turn(single) is Turn.TURNED
    beat(single, projector)

    assert turn(single) is Turn.BUSY
    writer.commit()
    assert turn(single) is Turn.UNREAD
    beat(single, projector)
    assert turn(single) is Turn.TURNED
    assert differences(single) == []


def test_a_row_that_commits_just_after_the_tick_of_a_noted_cursor_is_kept(
    single: Pipeline,
) -> None:
    link: InterruptedLink = single.link(InterruptedLink)
    projector = single.projector(link, heartbeat_ms=1)
    writer = single.connection()
    single.submit("b", {"late": 1}, conn=writer)
    for _ in range(3):
        beat(single, projector)
        assert turn(single) is Turn.TURNED
    beat(single, projector)

    link.after_batch = writer.commit
    projector.step()

    assert turn(single) is Turn.UNREAD
    beat(single, projector)
    assert turn(single) is Turn.TURNED


def test_a_copy_that_is_only_catching_up_keeps_what_it_has_not_shown(single: Pipeline) -> None:
    projector = single.projector(heartbeat_ms=1, batch_rows_max=1)
    beat(single, projector)
    for i in range(5):
        single.submit("b", {f"m{i}": i})
    for _ in range(3):
        assert turn(single) is Turn.TURNED

    projector.step()
    assert len(differences(single)) > 0
    assert turn(single) is Turn.UNREAD

    beat(single, projector)
    assert turn(single) is Turn.TURNED


def test_a_copy_that_nobody_served_for_long_is_filled_anew(
    single: Pipeline, projector: Projector
) -> None:
    generation = single.generation()
    single.submit("b", {"bob": 1})
    for _ in range(3):
        turn(single)
    assert turn(single) is Turn.UNREAD

    assert turn(single, dead_s=0) is Turn.TURNED
    assert rows(single) == 0

    single.settle(projector)
    assert single.generation() != generation


def test_a_copy_that_is_behind_is_given_up_once_the_outbox_is_too_large(
    single: Pipeline, projector: Projector
) -> None:
    generation = single.generation()
    single.submit("b", {"bob": 1})
    for _ in range(3):
        turn(single)
    assert turn(single, outbox_bytes_max=1 << 40) is Turn.UNREAD

    assert turn(single, outbox_bytes_max=1) is Turn.TURNED
    assert rows(single) == 0

    single.settle(projector)
    assert single.generation() != generation


def test_a_copy_that_has_read_everything_stays_however_large_the_outbox_is(
    single: Pipeline, projector: Projector
) -> None:
    generation = single.generation()
    single.conn.execute("CREATE TEMPORARY TABLE early AS SELECT * FROM truerank.generation")
    for _ in range(3):
        single.submit("b", {"ann": 1})
        beat(single, projector)
        assert turn(single, outbox_bytes_max=1) is Turn.TURNED
    beat(single, projector)
    single.conn.execute("UPDATE early SET id = gen_random_uuid(), state = 'warming'")
    single.conn.execute("INSERT INTO truerank.generation SELECT * FROM early")  # nobody's

    assert turn(single, outbox_bytes_max=1) is Turn.TURNED

    states = single.conn.execute("SELECT state FROM truerank.generation ORDER BY state").fetchall()
    assert states == [("dead",), ("live",)]
    single.conn.execute("DELETE FROM truerank.generation WHERE state = 'dead'")
    single.submit("b", {"ann": 1})
    single.settle(projector)
    assert single.generation() == generation


def saved(single: Pipeline) -> dict[bytes, Any]:
    return {name: single.redis.dump(name) for name in single.redis.scan_iter()}


def restore(single: Pipeline, copy: dict[bytes, Any]) -> None:
    single.redis.flushdb()
    for name, value in copy.items():
        single.redis.restore(name, 0, value)


def test_a_redis_of_before_a_late_commit_whose_segment_is_gone_is_filled_anew(
    single: Pipeline, projector: Projector
) -> None:
    """The cursor's tick is still there, the row of the transaction that it saw open is not."""
    writer = single.connection()
    single.submit("b", {"late": 1}, conn=writer)
    for _ in range(3):
        beat(single, projector)
        assert turn(single) is Turn.TURNED
    beat(single, projector)
    copy = saved(single)
    writer.commit()
    beat(single, projector)
    assert turn(single) is Turn.TURNED

    restore(single, copy)

    single.settle(projector)


def test_a_redis_of_in_the_middle_of_catching_up_whose_segment_is_gone_is_filled_anew(
    single: Pipeline,
) -> None:
    """The cursor's tick vouches for a batch that was cut long before it."""
    projector = single.projector(heartbeat_ms=1, batch_rows_max=1)
    beat(single, projector)
    for i in range(5):
        single.submit("b", {f"m{i}": i})
    for _ in range(3):
        assert turn(single) is Turn.TURNED
    projector.step()
    copy = saved(single)
    beat(single, projector)
    assert turn(single) is Turn.TURNED

    restore(single, copy)

    single.settle(projector)


def test_a_redis_of_before_a_turn_that_lacks_no_row_is_read_on(
    single: Pipeline, projector: Projector
) -> None:
    for _ in range(3):
        beat(single, projector)
        assert turn(single) is Turn.TURNED
    beat(single, projector)
    copy, generation = saved(single), single.generation()
    single.submit("b", {"bob": 1})
    beat(single, projector)
    assert rows(single) == 2
    assert turn(single) is Turn.TURNED
    assert rows(single) == 1

    restore(single, copy)

    single.settle(projector)
    assert single.generation() == generation


def test_a_turn_does_not_void_the_copies_that_have_read_on(
    single: Pipeline, projector: Projector
) -> None:
    holder = single.connection()
    holder.execute("CREATE TEMPORARY TABLE held AS SELECT 1")  # keeps every snapshot's xmin low
    generation = single.generation()

    for _ in range(9):
        single.submit("b", {"ann": 1})
        beat(single, projector)
        assert turn(single) is Turn.TURNED
        beat(single, projector)

    assert single.generation() == generation
    holder.rollback()


def test_a_redis_of_earlier_in_the_same_catching_up_is_filled_anew(single: Pipeline) -> None:
    """Both states of the copy may rest on the same tick; only one has read what is truncated."""
    projector = single.projector(heartbeat_ms=1, batch_rows_max=1)
    beat(single, projector)
    writer = single.connection()
    single.submit("b", {"late": 1}, conn=writer)
    for _ in range(3):
        beat(single, projector)
        assert turn(single) is Turn.TURNED
    beat(single, projector)
    for i in range(9):
        single.submit("b", {f"m{i}": i})
    projector.step()
    copy = saved(single)
    writer.commit()
    projector.step()
    while turn(single) is Turn.UNREAD:
        projector.step()
    assert rows(single) == 9, "the row of the slow transaction is gone"

    restore(single, copy)

    single.settle(projector)


def test_a_copy_that_never_catches_up_does_not_hold_the_ring_up(single: Pipeline) -> None:
    """Under a load that is too high for it, all that it has shown is let go of all the same."""
    projector = single.projector(heartbeat_ms=1, batch_rows_max=2)
    beat(single, projector)
    turned = 0

    for _ in range(30):
        for i in range(3):
            single.submit("b", {f"m{i}": 1})
        projector.step()
        turned += turn(single) is Turn.TURNED

    assert differences(single), "it is behind all the time"
    assert turned > 3
    single.settle(projector)

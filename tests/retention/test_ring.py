"""The ring turns beside whatever goes on, waits for nobody, and costs the same however long."""

import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import structlog

from tests.projection.pipeline import Pipeline, pipeline
from tests.projection.test_retention import beat, rows, segment, turn
from tests.retention.load import counting
from truerank.outbox.retention import Retention, Turn
from truerank.settings import Settings
from truerank.telemetry.meter import Meter

TURN_S_MAX = 5.0


@pytest.fixture
def beating(settings: Settings) -> Iterator[Pipeline]:
    """A pipeline of one group with a board `b`, whose every step is a heartbeat."""
    with pipeline(msgspec.structs.replace(settings, heartbeat_ms=1), groups=1) as made:
        made.client.create_board("b", seasons=["all"])
        yield made


def test_a_long_transaction_on_a_segment_is_not_waited_for(beating: Pipeline) -> None:
    projector = beating.projector()
    beating.submit("b", {"ann": 1})
    beat(beating, projector)
    reader = beating.connection()
    reader.execute("SELECT count(*) FROM truerank.outbox_1")  # holds its lock until it ends
    began = time.monotonic()

    assert turn(beating) is Turn.BUSY

    assert time.monotonic() - began < TURN_S_MAX
    beating.conn.execute("SET lock_timeout = '1s'")
    beating.submit("b", {"bob": 1})  # nobody queues behind the attempt
    assert segment(beating) == 0
    reader.rollback()
    beat(beating, projector)
    assert turn(beating) is Turn.TURNED


class Told(Meter):
    """Remembers how each attempt to turn the ring went."""

    def __init__(self) -> None:
        self.turns: list[str] = []

    def ring_turned(self, outcome: str) -> None:
        self.turns.append(outcome)


def test_a_turn_that_is_held_up_is_told_once_and_tried_again(beating: Pipeline) -> None:
    beat(beating, beating.projector())
    reader = beating.connection()
    reader.execute("SELECT count(*) FROM truerank.outbox_1")
    told = Told()
    due = msgspec.structs.replace(beating.settings, segment_bytes_max=1)
    retention = Retention(due)

    with structlog.testing.capture_logs() as lines:
        retention.keep(beating.conn, told)
        retention.keep(beating.conn, told)
        reader.rollback()
        retention.keep(beating.conn, told)

    assert told.turns == ["busy", "busy", "turned"]
    assert [line["turn"] for line in lines if line["event"] == "ring"] == ["busy", "turned"]


def test_a_turn_that_is_held_up_for_long_is_told_as_a_warning(beating: Pipeline) -> None:
    beat(beating, beating.projector())
    reader = beating.connection()
    reader.execute("SELECT count(*) FROM truerank.outbox_1")
    hurried = Retention(msgspec.structs.replace(beating.settings, segment_s=0))
    patient = Retention(msgspec.structs.replace(beating.settings, segment_bytes_max=1))

    with structlog.testing.capture_logs() as lines:
        for retention in (hurried, patient):
            retention.keep(beating.conn, Meter())
            retention.keep(beating.conn, Meter())

    warnings = [line for line in lines if line["log_level"] == "warning"]
    assert [(line["event"], line["turn"]) for line in warnings] == [("ring_held_up", "busy")]
    reader.rollback()


def test_the_limits_of_the_settings_are_kept(beating: Pipeline) -> None:
    beat(beating, beating.projector())
    told = Told()
    beating.submit("b", {"ann": 1})  # which no copy reads
    roomy = Retention(msgspec.structs.replace(beating.settings, segment_bytes_max=1))
    tight = Retention(
        msgspec.structs.replace(beating.settings, segment_bytes_max=1, outbox_bytes_max=1)
    )

    for retention in (roomy, roomy, roomy, roomy, tight):
        retention.keep(beating.conn, told)

    assert told.turns == [*["turned"] * 3, "unread", "turned"]
    assert rows(beating) == 0


def test_a_beat_without_events_moves_the_cursor(beating: Pipeline) -> None:
    projector = beating.projector()
    beat(beating, projector)
    before = beating.meta()

    projector.step()

    after = beating.meta()
    assert int(after["tick"]) > int(before["tick"])
    assert after["through"] > before["through"]
    assert after["cursor"].startswith(f"{after['tick']}:")


def index_bytes(pipe: Pipeline) -> int:
    ((size,),) = pipe.conn.execute(
        """SELECT sum(pg_indexes_size(i.inhrelid))::bigint FROM pg_inherits AS i
           WHERE i.inhparent IN ('truerank.outbox'::regclass, 'truerank.tick'::regclass)"""
    ).fetchall()
    return int(size)


def test_indexes_stay_as_small_as_four_segments_however_often_the_ring_turns(
    beating: Pipeline,
) -> None:
    projector = beating.projector()
    sizes = []
    for number in range(12):
        beating.submit("b", {f"m{i}": number for i in range(400)})
        beat(beating, projector)
        assert turn(beating) is Turn.TURNED
        sizes.append(index_bytes(beating))

    assert max(sizes[4:]) <= max(sizes[:4])
    assert rows(beating) <= 4 * 400


def statements(pipe: Pipeline, scores: dict[str, int]) -> list[int]:
    """How many statements each step takes once all is settled, and what they say is steady."""
    with counting(pipe) as (conn, projector):
        pipe.submit("b", scores)
        beat(pipe, projector)  # the first batch of a ranking takes one more
        counts = []
        for _ in range(5):
            pipe.submit("b", scores)
            before = conn.statements
            projector.step()
            counts.append(conn.statements - before)
    return counts


def test_a_step_takes_as_many_statements_with_full_segments_as_with_empty_ones(
    beating: Pipeline,
) -> None:
    empty = statements(beating, {"ann": 1})
    for number in range(3):
        beating.submit("b", {f"m{i}": number for i in range(300)})
        beat(beating, beating.projector())
        assert turn(beating) is Turn.TURNED

    full: Any = statements(beating, {f"m{i}": 1 for i in range(300)})

    assert max(full) <= max(empty)


def read_by_a_turn(pipe: Pipeline, rows_n: int) -> int:
    """How many rows of a full segment, read by every copy, a turn reads; of 16 copies."""
    pipe.conn.execute(
        """INSERT INTO truerank.outbox
           SELECT 1, 0, 'p', 1::bigint << 36, n, pg_current_xact_id(), 'm' || n, '\\x00'
           FROM generate_series(1, %s) AS n""",
        (rows_n,),
    )
    tick = pipe.conn.execute(
        "SELECT id FROM truerank.take_tick(pg_current_snapshot(), true)"
    ).fetchone()
    assert tick is not None
    pipe.conn.execute(
        """INSERT INTO truerank.generation (id, grp, epoch, state, cursor_tick, cursor_snapshot)
           SELECT gen_random_uuid(), g, s.epoch, 'live', t.id, t.snapshot
           FROM truerank.tick AS t, truerank.setting AS s, generate_series(0, 15) AS g
           WHERE t.id = %s""",
        tick,
    )
    with pipe.conn.transaction(force_rollback=True):
        assert turn(pipe) is Turn.TURNED
        counted = pipe.conn.execute(
            """SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables
               WHERE relid = 'truerank.outbox_1'::regclass"""
        ).fetchone()
    pipe.conn.execute("DELETE FROM truerank.generation")
    assert counted is not None
    return int(counted[0])


def test_a_turn_reads_as_many_rows_of_a_large_segment_as_of_a_small_one(single: Pipeline) -> None:
    small = read_by_a_turn(single, 10)

    large = read_by_a_turn(single, 5_000)

    assert large <= small + 16

"""At full load beside a held snapshot the outbox has no dead rows, no growth, and no slow polls."""

import os
from collections.abc import Iterator
from statistics import median

import msgspec
import pytest

from tests.projection.pipeline import Pipeline, differences, pipeline
from tests.retention import load
from truerank.settings import Settings

SOAK_S = float(os.environ.get("TRUERANK_SOAK_S") or 300)
SHORT_S = 3.0
TURNS = 5  # every segment was emptied at least once


@pytest.fixture
def pipe(settings: Settings) -> Iterator[Pipeline]:
    """A pipeline whose ring turns every second, and whose every step is a heartbeat."""
    quick = msgspec.structs.replace(settings, heartbeat_ms=1, segment_s=1)
    with pipeline(quick, groups=1) as made:
        made.client.create_board("b", seasons=["all", "month"])
        yield made


def soak(pipe: Pipeline, seconds: float) -> load.Measured:
    measured = load.run(pipe, seconds, turns=TURNS)

    touched = pipe.conn.execute(
        """SELECT sum(n_tup_upd), sum(n_tup_del), sum(n_dead_tup) FROM pg_stat_user_tables
           WHERE relname ~ '^(outbox|tick)_[0-3]$'"""
    ).fetchone()
    assert touched == (0, 0, 0), "rows are inserted and truncated, nothing else"
    assert measured.turns >= TURNS
    half = len(measured.statements) // 2
    assert median(measured.statements[half:]) <= median(measured.statements[:half]) + 1
    pipe.settle(pipe.projector())
    assert differences(pipe) == []
    return measured


def test_a_held_snapshot_leaves_the_outbox_as_it_is(pipe: Pipeline) -> None:
    assert soak(pipe, SHORT_S).events > 0


@pytest.mark.soak
def test_minutes_of_full_load_beside_a_held_snapshot_make_no_poll_slower(
    pipe: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = soak(pipe, SOAK_S)

    with capsys.disabled():
        print(  # noqa: T201 - what a soak found
            f"\n{measured.events} events in {SOAK_S:g} s, {measured.turns} turns of the ring,"
            f" poll {median(measured.polls_s) * 1000:.2f} ms, last quarter over first"
            f" {measured.growth():.2f}, outbox at most {max(measured.outbox_bytes) >> 20} MiB"
        )
    assert measured.growth() < 2
    half = len(measured.outbox_bytes) // 2
    assert max(measured.outbox_bytes[half:]) <= 2 * max(measured.outbox_bytes[:half])

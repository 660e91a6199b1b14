"""Where scores pour in and members come and go, nothing that is on its way is taken for damage."""

import random
import threading
import time
from collections.abc import Iterator

import msgspec
import psycopg
import pytest

import truerank
from tests.projection.pipeline import (
    DEADLINE_S,
    Pipeline,
    differences,
    pipeline,
    wait_until,
    working,
)
from tests.repair.damage import reconciled
from truerank.model import Order, ScoreEvent, TieBreak
from truerank.settings import Settings

BOARDS = ("sums", "best", "latest", "dense")
MEMBERS = [f"m{n}" for n in range(40)]
ROUNDS = [60, pytest.param(4000, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])]
WRITERS = 2
# Not where there is no entry: the copy may be on its way out, and would leave something behind.
DAMAGE = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
    redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
end"""


@pytest.fixture
def busy(settings: Settings) -> Iterator[Pipeline]:
    """Four sorts of boards in two groups, which a worker keeps shown."""
    running = msgspec.structs.replace(settings, heartbeat_ms=200, lease_ms=3000)
    with pipeline(running, groups=2) as made, working(running):
        made.client.create_board("sums", seasons=["all", "month"])
        ties = [TieBreak(name="time", order=Order.ASC)]
        made.client.create_board("best", operator="best", seasons=["all"], tie_breaks=ties)
        made.client.create_board("latest", operator="latest", seasons=["all"], decimals=2)
        made.client.create_board("dense", seasons=["all"], dense=True)
        yield made


def write(pipe: Pipeline, number: int, rounds: int) -> None:
    """Scores for all boards, some members again and again; members hide, return, and go."""
    rng = random.Random(number)
    with psycopg.connect(pipe.settings.database_url or "", autocommit=True) as conn:
        for n in range(rounds):
            for board in BOARDS:
                ties = (n,) if board == "best" else ()
                events = [
                    ScoreEvent(
                        event_id=f"{number}/{n}/{k}",
                        member=MEMBERS[0] if k == 0 else rng.choice(MEMBERS),
                        value=rng.randrange(50),
                        ties=ties,
                    )
                    for k in range(4)
                ]
                truerank.submit_scores(conn, board, events)
            change = rng.choice(["hide", "show", "ban", "unban", "delete"])
            member = rng.choice(MEMBERS[1:])
            conn.execute(
                "SELECT truerank.set_member_state(%s, %s, 'a', 'r', %s)",
                (member, change, rng.choice([None, "sums", "dense"])),
            )


def await_equal(pipe: Pipeline) -> None:
    """Wait until both ends are equal; fail with the differences that stay."""
    deadline = time.monotonic() + DEADLINE_S
    while found := differences(pipe):
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


@pytest.mark.parametrize("rounds", ROUNDS)
def test_traffic_is_never_taken_for_drift(busy: Pipeline, rounds: int) -> None:
    writers = [threading.Thread(target=write, args=(busy, n, rounds)) for n in range(WRITERS)]
    for writer in writers:
        writer.start()

    reports = [reconciled(busy, wait_s=20, rows_max=8)]
    while any(writer.is_alive() for writer in writers):
        reports.append(reconciled(busy, wait_s=20, rows_max=8))
    for writer in writers:
        writer.join()
    await_equal(busy)

    assert [report.to_json()["examples"] for report in reports if report.drift] == []
    assert [report.to_json() for report in reports if report.to_json()["lagging"]] == []
    assert sum(report.checked for report in reports) > len(MEMBERS)


def test_a_repair_under_traffic_leaves_both_ends_equal(busy: Pipeline) -> None:
    writers = [threading.Thread(target=write, args=(busy, n, 60)) for n in range(WRITERS)]
    for writer in writers:
        writer.start()

    while any(writer.is_alive() for writer in writers):
        for ranking, (group, shown) in list(busy.rankings().items())[:2]:
            copy = busy.keys(group).generation(busy.generation(group) or "")
            for member in list(shown)[:3]:
                wrong = shown[member][:8] + bytes(24)
                busy.redis.eval(DAMAGE, 1, copy.shown(ranking), member, wrong)
        reconciled(busy, repair=True, wait_s=20)
    for writer in writers:
        writer.join()
    wait_until(lambda: reconciled(busy, repair=True, wait_s=20).unrepaired == 0, "all is mended")

    await_equal(busy)

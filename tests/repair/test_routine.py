"""The comparison that workers do as routine: a piece at a time, one worker at a time."""

import threading
from collections import Counter
from typing import Any

import msgspec
import pytest
import structlog

from tests.cli.commands import Command
from tests.projection.pipeline import Pipeline, differences, wait_until
from tests.repair.damage import Target, its_score, to_a_newer_one
from truerank import upkeep
from truerank.client import Truerank
from truerank.repair import routine
from truerank.repair.routine import Routine
from truerank.telemetry.meter import Meter


class Counting(Meter):
    """Keeps what was compared, and what was met."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.met: Counter[str] = Counter()

    def standings_compared(self, kind: str, number: int) -> None:
        self.kinds[kind] += number

    def drift_met(self, what: str, number: int) -> None:
        self.met[what] += number


@pytest.fixture
def shown(single: Pipeline) -> Pipeline:
    """Board `b` with three members, shown; nothing runs."""
    single.submit("b", {"ann": 30, "bob": 20, "cid": 10})
    single.settle(single.projector())
    return single


def target(pipe: Pipeline, member: str) -> Target:
    (ranking,) = pipe.rankings()
    return Target(pipe, ranking, member)


def keep(pipe: Pipeline, of: Routine, meter: Meter) -> float:
    return of.keep(pipe.worker_connection(), pipe.link(), meter)


def found(pipe: Pipeline) -> dict[str, Any]:
    """What PostgreSQL says of the last pass."""
    cursor = pipe.conn.execute("SELECT * FROM truerank.reconciled()")
    assert cursor.description is not None
    names = [column.name for column in cursor.description]
    return dict(zip(names, cursor.fetchone() or (), strict=True))


def pass_on(pipe: Pipeline, of: Routine, meter: Meter) -> None:
    """Piece after piece, until a pass has ended."""
    before = found(pipe)["ended_at"]
    wait_until(lambda: (keep(pipe, of, meter), found(pipe)["ended_at"] != before)[1], "its end")


def test_a_pass_mends_and_is_counted_and_noted(shown: Pipeline) -> None:
    its_score(target(shown, "bob"))
    meter = Counting()

    pass_on(shown, Routine(shown.settings), meter)

    assert (meter.kinds, meter.met) == ({"current": 2, "corrupt": 1}, {"repaired": 1})
    noted = found(shown)
    assert (noted["checked"], noted["drift"], noted["unrepaired"]) == (3, 1, 0)
    assert differences(shown) == []


def test_the_log_tells_what_differs_and_names_nobody(shown: Pipeline) -> None:
    its_score(target(shown, "bob"))

    with structlog.testing.capture_logs() as logs:
        pass_on(shown, Routine(shown.settings), Counting())

    (entry,) = [entry for entry in logs if entry["event"] == "projection_differs"]
    assert (entry["board"], entry["kind"], entry["repaired"]) == ("b", "corrupt", True)
    assert entry["source"]["score"] == "20"
    assert "bob" not in str(logs)


def test_what_is_ahead_is_told_and_left(shown: Pipeline) -> None:
    to_a_newer_one(target(shown, "bob"))
    meter = Counting()

    pass_on(shown, Routine(shown.settings), meter)

    assert meter.kinds["ahead"] == 1
    assert (found(shown)["ahead"], found(shown)["unrepaired"]) == (1, 1)


def test_nothing_is_mended_where_the_settings_say_so(shown: Pipeline) -> None:
    its_score(target(shown, "bob"))
    settings = msgspec.structs.replace(shown.settings, reconcile_repair=False)

    pass_on(shown, Routine(settings), Counting())

    assert (found(shown)["drift"], found(shown)["unrepaired"]) == (1, 1)


def test_another_worker_goes_on_where_the_one_before_stopped(
    shown: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown.submit("b", {f"m{n}": n for n in range(9)})
    shown.settle(shown.projector())
    monkeypatch.setattr(routine, "_PIECE_ROWS", 1)
    monkeypatch.setattr(routine, "_CHUNK_ROWS", 2)
    first, second, meter = Routine(shown.settings), Routine(shown.settings), Counting()
    wait_until(
        lambda: (keep(shown, first, meter), meter.kinds["current"] >= 4)[1], "four are compared"
    )

    held_off = keep(shown, second, meter)
    shown.conn.execute("UPDATE truerank.reconciling SET held_until = '-infinity'")
    pass_on(shown, second, meter)

    assert held_off == 15.0
    assert meter.kinds == {"current": 12}
    assert found(shown)["checked"] == 12


def test_a_worker_that_lost_its_turn_lets_go(
    shown: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routine, "_PIECE_ROWS", 1)
    monkeypatch.setattr(routine, "_CHUNK_ROWS", 1)
    first, meter = Routine(shown.settings), Counting()
    wait_until(lambda: (keep(shown, first, meter), meter.kinds["current"] > 0)[1], "a first one")
    shown.conn.execute(
        "UPDATE truerank.reconciling SET holder = gen_random_uuid(), held_until = 'infinity'"
    )

    assert keep(shown, first, meter) == 15.0


def test_no_pass_begins_just_after_one_has_ended(shown: Pipeline) -> None:
    of, meter = Routine(shown.settings), Counting()
    pass_on(shown, of, meter)

    assert keep(shown, of, meter) == 15.0
    assert meter.kinds == {"current": 3}


def test_a_worker_compares_unless_it_is_told_not_to(shown: Pipeline) -> None:
    never = msgspec.structs.replace(shown.settings, reconcile_ms=0)

    assert "reconcile" in {chore.name for chore in upkeep.chores(shown.settings)}
    assert "reconcile" not in {chore.name for chore in upkeep.chores(never)}


def test_it_runs_among_the_chores_of_a_worker(shown: Pipeline) -> None:
    """The worker itself isn't running beside: nothing else mends."""
    its_score(target(shown, "bob"))
    stop = threading.Event()
    thread = threading.Thread(target=upkeep.run, args=(shown.settings, stop))

    thread.start()
    try:
        wait_until(lambda: not differences(shown), "it is mended")
    finally:
        stop.set()
        thread.join()

    assert differences(shown) == []


def test_the_status_says_what_the_last_pass_found(shown: Pipeline) -> None:
    its_score(target(shown, "bob"))
    before = shown.client.status()
    pass_on(shown, Routine(shown.settings), Counting())

    with Truerank(shown.settings) as client:
        status = client.status()
    told = Command(None)(
        "status",
        TRUERANK_DATABASE_URL=str(shown.settings.database_url),
        TRUERANK_REDIS_URL=str(shown.settings.redis_url),
    )

    assert before.reconciled_age_ms is None
    assert status.reconciled_age_ms is not None
    assert (status.reconciled_standings, status.reconciled_drift) == (3, 1)
    assert status.reconciled_unrepaired == 0
    assert "ago: 1 differences, 0 left" in told.out

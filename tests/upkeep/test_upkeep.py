"""The thread in which a worker's process does its chores."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from truerank import upkeep
from truerank.errors import TruerankError
from truerank.settings import Settings
from truerank.telemetry.meter import Meter
from truerank.upkeep import Chore, Tools

_DEADLINE_S = 30.0


class Listening(Meter):
    def __init__(self) -> None:
        self.failures: list[tuple[str, str]] = []

    def failed(self, part: str, code: str) -> None:
        self.failures.append((part, code))


class Done:
    """Counts the pieces that a chore was asked to do; one may be waited for."""

    def __init__(self, then: Callable[[Tools], float]) -> None:
        self._then = then
        self._more = threading.Condition()
        self.pieces = 0

    def __call__(self, tools: Tools) -> float:
        with self._more:
            self.pieces += 1
            self._more.notify_all()
        return self._then(tools)

    def wait(self, pieces: int) -> None:
        with self._more:
            assert self._more.wait_for(lambda: self.pieces >= pieces, _DEADLINE_S)


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    return Settings(database_url=database_url, redis_url=redis_url)


@contextmanager
def doing(settings: Settings, *runs: Done | Chore) -> Iterator[Listening]:
    stop, meter = threading.Event(), Listening()
    of = [r if isinstance(r, Chore) else Chore(f"chore {n}", r) for n, r in enumerate(runs)]
    thread = threading.Thread(
        target=upkeep.run, args=(settings, stop), kwargs={"meter": meter, "of": of}
    )
    thread.start()
    try:
        yield meter
    finally:
        stop.set()
        thread.join(_DEADLINE_S)
        assert not thread.is_alive()


def fail(_tools: Tools) -> float:
    raise TruerankError("not this time", code="for_a_test")


def test_a_chore_that_fails_is_told_and_tried_again_and_holds_up_no_other(
    settings: Settings,
) -> None:
    failing, working = Done(fail), Done(lambda _: 0.01)

    with doing(settings, failing, working) as meter:
        failing.wait(2)
        working.wait(2)

    assert ("upkeep", "for_a_test") in meter.failures


def test_chores_go_on_over_a_connection_that_was_cut(settings: Settings) -> None:
    def cut(tools: Tools) -> float:
        with psycopg.connect(str(settings.database_url), autocommit=True) as conn:
            conn.execute("SELECT pg_terminate_backend(%s)", (tools.conn.info.backend_pid,))
        tools.conn.execute("SELECT 1")
        raise AssertionError("the connection was cut")

    def once(tools: Tools) -> float:
        return cut(tools) if next(times) == 0 else 0.01

    times = iter(range(1_000_000))
    cutting = Done(once)

    with doing(settings, cutting) as meter:
        cutting.wait(3)

    assert meter.failures[0] == ("upkeep", "database_unavailable")


def test_a_chore_that_takes_long_holds_up_no_other_lane_and_is_ended_with_the_worker(
    settings: Settings,
) -> None:
    begun = threading.Event()

    def settle(tools: Tools) -> float:
        begun.set()
        tools.conn.execute("SET statement_timeout = 0")
        tools.conn.execute("SELECT pg_sleep(600)")
        return 0.0

    frequent = Done(lambda _: 0.0)

    with doing(settings, frequent, Chore("long", settle, "long")):
        assert begun.wait(_DEADLINE_S)
        frequent.wait(frequent.pieces + 20)


def test_an_unexpected_failure_of_a_lane_ends_the_worker_and_is_told(settings: Settings) -> None:
    def stumble(_tools: Tools) -> float:
        raise ZeroDivisionError

    stop = threading.Event()

    with pytest.raises(ZeroDivisionError):
        upkeep.run(
            settings,
            stop,
            of=[Chore("idle", lambda _: 3600.0), Chore("bad", stumble, "bad")],
        )

    assert stop.is_set()


def test_a_chore_that_is_not_due_is_left_alone(settings: Settings) -> None:
    rare, frequent = Done(lambda _: 3600.0), Done(lambda _: 0.0)

    with doing(settings, rare, frequent):
        frequent.wait(20)

    assert rare.pieces == 1  # at the start

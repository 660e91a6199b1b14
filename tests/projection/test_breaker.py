"""Calls that get no answer: the breaker opens, pauses grow, and nobody waits who need not."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from truerank.errors import ProjectionUnavailable
from truerank.projection.alink import AsyncLink
from truerank.projection.breaker import Breaker, BreakerState
from truerank.projection.link import Link
from truerank.projection.trouble import Backoff, Trouble
from truerank.steps import ScriptCall

NOBODY = "unix:///nobody/listens/here"


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def breaker(clock: Clock, jitter: float = 0.0, **changes: Any) -> Breaker:
    options: dict[str, Any] = {"failures_max": 3, "pause_s": (1.0, 4.0), **changes}
    return Breaker(clock=clock, jitter=lambda: jitter, **options)


def opened(clock: Clock, jitter: float = 0.0) -> Breaker:
    made = breaker(clock, jitter)
    for _ in range(3):
        assert made.admit()
        made.failed()
    assert made.state is BreakerState.OPEN
    return made


def test_it_opens_after_failures_in_a_row_and_an_answer_begins_the_row_anew() -> None:
    made = breaker(Clock())
    for _ in range(5):
        made.failed()
        made.failed()
        assert (made.state, made.failures, made.admit()) == (BreakerState.CLOSED, 2, True)
        made.succeeded()
    assert made.failures == 0

    for _ in range(3):
        made.failed()

    assert (made.state, made.failures, made.admit()) == (BreakerState.OPEN, 3, False)


def test_after_the_pause_one_call_is_let_through_and_its_answer_lets_all() -> None:
    clock = Clock()
    made = opened(clock)
    clock.now += 0.99
    assert not made.admit()
    assert made.retry_s == pytest.approx(0.01)

    clock.now += 0.02
    assert made.admit()
    assert made.state is BreakerState.HALF_OPEN
    assert not made.admit(), "one is on its way"

    made.succeeded()
    assert (made.state, made.retry_s, made.admit(), made.admit()) == ("closed", 0.0, True, True)


def test_the_pauses_double_up_to_a_limit() -> None:
    clock = Clock()
    made = opened(clock)
    pauses: list[float] = []

    for _ in range(5):
        pauses.append(made.retry_s)
        clock.now += made.retry_s
        assert made.admit()
        made.failed()

    assert pauses == pytest.approx([1, 2, 4, 4, 4])


def test_pauses_are_cut_by_chance_so_that_processes_do_not_come_back_together() -> None:
    assert [opened(Clock(), jitter).retry_s for jitter in (0.0, 0.5, 1.0)] == pytest.approx(
        [1.0, 0.75, 0.5]
    )


def test_a_trial_that_never_ends_is_followed_by_another() -> None:
    clock = Clock()
    made = opened(clock)
    clock.now += 1
    assert made.admit()

    clock.now += 1
    assert made.admit(), "the first was cancelled, say"
    assert not made.admit()


def test_of_many_threads_one_makes_the_trial() -> None:
    clock = Clock()
    made = opened(clock)
    clock.now += 1
    start = threading.Barrier(8)
    admitted: list[bool] = []

    def ask() -> None:
        start.wait()
        admitted.append(made.admit())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(admitted) == [False] * 7 + [True]


def test_it_tells_each_state_that_it_comes_to_be_in() -> None:
    clock = Clock()
    told: list[BreakerState] = []
    made = breaker(clock, told=told.append)
    for _ in range(4):
        made.failed()
    clock.now += 9
    made.admit()
    made.succeeded()
    made.succeeded()

    assert told == ["open", "half_open", "closed"]


def test_backoff_grows_is_jittered_and_begins_anew_after_a_success() -> None:
    backoff = Backoff(jitter=lambda: 1.0)

    assert [backoff.failed() for _ in range(6)] == pytest.approx([0.025, 0.05, 0.1, 0.25, 0.5, 0.5])
    backoff.succeeded()
    assert backoff.failed() == pytest.approx(0.025)
    assert Backoff(jitter=lambda: 0.0).failed() == pytest.approx(0.05)


def test_a_refused_group_rests_ever_longer_and_is_given_up_only_if_never_served() -> None:
    clock = Clock()
    trouble = Trouble(clock=clock, jitter=lambda: 1.0)
    trouble.refused(3)
    trouble.refused(5)
    assert trouble.rested([3, 4, 5]) == {4}
    clock.now += 0.02
    assert trouble.rested([3, 4, 5]) == {3, 4, 5}

    trouble.refused(3)
    clock.now += 0.02
    assert trouble.rested([3, 5]) == {5}, "the second pause is longer"
    trouble.served(5)
    clock.now += 5
    assert trouble.hopeless(5.0) == {3}

    trouble.keep({4, 5})
    assert trouble.hopeless(0.0) == set()


def test_calls_that_nobody_answers_open_the_breaker_of_a_link() -> None:
    made = breaker(Clock())
    link = Link(NOBODY, timeout_ms=100, breaker=made)
    for _ in range(3):
        with pytest.raises(ProjectionUnavailable, match="no connection"):
            link.command("GET", "k")

    with pytest.raises(ProjectionUnavailable, match="3 calls unanswered"):
        link.command("GET", "k")
    assert (made.state, made.failures) == (BreakerState.OPEN, 3)


async def test_calls_that_nobody_answers_open_the_breaker_of_an_asyncio_link() -> None:
    made = breaker(Clock())
    link = AsyncLink(NOBODY, timeout_ms=100, breaker=made)
    for _ in range(3):
        with pytest.raises(ProjectionUnavailable, match="no connection"):
            await link.command("GET", "k")

    with pytest.raises(ProjectionUnavailable, match="3 calls unanswered"):
        await link.call(ScriptCall("page", [], []))
    assert made.state is BreakerState.OPEN


def test_an_error_as_reply_is_an_answer(redis_url: str) -> None:
    made = breaker(Clock())
    link = Link(redis_url, timeout_ms=5000, breaker=made)
    link.command("SET", "k", "v")
    for _ in range(5):
        with pytest.raises(ProjectionUnavailable, match="WRONGTYPE"):
            link.command("HGET", "k", "f")

    assert (made.state, made.failures) == (BreakerState.CLOSED, 0)
    link.close()


@pytest.fixture
def deaf() -> Iterator[str]:
    """The URL of a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"redis://127.0.0.1:{listening.getsockname()[1]}"


def test_a_server_that_never_says_a_word_is_left_after_the_deadline(deaf: str) -> None:
    link = Link(deaf, timeout_ms=200)
    began = time.monotonic()
    with pytest.raises(ProjectionUnavailable):
        link.command("PING")

    assert time.monotonic() - began < 10
    assert link.breaker.failures == 1


async def test_a_server_that_never_says_a_word_is_left_by_tasks_too(deaf: str) -> None:
    link = AsyncLink(deaf, timeout_ms=200)
    async with asyncio.timeout(10):
        with pytest.raises(ProjectionUnavailable):
            await link.command("PING")

    assert link.breaker.failures == 1


def test_a_crowd_of_callers_is_no_failure_of_the_server(redis_url: str) -> None:
    link = Link(redis_url, timeout_ms=10, connections_max=0)
    with pytest.raises(ProjectionUnavailable, match="all connections are in use"):
        link.command("PING")

    assert link.breaker.failures == 0


async def test_a_crowd_of_tasks_is_none_either(redis_url: str) -> None:
    link = AsyncLink(redis_url, timeout_ms=10, connections_max=0)
    with pytest.raises(ProjectionUnavailable, match="all connections are in use"):
        await link.command("PING")

    assert link.breaker.failures == 0

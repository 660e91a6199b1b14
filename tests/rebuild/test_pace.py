"""Readers come first: calls stay short, and pauses long, as the worker measures them."""

import pytest

from truerank.projection.pace import Pace
from truerank.projection.setbacks import Setbacks


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_calls_get_larger_while_they_are_quick_and_smaller_when_they_are_not(clock: Clock) -> None:
    pace = Pace(25, 400, clock=clock)
    first = pace.rows

    for _ in range(20):
        pace.called(pace.rows, pace.rows * 1e-6)
    assert pace.rows == 400 > first

    for _ in range(20):
        pace.called(pace.rows, pace.rows * 2e-5)  # 100 rows take 2 ms
    assert 80 <= pace.rows <= 120

    for _ in range(20):
        pace.called(pace.rows, 1.0)
    assert 0 < pace.rows < first


def test_the_end_of_a_scan_tells_nothing_of_calls(clock: Clock) -> None:
    pace = Pace(25, 400, clock=clock)
    before = pace.rows

    pace.called(3, 1.0)

    assert pace.rows == before


def test_a_quarter_of_the_time_is_worked(clock: Clock) -> None:
    pace = Pace(25, 400, clock=clock)
    assert pace.pause_s == 0

    pace.worked(0.010)

    assert pace.pause_s == pytest.approx(0.030)
    clock.now += 0.030
    assert pace.pause_s == 0


def test_without_a_share_nothing_is_held_back(clock: Clock) -> None:
    pace = Pace(100, 400, clock=clock)

    pace.worked(10)

    assert pace.unthrottled
    assert pace.pause_s == 0


def test_what_failed_is_tried_again_ever_later_until_it_works(clock: Clock) -> None:
    setbacks = Setbacks(clock=clock)
    assert setbacks.rested([1, 2]) == {1, 2}

    first, second = setbacks.failed(1), setbacks.failed(1)

    assert second > first
    assert setbacks.rested([1, 2]) == {2}
    clock.now += second
    assert setbacks.rested([1, 2]) == {1, 2}
    setbacks.succeeded([1])
    assert setbacks.failed(1) == first


def test_setbacks_of_groups_that_others_hold_are_forgotten(clock: Clock) -> None:
    setbacks = Setbacks(clock=clock)
    setbacks.failed(1)

    setbacks.keep([2])

    assert setbacks.rested([1]) == {1}

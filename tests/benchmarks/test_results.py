import json

import pytest

from benchmarks.load import Events
from benchmarks.result import Bar, Result, median, percentile, spread


def result(*bars: Bar) -> Result:
    return Result(
        name="x",
        short=True,
        ratio=2.0,
        ratio_of="a by b",
        bars=bars,
        sizes={"members": 10},
        engines={"postgresql": "18.6"},
        rounds={"ours": [3.0, 1.0, 2.0]},
        rounds_of="events/s",
    )


def test_a_bar_holds_on_its_own_side_and_at_its_edge() -> None:
    assert Bar(of="x", value=8, bar=8, at_least=True).holds
    assert not Bar(of="x", value=7.9, bar=8, at_least=True).holds
    assert Bar(of="x", value=2, bar=2).holds
    assert not Bar(of="x", value=2.1, bar=2).holds


def test_one_bar_that_fails_makes_the_result_fail() -> None:
    kept, broken = Bar(of="median", value=1, bar=2), Bar(of="tail", value=5, bar=4)

    assert result(kept).holds
    assert not result(kept, broken).holds
    assert result(kept, broken).to_json()["holds"] is False


def test_the_json_tells_what_was_measured_and_how_far_the_rounds_lie_apart() -> None:
    told = json.loads(json.dumps(result(Bar(of="lag", value=1.5, bar=2)).to_json()))

    assert (told["name"], told["ratio"], told["value"], told["bar"]) == ("x", 2.0, 1.5, 2)
    assert told["medians"] == {"ours": 2.0}
    assert told["spread"] == {"ours": 1.0}
    assert told["sizes"] == {"members": 10}
    assert told["short"] is True


def test_median_spread_and_percentile_of_a_few_values() -> None:
    values = [float(v) for v in range(100, 0, -1)]

    assert median(values) == 50.5
    assert spread([10.0, 11.0, 9.0]) == pytest.approx(0.2)
    assert percentile(values, 0.99) == 99
    assert percentile(values, 0.5) == 50
    assert percentile([7.0], 0.99) == 7


def test_streams_of_one_seed_are_equal_and_of_two_seeds_share_no_event_id() -> None:
    one, again, other = (list(Events(seed, 100).draw(1000)) for seed in ("a", "a", "b"))

    assert one == again
    assert not {event_id for event_id, _, _ in one} & {event_id for event_id, _, _ in other}
    assert all(len(member) == 10 and 1 <= value <= 100 for _, member, value in one)

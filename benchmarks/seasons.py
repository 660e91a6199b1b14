"""What an event costs on a board with three seasons, beside a board with one."""

from collections.abc import Callable

from benchmarks.result import Bar, Result, median, versions
from benchmarks.writers import CONNECTIONS, Side, Size, measure
from truerank.embedded import Engines

EVENTS_PER_CALL = 1000
CALLS_PER_S = 2  # of each connection, so that a round takes about as long as in other benchmarks
SEASONS = ("all", "week", "month")

_SECONDS_MAX = 300.0


def seasons(
    engines: Engines, progress: Callable[[str], None], *, short: bool, size: Size | None = None
) -> Result:
    """Time per event over the same calls; each event counts in all the seasons of its board."""
    size = size or Size.of(short=short)
    calls = int(size.seconds * CALLS_PER_S)
    sides = [
        Side(
            engines,
            name,
            members=size.members,
            seasons=of_board,
            events_per_call=EVENTS_PER_CALL,
            events_max=calls * EVENTS_PER_CALL,
        )
        for name, of_board in (("three seasons", SEASONS), ("one season", SEASONS[:1]))
    ]
    rates = measure(sides, _SECONDS_MAX, progress)
    times = {name: [1e6 / rate for rate in done] for name, done in rates.items()}
    three, one = (median(times[side.name]) for side in sides)
    return Result(
        name="seasons",
        short=short,
        ratio=three / one,
        ratio_of="time per event with three seasons by time per event with one",
        bars=[Bar(of="times the time per event with one season", value=three / one, bar=2.2)],
        sizes={
            "members": size.members,
            "seasons": len(SEASONS),
            "connections": CONNECTIONS,
            "events_per_call": EVENTS_PER_CALL,
            "calls_per_connection_and_round": calls,
        },
        engines=versions(engines),
        rounds=times,
        rounds_of="µs per event, all connections together",
    )

"""Many events a call, and single events through the group commit, beside one commit per event."""

from collections.abc import Callable

from benchmarks.result import Bar, Result, median, versions
from benchmarks.writers import CONNECTIONS, Side, Size, measure
from truerank.embedded import Engines

EVENTS_PER_CALL = 1000
IN_FLIGHT = 256


def write(
    engines: Engines, progress: Callable[[str], None], *, short: bool, size: Size | None = None
) -> Result:
    """Events per second, on a standing of every member, until PostgreSQL has committed them."""
    size = size or Size.of(short=short)
    sides = [
        Side(engines, "calls", members=size.members, events_per_call=EVENTS_PER_CALL),
        Side(engines, "group commit", members=size.members, in_flight=IN_FLIGHT),
        Side(engines, "single", members=size.members),
    ]
    rates = measure(sides, size.seconds, progress)
    calls, group, single = (median(rates[side.name]) for side in sides)
    return Result(
        name="write",
        short=short,
        ratio=calls / single,
        ratio_of="events/s in calls of many by events/s in one call and one commit per event",
        bars=[
            Bar(
                of="in calls of many, times the events/s of one commit per event",
                value=calls / single,
                bar=10,
                at_least=True,
            ),
            Bar(
                of="through the group commit, times the events/s of one commit per event",
                value=group / single,
                bar=4,
                at_least=True,
            ),
        ],
        sizes={
            "members": size.members,
            "seasons": 1,
            "connections": CONNECTIONS,
            "events_per_call": EVENTS_PER_CALL,
            "group_commit_events_in_flight": IN_FLIGHT,
            "seconds_per_round": size.seconds,
        },
        engines=versions(engines),
        rounds=rates,
        rounds_of="events/s from the first call until the last answer",
    )

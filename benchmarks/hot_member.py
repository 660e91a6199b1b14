"""Writers who all write for one member, beside the same writers over all members."""

from collections.abc import Callable

from benchmarks.result import Bar, Result, median, versions
from benchmarks.writers import CONNECTIONS, Side, Size, measure
from truerank.embedded import Engines

EVENTS_PER_CALL = 100


def hot_member(
    engines: Engines, progress: Callable[[str], None], *, short: bool, size: Size | None = None
) -> Result:
    """Every call waits for the row of the one before it, and changes one row instead of many."""
    size = size or Size.of(short=short)
    hot = Side(engines, "one member", members=1, events_per_call=EVENTS_PER_CALL)
    spread = Side(engines, "all members", members=size.members, events_per_call=EVENTS_PER_CALL)
    rates = measure([hot, spread], size.seconds, progress)
    ratio = median(rates[hot.name]) / median(rates[spread.name])
    return Result(
        name="hot_member",
        short=short,
        ratio=ratio,
        ratio_of="events/s on one member by events/s over all members",
        bars=[
            Bar(
                of="times the events/s over all members",
                value=ratio,
                bar=1,
                at_least=True,
            )
        ],
        sizes={
            "members": size.members,
            "seasons": 1,
            "connections": CONNECTIONS,
            "events_per_call": EVENTS_PER_CALL,
            "seconds_per_round": size.seconds,
        },
        engines=versions(engines),
        rounds=rates,
        rounds_of="events/s from the first call until the last answer",
    )

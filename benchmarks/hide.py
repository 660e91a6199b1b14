"""From the call that hides a member until a reader is not shown it, idle and beside a load."""

import time
from collections.abc import Callable
from contextlib import ExitStack

import msgspec
import psycopg

import truerank
from benchmarks.load import Load, member_id
from benchmarks.pipeline import BOARD, EVENTS_PER_CALL, Truerank
from benchmarks.processes import Pipe, Task, ready, started
from benchmarks.result import Bar, Result, median, versions
from benchmarks.rounds import run_round
from truerank.embedded import Engines
from truerank.model import Source
from truerank.settings import Settings
from truerank.settings import load as load_settings

ROUNDS = 3

_HIDES_PER_S = 10.0
_POLL_S = 0.001
_MISSING_S_MAX = 10.0
_MS_MAX = 100.0
_HOUR_MS = 3_600_000
_HIDE = "SELECT truerank.set_member_state(%s, 'hide', 'benchmark', 'measured', %s)"


def hide(engines: Engines, progress: Callable[[str], None], *, short: bool) -> Result:
    """One process hides members of its own, one after the other, and asks for the place of each.

    Half of them on the board, half everywhere. The reader insists on the projection: nothing is
    won by asking PostgreSQL. The call's own time is part of what is measured.
    """
    members = 10_000 if short else 100_000
    seconds = 4.0 if short else 20.0
    ours = Truerank(engines, members)
    progress(f"a standing for each of {members:,} members")
    ours.prepare()
    progress("how much it takes when saturated")
    saturated = run_round(
        ours, engines.database_url, Load(members=members, seconds=seconds, seed="saturated")
    )
    rate = saturated.events_per_s / 4
    hides = int((seconds - 0.5) * _HIDES_PER_S)
    took: dict[str, list[list[float]]] = {"idle": [], "busy": []}
    for number in range(ROUNDS):
        for turn, (side, rounds) in enumerate(took.items()):
            progress(f"round {number + 1} of {ROUNDS}, {side}")
            load = Load(
                members=members,
                seconds=seconds,
                seed=f"{side}/{number}",
                rate=rate / 2 if side == "busy" else None,
            )
            first = (2 * number + turn) * hides
            rounds.append(_measure(engines, ours, load, range(first, first + hides)))
    middles = {side: [median(each) for each in rounds] for side, rounds in took.items()}
    largest = {side: [max(each) for each in rounds] for side, rounds in took.items()}
    return Result(
        name="hide",
        short=short,
        ratio=median(middles["busy"]) / median(middles["idle"]),
        ratio_of="median time beside a load by that without",
        bars=[
            Bar(of=f"{side}, {what} of a round, ms", value=median(values[side]), bar=_MS_MAX)
            for side in took
            for what, values in (("largest", largest), ("median", middles))
        ],
        sizes={
            "members": members,
            "hides_per_round": hides,
            "connections": 2,
            "events_per_call": EVENTS_PER_CALL,
            "events_per_s": rate,
            "seconds_per_round": seconds,
        },
        engines=versions(engines),
        rounds={
            f"{side}, {what}": values[side]
            for side in took
            for what, values in (("median", middles), ("largest", largest))
        },
        rounds_of="ms from the call until a reader is not shown the member",
        figures={"saturated, events/s": saturated.events_per_s},
    )


def _measure(engines: Engines, pipeline: Truerank, load: Load, numbers: range) -> list[float]:
    settings = load_settings(database_url=engines.database_url, redis_url=engines.redis_url)
    with ExitStack() as stack:
        stack.enter_context(started(pipeline.worker()))
        hider = stack.enter_context(started(Task(hiding, (settings, numbers))))
        tasks = pipeline.clients(load) if load.rate is not None else []
        clients = [stack.enter_context(started(task)) for task in tasks]
        for child in (*clients, hider):
            child.begin()
        took: list[float] = hider.result()
        for client in clients:
            client.result()
    return [seconds * 1000 for seconds in took]


def hiding(pipe: Pipe, settings: Settings, numbers: range) -> None:
    """A process that hides members, and hands back how long each was shown after the call."""
    took: list[float] = []
    assert settings.database_url is not None, "the engines have both"
    # It asks PostgreSQL once: the projection alone is to tell it.
    remembering = msgspec.structs.replace(settings, board_cache_ms=_HOUR_MS)
    with (
        psycopg.connect(settings.database_url, autocommit=True) as conn,
        truerank.Truerank(remembering) as client,
    ):

        def rank(member: str) -> int | None:
            return client.place(BOARD, member, source=Source.PROJECTION).places[0].rank

        while rank(member_id(numbers[0])) is None:  # the worker may have to begin
            time.sleep(_POLL_S)
        ready(pipe)
        due = time.monotonic()
        for number in numbers:
            # A little off with each, or all would fall on the same side of a tick.
            due += 1.03 / _HIDES_PER_S
            time.sleep(max(0.0, due - time.monotonic()))
            member, began = member_id(number), time.monotonic()
            conn.execute(_HIDE, (member, BOARD if number % 2 else None))
            while rank(member) is not None:
                assert time.monotonic() - began < _MISSING_S_MAX, "the member is shown still"
                time.sleep(_POLL_S)
            took.append(time.monotonic() - began)
    pipe.send(took)

"""From commit to visible, at a quarter of the rate that Truerank takes when saturated."""

import time
from collections.abc import Callable
from contextlib import ExitStack

import psycopg
import redis

import truerank
from benchmarks.load import Events, Load, Pace
from benchmarks.pipeline import BOARD, EVENTS_PER_CALL, Truerank
from benchmarks.processes import Pipe, Task, ready, started
from benchmarks.result import Bar, Result, median, percentile, versions
from benchmarks.rounds import run_round
from truerank.embedded import Engines
from truerank.model import ScoreEvent
from truerank.projection.keys import GroupKeys
from truerank.settings import load as load_settings

ROUNDS = 3

_PROBES_PER_S = 20.0
_POLL_S = 0.002
_OUTSTANDING_MAX = 32
_MISSING_S_MAX = 10.0


def lag(engines: Engines, progress: Callable[[str], None], *, short: bool) -> Result:
    """Probes beside the load: each an event of a member of its own, in a transaction of its own.

    One process commits them and notes when the answer came; another asks Valkey every 2 ms which
    of the next ones it shows. The two share nothing but the clock, so a probe that is late holds
    back no other.
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
    tick_ms = load_settings().tick_busy_ms
    medians, tails, done = [], [], []
    for number in range(ROUNDS):
        progress(f"round {number + 1} of {ROUNDS}: {rate:,.0f} events/s")
        load = Load(members=members, seconds=seconds, seed=f"paced/{number}", rate=rate / 2)
        lags, events = _probe(engines, ours, load, number)
        medians.append(median(lags) * 1000)
        tails.append(percentile(lags, 0.99) * 1000)
        done.append(events / seconds)
    ours.verify()
    middle, tail = median(medians), median(tails)
    return Result(
        name="lag",
        short=short,
        ratio=middle / tick_ms,
        ratio_of="median lag by the interval between ticks while busy",
        bars=[
            Bar(of="median lag, in tick intervals", value=middle / tick_ms, bar=2),
            Bar(of="99th percentile of lag, in tick intervals", value=tail / tick_ms, bar=4),
        ],
        sizes={
            "members": members,
            "seasons": 1,
            "connections": 2,
            "events_per_call": EVENTS_PER_CALL,
            "events_per_s": rate,
            "seconds_per_round": seconds,
            "probes_per_round": _probes(seconds),
            "tick_interval_ms": tick_ms,
        },
        engines=versions(engines),
        rounds={"median": medians, "99th percentile": tails},
        rounds_of="ms from the answer to commit until visible",
        figures={
            "saturated, events/s": saturated.events_per_s,
            "achieved beside the probes, events/s": median(done),
        },
    )


def _probe(
    engines: Engines, pipeline: Truerank, load: Load, number: int
) -> tuple[list[float], int]:
    probes = _probes(load.seconds)
    shown = _shown_key(engines)
    with ExitStack() as stack:
        stack.enter_context(started(pipeline.worker()))
        watcher = stack.enter_context(
            started(Task(watch, (engines.redis_url, shown, number, probes)))
        )
        prober = stack.enter_context(started(Task(commit, (engines.database_url, number, probes))))
        clients = [stack.enter_context(started(task)) for task in pipeline.clients(load)]
        for child in (watcher, *clients, prober):
            child.begin()
        committed = prober.result()
        submitted = [client.result() for client in clients]
        visible = watcher.result()
        pipeline.await_visible(submitted, beside=probes)
    lags = [seen - told for told, seen in zip(committed, visible, strict=True)]
    return lags, sum(part.events for part in submitted)


def _probes(seconds: float) -> int:
    # None at the very end, where the clients have stopped.
    return int((seconds - 0.5) * _PROBES_PER_S)


def _shown_key(engines: Engines) -> str:
    settings = load_settings(database_url=engines.database_url, redis_url=engines.redis_url)
    with (
        truerank.Truerank(settings) as client,
        redis.Redis.from_url(engines.redis_url) as server,
    ):
        keys = GroupKeys(settings.prefix, client.board(BOARD).group)
        generation = keys.generation(server.get(keys.pointer).decode())
        return generation.shown(client.season(BOARD).ranking)


def _member(number: int, probe: int) -> str:
    return f"p{number}{probe:08d}"


def commit(pipe: Pipe, database_url: str, number: int, probes: int) -> None:
    """A process that commits probes evenly, and hands back when each was acknowledged."""
    events = Events(f"probe/{number}", 1)
    acknowledged = []
    with psycopg.connect(database_url, autocommit=True) as conn:
        ready(pipe)
        # Half a tick off with every probe, or all would fall on the same side of one.
        pace = Pace(float("inf"), _PROBES_PER_S * 1.03)
        for probe in range(probes):
            pace.goes_on()
            (event_id,) = events.event_ids(1)
            event = ScoreEvent(event_id=event_id, member=_member(number, probe), value=1)
            truerank.submit_score(conn, BOARD, event)
            acknowledged.append(time.monotonic())
    pipe.send(acknowledged)


def watch(pipe: Pipe, redis_url: str, shown: str, number: int, probes: int) -> None:
    """A process that asks which probes are shown, and hands back when each was first seen."""
    seen: list[float] = []
    with redis.Redis.from_url(redis_url) as client:
        ready(pipe)
        since = time.monotonic()
        while len(seen) < probes and time.monotonic() - since < _MISSING_S_MAX:
            window = range(len(seen), min(len(seen) + _OUTSTANDING_MAX, probes))
            versions_shown = client.hmget(shown, [_member(number, probe) for probe in window])
            now = time.monotonic()
            # In the order of their commits, for one connection makes them one after the other.
            for version in versions_shown:
                if version is None:
                    break
                seen.append(now)
                since = now
            time.sleep(_POLL_S)
    pipe.send(seen)

"""How long it takes until answers are fresh again after the worker was away, under load."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import truerank
from benchmarks.load import Load
from benchmarks.pipeline import BOARD, EVENTS_PER_CALL, Truerank
from benchmarks.processes import started
from benchmarks.result import Bar, Result, median, percentile, versions
from truerank.embedded import Engines
from truerank.settings import load as load_settings

_EVENTS_PER_S = 5_000
_WARM_S, _NORMAL_S = 2.0, 4.0
_ANSWER_S_MAX = 40.0  # for the staleness to be normal again
_POLL_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outage:
    normal_ms: float
    stale_ms: float
    catch_up_s: float
    events_per_s: float


def catch_up(engines: Engines, progress: Callable[[str], None], *, short: bool) -> Result:
    """Events keep coming all the time, before, during and after the outage.

    Normal is what 99 of 100 answers were within before. The time begins when the process of the
    new worker is started, and ends with the first answer that is as fresh as that.
    """
    members = 10_000 if short else 100_000
    rounds, outage_s = (2, 6.0) if short else (3, 60.0)
    pipeline = Truerank(engines, members)
    progress(f"a standing for each of {members:,} members")
    pipeline.prepare()
    done = []
    for number in range(rounds):
        progress(f"round {number + 1} of {rounds}: {outage_s:g} s without a worker")
        load = Load(
            members=members,
            seconds=_WARM_S + _NORMAL_S + outage_s + _ANSWER_S_MAX / (4 if short else 1),
            seed=f"catch_up/{number}",
            rate=_EVENTS_PER_S / 2,
        )
        done.append(_outage(engines, pipeline, load, outage_s))
    progress("comparing Valkey with PostgreSQL")
    pipeline.verify()
    caught_up = [each.catch_up_s for each in done]
    return Result(
        name="catch_up",
        short=short,
        ratio=median(caught_up) / outage_s,
        ratio_of="time until the staleness is normal again by the length of the outage",
        bars=[Bar(of="s until the staleness is normal again", value=median(caught_up), bar=10)],
        sizes={
            "members": members,
            "seasons": 1,
            "events_per_s": _EVENTS_PER_S,
            "events_per_call": EVENTS_PER_CALL,
            "outage_s": outage_s,
        },
        engines=versions(engines),
        rounds={"catch-up": caught_up},
        rounds_of="s from the start of the worker's process",
        figures={
            "staleness before the outage, 99th percentile, ms": median([e.normal_ms for e in done]),
            "staleness at the end of the outage, ms": median([e.stale_ms for e in done]),
            "achieved, events/s": median([e.events_per_s for e in done]),
            "order in Valkey equals order in SQL": "yes, byte for byte",
        },
    )


def _outage(engines: Engines, pipeline: Truerank, load: Load, outage_s: float) -> _Outage:
    settings = load_settings(database_url=engines.database_url, redis_url=engines.redis_url)
    with ExitStack() as stack:
        client = stack.enter_context(truerank.Truerank(settings))
        clients = [stack.enter_context(started(task)) for task in pipeline.clients(load)]
        with started(pipeline.worker()):
            for child in clients:
                child.begin()
            time.sleep(_WARM_S)
            normal_ms = percentile(_watched(client, _NORMAL_S), 0.99)
        time.sleep(outage_s)
        stale_ms = _staleness_ms(client)
        began = time.monotonic()
        with started(pipeline.worker()):
            while _staleness_ms(client) > normal_ms:
                assert time.monotonic() < began + _ANSWER_S_MAX, "it does not catch up"
                time.sleep(_POLL_S)
            catch_up_s = time.monotonic() - began
            submitted = [child.result() for child in clients]
            pipeline.await_visible(submitted)
    events = sum(part.events for part in submitted)
    return _Outage(
        normal_ms=normal_ms,
        stale_ms=stale_ms,
        catch_up_s=catch_up_s,
        events_per_s=events / load.seconds,
    )


def _watched(client: truerank.Truerank, seconds: float) -> list[float]:
    seen, ends = [], time.monotonic() + seconds
    while time.monotonic() < ends:
        seen.append(_staleness_ms(client))
        time.sleep(_POLL_S)
    return seen


def _staleness_ms(client: truerank.Truerank) -> float:
    """As a reader is told; infinite where nothing is known."""
    staleness_ms = client.top(BOARD, limit=1, source="projection").freshness.staleness_ms
    return float("inf") if staleness_ms is None else float(staleness_ms)

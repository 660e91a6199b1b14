"""What a worker costs while nobody writes: CPU time of it and of the engines."""

import time
from collections.abc import Callable
from typing import Any

import psutil
import psycopg
import redis

from benchmarks.pipeline import Truerank
from benchmarks.processes import started
from benchmarks.result import Bar, Result, median, versions
from truerank.embedded import Engines

ROUNDS = 3

_SECONDS, _SECONDS_SHORT = 20.0, 5.0
_SETTLE_S = 2.0


def idle(engines: Engines, progress: Callable[[str], None], *, short: bool) -> Result:
    """A worker process that holds all groups of a board with standings, and has nothing to show."""
    members = 10_000 if short else 100_000
    seconds = _SECONDS_SHORT if short else _SECONDS
    pipeline = Truerank(engines, members)
    progress(f"a standing for each of {members:,} members")
    pipeline.prepare()
    percent: dict[str, list[float]] = {"worker": [], "PostgreSQL": [], "Valkey": []}
    with started(pipeline.worker()) as child:
        time.sleep(_SETTLE_S)
        with psycopg.connect(engines.database_url, autocommit=True) as conn:
            conn.execute("CHECKPOINT")  # what was written before is nobody's idleness
            groups = _groups(conn)
        watched = {
            "worker": psutil.Process(child.pid),
            "PostgreSQL": _postgres(engines),
            "Valkey": _valkey(engines),
        }
        for number in range(ROUNDS):
            progress(f"round {number + 1} of {ROUNDS}: {seconds:g} s")
            before = [cpu_s(process) for process in watched.values()]
            began = time.monotonic()
            time.sleep(seconds)
            for name, earlier in zip(watched, before, strict=True):
                used = cpu_s(watched[name]) - earlier
                percent[name].append(100 * used / (time.monotonic() - began))
    middles = {name: median(rounds) for name, rounds in percent.items()}
    return Result(
        name="idle",
        short=short,
        ratio=middles["worker"] / 100,
        ratio_of="CPU time of the worker process by time",
        bars=[
            Bar(of="CPU time of the worker process, % of a core", value=middles["worker"], bar=3)
        ],
        sizes={"groups": groups, "members": members, "seconds_per_round": seconds},
        engines=versions(engines),
        rounds=percent,
        rounds_of="CPU time, % of a core",
    )


def _groups(conn: psycopg.Connection[Any]) -> int:
    """How many groups are leased."""
    row = conn.execute("SELECT count(worker) FROM truerank.lease").fetchone()
    assert row is not None, "an aggregate returns one row"
    return int(row[0])


def _postgres(engines: Engines) -> psutil.Process:
    with psycopg.connect(engines.database_url) as conn:
        parent = psutil.Process(conn.info.backend_pid).parent()
    assert parent is not None, "a backend is a child of the server's first process"
    return parent


def _valkey(engines: Engines) -> psutil.Process:
    with redis.Redis.from_url(engines.redis_url) as client:
        return psutil.Process(int(client.info("server")["process_id"]))


def cpu_s(process: psutil.Process) -> float:
    """Seconds of CPU that a process and its children have used, those that ended among them."""
    total = 0.0
    for each in [process, *process.children(recursive=True)]:
        try:
            times = each.cpu_times()
        except psutil.NoSuchProcess:
            continue  # counted with its parent from now on
        total += times.user + times.system + times.children_user + times.children_system
    return total

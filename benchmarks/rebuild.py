"""How fast a new copy of a group is filled and switched to, and what readers notice of it."""

import time
from collections.abc import Callable
from typing import Any

import redis

import truerank
from benchmarks.pipeline import BOARD, Truerank
from benchmarks.processes import Pipe, Task, ready, started
from benchmarks.raw_redis import write_rate
from benchmarks.result import Bar, Result, median, percentile, versions
from truerank.embedded import Engines
from truerank.repair.rebuild import Rebuild, ask_rebuilds, rebuild_states
from truerank.settings import Settings
from truerank.settings import load as load_settings
from truerank.steps import Query

ROUNDS = 3
ROWS = 100

_READ_PAUSE_S = 0.002
_IDLE_S, _IDLE_S_SHORT = 10.0, 3.0
_POLL_S = 0.05
_REBUILD_S_MAX = 900.0
_THROTTLED_S_MAX = 60.0
_BEGAN = """
    SELECT extract(epoch FROM r.ended_at - g.made_at)::float8
    FROM truerank.rebuild AS r JOIN truerank.generation AS g ON g.id = r.generation
    WHERE r.id = %s"""


def rebuild(engines: Engines, progress: Callable[[str], None], *, short: bool) -> Result:
    """Rebuilds of one group beside raw Redis, then one with readers, who come first.

    A rebuild is timed by PostgreSQL's clock from when its copy was begun until readers read it:
    with the comparison of each standing with the source. Readers are one process that reads the
    top 100, two milliseconds after the answer before; without the rebuild, and beside it.
    """
    members = 100_000 if short else 1_000_000
    with redis.Redis.from_url(engines.redis_url) as server:
        Truerank(engines, 1, "first").prepare()  # so that every group has its copy
        empty = _dataset_bytes(server)
        ours = Truerank(engines, members)
        progress(f"a standing for each of {members:,} members")
        ours.prepare()
        generation = _dataset_bytes(server) - empty
        settings = load_settings(database_url=engines.database_url, redis_url=engines.redis_url)
        rates: dict[str, list[float]] = {"truerank": [], "raw Redis": []}
        peaks: list[float] = []
        with truerank.Truerank(settings) as client:
            for number in range(ROUNDS):
                progress(f"round {number + 1} of {ROUNDS}: raw Redis")
                rates["raw Redis"].append(write_rate(engines.redis_url, members))
                progress(f"round {number + 1} of {ROUNDS}: unthrottled")
                with started(ours.worker()):
                    seconds, peak = _rebuilt(client, server)
                rates["truerank"].append(members / seconds)
                peaks.append((peak - empty) / generation)
            progress("readers without a rebuild, and beside one that is throttled")
            idle_s = _IDLE_S_SHORT if short else _IDLE_S
            with started(ours.worker()):
                idle = _read_beside(settings, lambda: time.sleep(idle_s))[0]
                beside, throttled = _read_beside(settings, lambda: _throttled_rate(client))
        ours.verify()
    ratio = median(rates["truerank"]) / median(rates["raw Redis"])
    idle_ms, beside_ms = (percentile(each, 0.99) * 1000 for each in (idle, beside))
    return Result(
        name="rebuild",
        short=short,
        ratio=ratio,
        ratio_of="standings/s of an unthrottled rebuild by members/s of raw Redis",
        bars=[
            Bar(of="times the members/s of raw Redis", value=ratio, bar=0.8, at_least=True),
            Bar(
                of="ms that the p99 of pages is above the idle one while throttled",
                value=beside_ms - idle_ms, bar=5,
            ),
            Bar(of="times the memory of one generation, at most", value=max(peaks), bar=2.1),
        ],
        sizes={"members": members, "rows": ROWS},
        engines=versions(engines),
        rounds=rates,
        rounds_of="standings (raw Redis: members) per second",
        figures={
            "standings/s filled and checked while throttled": throttled,
            "p99 of a page, idle, ms": idle_ms,
            "p99 of a page, throttled rebuild, ms": beside_ms,
            "pages read beside the throttled rebuild": len(beside),
        },
    )  # fmt: skip


def _rebuilt(client: "truerank.Truerank", server: "redis.Redis") -> tuple[float, int]:
    """Rebuild the board's group; the seconds that took, and the largest dataset meanwhile."""
    request = _asked(client, throttled=False)
    deadline = time.monotonic() + _REBUILD_S_MAX
    peak = 0
    while not (found := _state(client, request)).ended:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the rebuild does not end: {found}")
        peak = max(peak, int(server.info("memory")["used_memory_dataset"]))
        time.sleep(_POLL_S)
    if found.state != "switched":
        raise RuntimeError(f"the rebuild failed: {found.message}")
    ((seconds,),) = client.run(_seconds(request))
    return float(seconds), peak


def _throttled_rate(client: "truerank.Truerank") -> float:
    """Standings per second of a throttled rebuild, as far as it gets in a while."""
    request = _asked(client, throttled=True)
    began = time.monotonic()
    while True:
        time.sleep(_POLL_S)
        found = _state(client, request)
        if found.ended:
            ((seconds,),) = client.run(_seconds(request))
            return float(found.rows / seconds)
        if time.monotonic() > began + _THROTTLED_S_MAX:
            # A standing is done when it is filled in and compared.
            return (found.rows + found.checked) / 2 / (time.monotonic() - began)


def _asked(client: "truerank.Truerank", *, throttled: bool) -> int:
    asked = ask_rebuilds(
        [client.board(BOARD).group], actor="benchmark", throttled=throttled, keep_ms=0
    )
    (request,) = client.run(asked)
    return request


def _state(client: "truerank.Truerank", request: int) -> Rebuild:
    (found,) = client.run(rebuild_states([request]))
    return found


def _seconds(request: int) -> Any:
    return (yield Query(_BEGAN, (request,)))


def _read_beside(settings: Settings, do: Callable[[], Any]) -> tuple[list[float], Any]:
    """Seconds of each page that a process reads while something is done, and what that gave."""
    with started(Task(read_pages, (settings,))) as reader:
        reader.begin()
        done = do()
        reader.begin()
        seconds: list[float] = reader.result()
    return seconds, done


def read_pages(pipe: Pipe, settings: Settings) -> None:
    """A process that reads the top until told to stop, and hands back how long each took."""
    seconds: list[float] = []
    with truerank.Truerank(settings) as client:
        client.top(BOARD, limit=ROWS)
        ready(pipe)
        while not pipe.poll(_READ_PAUSE_S):
            began = time.perf_counter()
            client.top(BOARD, limit=ROWS, source="projection")
            seconds.append(time.perf_counter() - began)
    pipe.send(seconds)


def _dataset_bytes(server: "redis.Redis") -> int:
    """The size of the dataset; what was unlinked is freed by a thread, so it is waited for."""
    last = -1
    while (size := int(server.info("memory")["used_memory_dataset"])) != last:
        last = size
        time.sleep(1.0)
    return size

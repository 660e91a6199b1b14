"""Reads from one client process, beside the plainest command that could answer them."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
import redis

import truerank
from benchmarks.load import member_id
from benchmarks.pipeline import Truerank
from benchmarks.processes import started
from benchmarks.raw_redis import write
from benchmarks.result import Bar, Result, median, versions
from truerank.embedded import Engines
from truerank.settings import load

ROUNDS = 3
ROWS = 100
PLACE = 1000  # of the member whose rank PostgreSQL is asked for

_SECONDS, _SECONDS_SHORT = 5.0, 1.0  # of each side in a round
_TURN_S = 0.1  # sides take turns: whatever else the machine does slows all of them
_WARM_CALLS = 5

Call = Callable[[], object]


def page(engines: Engines, progress: Callable[[str], None], *, short: bool) -> Result:
    """The top 100, decoded with ranks and freshness, beside a bare ZRANGE of 100."""
    members = 10_000 if short else 100_000
    with _readers(engines, members) as (client, bare):
        sides: dict[str, Call] = {
            "truerank": lambda: client.top("bench", limit=ROWS, source="projection"),
            "ZRANGE": lambda: bare.zrange("raw:ranking", 0, ROWS - 1, withscores=True),
        }
        rates = _measure(sides, progress, short=short)
    return _result(
        engines, "page", rates, "ZRANGE", bar=0.7, short=short, sizes={"members": members}
    )


def own_rank(engines: Engines, progress: Callable[[str], None], *, short: bool) -> Result:
    """One member's place, score and freshness, beside a bare ZRANK; another member each time."""
    members = 10_000 if short else 100_000
    with _readers(engines, members) as (client, bare):
        ours, theirs = _names(members), _names(members)
        sides: dict[str, Call] = {
            "truerank": partial(_next_place, client, "bench", ours),
            "ZRANK": lambda: bare.zrank("raw:ranking", next(theirs)),
        }
        rates = _measure(sides, progress, short=short)
    return _result(
        engines, "own_rank", rates, "ZRANK", bar=0.5, short=short, sizes={"members": members}
    )


def depth(engines: Engines, progress: Callable[[str], None], *, short: bool) -> Result:
    """What a rank and a page in the middle cost on a large board, beside a small one."""
    small, large = (10_000, 100_000) if short else (10_000, 3_000_000)
    rates: dict[str, list[float]] = {}
    for members in (small, large):
        progress(f"{members:,} members")
        Truerank(engines, members, f"of {members}").prepare()
    with _client(engines) as client:
        sides: dict[str, Call] = {}
        for members in (small, large):
            names = _names(members)
            board = f"of {members}"
            sides[f"rank of {members:,}"] = partial(_next_place, client, board, names)
            sides[f"page of {members:,}"] = partial(
                client.top, board, offset=members // 2, limit=ROWS, source="projection"
            )
        rates = _measure(sides, progress, short=short)
    middles = {side: median(rounds) for side, rounds in rates.items()}
    ratios = {
        what: middles[f"{what} of {small:,}"] / middles[f"{what} of {large:,}"]
        for what in ("rank", "page")
    }
    return Result(
        name="depth",
        short=short,
        ratio=max(ratios.values()),
        ratio_of=f"time at {large:,} members by time at {small:,}",
        bars=[
            Bar(of=f"times the time of a {what} at {small:,} members", value=ratio, bar=2)
            for what, ratio in ratios.items()
        ],
        sizes={"members": large, "rows": ROWS},
        engines=versions(engines),
        rounds=rates,
        rounds_of="answers per second",
    )


def fallback(engines: Engines, progress: Callable[[str], None], *, short: bool) -> Result:
    """What PostgreSQL takes for the same answers, beside the projection."""
    members = 10_000 if short else 100_000
    with _readers(engines, members) as (client, _):
        (entry,) = client.around("bench", rank=PLACE, limit=1, numbering="ordinal").around
        sides: dict[str, Call] = {}
        for source in ("projection", "database"):
            sides[f"top {ROWS}, {source}"] = partial(client.top, "bench", limit=ROWS, source=source)
            sides[f"rank {PLACE}, {source}"] = partial(
                client.place, "bench", entry.member, source=source
            )
        rates = _measure(sides, progress, short=short)
    middles = {side: median(rounds) for side, rounds in rates.items()}
    top = middles[f"top {ROWS}, projection"] / middles[f"top {ROWS}, database"]
    rank = middles[f"rank {PLACE}, projection"] / middles[f"rank {PLACE}, database"]
    return Result(
        name="fallback",
        short=short,
        ratio=top,
        ratio_of="time of PostgreSQL by time of the projection",
        bars=[
            Bar(of=f"times the projection's time for the top {ROWS}", value=top, bar=1.5),
            Bar(of=f"times the projection's time for the rank at place {PLACE}", value=rank, bar=5),
        ],
        sizes={"members": members, "rows": ROWS, "place": PLACE},
        engines=versions(engines),
        rounds=rates,
        rounds_of="answers per second",
    )


@contextmanager
def _readers(engines: Engines, members: int) -> Iterator[tuple["truerank.Truerank", "redis.Redis"]]:
    """A client of a filled board with a worker beside it, and one of a plain sorted set."""
    pipeline = Truerank(engines, members)
    pipeline.prepare()
    with psycopg.connect(engines.database_url, autocommit=True) as conn:
        # As autovacuum does within a minute: else each run finds another state.
        conn.execute("VACUUM (ANALYZE) truerank.standing")
    with (
        started(pipeline.worker()),
        _client(engines) as client,
        redis.Redis.from_url(engines.redis_url) as bare,
    ):
        write(bare, "raw", [member_id(number) for number in range(members)])
        yield client, bare


def _client(engines: Engines) -> "truerank.Truerank":
    settings = load(database_url=engines.database_url, redis_url=engines.redis_url)
    return truerank.Truerank(settings)


def _next_place(client: "truerank.Truerank", board: str, names: Iterator[str]) -> object:
    return client.place(board, next(names), source="projection")


def _names(members: int) -> Iterator[str]:
    """Members in a random order that is the same for all sides."""
    draw = random.Random("names")
    while True:
        yield member_id(draw.randrange(members))


def _measure(
    sides: Mapping[str, Call], progress: Callable[[str], None], *, short: bool
) -> dict[str, list[float]]:
    """Answers per second of each side, in turns."""
    turns = round((_SECONDS_SHORT if short else _SECONDS) / _TURN_S)
    rates: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(ROUNDS):
        progress(f"round {number + 1} of {ROUNDS}")
        counts = dict.fromkeys(sides, 0)
        seconds = dict.fromkeys(sides, 0.0)
        for _ in range(turns):
            for side, call in sides.items():
                count, took_s = _turn(call)
                counts[side] += count
                seconds[side] += took_s
        for side, count in counts.items():
            rates[side].append(count / seconds[side])
    return rates


def _turn(call: Call) -> tuple[int, float]:
    """How many calls there were, and in how many seconds."""
    for _ in range(_WARM_CALLS):
        call()
    count, began = 0, time.perf_counter()
    while (now := time.perf_counter()) < began + _TURN_S:
        call()
        count += 1
    return count, now - began


def _result(
    engines: Engines,
    name: str,
    rates: dict[str, list[float]],
    baseline: str,
    *,
    bar: float,
    short: bool,
    sizes: Mapping[str, Any],
) -> Result:
    ratio = median(rates["truerank"]) / median(rates[baseline])
    return Result(
        name=name,
        short=short,
        ratio=ratio,
        ratio_of=f"answers/s by {baseline}/s, through the same client library",
        bars=[Bar(of=f"times the rate of a bare {baseline}", value=ratio, bar=bar, at_least=True)],
        sizes={**sizes, "rows": ROWS},
        engines=versions(engines),
        rounds=rates,
        rounds_of="answers per second, one client process",
    )

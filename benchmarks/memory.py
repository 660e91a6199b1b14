"""Bytes that Valkey uses per member, beside the plainest ranking that could be kept in it."""

import time
from collections.abc import Callable

import redis

from benchmarks.load import MEMBER_CHARS, member_id
from benchmarks.pipeline import Truerank
from benchmarks.raw_redis import write
from benchmarks.result import Bar, Result, median, versions
from truerank.embedded import Engines

ROUNDS = 3

_SETTLED_S = 1.0
_SETTLE_S_MAX = 20.0


def memory(engines: Engines, progress: Callable[[str], None], *, short: bool) -> Result:
    """Used memory before and after, by INFO: the dataset, without buffers and connections."""
    members = 10_000 if short else 100_000
    names = [member_id(number) for number in range(members)]
    bytes_per_member: dict[str, list[float]] = {"truerank": [], "raw redis": []}
    with redis.Redis.from_url(engines.redis_url) as client:
        # So that every group has its copy before anything is measured.
        Truerank(engines, 1, "first").prepare()
        for number in range(ROUNDS):
            progress(f"round {number + 1} of {ROUNDS}: Truerank")
            before = _dataset_bytes(client)
            Truerank(engines, members, f"memory-{number}").prepare()
            after = _dataset_bytes(client)
            bytes_per_member["truerank"].append((after - before) / members)
            progress(f"round {number + 1} of {ROUNDS}: raw Redis")
            write(client, f"raw:{number}", names)
            bytes_per_member["raw redis"].append((_dataset_bytes(client) - after) / members)
    ours, raw = median(bytes_per_member["truerank"]), median(bytes_per_member["raw redis"])
    return Result(
        name="memory",
        short=short,
        ratio=ours / raw,
        ratio_of="bytes of Truerank by bytes of raw Redis (ZADD of a double and HSET)",
        bars=[Bar(of="bytes in Valkey per member", value=ours, bar=170)],
        sizes={"members": members, "member_chars": MEMBER_CHARS, "seasons": 1},
        engines=versions(engines),
        rounds=bytes_per_member,
        rounds_of="bytes per member",
    )


def _dataset_bytes(client: "redis.Redis") -> int:
    """The size of the dataset, once tables that grew have been moved over."""
    last, since = -1, time.monotonic()
    deadline = since + _SETTLE_S_MAX
    while time.monotonic() < deadline:
        size = int(client.info("memory")["used_memory_dataset"])
        if size != last:
            last, since = size, time.monotonic()
        elif time.monotonic() - since > _SETTLED_S:
            return size
        time.sleep(0.1)
    raise TimeoutError("the size of the dataset does not settle")

"""Redis with nothing around it: one ZADD and one HSET per member, pipelined 500 at a time."""

import time
from collections.abc import Sequence

import redis

from benchmarks.load import member_id

_PIPELINED = 500


def write(client: "redis.Redis", stem: str, members: Sequence[str]) -> None:
    """Write a score and a version for each member."""
    for i in range(0, len(members), _PIPELINED):
        calls = client.pipeline(transaction=False)
        for number, member in enumerate(members[i : i + _PIPELINED], i):
            calls.zadd(f"{stem}:ranking", {member: number % 9973})
            calls.hset(f"{stem}:versions", member, str(number))
        calls.execute()


def write_rate(redis_url: str, members: int) -> float:
    """Members per second that one process writes; what it wrote is removed again."""
    names = [member_id(number) for number in range(members)]
    with redis.Redis.from_url(redis_url) as client:
        began = time.monotonic()
        write(client, "raw:rate", names)
        seconds = time.monotonic() - began
        client.unlink("raw:rate:ranking", "raw:rate:versions")
    return members / seconds

"""The one subscription of a process outlives whatever happens in it."""

import asyncio
from typing import Any

import redis
import structlog

from truerank.projection.keys import GroupKeys
from truerank.serve.feed import Feed
from truerank.settings import Settings

BOARD, GROUP = 7, 3
HINT = f"{BOARD} 1:0d6f1c3e-0000-4000-8000-000000000000 {'0' * 32} {BOARD << 36 | 1 << 32 | 2**31}"


async def test_a_failure_nobody_foresaw_is_logged_and_the_subscription_goes_on(
    settings: Settings,
) -> None:
    assert settings.redis_url is not None
    feed = Feed(settings.redis_url, prefix=settings.prefix, timeout_ms=5000)
    channel = GroupKeys(settings.prefix, GROUP).hints

    def fail(hint: Any) -> None:
        raise LookupError(f"no room for {hint}")

    with structlog.testing.capture_logs() as logs, redis.Redis.from_url(settings.redis_url) as conn:
        async with feed.listen(BOARD, GROUP) as bad:
            bad.add = fail  # type: ignore[method-assign]  # stands for any defect
            bad.began = True
            bad.woken.clear()
            assert conn.publish(channel, HINT) == 1
            async with asyncio.timeout(10):
                await bad.woken.wait()  # told of the loss: it is subscribed again

        async with feed.listen(BOARD, GROUP) as good:
            good.woken.clear()
            assert conn.publish(channel, HINT) == 1
            async with asyncio.timeout(10):
                await good.woken.wait()
        await feed.close()

    crash = next(entry for entry in logs if entry["event"] == "hints_crashed")
    assert (crash["log_level"], crash["exc_info"]) == ("error", True)

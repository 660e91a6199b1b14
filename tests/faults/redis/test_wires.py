"""The way to Redis is cut, silent or slow."""

from collections.abc import Callable

import pytest

from tests.faults.proxy import Proxy
from tests.faults.redis.scene import scene
from truerank.settings import Settings


@pytest.mark.parametrize("harm", [Proxy.refuse, Proxy.hold, Proxy.swallow_replies])
def test_a_server_out_of_reach_is_answered_for_by_postgresql(
    settings: Settings, redis_url: str, note: Callable[[str], None], harm: Callable[[Proxy], None]
) -> None:
    with scene(settings, redis_url, note) as trouble:
        trouble.harm(lambda: harm(trouble.proxy))
        trouble.await_fallback()

        trouble.mend(trouble.proxy.mend)


def test_connections_that_are_cut_all_the_time_stop_nothing(
    settings: Settings, redis_url: str, note: Callable[[str], None]
) -> None:
    with scene(settings, redis_url, note) as trouble:
        for _ in range(20):
            trouble.harm(trouble.proxy.cut)
            trouble.watch.await_answer(trouble.harmed_at)

        trouble.mend()


def test_a_slow_server_costs_time_and_nothing_else(
    settings: Settings, redis_url: str, note: Callable[[str], None]
) -> None:
    with scene(settings, redis_url, note) as trouble:
        trouble.proxy.delay_s = 0.05
        trouble.harm(trouble.proxy.cut)
        trouble.watch.await_traffic(trouble.harmed_at)
        trouble.watch.await_whole(trouble.harmed_at)

        trouble.proxy.delay_s = 0.0
        trouble.mend()

"""A worker, readers and a writer around the Redis server of one test, with a proxy before it."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import msgspec
import redis

from tests.faults.proxy import Proxy, redis_through
from tests.faults.watching import Watching, make_boards, watching
from tests.projection.pipeline import Pipeline, differences, pipeline, wait_until
from truerank.local import running_worker
from truerank.model import Source
from truerank.settings import Settings


@dataclass(slots=True, kw_only=True)
class Scene:
    """What a test harms, and what watches it."""

    settings: Settings  # through the proxy
    proxy: Proxy
    pipeline: Pipeline  # past the proxy
    redis: redis.Redis  # past the proxy; may do everything
    watch: Watching
    note: Callable[[str], None]
    harmed_at: float = 0.0

    def harm(self, do: Callable[[], object]) -> None:
        """Do harm, and remember since when."""
        self.harmed_at = time.monotonic()
        do()

    def await_fallback(self) -> None:
        """Wait until readers have been answered by PostgreSQL, and a good deal was written."""
        self.watch.await_answer_from(Source.DATABASE, self.harmed_at)
        self.watch.await_traffic(self.harmed_at)

    def mend(self, do: Callable[[], object] = lambda: None) -> None:
        """Undo the harm, wait until Redis answers for everything; note how long it took."""
        do()
        whole_s = self.watch.await_whole(time.monotonic())
        slowest_s = self.watch.slowest_s(self.harmed_at)
        self.note(f"whole again after {whole_s:5.2f} s, slowest answer {slowest_s:5.2f} s")


@contextmanager
def scene(
    settings: Settings, url: str, note: Callable[[str], None], *, admin_url: str | None = None
) -> Iterator[Scene]:
    """Watch a whole pipeline whose Redis a test may harm; at the end both stores must agree.

    The test mends what it harmed; nothing else may be needed.

    Args:
        settings: without an address of Redis.
        url: of a server without keys of Truerank.
        note: keeps the times that were measured.
        admin_url: as a user who may do everything, where `url` may not.
    """
    with ExitStack() as stack:
        proxy, through = stack.enter_context(redis_through(url))
        past = stack.enter_context(
            pipeline(msgspec.structs.replace(settings, redis_url=admin_url or url), groups=2)
        )
        settings = msgspec.structs.replace(settings, redis_url=through)
        make_boards(past)
        stack.enter_context(running_worker(settings))
        with watching(settings) as watch:
            watch.await_whole(time.monotonic())
            yield Scene(
                settings=settings,
                proxy=proxy,
                pipeline=past,
                redis=past.redis,
                watch=watch,
                note=note,
            )
        wait_until(lambda: not _differences(past), "both stores agree")


def _differences(past: Pipeline) -> list[str]:
    return [found for found in differences(past) if "foreign" not in found]

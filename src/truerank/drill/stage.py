"""Engines, workers and clients of one act, in a folder of its own; all of it ends with the act."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import redis

from truerank.client import Truerank
from truerank.drill.processes import Worker, wait_for, worker
from truerank.drill.watching import Watch
from truerank.embedded import Engines, start_engines
from truerank.errors import TruerankError
from truerank.model import Outcome, Receipt, ScoreEvent, Source
from truerank.projection.keys import GenerationKeys, GroupKeys
from truerank.schema.migrate import migrate
from truerank.settings import Settings

BOARD = "drill"
_SIGN = 1 << 63
_ROWS = 1000


class Stage:
    """What an act plays on. It owns a data folder, and nothing else.

    Args:
        folder: made by `prepared`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running = ExitStack()
        self._workers = ExitStack()
        self._numbers = count(1)
        self.engines: Engines
        self.settings: Settings
        self.client: Truerank
        self.redis: redis.Redis
        self.conn: psycopg.Connection[Any]

    def start(self) -> None:
        """Start the engines, and connect to them."""
        self._running = ExitStack()
        self.engines = self._running.enter_context(start_engines(self.folder, durable=False))
        self.settings = Settings(
            database_url=self.engines.database_url,
            redis_url=self.engines.redis_url,
            board_cache_ms=1,
            lease_ms=1000,  # so that an act needn't wait long for the groups of a killed worker
        )
        self.client = self._running.enter_context(Truerank(self.settings))
        self.redis = self._running.enter_context(redis.Redis.from_url(self.engines.redis_url))
        self.conn = self._running.enter_context(
            psycopg.connect(self.engines.database_url, autocommit=True)
        )

    def close(self) -> None:
        """End all workers, connections and engines."""
        self.dismiss_workers()
        self._running.close()

    @contextmanager
    def halted(self) -> Iterator[Path]:
        """Everything stands still in the block: its files may be copied and put back."""
        self.close()
        yield self.folder
        self.start()

    def worker(
        self,
        crash_at: str | None = None,
        *,
        ready: bool = True,
        redis_url: str | None = None,
        **environ: str,
    ) -> Worker:
        """Start a worker.

        Args:
            crash_at: where it dies or stops; see `truerank.crashpoints`.
            ready: wait until it keeps the projection up to date.
            redis_url: the way to Redis; None: as the engines are found.
            environ: further variables.
        """
        made = self._workers.enter_context(
            worker(
                self.settings,
                self.folder,
                crash_at=crash_at,
                redis_url=redis_url,
                further=environ,
            )
        )
        if ready:
            wait_for(lambda: made.is_ready, "the worker is ready")
        return made

    def dismiss_workers(self) -> None:
        """End all workers."""
        self._workers.close()
        self._workers = ExitStack()

    def submit(self, scores: dict[str, int], client: Truerank | None = None) -> list[Receipt]:
        """One event for each member, in one transaction; none may be refused."""
        events = [
            ScoreEvent(event_id=f"event-{next(self._numbers)}", member=member, value=value)
            for member, value in scores.items()
        ]
        receipts = (client or self.client).submit_scores(BOARD, events)
        assert all(receipt.outcome is Outcome.APPLIED for receipt in receipts), "ids are new"
        return receipts

    def scores(self, source: Source) -> dict[str, str] | None:
        """The whole board in one store; None: it can't be read there."""
        try:
            page = self.client.top(BOARD, limit=_ROWS, source=source)
        except TruerankError:
            return None
        return {entry.member: entry.score for entry in page.entries}

    def is_whole(self) -> bool:
        """Whether any reader is answered by Redis, and with what PostgreSQL has."""
        page = self.client.top(BOARD, limit=_ROWS)
        if page.freshness.source is not Source.PROJECTION or page.freshness.partial:
            return False
        shown = {entry.member: entry.score for entry in page.entries}
        return shown == self.scores(Source.DATABASE)

    def watch(self) -> Watch:
        """A reader of the board."""
        return Watch(self.client, BOARD)

    @property
    def ranking(self) -> int:
        """The board's only ranking."""
        ranking = self.client.season(BOARD).ranking
        assert ranking is not None, "PostgreSQL gives each season its number"
        return ranking

    @property
    def group(self) -> GroupKeys:
        """The keys of the board's group."""
        return GroupKeys(self.settings.prefix, self.client.board(BOARD).group)

    def live(self) -> str:
        """The generation that readers read; empty: none."""
        pointer: Any = self.redis.get(self.group.pointer)
        return (pointer or b"").decode()

    def copy(self, generation: str | None = None) -> GenerationKeys:
        """The keys of a copy of the board's group; of the live one."""
        return self.group.generation(generation or self.live())

    def meta(self, field: str, generation: str | None = None) -> str:
        """What the meta of a copy says."""
        value: Any = self.redis.hget(self.copy(generation).meta, field)
        return (value or b"").decode()

    def shown_score(self, member: str, generation: str) -> str | None:
        """The score that a copy holds of a member, whether or not readers read that copy."""
        shown: Any = self.redis.hget(self.copy(generation).shown(self.ranking), member)
        return str(~(int.from_bytes(shown[8:16]) - _SIGN)) if shown and len(shown) > _BARE else None

    def forge(self, member: str, score: int) -> None:
        """Change a score in Redis by hand, so that nothing there contradicts it."""
        copy, ranking = self.copy(), self.ranking
        shown: Any = self.redis.hget(copy.shown(ranking), member)
        forged = (~score + _SIGN).to_bytes(8) + shown[16:]
        self.redis.zrem(copy.places(ranking), shown[8:] + member.encode())
        self.redis.zadd(copy.places(ranking), {forged + member.encode(): 0})
        self.redis.hset(copy.shown(ranking), member, shown[:8] + forged)


_BARE = 8  # bytes of a version without a score


def prepared(folder: Path) -> Engines:
    """Make a data folder with a migrated database and an empty Redis; say what was started."""
    with start_engines(folder, durable=False) as engines:
        migrate(engines.database_url)
        with Truerank(
            Settings(database_url=engines.database_url, redis_url=engines.redis_url)
        ) as client:
            client.create_board(BOARD, seasons=["all"])
        return engines


def duplicate(folder: Path, to: Path) -> None:
    """Copy a folder with the owners of its files, which the engines insist on."""
    program = shutil.which("cp")
    assert program is not None, "every system with a shell has it"
    subprocess.run([program, "-a", str(folder), str(to)], check=True)


@contextmanager
def stage(model: Path, folder: Path) -> Iterator[Stage]:
    """A stage on a copy of a prepared data folder, started; gone at the end of the block."""
    duplicate(model, folder)
    made = Stage(folder)
    try:
        made.start()
        yield made
    finally:
        made.close()
        shutil.rmtree(folder)

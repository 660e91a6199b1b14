"""A whole installation under observation: stores, processes that may die, traffic, one history."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.history.checker import check
from tests.history.history import Source, now_us
from tests.history.nursery import Nursery
from tests.history.recorder import DAYS, Board, Recorder, Traffic, install_log, read_source
from tests.projection.pipeline import Pipeline, differences

DEADLINE_S = 60.0
_POLL_S = 0.005
BOARDS = (
    Board("sum", ("all", *DAYS)),
    Board("best", ("all",)),
    Board("latest", ("all", DAYS[0])),
)


class Scene:
    """Two groups with three boards, each of another operator, and nothing running.

    Args:
        made: stores and client.
        nursery: of processes.
        folder: where a history is left that breaks a promise.
    """

    boards = BOARDS

    def __init__(self, made: Pipeline, nursery: Nursery, folder: Path) -> None:
        self.pipeline = made
        self.settings = made.settings
        self.conn = made.conn
        self.nursery = nursery
        self.recorder = Recorder(made.client)
        self.pieces: dict[str, Any] = {}  # settings of workers: how much they do at once
        self._folder = folder
        self._workers: list[int] = []
        install_log(self.conn)
        for group, board in enumerate(BOARDS):
            kinds = ["all", "day"] if len(board.seasons) > 1 else ["all"]
            made.client.create_board(board.key, operator=board.key, seasons=kinds)
            self.conn.execute(
                "UPDATE truerank.board SET grp = %s WHERE key = %s", (group % 2, board.key)
            )

    def start_worker(self, *, crash_at: str = "") -> int:
        """Start a worker that dies at one point, or doesn't."""
        settings = msgspec.structs.replace(self.settings, **self.pieces)
        pid = self.nursery.start("work", settings, crash_at=crash_at)
        self._workers.append(pid)
        return pid

    def traffic(self, seed: int, **changes: Any) -> Traffic:
        """Writers and readers of all boards."""
        return Traffic(self.recorder, self.boards, seed=seed, **changes)

    def project(self) -> None:
        """Bring the projection up to date in this process, and hold no leases after it."""
        self.pipeline.settle(self.pipeline.projector(lease_ms=3_600_000, **self.pieces))
        self.pipeline.free_leases()

    def damage_rankings(self) -> None:
        """Let every ranking in Redis be known as damaged: its group is filled anew."""
        for group in range(2):
            generation = self.pipeline.generation(group)
            if generation is not None:
                counts = self.pipeline.keys(group).generation(generation).counts
                rankings: Any = self.pipeline.redis.hkeys(counts)
                for ranking in rankings:
                    self.pipeline.redis.hset(counts, ranking, "damaged")

    def saved(self) -> dict[bytes, bytes]:
        """All that Redis holds at this moment, as a replica has it that is cut off now."""
        client = self.pipeline.redis
        keys: list[bytes] = list(client.scan_iter())
        with client.pipeline(transaction=True) as together:
            for key in keys:
                together.dump(key)
            values: list[Any] = together.execute()
        return {key: value for key, value in zip(keys, values, strict=True) if value is not None}

    def go_back(self, saved: dict[bytes, bytes]) -> None:
        """Let Redis be as it was when that was saved, as after a failover to that replica."""
        at_us = now_us()
        with self.pipeline.redis.pipeline(transaction=True) as together:
            together.flushdb()
            for key, value in saved.items():
                together.restore(key, 0, value)
            together.execute()
        self.recorder.mark("went_back", at_us=at_us, until_us=now_us())

    def close(self, board: str, season: str) -> None:
        """Close a season, and only then call it closed."""
        self.recorder.close(board, season)
        row = self.conn.execute("SELECT pg_current_snapshot()::text").fetchone()
        assert row is not None
        self.recorder.mark("closed", board=board, season=season, snapshot=str(row[0]))

    def look(self) -> None:
        """Read everything once, as it is now."""
        for board in self.boards:
            for season in board.seasons:
                for mode in ("projection", "any"):
                    self.recorder.read("look", board.key, season, mode)

    def acknowledged_since(self, number: int) -> int:
        """How many commands were acknowledged since there were so many."""
        return len(self.recorder.history.acknowledged) - number

    def let_pass(self, commands: int) -> None:
        """Wait until so many more commands were acknowledged."""
        before = len(self.recorder.history.acknowledged)
        wait_until(lambda: self.acknowledged_since(before) >= commands, "commands go through")

    def finish(self, traffic: Traffic, *, seed: int) -> Source:
        """End the writers, wait until both ends are equal, and judge all that was seen."""
        traffic.stop("write")
        self.recorder.mark("stopped", tick=self._newest_tick())
        left = wait_for(lambda: differences(self.pipeline))
        if not left:
            self.recorder.mark("settled", tick=self._newest_tick())
        traffic.stop("read")
        for board in self.boards:
            for season in board.seasons:
                self.recorder.read("final", board.key, season, "final")
        return self.judge(seed=seed, left=left)

    def judge(self, *, seed: int, left: object = ()) -> Source:
        """Fail with what the checker finds, and keep the history for whoever looks into it."""
        source = read_source(self.conn)
        violations = check(self.recorder.history, source)
        if violations:
            path = self._folder / "history.json"
            path.write_bytes(msgspec.json.encode((self.recorder.history, source)))
            listed = "\n".join(f"{v.invariant}: {v.what[:400]}" for v in violations[:10])
            raise AssertionError(
                f"TRUERANK_SEED={seed}: {len(violations)} violations, all in {path}\n"
                f"differences at the end: {left!s:.1000}\n{listed}"
            )
        return source

    def _newest_tick(self) -> int:
        row = self.conn.execute("SELECT coalesce(max(id), 0) FROM history.tick").fetchone()
        assert row is not None
        return int(row[0])


@contextmanager
def scene(made: Pipeline, nursery: Nursery, folder: Path) -> Iterator[Scene]:
    """A scene whose processes end with the block."""
    with ExitStack() as stack:
        stack.callback(nursery.kill_all)
        yield Scene(made, nursery, folder)


def wait_until(condition: Callable[[], object], awaited: str) -> None:
    """Wait for something true; fail with what was awaited where it stays away."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"still not true: {awaited}"
        time.sleep(_POLL_S)


def wait_for(look: Callable[[], list[str]]) -> list[str]:
    """Look until nothing is found, or the deadline passes; what was found last."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        began = time.monotonic()
        found = look()
        if not found or began > deadline:
            return found
        # Looking must not be what the worker waits for.
        time.sleep(max(_POLL_S, time.monotonic() - began))

"""What goes wrong in a random schedule: processes die or stand still, stores lose and cut off."""

import random
import signal
import time
from collections.abc import Callable
from datetime import timedelta

import truerank
from tests.history.recorder import FIRST_DAY, random_event
from tests.history.scene import Scene
from truerank.crashpoints import CRASH_POINTS
from truerank.model import ScoreEvent

RACE = "race"
_WORKERS_MAX = 2
_POINTS = [name for name, _ in CRASH_POINTS]
_POINTS = _POINTS[: _POINTS.index("before_submit")]  # those that a worker comes by
_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'truerank%'"""


class Trouble:
    """Makes trouble for a scene, each time another kind, as its random numbers say.

    Args:
        scene: with a Redis of its own.
        rng: seeded.
    """

    def __init__(self, scene: Scene, rng: random.Random) -> None:
        self._scene = scene
        self._rng = rng
        self._running: list[int] = []
        self._still: list[int] = []
        self._saved: dict[bytes, bytes] | None = None
        self._bared: set[bytes] = set()
        self._slow = scene.pipeline.connection()
        self._slow_events: list[ScoreEvent] = []
        self._numbers = iter(range(1_000_000))
        self._kinds: list[tuple[int, Callable[[], object]]] = [
            (6, self._start_worker),
            (3, self._start_doomed_worker),
            (4, self._kill),
            (4, self._stop),
            (5, self._go_on),
            (2, self._flush_all),
            (2, self._forget_scripts),
            (2, self._cut_redis),
            (3, self._cut_postgres),
            (3, self._damage),
            (3, self._evict),
            (2, self._save),
            (2, self._go_back),
            (6, self._write_slowly),
        ]
        start, end = FIRST_DAY + timedelta(hours=6), FIRST_DAY + timedelta(hours=40)
        scene.pipeline.client.create_season("sum", RACE, start, end)

    def make(self, seconds: float) -> None:
        """Make trouble for so long; then all that stood still goes on, and a worker runs."""
        began = time.monotonic()
        closed = False
        while (passed := time.monotonic() - began) < seconds:
            weights, kinds = zip(*self._kinds, strict=True)
            self._rng.choices(kinds, weights)[0]()
            time.sleep(self._rng.uniform(0, 0.15))
            if not closed and passed > seconds / 2:
                self._scene.close("sum", RACE)
                closed = True
        self._end_slow_write()
        while self._still:
            self._go_on()
        while self._running:
            self._kill()
        self._scene.start_worker()

    def _start_worker(self) -> None:
        self._bury()
        if len(self._running) + len(self._still) < _WORKERS_MAX:
            self._running.append(self._scene.start_worker())

    def _start_doomed_worker(self) -> None:
        self._bury()
        if len(self._running) + len(self._still) < _WORKERS_MAX:
            at = f"{self._rng.choice(_POINTS)}:{self._rng.randrange(1, 6)}"
            self._running.append(self._scene.start_worker(crash_at=at))

    def _bury(self) -> None:
        ended = self._scene.nursery.ended
        self._running = [pid for pid in self._running if ended(pid) is None]

    def _kill(self) -> None:
        self._bury()
        if self._running:
            killed = self._running.pop(self._rng.randrange(len(self._running)))
            self._scene.nursery.signal(killed, signal.SIGKILL)
            self._scene.nursery.wait(killed)

    def _stop(self) -> None:
        self._bury()
        if self._running:
            pid = self._running.pop(self._rng.randrange(len(self._running)))
            self._scene.nursery.signal(pid, signal.SIGSTOP)
            self._still.append(pid)

    def _go_on(self) -> None:
        if self._still:
            pid = self._still.pop(self._rng.randrange(len(self._still)))
            self._scene.nursery.signal(pid, signal.SIGCONT)
            self._running.append(pid)

    def _flush_all(self) -> None:
        self._scene.pipeline.redis.flushall()

    def _forget_scripts(self) -> None:
        self._scene.pipeline.redis.script_flush()

    def _cut_redis(self) -> None:
        self._scene.pipeline.redis.execute_command("CLIENT KILL TYPE normal SKIPME yes")

    def _cut_postgres(self) -> None:
        self._scene.conn.execute(_OTHERS)

    def _damage(self) -> None:
        self._scene.damage_rankings()

    def _evict(self) -> None:
        """Let a key vanish; of what names the rest of a copy, only one of two."""
        names: list[bytes] = sorted(self._scene.pipeline.redis.scan_iter())
        if names:
            name = self._rng.choice(names)
            stem, _, kind = name.rpartition(b":")
            if kind in {b"meta", b"counts"}:
                if stem in self._bared:
                    return
                self._bared.add(stem)
            self._scene.pipeline.redis.delete(name)

    def _save(self) -> None:
        self._saved = self._scene.saved()

    def _go_back(self) -> None:
        if self._saved is not None:
            self._scene.go_back(self._saved)

    def _write_slowly(self) -> None:
        """Leave a transaction open for a while: its numbers are drawn long before it commits."""
        if self._slow_events:
            self._end_slow_write()
            return
        number = next(self._numbers)
        events = [random_event(self._rng, f"slow {number} {n}", f"s{n}") for n in range(3)]
        self._scene.recorder.send("best", events)
        truerank.submit_scores(self._slow, "best", events)
        self._slow_events = events

    def _end_slow_write(self) -> None:
        events, self._slow_events = self._slow_events, []
        if not events:
            return
        if self._rng.random() < 0.3:
            self._slow.rollback()
        else:
            self._slow.commit()
            # Acknowledged is what a client learns when it asks again.
            self._scene.recorder.submit("best", events)

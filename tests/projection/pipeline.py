"""A whole pipeline that a test drives step by step, and the comparison of its two ends."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from typing import Any

import msgspec
import psycopg
import redis

import truerank
from truerank.errors import ProjectionUnavailable
from truerank.model import ScoreEvent
from truerank.projection import worker
from truerank.projection.keys import GroupKeys
from truerank.projection.link import Link
from truerank.projection.worker import Projector
from truerank.settings import Settings
from truerank.steps import ScriptCall

DEADLINE_S = 30.0
_STEPS_MAX = 400


class Pipeline:
    """A database and a key space of one test, a client of both, and projectors on demand.

    Nothing moves but by `Projector.step()`, unless a test starts a worker of its own.
    """

    def __init__(self, settings: Settings, stack: ExitStack) -> None:
        assert settings.database_url is not None
        assert settings.redis_url is not None
        self.settings = settings
        self.conn: psycopg.Connection[Any] = stack.enter_context(
            psycopg.connect(settings.database_url, autocommit=True)
        )
        self.redis = stack.enter_context(redis.Redis.from_url(settings.redis_url))
        self.client = stack.enter_context(truerank.Truerank(settings))
        self._stack = stack
        self._worker_conn: psycopg.Connection[Any] | None = None
        self._numbers = count(1)

    def connection(self) -> psycopg.Connection[Any]:
        """A further connection, in no transaction, not in autocommit."""
        assert self.settings.database_url is not None
        return self._stack.enter_context(psycopg.connect(self.settings.database_url))

    def projector(self, link: Link | None = None, **changes: Any) -> Projector:
        """A worker that holds every lease from its first step on.

        All share one connection, because none of them waits inside a step.
        """
        settings = msgspec.structs.replace(self.settings, **changes)
        assert settings.database_url is not None
        if self._worker_conn is None:
            self._worker_conn = worker.connect(settings.database_url)
            self._stack.callback(self._worker_conn.close)
        self.free_leases()
        return Projector(self._worker_conn, link or self.link(), settings)

    def link(self, kind: type[Link] = Link) -> Any:
        assert self.settings.redis_url is not None
        link = kind(self.settings.redis_url, timeout_ms=5000)
        self._stack.callback(link.close)
        return link

    def free_leases(self) -> None:
        """Let everything go that workers hold, as if their time had passed."""
        self.conn.execute("UPDATE truerank.lease SET worker = NULL, expires_at = '-infinity'")
        self.conn.execute("DELETE FROM truerank.worker")

    def submit(
        self, board: str, scores: dict[str, int], conn: psycopg.Connection[Any] | None = None
    ) -> list[truerank.Receipt]:
        """One event per member, under event ids that were never used."""
        events = [
            ScoreEvent(event_id=f"event {next(self._numbers)}", member=member, value=value)
            for member, value in scores.items()
        ]
        return truerank.submit_scores(conn or self.conn, board, events)

    def settle(self, projector: Projector) -> None:
        """Step until both ends are equal; fail with the differences where they stay."""
        for _ in range(_STEPS_MAX):
            projector.step()
            if projector.whole and not differences(self):
                return
        raise AssertionError(f"still not equal: {differences(self)}")

    def generation(self, group: int = 0) -> str | None:
        """The live generation of a group."""
        pointer = self.redis.get(self.keys(group).pointer)
        assert pointer is None or isinstance(pointer, bytes)
        return pointer.decode() if pointer else None

    def keys(self, group: int = 0) -> GroupKeys:
        return GroupKeys(self.settings.prefix, group)

    def meta(self, group: int = 0) -> dict[str, str]:
        """What the meta of the live generation says."""
        generation = self.generation(group)
        assert generation is not None
        raw: Any = self.redis.hgetall(self.keys(group).generation(generation).meta)
        return {name.decode(): value.decode() for name, value in raw.items()}

    def rankings(self) -> dict[int, tuple[int, dict[str, bytes]]]:
        """What SQL holds: by ranking its group, and by member the version and sort key."""
        rows = self.conn.execute(
            """SELECT s.ranking, b.grp, s.member, int8send(s.version) || s.sort_key
               FROM truerank.standing AS s JOIN truerank.board AS b ON b.id = s.ranking >> 36
               ORDER BY s.ranking, s.sort_key, s.member COLLATE "C" """
        ).fetchall()
        rankings: dict[int, tuple[int, dict[str, bytes]]] = {}
        for ranking, group, member, shown in rows:
            rankings.setdefault(ranking, (group, {}))[1][member] = bytes(shown)
        return rankings


@contextmanager
def pipeline(settings: Settings, *, groups: int) -> Iterator[Pipeline]:
    """A pipeline on a migrated database and an empty Redis, with few groups."""
    with ExitStack() as stack:
        made = Pipeline(settings, stack)
        made.conn.execute("UPDATE truerank.setting SET groups = %s", (groups,))
        made.conn.execute("DELETE FROM truerank.lease WHERE grp >= %s", (groups,))
        yield made


def differences(pipeline: Pipeline) -> list[str]:
    """Everything in which Redis isn't what SQL says, byte for byte; what is left over, too."""
    found: list[str] = []
    expected: set[bytes] = set()
    rankings = pipeline.rankings()
    (groups,) = pipeline.conn.execute("SELECT groups FROM truerank.setting").fetchone() or (0,)
    for group in range(groups):
        generation = pipeline.generation(group)
        if generation is None:
            found.append(f"group {group} has no live copy")
            continue
        copy = pipeline.keys(group).generation(generation)
        expected |= {pipeline.keys(group).pointer.encode(), copy.meta.encode()}
        counts: Any = pipeline.redis.hgetall(copy.counts)
        if counts:
            expected.add(copy.counts.encode())
        mine = {r: shown for r, (g, shown) in rankings.items() if g == group}
        for ranking in sorted(mine.keys() | {int(name) for name in counts}):
            expected |= {copy.places(ranking).encode(), copy.shown(ranking).encode()}
            found += _ranking_differences(
                pipeline, group, generation, ranking, mine.get(ranking, {})
            )
    left: set[bytes] = set(pipeline.redis.scan_iter()) - expected
    found += [f"left over: {name!r}" for name in sorted(left)]
    listed = pipeline.conn.execute(
        "SELECT grp, replace(id::text, '-', ''), state FROM truerank.generation"
    ).fetchall()
    live = [(group, pipeline.generation(group), "live") for group in range(groups)]
    if sorted(listed) != live:
        found.append(f"generations listed: {listed}, live: {live}")
    return found


def _ranking_differences(
    pipeline: Pipeline, group: int, generation: str, ranking: int, source: dict[str, bytes]
) -> Iterator[str]:
    copy = pipeline.keys(group).generation(generation)
    places = pipeline.redis.zrange(copy.places(ranking), 0, -1)
    raw: Any = pipeline.redis.hgetall(copy.shown(ranking))
    shown = {member.decode(): value for member, value in raw.items()}
    tombstones = {member for member, value in shown.items() if len(value) == 8}
    order = [value[8:] + member.encode() for member, value in source.items()]
    if places != order:
        yield f"ranking {ranking}: the order is {places}, should be {order}"
    standing = {member: value for member, value in shown.items() if member not in tombstones}
    if standing != source:
        yield f"ranking {ranking}: shown is {standing}, should be {source}"
    counts = pipeline.redis.hget(copy.counts, str(ranking))
    if counts != f"{len(order)} {len(tombstones)} 0".encode():
        yield f"ranking {ranking}: counts are {counts!r}"


class FailingLink(Link):
    """A connection that breaks for good at one command, counted from `fails_at`.

    `executed` says whether Redis still carried that command out, so that only its reply is lost.
    Commands of one round trip are counted one by one: Redis may carry out the first few alone.
    """

    fails_at: int | None = None
    executed = False

    def calls(self, calls: Sequence[ScriptCall]) -> tuple[list[Any], str | None]:
        replies: list[Any] = []
        run_id = None
        for call in calls:
            answer, run_id = self._guarded(partial(super().calls, [call]))
            replies += answer
        return replies, run_id

    def commands(self, commands: Sequence[Sequence[str | bytes | int]]) -> list[Any]:
        replies: list[Any] = []
        for words in commands:
            replies += self._guarded(partial(super().commands, [words]))
        return replies

    def clock(self) -> tuple[int, str | None]:
        clock: tuple[int, str | None] = self._guarded(super().clock)
        return clock

    def _guarded(self, send: Callable[[], Any]) -> Any:
        if self.fails_at is None:
            return send()
        self.fails_at -= 1
        if self.fails_at >= 0:
            return send()
        if self.fails_at == -1 and self.executed:
            send()
        raise ProjectionUnavailable("the connection was cut")


class InterruptedLink(Link):
    """Lets something else happen after every batch, before the worker goes on."""

    after_batch: Callable[[], object] | None = None

    def calls(self, calls: Sequence[ScriptCall]) -> tuple[list[Any], str | None]:
        replies = super().calls(calls)
        if self.after_batch is not None and any(call.script == "apply" for call in calls):
            self.after_batch()
        return replies


def wait_until(condition: Callable[[], Any], awaited: str) -> Any:
    """Wait for something true, and return it; fail with what was awaited where it stays away."""
    deadline = time.monotonic() + DEADLINE_S
    while not (result := condition()):
        assert time.monotonic() < deadline, f"still not true: {awaited}"
        time.sleep(0.005)
    return result

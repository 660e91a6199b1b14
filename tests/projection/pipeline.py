"""A whole pipeline that a test drives step by step, and the comparison of its two ends."""

import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from typing import Any

import msgspec
import psycopg
import redis

import truerank
from tests.faults.pooler import caller_options
from truerank.errors import ProjectionUnavailable
from truerank.model import ScoreEvent
from truerank.outbox.leases import Worker
from truerank.outbox.ticks import Connection
from truerank.projection import worker
from truerank.projection.keys import GenerationKeys, GroupKeys, boards_key
from truerank.projection.link import Link
from truerank.projection.projector import Projector
from truerank.settings import Settings
from truerank.steps import ScriptCall

DEADLINE_S = 30.0


class Pipeline:
    """A database and a key space of one test, a client of both, and projectors on demand.

    Nothing moves but by `Projector.step()`, unless a test starts a worker of its own.
    """

    def __init__(self, settings: Settings, stack: ExitStack) -> None:
        assert settings.database_url is not None
        assert settings.redis_url is not None
        self.settings = settings
        self.conn: psycopg.Connection[Any] = stack.enter_context(
            psycopg.connect(settings.database_url, autocommit=True, **caller_options())
        )
        self.redis = stack.enter_context(redis.Redis.from_url(settings.redis_url))
        self.client = stack.enter_context(truerank.Truerank(settings))
        self._stack = stack
        self._worker_conn: psycopg.Connection[Any] | None = None
        self._numbers = count(1)

    def connection(self) -> psycopg.Connection[Any]:
        """A further connection, in no transaction, not in autocommit."""
        assert self.settings.database_url is not None
        return self._stack.enter_context(
            psycopg.connect(self.settings.database_url, **caller_options())
        )

    def projector(
        self, link: Link | None = None, worker_: Worker | None = None, **changes: Any
    ) -> Projector:
        """A worker that holds every lease from its first step on.

        All share one connection, because none of them waits inside a step.
        """
        settings = msgspec.structs.replace(self.settings, **changes)
        self.free_leases()
        return Projector(self.worker_connection(), link or self.link(), settings, worker_)

    def worker_connection(self) -> psycopg.Connection[Any]:
        """The connection that all projectors share."""
        if self._worker_conn is None:
            assert self.settings.database_url is not None
            self._worker_conn = worker.connect(self.settings.database_url)
            self._stack.callback(self._worker_conn.close)
        return self._worker_conn

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
        deadline = (
            time.monotonic() + DEADLINE_S
        )  # a worker that was refused pauses: no count of steps
        while time.monotonic() < deadline:
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

    def dense(self, rankings: Iterable[int]) -> dict[int, int]:
        """Of the rankings that are to be counted densely, in how many bytes equals agree."""
        rows = self.conn.execute(
            """SELECT r, truerank.equal_bytes(r) FROM unnest(%s::bigint[]) AS r
               WHERE truerank.equal_bytes(r) > 0""",
            (list(rankings),),
        ).fetchall()
        return dict(rows)

    def withheld(self) -> set[tuple[int, str]]:
        """Ranking and member of the standings that SQL says take no place."""
        rows = self.conn.execute(
            """SELECT s.ranking, s.member FROM truerank.standing AS s
               WHERE NOT EXISTS (SELECT FROM truerank.visible_standing AS v
                                 WHERE v.ranking = s.ranking AND v.member = s.member)"""
        ).fetchall()
        return set(rows)

    def states(self, group: int) -> dict[str, set[tuple[int, int, str]]]:
        """What SQL says of members of a group: board (0: everywhere), version, letter."""
        rows = self.conn.execute(
            """SELECT m.member, m.board_id, m.version, truerank.state_letter(m.state)
               FROM truerank.member_state AS m
               WHERE truerank.state_letter(m.state) <> 'a' AND (m.board_id = 0 OR EXISTS (
                   SELECT FROM truerank.board AS b WHERE b.id = m.board_id AND b.grp = %s))""",
            (group,),
        ).fetchall()
        states: dict[str, set[tuple[int, int, str]]] = {}
        for member, *state in rows:
            states.setdefault(member, set()).add(tuple(state))
        return states


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
    withheld = pipeline.withheld()
    dense = pipeline.dense(rankings)
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
        found += _state_differences(pipeline, copy, pipeline.states(group))
        if pipeline.redis.exists(copy.members):
            expected.add(copy.members.encode())
        mine = {r: shown for r, (g, shown) in rankings.items() if g == group}
        for ranking in sorted(mine.keys() | {int(name) for name in counts}):
            expected |= {copy.places(ranking).encode(), copy.shown(ranking).encode()}
            if ranking in dense:
                expected.add(copy.prefixes(ranking).encode())
            found += _ranking_differences(
                pipeline,
                copy,
                ranking,
                mine.get(ranking, {}),
                withheld,
                equal_bytes=dense.get(ranking),
            )
    expected.add(boards_key(pipeline.settings.prefix).encode())  # of whoever ran chores
    left: set[bytes] = set(pipeline.redis.scan_iter(count=1000)) - expected
    found += [f"left over: {name!r}" for name in sorted(left)]
    listed = pipeline.conn.execute(
        "SELECT grp, replace(id::text, '-', ''), state FROM truerank.generation"
        " WHERE state <> 'retired'"
    ).fetchall()
    live = [(group, pipeline.generation(group), "live") for group in range(groups)]
    if sorted(listed) != live:
        found.append(f"generations listed: {listed}, live: {live}")
    return found


def _state_differences(
    pipeline: Pipeline, copy: GenerationKeys, source: dict[str, set[tuple[int, int, str]]]
) -> Iterator[str]:
    raw: Any = pipeline.redis.hgetall(copy.members)
    held: dict[str, set[tuple[int, int, str]]] = {}
    for member, record in raw.items():
        for at in range(0, len(record), 13):
            board, version, letter = struct.unpack(">IQc", record[at : at + 13])
            if letter != b"a":  # kept from when the copy was being filled
                state = (board, version, letter.decode())
                held.setdefault(member.decode(), set()).add(state)
    if held != source:
        yield f"{copy.members}: states are {held}, should be {source}"
    known: Any = pipeline.redis.hget(copy.meta, "members")
    if int(known or 0) != len(raw):
        yield f"{copy.members}: {len(raw)} members, meta says {known}"


def _ranking_differences(
    pipeline: Pipeline,
    copy: GenerationKeys,
    ranking: int,
    source: dict[str, bytes],
    withheld: set[tuple[int, str]],
    *,
    equal_bytes: int | None,
) -> Iterator[str]:
    places = pipeline.redis.zrange(copy.places(ranking), 0, -1)
    raw: Any = pipeline.redis.hgetall(copy.shown(ranking))
    shown = {member.decode(): value for member, value in raw.items()}
    tombstones = {member for member, value in shown.items() if len(value) == 8}
    order = [
        value[8:] + member.encode()
        for member, value in source.items()
        if (ranking, member) not in withheld
    ]
    if places != order:
        yield f"ranking {ranking}: the order is {places}, should be {order}"
    standing = {member: value for member, value in shown.items() if member not in tombstones}
    if standing != source:
        yield f"ranking {ranking}: shown is {standing}, should be {source}"
    wanted = f"{len(order)} {len(tombstones)} {len(source) - len(order)}"
    if equal_bytes is not None:
        equals = sorted({place[:equal_bytes] for place in order})
        wanted += f" {len(equals)}"
        prefixes = pipeline.redis.zrange(copy.prefixes(ranking), 0, -1)
        if prefixes != equals:
            yield f"ranking {ranking}: prefixes are {prefixes}, should be {equals}"
    counts = pipeline.redis.hget(copy.counts, str(ranking))
    if counts != wanted.encode():
        yield f"ranking {ranking}: counts are {counts!r}"


@contextmanager
def working(settings: Settings, **more: Any) -> Iterator[None]:
    """A worker in a thread, told to stop at the end; unlike `running_worker` it may never be ready.

    Args:
        settings: with both URLs.
        more: arguments of `worker.run`.
    """
    stop = threading.Event()
    thread = threading.Thread(target=worker.run, args=(settings, stop), kwargs=more)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def submit_and_wait(pipeline: Pipeline, boards: Sequence[str]) -> None:
    """Submit a score to each board, and wait until the projection shows it."""
    for board in boards:
        (receipt,) = pipeline.submit(board, {"ann": 1})
        assert receipt.token is not None
        pipeline.client.wait_visible(receipt.token, [board], timeout_s=DEADLINE_S)


class Believer(Worker):
    """A worker that takes itself for the holder of group 0, as one does whose lease has passed."""

    def renew(self, conn: Connection, *, give_up: Sequence[int] = ()) -> set[int]:
        assert not give_up
        assert conn.autocommit
        return {0}


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

    def try_commands(self, commands: Sequence[Sequence[str | bytes | int]]) -> list[Any]:
        replies: list[Any] = []
        for words in commands:
            replies += self._guarded(partial(super().try_commands, [words]))
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


def stepped_settings(database_url: str, redis_url: str) -> Settings:
    """For projectors that a test steps: they keep all leases, and every step is a heartbeat."""
    return Settings(
        database_url=database_url,
        redis_url=redis_url,
        heartbeat_ms=1,
        lease_ms=3_600_000,
        board_cache_ms=1,
        cache_max_ms=0,
    )


def wait_until(condition: Callable[[], Any], awaited: str) -> Any:
    """Wait for something true, and return it; fail with what was awaited where it stays away."""
    deadline = time.monotonic() + DEADLINE_S
    while not (result := condition()):
        assert time.monotonic() < deadline, f"still not true: {awaited}"
        time.sleep(0.005)
    return result

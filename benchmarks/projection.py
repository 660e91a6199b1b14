"""How fast one worker shows a backlog of the outbox, beside the textbook and raw Redis."""

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
import redis

import truerank
from benchmarks import textbook
from benchmarks.load import Events, Submitted, member_id
from benchmarks.pipeline import BOARD, EVENTS_PER_CALL, Truerank
from benchmarks.processes import Pipe, Task, ready, started
from benchmarks.raw_redis import write_rate
from benchmarks.result import Bar, Result, median, versions
from truerank.embedded import Engines
from truerank.model import ScoreEvent
from truerank.projection import worker
from truerank.projection.link import Link
from truerank.projection.projector import Projector
from truerank.settings import Settings
from truerank.settings import load as load_settings

ROUNDS = 3

Backlog = Sequence[tuple[str, str, int]]  # event id, member, value


def projection(engines: Engines, progress: Callable[[str], None], *, short: bool) -> Result:
    """Rows per second, from a worker's first step until nothing waits, with no client beside it.

    The textbook's worker calls one script per row; that it could send the calls of its hundred rows
    in one round trip is measured too, and printed. Two backlogs of the same events for all: one in
    which members come several times, and one in which each comes once. Every member has a standing
    before. The textbook's worker is measured over the beginning of its backlog, which is to its
    advantage: each row that it marks leaves a dead one for the next search to step over.
    """
    members, rows = (10_000, 30_000) if short else (100_000, 300_000)
    textbook_s = 2.0 if short else 20.0
    ours, theirs = Truerank(engines, members), textbook.Textbook(engines, members)
    for side in (ours, theirs):
        progress(f"a standing for each of {members:,} members: {side.name}")
        side.prepare()
    draw: dict[str, Callable[[str], Backlog]] = {
        "several a member": lambda seed: several(seed, members, rows),
        "one a member": lambda seed: one_each(seed, members),
    }
    rates: dict[str, list[float]] = {}
    for number in range(ROUNDS):
        for what, drawn in draw.items():
            progress(f"round {number + 1} of {ROUNDS}: {what}")
            backlog = drawn(f"{what}/{number}")
            rates.setdefault(f"truerank, {what}", []).append(_project(engines, ours, backlog))
            rate = _publish(engines, backlog, textbook_s, together=False)
            rates.setdefault(f"textbook, {what}", []).append(rate)
            # Others, for Redis knows the markers of those.
            backlog = drawn(f"{what}/{number}/in one round trip")
            rate = _publish(engines, backlog, textbook_s, together=True)
            rates.setdefault(f"textbook in one round trip, {what}", []).append(rate)
        progress(f"round {number + 1} of {ROUNDS}: raw Redis")
        rates.setdefault("raw Redis", []).append(write_rate(engines.redis_url, members))
    ours.verify()
    middles = {side: median(rounds) for side, rounds in rates.items()}
    of_several, of_one = (
        middles[f"truerank, {what}"] / middles[f"textbook, {what}"] for what in draw
    )
    beside = {
        what: middles[f"truerank, {what}"] / middles[f"textbook in one round trip, {what}"]
        for what in draw
    }
    updates = middles["truerank, one a member"] / middles["raw Redis"]
    return Result(
        name="projection",
        short=short,
        ratio=of_several,
        ratio_of="rows/s of Truerank by rows/s of the textbook worker, several a member",
        bars=[
            Bar(
                of="times the rows/s of the textbook worker, several a member",
                value=of_several, bar=12, at_least=True,
            ),
            Bar(
                of="times the rows/s of the textbook worker, one a member",
                value=of_one, bar=7, at_least=True,
            ),
            Bar(
                of="times the members/s of raw Redis, one row a member",
                value=updates, bar=0.6, at_least=True,
            ),
        ],
        sizes={
            "members": members,
            "rows, several a member": rows,
            "rows, one a member": members,
            "textbook_seconds_per_round": textbook_s,
            "worker_processes": 1,
        },
        engines=versions(engines),
        rounds=rates,
        rounds_of="outbox rows (raw Redis: members) per second",
        figures={
            "order in Valkey equals order in SQL": "yes, byte for byte",
            **{
                f"times the textbook with a hundred calls in one round trip, {what}": f"{ratio:.1f}"
                for what, ratio in beside.items()
            },
        },
    )  # fmt: skip


def several(seed: str, members: int, rows: int) -> Backlog:
    """Events of members drawn at random, so that most come several times."""
    return list(Events(seed, members).draw(rows))


def one_each(seed: str, members: int) -> Backlog:
    """One event for each member, in a random order."""
    names = [member_id(number) for number in range(members)]
    random.Random(seed).shuffle(names)
    drawn = Events(seed, members).draw(members)
    return [
        (event_id, name, value) for (event_id, _, value), name in zip(drawn, names, strict=True)
    ]


def _project(engines: Engines, pipeline: Truerank, backlog: Backlog) -> float:
    """Rows per second of Truerank's worker, all of them shown at the end."""
    settings = load_settings(database_url=engines.database_url, redis_url=engines.redis_url)
    submitted = _submit(engines.database_url, backlog)
    seconds: float = _consumed(engines, Task(project, (settings,)))
    with started(pipeline.worker()):
        pipeline.await_visible([submitted])
    return len(backlog) / seconds


def _submit(database_url: str, backlog: Backlog) -> Submitted:
    began, token = time.monotonic(), ""
    with psycopg.connect(database_url, autocommit=True) as conn:
        for i in range(0, len(backlog), EVENTS_PER_CALL):
            events = [
                ScoreEvent(event_id=event_id, member=member, value=value)
                for event_id, member, value in backlog[i : i + EVENTS_PER_CALL]
            ]
            token = str(truerank.submit_scores(conn, BOARD, events)[-1].token)
    return Submitted(
        began=began,
        ended=time.monotonic(),
        events=len(backlog),
        total=sum(value for _, _, value in backlog),
        token=token,
    )


def _publish(engines: Engines, backlog: Backlog, seconds_max: float, *, together: bool) -> float:
    """Rows per second of the textbook's worker; what it leaves of them is thrown away."""
    with psycopg.connect(engines.database_url, autocommit=True) as conn:
        textbook.append(conn, backlog)
    task = Task(publish, (engines.database_url, engines.redis_url, seconds_max, together))
    rows, seconds = _consumed(engines, task)
    return float(rows / seconds)


def _consumed(engines: Engines, task: Task) -> Any:
    """What the worker hands back; a checkpoint before, so that it pays for no page of others."""
    with started(task) as child:
        with psycopg.connect(engines.database_url, autocommit=True) as conn:
            conn.execute("CHECKPOINT")
        child.begin()
        return child.result()


def project(pipe: Pipe, settings: Settings) -> None:
    """A process that is connected, works when told, and hands back how many seconds it took."""
    assert settings.database_url is not None, "the caller gives it"
    assert settings.redis_url is not None, "the caller gives it"
    link = Link(settings.redis_url, timeout_ms=settings.redis_timeout_ms, connections_max=2)
    with worker.connect(settings.database_url) as conn:
        projector = Projector(conn, link, settings)
        ready(pipe)
        began = ended = time.monotonic()
        while projector.step() or not projector.whole:
            ended = time.monotonic()
        projector.release()
    link.close()
    pipe.send(ended - began)


def publish(
    pipe: Pipe,
    database_url: str,
    redis_url: str,
    seconds_max: float,
    together: bool,  # noqa: FBT001 - comes from another process
) -> None:
    """The same with the textbook; hands back the rows and the seconds."""
    with (
        psycopg.connect(database_url, prepare_threshold=0) as conn,
        redis.Redis.from_url(redis_url) as client,
    ):
        sha1 = textbook.load_script(client)
        ready(pipe)
        rows, began = 0, time.monotonic()
        while time.monotonic() < began + seconds_max:
            published = textbook.publish(conn, client, sha1, together=together)
            if not published:
                break
            rows += published
        pipe.send((rows, time.monotonic() - began))

"""How the pipeline is doing: what waits, who works, how far the copies are, and what is wrong.

A store that is away is told, not raised: this is asked for when things go wrong.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from truerank.errors import TruerankError
from truerank.outbox.snapshot import Snapshot
from truerank.projection.keys import GroupKeys
from truerank.read.verdict import Expected, Problem, Verdict, judge, worst
from truerank.steps import Commands, Query, ScriptCall, Steps

_INSTALLATION = "SELECT id, epoch, groups, read_only FROM truerank.installation()"
_STATE = """
    SELECT * FROM truerank.health_state(
        %s::smallint[], %s::pg_snapshot[], %s::timestamptz[], %s::bigint[])"""
_HELD = "SELECT kind, name, age_ms, xids, held FROM truerank.held_back()"
_FILLINGS = "SELECT grp, cause, rows, rows_about, checked FROM truerank.fillings()"
_RECONCILED = """
    SELECT ended_at, age_ms, took_ms, checked, drift, unrepaired, ahead, checked_now
    FROM truerank.reconciled()"""
_WEBHOOKS = "SELECT waiting, parked, oldest_age_ms, disabled FROM truerank.webhook_state()"
_META = ("epoch", "snapshot", "through", "cursor")
_RECONCILED_NAMES = (
    "reconciled_at",
    "reconciled_age_ms",
    "reconciled_took_ms",
    "reconciled_standings",
    "reconciled_drift",
    "reconciled_unrepaired",
    "reconciled_ahead",
    "reconciling_standings",
)
_ERROR_CHARS_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """What keeps dead rows from being removed: the oldest of its kind, and how many there are."""

    kind: str  # session, prepared or slot
    name: str
    age_ms: int | None
    xids: int  # transactions begun since its snapshot
    held: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """A copy that is being filled, as noted at the last heartbeat."""

    group: int
    cause: str  # asked, schedule, lost, damaged, pruned, dense or parked
    rows: int  # standings that are in
    rows_about: int  # of about so many
    checked: int  # standings that were compared with the source


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One look at both stores. Times are the database's; None: its store did not tell."""

    verdict: Verdict = Verdict.HEALTHY
    problems: tuple[Problem, ...] = ()
    database_error: str | None = None
    database_error_code: str | None = None
    database_version: str | None = None
    read_only: bool | None = None
    installation: str | None = None
    epoch: str | None = None
    boards: int | None = None
    rankings: int | None = None
    events_estimate: int | None = None  # from the planner's statistics
    standings_estimate: int | None = None
    groups: int | None = None
    groups_leased: int | None = None
    workers: int | None = None
    groups_live: int = 0  # groups with a live copy in Redis
    copies_warming: int | None = None  # being filled
    fillings: tuple[Filling, ...] = ()  # the same, one by one
    copies_dead: int | None = None  # given up by retention, to be filled anew
    projection: str = "unknown"  # whole, incomplete, or the error that kept us from looking
    lag_ms: int | None = None  # age of what the slowest live copy shows whole
    copy_ages_ms: dict[int, int] | None = None  # the same by group
    stalled_groups: tuple[int, ...] = ()  # whose copy hasn't moved for several heartbeats
    outbox_bytes: int | None = None
    outbox_waiting: int | None = None  # rows the copies don't show yet; counted up to 100,000
    outbox_age_ms: int | None = None  # the most that any of them has waited
    last_tick: int | None = None
    last_tick_at: datetime | None = None
    last_tick_age_ms: int | None = None
    segment: int | None = None  # that is written to now
    segment_bytes: tuple[int, ...] = ()
    segment_age_ms: int | None = None  # since it is written to
    floor_tick: int | None = None
    parked_rows: int | None = None  # of attached tables
    parked_rankings: int | None = None  # that no copy could take; PostgreSQL answers for them
    reconciled_at: datetime | None = None  # when all standings were last compared as routine
    reconciled_age_ms: int | None = None
    reconciled_took_ms: int | None = None
    reconciled_standings: int | None = None  # that were compared then
    reconciled_drift: int | None = None  # what was wrong
    reconciled_unrepaired: int | None = None  # what of it could not be mended
    reconciled_ahead: int | None = None  # standings that are newer than PostgreSQL's
    reconciling_standings: int | None = None  # compared so far by the comparison under way
    deliveries_waiting: int | None = None  # by webhook; counted up to 10,000 of a receiver
    deliveries_parked: int | None = None  # that were given up
    delivery_oldest_age_ms: int | None = None  # of those that wait
    webhooks_disabled: int | None = None
    dead_rows: int | None = None  # of the score table, as PostgreSQL estimates
    held_back: tuple[HeldBack, ...] = ()
    redis_error: str | None = None
    scripts_error: str | None = None
    redis_version: str | None = None
    redis_memory_bytes: int | None = None
    redis_memory_max_bytes: int | None = None  # 0: no limit
    eviction_policy: str | None = None
    redis_evicted_keys: int | None = None  # since the server's start, whoever's they were


@dataclass(frozen=True, slots=True)
class _Copy:
    group: int
    snapshot: str
    through: str
    cursor: int


def status(prefix: str, expected: Expected) -> Steps[Status]:
    """Look at both stores, and judge.

    Source: `schema/functions/health_state.sql`.
    """
    found = Status()
    try:
        ((installation, epoch, groups, read_only),) = yield Query(_INSTALLATION)
        found = replace(
            found,
            installation=str(installation),
            epoch=epoch.hex,
            groups=groups,
            read_only=read_only,
        )
    except TruerankError as exc:
        found = replace(found, database_error=_told(exc), database_error_code=exc.reason)
    found, copies = yield from _look_at_redis(found, prefix)
    if found.database_error is None:
        try:
            found = yield from _look_at_database(found, copies, expected)
        except TruerankError as exc:
            found = replace(found, database_error=_told(exc), database_error_code=exc.reason)
    problems = judge(found, expected)
    return replace(found, problems=problems, verdict=worst(problems))


def with_problem(found: Status, problem: Problem) -> Status:
    """The same with one more problem, that only the process itself knows of."""
    problems = (*found.problems, problem)
    return replace(found, problems=problems, verdict=worst(problems))


def silent() -> Status:
    """What is known where the stores did not answer in time."""
    found = Status(database_error="no answer in time")
    problems = judge(found, Expected(heartbeat_ms=0, segment_s=0, outbox_bytes_max=0))
    return replace(found, problems=problems, verdict=worst(problems))


def _look_at_redis(found: Status, prefix: str) -> Steps[tuple[Status, list[_Copy]]]:
    try:
        yield Commands([("PING",)])
    except TruerankError as exc:
        error = _told(exc)
        return replace(found, redis_error=error, projection=error), []
    found = yield from _look_at_server(found)
    try:
        yield _probe(prefix)
    except TruerankError as exc:
        found = replace(found, scripts_error=_told(exc))
    if found.groups is None:
        return found, []
    try:
        live, copies = yield from _copies(found, prefix)
    except TruerankError as exc:
        error = _told(exc)
        return replace(found, redis_error=error, projection=error), []
    whole = live == found.groups
    return (
        replace(
            found,
            groups_live=live,
            projection=found.scripts_error or ("whole" if whole else "incomplete"),
        ),
        copies,
    )


def _look_at_server(found: Status) -> Steps[Status]:
    try:
        (reply,) = yield Commands([("INFO", "server", "memory", "stats")])
    except TruerankError:
        return found  # access rules may forbid it; a worker needs it and says so
    info = info_fields(reply)
    return replace(
        found,
        redis_version=server_name(info),
        redis_memory_bytes=int(info["used_memory"]),
        redis_memory_max_bytes=int(info["maxmemory"]),
        eviction_policy=info["maxmemory_policy"],
        redis_evicted_keys=int(info["evicted_keys"]),
    )


def info_fields(reply: bytes) -> dict[str, str]:
    """The fields of an answer to INFO."""
    lines = reply.decode(errors="replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def server_name(info: dict[str, str]) -> str:
    """The server's name and version, such as `Valkey 9.1.2`."""
    if "valkey_version" in info:
        return f"Valkey {info['valkey_version']}"
    return f"Redis {info['redis_version']}"


def _probe(prefix: str) -> ScriptCall:
    """A script call that reads, and changes nothing: a server may answer PING and no script."""
    keys = GroupKeys(prefix, 0)
    copy = keys.generation("probe")
    return ScriptCall(
        "page",
        [keys.pointer, copy.meta, copy.counts, copy.places(0), copy.shown(0)],
        ["probe", 0, 0, 0, 0, 0, 0],
    )


def _copies(found: Status, prefix: str) -> Steps[tuple[int, list[_Copy]]]:
    """How many groups have a live copy of this epoch, and those whose meta makes sense."""
    assert found.groups is not None, "asked for only then"
    assert found.epoch is not None, "it comes with the groups"
    pointers = yield Commands(
        [("GET", GroupKeys(prefix, group).pointer) for group in range(found.groups)]
    )
    pointed = {
        group: GroupKeys(prefix, group).generation(name.decode(errors="replace")).meta
        for group, name in enumerate(pointers)
        if name
    }
    metas = yield Commands([("HMGET", meta, *_META) for meta in pointed.values()])
    epoch = found.epoch.encode()
    live = [
        (group, fields) for group, fields in zip(pointed, metas, strict=True) if fields[0] == epoch
    ]
    return len(live), [copy for copy in (_copy(*each) for each in live) if copy is not None]


def _copy(group: int, fields: list[bytes | None]) -> _Copy | None:
    """What a meta says, or None where a field is missing or makes no sense."""
    try:
        _, snapshot, through, cursor = [(field or b"").decode() for field in fields]
        Snapshot.parse(snapshot)
        datetime.fromisoformat(through)
        return _Copy(group, snapshot, through, int(cursor.partition(":")[0]))
    except ValueError:
        return None


def _look_at_database(found: Status, copies: list[_Copy], expected: Expected) -> Steps[Status]:
    parameters = [
        [copy.group for copy in copies],
        [copy.snapshot for copy in copies],
        [copy.through for copy in copies],
        [copy.cursor for copy in copies],
    ]
    ((*row,),) = yield Query(_STATE, parameters if copies else [None] * 4)
    (version, boards, rankings, events, standings, leased, workers, outbox_bytes, waiting, age_ms,
     tick, tick_at, tick_age_ms, segment, segment_bytes, segment_age_ms, floor, warming, dead,
     cursor_at, dead_rows, parked, parked_rankings, told_at) = row  # fmt: skip
    held = yield Query(_HELD)
    fillings = yield Query(_FILLINGS)
    (reconciled,) = yield Query(_RECONCILED)
    ((deliveries, deliveries_parked, delivery_age_ms, disabled),) = yield Query(_WEBHOOKS)
    ages = {
        copy.group: max(0, _ms(told_at, datetime.fromisoformat(copy.through))) for copy in copies
    }
    stalled = tuple(
        copy.group
        for copy, at in zip(copies, cursor_at or (), strict=True)
        if at is None or _ms(told_at, at) > expected.silence_ms_max
    )
    return replace(
        found,
        database_version=version,
        boards=boards,
        rankings=rankings,
        events_estimate=max(events, 0),
        standings_estimate=max(standings, 0),
        groups_leased=leased,
        workers=workers,
        copies_warming=warming,
        fillings=tuple(
            Filling(group=group, cause=cause, rows=rows, rows_about=about, checked=checked)
            for group, cause, rows, about, checked in fillings
        ),
        copies_dead=dead,
        lag_ms=max(ages.values(), default=None),
        copy_ages_ms=ages,
        stalled_groups=stalled,
        outbox_bytes=outbox_bytes,
        outbox_waiting=waiting,
        outbox_age_ms=age_ms,
        last_tick=tick,
        last_tick_at=tick_at,
        last_tick_age_ms=tick_age_ms,
        segment=segment,
        segment_bytes=tuple(segment_bytes),
        segment_age_ms=segment_age_ms,
        floor_tick=floor,
        parked_rows=parked,
        parked_rankings=parked_rankings,
        **dict(zip(_RECONCILED_NAMES, reconciled, strict=True)),
        deliveries_waiting=deliveries,
        deliveries_parked=deliveries_parked,
        delivery_oldest_age_ms=delivery_age_ms,
        webhooks_disabled=disabled,
        dead_rows=dead_rows,
        held_back=tuple(
            HeldBack(kind=kind, name=name, age_ms=age, xids=xids, held=n)
            for kind, name, age, xids, n in held
        ),
    )


def _ms(later: datetime, earlier: datetime) -> int:
    return int((later - earlier).total_seconds() * 1000)


def _told(exc: TruerankError) -> str:
    return exc.message[:_ERROR_CHARS_MAX]

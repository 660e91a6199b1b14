"""How the pipeline is doing: what waits, who works, how far the copies are."""

from dataclasses import dataclass
from datetime import datetime

from truerank.errors import ProjectionUnavailable
from truerank.projection.keys import GroupKeys
from truerank.steps import Get, HashGet, Query, Steps

_STATUS = "SELECT * FROM truerank.status()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One look at both stores. Times are the database's."""

    database_version: str
    installation: str
    epoch: str
    boards: int
    rankings: int
    events_estimate: int  # from the planner's statistics
    standings_estimate: int
    groups: int
    groups_leased: int
    workers: int
    groups_live: int  # groups with a live copy in Redis
    projection: str  # whole, incomplete, or the error that kept us from looking
    outbox_bytes: int
    outbox_waiting: int  # rows no copy is known to show; counted up to 100,000
    outbox_age_ms: int  # since the last tick while rows wait, else 0
    last_tick: int | None
    last_tick_at: datetime | None
    segment: int
    floor_tick: int


def status(prefix: str) -> Steps[Status]:
    """Look at both stores; a Redis that is away is told, not raised.

    Source: `schema/functions/status.sql`.
    """
    ((*row,),) = yield Query(_STATUS)
    (version, installation, epoch, groups, boards, rankings, events, standings, leased, workers,
     outbox_bytes, waiting, age_ms, tick, tick_at, segment, floor) = row  # fmt: skip
    live = 0
    try:
        for group in range(groups):
            keys = GroupKeys(prefix, group)
            generation = yield Get(keys.pointer)
            if generation:
                meta = keys.generation(generation.decode(errors="replace")).meta
                (copy_epoch,) = yield HashGet(meta, ("epoch",))
                live += bool(copy_epoch and copy_epoch == epoch.hex.encode())
        projection = "whole" if live == groups else "incomplete"
    except ProjectionUnavailable as exc:
        projection = exc.message
    return Status(
        database_version=version,
        installation=str(installation),
        epoch=epoch.hex,
        boards=boards,
        rankings=rankings,
        events_estimate=max(events, 0),
        standings_estimate=max(standings, 0),
        groups=groups,
        groups_leased=leased,
        workers=workers,
        groups_live=live,
        projection=projection,
        outbox_bytes=outbox_bytes,
        outbox_waiting=waiting,
        outbox_age_ms=age_ms,
        last_tick=tick,
        last_tick_at=tick_at,
        segment=segment,
        floor_tick=floor,
    )

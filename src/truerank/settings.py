"""One frozen Settings, read once from TRUERANK_* variables and passed on from there."""

import os
from collections.abc import Mapping
from typing import Annotated

import msgspec

from truerank.errors import SettingsInvalid

Milliseconds = Annotated[int, msgspec.Meta(ge=1, le=3_600_000)]
MillisecondsOrNone = Annotated[int, msgspec.Meta(ge=0, le=60_000)]
Percent = Annotated[float, msgspec.Meta(ge=0, le=100)]
Bytes = Annotated[int, msgspec.Meta(ge=1 << 20)]
Networks = Annotated[str, msgspec.Meta(description="networks, with commas between")]
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How one process runs. Every field is the variable TRUERANK_<NAME IN CAPITALS>."""

    database_url: str | None = None  # a libpq URL; none: embedded PostgreSQL
    redis_url: str | None = None  # redis://, rediss:// or unix://; none: embedded Valkey
    prefix: Annotated[str, msgspec.Meta(pattern=r"^[^{}\x00-\x20]{1,64}$")] = "truerank"
    tick_busy_ms: Milliseconds = 20  # between ticks while rows arrive
    tick_idle_ms: Milliseconds = 50  # between questions whether rows arrived
    heartbeat_ms: Milliseconds = 1000  # a tick at least so often: idle and dead look different
    batch_rows_max: Count = 20_000  # outbox rows between two ticks; more become several batches
    call_rows_max: Annotated[int, msgspec.Meta(ge=1, le=2000)] = 400  # standings per script call
    scan_rows_max: Annotated[int, msgspec.Meta(ge=1, le=20_000)] = 4000  # standings read at once
    lease_ms: Milliseconds = 3000  # a killed worker's groups are taken over after this
    stuck_ms: Milliseconds = 5000  # a group refused for so long is left to other workers
    rest_ms: Milliseconds = 30_000  # and for so long not taken again by the same one
    drain_ms: Milliseconds = 5000  # a worker told to stop shows what is committed, for so long
    redis_timeout_ms: Milliseconds = 2000  # deadline of every Redis call
    database_timeout_ms: Milliseconds = 10_000  # deadline of every statement that reads
    fallback_after_ms: Milliseconds | None = None  # a projection older than this isn't served
    fallback_max: Count = 5  # answers from PostgreSQL at a time; more are refused as busy
    exports_max: Count = 2  # exports that a server makes at a time; more are refused as busy
    waiting_max: Count = 200  # readers that wait for a write to be shown; more are refused as busy
    pool_max: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10  # connections per pool
    segment_s: Annotated[int, msgspec.Meta(ge=1)] = 28_800  # a quarter of the outbox turns so often
    segment_bytes_max: Bytes = 1 << 30  # or when it is so large
    dead_s: Annotated[int, msgspec.Meta(ge=1)] = 86_400  # a copy unseen so long is filled anew
    outbox_bytes_max: Bytes = 16 << 30  # and, once the outbox is so large, one that is behind
    prune_rows_max: Count = 200  # events too old to keep that go at a time
    close_ms: Milliseconds = 5000  # how often a worker looks for seasons that are to be closed
    rebuild_share_percent: Percent = 25  # of its time a worker fills copies beside live ones
    rebuild_keep_ms: Annotated[int, msgspec.Meta(ge=0, le=86_400_000)] = 60_000  # a way back
    rebuild_every_s: Annotated[int, msgspec.Meta(ge=0)] = 0  # copies this old are replaced; 0: none
    reconcile_ms: MillisecondsOrNone = 5000  # between 1000 standings compared as routine; 0: never
    reconcile_repair: bool = True  # and what differs is mended; what is ahead never is
    webhook_ms: Milliseconds = 1000  # how often a worker looks for what is to be delivered
    webhook_timeout_ms: Milliseconds = 10_000  # what a receiver may take to answer
    webhook_at_once: Annotated[int, msgspec.Meta(ge=1, le=100)] = 4  # requests to one receiver
    webhook_attempts_max: Count = 12  # of a delivery; then it is parked
    webhook_keep_s: Annotated[int, msgspec.Meta(ge=0, le=31_622_400)] = 604_800  # once delivered
    webhook_networks: Networks = ""  # private receivers that may be called: 10.1.0.0/16,fd00::/8
    names_cache_ms: Milliseconds = 5000  # how long a member's name may be remembered
    board_cache_ms: Milliseconds = 2000  # how long a board's settings may be remembered
    cache_max_ms: MillisecondsOrNone = 1000  # how long a server may hold a page; 0: not at all
    operator: bool = False  # reads of this process see what is going on behind a freeze
    live_checks_percent: Percent = 1  # of a server's reads: PostgreSQL is asked too, and compared


def load(environ: Mapping[str, str] = os.environ, **overrides: str | None) -> Settings:
    """Read the settings from TRUERANK_* variables; unset or empty ones keep their defaults.

    Args:
        environ: where to read.
        overrides: settings by name that win over variables; None leaves a variable in force.

    Raises:
        SettingsInvalid: a variable can't be read; the message names it.
    """
    names = {f"TRUERANK_{name.upper()}": name for name in Settings.__struct_fields__}
    given = {names[key]: value for key, value in environ.items() if key in names and value}
    given |= {name: value for name, value in overrides.items() if value is not None}
    try:
        return msgspec.convert(given, Settings, strict=False)
    except msgspec.ValidationError as exc:
        message = str(exc).replace("`$.", "`").replace(" - at ", " in ")
        raise SettingsInvalid(f"TRUERANK settings: {message}") from exc

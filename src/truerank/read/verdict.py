"""Whether an installation is well: one judgement for people, metrics and health checks. Pure.

`degraded`: somebody is served worse than promised, or soon will be. `lagging`: everything works,
and what is shown, or was told by webhook, is older than it should be. What to do stands beside each
reason.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from truerank.telemetry.words import bytes_words

if TYPE_CHECKING:
    from truerank.read.status import Status

_LAG_MS_MAX = 5_000
_SILENCE_MS_MAX = 4_000
_DELIVERY_MS_MAX = 3_600_000
_HEARTBEATS_MAX = 3
_TURNS_MAX = 2
_LARGE = 0.5  # of the size from which copies are given up
_GROUPS_NAMED_MAX = 8


class Verdict(StrEnum):
    """How an installation is, from good to bad."""

    HEALTHY = "healthy"
    LAGGING = "lagging"
    DEGRADED = "degraded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One reason why the verdict isn't `healthy`."""

    code: str
    verdict: Verdict
    message: str
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the settings say is usual."""

    heartbeat_ms: int
    segment_s: int
    outbox_bytes_max: int

    @property
    def silence_ms_max(self) -> int:
        """After how long without a sign of life something has stopped."""
        return max(_SILENCE_MS_MAX, _HEARTBEATS_MAX * self.heartbeat_ms)


def deaf(error: str) -> Problem:
    """A process that gets no hints: its live streams are silent, its pages soon read again."""
    return _degraded(
        "hints_deaf",
        f"this process gets no hints, its live streams are silent: {error}",
        "let the user in TRUERANK_REDIS_URL SUBSCRIBE to the channels, and see that Redis answers",
    )


def worst(problems: Iterable[Problem]) -> Verdict:
    """The verdict that several problems come to."""
    return max((p.verdict for p in problems), key=list(Verdict).index, default=Verdict.HEALTHY)


def judge(status: "Status", expected: Expected) -> tuple[Problem, ...]:
    """Every reason why an installation isn't healthy, the worst first."""
    found = [
        *_stores(status),
        *_projection(status, expected),
        *_reconciled(status),
        *_outbox(status, expected),
        *_webhooks(status),
    ]
    return tuple(sorted(found, key=lambda problem: problem.verdict is not Verdict.DEGRADED))


def _stores(status: "Status") -> Iterator[Problem]:
    if status.database_error_code == "schema_mismatch":
        yield _degraded(
            "schema_mismatch", f"{status.database_error}", "run `truerank migrate` of this release"
        )
    elif status.database_error is not None:
        yield _degraded(
            "database_away",
            f"PostgreSQL: {status.database_error}",
            "scores can't be written; see that PostgreSQL runs and takes connections",
        )
    if status.read_only:
        yield _degraded(
            "database_read_only",
            "PostgreSQL takes no writes",
            "point TRUERANK_DATABASE_URL at the primary, or see why it is read-only",
        )
    if status.redis_error is not None:
        yield _degraded(
            "redis_away",
            f"Redis: {status.redis_error}",
            "boards come from PostgreSQL meanwhile; see that Redis runs and answers",
        )
    if status.scripts_error is not None:
        yield _degraded(
            "scripts_fail",
            f"Redis answers, but not to scripts: {status.scripts_error}",
            "let the user in TRUERANK_REDIS_URL call EVALSHA and EVAL; `truerank doctor` has more",
        )
    if status.eviction_policy not in {None, "noeviction"}:
        yield _degraded(
            "redis_evicts",
            f"maxmemory-policy is {status.eviction_policy}: Redis may drop parts of boards",
            "set maxmemory-policy to noeviction",
        )


def _projection(status: "Status", expected: Expected) -> Iterator[Problem]:
    if status.groups is None or status.redis_error is not None:
        return  # a worker that can't reach Redis keeps no lease and doesn't tick
    limit_ms = expected.silence_ms_max
    if status.workers == 0:
        yield _degraded(
            "worker_missing", "no worker holds a group", "start `truerank worker`, or `truerank up`"
        )
    elif status.last_tick_age_ms is None or status.last_tick_age_ms > limit_ms:
        age = "ever" if status.last_tick_age_ms is None else f"for {_s(status.last_tick_age_ms)}"
        yield _degraded(
            "ticks_stopped",
            f"no worker has ticked {age}",
            "the workers' logs say why; restart them where they say nothing",
        )
    elif status.stalled_groups:
        yield _degraded(
            "copies_stalled",
            f"ticks are taken, but nothing arrives in {_named(status.stalled_groups)}",
            "writes to Redis fail: its memory may be full, or it may be a replica; see the"
            " workers' logs and truerank_errors_total",
        )
    if status.groups_live < status.groups:
        yield _degraded(
            "copies_missing",
            f"{status.groups_live} of {status.groups} groups have a copy in Redis",
            "a worker fills them by itself; until then PostgreSQL answers for them",
        )
    if status.workers and status.groups_leased is not None and status.groups_leased < status.groups:
        yield _lagging(
            "groups_unleased",
            f"{status.groups_leased} of {status.groups} groups have a worker",
            "a worker takes them within seconds; where not, start another",
        )
    if status.parked_rankings:
        yield _degraded(
            "rankings_parked",
            f"{status.parked_rankings} rankings hold a standing that could not be applied",
            "PostgreSQL answers for them meanwhile; `truerank projection parked` tells why; mend"
            " that, then `truerank projection retry`",
        )


def _reconciled(status: "Status") -> Iterator[Problem]:
    """What the last comparison of all standings found and could not mend."""
    ahead, unrepaired = status.reconciled_ahead or 0, status.reconciled_unrepaired or 0
    if ahead:
        yield _degraded(
            "projection_ahead",
            f"{ahead} standings in Redis are newer than PostgreSQL's",
            "PostgreSQL has lost something: find out what, for nothing is overwritten unasked;"
            " then `truerank reconcile --repair --accept-ahead`",
        )
    if unrepaired > ahead:
        yield _degraded(
            "drift_left",
            f"{unrepaired - ahead} differences between Redis and PostgreSQL were not mended",
            "`truerank reconcile` shows them, `truerank reconcile --repair` mends them",
        )


def _outbox(status: "Status", expected: Expected) -> Iterator[Problem]:
    if status.lag_ms is not None and status.lag_ms > max(_LAG_MS_MAX, expected.silence_ms_max):
        yield _lagging(
            "behind",
            f"what is shown is {_s(status.lag_ms)} old, and {status.outbox_waiting} rows wait",
            "wait where it falls; where it grows, start another worker",
        )
    if (
        status.segment_age_ms is not None
        and status.segment_age_ms > _TURNS_MAX * expected.segment_s * 1000
    ):
        yield _degraded(
            "ring_stuck",
            f"the outbox has written to one segment for {_s(status.segment_age_ms)}",
            "a copy that nobody brings forward, or a lock on the outbox, keeps it from being"
            " emptied: `truerank doctor` names it",
        )
    if status.outbox_bytes is not None and status.outbox_bytes > _LARGE * expected.outbox_bytes_max:
        yield _degraded(
            "outbox_large",
            f"the outbox is {bytes_words(status.outbox_bytes)}; at"
            f" {bytes_words(expected.outbox_bytes_max)} copies that are behind are given up",
            "`truerank doctor` names what keeps it from being emptied; bring Redis back, or make"
            " room and raise TRUERANK_OUTBOX_BYTES_MAX",
        )


def _webhooks(status: "Status") -> Iterator[Problem]:
    """What receivers were to be told of and weren't. Nobody who reads is served worse for it."""
    if status.webhooks_disabled and status.deliveries_waiting:
        yield _lagging(
            "webhook_disabled",
            f"{status.webhooks_disabled} webhooks are disabled, and deliveries wait",
            "`truerank webhook list` says which, and why; then `truerank webhook change NAME"
            " --enable`, or remove it",
        )
    elif (status.delivery_oldest_age_ms or 0) > _DELIVERY_MS_MAX:
        yield _lagging(
            "deliveries_late",
            f"deliveries by webhook have waited for {_s(status.delivery_oldest_age_ms or 0)}",
            "`truerank webhook list` says of whom; `truerank webhook test NAME` why",
        )
    if status.deliveries_parked:
        yield _lagging(
            "deliveries_parked",
            f"{status.deliveries_parked} deliveries by webhook were given up",
            "`truerank webhook deliveries NAME --state parked` tells why; mend that, then"
            " `truerank webhook retry NAME`",
        )


def _degraded(code: str, message: str, advice: str) -> Problem:
    return Problem(code=code, verdict=Verdict.DEGRADED, message=message, advice=advice)


def _lagging(code: str, message: str, advice: str) -> Problem:
    return Problem(code=code, verdict=Verdict.LAGGING, message=message, advice=advice)


def _s(ms: int) -> str:
    return f"{ms // 1000} s"


def _named(groups: tuple[int, ...]) -> str:
    shown = ", ".join(str(group) for group in groups[:_GROUPS_NAMED_MAX])
    more = len(groups) - _GROUPS_NAMED_MAX
    return f"group {shown}" + (f" and {more} more" if more > 0 else "")

"""`GET /metrics`: what this process counted, and what both stores say when asked.

The stores are asked at the scrape, by bounded questions with a deadline, at most once a second.
One that is away makes its numbers absent and `truerank_up` 0; the page never fails over it.
"""

from collections.abc import Iterable, Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from truerank.read.status import Status
from truerank.read.verdict import Verdict
from truerank.serve.params import Params
from truerank.serve.watch import Watch
from truerank.telemetry.metrics import Metrics

_MS = 1000
# Name, help, and where a status has it, for what is one number. Durations are in seconds.
NUMBERS = (
    ("truerank_outbox_waiting_rows",
     "Outbox rows that the live copies don't show yet, counted up to 100,000.", "outbox_waiting"),
    ("truerank_outbox_bytes", "Size of the outbox with its ticks and indexes.", "outbox_bytes"),
    ("truerank_groups", "Groups that boards are spread over.", "groups"),
    ("truerank_groups_live", "Groups with a live copy in Redis.", "groups_live"),
    ("truerank_groups_leased", "Groups that a worker holds.", "groups_leased"),
    ("truerank_workers", "Workers that hold a group.", "workers"),
    ("truerank_copies_warming", "Copies that are being filled.", "copies_warming"),
    ("truerank_copies_dead", "Copies given up because nobody brought them forward.",
     "copies_dead"),
    ("truerank_parked_rankings", "Rankings with a standing that no copy could take.",
     "parked_rankings"),
    ("truerank_parked_rows", "Rows of attached tables that their board did not take.",
     "parked_rows"),
    ("truerank_webhook_deliveries_waiting",
     "Deliveries by webhook that wait, counted up to 10,000 of a receiver.", "deliveries_waiting"),
    ("truerank_webhook_deliveries_parked", "Deliveries by webhook that were given up.",
     "deliveries_parked"),
    ("truerank_webhooks_disabled", "Webhooks that nothing is sent to.", "webhooks_disabled"),
    ("truerank_reconcile_last_standings", "Standings that the last whole comparison compared.",
     "reconciled_standings"),
    ("truerank_reconcile_last_drift", "What was wrong when all standings were last compared.",
     "reconciled_drift"),
    ("truerank_reconcile_last_unrepaired", "What of it was not mended.", "reconciled_unrepaired"),
    ("truerank_score_table_dead_rows", "Dead rows of the score table, as PostgreSQL estimates.",
     "dead_rows"),
    ("truerank_redis_memory_bytes", "Memory that Redis uses.", "redis_memory_bytes"),
    ("truerank_redis_memory_limit_bytes", "Memory that Redis may use; 0: no limit.",
     "redis_memory_max_bytes"),
    ("truerank_redis_evicted_keys", "Keys that Redis evicted since its start, whoever's.",
     "redis_evicted_keys"),
)  # fmt: skip
DURATIONS = (
    ("truerank_outbox_age_seconds", "The most that any waiting outbox row has waited.",
     "outbox_age_ms"),
    ("truerank_lag_seconds", "Age of what the slowest live copy shows whole.", "lag_ms"),
    ("truerank_last_tick_age_seconds", "Since the last tick of any worker.", "last_tick_age_ms"),
    ("truerank_reconcile_last_age_seconds", "Since all standings were last compared.",
     "reconciled_age_ms"),
    ("truerank_reconcile_last_seconds", "How long that took.", "reconciled_took_ms"),
    ("truerank_webhook_delivery_age_seconds",
     "How long the oldest of the deliveries by webhook has waited.", "delivery_oldest_age_ms"),
    ("truerank_segment_age_seconds", "How long the outbox has written to its segment.",
     "segment_age_ms"),
)  # fmt: skip
FILLINGS = (
    ("truerank_rebuild_rows", "Standings that are in a group's new copy.", "rows"),
    ("truerank_rebuild_rows_about", "About how many it will hold.", "rows_about"),
    ("truerank_rebuild_checked_rows", "Standings of it that were compared with PostgreSQL.",
     "checked"),
)  # fmt: skip
_HELD_KINDS = {
    "session": "a session of this database in a transaction",
    "prepared": "a transaction that waits for COMMIT PREPARED",
    "slot": "a replication slot",
}


async def metrics(request: Request) -> Response:
    """`GET /metrics`, in the format of Prometheus or of OpenMetrics, as the client asks."""
    Params(request, ())
    watch: Watch = request.app.state.watch
    encode, content_type = choose_encoder(request.headers.get("accept", ""))
    page = encode(Page(watch.metrics, await watch.status()))
    return Response(page, headers={"content-type": content_type, "cache-control": "no-store"})


class Page(Collector):
    """What an encoder takes for a registry.

    Args:
        counted: what this process counts.
        status: what both stores say.
    """

    def __init__(self, counted: Metrics, status: Status) -> None:
        self._counted = counted
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """Every metric with its samples."""
        yield from self._counted.collect()
        yield from gauges(self._status)


def gauges(status: Status) -> Iterator[Metric]:
    """What both stores say; without the numbers of a store that did not tell."""
    yield _gauge(
        "truerank_up",
        "Whether a store answered: postgresql, redis.",
        "store",
        (
            ("postgresql", status.database_error is None),
            ("redis", status.redis_error is None),
        ),
    )
    yield GaugeMetricFamily(
        "truerank_scripts_up",
        "Whether Redis runs scripts: it may answer all else and not these.",
        value=status.redis_error is None and status.scripts_error is None,
    )
    yield _gauge(
        "truerank_verdict",
        "1 for what `truerank status` would say.",
        "verdict",
        ((verdict, verdict is status.verdict) for verdict in Verdict),
    )
    yield _gauge(
        "truerank_problem",
        "1 for each reason of a verdict that isn't healthy.",
        "code",
        ((problem.code, True) for problem in status.problems),
    )
    for name, told, attribute in NUMBERS:
        value = getattr(status, attribute)
        if value is not None:
            yield GaugeMetricFamily(name, told, value=value)
    for name, told, attribute in DURATIONS:
        value = getattr(status, attribute)
        if value is not None:
            yield GaugeMetricFamily(name, told, value=value / _MS)
    yield _gauge(
        "truerank_projected_through_age_seconds",
        "Age of what a group's live copy shows whole.",
        "group",
        ((str(g), ms / _MS) for g, ms in (status.copy_ages_ms or {}).items()),
    )
    yield _gauge(
        "truerank_segment_bytes",
        "Size of each segment of the outbox, with its ticks and indexes.",
        "segment",
        ((str(n), size) for n, size in enumerate(status.segment_bytes)),
    )
    for name, told, attribute in FILLINGS:
        yield _gauge(
            name,
            told,
            "group",
            ((str(each.group), getattr(each, attribute)) for each in status.fillings),
        )
    yield from _held(status)


def _held(status: Status) -> Iterator[Metric]:
    """What keeps dead rows of the score table from being removed."""
    if status.database_error is not None:
        return
    held = {each.kind: each for each in status.held_back}
    yield _gauge(
        "truerank_oldest_xmin_age_transactions",
        "Transactions begun since the oldest snapshot of its kind, which keeps dead rows: "
        + ", ".join(f"{kind} is {told}" for kind, told in _HELD_KINDS.items())
        + ".",
        "kind",
        ((kind, held[kind].xids if kind in held else 0) for kind in _HELD_KINDS),
    )
    yield _gauge(
        "truerank_oldest_transaction_seconds",
        "How long the oldest transaction of its kind has been open.",
        "kind",
        (
            (kind, (held[kind].age_ms or 0) / _MS if kind in held else 0)
            for kind in ("session", "prepared")
        ),
    )
    prepared = held["prepared"].held if "prepared" in held else 0
    yield GaugeMetricFamily(
        "truerank_prepared_transactions",
        "Transactions that wait for COMMIT PREPARED.",
        value=prepared,
    )


def _gauge(
    name: str, told: str, label: str, values: Iterable[tuple[str, float]]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, told, labels=[label])
    for value, number in values:
        family.add_metric([value], number)
    return family

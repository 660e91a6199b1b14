"""The numbers of one process for Prometheus: every counter, with its name, unit and help.

What the stores themselves know (what waits, who works, how old copies are) isn't counted here but
read from them when somebody asks; see `truerank.serve.metrics`.
"""

import platform
from collections.abc import Iterator
from importlib.metadata import version

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    Metric,
    PlatformCollector,
    ProcessCollector,
)

from truerank.telemetry.meter import Meter

_REDIS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_HTTP_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_BATCH = (1, 10, 100, 1_000, 5_000, 20_000, 100_000, 1_000_000)
_BREAKER_STATES = ("closed", "half_open", "open")


class Metrics(Meter):
    """Keeps what one process counts. Make one per process and hand it to all of its parts.

    `registry` is its own: nothing is shared with other users of the Prometheus client.
    """

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        Info("truerank_build", "The release that runs.", registry=registry).info(
            {"version": version("truerank"), "python": platform.python_version()}
        )
        self._redis = Histogram(
            "truerank_redis_call_seconds",
            "Round trips to Redis by script or command, with the network.",
            ["call"],
            buckets=_REDIS_S,
            registry=registry,
        )
        self._scripts = Counter(
            "truerank_script_calls_total",
            "Script calls by what Redis answered: applied, ok and switched, or why not.",
            ["script", "reply"],
            registry=registry,
        )
        self._ticks = Counter(
            "truerank_ticks_total", "Ticks that this worker committed.", registry=registry
        )
        self._batches = Histogram(
            "truerank_batch_standings",
            "Changed standings in a batch that this worker read from the outbox.",
            buckets=_BATCH,
            registry=registry,
        )
        self._leases = Gauge(
            "truerank_leases_held_groups", "Groups that this worker holds.", registry=registry
        )
        self._turns = Counter(
            "truerank_ring_turns_total",
            "Attempts of this worker to turn the ring of outbox segments, by outcome.",
            ["outcome"],
            registry=registry,
        )
        self._compared = Counter(
            "truerank_reconciled_standings_total",
            "Standings of the projection that were compared with PostgreSQL as routine, by what was"
            " found; all but current and lagging are drift.",
            ["kind"],
            registry=registry,
        )
        self._drift = Counter(
            "truerank_reconciled_drift_total",
            "Differences that were repaired as routine; other: those of rankings and copies as"
            " such, whether repaired or not.",
            ["what"],
            registry=registry,
        )
        self._breaker = Gauge(
            "truerank_breaker_state",
            "1 for the state of the breaker before Redis; of several the one that changed last.",
            ["state"],
            registry=registry,
        )
        self.breaker_changed("closed")
        self._copies = Counter(
            "truerank_rebuilds_total",
            "Copies that this worker filled, by why they were begun and what became of them.",
            ["cause", "outcome"],
            registry=registry,
        )
        self._deliveries = Counter(
            "truerank_webhook_attempts_total",
            "Attempts of this worker to deliver by webhook, by how they ended; parked: the last one"
            " failed.",
            ["outcome"],
            registry=registry,
        )
        self._errors = Counter(
            "truerank_errors_total",
            "What failed and should not have, by part of the program and code.",
            ["part", "code"],
            registry=registry,
        )
        self._reads = Counter(
            "truerank_reads_total",
            "Pages read, by the store that answered and what was asked for; source database with"
            " consistency any, at_least or max_age is a fallback; not_kept is dense counting on a"
            " board that doesn't keep it, history a look back in time.",
            ["source", "consistency"],
            registry=registry,
        )
        self._checks = Counter(
            "truerank_live_checks_total",
            "Reads that were repeated in both stores and compared; different is a fault, unjudged"
            " were those with something on its way.",
            ["outcome"],
            registry=registry,
        )
        self._pages = Counter(
            "truerank_pages_total",
            "Pages that a server may hold: given out as held, joined to a read under way, or read.",
            ["outcome"],
            registry=registry,
        )
        self._commands = Counter(
            "truerank_commands_total",
            "Score events by outcome; of refused ones the code says why.",
            ["outcome", "code"],
            registry=registry,
        )
        self._requests = Counter(
            "truerank_http_requests_total",
            "HTTP requests answered, by route and status.",
            ["route", "status"],
            registry=registry,
        )
        self._request_s = Histogram(
            "truerank_http_request_seconds",
            "Time from a request to the first byte of its answer, by route.",
            ["route"],
            buckets=_HTTP_S,
            registry=registry,
        )
        self._answered: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self._given = {each: self._pages.labels(each) for each in ("held", "joined", "read")}
        self._streams = Gauge(
            "truerank_streams_open", "Live streams open in this process.", registry=registry
        )

    def collect(self) -> Iterator[Metric]:
        """Every metric with its samples, without the instants at which they were made."""
        for metric in self.registry.collect():
            metric.samples = [each for each in metric.samples if not each.name.endswith("_created")]
            yield metric

    def redis_answered(self, call: str, seconds: float) -> None:
        """See `Meter`."""
        self._redis.labels(call).observe(seconds)

    def script_replied(self, script: str, reply: str) -> None:
        """See `Meter`."""
        self._scripts.labels(script, reply).inc()

    def tick_taken(self) -> None:
        """See `Meter`."""
        self._ticks.inc()

    def batch_read(self, standings: int) -> None:
        """See `Meter`."""
        self._batches.observe(standings)

    def leases_held(self, groups: int) -> None:
        """See `Meter`."""
        self._leases.set(groups)

    def ring_turned(self, outcome: str) -> None:
        """See `Meter`."""
        self._turns.labels(outcome).inc()

    def standings_compared(self, kind: str, number: int) -> None:
        """See `Meter`."""
        self._compared.labels(kind).inc(number)

    def drift_met(self, what: str, number: int) -> None:
        """See `Meter`."""
        self._drift.labels(what).inc(number)

    def breaker_changed(self, state: str) -> None:
        """See `Meter`."""
        for each in _BREAKER_STATES:
            self._breaker.labels(each).set(each == state)

    def copy_ended(self, cause: str, outcome: str) -> None:
        """See `Meter`."""
        self._copies.labels(cause, outcome).inc()

    def delivery_ended(self, outcome: str) -> None:
        """See `Meter`."""
        self._deliveries.labels(outcome).inc()

    def failed(self, part: str, code: str) -> None:
        """See `Meter`."""
        self._errors.labels(part, code).inc()

    def read_answered(self, source: str, consistency: str) -> None:
        """See `Meter`."""
        self._reads.labels(source, consistency).inc()

    def live_checked(self, outcome: str) -> None:
        """See `Meter`."""
        self._checks.labels(outcome).inc()

    def page_given(self, outcome: str) -> None:
        """See `Meter`."""
        self._given[outcome].inc()

    def command_answered(self, outcome: str, code: str | None) -> None:
        """See `Meter`."""
        self._commands.labels(outcome, code or "").inc()

    def request_answered(self, route: str, status: int, seconds: float) -> None:
        """See `Meter`."""
        key = (route, status)
        if key not in self._answered:  # to look up a label takes longer than to count
            self._answered[key] = (self._requests.labels(*key), self._request_s.labels(route))
        requests, took = self._answered[key]
        requests.inc()
        took.observe(seconds)

    def streams_open(self, change: int) -> None:
        """See `Meter`."""
        self._streams.inc(change)

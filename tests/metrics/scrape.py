"""Read a page of metrics as Prometheus reads it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette

from truerank.read.status import Status
from truerank.serve.metrics import Page
from truerank.telemetry.metrics import Metrics

Labels = tuple[tuple[str, str], ...]
Samples = Mapping[tuple[str, Labels], float]


class Numbers:
    """What a page says."""

    def __init__(self, page: str) -> None:
        self.families = {
            family.name + ("_total" if family.type == "counter" else ""): family
            for family in text_string_to_metric_families(page)
        }
        self._samples: Samples = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in self.families.values()
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float | None:
        """One sample, or None where there is none."""
        return self._samples.get((name, tuple(sorted(labels.items()))))


def told(status: Status, numbers: Metrics | None = None) -> Numbers:
    """The page that a process would serve that saw this status."""
    return Numbers(generate_latest(Page(numbers or Metrics(), status)).decode())


def counted(numbers: Metrics) -> Numbers:
    """What a process has counted so far."""
    return told(Status(), numbers)


@asynccontextmanager
async def asking(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    """Ask an application without a server between."""
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1"
        ) as client,
    ):
        yield client

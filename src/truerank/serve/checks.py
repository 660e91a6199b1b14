"""Some reads are asked of both stores in the background, and compared.

Nobody waits for it: one comparison at a time, after the reader has its answer.
"""

import asyncio
import random
import time

import msgspec
import structlog

from truerank.aio import Truerank
from truerank.ending import ended
from truerank.model import Page, PageRequest
from truerank.read.answers import Question
from truerank.read.checking import Outcome
from truerank.telemetry.meter import Meter

_LOG_GAP_S = 60.0


class LiveChecks:
    """Takes part of what a client reads from the projection, and compares.

    Args:
        client: whose reads.
        meter: told of every outcome.
        percent: how many of the reads, as far as one is over before the next.
    """

    def __init__(self, client: Truerank, meter: Meter, *, percent: float) -> None:
        self._client = client
        self._meter = meter
        self._share = percent / 100
        self._draw = random.Random()  # noqa: S311 - no secret
        self._task: asyncio.Task[None] | None = None
        self._quiet_until = 0.0
        if percent > 0:
            client.operations.answers.on_projected = self.offer

    def offer(self, question: Question, page: Page) -> None:
        """Take a read that was answered by the projection, or don't."""
        busy = self._task is not None and not self._task.done()
        if busy or page.freshness.partial or self._draw.random() >= self._share:
            return
        self._task = asyncio.create_task(self._check(question))

    async def close(self) -> None:
        """End what is under way."""
        if self._task is not None:
            await ended(self._task)

    async def _check(self, question: Question) -> None:
        try:
            outcome = await self._client.run(self._client.operations.answers.check(question))
        except Exception:  # noqa: BLE001 - nobody waits for this task to hear of it
            _log().exception("live_check_crashed")
            return
        self._meter.live_checked(outcome)
        now = time.monotonic()
        if outcome is Outcome.DIFFERENT and now >= self._quiet_until:
            self._quiet_until = now + _LOG_GAP_S
            _log().error(
                "live_check_differs",
                board=question.board.spec.key,
                season=question.season.label,
                asked=_asked(question.request),
            )


def _asked(request: PageRequest) -> dict[str, object]:
    """What was asked for, but not whom: a log keeps nobody's id, and a cursor holds one."""
    usual = PageRequest()
    given = {
        name: value
        for name, value in msgspec.structs.asdict(request).items()
        if value != getattr(usual, name)
    }
    return {
        name: len(value) if name == "members" else value
        for name, value in given.items()
        if name not in {"around", "cursor"}
    }


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.serve")
    return log

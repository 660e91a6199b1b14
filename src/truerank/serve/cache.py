"""Pages that one process holds as bytes, so that many readers of one page cost one read.

A page is held until the projection hints that its ranking changed, and never longer than
`cache_max_ms`, which is when members that were hidden meanwhile are gone from it in any case. Where
hints don't arrive, or PostgreSQL answered, of which they tell nothing, it is held for a moment.
Its age is told truly: what it was when read, and the time since that read was sent.

Readers who come while a page is read wait for it, unless a hint came in between. Failures are
told to those who waited, and not held.
"""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import Response
from starlette.types import Scope

from truerank.aio import Truerank
from truerank.ending import ended
from truerank.model import Consistency, Freshness, Histogram, Need, Page, Season, Source
from truerank.read.cohorts import InCohort, is_current
from truerank.read.consistency import Judge
from truerank.read.hints import Hint
from truerank.serve.feed import Feed
from truerank.serve.replies import Encoded
from truerank.settings import Settings
from truerank.telemetry.meter import Meter

PAGES_MAX = 2000
BYTES_MAX = 32 << 20
_UNHINTED_S = 0.05  # about what a score takes to be shown anyway
_ADDRESS_BYTES_MAX = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question that many may ask, but for how fresh its answer must be.

    `key` holds all that decides the answer; `read` and `encode` make it.
    """

    key: Hashable
    board: str
    season: str | InCohort | None
    cursor: str | None
    read: Callable[[Consistency], Awaitable[Page | Histogram]]
    encode: Callable[[Any], Encoded]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    encoded: Encoded
    freshness: Freshness
    sent: float  # monotonic, in seconds
    ranking: int
    group: int
    until: float | None  # of the wall clock: the season's end, where the current one was asked for

    def held_ms(self, now: float) -> int:
        return math.ceil((now - self.sent) * 1000)


@dataclass(eq=False, slots=True)
class _Flight:
    """One read under way. `overtaken`: what it finds may be old by the time it arrives."""

    task: "asyncio.Task[_Held]" = field(init=False)
    overtaken: bool = False
    ranking: int | None = None  # once it is known


class Pages:
    """The pages of one process, least lately used first.

    Args:
        client: reads what isn't held.
        feed: tells what changed.
        settings: of the process.
        meter: told how pages were had.
        pages_max: no more are held.
        bytes_max: nor more than this.
    """

    def __init__(
        self,
        client: Truerank,
        feed: Feed,
        settings: Settings,
        meter: Meter,
        *,
        pages_max: int = PAGES_MAX,
        bytes_max: int = BYTES_MAX,
    ) -> None:
        self._client = client
        self._feed = feed
        self._meter = meter
        self._hold_s = settings.cache_max_ms / 1000
        self._fallback_after_ms = settings.fallback_after_ms
        self._pages_max, self._bytes_max = pages_max, bytes_max
        self._held: OrderedDict[Hashable, _Held] = OrderedDict()
        self._by_ranking: dict[int, set[Hashable]] = {}
        self._bytes = 0
        self._flights: dict[Hashable, _Flight] = {}
        self._all_flights: set[_Flight] = set()  # those that were overtaken, too
        # What addresses ask, so that a page that is held needs no second look at its address.
        self._addresses: dict[tuple[bytes, bytes], tuple[Hashable, Judge, object]] = {}
        feed.followers.append(self)

    def at_hand(self, scope: Scope) -> Response | None:
        """The answer to an address that was asked before, where it is held and fresh enough.

        The scope then also names the function that answers such addresses.
        """
        known = self._addresses.get((scope["raw_path"], scope["query_string"]))
        if known is None:
            return None
        key, judge, scope["endpoint"] = known
        return self._from_held(scope, key, judge)

    async def answer(self, scope: Scope, question: Question, consistency: Consistency) -> Response:
        """Answer from what is held, or from a read, one's own or another's.

        Raises:
            TruerankError: see `Truerank.top`.
        """
        judge = Judge(consistency, fallback_after_ms=self._fallback_after_ms)
        # With or without a token of its own: a page is as its readers asked for it.
        key = (question.key, judge.compares)
        self._note_address(scope, key, judge, consistency)
        found = self._from_held(scope, key, judge)
        if found is not None:
            return found
        arrived = time.monotonic()
        while True:
            flight = self._flights.get((key, consistency))
            self._meter.page_given("read" if flight is None else "joined")
            if flight is None:
                flight = self._begin(key, question, consistency)
            # Whoever gives up leaves the others their read.
            held = await asyncio.shield(flight.task)
            if held.sent >= arrived:
                return held.encoded.response(scope)
            now = time.monotonic()
            held_ms = held.held_ms(now)
            if now - held.sent <= self._hold_s and judge.allows(held.freshness, held_ms=held_ms):
                return held.encoded.response(scope, held_ms=held_ms)

    def clear(self) -> None:
        """Hold nothing of what was read, or is being read, before now."""
        self._held.clear()
        self._by_ranking.clear()
        self._bytes = 0
        for flight in self._all_flights:
            flight.overtaken = True
        self._flights.clear()

    def hinted(self, hint: Hint) -> None:
        """Read the pages of these rankings again."""
        for ranking in hint.rankings:
            for key in list(self._by_ranking.get(ranking, ())):
                self._drop(key)
        if self._all_flights:
            overtaken = [f for f in self._all_flights if f.ranking in hint.rankings]
            for flight in overtaken:
                flight.overtaken = True
            self._flights = {k: f for k, f in self._flights.items() if not f.overtaken}

    def lost(self) -> None:
        """Read all again: hints may have been lost."""
        self.clear()

    async def close(self) -> None:
        """End the reads that are under way."""
        await ended(*(flight.task for flight in self._all_flights))

    def _from_held(self, scope: Scope, key: Hashable, judge: Judge) -> Response | None:
        held = self._held.get(key)
        if held is None:
            return None
        now = time.monotonic()
        if now - held.sent > self._hold_for_s(held) or (
            held.until is not None and time.time() >= held.until
        ):
            self._drop(key)
            return None
        held_ms = held.held_ms(now)
        if not judge.allows(held.freshness, held_ms=held_ms):
            return None
        self._held.move_to_end(key)
        self._meter.page_given("held")
        return held.encoded.response(scope, held_ms=held_ms)

    def _hold_for_s(self, held: _Held) -> float:
        if held.freshness.source is Source.PROJECTION and self._feed.hears(held.group):
            return self._hold_s
        return min(self._hold_s, _UNHINTED_S)

    def _begin(self, key: Hashable, question: Question, consistency: Consistency) -> _Flight:
        flight = _Flight()
        self._all_flights.add(flight)
        self._flights[key, consistency] = flight

        async def read() -> _Held:
            try:
                held = await self._read(flight, question, consistency)
                plain = consistency.need is Need.ANY or held.freshness.source is Source.PROJECTION
                if plain and not consistency.or_pending and not flight.overtaken:
                    self._keep(key, held)
                return held
            finally:
                self._all_flights.discard(flight)
                if self._flights.get((key, consistency)) is flight:
                    del self._flights[key, consistency]

        flight.task = asyncio.create_task(read())
        # Those who waited may all be gone: then nobody asks how it ended.
        flight.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        return flight

    async def _read(self, flight: _Flight, question: Question, consistency: Consistency) -> _Held:
        board, season, _ = await self._client.run(
            self._client.operations.known.located(question.board, question.season, question.cursor)
        )
        await self._feed.follow(board.group)
        flight.ranking = season.ranking
        sent = time.monotonic()
        page = await question.read(consistency)
        return _Held(
            encoded=question.encode(page),
            freshness=page.freshness,
            sent=sent,
            ranking=season.ranking,
            group=board.group,
            until=_until(question, season),
        )

    def _keep(self, key: Hashable, held: _Held) -> None:
        if self._hold_s == 0 or held.encoded.size > self._bytes_max:
            return
        self._drop(key)
        self._held[key] = held
        self._by_ranking.setdefault(held.ranking, set()).add(key)
        self._bytes += held.encoded.size
        while len(self._held) > self._pages_max or self._bytes > self._bytes_max:
            self._drop(next(iter(self._held)))

    def _drop(self, key: Hashable) -> None:
        held = self._held.pop(key, None)
        if held is None:
            return
        self._bytes -= held.encoded.size
        keys = self._by_ranking[held.ranking]
        keys.discard(key)
        if not keys:
            del self._by_ranking[held.ranking]

    def _note_address(
        self, scope: Scope, key: Hashable, judge: Judge, consistency: Consistency
    ) -> None:
        address = (scope["raw_path"], scope["query_string"])
        # Tokens are different each time, and long addresses would take more than pages do. What is
        # asked in a body isn't in the address.
        if (
            scope["method"] != "POST"
            and consistency.token is None
            and len(address[0]) + len(address[1]) <= _ADDRESS_BYTES_MAX
        ):
            if len(self._addresses) >= self._pages_max:
                self._addresses.clear()
            self._addresses[address] = (key, judge, scope["endpoint"])


def _until(question: Question, season: Season) -> float | None:
    if is_current(question.season) and question.cursor is None and season.ends_at is not None:
        return season.ends_at.timestamp()
    return None

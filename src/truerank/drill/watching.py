"""A reader that asks without a pause while something is broken, and remembers what it was told."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

from truerank.client import Truerank
from truerank.errors import TruerankError
from truerank.model import Source

_PAUSE_S = 0.003
_ROWS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One answer."""

    source: Source
    tick: int | None
    staleness_ms: int | None  # None: unknown, and told so
    scores: tuple[tuple[str, str], ...]  # member and score, in the order of the ranking

    def of(self, member: str) -> str | None:
        """The score of a member."""
        return dict(self.scores).get(member)


class Watch:
    """All answers that one reader got, in their order; equal ones in a row are kept once."""

    def __init__(self, client: Truerank, board: str) -> None:
        self._client = client
        self._board = board
        self._stop = threading.Event()
        self.asked: dict[Source, int] = dict.fromkeys(Source, 0)
        self.sights: list[Sight] = []
        self.refused: list[str] = []
        self.staleness_ms_max = 0

    def look(self) -> Sight:
        """Ask once, as any reader does."""
        page = self._client.top(self._board, limit=_ROWS)
        freshness = page.freshness
        return Sight(
            source=freshness.source,
            tick=freshness.tick,
            staleness_ms=freshness.staleness_ms,
            scores=tuple((entry.member, entry.score) for entry in page.entries),
        )

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Ask without a pause for the length of the block."""
        thread = threading.Thread(target=self._ask, name="reader")
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    @property
    def boards(self) -> set[tuple[tuple[str, str], ...]]:
        """Every ranking that was told."""
        return {sight.scores for sight in self.sights}

    def steps_back(self) -> int:
        """How often an answer of the projection was older than one of it before."""
        ticks = [sight.tick for sight in self.sights if sight.tick is not None]
        return sum(after < before for before, after in pairwise(ticks))

    def words(self) -> str:
        """What was seen, in a sentence."""
        shown, read = self.asked[Source.PROJECTION], self.asked[Source.DATABASE]
        words = f"{shown + read} answers: {shown} from Redis"
        if shown:
            words += f", at most {self.staleness_ms_max} ms old"
        words += f"; {read} from PostgreSQL"
        return f"{words}; {len(self.refused)} refused" if self.refused else words

    def _ask(self) -> None:
        while not self._stop.is_set():
            try:
                sight = self.look()
            except TruerankError as exc:
                self.refused.append(exc.reason)
            else:
                self.asked[sight.source] += 1
                self.staleness_ms_max = max(self.staleness_ms_max, sight.staleness_ms or 0)
                before = self.sights[-1] if self.sights else None
                if before is None or (before.source, before.tick, before.scores) != (
                    sight.source,
                    sight.tick,
                    sight.scores,
                ):
                    self.sights.append(sight)
            time.sleep(_PAUSE_S)

"""What an act works with: its stage, and who hears of it."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from truerank.drill.processes import WAIT_S_MAX, DrillStuck, wait_for
from truerank.drill.stage import BOARD, Stage
from truerank.drill.story import ActResult, Check, SideBySide, Teller
from truerank.drill.watching import Watch
from truerank.model import Source
from truerank.repair.verified import Verdict
from truerank.repair.verify import verify


class ActOver(Exception):
    """The rest of the act would tell nothing more."""


STORES = {Source.PROJECTION: "Redis", Source.DATABASE: "PostgreSQL"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One act while it is played. Whatever is told is kept in its result as well."""

    stage: Stage
    teller: Teller
    result: ActResult
    patience_s: float = WAIT_S_MAX  # for what was broken to become whole

    def did(self, text: str) -> None:
        """Tell what was done to the pipeline."""
        self.result.did.append(text)
        self.teller.did(text)

    def saw(self, text: str) -> None:
        """Tell what a reader saw."""
        self.result.saw.append(text)
        self.teller.saw(text)

    def check(self, promise: str, kept: bool, found: object = "") -> bool:  # noqa: FBT001 - reads as a sentence
        """Look at one promise.

        Args:
            promise: a sentence that is true where it was kept.
            kept: whether it was.
            found: what was there.
        """
        check = Check(promise=promise, kept=bool(kept), found=str(found))
        self.result.checks.append(check)
        self.teller.checked(check)
        return check.kept

    def compare(self, *members: str) -> SideBySide:
        """Ask both stores for the scores of some members, and tell."""
        source = self.stage.scores(Source.DATABASE) or {}
        shown = self.stage.scores(Source.PROJECTION) or {}
        sides = SideBySide(
            source={member: source.get(member) for member in members},
            projection={member: shown.get(member) for member in members},
        )
        self.result.tables.append(sides)
        self.teller.compared(sides)
        return sides

    def until_whole(
        self,
        since: float | None = None,
        promise: str = "Redis comes to show all that PostgreSQL has, by itself",
    ) -> None:
        """Wait until Redis shows all there is.

        Args:
            since: when it was broken, by the monotonic clock: the longest time from there is told.
                None: it wasn't.
            promise: told as broken where it takes too long.

        Raises:
            ActOver: it took too long, and what follows in the act rests on it.
        """
        try:
            limit_s = WAIT_S_MAX if since is None else self.patience_s
            wait_for(self.stage.is_whole, "all is shown", limit_s=limit_s)
        except DrillStuck as exc:
            self.check(promise, kept=False, found=str(exc))
            raise ActOver from exc
        if since is not None:
            took_ms = round((time.monotonic() - since) * 1000)
            self.result.whole_after_ms = max(took_ms, self.result.whole_after_ms or 0)

    def never_wrong(self, watch: Watch, *boards: dict[str, int]) -> None:
        """Check that a reader was told nothing but rankings that once were.

        Args:
            watch: what the reader got.
            boards: every state that there was, each as member and score.
        """
        self.saw(watch.words())
        true = {
            tuple((m, str(s)) for m, s in sorted(board.items(), key=lambda each: -each[1]))
            for board in boards
        }
        wrong = watch.boards - true
        self.check(
            "every answer was a whole ranking that once was: none empty, none invented",
            not wrong and bool(watch.boards),
            next(iter(wrong), ""),
        )
        self.check("no reader was refused", not watch.refused, ", ".join(set(watch.refused)))

    def same_everywhere(self) -> None:
        """Check that events, standings, Redis and every read path give one ranking."""
        found = verify(self.stage.settings, BOARD)
        wrong = [path.name for path in found.paths if not path.same]
        self.check(
            "events, standings, Redis and every read path give the same ranking",
            found.verdict is Verdict.SAME,
            f"sha256:{found.digest[:16]}..." if not wrong else f"not so: {', '.join(wrong)}",
        )


def raised(kind: type[Exception], call: Callable[[], object]) -> bool:
    """Whether a call raises an error of this kind; any other is raised on."""
    try:
        call()
    except kind:
        return True
    return False

"""Rankings that can't be applied: left out of copies, answered from PostgreSQL, tried again later.

A copy that leaves a ranking out says so in its counts before the first row of it is passed by, and
for as long as it exists: no reader gets the ranking from it. Only a new copy tries it again.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice

import structlog

from truerank.errors import ProjectionUnavailable
from truerank.outbox.ticks import Connection
from truerank.projection.copies import Copies, Copy
from truerank.projection.link import Link
from truerank.projection.poison import Refused, is_poison
from truerank.steps import ScriptCall

_MARKED = 1
_RANKINGS_PER_CALL_MAX = 1000
_NOTHING: frozenset[int] = frozenset()


class Parking:
    """What is parked in the groups that a worker holds, and what each copy leaves out.

    Args:
        conn: in autocommit.
        link: to the server that holds the copies.
        copies: knows the keys.
    """

    def __init__(self, conn: Connection, link: Link, copies: Copies) -> None:
        self._conn = conn
        self._link = link
        self._copies = copies
        self._parked: dict[int, set[int]] = {}  # by group
        self._without: dict[str, set[int]] = {}  # by generation

    def left_out(self, generation: str) -> AbstractSet[int]:
        """The rankings that aren't applied to a copy."""
        return self._without.get(generation, _NOTHING)

    def load(self, groups: Sequence[int]) -> None:
        """Read what is parked in these groups.

        Source: `schema/functions/parked_rankings.sql`.
        """
        for group in groups:
            self._parked[group] = set()
        for group, ranking in self._rows(groups, due_only=False):
            self._parked[group].add(ranking)

    def due(self, groups: Iterable[int]) -> dict[int, set[int]]:
        """What is to be tried again now, by group."""
        due: dict[int, set[int]] = {}
        for group, ranking in self._rows(sorted(groups), due_only=True):
            due.setdefault(group, set()).add(ranking)
            self._parked.setdefault(group, set()).add(ranking)
        return due

    def begin(self, copies: Sequence[Copy], due: Mapping[int, set[int]]) -> None:
        """Have new copies leave out what is parked in their groups, but for what is due."""
        for copy in copies:
            parked = self._parked.get(copy.group, set())
            self._without[copy.generation] = parked - due.get(copy.group, set())
        self.mark(copies)

    def adopt(self, copies: Sequence[Copy]) -> list[Copy]:
        """Have copies that were found leave out what they did, as far as we know, or all of it.

        Returns:
            Those that can't be marked, because they are broken.
        """
        for copy in copies:
            if copy.generation not in self._without:
                self._without[copy.generation] = set(self._parked.get(copy.group, ()))
        return self.mark(copies)

    def mark(self, copies: Sequence[Copy]) -> list[Copy]:
        """Say in the counts of copies what they leave out; see `adopt`."""
        calls = [
            (copy, call)
            for copy in copies
            for call in self._mark_calls(copy, self.left_out(copy.generation))
        ]
        replies, _ = self._link.calls([call for _, call in calls])
        broken: list[Copy] = []
        for (copy, _), reply in zip(calls, replies, strict=True):
            if is_poison(reply):
                broken.append(copy)
            elif reply != _MARKED:
                raise ProjectionUnavailable(f"group {copy.group} could not be marked: {reply}")
        return broken

    def park(self, copy: Copy, refused: Sequence[Refused], *, at_once: bool) -> bool:
        """Leave rankings out of a copy from now on.

        Args:
            copy: that can't take them.
            refused: the rankings, and why.
            at_once: try them in a new copy as soon as may be, where they are new here.

        Returns:
            False where the copy can't be marked: it is broken, and nothing was left out.

        Source: `schema/functions/park_standings.sql`.
        """
        rankings = {each.ranking for each in refused}
        before = self._without.get(copy.generation, set())
        self._without[copy.generation] = before | rankings
        if self.mark([copy]):
            self._without[copy.generation] = before
            return False
        self._conn.execute(
            "SELECT truerank.park_standings(%s::bigint[], %s::smallint[], %s::text[],"
            " %s::bigint[], %s::text[], %s)",
            (
                [each.ranking for each in refused],
                [copy.group for _ in refused],
                [each.member for each in refused],
                [each.version for each in refused],
                [each.reason[:500] for each in refused],
                at_once,
            ),
        )
        self._parked.setdefault(copy.group, set()).update(rankings)
        _log().error(
            "standings_parked",
            group=copy.group,
            rankings=sorted(rankings)[:10],
            number=len(rankings),
            reason=refused[0].reason[:200],
        )
        return True

    def show(self, copies: Iterable[Copy]) -> None:
        """Forget what copies that readers read now do show.

        Source: `schema/functions/unpark_standings.sql`.
        """
        shown: set[int] = set()
        for copy in copies:
            shown |= self._parked.get(copy.group, set()) - self.left_out(copy.generation)
            self._parked[copy.group] = set(self.left_out(copy.generation))
        if shown:
            self._conn.execute("SELECT truerank.unpark_standings(%s::bigint[])", (sorted(shown),))
            _log().info("standings_unparked", rankings=sorted(shown)[:10], number=len(shown))

    def keep(self, generations: Iterable[str]) -> None:
        """Forget what was left out of all other copies."""
        kept = set(generations)
        self._without = {name: out for name, out in self._without.items() if name in kept}

    def _mark_calls(self, copy: Copy, rankings: Iterable[int]) -> Iterable[ScriptCall]:
        keys = self._copies.keys(copy.group, copy.generation)
        waiting = iter(sorted(rankings))
        while some := list(islice(waiting, _RANKINGS_PER_CALL_MAX)):
            yield ScriptCall("quarantine", [keys.meta, keys.counts], [copy.epoch, *some])

    def _rows(self, groups: Sequence[int], *, due_only: bool) -> list[tuple[int, int]]:
        return self._conn.execute(
            "SELECT grp, ranking FROM truerank.parked_rankings(%s::smallint[], %s)",
            (list(groups), due_only),
        ).fetchall()


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.worker")
    return log

"""Fill anew what is damaged, and leave out of copies what can't be applied to them."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import structlog

from truerank.errors import RebuildCheckFailed
from truerank.outbox.ticks import Connection, Part
from truerank.projection.held import Held, Stamp, probe_call, probed
from truerank.projection.link import Link
from truerank.projection.patrol import Patrol
from truerank.projection.poison import Refused, misread, sift
from truerank.projection.stock import TRIES_MAX, Stock
from truerank.steps import ScriptCall

_SIFTED_ROWS_MAX = 400  # in one call, where it is looked for what can't be applied


class Mending(Stock):
    """A stock whose copies may be damaged, or sent what they can't take; see `Stock`."""

    def __init__(self, conn: Connection, link: Link, prefix: str, **how: Any) -> None:
        super().__init__(conn, link, prefix, **how)
        self._patrol = Patrol(link, self.copies)

    def refill(self, held: Held, rankings: Sequence[bytes]) -> None:
        """Fill a new copy in place of one whose rankings are damaged."""
        group = held.copy.group
        if held.former:
            self._retire_former(held)
            return
        if not held.live and group in self.unread:
            return  # a script that failed left them so: another new copy would end the same
        _log().warning("ranking_damaged", group=group, rankings=rankings, live=held.live)
        order = self._orders.of(group)
        if held.warming and order is not None and order.tries >= TRIES_MAX:
            self.give_up(held, RebuildCheckFailed("rankings were damaged while it was filled"))
            return
        if not held.live:
            self.held = [other for other in self.held if other is not held]
            self.copies.retire(self._conn, [(group, held.copy.generation)])
        if not any(other.warming for other in self.held if other.copy.group == group):
            self._begin([group], cause="damaged" if held.live else held.cause)

    def retry(self, groups: Collection[int]) -> None:
        """Begin a new copy wherever a parked ranking is due again and none is on its way."""
        due = self.parking.due(groups)
        filling = {held.copy.group for held in self.held if held.warming}
        self._begin(sorted(due.keys() - filling - self.unread), due, cause="parked")

    def follow_dense(self) -> None:
        """Begin a new copy wherever dense counting was turned on or off since the last one."""
        known: dict[int, int] = {}
        for held in self.held:
            group, turns = held.copy.group, held.copy.dense_turns
            known[group] = max(turns, known.get(group, 0))
        wanted = self.copies.dense_turns(self._conn, sorted(known.keys() - self.unread))
        behind = {group for group, turns in wanted.items() if turns > known[group]}
        if not behind:
            return
        _log().info("dense_changed", groups=sorted(behind))
        given_up = [held for held in self.held if held.copy.group in behind and not held.live]
        self.held = [held for held in self.held if held not in given_up]
        self.copies.retire(self._conn, [(h.copy.group, h.copy.generation) for h in given_up])
        self._begin(sorted(behind), cause="dense")

    def look_round(self) -> None:
        """Look at some rankings that nobody writes to; fill anew what lost something."""
        for copy, damaged in self._patrol.visit([held.copy for held in self.held if held.live]):
            left_out = self.parking.left_out(copy.generation)
            new = [ranking for ranking in damaged if int(ranking) not in left_out]
            if new or not damaged:
                held = next(h for h in self.held if h.copy.generation == copy.generation)
                self.refill(held, new)

    def suspect(self, held: Held, script: str) -> None:
        """A script failed: let what it is called for next with this copy be tried in pieces."""
        if held.former:
            self._retire_former(held)
            return
        self._suspects.add((held.copy.generation, script))
        self.unread.add(held.copy.group)

    def sound(self, held: Held, parts: Sequence[Part], stamp: Stamp) -> list[Part] | None:
        """What of a batch can be applied to a copy; the rest is parked. None: nothing just now."""
        pending = held.pending

        def call(tried: Sequence[Part]) -> ScriptCall:
            nonlocal pending
            keys = self.copies.group(held.copy.group)
            made = probe_call(held, keys, tried, stamp, pending=pending, publish=self._publish)
            pending = probed(stamp)
            return made

        sound = self._sound(held, parts, "apply", call)
        if held.former and sound is not None and len(sound) < len(parts):
            # It would lack rankings that the list of what is parked knows nothing of.
            self._retire_former(held)
            return None
        held.pending = pending
        return sound

    def _sound(
        self,
        held: Held,
        parts: Sequence[Part],
        script: str,
        call: Callable[[Sequence[Part]], ScriptCall],
    ) -> list[Part] | None:
        copy = held.copy
        left_out = self.parking.left_out(copy.generation)
        sent = [part for part in parts if part.ranking not in left_out]
        wrong = [refused for part in sent if (refused := misread(part)) is not None]
        if held.former:
            return _without(sent, wrong)
        # The source says so: it would say the same to a new copy.
        if wrong and not self._park(held, wrong, at_once=False):
            return None
        if (copy.generation, script) in self._suspects:
            kept = _without(sent, wrong)
            sifted = sift(
                self._link, call, kept, rows_max=min(_SIFTED_ROWS_MAX, self._scan_rows_max)
            )
            if sifted.moved:
                self.unread.add(copy.group)
                return None
            self._suspects.discard((copy.generation, script))
            if sifted.broken:
                self.abandon([held])
                return None
            if sifted.refused and not self._park(held, sifted.refused, at_once=held.live):
                return None
            wrong += sifted.refused
            if sifted.refused and held.live:
                self.retry([copy.group])
        return _without(sent, wrong)

    def _park(self, held: Held, refused: Sequence[Refused], *, at_once: bool) -> bool:
        if self.parking.park(held.copy, refused, at_once=at_once):
            return True
        self.abandon([held])
        return False


def _without(parts: Sequence[Part], refused: Sequence[Refused]) -> list[Part]:
    rankings = {each.ranking for each in refused}
    return [part for part in parts if part.ranking not in rankings]


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.worker")
    return log

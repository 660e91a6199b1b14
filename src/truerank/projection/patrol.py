"""Look at rankings nobody writes to, for what they lost is noticed by the next write alone.

At each heartbeat a few copies are visited and a few of their rankings counted, so that all come
by in turn.
"""

from collections.abc import Sequence

from truerank.projection.copies import Copies, Copy
from truerank.projection.link import Link
from truerank.steps import ScriptCall

_COPIES_MAX = 8
_RANKINGS_MAX = 64


class Patrol:
    """What is to be looked at next.

    Args:
        link: to the server that holds the copies.
        copies: knows the keys.
    """

    def __init__(self, link: Link, copies: Copies) -> None:
        self._link = link
        self._copies = copies
        self._turn = 0
        self._waiting: dict[str, list[bytes]] = {}  # by generation: rankings
        self._scans: dict[str, int] = {}  # by generation: where to go on in its counts

    def visit(self, copies: Sequence[Copy]) -> list[tuple[Copy, list[bytes]]]:
        """Count some rankings of some copies.

        Args:
            copies: that readers read.

        Returns:
            The copies where something is damaged, with its rankings; none are named where the
            list of them is damaged itself.
        """
        if not copies:
            return []
        ordered = sorted(copies, key=lambda copy: copy.group)
        visited = [
            ordered[(self._turn + n) % len(ordered)] for n in range(min(_COPIES_MAX, len(ordered)))
        ]
        self._turn = (self._turn + len(visited)) % len(ordered)
        names = {copy.generation for copy in copies}
        self._waiting = {name: left for name, left in self._waiting.items() if name in names}
        self._scans = {name: at for name, at in self._scans.items() if name in names}
        lost = self._list(visited)
        found: list[tuple[Copy, list[bytes]]] = [(copy, []) for copy in lost]
        looked = [copy for copy in visited if copy not in lost and self._waiting[copy.generation]]
        replies, _ = self._link.calls([self._call(copy) for copy in looked])
        for copy, reply in zip(looked, replies, strict=True):
            if not isinstance(reply, list):
                found.append((copy, []))  # a key of another type, say
            elif reply:
                found.append((copy, reply))
        return found

    def _list(self, visited: Sequence[Copy]) -> list[Copy]:
        """Have rankings waiting for each copy; return the copies whose list lost some."""
        lost: list[Copy] = []
        replies = self._link.try_commands(
            [
                words
                for copy in visited
                for keys in [self._copies.keys(copy.group, copy.generation)]
                for words in (
                    ("HLEN", keys.counts),
                    ("HGET", keys.meta, "rankings"),
                    (
                        "HSCAN",
                        keys.counts,
                        self._scans.get(copy.generation, 0),
                        "COUNT",
                        _RANKINGS_MAX,
                    ),
                )
            ]
        )
        for n, copy in enumerate(visited):
            length, known, scanned = replies[3 * n : 3 * n + 3]
            waiting = self._waiting.setdefault(copy.generation, [])
            # Compared as text: what somebody else wrote there may be no number.
            if str(length).encode() != (known or b"0") or not isinstance(scanned, list):
                lost.append(copy)
                continue
            rankings = scanned[1][::2]
            if not all(name.isdigit() for name in rankings):
                lost.append(copy)
            elif not waiting:
                self._scans[copy.generation] = int(scanned[0])
                waiting += rankings
        return lost

    def _call(self, copy: Copy) -> ScriptCall:
        keys = self._copies.keys(copy.group, copy.generation)
        waiting = self._waiting[copy.generation]
        rankings = [int(name) for name in waiting[:_RANKINGS_MAX]]
        del waiting[:_RANKINGS_MAX]
        return ScriptCall(
            "count",
            [
                keys.meta,
                keys.counts,
                *(
                    key
                    for r in rankings
                    for key in (keys.places(r), keys.shown(r), keys.prefixes(r))
                ),
            ],
            rankings,
        )

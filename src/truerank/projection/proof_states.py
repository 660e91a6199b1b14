"""Compare who isn't active, as a copy knows it, with the source: else the hidden would be seen.

What differs because a change is on its way is looked at again with each tick; a state that differs
at several in a row is damage, for states change seldom.
"""

import struct

from truerank.outbox.ticks import Connection
from truerank.projection.copies import Copies
from truerank.projection.held import Held
from truerank.projection.link import Link

_CHUNK = """
    SELECT board_id, member, state FROM truerank.proof_states(%s::smallint, %s, %s, %s)"""
_SINGLE = "SELECT state FROM truerank.proof_states_of(%s::integer[], %s::text[])"
_RECORD = ">I9s"  # board, and version with the letter
_ACTIVE = b"a"
_STRIKES = 5
_DOUBTS_AT_ONCE_MAX = 500

Scope = tuple[int, str]  # board and member


class StateProof:
    """One comparison of the states in one copy, resumed chunk by chunk.

    Args:
        conn: in autocommit.
        link: to the server that holds the copy.
        copies: knows the keys.
    """

    def __init__(self, conn: Connection, link: Link, copies: Copies) -> None:
        self._conn = conn
        self._link = link
        self._copies = copies
        self._after: Scope = (0, "")
        self._walked = False
        self._strikes: dict[Scope, int] = {}
        self.wrong: str | None = None

    @property
    def done(self) -> bool:
        """Whether all were compared, and nothing is left in doubt."""
        return self._walked and not self._strikes and self.wrong is None

    def look(self, held: Held, rows_max: int) -> None:
        """Go on; the copy must have been brought forward since the last call."""
        self._look_again(held)
        if self._walked:
            return
        rows = self._conn.execute(
            _CHUNK, (held.copy.group, *self._after, rows_max), binary=True
        ).fetchall()
        self._walked = len(rows) < rows_max
        scopes = [(board, member) for board, member, _ in rows]
        for scope, found, (_, _, state) in zip(
            scopes, self._found(held, scopes), rows, strict=True
        ):
            if found != state:
                self._strikes[scope] = 0
        if scopes:
            self._after = scopes[-1]

    def _look_again(self, held: Held) -> None:
        doubts = list(self._strikes)[:_DOUBTS_AT_ONCE_MAX]
        if not doubts:
            return
        found = self._found(held, doubts)
        rows = self._conn.execute(
            _SINGLE,
            ([board for board, _ in doubts], [member for _, member in doubts]),
            binary=True,
        ).fetchall()
        for scope, copied, (state,) in zip(doubts, found, rows, strict=True):
            if copied == state:
                del self._strikes[scope]
                continue
            self._strikes[scope] += 1
            if self._strikes[scope] >= _STRIKES:
                self.wrong = (
                    f"of a member the copy has another state than the source, on board {scope[0]}"
                )

    def _found(self, held: Held, scopes: list[Scope]) -> list[bytes | None]:
        """The version and letter that the copy has of each; None: active."""
        if not scopes:
            return []
        key = self._copies.keys(held.copy.group, held.copy.generation).members
        records = self._link.command("HMGET", key, *(member for _, member in scopes))
        return [
            None if record is None else _state(record, board)
            for record, (board, _) in zip(records, scopes, strict=True)
        ]


def _state(record: bytes, board: int) -> bytes | None:
    whole = len(record) // struct.calcsize(_RECORD) * struct.calcsize(_RECORD)
    for scope, state in struct.iter_unpack(_RECORD, record[:whole]):
        if scope == board and not state.endswith(_ACTIVE):
            return bytes(state)
    return None

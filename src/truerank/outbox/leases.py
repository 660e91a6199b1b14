"""Which worker takes which groups.

Progress depends on leases, safety never does: two workers on one group refuse each other's calls.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

from truerank.outbox.ticks import Connection

_RENEW = "SELECT truerank.renew_leases(%s, %s, %s::smallint[])"
_RELEASE = "SELECT truerank.release_leases(%s)"


@dataclass(frozen=True, slots=True)
class Worker:
    """One process that projects. The id is random: a name used again could be a ghost's."""

    id: UUID
    lease_ms: int

    @classmethod
    def new(cls, lease_ms: int) -> "Worker":
        """A worker nobody else can be."""
        return cls(uuid4(), lease_ms)

    def renew(self, conn: Connection, *, give_up: Sequence[int] = ()) -> set[int]:
        """Extend what this worker holds, take its fair share, and return the groups it holds.

        Args:
            conn: in autocommit.
            give_up: groups it could not serve; they are let go and not taken in this call.

        Source: `schema/functions/renew_leases.sql`.
        """
        row = conn.execute(_RENEW, (self.id, self.lease_ms, list(give_up))).fetchone()
        return set(row[0]) if row and row[0] else set()

    def release(self, conn: Connection) -> None:
        """Let everything go at once, on a clean stop."""
        conn.execute(_RELEASE, (self.id,))

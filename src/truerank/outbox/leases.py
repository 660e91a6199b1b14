"""Which worker takes which groups.

Progress depends on leases, safety never does: two workers on one group refuse each other's calls.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self
from uuid import UUID, uuid4

from truerank.crashpoints import crashpoint
from truerank.outbox.ticks import Connection

_RENEW = "SELECT truerank.renew_leases(%s, %s, %s::smallint[])"
_RELEASE = "SELECT truerank.release_leases(%s)"
_REST = "SELECT truerank.rest_leases(%s, %s::smallint[], %s)"


@dataclass(frozen=True, slots=True)
class Worker:
    """One process that projects. The id is random: a name used again could be a ghost's.

    Within `lease_ms` of its death others hold its groups: a lease lasts three quarters of that, for
    its heirs look only now and again, and have to begin.
    """

    id: UUID
    lease_ms: int

    @property
    def renew_every_s(self) -> float:
        """Seconds between two renewals."""
        return self.lease_ms / 8000

    @classmethod
    def new(cls, lease_ms: int) -> Self:
        """A worker nobody else can be."""
        return cls(uuid4(), lease_ms)

    def renew(self, conn: Connection, *, give_up: Sequence[int] = ()) -> set[int]:
        """Extend what this worker holds, take its fair share, and return the groups it holds.

        Args:
            conn: in autocommit.
            give_up: groups it could not serve; they are let go and not taken in this call.

        Source: `schema/functions/renew_leases.sql`.
        """
        row = conn.execute(
            _RENEW, (self.id, max(1, self.lease_ms * 3 // 4), list(give_up))
        ).fetchone()
        crashpoint("leases_renewed")
        return set(row[0]) if row and row[0] else set()

    def rest(self, conn: Connection, groups: Sequence[int], rest_ms: int) -> None:
        """Let groups go that this worker could not serve, and not take them again for a while.

        Source: `schema/functions/rest_leases.sql`.
        """
        conn.execute(_REST, (self.id, list(groups), rest_ms))

    def release(self, conn: Connection) -> None:
        """Let everything go at once, on a clean stop."""
        crashpoint("before_release")
        conn.execute(_RELEASE, (self.id,))
        crashpoint("after_release")

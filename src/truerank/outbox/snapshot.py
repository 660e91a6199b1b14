"""What a PostgreSQL snapshot shows: the order in which outbox rows and tokens are judged."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A `pg_snapshot`: transactions below `xmin` are visible, those from `xmax` on are not.

    Between the two, those in `running` had not ended. Source: PostgreSQL, `pg_snapshot`.
    """

    xmin: int
    xmax: int
    running: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> "Snapshot":
        """Read `xmin:xmax:xip,xip,...` as PostgreSQL writes it."""
        xmin, xmax, running = text.split(":")
        return cls(int(xmin), int(xmax), frozenset(map(int, filter(None, running.split(",")))))

    def shows(self, xid: int) -> bool:
        """Whether what this transaction committed is visible."""
        return xid < self.xmax and xid not in self.running

    def contains(self, older: "Snapshot") -> bool:
        """Whether everything visible in the other is visible here.

        Snapshots are only partly ordered: of two, neither may contain the other.
        """
        return older.xmax <= self.xmax and all(
            xid in older.running or xid >= older.xmax for xid in self.running
        )

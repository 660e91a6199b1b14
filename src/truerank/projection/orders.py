"""What was asked for of the groups that a worker holds: a new copy, or the way back to the last."""

from collections.abc import Collection
from dataclasses import dataclass

import structlog

from truerank.outbox.ticks import Connection

_OPEN = """
    SELECT id, grp, kind, cause, throttled, tries, generation
    FROM truerank.open_rebuilds(%s::smallint[])"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One open request."""

    id: int
    group: int
    back: bool
    cause: str
    throttled: bool
    tries: int  # copies that were begun for it
    generation: str | None  # the last of them


class Orders:
    """The open requests of the groups of one worker, as last read.

    Args:
        conn: in autocommit.
    """

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._open: dict[int, Order] = {}

    def load(self, groups: Collection[int]) -> list[Order]:
        """Read what is open of these groups, at most one each.

        Source: `schema/functions/open_rebuilds.sql`.
        """
        rows = self._conn.execute(_OPEN, (sorted(groups),)).fetchall() if groups else []
        self._open = {
            group: Order(
                id=id_,
                group=group,
                back=kind == "back",
                cause=cause,
                throttled=throttled,
                tries=tries,
                generation=None if generation is None else generation.hex,
            )
            for id_, group, kind, cause, throttled, tries, generation in rows
        }
        return list(self._open.values())

    def of(self, group: int) -> Order | None:
        """The open request of a group."""
        return self._open.get(group)

    def fail(self, order: Order, code: str, message: str) -> None:
        """Close a request that can't be carried out.

        Source: `schema/functions/end_rebuild.sql`.
        """
        _log().error("rebuild_failed", group=order.group, code=code, reason=message)
        self._conn.execute("SELECT truerank.end_rebuild(%s, %s, %s)", (order.id, code, message))
        self._open.pop(order.group, None)

    def ask_due(self, groups: Collection[int], every_s: int, keep_ms: int) -> None:
        """Ask for a new copy of one of these groups, where the schedule wants that.

        Source: `schema/functions/ask_due_rebuild.sql`.
        """
        self._conn.execute(
            "SELECT truerank.ask_due_rebuild(%s::smallint[], %s, %s)",
            (sorted(groups), every_s, keep_ms),
        )


def _log() -> structlog.stdlib.BoundLogger:
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank.worker")
    return log

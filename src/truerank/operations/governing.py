"""Boards and their seasons: made, found, changed."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from truerank.command import board as boards
from truerank.command import history
from truerank.command.history import Pruned
from truerank.model import Board, BoardSpec, Listed, Operator, Order, Season, TieBreak
from truerank.operations.base import Base, retried
from truerank.paging import check_slice
from truerank.read import season as seasons
from truerank.steps import Query, Steps


class Governing(Base):
    """What boards and seasons there are, and their rules."""

    def create_board(
        self,
        key: str,
        *,
        operator: Operator | str = Operator.SUM,
        order: Order | str = Order.DESC,
        seasons: Sequence[str] = ("all", "week", "month"),
        zone: str = "UTC",
        decimals: int = 0,
        tie_breaks: Sequence[TieBreak] = (),
        value_min: int = -(2**63),
        value_max: int = 2**63 - 1,
        total_min: int = -(2**63),
        total_max: int = 2**63 - 1,
        dense: bool = False,
    ) -> Steps[bool]:
        """Make a board; True where it is new, False where it exists with the same settings.

        Args:
            key: 1 to 100 characters, exact, without control characters, `/` and backslash.
            operator: `sum`, `best` or `latest`: how a member's events become one score.
            order: `desc` or `asc`: which scores come first.
            seasons: any of `all`, `day`, `week` (ISO), `month`, `year`.
            zone: IANA name of the time zone in which seasons begin.
            decimals: 0 to 18; scores are kept as integers scaled by it.
            tie_breaks: up to four columns that decide between equal scores.
            value_min: smallest value of one event, scaled.
            value_max: largest value of one event, scaled.
            total_min: smallest total, scaled; an event that would go below is refused.
            total_max: largest total, scaled.
            dense: keep in the projection what it takes to count places densely (1223); without it
                such questions are answered by PostgreSQL, in time linear in the place.

        Raises:
            InvalidInput: a setting is malformed; `field` names it.
            BoardExists: the key is taken by a board with other settings.
        """
        return (
            yield from boards.create_board(
                BoardSpec(
                    key=key,
                    operator=boards.choice(Operator, operator, "operator"),
                    order=boards.choice(Order, order, "order"),
                    seasons=tuple(seasons),
                    zone=zone,
                    decimals=decimals,
                    tie_breaks=tuple(tie_breaks),
                    value_min=value_min,
                    value_max=value_max,
                    total_min=total_min,
                    total_max=total_max,
                    dense=dense,
                )
            )
        )

    def update_board(
        self, key: str, changes: Mapping[str, object], *, actor: str, reason: str
    ) -> Steps[bool]:
        """Change rules of a board, audited; True where something changed.

        They hold for events that come from now on; standings stay. Settings that would change
        existing results are fixed. Names and values: `truerank.command.board.update_board`.
        """
        changed = yield from boards.update_board(key, changes, actor=actor, reason=reason)
        self._known.forget(key)
        return changed

    def rename_board(self, key: str, new_key: str, *, actor: str, reason: str) -> Steps[bool]:
        """Give a board another key, audited; events, standings and ids stay."""
        renamed = yield from boards.rename_board(key, new_key, actor=actor, reason=reason)
        self._known.forget(key)
        return renamed

    def delete_board(self, key: str, *, actor: str, reason: str) -> Steps[None]:
        """Take a board out of service, audited; its key is free again at once."""
        yield from boards.delete_board(key, actor=actor, reason=reason)
        self._known.forget(key)

    def purge_boards(self, rows_max: int = 1000) -> Steps[int]:
        """Remove a slice of what deleted boards have left; 0 when nothing is left."""
        return (yield from boards.purge_boards(rows_max))

    def prune_events(
        self, board: str | None = None, *, rows_max: int = 1000, at_once: bool = False
    ) -> Steps[Pruned]:
        """Forget a slice of the events that are older than their boards' retention.

        Standings stay. Workers do this by themselves; see `truerank.command.history`.
        """
        return (yield from history.prune_events(board, rows_max=rows_max, at_once=at_once))

    def installation(self) -> Steps[str]:
        """The id of this installation: the same for ever, and in a copy of its database."""
        ((installation,),) = yield Query("SELECT id FROM truerank.installation()")
        return str(installation)

    def boards(self) -> Steps[list[Board]]:
        """All boards, in order of their keys."""
        return (yield from boards.list_boards())

    def board(self, key: str) -> Steps[Board]:
        """One board.

        Raises:
            BoardUnknown: no board has this key.
        """
        board, _, _ = yield from boards.find_board(key)
        return board

    def create_season(
        self, board: str, label: str, starts_at: datetime, ends_at: datetime
    ) -> Steps[bool]:
        """Add a custom season, `[starts_at, ends_at)`, both aware; True where it is new."""
        return (yield from boards.create_season(board, label, starts_at, ends_at))

    def change_season(
        self,
        board: str,
        label: str,
        starts_at: datetime,
        ends_at: datetime,
        *,
        actor: str,
        reason: str,
    ) -> Steps[bool]:
        """Give a custom season other bounds, audited; True where they changed.

        Standings follow in the same transaction. Refused once the season is final.
        """
        changed = yield from retried(
            lambda: boards.change_season(
                board, label, starts_at, ends_at, actor=actor, reason=reason
            )
        )
        self._known.forget(board)
        return changed

    def seasons(
        self, board: str, *, period: str | None = None, limit: int = 1000, offset: int = 0
    ) -> Steps[Listed[Season]]:
        """The seasons of a board in which something happened; `all` first, then the latest.

        A list that has its `freshness`.

        Raises:
            BoardUnknown: no board has this key.
            InvalidInput: `limit` is outside 0 to 1000, or `offset` outside 0 to 2^31 - 1.
        """
        check_slice(limit, offset)
        found, _ = yield from self._known.board(board)
        return (yield from seasons.list_seasons(found, period=period, limit=limit, offset=offset))

    def season(self, board: str, label: str | None = None) -> Steps[Season]:
        """The season a label names; without one `all` where kept, else the current one.

        As PostgreSQL has it now; where it is frozen, with the ranking that readers are shown, and
        since when.
        """
        found, _ = yield from self._known.board(board)
        return (yield from self._known.shown(found, label, anew=True))

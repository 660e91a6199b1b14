"""Everything a client can do, each written once as steps for blocking and asyncio clients."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from truerank.command import board as boards
from truerank.command import correct
from truerank.command.submit import SUBMIT, or_raise, receipts, submit_parameters
from truerank.errors import Contended
from truerank.model import (
    Board,
    BoardSpec,
    Numbering,
    Operator,
    Order,
    Page,
    PageRequest,
    Receipt,
    ScoreEvent,
    Season,
    Source,
    Standing,
    TieBreak,
    Token,
)
from truerank.read import season as seasons
from truerank.read.answers import Answers, check_slice
from truerank.read.explain import ExplainedEvent, explain
from truerank.read.standing import read_standing
from truerank.read.status import Status, status
from truerank.read.waiting import wait_visible
from truerank.settings import Settings
from truerank.steps import Pause, Query, Steps, T

_TRIES_MAX = 5
_PAUSE_S_MAX = 0.05


class Operations:
    """What `truerank.client.Truerank` and `truerank.aio.Truerank` offer under the same names."""

    def __init__(self, settings: Settings) -> None:
        self._prefix = settings.prefix
        self._answers = Answers(prefix=settings.prefix, remember_ms=settings.board_cache_ms)

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
                )
            )
        )

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
        changed = yield from self._retried(
            lambda: boards.change_season(
                board, label, starts_at, ends_at, actor=actor, reason=reason
            )
        )
        self._answers.forget(board)
        return changed

    def boards(self) -> Steps[list[Board]]:
        """All boards, in order of their keys."""
        return (yield from boards.list_boards())

    def board(self, key: str) -> Steps[Board]:
        """One board.

        Raises:
            BoardUnknown: no board has this key.
        """
        board, _ = yield from boards.find_board(key)
        return board

    def update_board(
        self, key: str, changes: Mapping[str, object], *, actor: str, reason: str
    ) -> Steps[bool]:
        """Change rules of a board, audited; True where something changed.

        They hold for events that come from now on; standings stay. Settings that would change
        existing results are fixed. Names and values: `truerank.command.board.update_board`.
        """
        changed = yield from boards.update_board(key, changes, actor=actor, reason=reason)
        self._answers.forget(key)
        return changed

    def rename_board(self, key: str, new_key: str, *, actor: str, reason: str) -> Steps[bool]:
        """Give a board another key, audited; events, standings and ids stay."""
        renamed = yield from boards.rename_board(key, new_key, actor=actor, reason=reason)
        self._answers.forget(key)
        return renamed

    def delete_board(self, key: str, *, actor: str, reason: str) -> Steps[None]:
        """Take a board out of service, audited; its key is free again at once."""
        yield from boards.delete_board(key, actor=actor, reason=reason)
        self._answers.forget(key)

    def purge_boards(self, rows_max: int = 1000) -> Steps[int]:
        """Remove a slice of what deleted boards have left; 0 when nothing is left."""
        return (yield from boards.purge_boards(rows_max))

    def seasons(
        self, board: str, *, period: str | None = None, limit: int = 1000, offset: int = 0
    ) -> Steps[list[Season]]:
        """The seasons of a board in which something happened; `all` first, then the latest.

        Raises:
            BoardUnknown: no board has this key.
            InvalidInput: `limit` is outside 0 to 1000, or `offset` outside 0 to 2^31 - 1.
        """
        check_slice(limit, offset)
        found, _ = yield from self._answers.board(board)
        return (yield from seasons.list_seasons(found, period=period, limit=limit, offset=offset))

    def season(self, board: str, label: str | None = None) -> Steps[Season]:
        """The season a label names; without one `all` where kept, else the current one."""
        found, _ = yield from self._answers.board(board)
        return (yield from self._answers.season(found, label))

    def submit_score(
        self,
        board: str,
        *,
        event_id: str,
        member: str,
        value: int | str,
        occurred_at: datetime | None = None,
        ties: Sequence[int] = (),
        metadata: Any = None,
        expected_season: str | None = None,
        source: str | None = None,
    ) -> Steps[Receipt]:
        """Apply one score event in a transaction of its own; safe to repeat.

        To commit a score together with your own rows, call `truerank.submit_score` with your
        connection instead.

        Raises:
            EventConflict: `event_id` already names another command.
            EventRefused: the board's rules refuse the event; `reason` says which.
            BoardUnknown: no board has this key.
        """
        event = ScoreEvent(
            event_id=event_id,
            member=member,
            value=value,
            occurred_at=occurred_at,
            ties=tuple(ties),
            metadata=metadata,
        )
        (receipt,) = yield from self.submit_scores(
            board, [event], expected_season=expected_season, source=source
        )
        return or_raise(board, receipt)

    def submit_scores(
        self,
        board: str,
        events: Sequence[ScoreEvent],
        *,
        expected_season: str | None = None,
        source: str | None = None,
    ) -> Steps[list[Receipt]]:
        """Apply several events to one board in one transaction; outcomes are values.

        `source` is kept with the events, and `void_where` can name it.

        Raises:
            InvalidInput: an event is malformed; nothing was sent.
            Contended: other transactions were in the way several times; nothing was written.
        """
        if not events:
            return []
        parameters = submit_parameters(board, events, expected_season, source)
        rows = yield from self._retried(lambda: _query(SUBMIT, parameters))
        return receipts(events, rows)

    def standing(
        self, board: str, member: str, season: str | None = None
    ) -> Steps[Standing | None]:
        """What PostgreSQL holds for a member: score, version, reached-at, metadata; or None.

        Always from PostgreSQL, and for hidden members too: this is not a public view.
        """
        found, _ = yield from self._answers.board(board)
        named = yield from self._answers.season(found, season)
        return (yield from read_standing(found, named, member))

    def void_events(
        self, board: str, event_ids: Sequence[str], *, actor: str, reason: str
    ) -> Steps[list[Receipt]]:
        """Take events out of every standing, as if they had never happened; safe to repeat.

        The events stay, and so does who took them out and why. One receipt per event.
        """
        return (
            yield from self._retried(
                lambda: correct.void_events(board, event_ids, actor=actor, reason=reason)
            )
        )

    def void_where(
        self,
        board: str,
        *,
        actor: str,
        reason: str,
        member: str | None = None,
        source: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 1000,
    ) -> Steps[int]:
        """Void up to `limit` events of a member, a source or a span of time; how many it was.

        Call it again until it answers 0: each call is a transaction of its own.

        Raises:
            EventRefused: some can't be voided; `reason` says why. The others are void.
        """
        ids = yield from correct.events_where(
            board, member=member, source=source, since=since, until=until, limit=limit
        )
        receipts_ = yield from self.void_events(board, ids, actor=actor, reason=reason)
        for receipt in receipts_:
            or_raise(board, receipt)
        return len(receipts_)

    def amend_event(
        self,
        board: str,
        event_id: str,
        value: int | str,
        *,
        correction_id: str,
        actor: str,
        reason: str,
        ties: Sequence[int] = (),
    ) -> Steps[Receipt]:
        """Let an event count with another value, at the time and position it always had.

        Raises:
            EventConflict: `correction_id` already names another correction or event.
            EventRefused: no such event, a closed season, or a value out of range.
        """
        receipt = yield from self._retried(
            lambda: correct.amend_event(
                board,
                event_id,
                value,
                correction_id=correction_id,
                actor=actor,
                reason=reason,
                ties=ties,
            )
        )
        return or_raise(board, receipt)

    def explain(
        self, board: str, member: str, season: str | None = None
    ) -> Steps[list[ExplainedEvent]]:
        """The events that a member's score is made of, in the order in which they count."""
        found, _ = yield from self._answers.board(board)
        named = yield from self._answers.season(found, season)
        return (yield from explain(found, named, member))

    def top(
        self,
        board: str,
        season: str | None = None,
        *,
        limit: int = 10,
        offset: int = 0,
        member: str | None = None,
        around_limit: int = 5,
        numbering: Numbering | str = Numbering.COMPETITION,
        source: Source | str | None = None,
    ) -> Steps[Page]:
        """The first places, and beside them the place and neighbourhood of one member.

        Args:
            board: the board's key.
            season: a label; None: `all` where the board has it, else the current season.
            limit: rows, 0 to 1000.
            offset: rows passed over, from 0.
            member: whose place and neighbourhood come in the same answer, from one snapshot.
            around_limit: rows of the neighbourhood; never more than the board has.
            numbering: `competition` 1224 or `ordinal` 1234.
            source: insist on the projection or the database.
        """
        request = PageRequest(
            offset=offset,
            limit=limit,
            members=() if member is None else (member,),
            around=member,
            around_limit=around_limit,
            numbering=boards.choice(Numbering, numbering, "numbering"),
        )
        return (yield from self._page(board, season, request, source))

    def around(
        self,
        board: str,
        member: str,
        season: str | None = None,
        *,
        limit: int = 11,
        numbering: Numbering | str = Numbering.COMPETITION,
        source: Source | str | None = None,
    ) -> Steps[Page]:
        """The neighbourhood of a member in `around`, its place in `places`.

        The window has `limit` rows at both ends of the board too, unless the board is smaller;
        it is empty where the member has no place.
        """
        request = PageRequest(
            members=(member,),
            around=member,
            around_limit=limit,
            numbering=boards.choice(Numbering, numbering, "numbering"),
        )
        return (yield from self._page(board, season, request, source))

    def places(
        self,
        board: str,
        members: Iterable[str],
        season: str | None = None,
        *,
        numbering: Numbering | str = Numbering.COMPETITION,
        source: Source | str | None = None,
    ) -> Steps[Page]:
        """The places of up to 1000 members, from one snapshot, in the order asked."""
        request = PageRequest(
            members=tuple(members), numbering=boards.choice(Numbering, numbering, "numbering")
        )
        return (yield from self._page(board, season, request, source))

    def place(
        self,
        board: str,
        member: str,
        season: str | None = None,
        *,
        numbering: Numbering | str = Numbering.COMPETITION,
        source: Source | str | None = None,
    ) -> Steps[Page]:
        """The place of one member, as the only one of `places`."""
        return (
            yield from self.places(board, (member,), season, numbering=numbering, source=source)
        )

    def wait_visible(
        self, token: Token, boards: Iterable[str], *, timeout_s: float = 10.0
    ) -> Steps[None]:
        """Wait until the projection shows the write behind a token, on all of these boards.

        Raises:
            NotVisibleYet: it took longer than `timeout_s`. The write is committed all the same.
        """
        groups = set()
        for key in boards:
            board, _ = yield from self._answers.board(key)
            groups.add(board.group)
        yield from wait_visible(groups, token, prefix=self._prefix, timeout_s=timeout_s)

    def status(self) -> Steps[Status]:
        """One look at both stores: what waits, who works, how far the copies are."""
        return (yield from status(self._prefix))

    def _page(
        self, board: str, season: str | None, request: PageRequest, source: Source | str | None
    ) -> Steps[Page]:
        insisted = None if source is None else boards.choice(Source, source, "source")
        return (yield from self._answers.page(board, season, request, source=insisted))

    @staticmethod
    def _retried(attempt: Callable[[], Steps[T]]) -> Steps[T]:
        """Run steps that are one transaction; again where others were in the way."""
        for _ in range(_TRIES_MAX - 1):
            try:
                return (yield from attempt())
            except Contended:
                # Jitter parts those who were in each other's way.
                yield Pause(random.uniform(0, _PAUSE_S_MAX))  # noqa: S311 - no secret
        return (yield from attempt())


def _query(sql: str, parameters: Sequence[Any]) -> Steps[list[tuple[Any, ...]]]:
    rows: list[tuple[Any, ...]] = yield Query(sql, parameters)
    return rows

"""Load rows into their boards, in batches; tell what became of every line.

Rows of one board are sent in file order, one batch after the other, because positions decide
among events of the same instant. Loading the same file again adds nothing, so a load that was
ended at any point is taken up again by running it from the start.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from truerank.client import Truerank
from truerank.command.submit import failure
from truerank.crashpoints import crashpoint
from truerank.errors import BoardExists, BoardUnknown, InvalidInput
from truerank.intake.lines import Malformed, Row
from truerank.model import Outcome, Receipt, ScoreEvent, Token
from truerank.steps import Query, Steps

BATCH_EVENTS = 1000
_WAITING_EVENTS_MAX = 20_000  # of all boards together
_PROBLEMS_SHOWN_MAX = 20
_NOW = "SELECT pg_current_xact_id()::text, truerank.incarnation()"


@dataclass(frozen=True, slots=True)
class Problem:
    """A line that was not taken in, and why."""

    line: int
    code: str
    message: str


@dataclass(slots=True, kw_only=True)
class Summary:
    """What became of the lines of a file. Every line with text but the header is one of these."""

    applied: int = 0
    duplicate: int = 0
    conflict: int = 0
    refused: Counter[str] = field(default_factory=Counter)  # by code
    malformed: Counter[str] = field(default_factory=Counter)  # by code
    problems: list[Problem] = field(default_factory=list)  # the first ones, in order of lines
    boards_created: list[str] = field(default_factory=list)
    boards_kept: list[str] = field(default_factory=list)  # existed with other settings

    @property
    def taken_in(self) -> int:
        """Lines whose events are stored."""
        return self.applied + self.duplicate

    @property
    def lines(self) -> int:
        """All lines that were judged."""
        return self.taken_in + self.not_taken_in

    @property
    def not_taken_in(self) -> int:
        """Lines whose events are not stored as the line says."""
        return self.conflict + self.refused.total() + self.malformed.total()


@dataclass(slots=True)
class _Board:
    rows: list[Row] = field(default_factory=list)
    refusal: InvalidInput | None = None
    tie_names: tuple[str, ...] | None = None  # once a file called its ties by name


class Loader:
    """Loads rows through one client; keeps the summary as it goes.

    Args:
        client: blocking.
        create: settings for boards that don't exist, as `Truerank.create_board` takes them; None:
            their lines are refused.
        progress: called after each batch with the number of lines judged since the last call.
        batch_events: most events in one transaction.
    """

    def __init__(
        self,
        client: Truerank,
        *,
        create: Mapping[str, Any] | None = None,
        progress: Callable[[int], None] = lambda _lines: None,
        batch_events: int = BATCH_EVENTS,
    ) -> None:
        self.summary = Summary()
        self._client = client
        self._create = create
        self._progress = progress
        self._batch_events = batch_events
        self._boards: dict[str, _Board] = {}
        self._waiting = 0
        self._problems_last = 0
        self._token: Token | None = None
        self._repeats_since = False

    def load(self, rows: Iterable[Row | Malformed]) -> Summary:
        """Load all rows; returns when PostgreSQL has committed them.

        Raises:
            DatabaseUnavailable: what was committed before stays; load the file again.
            InvalidInput: the settings for new boards are malformed; nothing was loaded.
        """
        for row in rows:
            if isinstance(row, Malformed):
                self.summary.malformed[row.code] += 1
                self._note(row.line, row.code, row.message)
                self._progress(1)
                continue
            board = self._boards.get(row.board)
            if board is None:
                board = self._boards[row.board] = self._opened(row.board)
            board.rows.append(row)
            self._waiting += 1
            if len(board.rows) >= self._batch_events:
                self._flush(row.board)
            elif self._waiting >= _WAITING_EVENTS_MAX:
                self._flush(max(self._boards, key=lambda key: len(self._boards[key].rows)))
        for key in self._boards:
            self._flush(key)
        return self.summary

    def wait_visible(self, *, timeout_s: float) -> None:
        """Wait until the projection shows all that was taken in.

        Raises:
            NotVisibleYet: it took longer than `timeout_s`; it is committed all the same.
        """
        if not self.summary.taken_in:
            return
        token = self._token
        if token is None or self._repeats_since:
            # The first writes of repeats are many and old: a transaction of now is later than all.
            token = self._client.run(_now())
        taken = [key for key, board in self._boards.items() if board.refusal is None]
        boards = {board.spec.key for board in self._client.boards()}.intersection(taken)
        self._client.wait_visible(token, boards, timeout_s=timeout_s)

    def _opened(self, key: str) -> _Board:
        if self._create is None:
            return _Board()
        try:
            if self._client.create_board(key, **self._create):
                self.summary.boards_created.append(key)
        except BoardExists:
            self.summary.boards_kept.append(key)
        except InvalidInput as exc:
            if exc.field != "board":
                raise
            return _Board(refusal=InvalidInput(exc.message, code="board_invalid"))
        return _Board()

    def _flush(self, key: str) -> None:
        board = self._boards[key]
        rows, board.rows = board.rows, []
        if not rows:
            return
        self._waiting -= len(rows)
        if board.refusal is not None:
            self._refuse(rows, board.refusal)
        else:
            self._submit(key, rows)
            crashpoint("import_slice")
        self._progress(len(rows))

    def _submit(self, key: str, rows: list[Row]) -> None:
        try:
            events = [self._in_order(key, row) for row in rows]
            receipts = self._client.submit_scores(key, events)
        except InvalidInput as exc:
            # Nothing of this batch was sent; one line must not keep the others out.
            if len(rows) == 1:
                self._refuse(rows, exc)
                return
            half = len(rows) // 2
            self._submit(key, rows[:half])
            self._submit(key, rows[half:])
            return
        for row, receipt in zip(rows, receipts, strict=True):
            self._count(key, row, receipt)

    def _in_order(self, key: str, row: Row) -> ScoreEvent:
        """The event with its ties as the board has them: who sorts a file's fields moves them.

        Raises:
            InvalidInput: they bear other names than the board's.
        """
        if not row.tie_names:
            return row.event
        board = self._boards[key]
        if board.tie_names is None:
            try:
                spec = self._client.board(key).spec
            except BoardUnknown:
                return row.event  # which tells so
            board.tie_names = tuple(tie.name for tie in spec.tie_breaks)
        if row.tie_names == board.tie_names:
            return row.event
        if set(row.tie_names) != set(board.tie_names):
            raise InvalidInput(
                f"ties are called {', '.join(row.tie_names)}, the board's"
                f" {', '.join(board.tie_names) or 'are none'}",
                field="ties",
                code="ties_invalid",
            )
        ties = dict(zip(row.tie_names, row.event.ties, strict=True))
        return replace(row.event, ties=tuple(ties[name] for name in board.tie_names))

    def _refuse(self, rows: list[Row], error: InvalidInput) -> None:
        self.summary.refused[error.reason] += len(rows)
        for row in rows:
            self._note(row.line, error.reason, error.message)

    def _count(self, key: str, row: Row, receipt: Receipt) -> None:
        match receipt.outcome:
            case Outcome.APPLIED:
                self.summary.applied += 1
                # This transaction is later than every repeat that was seen before.
                self._token, self._repeats_since = receipt.token, False
            case Outcome.DUPLICATE:
                self.summary.duplicate += 1
                self._repeats_since = True
            case Outcome.CONFLICT:
                self.summary.conflict += 1
            case Outcome.REFUSED:
                self.summary.refused[receipt.code or "refused"] += 1
        error = failure(key, receipt)
        if error is not None:
            self._note(row.line, error.reason, error.message)

    def _note(self, line: int, code: str, message: str) -> None:
        # Boards take turns, so the first problems by line aren't the first to be found.
        problems = self.summary.problems
        if len(problems) < _PROBLEMS_SHOWN_MAX or line < problems[-1].line:
            problems.append(Problem(line, code, message))
            problems.sort(key=lambda problem: problem.line)
            del problems[_PROBLEMS_SHOWN_MAX:]


def _now() -> Steps[Token]:
    ((xid, incarnation),) = yield Query(_NOW)
    return Token(f"{xid}.{incarnation}")

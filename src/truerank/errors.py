"""Every error that Truerank raises on purpose.

Each has a stable, documented `code`. A duplicate event, an empty board or an unranked member
is a value, not an error.
"""

from datetime import datetime
from typing import ClassVar


class TruerankError(Exception):
    """Base of all errors raised on purpose; `code` is stable, `field` names the bad input."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, code: str | None = None, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.reason = code or self.code
        self.field = field


class InvalidInput(TruerankError):
    """An argument is malformed: nothing was sent to a database. Mend the argument."""

    code = "invalid_input"


class NumberingNotKept(InvalidInput):
    """The projection was insisted on, and the board doesn't keep in it what dense counting takes.

    PostgreSQL can always be asked; or let the board keep it: `update_board` with `dense`.
    """

    code = "numbering_not_kept"


class CommandError(TruerankError):
    """A command had no effect; the caller's transaction is still usable."""

    code = "command_failed"


class EventConflict(CommandError):
    """The event id was used before, for a different command.

    Repeating the same command is no error. Here the two differ, so answering would lose one
    of them. Nothing was written; send the command under an id of its own.
    """

    code = "event_conflict"


class EventRefused(CommandError):
    """The board's rules refuse the event; `reason` says which. The event id stays unused."""

    code = "event_refused"


class BoardUnknown(TruerankError):
    """No board has this key. Create it first, or mend the spelling: keys are exact text."""

    code = "board_unknown"


class BoardExists(CommandError):
    """A board of this key exists with other settings. Nothing was changed."""

    code = "board_exists"


class SeasonUnknown(TruerankError):
    """The board keeps no season of this label."""

    code = "season_unknown"


class SettingsInvalid(TruerankError):
    """A TRUERANK_* variable can't be read; the message names it and what it takes."""

    code = "settings_invalid"


class SchemaMismatch(TruerankError):
    """The database isn't at the schema version of this release: run `truerank migrate`."""

    code = "schema_mismatch"


class MigrationEdited(TruerankError):
    """An applied migration differs from the file of this release. Nothing was changed."""

    code = "migration_edited"


class DatabaseUnavailable(TruerankError):
    """PostgreSQL can't be reached or ended the connection. Retry: commands are idempotent."""

    code = "database_unavailable"


class DatabaseFull(DatabaseUnavailable):
    """PostgreSQL has no room on its disk. Nothing was written; make room, and send it again."""

    code = "database_full"


class ProjectionUnavailable(TruerankError):
    """Valkey/Redis can't be reached, or has no whole copy of the board's group just now."""

    code = "projection_unavailable"


class ProjectionUnsafe(TruerankError):
    """The Redis server is set up so that board keys could vanish (eviction). Not started."""

    code = "projection_unsafe"


class CursorGone(TruerankError):
    """The cursor belongs to another board, or to a season that is gone. Begin at the first page."""

    code = "cursor_gone"


class HistoryForgotten(TruerankError):
    """What is kept of the board's history doesn't tell how the season stood at that instant.

    Events were forgotten (the board's `retention`), and what they came to in the end is all that is
    known of them. `exact_from` is the first instant that can be asked for; None: there is none.
    """

    code = "history_forgotten"

    def __init__(self, message: str, *, exact_from: datetime | None = None) -> None:
        super().__init__(message)
        self.exact_from = exact_from


class NotFreshEnough(TruerankError):
    """The projection is older than the reader allows, and PostgreSQL can't be asked just now."""

    code = "not_fresh_enough"


class NotCommittedYet(TruerankError):
    """The transaction behind a token isn't visible in PostgreSQL either.

    It is still open, on another server, or the token was made up. Only its own connection sees it.
    """

    code = "not_committed_yet"


class EpochChanged(TruerankError):
    """PostgreSQL went backwards since the token was given: what it stands for may be lost.

    Send the command again under the same event id: it counts once, whether it survived or not.
    Its receipt has a token of today.
    """

    code = "epoch_changed"


class NotComparable(TruerankError):
    """Nothing can be said of an answer and a token by the two alone.

    Ask for an answer `at_least` as fresh as the token: the stores can tell.
    """

    code = "not_comparable"


class NotSettled(TruerankError):
    """The season isn't final. A settled result is never guessed: ask again after its close.

    `ready_at` says when that may be, where it is known.
    """

    code = "not_settled"

    def __init__(self, message: str, *, ready_at: datetime | None = None) -> None:
        super().__init__(message)
        self.ready_at = ready_at


class SourceSuperseded(TruerankError):
    """A server of the same cluster that was promoted later feeds the projection already.

    Two servers take writes: the worker leaves the projection to the other one's workers.
    """

    code = "source_superseded"


class SourceDoubtful(TruerankError):
    """The database isn't the source of the copy in Redis: nothing can be said of either by it.

    It is a standby, another cluster, or was set back to an older state. Connect to the primary; if
    it is the primary, a worker notices by itself and fills new copies.
    """

    code = "source_doubtful"


class NotVisibleYet(TruerankError):
    """The projection did not show the awaited write within the budget. It is still committed."""

    code = "not_visible_yet"


class RebuildError(TruerankError):
    """A new copy of a group came to nothing. Readers still read the one that was there."""

    code = "rebuild_failed"


class RebuildCheckFailed(RebuildError):
    """A copy was filled, and was not what the source says: readers were never let to it."""

    code = "rebuild_check_failed"


class HeadroomMissing(RebuildError):
    """Redis has not the memory for one more copy: raise maxmemory, or free some."""

    code = "headroom_missing"


class MemoryShort(RebuildError):
    """Redis ran out of memory while a copy was being filled, and the copy was given up."""

    code = "memory_short"


class NoWayBack(RebuildError):
    """No copy from before a rebuild follows along any more: a new rebuild is the only way."""

    code = "no_way_back"


class EngineError(TruerankError):
    """An embedded engine could not be found, started or attached to."""

    code = "engine_failed"


class Contended(TruerankError):
    """Other transactions were in the way (40001, 40P01, 55P03). Nothing was written; retry."""

    code = "contended"


class Busy(TruerankError):
    """More requests wait than this process takes, or one waited too long.

    Sending it again is safe: commands are idempotent.
    """

    code = "busy"


class NotAllowed(TruerankError):
    """The database role may not do this: connect as the owner of the schema, or grant it."""

    code = "not_allowed"


class SeasonNotOver(CommandError):
    """The season, or its grace, isn't over. Nothing was changed; to close it now takes a reason.

    `ready_at` says when it may be closed; None: it has no end.
    """

    code = "season_not_over"

    def __init__(self, message: str, *, ready_at: datetime | None = None) -> None:
        super().__init__(message)
        self.ready_at = ready_at


class SeasonNotBegun(CommandError):
    """The season is yet to begin: closed now, it would never take an event. Nothing was changed."""

    code = "season_not_begun"


class EarlierSeasonOpen(CommandError):
    """A league waits for an earlier season, which the message names: its settlement decides tiers.

    Nothing was settled: close the earlier season first. A worker closes this one afterwards, where
    the board closes seasons by itself or this one was sealed.
    """

    code = "earlier_season_open"


class WritersUnderWay(CommandError):
    """Transactions that began before a season was sealed are still open.

    The season takes no more events; the close goes on when it is asked for again.
    """

    code = "writers_under_way"


class SeasonFinal(CommandError):
    """The season is settled: nothing moves it any more."""

    code = "season_final"


class FreezePending(CommandError):
    """The season is to be frozen, and isn't yet: others are at work on it for too long.

    Another process copies it, or a transaction that takes members away stays open. A worker goes on
    with it; so does a call that is repeated.
    """

    code = "freeze_pending"


class SeasonFrozen(CommandError):
    """The season is frozen: what goes on behind that is for operators until it is revealed."""

    code = "season_frozen"


class NotInCohort(TruerankError):
    """The season has no such cohort, or the member is in none (yet), or hidden, banned or deleted.

    Who scores in a season for the first time is put into a cohort by a worker, within a second
    where no season before it is to be closed first.
    """

    code = "not_in_cohort"


class WebhookUnknown(TruerankError):
    """No webhook has this name. `truerank webhook list` shows them."""

    code = "webhook_unknown"


class WebhookInvalid(TruerankError):
    """A request isn't genuine, or too old: answer it with 400, and do nothing with it."""

    code = "webhook_invalid"


class SeasonSealed(CommandError):
    """The season is being closed. Nothing was changed; `reopen_season` lets it go on."""

    code = "season_sealed"


class BoardAttached(CommandError):
    """A table is attached to the board. Detach it first; nothing was changed."""

    code = "board_attached"


class MergeRefused(CommandError):
    """Two members can't become one; `reason` says why. Nothing was changed."""

    code = "merge_refused"

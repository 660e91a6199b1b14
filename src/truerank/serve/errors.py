"""What only HTTP refuses, and the status that every error of Truerank gets."""

from collections.abc import Mapping

from truerank.errors import (
    BoardAttached,
    BoardExists,
    BoardUnknown,
    Busy,
    CommandError,
    Contended,
    CursorGone,
    DatabaseFull,
    DatabaseUnavailable,
    EarlierSeasonOpen,
    EpochChanged,
    EventConflict,
    EventRefused,
    FreezePending,
    HistoryForgotten,
    InvalidInput,
    MergeRefused,
    NotAllowed,
    NotCommittedYet,
    NotFreshEnough,
    NotInCohort,
    NotSettled,
    NotVisibleYet,
    ProjectionUnavailable,
    SchemaMismatch,
    SeasonFinal,
    SeasonFrozen,
    SeasonNotBegun,
    SeasonNotOver,
    SeasonSealed,
    SeasonUnknown,
    TruerankError,
    WebhookUnknown,
    WritersUnderWay,
)

RETRY_AFTER_S = 1
_STATUS: Mapping[type[TruerankError], int] = {
    InvalidInput: 422,
    EventRefused: 422,
    CommandError: 422,
    BoardUnknown: 404,
    SeasonUnknown: 404,
    NotInCohort: 404,
    WebhookUnknown: 404,
    NotAllowed: 403,
    EventConflict: 409,
    BoardExists: 409,
    BoardAttached: 409,
    SeasonFinal: 409,
    SeasonSealed: 409,
    SeasonFrozen: 409,
    MergeRefused: 409,
    SeasonNotOver: 409,
    SeasonNotBegun: 409,
    EarlierSeasonOpen: 409,
    NotCommittedYet: 409,
    EpochChanged: 409,
    NotSettled: 409,
    CursorGone: 410,
    HistoryForgotten: 410,
    Busy: 503,
    Contended: 503,
    WritersUnderWay: 503,
    FreezePending: 503,
    DatabaseFull: 503,
    DatabaseUnavailable: 503,
    ProjectionUnavailable: 503,
    NotVisibleYet: 503,
    NotFreshEnough: 503,
    SchemaMismatch: 503,
}
# What the state of things refuses, not what was sent.
_REFUSED: Mapping[str, int] = {"rate_exceeded": 429, "season_final": 409, "season_sealed": 409}


class HttpRefusal(TruerankError):
    """The request can't be taken as it is; `status` says how. Nothing was applied."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, code=code, field=field)
        self.status = status
        self.headers = dict(headers or {})


def status_of(error: TruerankError) -> int:
    """The HTTP status that answers an error; 500 for one that no request should raise."""
    if isinstance(error, HttpRefusal):
        return error.status
    if isinstance(error, EventRefused) and error.reason in _REFUSED:
        return _REFUSED[error.reason]
    return _STATUS.get(type(error), 500)

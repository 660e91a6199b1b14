"""States of members, and erasures."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from truerank.model.scores import Token


class MemberState(StrEnum):
    """What holds for a member on a board: the stricter of its states there and everywhere."""

    ACTIVE = "active"
    HIDDEN = "hidden"  # by its own wish
    BANNED = "banned"
    DELETED = "deleted"  # and nothing has come since
    MERGED = "merged"  # its events count for another member


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberScope:
    """What holds for a member on one board, or everywhere where `board` is None."""

    board: str | None
    state: MemberState
    until: datetime | None  # when a ban ends; None: never
    hides: bool  # by its own wish, also while it is banned
    changed_at: datetime
    merged_into: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberChange:
    """What a command about a member has come to.

    `changed` is False where it held already. `pending`: the projection did not show it within the
    time that the caller gave it; it holds in PostgreSQL, and the token tells when it is shown.
    """

    member: str  # of one that was merged, the member it stands for
    board: str | None
    state: MemberState
    until: datetime | None
    changed: bool
    token: Token
    pending: bool
    merged_into: str | None = None
    known: bool = True  # False: no event is of the id that was given, so it is perhaps misspelt


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """The removal of a person from everything, and in the end the proof of it: it names nobody.

    The events keep board, value and time under stand-ins for the ids. `digest` is SHA-256 over the
    board's number (4 bytes), position, value and microseconds (8 bytes each) of each of them.
    """

    id: str
    asked_at: datetime
    erased_at: datetime | None  # None: outbox and Redis may still hold the id
    stand_ins: tuple[str, ...]
    events: int | None  # None: transactions under way may still add some
    digest: str | None  # hexadecimal
    token: Token | None = None  # of the transaction that took the person out of sight, just now
    pending: bool = False  # the projection did not show that in time; PostgreSQL answers until then

    @property
    def complete(self) -> bool:
        """Whether nothing names the person any more."""
        return self.erased_at is not None

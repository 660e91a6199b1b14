"""Receivers, and deliveries to them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A receiver, and how deliveries to it are doing."""

    name: str
    url: str
    kinds: tuple[str, ...]  # what it is told of
    board: str | None  # None: of all boards
    enabled: bool
    disabled_for: str | None  # why, where nobody asked for it: 410
    former_until: datetime | None  # until when the secret before is signed with as well
    failures: int  # in a row
    paused_until: datetime | None
    made_at: datetime
    waiting: int  # deliveries; counted up to 10,000
    parked: int
    oldest_at: datetime | None  # since when the oldest of them waits

    @property
    def shown_url(self) -> str:
        """The address without what may be a secret in it."""
        return self.url.partition("?")[0] + ("?***" if "?" in self.url else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Something that a receiver was, or is to be, told of."""

    id: int
    key: str  # what the receiver sees as the message's id, the same in each attempt
    kind: str
    member: str | None  # of an erased one the stand-in
    data: dict[str, Any]
    occurred_at: datetime
    state: str  # waiting, parked, delivered, or cancelled by an erasure
    attempts: int
    attempted_at: datetime | None
    due_at: datetime | None  # when the next attempt may begin
    outcome: str | None  # of the last attempt: a status of HTTP, or a word
    ended_at: datetime | None

"""Tokens: what a writer or a reader has seen, to be compared with what an answer shows.

A writer's token names its transaction, a reader's the snapshot of the answer it got. Both name
the incarnation of the source, for after a promotion transaction ids are used again.
"""

import re
from dataclasses import dataclass

from truerank.errors import InvalidInput
from truerank.model import Token
from truerank.outbox.snapshot import Snapshot

_NUMBER = r"[0-9]{1,20}"
_TRANSACTION = re.compile(_NUMBER)
# The epoch, shortened; the timeline; the start of the server in microseconds, of the years 1978 to
# 2112. So one that lost an end is seen to be none.
_LIFE = re.compile(r"([0-9a-f]{8})-[0-9A-F]{8}-[0-9a-f]{13}")
_XID_MAX = 2**64 - 1
_SNAPSHOT = re.compile(rf"{_NUMBER}:{_NUMBER}:(?:{_NUMBER}(?:,{_NUMBER})*)?")


@dataclass(frozen=True, slots=True)
class Seen:
    """What a token says: a transaction or a snapshot, and the source it belongs to."""

    incarnation: str
    transaction: int | None = None
    snapshot: Snapshot | None = None

    @property
    def before(self) -> int:
        """All transactions that the token stands for have numbers below this."""
        if self.snapshot is not None:
            return self.snapshot.xmax
        assert self.transaction is not None, "a token names one or the other"
        return self.transaction + 1

    def shown_by(self, answer: Snapshot) -> bool:
        """Whether an answer with this snapshot shows all that the token stands for."""
        if self.snapshot is not None:
            return answer.contains(self.snapshot)
        assert self.transaction is not None, "a token names one or the other"
        return answer.shows(self.transaction)


def parse(token: Token, field: str = "token") -> Seen:
    """Read a token.

    Raises:
        InvalidInput: the text is no token; about this field.
    """
    if not isinstance(token, str):
        raise InvalidInput(
            f"{field} is the token of a receipt or of an answer, not {type(token).__name__};"
            " what was refused has none",
            field=field,
        )
    seen, _, incarnation = token.partition(".")
    if _LIFE.fullmatch(incarnation):
        if _TRANSACTION.fullmatch(seen) and int(seen) <= _XID_MAX:
            return Seen(incarnation, transaction=int(seen))
        if _SNAPSHOT.fullmatch(seen):
            snapshot = Snapshot.parse(seen)
            if _is_sound(snapshot):
                return Seen(incarnation, snapshot=snapshot)
    raise InvalidInput(f"{field} is no token: it is passed as it came", field=field)


def _is_sound(snapshot: Snapshot) -> bool:
    """Whether PostgreSQL could have written it."""
    return snapshot.xmin <= snapshot.xmax <= _XID_MAX and all(
        snapshot.xmin <= xid < snapshot.xmax for xid in snapshot.running
    )


def of_answer(snapshot: str, lives: str) -> Token:
    """The token of a reader that got an answer with this snapshot from a source of these lives."""
    return Token(f"{snapshot}.{lives.partition(' ')[0]}")


def can_tell(lives: str, seen: Seen) -> bool:
    """Whether the transactions that a token names are known by their numbers to a source.

    Args:
        lives: of the source, as `truerank.lives()` gives them.
        seen: what the token says.
    """
    for life in lives.split(" "):
        name, bounded, known_to = life.partition("<")
        if name == seen.incarnation:
            return not bounded or seen.before <= int(known_to)
    return False


def is_past(epoch: str, seen: Seen) -> bool:
    """Whether a token is of another epoch than this one of the source."""
    life = _LIFE.fullmatch(seen.incarnation)
    return life is not None and life[1] != epoch[: len(life[1])]

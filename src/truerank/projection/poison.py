"""Find which rankings of a batch a copy can't take, so that everything else goes on.

A call that a script ends with an error is tried again in halves, none of which moves the cursor or
the scan. What the whole server refuses (no memory, read-only, loading, busy) is nobody's poison.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from redis.exceptions import ResponseError

from truerank.errors import ProjectionUnavailable
from truerank.outbox.ticks import Part
from truerank.projection.held import chunks
from truerank.projection.link import Link
from truerank.projection.scripts import ApplyReply
from truerank.steps import ScriptCall

_HEAD = 9  # bytes of a row before its sort key: operation and version
_FIELD = 8  # bytes of one number in a sort key
_FIELDS_MIN = 3  # score, instant, position
_CALLS_MAX = 64
# A key of another type, a failure inside the script's own code, a number that is none.
_POISON = re.compile(r"WRONGTYPE|.*user_script:\d+: |.*hash value is not an integer", re.DOTALL)
_ENDED_BY_HAND = "Script killed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A ranking that can't be applied. `member` and `version`: the first standing that can't."""

    ranking: int
    reason: str
    member: str | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sifted:
    """What trying a batch in pieces has shown.

    `broken`: the copy takes not even an empty call. `moved`: somebody else has changed the copy.
    """

    refused: Sequence[Refused] = ()
    broken: bool = False
    moved: bool = False


def is_poison(reply: object) -> bool:
    """Whether an error is about what was sent or the keys it was meant for, not the server."""
    return (
        type(reply) is ResponseError  # those of a kind of their own are about the server
        and _POISON.match(str(reply)) is not None
        and _ENDED_BY_HAND not in str(reply)
    )


def misread(part: Part) -> Refused | None:
    """What is wrong with the rows of a ranking before any of them is sent."""
    if part.key_bytes < 0:
        return None  # states of members: those of a whole group, so never left out
    if not part.rows or (_is_key(part) and min(map(len, part.rows)) > _HEAD + part.key_bytes):
        return None
    for row in part.rows:
        put = row[:1] == b"p"
        at = _HEAD + part.key_bytes if put else _HEAD
        if len(row) <= at or (put and not _is_key(part)):
            return _refused(part, row, f"a row of {len(row)} bytes makes no sense")
    return None


def sift(
    link: Link,
    call: Callable[[Sequence[Part]], ScriptCall],
    parts: Sequence[Part],
    *,
    rows_max: int,
) -> Sifted:
    """Try a batch in pieces until every ranking that can't be applied is found.

    Rows that can be are applied by it; nothing is left out or moved on.

    Args:
        link: to the server.
        call: makes the call for some rows, which leaves the copy where it is.
        parts: the batch. States of members go with every piece of it, for no row may come first.
        rows_max: of one call.

    Raises:
        ProjectionUnavailable: no reply in time.
    """
    states = [part for part in parts if part.key_bytes < 0]
    parts = [part for part in parts if part.key_bytes >= 0]
    (control,) = _replies(link, [call(states)])
    if is_poison(control) or (_is_applied(control) and control[2]):
        return Sifted(broken=True)
    if not _is_applied(control):
        return Sifted(moved=True)
    reasons: dict[int, str] = {}
    pieces = list(chunks(parts, rows_max)) if parts else []
    while pieces:
        failed: list[list[Part]] = []
        replies = _replies(link, [call([*states, *piece]) for piece in pieces])
        for piece, reply in zip(pieces, replies, strict=True):
            if is_poison(reply):
                if len(piece) > 1:
                    failed += [piece[: len(piece) // 2], piece[len(piece) // 2 :]]
                else:
                    reasons[piece[0].ranking] = str(reply)
            elif not _is_applied(reply):
                return Sifted(moved=True)
            else:
                # An error inside a script leaves a ranking half-way: it shows in the counts.
                for ranking in reply[2]:
                    reasons.setdefault(int(ranking), "left damaged by a script that failed")
        pieces = failed
    return Sifted(
        refused=[
            _first_refused(link, call, part, reasons[part.ranking], rows_max=rows_max)
            for part in _whole(parts)
            if part.ranking in reasons
        ]
    )


def _first_refused(
    link: Link,
    call: Callable[[Sequence[Part]], ScriptCall],
    part: Part,
    reason: str,
    *,
    rows_max: int,
) -> Refused:
    """Name the first standing that is refused; none where the ranking as such is."""

    def is_refused(rows: int) -> bool:
        tried = replace(part, rows=part.rows[:rows])
        return is_poison(_replies(link, [call([tried])])[0])

    if is_refused(0) or not is_refused(min(len(part.rows), rows_max)):
        return Refused(ranking=part.ranking, reason=reason)
    taken, refused = 0, min(len(part.rows), rows_max)
    while refused - taken > 1:
        middle = (taken + refused) // 2
        taken, refused = (taken, middle) if is_refused(middle) else (middle, refused)
    return _refused(part, part.rows[refused - 1], reason)


def _whole(parts: Sequence[Part]) -> Iterator[Part]:
    """One part per ranking, the first where there are several."""
    seen: set[int] = set()
    for part in parts:
        if part.ranking not in seen:
            seen.add(part.ranking)
            yield part


def _replies(link: Link, calls: Iterable[ScriptCall]) -> list[Any]:
    waiting = iter(calls)
    replies: list[Any] = []
    while some := list(islice(waiting, _CALLS_MAX)):
        replies += link.calls(some)[0]
    for reply in replies:
        if isinstance(reply, ResponseError) and not is_poison(reply):
            raise ProjectionUnavailable(f"{reply}") from reply
    return replies


def _is_applied(reply: object) -> bool:
    # Scripts that apply and fill say the same.
    return isinstance(reply, list) and reply[0] == ApplyReply.APPLIED


def _is_key(part: Part) -> bool:
    return part.key_bytes % _FIELD == 0 and part.key_bytes >= _FIELDS_MIN * _FIELD


def _refused(part: Part, row: bytes, reason: str) -> Refused:
    at = _HEAD + part.key_bytes if row[:1] == b"p" else _HEAD
    return Refused(
        ranking=part.ranking,
        reason=reason,
        member=row[at:].decode(errors="replace").replace("\0", "\ufffd") or None,
        version=int.from_bytes(row[1:_HEAD], signed=True),
    )

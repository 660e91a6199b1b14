"""Whether Redis has the memory for one more copy of a group, asked before it is begun."""

from dataclasses import dataclass

from redis.exceptions import ResponseError

from truerank.projection.copies import Copies, Copy
from truerank.projection.link import Link, info_field

STANDING_BYTES = 200  # of one in a copy, where no copy is there to be measured
_SAMPLED_RANKINGS_MAX = 16
_SAMPLED_MIN = 100  # standings; fewer tell more of the keys than of what is in them


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """There is less memory than one more copy takes."""

    needed_bytes: int
    free_bytes: int

    def __str__(self) -> str:
        return (
            f"one more copy needs about {self.needed_bytes:,} bytes, and Redis has"
            f" {max(0, self.free_bytes):,} left of its maxmemory"
        )


def is_out_of_memory(reply: object) -> bool:
    """Whether Redis refused something because its memory is full."""
    return isinstance(reply, ResponseError) and (
        str(reply).startswith("OOM") or "command not allowed when used memory" in str(reply)
    )


def lacking(
    link: Link, copies: Copies, live: Copy | None, rows: int, to_come: int
) -> Lacking | None:
    """What is missing to one more copy; None where there is enough, no limit, or no telling.

    Args:
        link: to the server.
        copies: knows the keys.
        live: the copy that is there, to measure what a standing takes.
        rows: standings of the new one.
        to_come: standings that are still to come into copies on their way.

    Raises:
        ProjectionUnavailable: no reply in time.
    """
    (reply,) = link.try_commands([("INFO", "memory")])
    if isinstance(reply, ResponseError):
        return None  # access rules may forbid to ask; a call that is refused ends it as well
    used, limit = (int(info_field(reply, name) or 0) for name in ("used_memory", "maxmemory"))
    if not limit:
        return None
    each = _standing_bytes(link, copies, live) if live is not None else STANDING_BYTES
    needed = each * rows
    free = limit - used - each * to_come
    return Lacking(needed_bytes=needed, free_bytes=free) if needed > free else None


def _standing_bytes(link: Link, copies: Copies, live: Copy) -> int:
    """What a standing takes in a copy, from some of its rankings."""
    keys = copies.keys(live.group, live.generation)
    (scanned,) = link.try_commands([("HSCAN", keys.counts, 0, "COUNT", _SAMPLED_RANKINGS_MAX)])
    if isinstance(scanned, ResponseError):
        return STANDING_BYTES
    rankings = [int(name) for name in scanned[1][::2] if name.isdigit()][:_SAMPLED_RANKINGS_MAX]
    replies = link.try_commands(
        [
            words
            for ranking in rankings
            for words in (
                ("HLEN", keys.shown(ranking)),
                ("MEMORY", "USAGE", keys.shown(ranking)),
                ("MEMORY", "USAGE", keys.places(ranking)),
            )
        ]
    )
    if any(isinstance(each, ResponseError) for each in replies):
        return STANDING_BYTES
    standings = sum(replies[::3])
    size = sum(each or 0 for n, each in enumerate(replies) if n % 3)
    return STANDING_BYTES if standings < _SAMPLED_MIN else size // standings

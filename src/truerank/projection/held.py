"""One copy of a group as a worker holds it, and the script calls that bring it forward."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from truerank.outbox.ticks import Part, Tick
from truerank.projection.copies import Copy, cursor_text, named_tick
from truerank.projection.keys import GenerationKeys, GroupKeys
from truerank.steps import ScriptCall

_HEAD = 9  # bytes of a row before its sort key: operation and version
_STATE_HEAD = 10  # of a row of states before its member: also the state


@dataclass(slots=True, kw_only=True)
class Held:
    """A copy, and how far this worker has read for it.

    `since` may be ahead of the cursor in Redis: a group without changes isn't written until the
    next heartbeat, though its rows (none) have been read.
    """

    copy: Copy
    cursor: str
    pending: str
    since: str  # snapshot that the outbox was read up to for this copy
    since_tick: tuple[int, str]
    base: int  # the last tick that was read whole: older ones aren't needed
    live: bool
    former: bool = False  # was live, and follows along so that there is a way back
    cause: str = "lost"  # why it was begun
    scanned: int = 0  # standings that its scan has brought in

    @property
    def warming(self) -> bool:
        """Whether it is on its way to become live."""
        return not self.live and not self.former

    @classmethod
    def of(
        cls, copy: Copy, *, live: bool, former: bool = False, cause: str = "lost", scanned: int = 0
    ) -> "Held":
        """Start from what the copy's meta says."""
        return cls(
            copy=copy,
            cursor=copy.cursor,
            pending=copy.pending,
            since=copy.snapshot,
            since_tick=named_tick(copy.cursor),
            base=int(copy.base),
            live=live,
            former=former,
            cause=cause,
            scanned=scanned,
        )

    def ticks(self) -> list[tuple[int, str]]:
        """Id and nonce of the ticks that must exist for a batch after `since` to mean anything.

        What was read up to, what a batch cut off half-way rests on, and what covers other writes.
        """
        needed = {self.since_tick, named_tick(self.copy.covered)}
        if self.pending:
            needed.add(named_tick(self.pending))
        return sorted(needed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """The tick a batch ends at, and the Redis clock read before that tick was sent."""

    tick: Tick
    reached: str
    contained: int  # the newest tick that `reached` contains
    time_us: int | None  # None: the clock jumped, so no bound can be given
    run_id: str | None
    source: str = ""  # the cluster and timeline of the WAL that the tick is in
    lives: str = ""  # of the server: see truerank.lives

    def base(self, held: Held) -> int:
        """The copy's base after the batch: this tick, or an earlier one where it was cut."""
        if self.reached == self.tick.snapshot:
            return self.tick.id
        return max(held.base, self.contained)


def chunks(parts: Sequence[Part], rows_max: int) -> Iterator[list[Part]]:
    """Split what changed in a group into calls of `rows_max` standings, the last of fewer."""
    call: list[Part] = []
    room = rows_max
    for part in parts:
        at = 0
        if not part.rows:
            call.append(part)  # only to look whether the ranking is as it was left
        while at < len(part.rows):
            rows = part.rows[at : at + room]
            call.append(replace(part, rows=rows))
            at, room = at + len(rows), room - len(rows)
            if room == 0:
                yield call
                call, room = [], rows_max
    if call:
        yield call


def apply_calls(
    held: Held, keys: GroupKeys, parts: Sequence[Part], stamp: Stamp, *, rows_max: int, publish: str
) -> Iterator[tuple[ScriptCall, bool]]:
    """The calls that bring one batch into a copy, each requiring what the one before wrote.

    Made one by one, for a transaction may have changed millions of standings. With each, whether
    it is the last.
    """
    reached = cursor_text(stamp.tick, stamp.reached)
    last = max(0, (sum(len(part.rows) for part in parts) - 1) // rows_max)
    cursor, pending = held.cursor, held.pending
    meta = _meta(held, stamp, reached)
    for k, piece in enumerate(chunks(parts, rows_max) if parts else [[]]):
        after = f"{reached}|{k + 1}" if k < last else ""
        yield (
            _apply_call(
                held,
                keys,
                piece,
                stamp,
                pair=(cursor, pending),
                after=after,
                meta=meta if k == last else [0],
                publish=publish,
            ),
            k == last,
        )
        pending = after


def probe_call(
    held: Held, keys: GroupKeys, parts: Sequence[Part], stamp: Stamp, *, pending: str, publish: str
) -> ScriptCall:
    """The call that tries rows of a batch on a copy, and leaves the cursor where it is.

    What it writes is covered all the same: `probed` is the pending that names the tick.
    """
    return _apply_call(
        held,
        keys,
        parts,
        stamp,
        pair=(held.cursor, pending),
        after=probed(stamp),
        meta=[0],
        publish=publish,
    )


def probed(stamp: Stamp) -> str:
    """The pending of a copy on which rows were tried, and of whose batch no call is done."""
    return f"{cursor_text(stamp.tick, stamp.reached)}|0"


def _apply_call(
    held: Held,
    keys: GroupKeys,
    piece: Sequence[Part],
    stamp: Stamp,
    *,
    pair: tuple[str, str],
    after: str,
    meta: Sequence[str | int],
    publish: str,
) -> ScriptCall:
    generation = keys.generation(held.copy.generation)
    return ScriptCall(
        "apply",
        [
            keys.pointer,
            generation.meta,
            generation.counts,
            generation.members,
            *_ranking_keys(generation, piece),
        ],
        [
            held.copy.epoch,
            held.copy.generation,
            *pair,
            after,
            f"{stamp.tick.id}:{stamp.tick.nonce}",
            keys.hints,
            publish,
            *meta,
            *(word for part in piece for word in _words(part)),
        ],
    )


def fill_call(
    held: Held, keys: GroupKeys, parts: Sequence[Part], scan: tuple[str, str], tick: Tick
) -> ScriptCall:
    """The call that brings rows of a scan into a warming copy and moves the scan.

    Args:
        held: the copy.
        keys: of its group.
        parts: the rows.
        scan: the position that is required, and the one after the rows.
        tick: taken after the rows were read.
    """
    required, position = scan
    generation = keys.generation(held.copy.generation)
    return ScriptCall(
        "fill",
        [
            generation.meta,
            generation.counts,
            generation.members,
            *_ranking_keys(generation, parts),
        ],
        [
            held.copy.epoch,
            required,
            position,
            f"{tick.id}:{tick.nonce}",
            tick.snapshot if position == "done" else "",
            *(word for part in parts for word in _words(part)),
        ],
    )


def fill_calls(
    held: Held,
    keys: GroupKeys,
    parts: Sequence[Part],
    position: str,
    tick: Tick,
    *,
    rows_max: int,
) -> list[tuple[ScriptCall, str]]:
    """The calls that bring a chunk of a scan into a copy, each requiring what the one before wrote.

    With each, the position after it.
    """
    pieces = list(chunks(parts, rows_max)) or [[]]
    calls: list[tuple[ScriptCall, str]] = []
    required = held.copy.scan
    for n, piece in enumerate(pieces, 1):
        after = position if n == len(pieces) else _position(piece[-1])
        calls.append((fill_call(held, keys, piece, (required, after), tick), after))
        required = after
    return calls


def _position(part: Part) -> str:
    """Where a scan is after the last row of a part."""
    member = part.rows[-1][_STATE_HEAD if part.key_bytes < 0 else _HEAD + part.key_bytes :]
    return json.dumps([part.ranking, member.decode()])


def _words(part: Part) -> tuple[int | bytes, ...]:
    return (
        part.ranking,
        part.board,
        part.key_bytes,
        part.equal_bytes,
        len(part.rows),
        *part.rows,
    )


def _ranking_keys(generation: GenerationKeys, parts: Sequence[Part]) -> list[str]:
    return [
        key
        for part in parts
        for key in (
            generation.places(part.ranking),
            generation.shown(part.ranking),
            *([generation.prefixes(part.ranking)] if part.equal_bytes else []),
        )
    ]


def _meta(held: Held, stamp: Stamp, reached: str) -> list[str | int]:
    fields: dict[str, str | int] = {
        "cursor": reached,
        "base": stamp.base(held),
        "snapshot": stamp.reached,
        "source": stamp.source,
        "lives": stamp.lives,
    }
    if stamp.reached == stamp.tick.snapshot:
        # Where the batch was cut, rows from before the tick are missing: the age of the copy stays
        # that of the last tick it shows whole.
        fields |= {
            "tick": stamp.tick.id,
            "through": stamp.tick.taken_at.isoformat(timespec="microseconds"),
            "time": stamp.time_us if stamp.time_us is not None else "",
            "run_id": stamp.run_id or "",
        }
    return [len(fields), *(word for pair in fields.items() for word in pair)]

"""What a live copy in Redis says of itself, and of some members, at one cursor."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from redis.exceptions import ResponseError

from truerank.errors import ProjectionUnavailable
from truerank.projection.copies import Copies, Copy
from truerank.projection.keys import GenerationKeys, GroupKeys
from truerank.projection.link import Link, is_wrong_type
from truerank.projection.poison import is_poison
from truerank.projection.scripts import InspectReply
from truerank.repair.findings import Ranking
from truerank.repair.judging import Entry
from truerank.steps import ScriptCall

QUARANTINED = b"damaged"


class CopyMoved(Exception):
    """Readers read another copy by now, or none."""


class KeyDamaged(Exception):
    """A key holds something of another type: nothing in it can be compared."""


@dataclass(slots=True)
class Candidate:
    """A member that may differ, and the places to look for beside the one its entry names."""

    member: bytes
    places: set[bytes] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large the keys of a ranking are, and the list of the copy's rankings."""

    places: int
    in_order: int  # places whose score is 0
    entries: int
    prefixes: int
    counted: int  # rankings that have a count
    known: bytes  # how many have one, as the meta says


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One answer of inspect.lua."""

    copy: Copy
    count: bytes  # of the ranking, as the scripts keep it; empty: none
    sizes: Sizes
    prefixes: Sequence[tuple[bool, bool]]  # per prefix whether it is kept, whether it is used
    entries: Sequence[Entry]

    @property
    def prefixes_kept(self) -> bool:
        """Whether this copy counts the ranking densely: it was decided with its first row."""
        numbers = self.count.split()
        return self.sizes.prefixes > 0 or len(numbers) == 4  # noqa: PLR2004 - the last is prefixes

    @property
    def is_whole(self) -> bool:
        """Whether the count says what there is."""
        sizes, numbers = self.sizes, self.count.split()
        if not self.count:
            return not (sizes.places or sizes.entries)
        if not all(number.isdigit() for number in numbers) or len(numbers) not in {3, 4}:
            return False
        places, tombstones, withheld, *prefixes = map(int, numbers)
        return (
            sizes.places == places == sizes.in_order
            and sizes.entries == places + tombstones + withheld
            and (not prefixes or sizes.prefixes == prefixes[0])
        )


class CopyUnfit(Exception):
    """No worker brings the copy forward, so it can't be compared at one tick.

    A batch stays half applied, or the log after its cursor is gone.
    """


class Looker:
    """Reads the live copies under one prefix.

    Args:
        link: to the server that holds them.
        prefix: of all keys.
    """

    def __init__(self, link: Link, prefix: str) -> None:
        self.link = link
        self._prefix = prefix
        self._copies = Copies(link, prefix)

    def group(self, group: int) -> GroupKeys:
        """The keys of one group."""
        return GroupKeys(self._prefix, group)

    def keys(self, copy: Copy) -> GenerationKeys:
        """The keys of one copy."""
        return self.group(copy.group).generation(copy.generation)

    def live(self, group: int) -> Copy | None:
        """The copy that readers read, or None where there is none, or its meta makes no sense."""
        (pointer,) = self.link.try_commands([("GET", self.group(group).pointer)])
        if not isinstance(pointer, bytes):
            return None
        copies = self._copies.read([(group, pointer.decode(errors="replace"))])
        return copies[0] if copies else None

    def counts(self, copy: Copy) -> Mapping[bytes, bytes]:
        """The counts of all rankings of a copy.

        Raises:
            KeyDamaged: they are no hash.
        """
        return {
            ranking: count
            for some in self.fields(self.keys(copy).counts, 1000)
            for ranking, count in some
        }

    def fields(self, key: str, about: int) -> Iterator[list[tuple[bytes, bytes]]]:
        """All fields of a hash with their values, about so many at a time.

        Raises:
            KeyDamaged: it is no hash.
        """
        cursor: bytes | int = 0
        while True:
            (reply,) = self.link.try_commands([("HSCAN", key, cursor, "COUNT", about)])
            cursor, flat = raised(reply)
            yield list(zip(flat[::2], flat[1::2], strict=True))
            if cursor == b"0":
                return

    def look(
        self,
        copy: Copy,
        ranking: Ranking,
        candidates: Iterable[Candidate] = (),
        prefixes: Sequence[bytes] = (),
    ) -> Look:
        """Read what the copy holds of some members, in one step.

        Raises:
            CopyMoved: readers don't read this copy any more.
            KeyDamaged: a key of the ranking is of another type.
        """
        keys = self.keys(copy)
        return self._inspect(
            copy,
            ranking.id,
            [keys.places(ranking.id), keys.shown(ranking.id), keys.prefixes(ranking.id)],
            candidates,
            prefixes,
        )

    def look_at_states(self, copy: Copy, members: Iterable[bytes]) -> Look:
        """Read the records of states of some members in one step: each as an entry.

        Raises:
            CopyMoved, KeyDamaged: see `look`.
        """
        keys = self.keys(copy)
        # No ranking has this number, and so neither places nor prefixes.
        nothing = [keys.places(0), keys.members, keys.prefixes(0)]
        return self._inspect(copy, 0, nothing, map(Candidate, members), ())

    def _inspect(
        self,
        copy: Copy,
        ranking: int,
        of_ranking: Sequence[str],
        candidates: Iterable[Candidate],
        prefixes: Sequence[bytes],
    ) -> Look:
        keys = self.keys(copy)
        words: list[str | bytes | int] = []
        for candidate in candidates:
            words += [candidate.member, len(candidate.places), *sorted(candidate.places)]
        call = ScriptCall(
            "inspect",
            [
                self.group(copy.group).pointer,
                keys.meta,
                keys.counts,
                *of_ranking,
            ],
            [copy.generation, ranking, len(prefixes), *prefixes, *words],
        )
        ((reply,), _) = self.link.calls([call])
        answer = raised(reply)
        if answer[0] != InspectReply.OK:
            raise CopyMoved
        _, meta, count, sizes, kept, members = answer
        _, cursor, pending, snapshot, base, covered, *_ = [(text or b"").decode() for text in meta]
        return Look(
            copy=replace(
                copy,
                cursor=cursor,
                pending=pending,
                snapshot=snapshot,
                base=base,
                covered=covered,
            ),
            count=count,
            sizes=Sizes(
                places=sizes[0],
                in_order=sizes[1],
                entries=sizes[2],
                prefixes=sizes[3],
                counted=sizes[4],
                known=sizes[5],
            ),
            prefixes=[(bool(stored), bool(used)) for stored, used in kept],
            entries=[_entry(member) for member in members],
        )


def raised(reply: Any) -> Any:
    """A reply, unless it is an error.

    Raises:
        KeyDamaged: a key is of another type.
        ProjectionUnavailable: it is another error.
    """
    if not isinstance(reply, ResponseError):
        return reply
    if is_wrong_type(reply) or is_poison(reply):
        raise KeyDamaged(str(reply)) from reply
    raise ProjectionUnavailable(f"{reply}") from reply


def _entry(found: Sequence[Any]) -> Entry:
    has_entry, shown, *places = found
    return Entry(
        shown=shown if has_entry else None,
        places=dict(zip(places[::2], places[1::2], strict=True)),
    )

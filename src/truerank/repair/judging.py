"""Name the difference between what the source says of a member and what a copy holds; pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

VERSION_BYTES = 8
STATE_BYTES = 13
_ACTIVE = ord("a")


class Kind(StrEnum):
    """What became of comparing one standing."""

    CURRENT = "current"
    MISSING = "missing"  # the source has it, the copy has nothing
    STALE = "stale"  # an older version, though nothing is on its way
    AHEAD = "ahead"  # a newer version than the source has: never mended unless told to
    CORRUPT = "corrupt"  # the source's version, and something else than the source says
    GHOST = "ghost"  # the source doesn't have it
    LAGGING = "lagging"  # a change is on its way, and did not arrive while it was waited for


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the source says of a member in a ranking; `withheld`: it takes no place."""

    version: int
    sort_key: bytes
    withheld: bool = False

    @property
    def shown(self) -> bytes:
        """The entry by which a copy holds it."""
        return self.version.to_bytes(VERSION_BYTES) + self.sort_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a copy holds of a member: its entry, and those places that were found, with scores."""

    shown: bytes | None
    places: Mapping[bytes, bytes]

    @property
    def version(self) -> int | None:
        """The version of the entry; None where there is none, or it is no entry."""
        if self.shown is None or len(self.shown) < VERSION_BYTES:
            return None
        return int.from_bytes(self.shown[:VERSION_BYTES])

    @property
    def sort_key(self) -> bytes:
        """The sort key of the entry; empty where it says that the member went."""
        return (self.shown or b"")[VERSION_BYTES:]


@dataclass(frozen=True, slots=True)
class Judgement:
    """A kind, and for people what is wrong."""

    kind: Kind
    detail: str = ""

    @property
    def is_drift(self) -> bool:
        """Whether something is wrong."""
        return self.kind not in {Kind.CURRENT, Kind.LAGGING}


_EQUAL = Judgement(Kind.CURRENT)


def judge(member: bytes, source: Standing | None, entry: Entry) -> Judgement:
    """Compare the two, both as of one tick.

    An entry that has only a version says that the member went: it may stay where the source has
    nothing.
    """
    if source is None:
        held = entry.places or entry.sort_key or (entry.shown is not None and entry.version is None)
        return Judgement(Kind.GHOST, "the source has no such standing") if held else _EQUAL
    if entry.shown is None:
        if entry.places:
            return Judgement(Kind.CORRUPT, "a place without a version")
        return Judgement(Kind.MISSING, "nothing is shown")
    if entry.version is None or len(entry.sort_key) not in {0, len(source.sort_key)}:
        return Judgement(Kind.CORRUPT, "an entry that can't be read")
    if entry.version != source.version:
        return (
            Judgement(Kind.AHEAD, "a version that the source never had")
            if entry.version > source.version
            else Judgement(Kind.STALE, "an older version")
        )
    return _judge_content(member, source, entry)


def _judge_content(member: bytes, source: Standing, entry: Entry) -> Judgement:
    place = source.sort_key + member
    score = entry.places.get(place)
    faults = (
        (entry.sort_key != source.sort_key, "another score than the source's"),
        (source.withheld and entry.places, "a place, though the member is withheld"),
        (not source.withheld and score is None, "a version without its place"),
        (len(entry.places) > 1, "two places"),
        (score is not None and float(score) != 0, "a place out of order"),
    )
    wrong = next((detail for is_wrong, detail in faults if is_wrong), None)
    return _EQUAL if wrong is None else Judgement(Kind.CORRUPT, wrong)


def withheld_on(states: bytes, board: int) -> bool:
    """Whether a record of states keeps its member from taking a place on a board."""
    return any(
        int.from_bytes(scope[:4]) in {0, board} and scope[-1] != _ACTIVE for scope in scopes(states)
    )


def scopes(states: bytes) -> list[bytes]:
    """The scopes of a record of states, in order of their boards: board, version, letter."""
    return sorted(states[at : at + STATE_BYTES] for at in range(0, len(states), STATE_BYTES))


def judge_states(source: bytes, record: bytes | None) -> Judgement:
    """Compare what the source says of a member's states with the record of a copy.

    A record may say of a scope that it is active: it was kept while the copy was being filled.
    """
    held = record or b""
    if len(held) % STATE_BYTES:
        return Judgement(Kind.CORRUPT, "a record of states that can't be read")
    wanted = {scope[:4]: scope[4:] for scope in scopes(source)}
    found = {scope[:4]: scope[4:] for scope in scopes(held) if scope[-1] != _ACTIVE}
    differing = [scope for scope in wanted | found if wanted.get(scope) != found.get(scope)]
    return _judge_scope(wanted.get(differing[0]), found.get(differing[0])) if differing else _EQUAL


def _judge_scope(wanted: bytes | None, found: bytes | None) -> Judgement:
    if found is None:
        return Judgement(Kind.MISSING, "a state that is not known")
    if wanted is None:
        return Judgement(Kind.GHOST, "a state that nobody gave")
    theirs, ours = (int.from_bytes(state[:VERSION_BYTES]) for state in (found, wanted))
    if theirs == ours:
        return Judgement(Kind.CORRUPT, "another state than the source's")
    if theirs < ours:
        return Judgement(Kind.STALE, "an older state")
    return Judgement(Kind.AHEAD, "a state that the source never had")

"""A leaderboard in plain Python: events, what was said of members, and what follows from both."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

Row = tuple[int, str, str]  # rank, member, score
Standing = tuple[int, int, datetime, int]  # score, tie, and the event at which it was reached

ALL = "all"


@dataclass
class Event:
    """One score; it counts for its member's owner unless it is void or has ended."""

    id: str
    member: str
    value: int
    at: datetime
    position: int
    tie: int = 0
    void: bool = False
    ended: bool = False


@dataclass
class Naive:
    """One board, kept as a whole and by day, and the members on it.

    Args:
        operator: sum, best or latest.
        descending: whether the highest score comes first.
        tied: whether a tie-break, the lowest first, decides between equal scores.
    """

    operator: str
    descending: bool
    tied: bool = False
    events: list[Event] = field(default_factory=list)
    hides: set[tuple[str, str]] = field(default_factory=set)  # scope and member
    bans: set[tuple[str, str]] = field(default_factory=set)
    owners: dict[str, str] = field(default_factory=dict)
    frozen: dict[str, dict[str, Standing]] = field(default_factory=dict)  # by season
    final: dict[str, list[Row]] = field(default_factory=dict)  # by day: what was settled

    def owner(self, member: str) -> str:
        return self.owners.get(member, member)

    def submit(self, event: str, member: str, value: int, at: datetime, tie: int = 0) -> bool:
        """Whether it is taken: its seasons are all open, or none counts it."""
        if self._is_final(at):
            return False
        self.events.append(Event(event, member, value, at, len(self.events), tie))
        return True

    def correct(self, event: str, value: int | None, tie: int = 0) -> None:
        """Give an event another value, or none at all."""
        found = self._event(event)
        if not self._is_final(found.at) and not found.void:
            found.void = value is None
            if value is not None:
                found.value, found.tie = value, tie

    def say(self, action: str, member: str, scope: str) -> None:
        """Hide, show, ban, unban, reset or delete, on the board or everywhere."""
        said = scope, self.owner(member)
        match action:
            case "hide":
                self.hides.add(said)
            case "show":
                self.hides.discard(said)
            case "ban":
                self.bans.add(said)
            case "unban":
                self.bans.discard(said)
            case _:
                self._end(said[1])
        if action == "delete":  # whatever was said is over, in this scope and narrower ones
            over = {("b", said[1]), said}
            self.hides -= over
            self.bans -= over

    def merge(self, member: str, into: str) -> bool:
        """Whether that is possible."""
        into = self.owner(into)
        if into == member or self.owners.get(member, into) != into:
            return False
        names = {into, *(m for m, o in self.owners.items() if o == into)}
        if self.owners.get(member) != into:
            renamed = not any(e.member in names for e in self.events)
            for said in (self.bans, self.hides) if renamed else (self.bans,):
                said.update([(scope, into) for scope, m in said if m == member])
        self.owners = {m: into if o == member else o for m, o in self.owners.items()}
        self.owners[member] = into
        for frozen in self.frozen.values():
            if member in frozen and into not in frozen:
                frozen[into] = frozen.pop(member)
        return True

    def erase(self, member: str) -> None:
        """Nothing is left of any id of the person; each begins anew, for itself."""
        owner = self.owner(member)
        names = {owner, *(m for m, o in self.owners.items() if o == owner)}
        self._end(owner)
        self.events = [
            replace(e, id="", member="") if e.member in names and e.ended else e
            for e in self.events
        ]
        self.owners = {m: o for m, o in self.owners.items() if o != owner}
        self.hides = {said for said in self.hides if said[1] not in names}
        self.bans = {said for said in self.bans if said[1] not in names}

    def close(self, day: str) -> None:
        self.final.setdefault(day, self.rows(day, shown=False))

    def freeze(self, season: str) -> None:
        self.frozen.setdefault(season, self.standings(season))

    def reveal(self, season: str) -> bool:
        return self.frozen.pop(season, None) is not None

    def state(self, member: str) -> str:
        """The strictest thing that was said of it."""
        if member in self.owners:
            return "merged"
        scopes = ((ALL, member), ("b", member))
        if any(scope in self.bans for scope in scopes):
            return "banned"
        return "hidden" if any(scope in self.hides for scope in scopes) else "active"

    def standings(self, season: str) -> dict[str, Standing]:
        """Of everybody with events in a season, in sight or not."""
        events: dict[str, list[Event]] = {}
        for event in sorted(self.events, key=lambda e: (e.at, e.position)):
            if not event.void and not event.ended and season in {ALL, f"{event.at:%Y-%m-%d}"}:
                events.setdefault(self.owner(event.member), []).append(event)
        return {member: self._fold(of) for member, of in events.items()}

    def rows(self, season: str, *, shown: bool = True) -> list[Row]:
        """The list of a season; as the public is shown it, or as it is."""
        frozen = self.frozen.get(season) if shown else None
        standings = self.standings(season) if frozen is None else frozen
        ordered = sorted(
            (
                (-score if self.descending else score, tie, at, position, member, str(score))
                for member, (score, tie, at, position) in standings.items()
                if self.state(member) == "active"
            ),
        )
        return [
            (1 + sum(other[:2] < row[:2] for other in ordered), row[4], row[5]) for row in ordered
        ]

    def _fold(self, events: list[Event]) -> Standing:
        if self.operator == "sum":
            reached = next((e for e in reversed(events) if e.value or e.tie), events[0])
            score, tie = sum(e.value for e in events), sum(e.tie for e in events)
            return score, tie, reached.at, reached.position
        if self.operator == "best":
            reached = min(events, key=lambda e: (-e.value if self.descending else e.value, e.tie))
        else:
            run, last = events[::-1], events[-1]
            parted = ((e.value, e.tie) != (last.value, last.tie) for e in run)
            reached = run[next((i for i, differs in enumerate(parted) if differs), len(run)) - 1]
        return reached.value, reached.tie, reached.at, reached.position

    def _end(self, owner: str) -> None:
        for event in self.events:
            event.ended = event.ended or self.owner(event.member) == owner
        gone = {owner, *(m for m, o in self.owners.items() if o == owner)}
        self._leave(gone)

    def _leave(self, names: Iterable[str]) -> None:
        for frozen in self.frozen.values():
            for name in names:
                frozen.pop(name, None)

    def _event(self, event: str) -> Event:
        return next(e for e in self.events if e.id == event)

    def _is_final(self, at: datetime) -> bool:
        return f"{at:%Y-%m-%d}" in self.final

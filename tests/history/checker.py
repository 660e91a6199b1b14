"""Judge a history by the database's own log: nine promises, and no line of the product's code.

I1  an event has one effect; a standing is what its events give
I2  versions rise, and none is used twice
I3  an answer shows at least what its tick and its freshness say, and no more where it is whole
I4  nothing is ever shown that never was
I5  inside one copy a session is not taken back
I6  who waited for a write is shown it
I7  once faults stop, both ends are equal within so many ticks
I8  a switch of copies takes nobody back
I9  a closed season takes nothing any more
and the outbox says of every transaction what it did to the standings, once.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from tests.history.history import Acknowledged, Answered, Change, Event, History, Marked, Source

SETTLED_TICKS_MAX = 400
_SIGN = 1 << 63


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken, and where."""

    invariant: str
    what: str


def check(history: History, source: Source) -> list[Violation]:
    """Everything in which a history breaks a promise; nothing where it keeps them all."""
    truth = Truth(source)
    return [
        *effects(history, source),
        *versions(source),
        *logged(source),
        *receipts(history, truth),
        *answers(history, truth),
        *sessions(history, truth),
        *settling(history, truth),
        *closing(history, truth),
    ]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Which transactions had committed: those below `xmax` that weren't under way."""

    xmin: int
    xmax: int
    under_way: frozenset[int]

    @classmethod
    def of(cls, text: str) -> "Snapshot":
        xmin, xmax, under_way = text.split(":")
        return cls(int(xmin), int(xmax), frozenset(int(x) for x in under_way.split(",") if x))

    def shows(self, xid: int) -> bool:
        return xid < self.xmax and xid not in self.under_way

    def shows_all_of(self, other: "Snapshot") -> bool:
        """Whether each transaction that the other shows is shown here: looked at one by one."""
        return not any(
            other.shows(xid) and not self.shows(xid) for xid in range(self.xmin, other.xmax)
        )


@dataclass(frozen=True, slots=True)
class State:
    """A standing after one transaction; without score and key it is gone."""

    version: int
    xid: int
    score: int | None
    sort_key: bytes | None


class Truth:
    """All states that each standing ever had, by version."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.states: dict[tuple[int, str], list[State]] = defaultdict(list)
        self.members: dict[int, set[str]] = defaultdict(set)
        self._of_xid: dict[tuple[int, int], list[tuple[str, int]]] = defaultdict(list)
        self._rankings: dict[tuple[str, str], int] = {}
        keys = {number: key for key, (number, _) in source.boards.items()}
        for change in _committed(source.changes):
            if change.sort_key is not None:
                self._add(change, change.score)
        for change in source.outbox:
            if change.sort_key is None:
                self._add(change, None)
        for states in self.states.values():
            states.sort(key=lambda state: state.version)
        for ranking in self.members:
            number, label, _, _ = source.season(ranking)
            self._rankings[keys[number], label] = ranking
        self.floors = cache(self._floors)

    def _add(self, change: Change, score: int | None) -> None:
        self.members[change.ranking].add(change.member)
        state = State(change.version, change.xid, score, change.sort_key)
        self._of_xid[change.xid, change.ranking].append((change.member, change.version))
        self.states[change.ranking, change.member].append(state)

    def ranking(self, board: str, season: str) -> int | None:
        """The number of a season in which anything ever happened."""
        return self._rankings.get((board, season))

    def left_by(self, xid: int, ranking: int) -> list[tuple[str, int]]:
        """The members of a ranking that a transaction changed, and the versions it left."""
        return self._of_xid.get((xid, ranking), [])

    def told(self, read: Answered) -> Snapshot | None:
        """The snapshot that an answer says it is of, by its token or its tick, if any."""
        text = read.snapshot
        if text is None and read.tick is not None:
            text = self.source.ticks.get(read.tick)
        return None if text is None else Snapshot.of(text)

    def _floors(self, ranking: int, snapshot: Snapshot) -> dict[str, int]:
        """The version of each member that a snapshot shows, 0 for those it doesn't show."""
        return {
            member: next(
                (
                    s.version
                    for s in reversed(self.states[ranking, member])
                    if snapshot.shows(s.xid)
                ),
                0,
            )
            for member in self.members[ranking]
        }

    def possible(self, ranking: int, member: str, score: int | None, floor: int) -> list[int]:
        """Versions from `floor` on in which a member is shown so; 0 is that it never was."""
        at = [s.version for s in self.states.get((ranking, member), ()) if s.score == score]
        if score is None:
            at.insert(0, 0)
        return at[bisect_left(at, floor) :]


def _committed(changes: Iterable[Change]) -> list[Change]:
    """The last change of each standing in each transaction; what was before it nobody could see."""
    return list({(c.ranking, c.member, c.xid): c for c in changes}.values())


Name = tuple[str, str, bool]  # board, event id, whether it is a void


def effects(history: History, source: Source) -> Iterator[Violation]:
    """I1: each event is stored once, as it was sent, and standings are what they give."""
    yield from _stored_as_sent(history, source)
    yield from _acknowledged_once(history, source)
    standings = {(s.ranking, s.member): (s.score, s.sort_key) for s in source.standings}
    expected = folded(source)
    for key in standings.keys() | expected.keys():
        if standings.get(key) != expected.get(key):
            yield Violation(
                "I1", f"{key} is {standings.get(key)}; its events give {expected.get(key)}"
            )


def _stored_as_sent(history: History, source: Source) -> Iterator[Violation]:
    sent = {(s.board, s.event_id, s.void): s for s in history.sent}
    stored: Counter[Name] = Counter()
    for event in source.events:
        name = (event.board, event.event_id, event.void)
        stored[name] += 1
        command = sent.get(name)
        if command is None:
            yield Violation("I1", f"stored, and never sent: {event}")
        elif not event.void and (event.member, event.value, event.occurred_us) != (
            command.member,
            command.value,
            command.occurred_us,
        ):
            yield Violation("I1", f"not as it was sent: {event}, {command}")
    for name, times in stored.items():
        if times > 1:
            yield Violation("I1", f"stored {times} times: {name}")


def _acknowledged_once(history: History, source: Source) -> Iterator[Violation]:
    xids = {(e.board, e.event_id, e.void): e.xid for e in source.events}
    applied: Counter[Name] = Counter()
    for ack in history.acknowledged:
        name = (ack.board, ack.event_id, ack.void)
        applied[name] += ack.outcome == "applied"
        if ack.outcome == "refused":
            continue
        if name not in xids:
            yield Violation("I1", f"acknowledged, and not stored: {ack}")
        elif ack.xid is not None and ack.xid != xids[name]:
            yield Violation("I1", f"the token is of transaction {ack.xid}, not {xids[name]}: {ack}")
    for name, times in applied.items():
        if times > 1:
            yield Violation("I1", f"applied {times} times: {name}")


def folded(source: Source) -> dict[tuple[int, str], tuple[int, bytes]]:
    """What the events give: the score of each standing, and its place in the order."""
    keys = {number: key for key, (number, _) in source.boards.items()}
    void = {(e.board, e.event_id) for e in source.events if e.void}
    live: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in source.events:
        if not event.void and (event.board, event.event_id) not in void:
            live[event.board, event.member].append(event)
    rankings = {c.ranking for c in source.changes} | {s.ranking for s in source.standings}
    found = {}
    for ranking in rankings:
        number, _, start, end = source.season(ranking)
        for (board, member), events in live.items():
            within = [e for e in events if start <= e.occurred_us < end]
            if board == keys[number] and within:
                found[ranking, member] = fold(source.boards[board][1], within)
    return found


def fold(operator: str, events: list[Event]) -> tuple[int, bytes]:
    """Score and sort key of one member's events: score, instant and position, best first."""
    events = sorted(events, key=lambda e: (e.occurred_us, e.position))
    if operator == "sum":
        score = sum(e.value for e in events)
        moving = [e for e in events if e.value]
        rests_on = moving[-1] if moving else events[0]
    elif operator == "best":
        score = max(e.value for e in events)
        rests_on = next(e for e in events if e.value == score)
    else:
        score = events[-1].value
        rests_on = events[-1]
        for event in reversed(events):
            if event.value != score:
                break
            rests_on = event
    numbers = (~score, rests_on.occurred_us, rests_on.position)
    return score, b"".join((n + _SIGN).to_bytes(8) for n in numbers)


def versions(source: Source) -> Iterator[Violation]:
    """I2: a standing's version rises with each change, and no version is used twice."""
    used: dict[int, Change] = {}
    for change in source.outbox:
        other = used.setdefault(change.version, change)
        if other is not change:
            yield Violation("I2", f"one version for two: {other}, {change}")
    gone = {(c.ranking, c.member, c.xid): c.version for c in source.outbox if c.sort_key is None}
    last: dict[tuple[int, str], int] = {}
    for change in _in_order(source.changes):
        name = (change.ranking, change.member)
        version = change.version
        if change.sort_key is None:
            version = gone.get((*name, change.xid), change.version)
        if version <= last.get(name, 0):
            yield Violation("I2", f"version {last[name]} was before {version}: {change}")
        last[name] = version


def _in_order(changes: Iterable[Change]) -> list[Change]:
    # The last change of a transaction stands where it happened: that is after the row lock.
    last = {(c.ranking, c.member, c.xid): i for i, c in enumerate(changes)}
    return [c for i, c in enumerate(changes) if last[c.ranking, c.member, c.xid] == i]


def logged(source: Source) -> Iterator[Violation]:
    """Every transaction logs how it left each standing that it changed, and nothing else."""
    newest: dict[tuple[int, str, int], Change] = {}
    for row in source.outbox:
        name = (row.ranking, row.member, row.xid)
        if name not in newest or row.version > newest[name].version:
            newest[name] = row
    left = {(c.ranking, c.member, c.xid): c for c in _in_order(source.changes)}
    for name in left.keys() | newest.keys():
        said, change = newest.get(name), left.get(name)
        if _end(said) != _end(change):
            yield Violation("outbox", f"the log has {said}, the standing {change}")


def _end(change: Change | None) -> tuple[int, bytes | None] | None:
    # A row that is deleted has no version of its own: the log draws one.
    if change is None:
        return None
    return change.version if change.sort_key is not None else 0, change.sort_key


def receipts(history: History, truth: Truth) -> Iterator[Violation]:
    """I4 of what writers are told: a standing that they are given was once so."""
    for ack in history.acknowledged:
        for season, score, version in ack.standings:
            ranking = truth.ranking(ack.board, season)
            if version is not None and (
                ranking is None or version not in truth.possible(ranking, ack.member, score, 0)
            ):
                yield Violation("I4", f"never was: {season} {score} {version} in {ack}")


def answers(history: History, truth: Truth) -> Iterator[Violation]:
    """I3, I4 and I6 of every answer."""
    judge = Judge(history, truth)
    for read in history.answered:
        yield from judge.answer(read)


class Judge:
    """What a reader may be shown, from what had been acknowledged before."""

    def __init__(self, history: History, truth: Truth) -> None:
        self._history = history
        self._truth = truth
        acks = sorted(
            (ack for ack in history.acknowledged if ack.xid is not None),
            key=lambda ack: ack.xid or 0,
        )
        self._xids = [ack.xid or 0 for ack in acks]
        # The earliest moment at which one of these, or a later one, had been acknowledged.
        self._earliest = [2**63] * (len(acks) + 1)
        for i in reversed(range(len(acks))):
            self._earliest[i] = min(acks[i].received_us, self._earliest[i + 1])
        self._of_xid: dict[int, list[Acknowledged]] = defaultdict(list)
        for ack in acks:
            self._of_xid[ack.xid or 0].append(ack)
        self._acknowledged = sorted(history.acknowledged, key=lambda ack: ack.received_us)

    def answer(self, read: Answered) -> Iterator[Violation]:
        """I3, I4 and I6 of one answer."""
        ranking = self._truth.ranking(read.board, read.season)
        if ranking is None:
            if read.rows or read.total:
                yield Violation("I4", f"nothing ever happened in this season: {read}")
            return
        if read.source == "projection" and read.tick not in self._truth.source.ticks:
            yield Violation("I4", f"this tick was never taken: {read}")
            return
        snapshot = self._truth.told(read)
        exact = snapshot is not None and not read.partial
        if snapshot is not None:
            floors = self._truth.floors(ranking, snapshot)
            yield from self._fresh(read, snapshot)
        else:
            floors = self._floors_at(read, ranking)
        yield from self._rows(read, ranking, floors, exact=exact)
        yield from self._order(read, ranking, floors, exact=exact)
        yield from self._asked(read, ranking)

    def _fresh(self, read: Answered, snapshot: Snapshot) -> Iterator[Violation]:
        missing = min(
            (ack.received_us for xid in snapshot.under_way for ack in self._of_xid.get(xid, ())),
            default=2**63,
        )
        missing = min(missing, self._earliest[bisect_left(self._xids, snapshot.xmax)])
        if read.through_us is not None and missing <= read.through_us:
            yield Violation("I3", f"lacks what was acknowledged at {missing}: {read}")
        if read.staleness_ms is not None and missing <= read.sent_us - read.staleness_ms * 1000:
            yield Violation("I3", f"older than it says, by what came at {missing}: {read}")

    def _floors_at(self, read: Answered, ranking: int) -> dict[str, int]:
        floors = dict.fromkeys(self._truth.members[ranking], 0)
        for ack in self._acknowledged:
            if ack.received_us >= read.sent_us:
                break
            if ack.board == read.board:
                for season, _, version in ack.standings:
                    if season == read.season and version is not None:
                        floors[ack.member] = max(floors.get(ack.member, 0), version)
        return floors

    def _rows(
        self, read: Answered, ranking: int, floors: dict[str, int], *, exact: bool
    ) -> Iterator[Violation]:
        shown = {member: score for _, member, score in read.rows}
        if read.total != len(read.rows) or len(shown) != len(read.rows):
            yield Violation("I3", f"{len(shown)} members in {len(read.rows)} rows: {read}")
        for member in floors.keys() | shown.keys():
            score, floor = shown.get(member), floors.get(member, 0)
            if not self._truth.possible(ranking, member, score, 0):
                yield Violation("I4", f"{member} never had {score}: {read}")
                continue
            possible = self._truth.possible(ranking, member, score, floor)
            if not possible:
                yield Violation("I3", f"{member} {score} is from before version {floor}: {read}")
            elif exact and possible[0] != floor:
                yield Violation("I3", f"{member} {score} is newer than version {floor}: {read}")

    def _order(
        self, read: Answered, ranking: int, floors: dict[str, int], *, exact: bool
    ) -> Iterator[Violation]:
        scores = [score for _, _, score in read.rows]
        ranks = [1 + sum(other > score for other in scores) for score in scores]
        if ranks != [rank for rank, _, _ in read.rows] or scores != sorted(scores, reverse=True):
            yield Violation("I3", f"ranks should be {ranks}: {read}")
        if exact:
            keys = {
                member: state.sort_key
                for member, floor in floors.items()
                for state in self._truth.states[ranking, member]
                if state.version == floor
            }
            order = [(keys.get(member) or b"") + member.encode() for _, member, _ in read.rows]
            if order != sorted(order):
                yield Violation("I3", f"not in the order of the sort keys: {read}")

    def _asked(self, read: Answered, ranking: int) -> Iterator[Violation]:
        if read.max_age_ms is not None and (
            read.staleness_ms is None or read.staleness_ms > read.max_age_ms
        ):
            yield Violation("I3", f"older than was asked for: {read}")
        if read.at_least is None or (
            # Where one waits first and reads then, much may happen in between.
            read.mode == "visible" and went_back(self._history, read.asked_us, read.received_us)
        ):
            return
        shown = {member: score for _, member, score in read.rows}
        for member, version in self._truth.left_by(read.at_least, ranking):
            if not self._truth.possible(ranking, member, shown.get(member), version):
                yield Violation("I6", f"does not show version {version} of {member}: {read}")


def went_back(history: History, since_us: int, until_us: int) -> bool:
    """Whether Redis may have lost within a time what it had shown before."""
    return any(
        mark.kind == "went_back" and since_us <= mark.until_us and mark.at_us <= until_us
        for mark in history.marked
    )


def sessions(history: History, truth: Truth) -> Iterator[Violation]:
    """I5 and I8: nobody is taken back, neither inside a copy nor by a switch to another."""
    last: dict[tuple[str, str], Answered] = {}
    for read in sorted(history.answered, key=lambda read: read.received_us):
        newer = truth.told(read)
        if newer is None:
            continue
        if read.after is not None and not newer.shows_all_of(Snapshot.of(read.after)):
            yield Violation("I5", f"older than the answer before: {read}")
        if read.source != "projection":
            continue
        before = last.get((read.session, read.board))
        last[read.session, read.board] = read
        if before is None or went_back(history, before.sent_us, read.received_us):
            continue
        older = truth.told(before)
        invariant = "I5" if before.generation == read.generation else "I8"
        if older is not None and not newer.shows_all_of(older):
            yield Violation(invariant, f"{read} after {before}")
        elif older is not None and read.season == before.season:
            yield from _taken_back(truth, before, older, read, invariant)


def _taken_back(
    truth: Truth, before: Answered, older: Snapshot, read: Answered, invariant: str
) -> Iterator[Violation]:
    ranking = truth.ranking(read.board, read.season)
    if ranking is None or not read.partial:
        return  # what isn't partial is compared with its snapshot, and these were compared
    then = {member: score for _, member, score in before.rows}
    now = {member: score for _, member, score in read.rows}
    for member, floor in truth.floors(ranking, older).items():
        at_least = truth.possible(ranking, member, then.get(member), floor)
        at_most = truth.possible(ranking, member, now.get(member), 0)
        if at_least and at_most and at_most[-1] < at_least[0]:
            yield Violation(invariant, f"{member} goes back in {read} after {before}")


def settling(history: History, truth: Truth) -> Iterator[Violation]:
    """I7: within so many ticks of the last fault both ends are equal, and are read so."""
    stopped = [mark for mark in history.marked if mark.kind == "stopped"]
    settled = [mark for mark in history.marked if mark.kind == "settled"]
    if not stopped:
        return
    if not settled:
        yield Violation("I7", "both ends were never found equal")
        return
    ticks = sum(stopped[-1].tick < tick <= settled[-1].tick for tick in truth.source.ticks)
    if ticks > SETTLED_TICKS_MAX:
        yield Violation("I7", f"it took {ticks} ticks until both ends were equal")
    final: dict[int, dict[str, int | None]] = defaultdict(dict)
    for standing in truth.source.standings:
        final[standing.ranking][standing.member] = standing.score
    for read in history.answered:
        ranking = truth.ranking(read.board, read.season)
        if read.mode == "final" and ranking is not None:
            shown = {member: score for _, member, score in read.rows}
            if shown != final[ranking]:
                yield Violation("I7", f"at the end {final[ranking]}, but {read}")


def closing(history: History, truth: Truth) -> Iterator[Violation]:
    """I9: nothing changes in a season after its last writer has ended."""
    for mark in history.marked:
        if mark.kind != "closed":
            continue
        yield from _changed_since(mark, truth)
        for ack in history.acknowledged:
            seasons = [season for season, _, _ in ack.standings]
            if (
                ack.outcome == "applied"
                and ack.sent_us > mark.at_us
                and ack.board == mark.board
                and mark.season in seasons
            ):
                yield Violation("I9", f"accepted after {mark}: {ack}")


def _changed_since(mark: Marked, truth: Truth) -> Iterator[Violation]:
    ranking, snapshot = truth.ranking(mark.board, mark.season), Snapshot.of(mark.snapshot)
    for change in truth.source.changes:
        if change.ranking == ranking and not snapshot.shows(change.xid):
            yield Violation("I9", f"changed after {mark}: {change}")

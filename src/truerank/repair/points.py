"""Judge members one by one: the entry first, then the source as of the snapshot the copy shows.

What differed between two reads at different times is only a candidate. Here both are compared at
one tick, so that traffic is never taken for damage: what is on its way is waited for, and where it
never rests, what arrived in between says what the copy must show.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from truerank.outbox.ticks import Connection
from truerank.projection.copies import Copy
from truerank.repair.findings import Finding, Ranking, Side
from truerank.repair.judging import Entry, Judgement, Kind, Standing, judge
from truerank.repair.looking import Candidate, CopyUnfit, Look, Looker
from truerank.repair.mending import Mend, Mender
from truerank.repair.source import At, Point, read_points

_AT_ONCE_MAX = 400  # members in one look
_TRIES_MAX = 1000  # rounds; each is a look at what has moved since the last one


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is done with what is found, and how long is waited for what is on its way."""

    repair: bool = False
    accept_ahead: bool = False
    wait_s: float = 10.0
    pause_s: float = 0.02
    rows_max: int = 1000  # standings in one chunk

    def mends(self, kind: Kind) -> bool:
        """Whether a difference of this kind is to be put right."""
        return self.repair and (kind is not Kind.AHEAD or self.accept_ahead)


@dataclass(slots=True)
class Judged:
    """What became of some candidates: differences, and who is as it should be."""

    findings: dict[bytes, Finding] = field(default_factory=dict)
    sources: dict[bytes, Standing | None] = field(default_factory=dict)


class Patience:
    """How long to wait for a copy: not again where it stood still the whole time.

    Args:
        limit_s: for a copy to move on.
        pause_s: between two looks.
    """

    def __init__(self, limit_s: float, pause_s: float) -> None:
        self._limit_s = limit_s
        self._pause_s = pause_s
        self._stuck: dict[str, str] = {}  # by generation: the cursor at which it stood

    def wait(self, copy: Copy, since: float) -> bool:
        """Pause before the next look; False where there is no use in it.

        Args:
            copy: as it was just read.
            since: monotonic seconds when the wait began.
        """
        at = f"{copy.cursor} {copy.pending}"
        if self._stuck.get(copy.generation) == at:
            return False
        if time.monotonic() - since > self._limit_s:
            self._stuck[copy.generation] = at
            return False
        time.sleep(self._pause_s)
        return True


class Points:
    """Judges and mends members of rankings.

    Args:
        conn: in autocommit, to the source.
        looker: of the copies.
        rules: what to do with what is found.
    """

    def __init__(self, conn: Connection, looker: Looker, rules: Rules) -> None:
        self._conn = conn
        self._looker = looker
        self._rules = rules
        self._mender = Mender(conn, looker)
        self._patience = Patience(rules.wait_s, rules.pause_s)

    @property
    def mender(self) -> Mender:
        """What calls the scripts that repair."""
        return self._mender

    def check(self, copy: Copy, ranking: Ranking, candidates: Sequence[Candidate]) -> Judged:
        """Judge some members of a ranking, and mend what the rules say.

        Raises:
            CopyMoved: readers read another copy by now.
            KeyDamaged: a key of the ranking is of another type.
            SourceDoubtful: this database isn't the source of the copy.
        """
        judged = Judged()
        for at in range(0, len(candidates), _AT_ONCE_MAX):
            self._check_some(copy, ranking, candidates[at : at + _AT_ONCE_MAX], judged)
        return judged

    def rested(self, copy: Copy, ranking: Ranking) -> Look:
        """Look at a ranking's sizes while no batch is half applied.

        Raises:
            CopyUnfit: it stays so.
        """
        began = time.monotonic()
        while True:
            look = self._looker.look(copy, ranking)
            if not look.copy.pending:
                return look
            if not self._patience.wait(look.copy, began):
                raise CopyUnfit(f"group {copy.group}: a batch stays half applied")

    def _check_some(
        self, copy: Copy, ranking: Ranking, candidates: Sequence[Candidate], judged: Judged
    ) -> None:
        began = time.monotonic()
        first: str | None = None
        open_ = list(candidates)
        for _ in range(_TRIES_MAX):
            look = self._looker.look(copy, ranking, open_)
            if not look.copy.pending:
                first = first or look.copy.snapshot
                at = At(copy=look.copy, since=first)
                members = [candidate.member for candidate in open_]
                points = read_points(self._conn, at, ranking.id, members)
                open_, hurried = self._judge(look, ranking, open_, points, judged)
                if not open_:
                    return
                if hurried:
                    continue
            if not self._patience.wait(look.copy, began):
                break
        for candidate in open_:
            judged.findings[candidate.member] = _finding(
                ranking,
                candidate.member,
                Judgement(Kind.LAGGING, "a change is on its way"),
                None,
                None,
            )

    def _judge(
        self,
        look: Look,
        ranking: Ranking,
        candidates: Sequence[Candidate],
        points: Sequence[Point],
        judged: Judged,
    ) -> tuple[list[Candidate], bool]:
        """Those that are to be looked at again, and whether at once."""
        again: list[Candidate] = []
        hurried = False
        wrong: list[tuple[Mend, Judgement]] = []
        for candidate, entry, point in zip(candidates, look.entries, points, strict=True):
            if not point.settled:
                again.append(candidate)
                continue
            judgement = judge(candidate.member, point.standing, entry)
            place = _place(candidate.member, point.standing)
            if (
                judgement.is_drift
                and place is not None
                and place not in _looked_for(candidate, entry)
            ):
                # Where it should be by now was not looked at.
                candidate.places.add(place)
                again.append(candidate)
                hurried = True
                continue
            judged.sources[candidate.member] = point.standing
            if judgement.is_drift:
                wrong.append(
                    (Mend(candidate=candidate, entry=entry, source=point.standing), judgement)
                )
        mended = self._mend(look, ranking, wrong)
        for mend, judgement in wrong:
            member = mend.candidate.member
            if self._rules.mends(judgement.kind) and member not in mended:
                again.append(mend.candidate)
                hurried = True
                continue
            judged.findings[member] = _finding(
                ranking, member, judgement, mend.source, mend.entry, repaired=member in mended
            )
        return again, hurried

    def _mend(
        self, look: Look, ranking: Ranking, wrong: Sequence[tuple[Mend, Judgement]]
    ) -> set[bytes]:
        mends = [mend for mend, judgement in wrong if self._rules.mends(judgement.kind)]
        if not mends:
            return set()
        done = self._mender.standings(
            look.copy,
            ranking,
            mends,
            dense=look.prefixes_kept and ranking.equal_bytes > 0,
        )
        return {mend.candidate.member for mend, one in zip(mends, done, strict=True) if one}


def _place(member: bytes, source: Standing | None) -> bytes | None:
    return None if source is None else source.sort_key + member


def _looked_for(candidate: Candidate, entry: Entry) -> set[bytes]:
    own = {entry.sort_key + candidate.member} if entry.sort_key else set()
    return candidate.places | own


def _finding(
    ranking: Ranking,
    member: bytes,
    judgement: Judgement,
    source: Standing | None,
    entry: Entry | None,
    *,
    repaired: bool = False,
) -> Finding:
    return Finding(
        kind=judgement.kind,
        detail=judgement.detail,
        group=ranking.group,
        ranking=ranking,
        member=member.decode(errors="replace"),
        source=None
        if source is None
        else Side(
            version=source.version,
            score=ranking.score(source.sort_key),
            places=0 if source.withheld else 1,
        ),
        projection=None if entry is None else _shown_side(ranking, entry),
        repaired=repaired,
    )


def _shown_side(ranking: Ranking, entry: Entry) -> Side:
    # Readers see places: of a place without an entry, or beside one, they see the score it has.
    keys = [place[: ranking.key_bytes] for place in entry.places]
    key = keys[0] if keys else entry.sort_key
    return Side(version=entry.version, score=ranking.score(key), places=len(entry.places))

"""Compare the states of members that a copy keeps with what the source says of them."""

import time
from collections.abc import Iterator, Sequence

from truerank.outbox.ticks import Connection
from truerank.projection.copies import Copy
from truerank.repair.findings import Finding, Report
from truerank.repair.judging import Judgement, Kind, judge_states
from truerank.repair.looking import Looker, raised
from truerank.repair.mending import Mender
from truerank.repair.points import Patience, Rules
from truerank.repair.source import At, read_points, read_states

_ROWS = 400
_TRIES_MAX = 1000


class States:
    """The comparison of the states that one copy keeps.

    Args:
        conn: in autocommit, to the source.
        looker: of the copies.
        mender: calls the scripts that repair.
        rules: what to do with what is found.
        report: counts what is found.
    """

    def __init__(
        self, conn: Connection, looker: Looker, mender: Mender, rules: Rules, report: Report
    ) -> None:
        self._conn = conn
        self._looker = looker
        self._mender = mender
        self._rules = rules
        self._report = report
        self._patience = Patience(rules.wait_s, rules.pause_s)

    def walk(self, copy: Copy) -> Iterator[None]:
        """Compare all states, a chunk at a time: those of the source, then those of the copy.

        Raises:
            CopyMoved, KeyDamaged, SourceDoubtful: see `Points.check`.
        """
        after, seen = "", 0
        key = self._looker.keys(copy).members
        while rows := read_states(self._conn, copy.group, after, _ROWS):
            after = rows[-1][0]
            members = [member.encode() for member, _ in rows]
            (reply,) = self._looker.link.try_commands([("HMGET", key, *members)])
            records = raised(reply)
            self._check(
                copy,
                [
                    member
                    for member, (_, source), record in zip(members, rows, records, strict=True)
                    if judge_states(source, record).is_drift
                ],
            )
            seen += len(rows)
            yield
        (reply,) = self._looker.link.try_commands([("HLEN", key)])
        if raised(reply) > seen:
            yield from self._look_back(copy)

    def finish(self, copy: Copy, *, mend: bool) -> None:
        """Compare what the copy says of its own size with what there is.

        Args:
            copy: of which all states and all rankings were compared.
            mend: nothing that was wrong with them is left, so that their numbers may be written.

        Raises:
            CopyMoved, KeyDamaged, SourceDoubtful: see `Points.check`.
        """
        keys = self._looker.keys(copy)
        lengths = [("HLEN", keys.members), ("HLEN", keys.counts)]
        replies = self._looker.link.try_commands(
            [*lengths, ("HMGET", keys.meta, "members", "rankings")]
        )
        members, rankings, known = [raised(reply) for reply in replies]
        numbers = [str(members).encode(), str(rankings).encode()]
        wrong = [
            what
            for what, number, told in zip(("states", "rankings"), numbers, known, strict=True)
            if number != (told or b"0")
        ]
        if not wrong:
            return
        look = self._looker.look_at_states(copy, ())
        repaired = (
            self._rules.repair and mend and not look.copy.pending and self._mender.sizes(look.copy)
        )
        self._report.take_other(
            [
                Finding(
                    kind=Kind.CORRUPT,
                    detail=f"number of {what}",
                    group=copy.group,
                    repaired=repaired,
                )
                for what in wrong
            ]
        )

    def _look_back(self, copy: Copy) -> Iterator[None]:
        """Look for states of which the source says nothing."""
        for held in self._looker.fields(self._looker.keys(copy).members, _ROWS):
            # Judged as if the source said nothing: whoever is active in all scopes passes.
            self._check(copy, [m for m, record in held if judge_states(b"", record).is_drift])
            yield

    def _check(self, copy: Copy, members: Sequence[bytes]) -> None:
        for at in range(0, len(members), _ROWS):
            self._check_some(copy, members[at : at + _ROWS])

    def _check_some(self, copy: Copy, members: Sequence[bytes]) -> None:
        began = time.monotonic()
        open_ = list(members)
        for _ in range(_TRIES_MAX):
            look = self._looker.look_at_states(copy, open_)
            if not look.copy.pending:
                at = At(copy=look.copy, since=look.copy.snapshot)
                points = read_points(self._conn, at, None, open_)
                wrong = [
                    (member, entry.shown, point.states, judgement)
                    for member, entry, point in zip(open_, look.entries, points, strict=True)
                    if point.settled
                    and (judgement := judge_states(point.states, entry.shown)).is_drift
                ]
                again = [m for m, point in zip(open_, points, strict=True) if not point.settled]
                again += self._mend(look.copy, wrong)
                open_ = again
                if not open_:
                    return
            if not self._patience.wait(look.copy, began):
                return  # on its way, and looked at again the next time

    def _mend(
        self, copy: Copy, wrong: Sequence[tuple[bytes, bytes | None, bytes, Judgement]]
    ) -> list[bytes]:
        """Tell, and put right; return those that have changed meanwhile."""
        mended = [each for each in wrong if self._rules.mends(each[3].kind)]
        done = (
            self._mender.states(copy, [(m, seen, wanted) for m, seen, wanted, _ in mended])
            if mended
            else []
        )
        right = {m for (m, *_), one in zip(mended, done, strict=True) if one}
        again = [m for m, *_ in mended if m not in right]
        self._report.take_other(
            [
                Finding(
                    kind=judgement.kind,
                    detail=judgement.detail,
                    group=copy.group,
                    member=member.decode(errors="replace"),
                    repaired=member in right,
                )
                for member, _, _, judgement in wrong
                if member not in again
            ]
        )
        return again

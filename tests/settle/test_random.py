"""Random lives of a season: what is settled is what readers saw, and events prove it ever after."""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from math import ceil
from typing import Any

import pytest

import truerank
from tests.settle.conftest import Connection, Months
from truerank.errors import EventRefused, MergeRefused
from truerank.model import AwardRule, Numbering, SettledPlace, TieBreak
from truerank.repair.settlement import check_places

BY: Any = Months.BY
HOW: dict[str, Any] = {**BY, "timeout_s": 0.0}
MEMBERS = [f"m{n:02}" for n in range(14)]
SEASON = "2024-06"


class Life:
    """One board, and everything that may happen on it."""

    def __init__(self, tr: truerank.Truerank, rng: random.Random, operator: str) -> None:
        self.tr = tr
        self.rng = rng
        self.events: list[str] = []
        self._numbers = iter(range(10_000))
        tr.create_board(
            "b",
            operator=operator,
            order=rng.choice(["desc", "asc"]),
            seasons=["month", "all"],
            tie_breaks=[TieBreak(name="t")] if rng.random() < 0.5 else [],
        )
        self.ties = len(tr.board("b").spec.tie_breaks)

    def submit(self, count: int) -> None:
        rng = self.rng
        events = [
            truerank.ScoreEvent(
                event_id=f"e{next(self._numbers)}",
                member=rng.choice(MEMBERS),
                value=rng.randrange(-3, 4),
                occurred_at=datetime(2024, 5, 25, tzinfo=UTC)
                + timedelta(hours=rng.randrange(24 * 45)),
                ties=tuple(rng.randrange(3) for _ in range(self.ties)),
            )
            for _ in range(count)
        ]
        for receipt in self.tr.submit_scores("b", events):
            if receipt.code is None:
                self.events.append(receipt.event_id)

    def correct(self) -> None:
        event = self.rng.choice(self.events)
        if self.rng.random() < 0.6:
            self.tr.void_events("b", [event], **BY)
        else:
            correction = f"c{next(self._numbers)}"
            value = self.rng.randrange(-3, 4)
            with suppress(EventRefused):  # of an erased member nobody knows the ids any more
                self.tr.amend_event(
                    "b", event, value, correction_id=correction, ties=[1] * self.ties, **BY
                )

    def change_member(self) -> None:
        rng, tr = self.rng, self.tr
        member = rng.choice(MEMBERS)
        board = rng.choice([None, "b"])
        match rng.randrange(6):
            case 0:
                tr.hide_member(member, board=board, **HOW)
            case 1:
                tr.show_member(member, board=board, **HOW)
            case 2:
                tr.ban_member(member, board=board, **HOW)
            case 3:
                tr.delete_member(member, board=board, **HOW)
            case 4:
                tr.erase_member(member, **HOW)
            case _:
                with suppress(MergeRefused):
                    tr.merge_members(member, rng.choice(MEMBERS), **HOW)


RULES = {
    "podium": {"ranks": (1, 2)},
    "second": {"ranks": (2, 2), "numbering": Numbering.ORDINAL},
    "third": {"ranks": (2, 3), "numbering": Numbering.DENSE},
    "best": {"percent": "30"},
    "good": {"score": "1"},
}


def entitled(places: Sequence[SettledPlace], *, ascending: bool) -> dict[str, set[str]]:
    """Who gets what of these places, by the words of the rules."""
    count = ceil(Fraction(3, 10) * len(places))
    return {
        "podium": {p.member for p in places if p.competition <= 2},
        "second": {p.member for p in places if p.ordinal == 2},
        "third": {p.member for p in places if 2 <= p.dense <= 3},
        "best": {p.member for p in places if p.competition <= count},
        "good": {
            p.member for p in places if (int(p.score) <= 1 if ascending else int(p.score) >= 1)
        },
    }


def check_awards(tr: truerank.Truerank, revision: int) -> None:
    """Awards are what the rules say of the newest settlement."""
    found = tr.settlement_places("b", SEASON)
    assert (found.revision, found.population, found.next) == (revision, len(found.places), None)
    given: dict[str, set[str]] = {name: set() for name in RULES}
    for award in tr.awards("b", SEASON):
        if award.state == "given":
            given[award.rule].add(award.member)
    ascending = tr.board("b").spec.order == "asc"
    assert given == entitled(found.places, ascending=ascending)


def merged_into(tr: truerank.Truerank, member: str) -> str | None:
    """Whom a member's events count for now."""
    return next((said.merged_into for said in tr.member_states(member) if said.merged_into), None)


def seen(place: SettledPlace) -> tuple[object, ...]:
    """A place, but not whose it is."""
    return (place.ordinal, place.competition, place.dense, place.score, place.reached_at)


def check_changes(tr: truerank.Truerank, since: int, revision: int) -> None:
    """Two revisions differ in what is told, in slices of any size."""
    before, now = (
        {p.member: p for p in tr.settlement_places("b", SEASON, number).places}
        for number in (since, revision)
    )
    # Who was merged into somebody who had no place then is that one now.
    owners = {m: merged_into(tr, m) for m in before.keys() - now.keys()}
    known = before.keys()
    before = {
        owner if (owner := owners.get(m)) in now and owner not in known else m: place
        for m, place in before.items()
    }
    differ = {
        m
        for m in before.keys() | now.keys()
        if m not in before or m not in now or seen(before[m]) != seen(now[m])
    }
    told, cursor = [], None
    while True:
        part = tr.settlement_changes("b", SEASON, revision, since=since, limit=3, cursor=cursor)
        told += [change.member for change in part.changes]
        if (cursor := part.next) is None:
            break
    assert len(told) == len(set(told))
    assert differ <= set(told)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("operator", ["sum", "best", "latest"])
def test_a_season_comes_to_what_readers_saw_and_events_prove_it_ever_after(
    tr: truerank.Truerank, conn: Connection, operator: str, seed: int
) -> None:
    rng = random.Random(f"{operator} {seed}")
    life = Life(tr, rng, operator)
    months = Months(tr, conn, made=True)
    for name, rule in RULES.items():
        tr.make_award_rule("b", AwardRule(period="month", name=name, **rule), **BY)  # type: ignore[arg-type]
    life.submit(120)
    steps: list[Callable[[], None]] = [
        life.correct, life.change_member, partial(life.submit, 8)
    ]  # fmt: skip
    for _ in range(6):
        rng.choice(steps)()
    months.rules(hold="1 day")
    months.close()
    life.submit(5)
    for _ in range(4):
        rng.choice([life.correct, life.change_member])()
    seen = {
        kind: tr.top("b", SEASON, limit=100, numbering=kind, consistency="authoritative").entries
        for kind in Numbering
    }

    months.close(now=True, reason="looked at")

    for kind, entries in seen.items():
        assert months.settled(numbering=kind) == [(e.rank, e.member, e.score) for e in entries]
    assert months.proven() == [(1, True, True)]
    check_awards(tr, 1)
    for _ in range(3):
        life.submit(5)
        for _ in range(3):
            life.change_member()
        (revised, *_) = months.tr.revise_season("b", SEASON, **BY)
        check_awards(tr, revised.revision)
        assert all(equal for _, equal, _ in months.proven()), months.proven()
        places = check_places(months.conn, months.tr.season("b", SEASON))
        assert places is not None
        assert places.differences == ()
    newest = len(months.proven())
    for since, revision in {(1, newest), (max(1, newest - 1), newest), (1, max(1, newest - 1))}:
        check_changes(tr, since, revision)

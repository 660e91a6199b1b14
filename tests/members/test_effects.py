"""What each state of a member does to all that is shown, counted, settled, awarded and kept.

The table in `docs/how-to/hide-ban-merge-members.md`, cell by cell: `EFFECTS` is what it says.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pytest

from tests.members.conftest import BY, Club
from truerank.model import AwardRule, ScoreEvent, Source
from truerank.repair.settlement import check_settlement

BEFORE, AFTER = "2026-03-01", "2026-03-02"  # settled before the state, and after it
SCORES = {"ann": 9, "bob": 7, "cid": 7, "dan": 1}
WHO: Any = {"actor": "op", "reason": "test"}

Row = tuple[int, str, str]
_SCORES = ("score", "again")
LEFT: list[Row] = [(1, "ann", "18"), (2, "cid", "14"), (3, "dan", "2")]
MERGED: list[Row] = [(1, "cid", "28"), (2, "ann", "18"), (3, "dan", "2")]


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What bob's state does, where ann had 18, bob and cid 14, and dan 2 of both days."""

    rows: list[Row]  # the public view, with everybody else's ranks
    own: str  # his own view: the state beside no place
    score: str | None  # what is held of him
    friends: dict[str, int | None]  # ranks among ann, bob and cid
    excluded: dict[str, str]  # from the season that is settled later, and why
    gets: list[str]  # who is awarded for it the first and second places
    kept: bool = True  # his own id in places that were settled before, for who pays out
    prized: bool = True  # and in the awards that he got by them
    again: str | None  # his place after he scores 100 more
    back: list[Row]  # the public view after the state has ended, where it does
    ends: str = ""  # what ends it


OUT: Any = {"rows": LEFT, "friends": {"ann": 1, "bob": None, "cid": 2}, "gets": ["ann", "cid"]}
BACK: list[Row] = [(1, "ann", "18"), (2, "bob", "14"), (2, "cid", "14"), (4, "dan", "2")]
NEW: Any = {"own": "active", "score": None, "excluded": {}, "again": "100", "back": LEFT}

EFFECTS = {
    "hide": Effect(
        **OUT, own="hidden", score="14", excluded={"bob": "hidden"}, again=None, back=BACK,
        ends="show",
    ),
    "ban": Effect(
        **OUT, own="banned", score="14", excluded={"bob": "banned"}, again=None, back=BACK,
        ends="unban",
    ),
    "reset": Effect(**OUT, **NEW),
    "delete": Effect(**OUT, **NEW | {"excluded": {"bob": "deleted"}}, kept=False),
    "erase": Effect(**OUT, **NEW, kept=False, prized=False),
    "merge": Effect(
        rows=MERGED, own="merged", score=None, friends={"ann": 2, "bob": None, "cid": 1},
        excluded={}, gets=["cid", "ann"], again=None, back=MERGED,
    ),
}  # fmt: skip


def upside_down(effect: Effect) -> Effect:
    """The same where the least score is the best: every score with its sign turned."""
    turned: dict[str, Any] = {
        name: [(rank, member, f"-{score}") for rank, member, score in getattr(effect, name)]
        for name in ("rows", "back")
    }
    scores: dict[str, Any] = {
        name: getattr(effect, name) and f"-{getattr(effect, name)}" for name in _SCORES
    }
    return replace(effect, **turned, **scores)


def make(club: Club, order: str) -> None:
    """Two days of the same scores, of which the first is settled and awarded."""
    club.client.create_board("a", seasons=["all", "day"], order=order)
    sign = -1 if order == "asc" else 1
    rule = AwardRule(period="day", name="podium", ranks=(1, 2))
    club.client.make_award_rule("a", rule, **WHO)
    for day in (BEFORE, AFTER):
        at = datetime.fromisoformat(f"{day}T12:00:00+00:00")
        club.submit(
            "a",
            [
                ScoreEvent(
                    event_id=f"{day} {member}", member=member, value=sign * value, occurred_at=at
                )
                for member, value in SCORES.items()
            ],
        )
    club.client.close_season("a", BEFORE, now=True, **WHO)


def say(club: Club, action: str) -> None:
    if action == "merge":
        club.does("merge", "bob", "cid")
    else:
        getattr(club.client, f"{action}_member")("bob", **BY)
    while club.pipeline.conn.execute(
        "SELECT 1 FROM truerank.erasure WHERE swept_xid IS NULL"
    ).fetchone():
        club.pipeline.conn.execute("SELECT truerank.sweep_erasures(10)")
    club.project()


def rows(club: Club) -> list[Row]:
    return [(entry.rank, entry.member, entry.score) for entry in club.top("a", "all").entries]


def check_seen(club: Club, effect: Effect) -> None:
    """His own view, the public's, totals, other people's ranks, and friends lists; in both."""
    members = len(effect.rows)
    assert rows(club) == effect.rows
    assert club.top("a", "all").total == members
    assert [e.member for e in club.around("a", "dan", "all", limit=9).around] == [
        member for _, member, _ in effect.rows
    ]
    dan = club.place("a", "dan", "all", percentile=True).places[0]
    assert (dan.rank, dan.percentile) == (members, 0)
    for source in Source:
        (count,) = club.client.counts("a", [0], "all", source=source).counts
        assert count.better == members
        spread = club.client.histogram("a", [0], "all", source=source)
        assert sorted(bucket.members for bucket in spread.buckets) == [0, members]
    own = club.place("a", "bob", "all").places[0]
    assert (own.rank, own.state.value) == (None, effect.own)
    standing = club.client.standing("a", "bob", "all")
    assert (None if standing is None else standing.score) == effect.score
    friends = club.places("a", ["ann", "bob", "cid"], "all", among=True).places
    assert {place.member: place.rank_among for place in friends} == effect.friends
    with club.client.export("a", "all") as export:
        assert [row.member for row in export] == [member for _, member, _ in effect.rows]


def check_settled_before(club: Club, effect: Effect, *, shown: bool) -> None:
    """What was settled and awarded stays, to the last digit; the public isn't shown his id."""
    places = club.client.settlement_places("a", BEFORE).places
    sign = "-" if effect.rows[0][2].startswith("-") else ""
    was = [(1, f"{sign}9"), (2, f"{sign}7"), (2, f"{sign}7"), (4, f"{sign}1")]
    assert [(p.competition, p.score) for p in places] == was
    assert ("bob" in {place.member for place in places}) == effect.kept
    settled = club.client.top("a", BEFORE, consistency="settled")
    assert [(e.rank, e.score) for e in settled.entries] == was
    assert ("bob" in {entry.member for entry in settled.entries}) == shown
    awards = club.client.awards("a", BEFORE)
    assert [award.state for award in awards] == ["given"] * 3
    assert ("bob" in {award.member for award in awards}) == effect.prized
    with club.client.export("a", BEFORE, settled=True) as export:
        assert ("bob" in {row.member for row in export}) == effect.kept
    proof = check_settlement(club.pipeline.conn, club.client.season("a", BEFORE))
    assert proof is not None
    assert (proof.compared, proof.differences, proof.whole) == (4, (), True)


def check_settled_after(club: Club, effect: Effect) -> None:
    """What is settled later says who had no place in it, and why."""
    club.client.close_season("a", AFTER, now=True, **WHO)
    places = club.client.settlement_places("a", AFTER).places
    assert [place.member for place in places] == [member for _, member, _ in effect.rows]
    excluded = club.client.settlement_excluded("a", AFTER).excluded
    assert {each.member: each.why for each in excluded} == effect.excluded
    assert [award.member for award in club.client.awards("a", AFTER)] == effect.gets


def check_later(club: Club, effect: Effect) -> None:
    """New scores, and the end of it."""
    more = -100 if effect.rows[0][2].startswith("-") else 100
    (receipt,) = club.scores("a", ("bob", more))
    assert receipt.outcome == "applied"
    assert club.place("a", "bob", "all").places[0].score == effect.again
    club.client.void_events("a", [receipt.event_id], **WHO)
    if effect.ends:
        say(club, effect.ends)
    club.project()
    assert rows(club) == effect.back
    assert club.differences() == []


@pytest.mark.parametrize("order", ["desc", "asc"])
@pytest.mark.parametrize("action", EFFECTS)
def test_a_state_does_what_the_table_says(club: Club, action: str, order: str) -> None:
    effect = EFFECTS[action] if order == "desc" else upside_down(EFFECTS[action])
    make(club, order)

    say(club, action)

    check_seen(club, effect)
    check_settled_before(club, effect, shown=action == "reset")
    check_settled_after(club, effect)
    check_later(club, effect)


SAID: dict[str, Callable[[Club], object]] = {
    "hide": lambda club: club.does("hide", "eve"),
    "merge": lambda club: club.does("merge", "eve", "ann"),
    "ban on a board": lambda club: club.does("ban", "eve", board="b"),
}


@pytest.mark.parametrize("said", SAID)
def test_an_id_of_which_nothing_is_known_is_taken_and_told(club: Club, said: str) -> None:
    """It may be said before the first score; it may be a spelling."""
    club.scores("b", ("ann", 9), ("bob", 7))

    change: Any = SAID[said](club)

    assert (change.changed, change.known) == (True, False)
    assert club.does("hide", "bob").known
    club.scores("b", ("eve", 100))
    assert "eve" not in club.settled()
    assert SAID[said](club).known  # type: ignore[attr-defined]


def test_events_of_who_is_out_of_sight_are_explained_and_those_of_a_merged_id_count_for_another(
    club: Club,
) -> None:
    club.scores("b", ("ann", 9), ("bob", 7), ("cid", 5))
    club.does("ban", "ann")
    club.does("merge", "bob", "cid")

    def explained(member: str) -> list[tuple[str, str]]:
        return [(str(e.value), e.state) for e in club.client.explain("b", member)]

    assert explained("ann") == [("9", "counted")]
    assert explained("bob") == [("7", "merged")]
    assert explained("cid") == [("7", "counted"), ("5", "counted")]

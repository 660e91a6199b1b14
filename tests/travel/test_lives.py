"""Whatever became of a board: what it was at an instant is what was read then, to the byte."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count, product
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import truerank
from tests.travel.conftest import AT_ONCE, Past
from truerank import Order, ScoreEvent, TieBreak
from truerank.errors import EventRefused
from truerank.model import Entry, Numbering

MEMBERS = ("Ann", "ann", "bob", "cid")
NOON = datetime(2026, 3, 29, 12, tzinfo=UTC)
KINDS = tuple(product(("sum", "best", "latest"), Order, (0, 2)))  # operator, order, tie-breaks
_STANDINGS = """
    SELECT s.ranking, s.member, s.sort_key FROM truerank.standing AS s
    JOIN truerank.board AS b ON b.id = s.ranking >> 36
    WHERE b.key = %s ORDER BY s.ranking, s.sort_key, s.member COLLATE "C" """
_FOLDED = """
    SELECT a.member, a.sort_key FROM truerank.board AS b
    CROSS JOIN LATERAL truerank.standings_at(b, truerank.season_of_ranking(b, %s), %s) AS a
    WHERE b.key = %s ORDER BY a.sort_key, a.member COLLATE "C" """
_UNSWEPT = "SELECT 1 FROM truerank.erasure WHERE swept_xid IS NULL LIMIT 1"

Rows = list[tuple[str, bytes]]
_numbers = count(1)


@dataclass(frozen=True)
class Seen:
    """A board as it was read at an instant, withheld or not, by ranking."""

    at: datetime
    rankings: dict[int, Rows]
    numbering: Numbering
    entries: tuple[Entry, ...]


@dataclass
class Life:
    """One example: a board and members of its own."""

    past: Past
    kind: tuple[str, Order, int]
    number: int = field(default_factory=lambda: next(_numbers))
    events: list[ScoreEvent] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    hidden: set[str] = field(default_factory=set)
    left: dict[str, datetime] = field(default_factory=dict)  # what was before isn't shown
    merged: set[str] = field(default_factory=set)  # what they were then isn't what they are now

    def __post_init__(self) -> None:
        operator, order, ties = self.kind
        self.past.tr.create_board(
            self.board,
            operator=operator,
            order=order,
            seasons=["all", "day"],
            zone="Europe/Berlin",
            decimals=1,
            tie_breaks=[
                TieBreak(name=f"t{i}", order=order)
                for i, order in zip(range(ties), Order, strict=False)
            ],
        )

    @property
    def board(self) -> str:
        return f"board {self.number}"

    def named(self, member: str) -> str:
        return f"{member} {self.number}"

    def does(self, act: Mapping[str, Any]) -> None:  # noqa: C901, PLR0912 - one case per act
        past, tr = self.past, self.past.tr
        member = self.named(act.get("member", ""))
        match act["do"]:
            case "score":
                first = len(self.events)
                batch = [
                    ScoreEvent(
                        event_id=f"e{first + i}",
                        member=self.named(name),
                        value=f"{value / 2:.1f}",
                        ties=tuple(ties[: self.kind[2]]),
                        occurred_at=NOON + timedelta(hours=hours),
                    )
                    for i, (name, value, ties, hours) in enumerate(act["events"])
                ]
                self.events += batch
                truerank.submit_scores(past.conn, self.board, batch)
            case "void" | "amend" if self.events:
                event = self.events[act["event"] % len(self.events)]
                how = {"actor": "op", "reason": "test"}
                if act["do"] == "void":
                    tr.void_events(self.board, [event.event_id], **how)
                else:
                    with suppress(EventRefused):  # it is void, or has ended
                        tr.amend_event(
                            self.board,
                            event.event_id,
                            correction_id=f"a{next(_numbers)}",
                            value=act["value"],
                            ties=tuple(act["ties"][: self.kind[2]]),
                            **how,
                        )
            case "hide":
                tr.hide_member(member, board=self.board, **AT_ONCE)
                self.hidden.add(member)
            case "ban":
                tr.ban_member(member, **AT_ONCE)
                self.hidden.add(member)
            case "reset":
                tr.reset_member(member, **AT_ONCE)
            case "delete":
                tr.delete_member(member, **AT_ONCE)
                self.hidden.discard(member)
                self.left |= dict.fromkeys({member} | self.merged, past.now())
            case "erase":
                past.conn.execute("SELECT truerank.erase_member(%s, 'op', 'test')", (member,))
                while past.conn.execute(_UNSWEPT).fetchone():
                    past.conn.execute("SELECT truerank.sweep_erasures(100)")
                self.hidden.discard(member)
                self.left |= dict.fromkeys({member} | self.merged, past.now())
            case "merge":
                self.merged |= {member, self.named(act["into"])}
                past.conn.execute(
                    "SELECT truerank.merge_members(%s, %s, 'op', 'test')",
                    (member, self.named(act["into"])),
                )
            case "look":
                self.look()
            case _:
                pass  # nothing to correct yet

    def look(self) -> None:
        rankings: dict[int, Rows] = {}
        for ranking, member, key in self.past.conn.execute(_STANDINGS, (self.board,)).fetchall():
            rankings.setdefault(ranking, []).append((member, bytes(key)))
        numbering = list(Numbering)[len(self.seen) % 3]
        page = self.past.tr.top(
            self.board, limit=1000, numbering=numbering, consistency="authoritative"
        )
        self.seen.append(Seen(self.past.now(), rankings, numbering, page.entries))

    def check(self) -> None:
        assert self.folded(self.past.now(), {}) == self.live(), "now it is what the standings say"
        for seen in self.seen:
            gone = self.hidden | self.merged
            gone |= {member for member, at in self.left.items() if seen.at < at}
            kept = {
                ranking: [row for row in rows if row[0] not in gone]
                for ranking, rows in seen.rankings.items()
            }
            folded = self.folded(seen.at, seen.rankings)
            for ranking, rows in folded.items():
                shown = [row for row in rows if row[0] not in self.merged]
                assert shown == kept.get(ranking, []), seen.at
            if not any(member in gone for rows in seen.rankings.values() for member, _ in rows):
                page = self.past.tr.top(
                    self.board, as_of=seen.at, limit=1000, numbering=seen.numbering
                )
                assert page.entries == seen.entries
                assert page.freshness.as_of == page.freshness.projected_through == seen.at

    def live(self) -> dict[int, Rows]:
        found: dict[int, Rows] = {}
        rows = self.past.conn.execute(
            _STANDINGS.replace("truerank.standing", "truerank.visible_standing"), (self.board,)
        )
        for ranking, member, key in rows.fetchall():
            found.setdefault(ranking, []).append((member, bytes(key)))
        return found

    def folded(self, at: datetime, known: Mapping[int, Rows]) -> dict[int, Rows]:
        """What the history says of an instant, in every ranking that has ever had rows."""
        rankings = {ranking for seen in self.seen for ranking in seen.rankings} | self.live().keys()
        found = {}
        for ranking in rankings | known.keys():
            rows = self.past.conn.execute(_FOLDED, (ranking, at, self.board)).fetchall()
            if rows or ranking in known:
                found[ranking] = [(member, bytes(key)) for member, key in rows]
        return found


MEMBER = st.sampled_from(MEMBERS)
TIES = st.tuples(st.integers(0, 1), st.integers(0, 1))
SCORES = st.lists(
    st.tuples(MEMBER, st.integers(-1, 2), TIES, st.sampled_from([-40, -13, -12, -11, 0, 1])),
    min_size=1,
    max_size=4,
).map(lambda events: {"do": "score", "events": events})
CORRECTIONS = st.fixed_dictionaries(
    {
        "do": st.sampled_from(["void", "amend"]),
        "event": st.integers(0, 30),
        "value": st.integers(-1, 2),
        "ties": TIES,
    }
)
LOOKS = st.just({"do": "look"})
WORDS = st.fixed_dictionaries(
    {
        "do": st.sampled_from(["hide", "ban", "reset", "reset", "delete", "delete", "erase"]),
        "member": MEMBER,
    }
)
MERGES = st.fixed_dictionaries({"do": st.just("merge"), "member": MEMBER, "into": MEMBER})
# A look at something, and more to come: what changes afterwards is what matters.
ACTS: st.SearchStrategy[list[Mapping[str, Any]]] = st.tuples(
    st.lists(SCORES, min_size=1, max_size=3),
    LOOKS.map(lambda look: [look]),
    st.lists(
        st.one_of(SCORES, SCORES, CORRECTIONS, CORRECTIONS, LOOKS, WORDS, WORDS, MERGES),
        min_size=4,
        max_size=16,
    ),
).map(lambda parts: [act for part in parts for act in part])


@given(kind=st.sampled_from(KINDS), acts=ACTS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_instant_shows_what_was_read_then(
    past: Past, kind: tuple[str, Order, int], acts: list[Mapping[str, Any]]
) -> None:
    life = Life(past, kind)
    for act in acts:
        life.does(act)

    life.check()

"""A long random life of one board: after every step, every way to read it tells the same ranks."""

import os
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

import pytest

from tests.members.conftest import BY
from tests.reads.paths import Paths, board
from truerank import submit_scores
from truerank.errors import EventRefused, MergeRefused
from truerank.model import ScoreEvent

PLAYERS = [f"p{i:02}" for i in range(50)]
SEED = os.environ.get("TRUERANK_SEED")
STEPS = 40  # as many as fit beside the other tests
STEPS_SOAK = 1000
ACTS = {
    "scores": 40,
    "amends": 12,
    "voids": 8,
    "hides": 10,
    "shows": 9,
    "bans": 8,
    "unbans": 8,
    "deletes": 3,
    "merges": 2,
}


@dataclass
class Life:
    """What happens to the players of board `b`, one random act at a time."""

    paths: Paths
    random: random.Random
    events: list[str] = field(default_factory=list)
    numbers: "count[int]" = field(default_factory=count)

    def act(self) -> tuple[str, str]:
        """Do something, and let the projection know; what it was, and to whom."""
        (act,) = self.random.choices(list(ACTS), list(ACTS.values()))
        member = self.random.choice(PLAYERS)
        does: Callable[[str], None] = getattr(self, act)
        does(member)
        self.paths.world.project()
        return act, member

    def scores(self, member: str) -> None:
        """The reply to a write tells what a standing then is."""
        event = f"e{next(self.numbers)}"
        value = self.random.randint(-3, 5)
        (receipt,) = submit_scores(
            self.paths.world.pipeline.conn,
            "b",
            [ScoreEvent(event_id=event, member=member, value=value)],
        )
        self.events.append(event)
        (now,) = receipt.standings
        owner = self.paths.client.member_states(member)
        into = next((scope.merged_into for scope in owner if scope.merged_into), member)
        standing = self.paths.client.standing("b", into)
        assert standing is not None
        assert (now.score, now.version) == (standing.score, standing.version)
        # Not earlier: a worker that completes a merge computes standings anew, with new versions.
        self.paths.world.project()
        place = self.paths.place("b", into)
        assert place.score in {now.score, None}
        assert (place.score is None) == (place.state != "active")

    def amends(self, _: str) -> None:
        # One that went with its member, or is void, can't be amended.
        with suppress(EventRefused, IndexError):
            self.paths.client.amend_event(
                "b",
                self.random.choice(self.events),
                self.random.randint(-3, 5),
                correction_id=f"c{next(self.numbers)}",
                actor="op",
                reason="test",
            )

    def voids(self, _: str) -> None:
        some = self.random.sample(self.events, min(2, len(self.events)))
        self.paths.client.void_events("b", some, actor="op", reason="test")

    def hides(self, member: str) -> None:
        self.paths.client.hide_member(member, **BY)

    def shows(self, member: str) -> None:
        self.paths.client.show_member(member, **BY)

    def bans(self, member: str) -> None:
        self.paths.client.ban_member(member, **BY)

    def unbans(self, member: str) -> None:
        self.paths.client.unban_member(member, **BY)

    def deletes(self, member: str) -> None:
        self.paths.client.delete_member(member, **BY)

    def merges(self, member: str) -> None:
        into = self.random.choice(PLAYERS)
        with suppress(MergeRefused):  # two that are one already, or one merged elsewhere
            self.paths.client.merge_members(member, into, **BY)


def check(paths: Paths, watched: Sequence[str], *, whole: bool) -> None:
    """All that can be asked of the board, and of some of its members."""
    listed = {
        entry.member: (entry.rank, entry.member, entry.score)
        for entry in paths.top("b", limit=1000).entries
    }
    places = paths.places("b", PLAYERS)
    assert {p.member: (p.rank, p.member, p.score) for p in places if p.rank is not None} == listed
    for member in watched:
        assert paths.compared("b", member) == listed.get(member)
    if whole:
        assert {row[1]: row for row in paths.table("b", step=13)} == listed
        assert paths.world.differences() == []


def live(paths: Paths, seed: int, steps: int, *, watched: int, whole_every: int) -> None:
    print(f"TRUERANK_SEED={seed} repeats this")  # noqa: T201 - shown where it fails
    life = Life(paths, random.Random(seed))
    board(paths)
    paths.world.scores("b", *((player, life.random.randint(0, 9)) for player in PLAYERS))

    for step in range(steps):
        act, member = life.act()
        print(step, act, member)  # noqa: T201 - shown where it fails
        others = life.random.sample(PLAYERS, watched - 1)
        check(paths, [member, *others], whole=step % whole_every == whole_every - 1)


def test_every_way_to_read_tells_the_same_rank_after_every_random_step(paths: Paths) -> None:
    """RED-3."""
    live(paths, int(SEED or "1"), STEPS, watched=1, whole_every=10)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_thousand_random_steps_leave_every_way_to_read_in_agreement(paths: Paths) -> None:
    """RED-3, in full."""
    live(paths, int(SEED or random.randrange(2**32)), STEPS_SOAK, watched=8, whole_every=1)

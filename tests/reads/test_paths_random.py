"""A long random life of one board against a plain model: every way to read it tells the same."""

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import msgspec
import pytest

import truerank
from tests.members.conftest import BY
from tests.projection.pipeline import wait_until
from tests.reads.naive import ALL, Naive
from tests.reads.paths import Paths, board, rows
from tests.rebuild.stages import ask, carry_out
from truerank import submit_scores
from truerank.command import freezing
from truerank.errors import EventRefused, MergeRefused, NotSettled
from truerank.model import Order, ScoreEvent, Source, TieBreak

WHO: Any = {"actor": "op", "reason": "test"}
PLAYERS = [f"p{i:02}" for i in range(24)]
DAYS = [datetime(2026, 3, day, tzinfo=UTC) for day in range(1, 5)]
SEASONS = [ALL, *(f"{day:%Y-%m-%d}" for day in DAYS)]
SEED = os.environ.get("TRUERANK_SEED")
SHARE = 1 / 8  # of the deck: as much as fits beside the other tests
STEPS_MAX = 60
STEPS_SOAK = 600
ACTS = {
    "score": 40,
    "amend": 12,
    "void": 8,
    "hide": 8,
    "show": 7,
    "ban": 7,
    "unban": 7,
    "reset": 2,
    "delete": 3,
    "merge": 2,
    "erase": 2,
    "close": 1,
    "freeze": 3,
    "reveal": 2,
    "rebuild": 2,
    "flush": 1,
    "damage": 1,
    "worker": 1,
}
UNDOES = {"show": ["hide"], "unban": ["ban"], "reveal": ["freeze"]}
PROJECTION_ONLY = {"rebuild", "flush", "damage", "worker"}
UNSWEPT = "SELECT 1 FROM truerank.erasure WHERE swept_xid IS NULL LIMIT 1"


@dataclass
class Life:
    """What happens to the players of board `b`, one random act at a time, here and in the model."""

    paths: Paths
    operator: truerank.Truerank
    random: random.Random
    naive: Naive
    numbers: "count[int]" = field(default_factory=count)
    happened: Counter[str] = field(default_factory=Counter)

    def deck(self, share: float = 1) -> list[str]:
        """Each act as often as its weight, or a share of it, and at least once; shuffled."""
        cards = [act for act, weight in ACTS.items() for _ in range(max(1, int(weight * share)))]
        self.random.shuffle(cards)
        return cards

    def act(self, act: str) -> str:
        """Do it, count it unless it came to nothing, and let the projection know; to whom."""
        before = deepcopy(self.naive)
        done = self.does(act, self.random.choice(PLAYERS))
        self.happened[act] += act in PROJECTION_ONLY or self.naive != before
        return done

    def does(self, act: str, member: str) -> str:
        """One act; what it was done to."""
        acts: dict[str, Callable[[str], str]] = {
            name: getattr(self, name) for name in ACTS if hasattr(self, name)
        }
        done = acts[act](member) if act in acts else self._say(act, member)
        self.paths.world.project()
        return done

    def score(self, member: str) -> str:
        """The reply to a write tells what a standing then is."""
        event, value = f"e{next(self.numbers)}", self.random.randint(-3, 5)
        at = self.random.choice(DAYS) + timedelta(minutes=self.random.randrange(60 * 24))
        ties = self._ties()
        one = ScoreEvent(event_id=event, member=member, value=value, ties=ties, occurred_at=at)
        (receipt,) = submit_scores(self.paths.world.pipeline.conn, "b", [one])
        taken = self.naive.submit(event, member, value, at, *ties)
        assert (receipt.outcome, receipt.code) == (
            ("applied", None) if taken else ("refused", "season_final")
        )
        owner = self.naive.owner(member)
        for now in receipt.standings:
            assert now.score == str(self.naive.standings(now.season)[owner][0])
            assert now.season is not None
            standing = self.operator.standing("b", owner, now.season)
            assert standing is not None
            assert (now.score, now.version) == (standing.score, standing.version)
        return f"{event} {member} {value} {ties} {at:%d %H:%M}"

    def amend(self, _: str) -> str:
        event, value, ties = self._event(), self.random.randint(-3, 5), self._ties()
        with suppress(EventRefused):  # it went with its member, is void, or its season is final
            self.paths.client.amend_event(
                "b", event, value, ties=ties, correction_id=f"c{next(self.numbers)}", **WHO
            )
            self.naive.correct(event, value, *ties)
        return f"{event} {value} {ties}"

    def void(self, _: str) -> str:
        event = self._event()
        (receipt,) = self.paths.client.void_events("b", [event], **WHO)
        if receipt.outcome == "applied":
            self.naive.correct(event, None)
        return f"{event} {receipt.outcome} {receipt.code}"

    def merge(self, member: str) -> str:
        into = self.random.choice(PLAYERS)
        try:
            self.paths.client.merge_members(member, into, **BY)
            merged = True
        except MergeRefused:  # two that are one already, or one merged elsewhere
            merged = False
        assert self.naive.merge(member, into) is merged
        return f"{member} into {into} {merged}"

    def erase(self, member: str) -> str:
        self.paths.client.erase_member(member, **BY)
        self.naive.erase(member)
        conn = self.paths.world.pipeline.conn
        while conn.execute(UNSWEPT).fetchone():  # what is submitted until then is out of sight
            conn.execute("SELECT truerank.sweep_erasures(100)")
        return member

    def close(self, _: str) -> str:
        day = self.random.choice(SEASONS[1:])
        self.paths.client.close_season("b", day, now=True, **WHO)
        self.naive.close(day)
        return day

    def freeze(self, _: str) -> str:
        season = self.random.choice(SEASONS)
        self.paths.client.freeze_season("b", season, **WHO)
        self.naive.freeze(season)
        return season

    def reveal(self, _: str) -> str:
        season = self.random.choice([*self.naive.frozen, self.random.choice(SEASONS)])
        revealed = self.paths.client.reveal_season("b", season, **WHO)
        assert revealed is self.naive.reveal(season)
        pipeline = self.paths.world.pipeline
        pipeline.conn.execute(
            "UPDATE truerank.freeze SET revealed_at = revealed_at - interval '2 minutes'"
        )
        while pipeline.client.run(freezing.work()):  # the copy goes
            pass
        return season

    def rebuild(self, _: str) -> str:
        """A new copy beside the live one, which is shown once it is proved."""
        pipeline = self.paths.world.pipeline
        projector = pipeline.projector(heartbeat_ms=1, rebuild_share_percent=100, scan_rows_max=7)
        for group in range(2):
            rebuilt = carry_out(pipeline, projector, ask(pipeline, group, keep_ms=0))
            assert rebuilt.code is None, rebuilt
        self.paths.world.projector = projector
        wait_until(
            lambda: projector.step() or not self.paths.world.differences(), "the copies before gone"
        )
        return self.worker("")

    def flush(self, _: str) -> str:
        pipeline = self.paths.world.pipeline
        pipeline.redis.flushdb()
        self.paths.world.projector = pipeline.projector(scan_rows_max=3, call_rows_max=2)
        return "all"

    def damage(self, _: str) -> str:
        """Redis loses keys of each copy, and the next worker, who looks at all, fills others."""
        pipeline = self.paths.world.pipeline
        lost = []
        for group in range(2):
            generation = pipeline.generation(group)
            assert generation is not None
            copy = pipeline.keys(group).generation(generation)
            lost.append(pipeline.redis.delete(copy.counts, copy.members))
        assert any(lost)
        assert self.paths.world.differences()
        self.worker("")
        step = self.paths.world.projector.step
        wait_until(lambda: not step() and not self.paths.world.differences(), "all is filled anew")
        return "counts and members"

    def worker(self, _: str) -> str:
        self.paths.world.projector = self.paths.world.pipeline.projector()
        return "another"

    def _say(self, action: str, member: str) -> str:
        scope = self.random.choice([ALL, "b"])
        said = {"show": self.naive.hides, "unban": self.naive.bans}.get(action)
        if said and self.random.random() < 0.8:  # else there is mostly nothing to take back
            scope, member = self.random.choice(sorted(said))
        board = None if scope == ALL else scope
        getattr(self.paths.client, f"{action}_member")(member, board=board, **BY)
        self.naive.say(action, member, scope)
        return f"{member} {scope}"

    def _ties(self) -> tuple[int, ...]:
        return (self.random.randint(0, 1),) if self.naive.tied else ()

    def _event(self) -> str:
        return self.random.choice([e.id for e in self.naive.events if e.id])


def check(life: Life, season: str, watched: Sequence[str], *, whole: bool) -> None:
    """All that can be asked of a season, and of some of its members, against the model."""
    paths, naive = life.paths, life.naive
    expected = naive.rows(season)
    page = paths.top("b", season, limit=1000)
    assert rows(page.entries) == expected
    assert page.total == len(expected)
    assert (page.freshness.frozen_at is not None) == (season in naive.frozen)
    listed = {member: (rank, member, score) for rank, member, score in expected}
    places = paths.places("b", PLAYERS, season)
    assert {p.member: (p.rank, p.member, p.score) for p in places if p.rank is not None} == listed
    assert {p.member: p.state.value for p in places} == {p: naive.state(p) for p in PLAYERS}
    for member in watched:
        assert paths.compared("b", member, season) == listed.get(member)
        check_standing(life, season, member)
    for source in Source:  # whom a freeze doesn't concern
        seen = life.operator.top("b", season, limit=1000, source=source)
        assert rows(seen.entries) == naive.rows(season, shown=False)
    check_settled(life, season)
    if whole:
        assert paths.table("b", season, step=13) == expected
        assert paths.world.differences() == []


def check_standing(life: Life, season: str, member: str) -> None:
    """What PostgreSQL holds of one member, hidden or not: the public's view, and what is so."""
    naive = life.naive
    now = naive.standings(season)
    for client, standings in (
        (life.paths.client, naive.frozen.get(season, now)),
        (life.operator, now),
    ):
        standing = client.standing("b", member, season)
        if naive.state(member) != "merged":
            assert (None if standing is None else int(standing.score)) == (
                standings[member][0] if member in standings else None
            )


def check_settled(life: Life, season: str) -> None:
    """What was settled stays, whatever comes later; but for ids that are no longer shown."""
    naive, client = life.naive, life.paths.client
    if season not in naive.final or season in naive.frozen:
        with pytest.raises(NotSettled):
            client.top("b", season, consistency="settled")
        return
    page = client.top("b", season, limit=1000, consistency="settled")
    settled = naive.final[season]
    assert [(e.rank, e.score) for e in page.entries] == [(row[0], row[2]) for row in settled]
    for entry, (_, member, _) in zip(page.entries, settled, strict=True):
        assert entry.member == member or entry.member not in PLAYERS
        assert entry.member != member or naive.state(member) == "active"


@pytest.fixture
def operator(paths: Paths) -> Iterator[truerank.Truerank]:
    settings = msgspec.structs.replace(paths.world.pipeline.settings, operator=True)
    with truerank.Truerank(settings) as client:
        yield client


def begun(paths: Paths, operator: truerank.Truerank, rng: random.Random, naive: Naive) -> Life:
    """A life of a board after one score of each player."""
    life = Life(paths, operator, rng, naive)
    board(
        paths,
        seasons=["all", "day"],
        operator=naive.operator,
        order="desc" if naive.descending else "asc",
        tie_breaks=[TieBreak(name="t", order=Order.ASC)] if naive.tied else [],
    )
    for player in PLAYERS:
        life.score(player)
    paths.world.project()
    return life


def seeded(seed: int) -> random.Random:
    print(f"TRUERANK_SEED={seed} repeats this")  # noqa: T201 - shown where it fails
    return random.Random(seed)


def step(life: Life, number: int, act: str, *, watched: int, whole: bool) -> None:
    """One act, and everything that can be asked about one season after it."""
    print(number, act, end=" ")  # noqa: T201 - shown where it fails
    print(life.act(act))  # noqa: T201
    season = life.random.choice([ALL, *SEASONS, *life.naive.frozen])
    check(life, season, life.random.sample(PLAYERS, watched), whole=whole)


@pytest.mark.parametrize(
    ("seed", "naive"),
    [
        pytest.param(1, Naive("sum", descending=True), id="sum-desc"),
        pytest.param(2, Naive("best", descending=False, tied=True), id="best-asc-ties"),
        pytest.param(3, Naive("latest", descending=True, tied=True), id="latest-desc-ties"),
    ],
)
def test_every_way_to_read_tells_the_same_rank_after_every_random_step(
    paths: Paths, operator: truerank.Truerank, seed: int, naive: Naive
) -> None:
    """RED-3."""
    life = begun(paths, operator, seeded(int(SEED or seed)), deepcopy(naive))
    cards = life.deck(SHARE)
    numbers = count(1)
    while cards:
        number, act = next(numbers), cards.pop(0)
        step(life, number, act, watched=1, whole=number % 10 == 0)
        if not life.happened[act] and number < STEPS_MAX:
            cards += [*UNDOES.get(act, ()), act]  # it came to nothing: once more
    assert +life.happened == life.happened
    assert life.happened.keys() == ACTS.keys()


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_hundreds_of_random_steps_leave_every_way_to_read_in_agreement(
    paths: Paths, operator: truerank.Truerank
) -> None:
    """RED-3, in full."""
    rng = seeded(int(SEED or random.randrange(2**32)))
    descending, tied = rng.choices([True, False], k=2)
    naive = Naive(rng.choice(["sum", "best", "latest"]), descending, tied)
    life = begun(paths, operator, rng, naive)
    cards = [act for _ in range(1 + STEPS_SOAK // sum(ACTS.values())) for act in life.deck()]
    for number, act in enumerate(cards[:STEPS_SOAK], 1):
        step(life, number, act, watched=3, whole=number % 5 == 0)

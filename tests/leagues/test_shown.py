"""Cohorts in the projection: shown, followed, rebuilt, compared and frozen like any ranking."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import truerank
from tests.projection.pipeline import Pipeline, differences, pipeline, wait_until
from truerank.errors import InvalidInput, NotInCohort, SeasonFrozen
from truerank.local import running_worker
from truerank.model import LeagueRule, Page, Source
from truerank.repair.reconcile import reconcile
from truerank.repair.verified import Verdict
from truerank.repair.verify import verify
from truerank.settings import Settings

BY: Any = {"actor": "op", "reason": "test"}


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    return Settings(
        database_url=database_url,
        redis_url=redis_url,
        board_cache_ms=1,
        cache_max_ms=0,
        live_checks_percent=0,
    )


@pytest.fixture
def pipe(settings: Settings) -> Iterator[Pipeline]:
    """Board `b`, all-time, in a league with cohorts of two; nothing runs."""
    with pipeline(settings, groups=1) as made:
        made.client.create_board("b", seasons=["all"])
        made.client.set_league("b", LeagueRule(period="all", size=2), **BY)
        yield made


def divide(pipe: Pipeline) -> None:
    while pipe.client.divide_members() + pipe.client.divide_members():
        pass


def rows(page: Page) -> list[tuple[int, str, str]]:
    return [(row.rank, row.member, row.score) for row in page.entries]


def both(pipe: Pipeline, **asked: Any) -> list[tuple[int, str, str]]:
    """The same rows from both sources."""
    projected = pipe.client.top("b", source=Source.PROJECTION, **asked)
    stored = pipe.client.top("b", source=Source.DATABASE, **asked)
    assert rows(projected) == rows(stored)
    assert (projected.total, projected.cohort) == (stored.total, stored.cohort)
    return rows(projected)


def test_the_projection_shows_cohorts_and_follows_states_and_rebuilds(pipe: Pipeline) -> None:
    client = pipe.client
    projector = pipe.projector()
    pipe.submit("b", {"A": 5, "B": 9, "C": 1, "D": 4})
    pipe.settle(projector)
    with pytest.raises(NotInCohort):
        client.top("b", cohort_of="A")

    divide(pipe)
    pipe.submit("b", {"A": 5, "D": 1})
    pipe.settle(projector)
    assert both(pipe, cohort=1) == [(1, "A", "10"), (2, "B", "9")]
    assert both(pipe, cohort_of="C") == [(1, "D", "5"), (2, "C", "1")]

    client.hide_member("A", timeout_s=0, **BY)
    pipe.settle(projector)
    assert both(pipe, cohort=1) == [(1, "B", "9")]
    client.show_member("A", timeout_s=0, **BY)
    client.merge_members("B", "D", timeout_s=0, **BY)
    pipe.settle(projector)
    assert both(pipe, cohort=1) == [(1, "A", "10")]
    assert both(pipe, cohort=2) == [(1, "D", "14"), (2, "C", "1")]

    pipe.redis.flushdb()
    pipe.settle(projector)
    assert differences(pipe) == []
    assert both(pipe, cohort=2) == [(1, "D", "14"), (2, "C", "1")]


def test_every_question_may_be_asked_of_a_cohort(pipe: Pipeline) -> None:
    client = pipe.client
    pipe.submit("b", {"A": 5, "B": 9, "C": 1})
    divide(pipe)
    pipe.settle(pipe.projector())

    assert both(pipe, cohort_of="A", limit=1) == [(1, "B", "9")]
    page = client.top("b", cohort_of="A", limit=1)
    assert page.next is not None
    assert rows(client.top("b", cohort=1, cursor=page.next)) == [(2, "A", "5")]
    with pytest.raises(truerank.errors.TruerankError):  # a cursor of another ranking
        client.top("b", cohort=2, cursor=page.next)
    assert client.place("b", "A", cohort=1).places[0].rank == 2
    assert client.place("b", "A", cohort=2).places[0].rank is None
    assert client.places("b", ["A", "C"], cohort=2).places[1].rank == 1
    assert [row.member for row in client.around("b", "A", cohort=1).around] == ["B", "A"]
    assert [row.member for row in client.around("b", rank=2, cohort=1, limit=1).around] == ["A"]
    assert client.between("b", 5, 8, cohort=1).matching == 1
    assert client.counts("b", [6], cohort=1).counts[0].better == 1
    histogram = client.histogram("b", [6], cohort=1)
    assert [bucket.members for bucket in histogram.buckets] == [1, 1]
    for wrong in ({"cohort": 0}, {"cohort": 1, "cohort_of": "A"}, {"cohort_of": ""}):
        with pytest.raises(InvalidInput):
            client.top("b", **wrong)
    place = client.league_place("b", "A")
    assert (place.cohort, place.rank, place.population, place.tier_name) == (1, 2, 2, "league")
    assert client.league_place("b", "Z").cohort is None
    before = [(c.members, c.population) for c in client.cohorts("b")]
    client.hide_member("A", actor="ops", reason="asked to", timeout_s=0)
    hidden = [(c.members, c.population) for c in client.cohorts("b")]
    assert (before[0], hidden[0]) == ((2, 2), (2, 1)), "a hidden member is counted by nobody"
    assert hidden[1:] == before[1:]


def test_a_worker_divides_members_and_verification_looks_at_their_cohorts(
    pipe: Pipeline, settings: Settings
) -> None:
    with running_worker(settings):
        (*_, receipt) = pipe.submit("b", {"A": 5, "B": 9, "C": 1})
        wait_until(lambda: pipe.client.league_place("b", "C").cohort == 2, "a cohort for C")
        assert receipt.token is not None
        found = verify(settings, "b")
        assert found.verdict is Verdict.SAME
        assert {(path.name, path.compared) for path in found.paths} >= {("cohorts", 3)}

        row = pipe.conn.execute("SELECT ranking FROM truerank.cohort WHERE number = 1").fetchone()
        assert row is not None
        copy = pipe.keys().generation(pipe.generation() or "")
        shown: Any = pipe.redis.hget(copy.shown(row[0]), "A")
        key = ((~70) + (1 << 63)).to_bytes(8) + shown[16:]  # as if A had 70
        pipe.redis.zrem(copy.places(row[0]), shown[8:] + b"A")
        pipe.redis.zadd(copy.places(row[0]), {key + b"A": 0})
        pipe.redis.hset(copy.shown(row[0]), "A", shown[:8] + key)
        found = verify(settings, "b", cohort=1)
        assert {path.name for path in found.paths if not path.same} >= {"projection"}
        report = reconcile(settings, board="b", season="all", repair=True)
        (example,) = report.to_json()["examples"]
        assert (example["season"], example["member"]) == ("all, cohort 1", "A")
        assert reconcile(settings, board="b").to_json()["drift"] == 0

        pipe.conn.execute(
            "UPDATE truerank.standing SET score = 7 WHERE member = 'A' AND ranking IN"
            " (SELECT ranking FROM truerank.cohort)"
        )
        found = verify(settings, "b")
    assert {path.name for path in found.paths if not path.same} == {"cohorts"}


def test_a_frozen_season_does_not_show_through_its_cohorts(
    pipe: Pipeline, settings: Settings
) -> None:
    client = pipe.client
    pipe.submit("b", {"A": 5, "B": 9})
    divide(pipe)
    assert client.top("b", cohort=1, source=Source.DATABASE).total == 2
    client.freeze_season("b", **BY)

    asked: list[dict[str, Any]] = [{"cohort": 1}, {"cohort_of": "A"}, {"cohort": 9}]
    for how in asked:
        with pytest.raises(SeasonFrozen):
            client.top("b", **how)
    with pytest.raises(SeasonFrozen):
        client.league_place("b", "A")
    with pytest.raises(SeasonFrozen):
        client.cohorts("b")
    with truerank.Truerank(msgspec.structs.replace(settings, operator=True)) as operator:
        assert rows(operator.top("b", cohort=1, source=Source.DATABASE)) == [
            (1, "B", "9"), (2, "A", "5")]  # fmt: skip
        assert len(operator.cohorts("b")) == 1
    with truerank.Truerank(msgspec.structs.replace(settings, board_cache_ms=3_600_000)) as other:
        with pytest.raises(SeasonFrozen):
            other.cohorts("b")
        client.reveal_season("b", **BY)
        assert len(other.cohorts("b")) == 1, "however long a client remembers boards"
    assert client.top("b", cohort=1, source=Source.DATABASE).total == 2

"""One cohort alone in files, settlements, awards and the past; whole seasons that name cohorts."""

import csv
import io
import json
from typing import Any

import msgspec
import pytest

import truerank
from tests.leagues.conftest import Leagues
from truerank import aio
from truerank.errors import CursorGone, InvalidInput, NotInCohort, NotSettled, SeasonFrozen
from truerank.exporting import ROWS, Export
from truerank.model import AwardRule
from truerank.read.exported import ExportedRow, Wish
from truerank.settings import Settings

BY: Any = Leagues.BY
MAY = "2024-05"


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    """Of an operator, who remembers nothing, and so waits for nobody who may."""
    return Settings(
        database_url=database_url,
        redis_url=redis_url,
        operator=True,
        board_cache_ms=1,
        cache_max_ms=0,
    )


@pytest.fixture
def divided(leagues: Leagues) -> Leagues:
    """Cohorts of two: B, A; D, C; E. F is in none yet."""
    leagues.set(size=2, tiers=("low", "high"), promote=1)
    leagues.submit(("A", 5), ("B", 9), ("C", 1), ("D", 4), ("E", 7))
    leagues.divide()
    leagues.submit(("F", 6))
    return leagues


def rows(export: Any) -> list[tuple[int, str, str, int | None]]:
    return [(row.rank, row.member, row.score, row.cohort) for row in export]


def test_a_file_is_of_one_cohort_or_says_which_one_everybody_is_in(
    divided: Leagues, settings: Settings
) -> None:
    tr = divided.tr
    assert rows(tr.export("b", MAY)) == [
        (1, "B", "9", 1), (2, "E", "7", 3), (3, "F", "6", None), (4, "A", "5", 1),
        (5, "D", "4", 2), (6, "C", "1", 2),
    ]  # fmt: skip
    assert rows(tr.export("b", "all"))[0] == (1, "B", "9", None)
    with tr.export("b", MAY) as whole, tr.export("b", MAY, cohort=2) as alone:
        versions = {row.version for row in whole if row.cohort == 2}
        own = list(alone)
    assert rows(own) == [(1, "D", "4", 2), (2, "C", "1", 2)]
    assert {row.version for row in own} == versions  # so that files of both are taken in once
    table = list(
        csv.reader(io.StringIO(b"".join(tr.export("b", MAY, format="csv")).decode(), newline=""))
    )
    lines = [json.loads(line) for line in tr.export("b", MAY, format="ndjson", cohort_of="A")]
    assert [line[-1] for line in table] == ["cohort", "1", "3", "", "1", "2", "2"]
    assert [(line["member"], line["cohort"]) for line in lines] == [("B", 1), ("A", 1)]
    (header, *_) = tr.export("b", "all", format="csv")
    assert b"cohort" not in header

    tr.hide_member("B", timeout_s=0, **BY)
    with tr.export("b", MAY, cohort_of="A") as export:
        assert (export.head.season.label, export.head.season.cohort) == (MAY, 1)
        assert rows(export) == [(1, "A", "5", 1)]
    wrong: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"cohort": 9}, NotInCohort), ({"cohort_of": "B"}, NotInCohort),
        ({"cohort_of": "F"}, NotInCohort), ({"cohort": 0}, InvalidInput),
        ({"cohort": 1, "cohort_of": "A"}, InvalidInput),
        ({"cohort": 1, "settled": True}, NotSettled),
    ]  # fmt: skip
    for how, refusal in wrong:
        with pytest.raises(refusal):
            list(tr.export("b", MAY, **how))

    with truerank.Truerank(settings) as operator:
        operator.freeze_season("b", MAY, **BY)
        with tr.export("b", MAY) as export:
            assert not export.head.divided
            assert {cohort for *_, cohort in rows(export)} == {None}
        with pytest.raises(SeasonFrozen):
            list(tr.export("b", MAY, cohort=2))
        assert rows(operator.export("b", MAY, cohort_of="B")) == [(1, "A", "5", 1)]


async def test_a_file_of_a_cohort_is_of_one_snapshot_however_many_slices_it_has(
    divided: Leagues, settings: Settings
) -> None:
    wish = Wish(board="b", season=MAY, cohort=1)
    with Export[ExportedRow](settings, wish, ROWS, rows_per_slice=1) as export:
        told = iter(export)
        seen = [next(told)]
        divided.submit(("A", 100), ("B", -100))
        divided.tr.merge_members("A", "C", timeout_s=0, **BY)
        seen += told

    assert rows(seen) == [(1, "B", "9", 1), (2, "A", "5", 1)]
    async with aio.Truerank(settings) as client, client.export("b", MAY, cohort=2) as later:
        assert [(row.member, row.score) async for row in later] == [("C", "106"), ("D", "4")]


def test_a_settlement_and_its_awards_are_listed_of_one_cohort_alone(
    divided: Leagues, settings: Settings
) -> None:
    tr = divided.tr
    tr.make_award_rule("b", AwardRule(period="month", name="medal", ranks=(1, 4)), **BY)
    tr.hide_member("C", timeout_s=0, **BY)
    for refused in (tr.settlement_places, tr.settlement_changes, tr.settlement_excluded, tr.awards):
        with pytest.raises(NotSettled):
            refused("b", MAY, cohort=1)
    divided.close()

    (whole,), (own,) = tr.settlements("b", MAY), tr.settlements("b", MAY, cohort=1)
    assert (whole.population, whole.cohort) == (5, None)
    assert (own.population, own.total, own.cohort, own.excluded) == (2, "14", 1, 0)
    assert own.digest != whole.digest
    first = tr.settlement_places("b", MAY, cohort_of="A", limit=1)
    assert [place.member for place in first.places] == ["B"]
    assert (first.population, first.digest, first.cohort) == (2, own.digest, 1)
    then = tr.settlement_places("b", MAY, cohort=1, limit=1, cursor=first.next)
    assert ([place.member for place in then.places], then.next) == (["A"], None)
    others: list[dict[str, Any]] = [{"cohort": 2}, {}]
    for other in others:
        with pytest.raises(CursorGone):
            tr.settlement_places("b", MAY, cursor=first.next, **other)
    excluded = {
        cohort: [each.member for each in tr.settlement_excluded("b", MAY, cohort=cohort).excluded]
        for cohort in (None, 1, 2)
    }
    assert excluded == {None: ["C"], 1: [], 2: ["C"]}
    assert [a.member for a in tr.awards("b", MAY)] == ["B", "E", "F", "A"]
    assert [a.member for a in tr.awards("b", MAY, cohort=1)] == ["B", "A"]
    assert [a.member for a in tr.awards("b", MAY, cohort_of="E", unacknowledged=True)] == ["E", "F"]
    assert tr.awards("b", MAY, cohort_of="C") == []

    tr.show_member("C", timeout_s=0, **BY)
    tr.revise_season("b", MAY, void=["e5"], **BY)  # which was E's only one
    changes = tr.settlement_changes("b", MAY, cohort=3)
    assert [(c.member, c.rank_before, c.rank) for c in changes.changes] == [
        ("F", 2, 1), ("E", 1, None),
    ]  # fmt: skip
    assert (changes.since, changes.revision, changes.cohort) == (1, 2, 3)
    assert tr.settlement_changes("b", MAY, cohort=1).changes == ()
    assert len(tr.settlement_changes("b", MAY).changes) == 5
    assert [a.member for a in tr.awards("b", MAY, cohort=2)] == ["D"]
    assert [a.state for a in tr.awards("b", MAY, cohort=3)] == ["given", "withdrawn"]

    for member in ("A", "B"):
        tr.delete_member(member, timeout_s=0, **BY)
    # As the sweep of an erasure does.
    divided.conn.execute("SELECT truerank.forget_names(ARRAY['B'], ARRAY['gone'], true)")
    with truerank.Truerank(settings) as operator:
        settled = rows(operator.export("b", MAY, settled=True))
        alone = rows(operator.export("b", MAY, settled=True, cohort=1, revision=1))
    assert [cohort for *_, cohort in settled] == [1, 3, 1, 2, 2]
    assert [(rank, cohort) for rank, *_, cohort in alone] == [(1, 1), (2, 1)]
    assert "A" not in {member for _, member, *_ in settled}
    assert {a.member for a in tr.awards("b", MAY, cohort=1)} >= {"gone"}
    with pytest.raises(InvalidInput):
        tr.awards("b", cohort=1)
    with pytest.raises(NotInCohort):
        tr.awards("b", MAY, cohort=9)


def test_a_cohort_is_looked_back_at_as_its_members_of_today_stood(
    divided: Leagues, settings: Settings
) -> None:
    tr = divided.tr

    def now() -> Any:
        ((instant,),) = divided.conn.execute("SELECT clock_timestamp()").fetchall()
        return instant

    before = now()
    divided.divide()  # F is with E from now on
    divided.submit(("A", 5), ("E", 1), ("D", -4))
    tr.merge_members("D", "F", timeout_s=0, **BY)

    def at(instant: Any, cohort: int, **how: Any) -> list[tuple[int, str, str]]:
        page = tr.top("b", MAY, cohort=cohort, as_of=instant, **how)
        assert (page.cohort, page.total, page.season) == (cohort, len(page.entries), MAY)
        assert (page.freshness.source, page.freshness.as_of) == ("database", instant)
        return [(row.rank, row.member, row.score) for row in page.entries]

    assert at(before, 1) == [(1, "B", "9"), (2, "A", "5")]
    assert at(before, 2) == [(1, "C", "1")]
    assert at(before, 3) == [(1, "F", "10"), (2, "E", "7")]  # D's are F's
    changed = tr.top("b", MAY, cohort_of="A", since=before)
    assert [(r.member, r.score, r.rank, r.rank_before) for r in changed.entries] == [
        ("A", "10", 1, 2), ("B", "9", 2, 1),
    ]  # fmt: skip
    places = tr.places("b", ["A", "E"], MAY, cohort=3, as_of=before).places
    assert [(place.member, place.rank) for place in places] == [("A", None), ("E", 2)]
    tr.create_board("c", seasons=["all"])
    tr.set_league("c", truerank.LeagueRule(period="all", size=2), **BY)
    tr.submit_score("c", event_id="c", member="A", value=1)
    divided.divide()
    assert tr.top("c", cohort=1, as_of=now()).total == 1

    tr.hide_member("B", timeout_s=0, **BY)
    assert at(before, 1) == [(1, "A", "5")]
    divided.conn.execute("SELECT truerank.seal_season('b', %s, true, 'a', 'b')", (MAY,))
    assert tr.top("b", MAY, cohort=1, as_of=now()).state == "sealed"
    divided.close()
    page = tr.top("b", MAY, cohort=1, as_of=before)
    assert (page.state, page.revision) == ("open", None)
    page = tr.top("b", MAY, cohort=1, as_of=now())
    assert (page.state, page.revision) == ("final", 1)
    with pytest.raises(NotInCohort):
        tr.top("b", MAY, cohort_of="Z", as_of=before)
    with truerank.Truerank(msgspec.structs.replace(settings, operator=False)) as public:
        public.freeze_season("b", MAY, **BY)
        with pytest.raises(SeasonFrozen):
            public.top("b", MAY, cohort=1, as_of=before)

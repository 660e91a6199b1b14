"""Ids that are merged after a season was settled: its cohorts, and who moves, follow."""

from typing import Any

import truerank
from tests.leagues.conftest import Leagues
from truerank.model import AwardRule
from truerank.repair.settlement import check_places, check_settlement

BY: Any = Leagues.BY
MAY = "2024-05"
TIERS: Any = {"tiers": ("bronze", "silver", "gold"), "promote": 1, "demote": 1}


def settled(leagues: Leagues, cohort: int) -> list[tuple[int, str]]:
    page = leagues.tr.top("b", MAY, cohort=cohort, consistency="settled", limit=100)
    return [(row.rank, row.member) for row in page.entries]


def sound(leagues: Leagues) -> bool:
    season = leagues.tr.season("b", MAY)
    found = [check_places(leagues.conn, season), check_settlement(leagues.conn, season)]
    return leagues.differences() == [] and all(each is not None and each.same for each in found)


def merge(leagues: Leagues, merged: str, into: str) -> None:
    leagues.tr.merge_members(merged, into, timeout_s=0, **BY)


def test_a_winner_who_is_renamed_stays_in_its_cohort_and_promoted(leagues: Leagues) -> None:
    tr = leagues.tr
    tr.make_award_rule("b", AwardRule(period="month", name="gold", ranks=(1, 1)), **BY)
    leagues.set(size=3, **TIERS)
    leagues.submit(("k1", 9), ("k2", 8), ("k3", 7), ("k4", 6), ("k5", 5))
    leagues.close()
    assert leagues.tiers() == {"k1": 1, "k4": 1}

    merge(leagues, "k1", "k1new")
    assert leagues.cohorts() == {1: ["k1new", "k2", "k3"], 2: ["k4", "k5"]}
    assert tr.league_place("b", "k1", MAY, source="database").member == "k1"
    assert sound(leagues)
    assert [a.member for a in tr.awards("b", MAY, cohort=1)] == ["k1"]
    tr.revise_season("b", MAY, void=["e5"], **BY)

    assert settled(leagues, 1) == [(1, "k1new"), (2, "k2"), (3, "k3")]
    assert leagues.tiers() == {"k1new": 1, "k4": 1}
    changed = tr.settlement_changes("b", MAY, cohort=1)
    assert (changed.since, changed.revision, changed.changes) == (1, 2, ())
    assert [a.member for a in tr.awards("b", MAY, cohort=1)] == ["k1new"]
    assert sound(leagues)
    assert [s.changed for s in tr.settlements("b", MAY, cohort=1)] == [0, 0]

    merge(leagues, "k1new", "other")  # and once more
    tr.revise_season("b", MAY, void=["e3"], **BY)
    assert settled(leagues, 1) == [(1, "other"), (2, "k2")]
    assert sound(leagues)
    tr.erase_member("other", timeout_s=0, **BY)
    assert sound(leagues)
    assert leagues.differences() == []


def test_an_account_that_had_no_place_in_the_season_takes_the_winners(leagues: Leagues) -> None:
    leagues.set(size=3, **TIERS)
    leagues.submit(("k1", 9), ("k2", 8), ("k3", 7))
    leagues.close()
    leagues.submit(("z", 3), month=6)
    leagues.divide()

    merge(leagues, "k1", "z")
    leagues.tr.revise_season("b", MAY, void=["e3"], **BY)

    assert settled(leagues, 1) == [(1, "z"), (2, "k2")]
    assert leagues.cohorts() == {1: ["z", "k2"]}
    assert sound(leagues)


def test_of_two_who_both_had_a_place_the_one_that_remains_stays_in_its_cohort(
    leagues: Leagues,
) -> None:
    leagues.set(size=2, **TIERS)
    leagues.submit(("k1", 9), ("k2", 8), ("k3", 7), ("k4", 6))
    leagues.close()
    assert leagues.tiers() == {"k1": 1, "k3": 1}

    merge(leagues, "k1", "k4")
    assert sound(leagues)
    leagues.tr.revise_season("b", MAY, **BY)

    assert settled(leagues, 1) == [(1, "k2")]
    assert settled(leagues, 2) == [(1, "k4"), (2, "k3")]
    assert {m: t for m, t in leagues.tiers().items() if t} == {"k2": 1, "k4": 1}
    assert sound(leagues)


def test_two_of_one_cohort_leave_one_place_empty_in_it(leagues: Leagues) -> None:
    leagues.set(size=3)
    leagues.submit(("k1", 9), ("k2", 8), ("k3", 7))
    leagues.divide()

    merge(leagues, "k1", "k2")
    assert leagues.differences() == []
    leagues.tr.hide_member("k2", timeout_s=0, **BY)
    leagues.close()
    merge(leagues, "k3", "k2")

    assert leagues.differences() == []
    (cohort,) = leagues.tr.cohorts("b", MAY)
    assert cohort.members == 3


def test_revisions_are_compared_in_either_direction_after_a_rename(leagues: Leagues) -> None:
    tr: truerank.Truerank = leagues.tr
    leagues.set(size=3)
    leagues.submit(("k1", 9), ("k2", 8), ("k3", 7))
    leagues.close()
    merge(leagues, "k1", "k1new")
    tr.revise_season("b", MAY, void=["e2"], **BY)

    found = tr.settlement_changes("b", MAY)

    assert [(c.member, c.rank_before, c.rank) for c in found.changes] == [
        ("k3", 3, 2), ("k2", 2, None)]  # fmt: skip
    assert tr.settlements("b", MAY)[0].changed == 2


def test_an_id_that_is_renamed_into_one_that_is_being_erased_keeps_its_tier(
    leagues: Leagues,
) -> None:
    tr = leagues.tr
    leagues.set(size=3, **TIERS)
    leagues.submit(("k1", 9), ("k2", 8), ("k3", 7))
    leagues.close()
    assert leagues.tiers() == {"k1": 1}
    leagues.submit(("ada", 5), month=6)
    tr.erase_member("ada", timeout_s=0, **BY)

    merge(leagues, "k1", "ada")
    for _ in range(3):
        leagues.conn.execute("SELECT truerank.sweep_erasures(10)")

    assert leagues.tiers() == {"ada": 1}
    leagues.submit(("ada", 5), month=6)
    leagues.divide()
    assert tr.league_place("b", "ada", "2024-06", source="database").tier_name == "silver"

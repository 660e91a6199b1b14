"""Members of a season are divided into cohorts, and each cohort has a ranking of its own."""

import pytest

from tests.leagues.conftest import Leagues
from truerank.errors import NotInCohort


def test_members_are_divided_in_the_order_of_their_first_events(leagues: Leagues) -> None:
    leagues.set(size=3)
    leagues.submit(("A", 5), ("B", 9), ("C", 1), ("D", 4))
    leagues.submit(("A", 1), ("E", 7))

    leagues.divide()

    assert leagues.cohorts() == {1: ["B", "A", "C"], 2: ["E", "D"]}
    assert leagues.mirrored() == 5
    assert leagues.differences() == []
    page = leagues.tr.top("b", "2024-05", cohort_of="D", member="D")
    assert (page.cohort, page.season, page.total) == (2, "2024-05", 2)
    assert [(row.rank, row.member, row.score) for row in page.entries] == [
        (1, "E", "7"), (2, "D", "4")]  # fmt: skip
    with pytest.raises(NotInCohort):
        leagues.tr.top("b", "2024-05", cohort=3)
    with pytest.raises(NotInCohort):
        leagues.tr.top("b", "2024-05", cohort_of="Z")


def test_whoever_comes_later_gets_what_room_is_left(leagues: Leagues) -> None:
    leagues.set(size=2)
    leagues.submit(("A", 5), ("B", 9), ("C", 1))
    leagues.divide()

    leagues.submit(("D", 4), ("E", 7))
    with pytest.raises(NotInCohort):
        leagues.tr.place("b", "D", "2024-05", cohort_of="D")
    leagues.divide()

    assert leagues.cohorts() == {1: ["B", "A"], 2: ["D", "C"], 3: ["E"]}
    assert [c.members for c in leagues.tr.cohorts("b", "2024-05")] == [2, 2, 1]


def test_a_league_that_is_set_late_divides_those_who_were_there(leagues: Leagues) -> None:
    leagues.submit(("B", 9), ("A", 5), ("C", 1), month=4)
    leagues.submit(("D", 4), ("C", 5), ("A", 6), ("B", 7), ("D", 4), month=5)

    leagues.set(size=2)
    leagues.divide()

    assert leagues.cohorts("2024-04") == {}
    assert leagues.cohorts() == {1: ["D", "C"], 2: ["B", "A"]}
    assert leagues.differences() == []


def test_whoever_scores_before_the_league_has_looked_keeps_the_turn_of_the_first_event(
    leagues: Leagues,
) -> None:
    leagues.submit(("D", 4), ("C", 5), ("A", 6))
    leagues.set(size=2)
    leagues.submit(("D", 1))

    leagues.divide()

    assert leagues.cohorts() == {1: ["C", "D"], 2: ["A"]}

"""A season's settlement settles its cohorts, and moves members between tiers."""

from typing import Any

import pytest

import truerank
from tests.leagues.conftest import Connection, Leagues
from truerank.errors import EarlierSeasonOpen, NotSettled
from truerank.model import Zone
from truerank.repair.settlement import check_places

BY: Any = Leagues.BY
TIERS: Any = {"tiers": ("bronze", "silver", "gold"), "promote": 1, "demote": 1}


def settled(leagues: Leagues, cohort: int, label: str = "2024-05") -> list[tuple[int, str, str]]:
    page = leagues.tr.top("b", label, cohort=cohort, consistency="settled", limit=100)
    assert page.total == len(page.entries)
    return [(row.rank, row.member, row.score) for row in page.entries]


def test_a_close_settles_every_cohort_and_moves_the_first_and_the_last(leagues: Leagues) -> None:
    leagues.set(size=3, **TIERS)
    leagues.submit(("A", 5), ("B", 9), ("C", 5), ("D", 4), ("E", 7))
    leagues.divide()
    with pytest.raises(NotSettled):
        settled(leagues, 1)

    leagues.close()
    leagues.close()

    assert settled(leagues, 1) == [(1, "B", "9"), (2, "A", "5"), (2, "C", "5")]
    assert settled(leagues, 2) == [(1, "E", "7"), (2, "D", "4")]
    assert leagues.tiers() == {"B": 1, "E": 1}  # nobody goes below the lowest tier
    assert leagues.differences() == []

    leagues.submit(("A", 1), ("B", 2), ("C", 3), ("D", 4), ("E", 5), month=6)
    leagues.divide()
    assert leagues.cohorts("2024-06") == {1: ["D", "C", "A"], 2: ["E", "B"]}
    assert [c.tier_name for c in leagues.tr.cohorts("b", "2024-06")] == ["bronze", "silver"]
    leagues.close("2024-06")
    assert leagues.tiers() == {"D": 1, "E": 2}

    leagues.submit(("B", 1), ("E", 1), ("Z", 1), month=7)  # D and its tier wait
    leagues.divide()
    assert leagues.cohorts("2024-07") == {1: ["B", "Z"], 2: ["E"]}
    leagues.close("2024-07")
    assert leagues.tiers() == {"B": 1, "D": 1, "E": 2}  # alone in the highest tier


@pytest.mark.parametrize(("order", "best"), [("desc", 9), ("asc", 1)])
def test_of_equals_at_the_border_whoever_was_first_moves(
    tr: truerank.Truerank, conn: Connection, order: str, best: int
) -> None:
    leagues = Leagues(tr, conn).made(order=order)
    leagues.set(size=4, tiers=("low", "high"), promote=2, demote=1)
    leagues.submit(("D", 5), ("B", best), ("A", 5), ("C", 5))
    leagues.divide()

    places = {
        member: leagues.tr.league_place("b", member, "2024-05") for member in ("B", "D", "A", "C")
    }
    assert {m: (p.rank, p.zone) for m, p in places.items()} == {
        "B": (1, Zone.PROMOTION),
        "D": (2, Zone.PROMOTION),
        "A": (3, Zone.STAY),
        "C": (4, Zone.STAY),  # in the lowest tier
    }
    leagues.close()

    assert settled(leagues, 1) == [(1, "B", str(best)), *((2, m, "5") for m in "DAC")]
    assert leagues.tiers() == {"B": 1, "D": 1}
    place = leagues.tr.league_place("b", "D", "2024-05")
    assert (place.zone, place.tier_name, place.cohort) == (Zone.PROMOTION, "low", 1)


def test_whoever_is_hidden_or_banned_at_the_close_has_no_place_and_stays(
    leagues: Leagues,
) -> None:
    leagues.set(size=4, tiers=("low", "high"), promote=1)
    leagues.submit(("A", 5), ("B", 9), ("C", 8), ("D", 4))
    leagues.divide()
    leagues.tr.hide_member("B", timeout_s=0, **BY)
    leagues.tr.ban_member("C", timeout_s=0, **BY)

    leagues.close()

    assert settled(leagues, 1) == [(1, "A", "5"), (2, "D", "4")]
    assert leagues.tiers() == {"A": 1}
    excluded = leagues.conn.execute(
        "SELECT x.member, x.why FROM truerank.settlement_excluded AS x"
        " JOIN truerank.cohort AS c ON c.ranking = x.ranking ORDER BY 1"
    ).fetchall()
    assert excluded == [("B", "hidden"), ("C", "banned")]


def test_the_next_season_waits_for_the_one_that_decides_its_tiers(leagues: Leagues) -> None:
    leagues.set(size=2, **TIERS)
    leagues.submit(("A", 5), ("B", 9))
    leagues.submit(("A", 5), ("B", 9), month=6)
    leagues.divide()

    (league,) = leagues.tr.leagues("b")
    assert (league.undivided, league.waits_for, league.scanned) == (2, "2024-05", True)
    assert leagues.cohorts("2024-06") == {}
    leagues.close()
    leagues.divide()

    assert leagues.cohorts("2024-06") == {1: ["A"], 2: ["B"]}
    assert leagues.tr.leagues("b")[0].undivided == 0


def test_no_season_is_settled_before_the_one_that_decides_its_tiers(leagues: Leagues) -> None:
    leagues.tr.update_board("b", {"hold": "1 day"}, **BY)
    leagues.set(size=3, **TIERS)
    leagues.submit(("A", 5), ("B", 9), ("C", 1))
    leagues.close()  # it is held back
    leagues.tr.reopen_season("b", "2024-05", **BY)
    leagues.submit(("A", 5), ("B", 9), ("C", 1), month=6)

    with pytest.raises(EarlierSeasonOpen) as now:
        leagues.close("2024-06", now=True, reason="at once")
    assert "'2024-05'" in now.value.message
    assert leagues.tr.season("b", "2024-06").state == "open"
    assert leagues.close("2024-06").state == "sealed"  # looked at meanwhile
    with pytest.raises(EarlierSeasonOpen):
        leagues.close("2024-06", now=True, reason="at once")
    leagues.conn.execute("UPDATE truerank.ranking SET hold_until = now() WHERE state = 'sealed'")
    with pytest.raises(EarlierSeasonOpen):
        leagues.close("2024-06")
    (due,) = leagues.tr.close_due(actor="test")
    assert (due.season, "'2024-05'" in (due.waits or "")) == ("2024-06", True)
    assert leagues.cohorts("2024-06") == {}

    leagues.close("2024-05", now=True, reason="now it may be")
    (due,) = leagues.tr.close_due(actor="test")
    assert (due.season, due.waits) == ("2024-06", None)
    assert leagues.tiers() == {"A": 1, "B": 2}
    assert leagues.differences("2024-06") == leagues.differences() == []


def test_seasons_close_by_themselves_in_the_order_in_which_tiers_are_decided(
    leagues: Leagues,
) -> None:
    leagues.set(size=3, **TIERS)
    leagues.submit(("A", 5), ("B", 9), ("C", 1))
    leagues.submit(("A", 5), ("B", 9), ("C", 1), month=8)  # in June and July nothing happened
    leagues.tr.update_board("b", {"auto_close": True}, **BY)
    leagues.conn.execute("UPDATE truerank.board SET auto_close_from = '2024-08-31'")

    closes = leagues.tr.close_due(actor="test", limit=1)

    assert [(close.season, "'2024-05'" in (close.waits or "")) for close in closes] == [
        ("2024-08", True)]  # fmt: skip
    assert leagues.tr.season("b", "2024-08").state == "open"
    leagues.close("2024-07")  # without members it waits for nobody
    leagues.close("2024-05")
    leagues.conn.execute("DELETE FROM truerank.close_attempt")
    (close,) = leagues.tr.close_due(actor="test", limit=1)
    assert (close.season, close.waits) == ("2024-08", None)
    assert leagues.tiers() == {"A": 1, "B": 2}


def test_a_season_that_can_decide_nothing_any_more_is_waited_for_by_none(leagues: Leagues) -> None:
    leagues.submit(("A", 1), month=4)  # before the league
    leagues.set(size=3, **TIERS)
    leagues.submit(("A", 5), ("B", 9), month=6)
    leagues.divide()
    leagues.submit(("A", 5), ("B", 4))  # comes late, when June's tiers are there
    leagues.submit(("C", 1), month=6)

    leagues.close("2024-06")

    assert settled(leagues, 1, "2024-06") == [(1, "B", "9"), (2, "A", "5"), (3, "C", "1")]
    leagues.close()
    assert leagues.tiers() == {"B": 1}


@pytest.mark.parametrize(("promote", "demote"), [(1, 2), (2, 2), (0, 3)])
def test_in_a_small_cohort_promotion_goes_first_and_rank_one_never_goes_down(
    leagues: Leagues, promote: int, demote: int
) -> None:
    rule: Any = {"tiers": ("bronze", "silver"), "promote": promote, "demote": demote}
    leagues.set(size=4, **rule)
    leagues.conn.execute(
        "INSERT INTO truerank.league_move (board_id, period, season, tier_from, tier_to, member)"
        " SELECT l.board_id, l.period, l.from_ranking - 1, 0, 1, m"
        " FROM truerank.league AS l, unnest(ARRAY['A', 'B', 'C']) AS m"
    )
    leagues.submit(("A", 9))
    leagues.divide()
    assert leagues.tr.league_place("b", "A", "2024-05").zone is Zone.STAY
    leagues.submit(("B", 8), ("C", 7))
    leagues.divide()
    zones = {m: leagues.tr.league_place("b", m, "2024-05").zone for m in "ABC"}

    leagues.close()

    first = max(promote, 1)
    stay = dict.fromkeys("ABC"[:first], 1)
    assert leagues.tiers() == stay
    assert zones == {
        m: Zone.STAY if m in stay else Zone.DEMOTION for m in "ABC"}  # fmt: skip
    assert zones == {m: leagues.tr.league_place("b", m, "2024-05").zone for m in "ABC"}


def test_a_revision_moves_members_anew_until_the_next_season_is_divided(
    leagues: Leagues,
) -> None:
    leagues.set(size=3, **TIERS)
    leagues.submit(("A", 5), ("B", 9), ("C", 1))
    leagues.close()
    assert leagues.tiers() == {"B": 1}

    leagues.tr.revise_season("b", "2024-05", void=["e2"], **BY)
    assert settled(leagues, 1) == [(1, "A", "5"), (2, "C", "1")]
    assert leagues.tiers() == {"A": 1}

    leagues.submit(("A", 5), month=6)
    leagues.divide()
    leagues.tr.revise_season("b", "2024-05", void=["e1"], **BY)
    assert settled(leagues, 1) == [(1, "C", "1")]
    assert leagues.tiers() == {"A": 1}  # A plays in the higher tier already
    revisions = leagues.conn.execute(
        "SELECT s.revision, s.population, s.changed FROM truerank.settlement AS s"
        " JOIN truerank.cohort AS c ON c.ranking = s.ranking WHERE c.season = %s ORDER BY 1",
        (leagues.season(),),
    ).fetchall()
    assert revisions == [(1, 3, 0), (2, 2, 3), (3, 1, 2)]
    assert leagues.differences() == []


def test_nobody_is_put_into_a_cohort_of_a_season_that_is_settled(leagues: Leagues) -> None:
    leagues.set(size=3)
    leagues.submit(("A", 5))
    leagues.close()
    leagues.submit(("B", 5), month=6)
    leagues.tr.merge_members("A", "B", timeout_s=0, **BY)  # who had no score in May

    outcome = leagues.conn.execute("SELECT truerank.divide_season('b', '2024-05', 500)").fetchone()

    assert outcome == ("divided",)
    assert leagues.cohorts() == {1: ["B"]}  # it has the place that is there
    assert settled(leagues, 1)[0][2] == "5"


def test_members_with_the_same_key_share_cohorts(leagues: Leagues) -> None:
    leagues.set(size=2, by_key=True)
    for member, key in (("A", "red"), ("B", "blue"), ("C", "red"), ("E", "red")):
        assert leagues.tr.assign_league_key("b", member, key)
    assert not leagues.tr.assign_league_key("b", "A", "red")
    leagues.submit(("A", 5), ("B", 9), ("C", 1), ("D", 4), ("E", 7), ("F", 2))
    leagues.divide()

    assert [(c.number, c.key) for c in leagues.tr.cohorts("b", "2024-05")] == [
        (1, "red"), (2, "red"), (3, "blue"), (4, "")]  # fmt: skip
    assert leagues.cohorts() == {1: ["A", "C"], 2: ["E"], 3: ["B"], 4: ["D", "F"]}
    leagues.tr.assign_league_key("b", "A", None)
    leagues.submit(("A", 5), month=6)
    leagues.divide()
    assert [c.key for c in leagues.tr.cohorts("b", "2024-06")] == [""]


def test_a_dropped_league_divides_nobody_and_its_cohorts_go_on(leagues: Leagues) -> None:
    leagues.set(size=2, **TIERS)
    leagues.submit(("A", 5), ("B", 9))
    leagues.divide()
    leagues.submit(("C", 1))

    leagues.tr.drop_league("b", "month", **BY)
    leagues.submit(("A", 5), ("D", 3))
    leagues.divide()
    assert leagues.cohorts() == {1: ["A", "B"]}

    leagues.set(size=2, **TIERS)
    leagues.divide()
    assert leagues.cohorts() == {1: ["A", "B"], 2: ["D", "C"]}
    leagues.tr.drop_league("b", "month", **BY)
    leagues.close()
    assert settled(leagues, 1) == [(1, "A", "10"), (2, "B", "9")]
    assert leagues.tiers() == {}


def test_seasons_without_a_next_one_are_divided_and_nobody_moves(leagues: Leagues) -> None:
    assert leagues.set(period="all", size=2)
    assert not leagues.set(period="all", size=2)
    leagues.submit(("A", 5), ("B", 9), ("C", 1))
    leagues.divide()

    assert leagues.cohorts("all") == {1: ["B", "A"], 2: ["C"]}
    for bad in (
        {"period": "all", "size": 2, "promote": 1},
        {"size": 1},
        {"size": 3, "promote": 2, "demote": 2, "tiers": ("a", "b")},
        {"size": 3, "tiers": ("a", "a")},
        {"size": 3, "tiers": ()},
        {"period": "week", "size": 2},
    ):
        with pytest.raises(truerank.errors.InvalidInput):
            leagues.set(**bad)
    with pytest.raises(truerank.errors.SeasonUnknown):
        leagues.set(size=3, from_season="2024-W05")
    for malformed in ("a\0b", "\ud800"):
        with pytest.raises(truerank.errors.InvalidInput):
            leagues.set(size=3, from_season=malformed)
        with pytest.raises(truerank.errors.InvalidInput):
            leagues.tr.leagues(malformed)
        with pytest.raises(truerank.errors.InvalidInput):
            leagues.tr.league_tiers("b", "month", after=malformed)


def test_stored_places_of_a_cohort_are_compared_too(leagues: Leagues) -> None:
    leagues.set()
    leagues.submit(("A", 5), ("B", 9), ("C", 5), ("D", 4))
    leagues.divide()
    leagues.close()
    season = leagues.tr.season("b", "2024-05")
    sound = check_places(leagues.conn, season)

    leagues.conn.execute(
        "UPDATE truerank.settlement_row AS r SET competition = 1 FROM truerank.cohort AS c"
        " WHERE r.ranking = c.ranking AND c.number = 1 AND r.member = 'C'"
    )

    found = check_places(leagues.conn, season)
    assert sound is not None
    assert found is not None
    assert sound.same
    subjects = [each.subject for each in found.differences]
    assert subjects[0] == "revision 1 of cohort 1: digest"
    assert any(each.endswith(": competition rank") for each in subjects)


def test_a_renamed_member_keeps_its_tier_and_its_key(leagues: Leagues) -> None:
    leagues.set(size=3, by_key=True, **TIERS)
    assert leagues.tr.assign_league_key("b", "B", "red")
    leagues.submit(("A", 5), ("B", 9), ("C", 1))
    leagues.close()
    assert leagues.tiers() == {"A": 1, "B": 1}

    leagues.tr.merge_members("B", "Z", timeout_s=0, **BY)
    leagues.submit(("B", 3), ("A", 1), month=6)
    leagues.divide()

    assert leagues.tiers() == {"A": 1, "Z": 1}
    assert [(c.tier, c.key) for c in leagues.tr.cohorts("b", "2024-06")] == [(1, "red"), (1, "")]
    assert leagues.cohorts("2024-06") == {1: ["Z"], 2: ["A"]}
    assert leagues.differences("2024-06") == []
    leagues.tr.merge_members("A", "Z", timeout_s=0, **BY)  # it has moves of its own
    assert leagues.tiers()["Z"] == 1

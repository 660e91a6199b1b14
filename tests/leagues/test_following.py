"""Whatever changes a standing of a season changes it in the member's cohort as well."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

import truerank
from tests.leagues.conftest import Connection, Leagues
from tests.projection.pipeline import wait_until
from truerank.errors import NotInCohort
from truerank.model import LeagueRule
from truerank.repair.recompute import recompute
from truerank.settings import Settings

BY: Any = Leagues.BY


def test_corrections_merges_and_deletions_reach_the_cohort(leagues: Leagues) -> None:
    tr = leagues.tr
    leagues.set(size=3)
    first, *_ = leagues.submit(("A", 5), ("B", 9), ("C", 1), ("D", 4), ("E", 7))
    leagues.divide()

    leagues.submit(("A", 6), ("D", 1))
    tr.void_events("b", [first], **BY)
    tr.amend_event("b", "e3", 30, correction_id="x1", **BY)
    assert leagues.cohorts() == {1: ["C", "B", "A"], 2: ["E", "D"]}
    assert leagues.mirrored() == 5

    tr.void_events("b", ["e2"], **BY)
    assert leagues.cohorts() == {1: ["C", "A"], 2: ["E", "D"]}
    leagues.submit(("B", 2))  # back again: in the same cohort, though there is room in the other
    assert leagues.cohorts() == {1: ["C", "A", "B"], 2: ["E", "D"]}

    tr.merge_members("E", "A", timeout_s=0, **BY)
    assert leagues.cohorts() == {1: ["C", "A", "B"], 2: ["D"]}
    assert tr.place("b", "A", "2024-05", cohort_of="E").places[0].score == "13"
    tr.delete_member("C", timeout_s=0, **BY)
    assert leagues.cohorts() == {1: ["A", "B"], 2: ["D"]}
    assert leagues.mirrored() == 3
    assert leagues.differences() == []


def test_late_events_count_in_the_cohort_by_their_own_time(leagues: Leagues) -> None:
    for operator in ("latest", "best"):
        leagues.tr.create_board(operator, operator=operator, seasons=("month",))
        leagues.tr.set_league(
            operator, truerank.LeagueRule(period="month", size=2), from_season="2024-05", **BY
        )
        for n, (day, value) in enumerate([(9, 5), (3, 7), (12, 6), (11, 6), (1, 8)]):
            at = datetime(2024, 5, day, tzinfo=UTC)
            for member in ("A", "B", "C"):
                truerank.submit_score(
                    leagues.conn,
                    operator,
                    truerank.ScoreEvent(
                        event_id=f"{member}{n}", member=member, value=value, occurred_at=at
                    ),
                )
            if n == 0:
                leagues.divide()

        season = leagues.tr.season(operator, "2024-05").ranking
        rows = leagues.conn.execute(
            "SELECT count(DISTINCT (score, event_position, sort_key)), count(*)"
            " FROM truerank.standing WHERE ranking >> 36 = %s >> 36 GROUP BY member",
            (season,),
        ).fetchall()
        assert rows == [(1, 2)] * 3


def test_hidden_and_banned_members_take_no_place_in_their_cohort(leagues: Leagues) -> None:
    leagues.set(size=3)
    leagues.submit(("A", 5), ("B", 9), ("C", 1))
    leagues.divide()

    leagues.tr.hide_member("B", timeout_s=0, **BY)
    leagues.tr.ban_member("A", timeout_s=0, **BY)

    page = leagues.tr.top("b", "2024-05", cohort=1, member="B")
    assert [row.member for row in page.entries] == ["C"]
    assert page.places[0].rank is None
    leagues.tr.show_member("B", timeout_s=0, **BY)
    assert leagues.cohorts() == {1: ["B", "C"]}


def test_who_is_out_of_sight_names_no_cohort_but_to_operators(
    leagues: Leagues, database_url: str, redis_url: str
) -> None:
    leagues.set(size=4)
    leagues.submit(("A", 5), ("B", 9), ("C", 1), ("D", 2))
    leagues.divide()
    leagues.tr.hide_member("A", timeout_s=0, **BY)
    leagues.tr.ban_member("B", timeout_s=0, **BY)
    leagues.tr.delete_member("C", timeout_s=0, **BY)
    settings = Settings(database_url=database_url, redis_url=redis_url)

    for member in "ABC":
        with pytest.raises(NotInCohort):
            leagues.tr.top("b", "2024-05", cohort_of=member)
        assert leagues.tr.league_place("b", member, "2024-05").cohort is None
    assert leagues.tr.league_place("b", "D", "2024-05").cohort == 1
    with truerank.Truerank(msgspec.structs.replace(settings, operator=True)) as operator:
        assert operator.top("b", "2024-05", cohort_of="A").total == 1
        assert operator.league_place("b", "B", "2024-05").cohort == 1
    leagues.submit(("C", 3))  # a new life
    assert leagues.tr.league_place("b", "C", "2024-05").cohort == 1


def test_a_merge_in_a_custom_season_reaches_one_cohort_alone(leagues: Leagues) -> None:
    tr = leagues.tr
    first, last = datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 6, 1, tzinfo=UTC)
    tr.create_season("b", "cup", first, last)
    tr.set_league("b", LeagueRule(period="custom", size=2), **BY)
    leagues.submit(("A", 5), ("B", 9), ("C", 1), ("D", 4))
    leagues.divide()

    tr.merge_members("C", "A", timeout_s=0, **BY)

    assert leagues.cohorts("cup") == {1: ["B", "A"], 2: ["D"]}
    assert leagues.mirrored("cup") == 3
    tr.delete_member("B", timeout_s=0, **BY)
    assert leagues.differences("cup") == []
    assert tr.run(recompute("b")).differing == []


def test_a_damaged_cohort_is_found_and_mended_from_the_events(leagues: Leagues) -> None:
    leagues.set(size=3)
    leagues.submit(("A", 5), ("B", 9), ("C", 1), ("D", 4))
    leagues.divide()
    ranking = leagues.conn.execute(
        "SELECT ranking FROM truerank.cohort WHERE number = 1"
    ).fetchone()
    assert ranking is not None
    leagues.conn.execute(
        "UPDATE truerank.standing SET score = 70 WHERE ranking = %s AND member = 'A'", ranking
    )
    leagues.conn.execute(
        "DELETE FROM truerank.standing WHERE ranking = %s AND member = 'B'", ranking
    )
    leagues.conn.execute(
        "INSERT INTO truerank.standing (ranking, member, score, version, event_at,"
        " event_position, moved, sort_key) SELECT %s, 'D', score, version, event_at,"
        " event_position, moved, sort_key FROM truerank.standing"
        " WHERE ranking = %s AND member = 'D'",
        (*ranking, leagues.season()),
    )

    assert {row[1] for row in leagues.differences()} == {"A", "B", "D"}
    found = leagues.tr.run(recompute("b", repair=True))

    told = {(each.season, each.member, each.kind) for each in found.differing}
    assert told == {
        ("2024-05, cohort 1", "A", "different"),
        ("2024-05, cohort 1", "B", "missing"),
        ("2024-05, cohort 1", "D", "extra"),
    }
    assert found.left == 0
    assert leagues.differences() == []
    assert leagues.mirrored() == 4


def test_an_erased_member_leaves_no_id_in_a_league(leagues: Leagues) -> None:
    leagues.set(size=2, tiers=("low", "high"), promote=1, by_key=True)
    leagues.tr.assign_league_key("b", "ada", "red")
    leagues.submit(("ada", 5), ("B", 3))
    leagues.close()
    leagues.submit(("ada", 5), month=6)
    leagues.divide()
    assert leagues.tiers()["ada"] == 1

    leagues.tr.erase_member("ada", timeout_s=0, **BY)

    for table in ("cohort_member", "league_move", "league_key"):
        assert (
            leagues.conn.execute(f"SELECT FROM truerank.{table} WHERE member = 'ada'").fetchall()
            == []
        ), table
    # Who was the last that the league had looked at.
    assert leagues.conn.execute("SELECT scanned_member FROM truerank.league").fetchall() == [("B",)]
    assert leagues.cohorts("2024-06") == {1: []}
    leagues.submit(("ada", 8), month=6)  # a new life, in the lowest tier, and with nobody's key
    leagues.divide()
    for _ in range(3):
        leagues.conn.execute("SELECT truerank.sweep_erasures(10)")
    assert leagues.cohorts("2024-06") == {1: [], 2: ["ada"]}
    assert leagues.tr.league_place("b", "ada", "2024-06").tier_name == "low"
    assert leagues.differences("2024-05") == []


@pytest.mark.parametrize("late", [True, False])
def test_an_erased_member_that_scores_at_that_moment_is_in_one_cohort_at_most(
    leagues: Leagues, connect: Callable[..., Connection], *, late: bool
) -> None:
    leagues.set(size=2)
    first, *_ = leagues.submit(("ada", 5), ("B", 3))
    leagues.divide()
    leagues.tr.void_events("b", [first], **BY)  # no standing that could be waited for
    writer, eraser = connect(autocommit=False), connect(autocommit=False)
    if not late:
        eraser.execute("SELECT pg_current_xact_id()")  # so the event is that of a new life
    event = truerank.ScoreEvent(
        event_id="x", member="ada", value=4, occurred_at=datetime(2024, 5, 4, tzinfo=UTC)
    )
    truerank.submit_score(writer, "b", event)

    eraser.execute("SELECT truerank.erase_member('ada', 'test', 'a test')")
    eraser.commit()
    writer.commit()
    for _ in range(3):
        leagues.conn.execute("SELECT truerank.sweep_erasures(10)")
    leagues.divide()

    assert leagues.differences() == []
    assert leagues.mirrored() == (1 if late else 2)
    named = leagues.conn.execute(
        "SELECT count(*) FROM truerank.cohort_member WHERE member = 'ada'"
    ).fetchone()
    assert named == (0 if late else 1,)
    leagues.submit(("ada", 1))
    leagues.divide()
    assert leagues.mirrored() == 2


def test_a_deleted_board_leaves_nothing_of_its_league(leagues: Leagues) -> None:
    leagues.set(size=2, tiers=("low", "high"), promote=1)
    leagues.tr.assign_league_key("b", "A", "red")
    leagues.submit(("A", 5), ("B", 9), ("C", 1))
    leagues.close()
    leagues.submit(("A", 5), month=6)

    leagues.tr.delete_board("b", **BY)
    while leagues.tr.purge_boards():
        pass

    for table in ("league", "cohort", "cohort_member", "league_move", "league_key", "standing"):
        assert leagues.conn.execute(f"SELECT FROM truerank.{table}").fetchall() == [], table
    leagues.divide()


def test_whoever_is_renamed_or_merged_keeps_the_place_in_its_cohort(leagues: Leagues) -> None:
    leagues.set(size=2, by_key=True)
    leagues.submit(("A", 5), ("B", 3), ("C", 9))
    leagues.submit(("D", 1), month=6)
    leagues.divide()
    assert leagues.cohorts() == {1: ["A", "B"], 2: ["C"]}
    leagues.submit(("E", 4))  # and isn't divided yet

    leagues.tr.merge_members("A", "Z", timeout_s=0, **BY)  # a new id
    leagues.tr.merge_members("B", "D", timeout_s=0, **BY)  # one that has a place in June alone
    leagues.tr.merge_members("E", "F", timeout_s=0, **BY)

    assert leagues.cohorts() == {1: ["Z", "D"], 2: ["C"]}
    leagues.submit(("A", 1), ("B", 1))  # under the old ids
    leagues.divide()
    assert leagues.cohorts() == {1: ["Z", "D"], 2: ["C", "F"]}
    assert leagues.cohorts("2024-06") == {1: ["D"]}
    assert leagues.differences() == leagues.differences("2024-06") == []
    assert leagues.mirrored() == 4
    leagues.tr.merge_members("C", "D", timeout_s=0, **BY)  # both have one: the survivor's stays
    assert leagues.cohorts() == {1: ["D", "Z"], 2: ["F"]}
    assert leagues.differences() == []
    leagues.close()
    assert leagues.differences() == []


def test_a_place_that_is_carried_while_the_other_scores_for_the_first_time_is_one(
    leagues: Leagues, connect: Callable[..., Connection]
) -> None:
    leagues.set(size=2)
    leagues.submit(("A", 5), ("B", 3))
    leagues.submit(("Z", 1), month=6)
    leagues.divide()
    writer, merger = connect(autocommit=False), connect(autocommit=False)
    event = truerank.ScoreEvent(
        event_id="z", member="Z", value=4, occurred_at=datetime(2024, 5, 4, tzinfo=UTC)
    )
    truerank.submit_score(writer, "b", event)

    with ThreadPoolExecutor(1) as threads:
        merged = threads.submit(merger.execute, "SELECT truerank.merge_members('A','Z','t','t')")
        wait_until(
            lambda: (
                leagues.conn.execute(
                    "SELECT cardinality(pg_blocking_pids(%s)) > 0", (merger.info.backend_pid,)
                ).fetchone()
                == (True,)
            ),
            "the merge to wait",
        )
        writer.commit()
        merged.result(30)
        merger.commit()

    leagues.divide()
    assert leagues.cohorts() == {1: ["Z", "B"]}
    assert leagues.differences() == []
    assert leagues.mirrored() == 2

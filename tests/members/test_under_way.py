"""What is said of a member while it is renamed, merged or erased is neither lost nor left."""

from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tests.members.conftest import BY, Club
from tests.members.test_freeze_schedules import copying
from tests.members.test_merges import MERGE, merge, sweep
from truerank.model import LeagueRule, MemberState, Profile

WHO: Any = {"actor": "op", "reason": "test"}
SAY = "SELECT truerank.set_member_state('A', '{}', 'op', 'test', {})"
ASSIGN = "SELECT truerank.assign_league_key('b', 'A', 'red')"
NAME = "SELECT truerank.set_profiles('{A}', '{Ada}', ARRAY[NULL::jsonb])"
STATES = {
    "hidden": SAY.format("hide", "NULL"),
    "hidden on a board": SAY.format("hide", "'b'"),
    "banned": SAY.format("ban", "NULL"),
    "banned on a board": SAY.format("ban", "'b'"),
}
UNSAID = {
    "shown": SAY.format("show", "'b'"),
    "not banned": SAY.format("unban", "NULL"),
    "reset": SAY.format("reset", "'b'"),
    "deleted": SAY.format("delete", "NULL"),
}
Begin = Callable[..., Future[Any]]


def under_way(
    club: Club, begin: Begin, said: str, into: str = "Z", *, said_first: bool = True
) -> None:
    """Something is said of A while it becomes another; either waits for the other to commit."""
    if "'b'" in said:  # of what is said everywhere there is a row to hold, or none as yet
        club.does("hide", "A")
        club.does("show", "A")
    saying, merging = club.pipeline.connection(), club.pipeline.connection()
    saying.execute("SET lock_timeout = '20s'")
    if said_first:
        saying.execute(said)
        merged = begin(merge, merging, "A", into)
        club.until_blocked(merging)
        saying.commit()
    else:
        merging.execute(MERGE, ("A", into))
        waiting = begin(saying.execute, said)
        club.until_blocked(saying)
        merged = begin(merging.commit)
        waiting.result(30)
        saying.commit()
    assert merged.result(30) in {"changed", None}


def names(club: Club) -> dict[str, str]:
    rows = club.pipeline.conn.execute("SELECT * FROM truerank.profiles('{A,B,Z}')").fetchall()
    return {member: name for member, name, _ in rows}


def keys(club: Club) -> list[tuple[str, str]]:
    return club.pipeline.conn.execute(
        "SELECT member, key FROM truerank.league_key ORDER BY member"
    ).fetchall()


@pytest.mark.parametrize("said_first", [True, False])
@pytest.mark.parametrize("said", STATES)
def test_whoever_is_taken_out_of_sight_while_it_is_renamed_is_so_under_the_new_id(
    club: Club, begin: Begin, said: str, *, said_first: bool
) -> None:
    club.scores("b", ("A", 2), ("B", 1))

    under_way(club, begin, STATES[said], said_first=said_first)

    assert club.in_sql() == {"B": "1"}
    assert club.settled() == {"B": (1, "1")}
    (scope,) = club.client.member_states("Z")
    state, _, board = said.partition(" on a ")
    assert (scope.state.value, scope.board) == (state, "b" if board else None)


@pytest.mark.parametrize("said", UNSAID)
def test_what_ends_while_a_member_is_renamed_has_ended_for_the_new_id(
    club: Club, begin: Begin, said: str
) -> None:
    club.scores("b", ("A", 2), ("B", 1))
    if said == "shown":
        club.does("hide", "A", board="b")
    elif said == "not banned":
        club.does("ban", "A")

    under_way(club, begin, UNSAID[said])

    kept = {"Z": (1, "2")} if said in {"shown", "not banned"} else {}
    assert club.settled() == {**kept, "B": (len(kept) + 1, "1")}
    assert club.client.member_states("Z") == []
    club.scores("b", ("A", 4))
    assert club.settled()["Z"][1] == ("6" if kept else "4")


@pytest.mark.parametrize("said_first", [True, False])
def test_a_name_that_is_given_while_a_member_is_renamed_is_the_new_id_s(
    club: Club, begin: Begin, *, said_first: bool
) -> None:
    club.scores("b", ("A", 2))

    under_way(club, begin, NAME, said_first=said_first)

    assert names(club)["Z"] == "Ada"


@pytest.mark.parametrize("said_first", [True, False])
def test_a_key_that_is_given_while_a_member_is_renamed_is_the_new_id_s(
    club: Club, begin: Begin, *, said_first: bool
) -> None:
    club.scores("b", ("A", 2))

    under_way(club, begin, ASSIGN, said_first=said_first)

    assert keys(club) == [("Z", "red")]
    assert club.client.assign_league_key("b", "A", "blue")
    assert keys(club) == [("Z", "blue")]
    assert club.client.assign_league_key("b", "A", None)
    assert keys(club) == []


def test_a_member_s_name_is_that_which_is_given_under_its_own_id(club: Club) -> None:
    club.scores("b", ("A", 2), ("B", 1))
    club.does("merge", "A", "B")

    club.client.set_profiles([Profile(member="B", name="Bo"), Profile(member="A", name="Ada")])
    assert names(club)["B"] == "Bo"

    club.client.set_profiles([Profile(member="A", name="Ada")])
    assert names(club)["B"] == "Ada"


@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
@pytest.mark.parametrize("said", [STATES["banned on a board"], ASSIGN])
def test_whoever_speaks_from_a_snapshot_of_before_the_merge_is_told_to_retry(
    club: Club, isolation: str, said: str
) -> None:
    club.scores("b", ("A", 2), ("B", 1))
    club.does("hide", "A")
    with club.pipeline.connection() as saying:
        saying.execute(f"SET TRANSACTION ISOLATION LEVEL {isolation}")
        saying.execute("SELECT 1 FROM truerank.board").fetchall()
        club.does("merge", "A", "Z")
        with pytest.raises(psycopg.errors.SerializationFailure):
            saying.execute(said)
        saying.rollback()


@pytest.mark.parametrize("board", [None, "b"])
def test_a_ban_is_not_escaped_by_a_merge_and_of_two_the_longer_holds(
    club: Club, board: str | None
) -> None:
    club.client.create_board("other", seasons=["all"])
    for key in ("b", "other"):
        club.scores(key, ("A", 2), ("B", 1), ("C", 5))
    early, late = (datetime.now(UTC) + timedelta(days=days) for days in (1, 2))
    club.does("ban", "A", board=board, until=late)
    club.does("hide", "A", board="other")
    club.does("ban", "B", until=early)

    club.does("merge", "A", "B")

    assert club.settled("b") == {"C": (1, "5")}
    held = {scope.board: (scope.state, scope.until) for scope in club.client.member_states("B")}
    expected = {None: (MemberState.BANNED, early), board: (MemberState.BANNED, late)}
    assert held == expected, "a wish to be hidden is each member's own"
    club.does("merge", "B", "C")
    assert club.settled("b") == {}
    club.does("unban", "B")
    club.does("unban", "B", board=board)
    assert club.settled("b") == club.settled("other") == {"C": (1, "8")}


def test_the_survivor_keeps_its_own_name_and_key_and_gets_the_others_where_it_has_none(
    club: Club,
) -> None:
    club.scores("b", ("A", 2), ("B", 1), ("C", 5))
    club.client.set_profiles([Profile(member="A", name="Ada"), Profile(member="C", name="Cy")])
    club.client.assign_league_key("b", "A", "red")
    club.client.assign_league_key("b", "C", "blue")

    club.does("merge", "A", "B")
    assert (names(club)["B"], keys(club)) == ("Ada", [("B", "red"), ("C", "blue")])
    club.does("merge", "B", "C")

    assert club.pipeline.conn.execute(
        "SELECT display_name FROM truerank.profiles('{C}')"
    ).fetchall() == [("Cy",)]
    assert ("C", "blue") in keys(club)


def test_whoever_is_merged_while_a_freeze_is_copied_is_shown_by_the_other(club: Club) -> None:
    club.scores("b", ("A", 9), ("B", 7), ("C", 5), ("D", 3))

    with copying(club) as freeze:
        club.does("merge", "A", "Z")
        club.does("merge", "C", "D")

    assert freeze.result().frozen_at is not None
    club.scores("b", ("Z", 100), ("D", 100))
    assert club.in_sql() == {"Z": "9", "B": "7", "D": "8"}
    assert club.settled() == {"Z": (1, "9"), "D": (2, "8"), "B": (3, "7")}


def test_a_late_score_of_a_renamed_member_that_a_freeze_copied_is_shown_of_the_new_id(
    club: Club,
) -> None:
    club.scores("b", ("B", 7))
    scoring = club.pipeline.connection()
    club.pipeline.submit("b", {"A": 9}, scoring)
    assert merge(club.pipeline.connection(), "A", "Z") == "changed"
    scoring.commit()
    club.client.freeze_season("b", **WHO)
    assert club.in_sql() == {"B": "7"}

    while sweep(club):
        pass

    assert club.in_sql() == {"Z": "9", "B": "7"}
    assert club.settled() == {"Z": (1, "9"), "B": (2, "7")}


SETTLE = "SELECT outcome FROM truerank.settle_season('m', '2024-05', 'op', 'test')"
REVISE = """
    SELECT outcome FROM truerank.revise_season(
        'm', '2024-05', NULL, NULL, NULL, NULL, 'op', 'test')"""


@pytest.fixture
def league(club: Club) -> Club:
    """May 2024 of a board `m`, in one cohort, sealed; A is to go up."""
    client, conn = club.client, club.pipeline.conn
    client.create_board("m", seasons=["month"])
    rule = LeagueRule(period="month", size=3, tiers=("low", "high"), promote=1)
    client.set_league("m", rule, from_season="2024-05", **WHO)
    for member, value in (("A", 5), ("B", 3)):
        client.submit_score(
            "m", event_id=f"{member} 1", member=member, value=value,
            occurred_at=datetime(2024, 5, 3, tzinfo=UTC),
        )  # fmt: skip
    while client.divide_members():
        pass
    conn.execute("SELECT truerank.seal_season('m', '2024-05', true, 'op', 'test')")
    while conn.execute("SELECT truerank.pass_barrier('m', '2024-05')").fetchone() != ("passed",):
        pass
    return club


def tiers(club: Club) -> dict[str, int]:
    return {each.member: each.tier for each in club.client.league_tiers("m", "month")}


@pytest.mark.parametrize("closing", [SETTLE, REVISE])
def test_a_tier_that_is_decided_while_a_member_is_renamed_is_the_new_id_s(
    league: Club, begin: Begin, closing: str
) -> None:
    settling, merging = league.pipeline.connection(), league.pipeline.connection()
    if closing == REVISE:
        league.client.close_season("m", "2024-05", **WHO)
        league.does("ban", "B")
    settling.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    assert settling.execute(closing).fetchall() in ([("settled",)], [("revised",)])

    merged = begin(merge, merging, "A", "Z")
    league.until_blocked(merging)
    settling.commit()

    assert merged.result(30) == "changed"
    assert tiers(league) == {"Z": 1}


@pytest.mark.parametrize("closing", [SETTLE, REVISE])
def test_no_season_is_settled_from_a_snapshot_of_before_a_merge_of_its_members(
    league: Club, closing: str
) -> None:
    if closing == REVISE:
        league.client.close_season("m", "2024-05", **WHO)
        league.does("ban", "B")
    with league.pipeline.connection() as settling:
        settling.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        settling.execute("SELECT 1 FROM truerank.board").fetchall()
        league.does("merge", "A", "Z")

        with pytest.raises(psycopg.errors.SerializationFailure):
            settling.execute(closing)
        settling.rollback()

    league.client.close_season("m", "2024-05", **WHO)
    assert tiers(league) == {"Z": 1}


def test_a_merge_waits_for_one_score_without_holding_another_that_comes_after_it(
    club: Club, begin: Begin
) -> None:
    client = club.client
    client.create_board("m", seasons=["all", "month"])
    rule = LeagueRule(period="month", size=3, tiers=("low", "high"), promote=1)
    client.set_league("m", rule, **WHO)
    for member in "AB":
        client.submit_score("m", event_id=member, member=member, value=5)
    while client.divide_members():
        pass
    client.freeze_season("m", at=datetime.now(UTC) + timedelta(days=1), **WHO)
    scores = "SELECT FROM truerank.standing WHERE member = 'B' ORDER BY ranking LIMIT %s FOR UPDATE"
    scoring, merging = club.pipeline.connection(), club.pipeline.connection()
    scoring.execute(scores, (1,))

    merged = begin(merge, merging, "A", "B")
    club.until_blocked(merging)

    scoring.execute(scores + " NOWAIT", (2,))
    # Whoever takes a member away locks these before any score, too.
    with pytest.raises(psycopg.errors.LockNotAvailable):
        scoring.execute("SELECT FROM truerank.freeze FOR UPDATE NOWAIT")
    scoring.rollback()
    assert merged.result(30) == "changed"


@pytest.mark.parametrize("meanwhile", ["show", "delete", "hide", "ban"])
def test_whatever_is_said_meanwhile_an_erased_person_is_out_of_sight_and_the_new_life_keeps_it(
    club: Club, meanwhile: str
) -> None:
    club.scores("b", ("A", 2), ("B", 1))
    scoring = club.pipeline.connection()
    club.pipeline.submit("b", {"C": 1}, scoring)
    club.client.erase_member("A", **BY)
    club.scores("b", ("A", 4))

    change = club.does(meanwhile, "A")

    assert change.state is (MemberState.BANNED if meanwhile == "ban" else MemberState.HIDDEN)
    assert club.in_sql() == {"B": "1"}
    assert club.settled() == {"B": (1, "1")}
    if meanwhile == "delete":
        club.scores("b", ("A", 4))
        assert club.in_sql() == {"B": "1"}
    scoring.rollback()
    while club.pipeline.conn.execute(
        "SELECT 1 FROM truerank.erasure WHERE swept_xid IS NULL"
    ).fetchone():
        club.pipeline.conn.execute("SELECT truerank.sweep_erasures(10)")
    seen = {} if meanwhile in {"hide", "ban"} else {"A": (1, "4")}
    assert club.settled() == {**seen, "B": (len(seen) + 1, "1")}
    club.does({"hide": "show", "ban": "unban"}.get(meanwhile, "show"), "A")
    assert club.settled() == {"A": (1, "4"), "B": (2, "1")}
    assert club.client.member_states("A") == []

"""Two members become one, for good, whatever is under way meanwhile."""

from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tests.members.conftest import Club
from tests.projection.pipeline import wait_until
from truerank.errors import MergeRefused
from truerank.model import MemberState, Outcome, Profile, ScoreEvent, Source

MERGE = "SELECT outcome FROM truerank.merge_members(%s, %s, 'op', 'why')"
WHY: Any = {"actor": "op", "reason": "why"}


def sweep(club: Club) -> list[str]:
    """What a worker does now and then; returns the merges that aren't complete."""
    club.pipeline.conn.execute("SELECT truerank.sweep_members(100)")
    rows = club.pipeline.conn.execute("SELECT member FROM truerank.merging").fetchall()
    return [member for (member,) in rows]


def merge(conn: psycopg.Connection[Any], member: str, into: str) -> str:
    """Merge, and commit."""
    ((outcome,),) = conn.execute(MERGE, (member, into)).fetchall()
    conn.commit()
    return str(outcome)


@pytest.mark.parametrize("operator", ["sum", "best", "latest"])
@pytest.mark.parametrize("order", ["desc", "asc"])
def test_a_merged_standing_is_that_of_the_events_of_both(
    club: Club, operator: str, order: str
) -> None:
    club.client.create_board("x", operator=operator, order=order, seasons=["all", "day"])
    club.client.create_board("y", operator=operator, order=order, seasons=["all", "day"])
    scores = [("A", 3), ("B", 5), ("A", 4), ("B", 2), ("C", 4), ("B", 4)]
    club.scores("x", *scores)
    club.scores("y", *(("A" if member == "B" else member, score) for member, score in scores))

    club.does("merge", "B", "A")

    assert club.settled("x") == club.settled("y")
    assert [e.member for e in club.top("x").entries] == [e.member for e in club.top("y").entries]


def test_boards_on_which_only_the_one_had_scored_count_for_the_other(club: Club) -> None:
    club.client.create_board("other", seasons=["all", "month"])
    club.scores("other", ("B", 7))
    club.scores("b", ("A", 1))

    club.does("merge", "B", "A")

    assert club.settled("other") == {"A": (1, "7")}
    assert club.shown("b") == {"A": (1, "1")}


def test_what_is_submitted_for_the_old_id_counts_for_the_new_one(club: Club) -> None:
    club.scores("b", ("A", 1), ("B", 2))
    club.does("merge", "B", "A")
    event = ScoreEvent(event_id="new", member="B", value=4)

    first, again = club.submit("b", [event]) + club.submit("b", [event])
    other = club.submit("b", [ScoreEvent(event_id="new", member="A", value=4)])[0]

    assert [r.outcome for r in (first, again, other)] == [
        Outcome.APPLIED,
        Outcome.DUPLICATE,
        Outcome.CONFLICT,
    ]
    assert {now.score for now in first.standings} == {"7"}
    club.scores("b", ("B", 1), ("A", 1), ("B", 1))
    assert club.settled() == {"A": (1, "10")}


def test_merging_on_brings_everything_along(club: Club) -> None:
    club.scores("b", ("A", 1), ("B", 2), ("C", 4), ("D", 8))
    club.does("merge", "A", "B")
    club.does("merge", "C", "D")
    club.does("merge", "B", "D")

    club.scores("b", ("A", 16), ("B", 32), ("C", 64))

    assert club.settled() == {"D": (1, "127")}
    assert not club.does("merge", "A", "D").changed
    assert club.client.member_states("A")[0].merged_into == "D"


@pytest.mark.parametrize(
    ("member", "into", "code"),
    [
        ("A", "A", "merge_cycle"),
        ("A", "B", "merge_cycle"),
        ("A", "C", "merge_cycle"),
        ("C", "D", "merged_elsewhere"),
    ],
)
def test_what_would_make_a_circle_or_a_choice_is_refused(
    club: Club, member: str, into: str, code: str
) -> None:
    club.scores("b", ("A", 1), ("B", 2), ("C", 4))
    club.does("merge", "C", "B")
    club.does("merge", "B", "A")

    with pytest.raises(MergeRefused) as refused:
        club.does("merge", member, into)

    assert refused.value.reason == code
    assert club.settled() == {"A": (1, "7")}


def test_a_total_out_of_range_refuses_the_merge_and_changes_nothing(club: Club) -> None:
    club.client.create_board("small", seasons=["all"], total_max=10)
    club.scores("small", ("A", 6), ("B", 6))
    club.scores("b", ("A", 1), ("B", 1))
    before = club.pipeline.rankings()

    with pytest.raises(MergeRefused) as refused:
        club.does("merge", "B", "A")

    assert refused.value.reason == "total_out_of_range"
    assert club.pipeline.rankings() == before
    assert club.client.member_states("B") == []
    assert club.settled("small") == {"A": (1, "6"), "B": (1, "6")}


def test_the_member_that_remains_keeps_its_states_and_gets_those_that_are_said_of_the_other(
    club: Club,
) -> None:
    club.scores("b", ("A", 1), ("B", 2), ("C", 3))
    club.does("hide", "B")
    club.does("hide", "A", board="b")
    club.does("merge", "B", "A")
    assert club.settled() == {"C": (1, "3")}
    assert [scope.board for scope in club.client.member_states("A")] == ["b"]

    assert club.does("show", "B", board="b").member == "A"
    assert club.settled() == {"A": (1, "3"), "C": (1, "3")}
    assert club.does("ban", "B").state is MemberState.BANNED
    assert club.settled() == {"C": (1, "3")}


def test_a_merged_member_can_be_deleted_and_begin_anew_under_either_id(club: Club) -> None:
    club.scores("b", ("A", 1), ("B", 2))
    club.does("merge", "B", "A")

    club.does("delete", "B")
    assert club.settled() == {}

    club.scores("b", ("B", 3), ("A", 4))
    assert club.settled() == {"A": (1, "7")}


def test_corrections_of_events_of_either_id_follow(club: Club) -> None:
    of_a, of_b = club.pipeline.submit("b", {"A": 1}) + club.pipeline.submit("b", {"B": 2})
    club.does("merge", "B", "A")

    amended = club.client.amend_event("b", of_b.event_id, 20, correction_id="c", **WHY)
    assert {now.score for now in amended.standings} == {"21"}
    assert club.settled() == {"A": (1, "21")}

    (voided,) = club.client.void_events("b", [of_a.event_id], **WHY)
    assert {now.score for now in voided.standings} == {"20"}
    assert club.settled() == {"A": (1, "20")}
    assert [(str(e.value), e.state) for e in club.client.explain("b", "A")] == [
        ("1", "void"),
        ("20", "amended"),
    ]
    standing = club.client.standing("b", "A")
    assert standing is not None
    assert standing.event_id == of_b.event_id
    assert club.client.void_where("b", member="A", **WHY) == 1
    assert club.settled() == {}


def test_a_custom_season_that_moves_counts_for_the_member_that_remains(club: Club) -> None:
    day = [datetime(2026, 3, d, tzinfo=UTC) for d in range(1, 10)]
    club.client.create_season("b", "cup", day[0], day[2])
    club.submit("b", [ScoreEvent(event_id="e", member="B", value=3, occurred_at=day[4])])
    club.does("merge", "B", "A")

    club.client.change_season("b", "cup", day[0], day[6], **WHY)

    assert club.settled(season="cup") == {"A": (1, "3")}


@pytest.mark.parametrize("knows", ["a standing", "nothing"])
def test_a_score_under_way_that_does_not_know_of_the_merge_comes_over(
    club: Club, begin: Callable[..., Future[Any]], knows: str
) -> None:
    club.scores("b", ("A", 1))
    if knows == "a standing":
        club.scores("b", ("B", 2))
    scoring, merging = club.pipeline.connection(), club.pipeline.connection()
    club.pipeline.submit("b", {"B": 4}, scoring)

    done = begin(merge, merging, "B", "A")
    if knows == "a standing":
        club.until_blocked(merging)
    else:
        assert done.result(30) == "changed"
        assert sweep(club) == ["B"]
        assert sweep(club) == ["B"], "somebody is still under way"
    scoring.commit()
    assert done.result(30) == "changed"
    club.project()
    assert "B" not in club.shown()

    while sweep(club):
        pass

    assert club.settled() == {"A": (1, "7" if knows == "a standing" else "5")}


def test_a_score_that_waits_for_the_merge_comes_over(
    club: Club, begin: Callable[..., Future[Any]]
) -> None:
    club.scores("b", ("A", 1), ("B", 2))
    scoring, merging = club.pipeline.connection(), club.pipeline.connection()
    merging.execute(MERGE, ("B", "A"))

    done = begin(club.pipeline.submit, "b", {"B": 4}, scoring)
    club.until_blocked(scoring)
    merging.commit()
    done.result(30)
    scoring.commit()
    club.project()
    assert "B" not in club.shown()
    while sweep(club):
        pass

    assert club.settled() == {"A": (1, "7")}
    assert club.client.standing("b", "B") is None


def test_a_correction_under_way_that_does_not_know_of_the_merge_comes_over(
    club: Club, begin: Callable[..., Future[Any]]
) -> None:
    club.scores("b", ("A", 1))
    (event,) = club.pipeline.submit("b", {"B": 2})
    voiding, merging = club.pipeline.connection(), club.pipeline.connection()
    merging.execute(MERGE, ("B", "A"))

    done = begin(
        voiding.execute,
        "SELECT truerank.void_events('b', %s, 'op', 'why')",
        ([event.event_id],),
    )
    club.until_blocked(voiding)
    merging.commit()
    done.result(30)
    assert sweep(club) == ["B"]
    voiding.commit()
    while sweep(club):
        pass

    assert club.settled() == {"A": (1, "1")}


def test_a_sweep_passes_by_who_holds_a_standing(club: Club) -> None:
    club.scores("b", ("A", 1), ("B", 2))
    club.does("merge", "B", "A")
    with club.pipeline.connection() as holding:
        club.pipeline.submit("b", {"A": 4}, holding)

        assert sweep(club) == ["B"]
        assert sweep(club) == ["B"]

    while sweep(club):
        pass
    assert club.settled() == {"A": (1, "7")}


@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_caller_whose_snapshot_is_older_than_the_merge_retries(
    club: Club, isolation: str
) -> None:
    club.scores("b", ("A", 1), ("C", 2))
    with club.pipeline.connection() as conn:
        conn.execute(f"SET TRANSACTION ISOLATION LEVEL {isolation}")
        conn.execute("SELECT 1 FROM truerank.board").fetchall()
        club.does("merge", "B", "A")
        with pytest.raises(psycopg.errors.SerializationFailure):
            club.pipeline.submit("b", {"B": 4}, conn)
        conn.rollback()
        conn.execute(f"SET TRANSACTION ISOLATION LEVEL {isolation}")
        club.pipeline.submit("b", {"B": 4}, conn)

    assert club.settled() == {"A": (1, "5"), "C": (2, "2")}


def test_merges_of_one_member_into_two_others_at_once_leave_one(
    club: Club, begin: Callable[..., Future[Any]]
) -> None:
    club.scores("b", ("A", 1), ("B", 2), ("C", 4))
    one, two = club.pipeline.connection(), club.pipeline.connection()
    one.execute(MERGE, ("B", "A"))

    done = begin(merge, two, "B", "C")
    club.until_blocked(two)
    one.commit()

    assert done.result(30) == "merged_elsewhere"
    assert club.settled() == {"C": (1, "4"), "A": (2, "3")}


def test_two_members_merged_into_each_other_at_once_end_as_one(
    club: Club, begin: Callable[..., Future[Any]]
) -> None:
    club.scores("b", ("A", 1), ("B", 2))
    one, two = club.pipeline.connection(), club.pipeline.connection()
    one.execute(MERGE, ("B", "A"))

    done = begin(merge, two, "A", "B")
    club.until_blocked(two)
    one.commit()

    assert done.result(30) == "merge_cycle"
    assert club.settled() == {"A": (1, "3")}


def test_a_merge_that_is_rolled_back_leaves_both(club: Club) -> None:
    club.scores("b", ("A", 1), ("B", 2))
    with club.pipeline.connection() as conn:
        conn.execute(MERGE, ("B", "A"))
        conn.rollback()

    assert sweep(club) == []
    assert club.settled() == {"B": (1, "2"), "A": (2, "1")}


def test_scores_and_merges_at_once_lose_nothing(
    club: Club, begin: Callable[..., Future[Any]]
) -> None:
    def score(worker: int) -> None:
        with club.pipeline.connection() as conn:
            conn.autocommit = True
            for turn in range(25):
                conn.execute(
                    "SELECT truerank.submit_scores('b', %s, %s, '{1,1}')",
                    ([f"{worker} {turn} x", f"{worker} {turn} y"], [f"m{turn % 4}", "A"]),
                )

    scoring = [begin(score, worker) for worker in range(3)]
    wait_until(lambda: len(club.in_sql()) == 5, "everybody to score")
    for member in ("m1", "m2", "m3"):
        club.does("merge", member, "m0")
    for done in scoring:
        done.result(60)
    while sweep(club):
        pass

    assert club.settled() == {"A": (1, "75"), "m0": (1, "75")}


def test_a_merge_waits_for_nobody_for_ever_and_in_vain_changes_nothing(club: Club) -> None:
    club.scores("b", ("A", 1), ("B", 2))
    with club.pipeline.connection() as holding, club.pipeline.connection() as merging:
        # Above READ COMMITTED it also holds what all merges lock.
        holding.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        club.pipeline.submit("b", {"A": 4}, holding)
        merging.execute("SET statement_timeout = '30s'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            merging.execute(MERGE, ("B", "A"))
        merging.rollback()

    assert club.settled() == {"A": (1, "5"), "B": (2, "2")}


def test_merges_that_cannot_be_completed_leave_the_others_their_turn(club: Club) -> None:
    club.client.create_board("other", seasons=["all"])
    club.scores("b", ("A", 1))
    club.scores("other", ("C", 1))
    for member, into in (("1", "A"), ("2", "A"), ("B", "C")):
        club.does("merge", member, into)
    with club.pipeline.connection() as closing:
        closing.autocommit = True
        lock = "SELECT {}(truerank.lock_class(), id & 255) FROM truerank.board WHERE key = 'b'"
        closing.execute(lock.format("pg_advisory_lock"))

        for _ in range(4):
            club.pipeline.conn.execute("SELECT truerank.sweep_members(2)")

        left = closing.execute("SELECT member FROM truerank.merging ORDER BY member").fetchall()
        closing.execute(lock.format("pg_advisory_unlock"))
    assert left == [("1",), ("2",)]
    assert sweep(club) == []


def test_a_merge_leaves_a_deleted_board_alone(club: Club) -> None:
    club.client.create_board("gone", seasons=["all"])
    club.scores("gone", ("A", 1), ("B", 2))
    club.scores("b", ("A", 1), ("B", 2))
    club.client.delete_board("gone", **WHY)
    conn = club.pipeline.conn
    assert club.client.purge_boards() == 2, "the standings; the events are left"

    club.does("merge", "B", "A")
    while sweep(club):
        pass

    held = conn.execute(
        "SELECT count(*) FROM truerank.standing AS s"
        " JOIN truerank.board AS b ON b.id = s.ranking >> 36 WHERE b.deleted_at IS NOT NULL"
    )
    assert held.fetchone() == (0,)
    while club.client.purge_boards():
        pass
    assert club.settled() == {"A": (1, "3")}


def test_history_that_is_forgotten_after_a_merge_counts_once(club: Club) -> None:
    conn = club.pipeline.conn
    old = "2020-01-01T00:00:00+00:00"
    submit = "SELECT truerank.submit_scores('b', '{1,2}', '{A,B}', '{10,20}', %s::timestamptz[])"
    conn.execute(submit, ([old, old],))
    (recent,) = club.pipeline.submit("b", {"A": 1})
    club.does("merge", "B", "A")
    club.client.update_board("b", {"retention": "10 days"}, actor="op", reason="why")
    while conn.execute("SELECT pending FROM truerank.prune_events(1000, 'b')").fetchone() == (
        True,
    ):
        pass

    # An amendment has the season computed anew.
    club.client.amend_event("b", recent.event_id, 2, correction_id="c", **WHY)

    assert club.settled() == {"A": (1, "32")}


def test_a_merge_that_a_dump_brought_from_another_server_becomes_complete(club: Club) -> None:
    club.scores("b", ("A", 1), ("B", 2))
    club.does("merge", "B", "A")
    club.pipeline.conn.execute("UPDATE truerank.merging SET known_from = '5000000000000'")

    wait_until(lambda: not sweep(club), "the merge to be complete")

    assert club.settled() == {"A": (1, "3")}


@pytest.mark.parametrize("order", ["desc", "asc"])
def test_merging_into_an_id_of_its_own_renames_a_member_everywhere(club: Club, order: str) -> None:
    """Place, instant, state and what a freeze shows go over; scores under the old id count."""
    club.client.create_board("r", order=order, seasons=["all", "day"])
    club.scores("r", ("A", 5), ("B", 5), ("C", 9))
    club.client.freeze_season("r", "all", **WHY)
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    before, day = club.settled("r", "all"), club.shown("r", today)
    club.does("hide", "C", board="r")

    renamed = club.does("merge", "A", "Z")

    assert (renamed.merged_into, renamed.known) == ("Z", True)
    shown = club.settled("r", "all")
    assert shown.keys() == {"Z", "B"}
    assert shown["Z"][1] == before["A"][1]
    assert [e.member for e in club.top("r", "all").entries] == ["Z", "B"]  # it came first
    assert club.place("r", "A", "all").places[0].state == "merged"
    assert club.shown("r", today)["Z"][1] == day["A"][1]
    club.scores("r", ("A", 2), ("Z", 1))
    assert club.shown("r", "all")["Z"][1] == "5"  # frozen
    club.client.reveal_season("r", "all", **WHY)
    assert club.settled("r", "all")["Z"][1] == "8"
    club.does("delete", "Z")
    assert club.settled("r", "all").keys() == {"B"}


@pytest.mark.parametrize(
    ("said", "board"),
    [("ban", None), ("ban", "b"), ("hide", None), ("hide", "b"), ("both", None)],
)
def test_a_renamed_member_stays_out_of_sight(club: Club, said: str, board: str | None) -> None:
    club.client.create_board("other", seasons=["all"])
    until = datetime.now(UTC) + timedelta(hours=1)
    for key in ("b", "other"):
        club.scores(key, ("A", 2), ("B", 1))
    if said != "ban":
        club.does("hide", "A", board=board)
    if said != "hide":
        club.does("ban", "A", board=board, until=until)
    before = club.settled("b"), club.settled("other")

    club.does("merge", "A", "Z")

    elsewhere = {"B": "1"} if board is None else {"Z": "2", "B": "1"}
    assert (club.in_sql("b"), club.in_sql("other")) == ({"B": "1"}, elsewhere)
    after = club.settled("b"), club.settled("other")
    assert [len(shown) for shown in after] == [len(shown) for shown in before]
    assert after[0] == {"B": (1, "1")}
    (scope,) = club.client.member_states("Z")
    assert (scope.board, scope.until) == (board, until if said != "hide" else None)
    assert scope.state is (MemberState.HIDDEN if said == "hide" else MemberState.BANNED)
    club.does("show" if said == "hide" else "unban", "A", board=board)
    assert ("Z" in club.settled("b")) is (said != "both"), "the wish to be hidden went over, too"


def test_a_repeated_rename_does_not_say_again_what_was_taken_back(club: Club) -> None:
    club.scores("b", ("A", 2))
    club.does("ban", "A")
    club.does("merge", "A", "Z")
    club.does("merge", "A", "Z")
    assert club.settled() == {}
    club.does("unban", "Z")

    assert not club.does("merge", "A", "Z").changed

    assert club.settled() == {"Z": (1, "2")}


def test_nobody_sees_a_hidden_member_while_it_is_renamed(club: Club) -> None:
    """Whatever the projection knows of it: asked before and after each of its steps."""
    club.scores("b", ("A", 2), ("B", 1))
    club.does("hide", "A")
    assert club.settled() == {"B": (1, "1")}
    seen: list[set[str]] = []

    def look() -> bool:
        pages = [club.client.top("b"), club.client.top("b", source=Source.DATABASE)]
        seen.extend({entry.member for entry in page.entries} for page in pages)
        return bool(club.projector.step())

    with club.pipeline.connection() as conn:
        conn.execute(MERGE, ("A", "Z"))
        look()
        assert club.in_sql() == {"B": "1"}
    while look():
        pass

    assert all(members == {"B"} for members in seen)
    assert club.settled() == {"B": (1, "1")}


def test_saying_something_of_an_unused_id_beforehand_evades_no_ban(club: Club) -> None:
    club.scores("b", ("A", 2), ("B", 1))
    club.does("ban", "A")
    club.does("hide", "Z")
    club.client.set_profiles([Profile(member="Z", name="Zed")])

    club.does("merge", "A", "Z")
    club.does("show", "Z")

    assert club.settled() == {"B": (1, "1")}


def test_a_ban_under_way_holds_for_the_new_id(
    club: Club, begin: Callable[..., Future[Any]]
) -> None:
    club.scores("b", ("A", 2), ("B", 1))
    banning, merging = club.pipeline.connection(), club.pipeline.connection()
    banning.execute("SELECT truerank.set_member_state('A', 'ban', 'op', 'why')")

    done = begin(merge, merging, "A", "Z")
    club.until_blocked(merging)
    banning.commit()

    assert done.result(30) == "changed"
    assert club.settled() == {"B": (1, "1")}


def test_a_renamed_member_keeps_its_name_unless_the_new_id_has_one(club: Club) -> None:
    club.scores("b", ("A", 2), ("B", 1))
    ada = Profile(member="A", name="Ada", details={"country": "GB"})
    club.client.set_profiles([ada, Profile(member="B", name="Bo"), Profile(member="Y", name="Yo")])

    club.does("merge", "A", "Z")
    club.does("merge", "B", "Y")

    rows = club.pipeline.conn.execute(
        "SELECT * FROM truerank.profiles('{Z,Y}') ORDER BY member"
    ).fetchall()
    assert rows == [("Y", "Yo", None), ("Z", "Ada", {"country": "GB"})]


@pytest.mark.parametrize("history", ["kept", "forgotten"])
def test_an_id_that_has_scored_is_somebody_with_a_wish_of_its_own(club: Club, history: str) -> None:
    club.scores("b", ("A", 2), ("B", 1))
    if history == "forgotten":
        conn = club.pipeline.conn
        conn.execute("UPDATE truerank.board SET history_from = now() + interval '1 day'")
        conn.execute("DELETE FROM truerank.event WHERE member = 'B'")
    club.does("hide", "A")

    club.does("merge", "A", "B")

    assert "B" in club.in_sql()
    assert club.client.member_states("B") == []


def test_where_events_may_be_forgotten_a_new_id_is_new_all_the_same(club: Club) -> None:
    club.client.create_board("old", seasons=["all"])
    club.scores("b", ("A", 2), ("B", 1))
    club.pipeline.conn.execute("UPDATE truerank.board SET history_from = now() WHERE key = 'old'")
    club.does("hide", "A")

    club.does("merge", "A", "Z")

    assert club.in_sql() == {"B": "1"}

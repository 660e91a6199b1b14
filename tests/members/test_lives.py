"""Reset and deleted: the past counts no longer, and what comes later begins at zero."""

from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tests.members.conftest import BY, Club
from tests.projection.pipeline import wait_until
from truerank.model import MemberState, Outcome, ScoreEvent

END = "SELECT truerank.set_member_state('A', %s, 'op', 'why')"


def end(conn: psycopg.Connection[Any], action: str = "delete") -> None:
    conn.execute(END, (action,))
    conn.commit()


def blockers(club: Club, conn: psycopg.Connection[Any]) -> list[int]:
    """The processes that a connection waits for."""
    ((pids,),) = club.pipeline.conn.execute(
        "SELECT pg_blocking_pids(%s)", (conn.info.backend_pid,)
    ).fetchall()
    return list(pids)


@pytest.mark.parametrize("action", ["reset", "delete"])
@pytest.mark.parametrize("operator", ["sum", "best", "latest"])
def test_what_comes_after_the_end_begins_at_zero(club: Club, action: str, operator: str) -> None:
    club.client.create_board("x", operator=operator, seasons=["all", "day"])
    club.scores("x", ("A", 10), ("A", 20), ("B", 5))

    club.does(action, "A")
    assert club.settled("x") == {"B": (1, "5")}

    club.scores("x", ("A", 3))
    assert club.settled("x") == {"B": (1, "5"), "A": (2, "3")}
    assert club.place("x", "A").places[0].state is MemberState.ACTIVE


def test_a_late_event_of_the_new_life_is_computed_without_the_old_one(club: Club) -> None:
    club.client.create_board("x", operator="latest", seasons=["all"])
    at = "2026-03-{:02}T00:00:00+00:00"
    submit = "SELECT truerank.submit_scores('x', %s, %s, %s, %s::timestamptz[])"
    club.pipeline.conn.execute(submit, (["1"], ["A"], [100], [at.format(9)]))
    club.does("delete", "A")

    club.pipeline.conn.execute(submit, (["2"], ["A"], [1], [at.format(8)]))
    club.pipeline.conn.execute(submit, (["3"], ["A"], [2], [at.format(7)]))

    assert club.settled("x") == {"A": (1, "1")}


def test_a_repeat_of_an_event_of_the_old_life_is_a_duplicate_and_adds_nothing(club: Club) -> None:
    event = ScoreEvent(event_id="e", member="A", value=5)
    club.submit("b", [event])
    club.does("delete", "A")

    (receipt,) = club.submit("b", [event])

    assert (receipt.outcome, {now.score for now in receipt.standings}) == (
        Outcome.DUPLICATE,
        {None},
    )
    assert club.settled() == {}


@pytest.mark.parametrize("action", ["reset", "delete"])
def test_a_deletion_ends_what_was_said_of_a_member_and_a_reset_does_not(
    club: Club, action: str
) -> None:
    club.scores("b", ("A", 1), ("B", 1))
    club.does("ban", "A")
    club.does("hide", "A", board="b")

    club.does(action, "A")
    club.scores("b", ("A", 3))

    assert club.settled().keys() == ({"A", "B"} if action == "delete" else {"B"})
    assert len(club.client.member_states("A")) == (0 if action == "delete" else 2)


def test_a_deleted_member_is_told_as_deleted_until_it_comes_back(club: Club) -> None:
    club.scores("b", ("A", 1))
    assert club.does("delete", "A").state is MemberState.DELETED
    assert [scope.state for scope in club.client.member_states("A")] == [MemberState.DELETED]
    assert not club.does("delete", "A").changed

    club.scores("b", ("A", 1))

    assert club.client.member_states("A") == []
    assert club.does("delete", "A").changed
    assert club.settled() == {}


def test_a_deletion_on_one_board_leaves_the_others(club: Club) -> None:
    club.client.create_board("other", seasons=["all"])
    club.scores("b", ("A", 1))
    club.scores("other", ("A", 2))

    club.does("delete", "A", board="b")

    assert club.settled("b") == {}
    assert club.shown("other") == {"A": (1, "2")}


def test_the_events_stay_on_record_as_ended(club: Club) -> None:
    club.scores("b", ("A", 1))
    club.does("delete", "A")
    club.scores("b", ("A", 2))

    assert [(str(event.value), event.state) for event in club.client.explain("b", "A")] == [
        ("1", "ended"),
        ("2", "counted"),
    ]


def test_correcting_an_ended_event_changes_no_score(club: Club) -> None:
    first, second = club.pipeline.submit("b", {"A": 1}) + club.pipeline.submit("b", {"A": 2})
    club.does("reset", "A")
    club.scores("b", ("A", 4))

    why: Any = {"actor": "op", "reason": "why"}
    club.client.void_events("b", [first.event_id], **why)
    club.client.amend_event("b", second.event_id, 50, correction_id="c", **why)

    assert club.settled() == {"A": (1, "4")}


@pytest.mark.parametrize("action", ["reset", "delete"])
def test_a_deletion_waits_for_a_score_under_way_and_ends_it_too(
    club: Club, begin: Callable[..., Future[Any]], action: str
) -> None:
    club.scores("b", ("A", 10))
    scoring, ending = club.pipeline.connection(), club.pipeline.connection()
    club.pipeline.submit("b", {"A": 5}, scoring)

    done = begin(end, ending, action)
    club.until_blocked(ending)
    scoring.commit()
    done.result(30)

    assert club.settled() == {}


def test_a_score_that_waits_for_a_deletion_begins_a_new_life(
    club: Club, begin: Callable[..., Future[Any]]
) -> None:
    club.scores("b", ("A", 10))
    scoring, ending = club.pipeline.connection(), club.pipeline.connection()
    ending.execute(END, ("delete",))

    done = begin(club.pipeline.submit, "b", {"A": 5}, scoring)
    club.until_blocked(scoring)
    ending.commit()
    done.result(30)
    scoring.commit()

    assert club.settled() == {"A": (1, "5")}
    club.client.void_events("b", ["nothing"], **{k: BY[k] for k in ("actor", "reason")})
    club.scores("b", ("A", 1))
    assert club.settled() == {"A": (1, "6")}


def test_a_first_score_that_the_deletion_could_not_see_is_a_new_life(club: Club) -> None:
    scoring = club.pipeline.connection()
    club.pipeline.submit("b", {"A": 5}, scoring)
    club.does("delete", "A")

    scoring.commit()

    assert club.settled() == {"A": (1, "5")}
    assert club.client.member_states("A") == []


def test_standings_that_appear_while_a_deletion_waits_end_with_their_events(
    club: Club, begin: Callable[..., Future[Any]]
) -> None:
    # The first of May is in another month than what there is, and in another week.
    club.client.create_board("x", seasons=["week", "month"])
    submit = "SELECT truerank.submit_scores('x', %s, '{A}', '{1}', %s::timestamptz[])"
    april, may = "2026-04-20T00:00:00+00:00", "2026-05-01T00:00:00+00:00"
    club.pipeline.conn.execute(submit, (["0"], [april]))
    waited_for, later, ending = (club.pipeline.connection() for _ in range(3))
    waited_for.execute(submit, (["1"], [april]))

    done = begin(end, ending)
    club.until_blocked(ending)
    club.pipeline.conn.execute(submit, (["2"], [may]))
    later.execute(submit, (["3"], [may]))
    waited_for.commit()
    wait_until(lambda: blockers(club, ending) == [later.info.backend_pid], "the next wait")
    later.commit()
    done.result(30)

    for season in ("2026-04", "2026-05"):
        states = {event.state for event in club.client.explain("x", "A", season)}
        assert states == {"ended"}
        assert club.settled("x", season) == {}
    club.pipeline.conn.execute(submit, (["4"], [may]))
    assert club.settled("x", "2026-05") == {"A": (1, "1")}


@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
def test_above_read_committed_a_deletion_is_refused(club: Club, isolation: str) -> None:
    with club.pipeline.connection() as conn:
        conn.execute(f"SET TRANSACTION ISOLATION LEVEL {isolation}")
        with pytest.raises(psycopg.errors.ActiveSqlTransaction):
            conn.execute(END, ("delete",))
        conn.rollback()


def test_forgotten_history_does_not_come_back(club: Club) -> None:
    conn = club.pipeline.conn
    submit = "SELECT truerank.submit_scores('b', %s, %s, %s, %s::timestamptz[])"
    old = "2020-01-01T00:00:00+00:00"
    conn.execute(submit, (["1", "2"], ["A", "B"], [10, 20], [old, old]))
    club.client.update_board("b", {"retention": "10 days"}, actor="op", reason="why")
    while conn.execute("SELECT pending FROM truerank.prune_events(1000, 'b')").fetchone() == (
        True,
    ):
        pass
    assert conn.execute("SELECT count(*) FROM truerank.opening").fetchone() == (2,)
    assert club.settled() == {"B": (1, "20"), "A": (2, "10")}

    club.does("hide", "B")
    assert club.settled() == {"A": (1, "10")}
    club.does("delete", "A")
    assert club.settled() == {}
    assert club.settled(season="2020-01-01") == {}
    club.scores("b", ("A", 1))
    club.does("show", "B")
    assert club.settled() == {"B": (1, "20"), "A": (2, "1")}
    club.does("merge", "B", "A")
    assert club.settled() == {"A": (1, "21")}


def test_a_deletion_and_a_score_that_lifts_a_ban_do_not_lock_each_other_out(
    club: Club, begin: Callable[..., Future[Any]]
) -> None:
    club.scores("b", ("A", 10))
    club.does("ban", "A", until=datetime.now(UTC) + timedelta(days=1))
    club.pipeline.conn.execute(
        "UPDATE truerank.member_state SET until = clock_timestamp() WHERE until IS NOT NULL"
    )
    gate, scoring, ending = (club.pipeline.connection() for _ in range(3))
    gate.execute("SELECT FROM truerank.standing WHERE member = 'A' FOR UPDATE")

    ended = begin(end, ending, "delete")
    club.until_blocked(ending)
    scored = begin(club.pipeline.submit, "b", {"A": 5}, scoring)
    club.until_blocked(scoring)
    gate.commit()
    ended.result(30)
    scored.result(30)
    scoring.commit()

    assert club.settled() == {"A": (1, "5")}


@pytest.mark.parametrize("action", ["reset", "hide"])
def test_a_command_has_a_number_before_it_looks_for_whom_a_member_counts(
    club: Club, begin: Callable[..., Future[Any]], action: str
) -> None:
    club.scores("b", ("A", 10))
    gate, asking = club.pipeline.connection(), club.pipeline.connection()
    gate.execute("LOCK TABLE truerank.member IN ACCESS EXCLUSIVE MODE")

    done = begin(end, asking, action)
    club.until_blocked(asking)
    numbered = club.pipeline.conn.execute(
        "SELECT backend_xid IS NOT NULL FROM pg_stat_activity WHERE pid = %s",
        (asking.info.backend_pid,),
    ).fetchone()
    gate.rollback()
    done.result(30)

    assert numbered == (True,)

"""Which state holds, for how long, and when: scopes, bans that end, wishes that outlast them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import psycopg
import pytest

import truerank
from tests.members.conftest import BY, Club
from tests.projection.pipeline import Pipeline, wait_until
from truerank.errors import BoardUnknown, InvalidInput
from truerank.local import running_worker
from truerank.model import MemberState, Outcome, Source

SOON = timedelta(hours=1)


def let_pass(pipeline: Pipeline) -> None:
    """Let the time of every ban pass."""
    pipeline.conn.execute(
        "UPDATE truerank.member_state SET until = clock_timestamp() WHERE until IS NOT NULL"
    )


def states(club: Club, member: str) -> dict[str | None, str]:
    return {scope.board: scope.state.value for scope in club.client.member_states(member)}


@pytest.mark.parametrize(
    ("everywhere", "here", "holds"),
    [
        ("hide", "ban", "banned"),
        ("ban", "hide", "banned"),
        ("hide", None, "hidden"),
        (None, "ban", "banned"),
        (None, None, "active"),
    ],
)
def test_the_stricter_of_two_states_wins(
    club: Club, everywhere: str | None, here: str | None, holds: str
) -> None:
    club.scores("b", ("A", 2), ("B", 1))
    if everywhere:
        club.does(everywhere, "A")
    if here:
        club.does(here, "A", board="b")

    assert ("A" in club.settled()) is (holds == "active")
    assert club.place("b", "A").places[0].state == holds


def test_both_states_must_end_before_a_member_is_seen(club: Club) -> None:
    club.scores("b", ("A", 2))
    club.does("hide", "A")
    club.does("ban", "A", board="b")
    club.does("show", "A")
    assert club.settled() == {}

    club.does("unban", "A", board="b")

    assert club.settled() == {"A": (1, "2")}
    assert states(club, "A") == {}


def test_showing_oneself_does_not_end_a_ban(club: Club) -> None:
    club.scores("b", ("A", 2))
    club.does("ban", "A")

    change = club.does("show", "A")

    assert (change.state, change.changed) == (MemberState.BANNED, False)
    assert club.settled() == {}


@pytest.mark.parametrize("wish", ["before", "during"])
def test_who_hid_stays_hidden_when_a_ban_ends(club: Club, wish: str) -> None:
    club.scores("b", ("A", 2))
    if wish == "before":
        club.does("hide", "A")
    club.does("ban", "A")
    if wish == "during":
        club.does("hide", "A")

    assert club.does("unban", "A").state is MemberState.HIDDEN
    assert club.settled() == {}
    assert club.does("show", "A").state is MemberState.ACTIVE
    assert club.settled() == {"A": (1, "2")}


def test_a_ban_that_ended_is_lifted_by_a_worker_and_a_wish_stays(club: Club) -> None:
    club.scores("b", ("A", 2), ("B", 1))
    until = datetime.now(UTC) + SOON
    assert club.does("ban", "A", until=until).until == until
    club.does("ban", "B", until=until)
    club.does("hide", "B")
    assert club.settled() == {}
    let_pass(club.pipeline)

    club.pipeline.settle(club.pipeline.projector())

    assert club.shown() == {"A": (1, "2")}
    assert states(club, "B") == {None: "hidden"}
    rows = club.pipeline.conn.execute(
        "SELECT action, subject, actor FROM truerank.audit WHERE actor = 'truerank' ORDER BY 2"
    ).fetchall()
    assert rows == [("unban_member", "A", "truerank"), ("unban_member", "B", "truerank")]


def test_readers_show_a_ban_until_it_is_lifted(club: Club) -> None:
    club.scores("b", ("A", 2), ("B", 1))
    club.does("ban", "A", until=datetime.now(UTC) + SOON)
    club.project()
    let_pass(club.pipeline)

    assert club.in_sql() == {"B": "1"}
    assert club.shown() == {"B": (1, "1")}


def score(club: Club, member: str) -> None:
    (receipt,) = club.pipeline.submit("b", {member: 1})
    assert receipt.outcome is Outcome.APPLIED


COMMANDS: dict[str, Callable[[Club], object]] = {
    "a score": lambda club: score(club, "A"),
    "a score under an id that was merged": lambda club: score(club, "Z"),
    "a correction": lambda club: club.client.void_where("b", member="A", actor="op", reason="why"),
    "a merge": lambda club: club.does("merge", "Y", "A"),
    "a read in PostgreSQL": lambda club: club.client.place("b", "A", source=Source.DATABASE),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_next_command_of_a_member_lifts_the_bans_that_ended(club: Club, command: str) -> None:
    club.scores("b", ("A", 2))
    club.does("merge", "Z", "A")
    for board in (None, "b"):
        club.does("ban", "A", until=datetime.now(UTC) + SOON, board=board)
    club.does("ban", "B", until=datetime.now(UTC) + SOON)
    let_pass(club.pipeline)

    COMMANDS[command](club)

    assert states(club, "A") == {}
    expected = {"a correction": {}, "a merge": {"A": "2"}, "a read in PostgreSQL": {"A": "2"}}
    assert club.in_sql() == expected.get(command, {"A": "3"})
    assert states(club, "B") == {None: "banned"}


def test_a_ban_that_ended_holds_up_nobody(club: Club) -> None:
    club.scores("b", ("A", 2))
    club.does("ban", "A", until=datetime.now(UTC) + SOON)
    let_pass(club.pipeline)
    with club.pipeline.connection() as lifting:
        club.pipeline.submit("b", {"A": 1}, lifting)

        # Another board, so that only the lifting of the ban could be waited for.
        club.client.create_board("other", seasons=["all"])
        (receipt,) = club.pipeline.submit("other", {"A": 1})
        assert receipt.outcome is Outcome.APPLIED
        lifting.rollback()

    assert states(club, "A") == {None: "banned"}


def test_a_score_or_a_read_costs_the_same_however_many_have_a_state(club: Club) -> None:
    club.scores("b", ("A", 2), ("B", 1))
    for member in "AC":
        club.does("ban", member, until=datetime.now(UTC) + SOON)
    conn = club.pipeline.conn
    conn.execute(
        "INSERT INTO truerank.member_state (board_id, member)"
        " SELECT 0, 'm' || n FROM generate_series(1, 20000) AS n"
    )
    conn.execute("ANALYZE truerank.member_state")
    read_whole = """
        SELECT seq_scan FROM pg_stat_xact_user_tables
        WHERE schemaname = 'truerank' AND relname = 'member_state'"""
    with conn.transaction():
        before = conn.execute(read_whole).fetchone()
        for _ in range(2):
            club.scores("b", ("B", 1))
            assert conn.execute("SELECT truerank.bans_ended('{A}')").fetchone() != (None,)
            let_pass(club.pipeline)
        assert conn.execute(read_whole).fetchone() == before


def test_saying_it_again_changes_nothing_and_a_longer_ban_does(club: Club) -> None:
    until = datetime.now(UTC) + SOON
    assert club.does("ban", "A", until=until).changed
    assert not club.does("ban", "A", until=until).changed
    assert club.does("ban", "A").until is None
    assert club.does("hide", "B").changed
    assert not club.does("hide", "B").changed
    assert not club.does("show", "never").changed
    ((rows,),) = club.pipeline.conn.execute("SELECT count(*) FROM truerank.audit").fetchall()
    assert rows == 3


def test_a_state_in_the_caller_s_transaction_goes_with_it(club: Club) -> None:
    club.scores("b", ("A", 2))
    say = "SELECT outcome FROM truerank.set_member_state('A', 'hide', 'op', 'why', 'b')"
    with club.pipeline.connection() as conn:
        assert conn.execute(say).fetchone() == ("changed",)
        conn.rollback()
        assert club.settled() == {"A": (1, "2")}
        conn.execute(say)
        conn.commit()

    assert club.in_sql() == {}
    assert club.settled() == {}
    row = club.pipeline.conn.execute(
        "SELECT actor, action, subject, reason, detail FROM truerank.audit"
    ).fetchall()
    assert row == [("op", "hide_member", "A", "why", {"state": "hidden"})]


def test_nobody_waits_for_a_state(club: Club) -> None:
    club.scores("b", ("A", 2))
    with club.pipeline.connection() as saying, club.pipeline.connection() as scoring:
        club.pipeline.submit("b", {"A": 1}, scoring)
        saying.execute("SET statement_timeout = '10s'")
        saying.execute("SELECT truerank.set_member_state('A', 'ban', 'op', 'why')")
        scoring.execute("SET statement_timeout = '10s'")
        club.pipeline.submit("b", {"A": 1}, scoring)

    assert club.settled() == {}


@pytest.mark.parametrize(
    ("call", "field"),
    [
        ({"member": ""}, "member"),
        ({"member": "x" * 201}, "member"),
        ({"member": "a\0b"}, "member"),
        ({"until": datetime(2100, 1, 1)}, "until"),  # noqa: DTZ001 - that is the point
        ({"actor": ""}, "actor"),
        ({"reason": "x" * 1001}, "reason"),
        ({"board": "a\0b"}, "board"),
    ],
)
def test_what_makes_no_sense_is_refused_and_named(
    club: Club, call: dict[str, Any], field: str
) -> None:
    words = {"member": "A", "actor": "op", "reason": "why", **call}
    with pytest.raises(InvalidInput) as refused:
        club.client.ban_member(**words)

    assert refused.value.field == field


def test_a_ban_that_would_be_over_is_refused(club: Club) -> None:
    with pytest.raises(InvalidInput):
        club.does("ban", "A", until=datetime.now(UTC) - SOON)
    assert states(club, "A") == {}


def test_a_state_on_no_board_is_refused(club: Club) -> None:
    with pytest.raises(BoardUnknown):
        club.does("hide", "A", board="none")


def test_a_command_is_in_force_when_it_returns(single: Pipeline) -> None:
    single.submit("b", {"A": 2, "B": 1})
    with running_worker(single.settings):
        wait_until(lambda: single.client.top("b").total == 2, "a copy to read")
        for action, total in (("hide", 1), ("show", 2), ("ban", 1), ("delete", 1)):
            change = getattr(single.client, f"{action}_member")(
                "A", actor="op", reason="why", timeout_s=30.0
            )
            assert not change.pending
            assert single.client.top("b", source=Source.PROJECTION).total == total


def test_a_ban_ends_by_itself(single: Pipeline) -> None:
    single.submit("b", {"A": 2, "B": 1})
    with running_worker(single.settings):
        single.client.ban_member(
            "A", until=datetime.now(UTC) + SOON, actor="op", reason="why", timeout_s=30.0
        )
        assert single.client.top("b").total == 1
        let_pass(single)
        wait_until(lambda: single.client.top("b").total == 2, "the ban to end")


def test_without_a_worker_a_command_is_pending_and_holds_in_sql(single: Pipeline) -> None:
    projector = single.projector()
    single.submit("b", {"A": 2, "B": 1})
    single.settle(projector)

    change = single.client.hide_member("A", actor="op", reason="why", timeout_s=0.05)

    assert (change.pending, change.changed, change.state) == (True, True, MemberState.HIDDEN)
    assert single.client.top("b", source=Source.DATABASE).total == 1
    projector.step()
    single.client.wait_visible(change.token, ["b"], timeout_s=30.0)
    assert single.client.top("b", source=Source.PROJECTION).total == 1


async def test_the_asynchronous_client_says_the_same(single: Pipeline) -> None:
    from truerank.aio import Truerank  # noqa: PLC0415 - only here

    single.submit("b", {"A": 2, "B": 1})
    async with Truerank(msgspec.structs.replace(single.settings)) as client:
        change = await client.ban_member("A", board="b", **BY)
        assert (change.state, change.board) == (MemberState.BANNED, "b")
        (scope,) = await client.member_states("A")
        assert (scope.board, scope.state, scope.hides) == ("b", MemberState.BANNED, False)
        merged = await client.merge_members("A", "B", **BY)
        assert merged.merged_into == "B"


def test_callers_may_say_it_and_may_not_write_the_tables(club: Club) -> None:
    conn = club.pipeline.conn
    role = f"caller_{conn.info.dbname}"
    conn.execute(f"CREATE ROLE {role}")
    try:
        conn.execute("SELECT truerank.grant_caller(%s::regrole)", (role,))
        conn.execute(f"SET ROLE {role}")
        truerank.submit_scores(conn, "b", [truerank.ScoreEvent(event_id="e", member="A", value=1)])
        said = conn.execute(
            "SELECT outcome FROM truerank.set_member_state('A', 'hide', 'op', 'why')"
        ).fetchone()
        assert said == ("changed",)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute("DELETE FROM truerank.member_state")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute("SELECT truerank.merge_members('A', 'B', 'op', 'why')")
    finally:
        conn.execute("RESET ROLE")
        conn.execute(f"DROP OWNED BY {role}")
        conn.execute(f"DROP ROLE {role}")

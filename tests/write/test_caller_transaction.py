"""A score belongs to the caller's transaction, on whatever connection and under whatever role."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import dict_row

import truerank
from truerank import Outcome, ScoreEvent, Truerank
from truerank.errors import EventConflict, EventRefused, InvalidInput

Connection = psycopg.Connection[Any]
Connect = Callable[..., Connection]
EVENT = ScoreEvent(event_id="e1", member="A", value=5)


@pytest.fixture
def board(tr: Truerank, conn: Connection) -> str:
    tr.create_board("b", seasons=("all", "week"), value_max=100)
    conn.execute("CREATE TABLE business (row text)")
    return "b"


def counts(conn: Connection) -> tuple[int, ...] | None:
    return conn.execute(
        "SELECT (SELECT count(*) FROM business), (SELECT count(*) FROM truerank.event),"
        " (SELECT count(*) FROM truerank.standing), (SELECT count(*) FROM truerank.outbox)"
    ).fetchone()


def test_score_event_and_outbox_commit_with_the_callers_row(
    connect: Connect, conn: Connection, board: str
) -> None:
    caller = connect(autocommit=False)

    caller.execute("INSERT INTO business VALUES ('order 1')")
    truerank.submit_score(caller, board, EVENT)
    unseen = counts(conn)
    caller.commit()

    assert unseen == (0, 0, 0, 0)
    assert counts(conn) == (1, 1, 2, 2)


def test_score_event_and_outbox_vanish_with_the_callers_row(
    connect: Connect, conn: Connection, board: str
) -> None:
    caller = connect(autocommit=False)

    caller.execute("INSERT INTO business VALUES ('order 1')")
    truerank.submit_score(caller, board, EVENT)
    caller.rollback()

    assert counts(conn) == (0, 0, 0, 0)
    assert truerank.submit_score(caller, board, EVENT).outcome is Outcome.APPLIED


def test_a_savepoint_takes_back_its_score_only(conn: Connection, board: str) -> None:
    other = ScoreEvent(event_id="e2", member="A", value=7)

    with conn.transaction():
        truerank.submit_score(conn, board, EVENT)
        with conn.transaction(force_rollback=True):
            truerank.submit_score(conn, board, other)
        conn.execute("INSERT INTO business VALUES ('order 1')")
    again = truerank.submit_score(conn, board, other)

    assert again.outcome is Outcome.APPLIED
    assert [standing.score for standing in again.standings] == ["12", "12"]
    assert counts(conn) == (1, 2, 2, 4)


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (ScoreEvent(event_id="e1", member="A", value=6), EventConflict),
        (ScoreEvent(event_id="e2", member="A", value=101), EventRefused),
        (ScoreEvent(event_id="e2", member="", value=1), EventRefused),
        (ScoreEvent(event_id="e2", member="A\0", value=1), InvalidInput),
    ],
    ids=["conflict", "refused by the board", "refused id", "malformed"],
)
def test_the_transaction_lives_on_after_a_caught_error(
    connect: Connect, conn: Connection, board: str, event: ScoreEvent, error: type[Exception]
) -> None:
    caller = connect(autocommit=False)

    truerank.submit_score(caller, board, EVENT)
    with pytest.raises(error):
        truerank.submit_score(caller, board, event)
    caller.execute("INSERT INTO business VALUES ('order 1')")
    caller.commit()

    assert counts(conn) == (1, 1, 2, 2)


@pytest.mark.usefixtures("board")
def test_a_refusal_found_late_leaves_the_transaction_usable(
    tr: Truerank, connect: Connect, conn: Connection
) -> None:
    tr.create_board("full", seasons=("all",), total_max=9)
    caller = connect(autocommit=False)

    receipts = truerank.submit_scores(
        caller, "full", [EVENT, ScoreEvent(event_id="e2", member="A", value=5)]
    )
    caller.execute("INSERT INTO business VALUES ('order 1')")
    caller.commit()

    assert [receipt.code for receipt in receipts] == [None, "total_out_of_range"]
    assert counts(conn) == (1, 1, 1, 1)


def test_the_callers_row_factory_and_cursor_do_not_matter(connect: Connect, board: str) -> None:
    caller = connect(row_factory=dict_row, cursor_factory=psycopg.ClientCursor)

    receipt = truerank.submit_score(caller, board, EVENT)

    assert [standing.score for standing in receipt.standings] == ["5", "5"]


def test_the_callers_search_path_and_zone_do_not_matter(connect: Connect, board: str) -> None:
    caller = connect()
    caller.execute("CREATE SCHEMA trap")
    caller.execute(
        "CREATE FUNCTION trap.clock_timestamp() RETURNS timestamptz LANGUAGE sql"
        " AS 'SELECT timestamptz ''2000-01-01'''"
    )
    caller.execute("SET search_path = trap, pg_catalog")
    caller.execute("SET timezone = 'Pacific/Apia'")
    caller.execute("SET datestyle = 'SQL, DMY'")
    before = truerank.submit_score(caller, board, EVENT)

    receipt = truerank.submit_score(caller, board, ScoreEvent(event_id="e2", member="A", value=1))

    assert [s.season for s in receipt.standings] == [s.season for s in before.standings]
    assert [s.score for s in receipt.standings] == ["6", "6"]


@pytest.fixture
def role_url(database_url: str, conn: Connection) -> Iterator[str]:
    """The URL of a role that was granted what callers need, and nothing else."""
    name = f"caller_{conn.info.dbname}"
    conn.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'secret'").format(sql.Identifier(name)))
    conn.execute("SELECT truerank.grant_caller(%s::regrole)", (name,))
    given = {**conninfo_to_dict(database_url), "user": name, "password": "secret"}
    yield make_conninfo(**{key: str(value) for key, value in given.items()})
    conn.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
    conn.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def test_a_caller_role_does_everything_a_caller_does(role_url: str, redis_url: str) -> None:
    with truerank.connect(role_url, redis_url) as client:
        client.create_board("mine", seasons=("all", "week"))
        client.submit_score("mine", event_id="e1", member="A", value=5)
        client.submit_scores("mine", [EVENT, ScoreEvent(event_id="e2", member="B", value=7)])
        page = client.top("mine", member="A", source="database")
        boards, season = client.boards(), client.season("mine")
        client.seasons("mine")

    assert [(entry.member, entry.score) for entry in page.entries] == [("B", "7"), ("A", "5")]
    assert [board.spec.key for board in boards] == ["mine"]
    assert season.label == "all"


def test_a_caller_role_touches_no_table_and_no_sequence(conn: Connection, role_url: str) -> None:
    names = conn.execute(
        "SELECT format('truerank.%I', c.relname), c.relkind FROM pg_class AS c"
        " WHERE c.relnamespace = 'truerank'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S')"
    ).fetchall()
    assert len(names) > 20

    with psycopg.connect(role_url, autocommit=True) as caller:
        for name, kind in names:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                caller.execute(
                    f"SELECT nextval('{name}')" if kind == "S" else f"SELECT FROM {name}"
                )
            if kind != "S":
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    caller.execute(f"DELETE FROM {name}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            caller.execute("CREATE TABLE truerank.mine ()")


def test_a_caller_role_calls_no_function_that_only_workers_or_operators_need(
    role_url: str,
) -> None:
    with psycopg.connect(role_url, autocommit=True) as caller:
        rows = caller.execute(
            "SELECT p.proname FROM pg_proc AS p WHERE p.pronamespace = 'truerank'::regnamespace"
            " AND has_function_privilege(p.oid, 'EXECUTE')"
        )
        allowed = {name for (name,) in rows}

    assert {"submit_score", "submit_scores", "create_board", "read_page"} <= allowed
    forbidden = {"take_tick", "store_events", "log_changes", "recompute_standings", "new_epoch"}
    assert not allowed & forbidden


def test_a_role_that_was_granted_nothing_can_call_nothing(conn: Connection) -> None:
    name = f"stranger_{conn.info.dbname}"
    conn.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(name)))
    try:
        rows = conn.execute(
            "SELECT p.proname FROM pg_proc AS p WHERE p.pronamespace = 'truerank'::regnamespace"
            " AND has_function_privilege(%s, p.oid, 'EXECUTE')",
            (name,),
        ).fetchall()
    finally:
        conn.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))

    assert rows == []

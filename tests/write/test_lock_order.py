"""Who changes a board stops no writer, and commands lock members in one order everywhere."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

import truerank
from truerank import ScoreEvent, Truerank
from truerank.embedded import start_engines
from truerank.schema import sql
from truerank.schema.migrate import migrate

Connection = psycopg.Connection[Any]
Connect = Callable[..., Connection]
Begin = Callable[..., Future[Any]]
UntilBlocked = Callable[[Connection], None]
SHORT_MS = 1_000
NOW = datetime.now(UTC)
DAY = timedelta(days=1)
CHANGES = {
    "create_season": ("SELECT truerank.create_season('b', 'now', %s, %s)", (NOW, NOW + DAY)),
    "change_season": (
        "SELECT truerank.change_season('b', 'cup', %s, %s, 'op', 'why')",
        (NOW + 10 * DAY, NOW + 30 * DAY),
    ),
    "delete_board": ("SELECT truerank.delete_board('b', 'op', 'why')", ()),
}


def submit(conn: Connection, event_id: str, member: str = "A") -> None:
    truerank.submit_score(conn, "b", ScoreEvent(event_id=event_id, member=member, value=1))


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_board_that_somebody_else_is_changing_stops_no_writer(
    connect: Connect, begin: Begin, tr: Truerank, change: str
) -> None:
    tr.create_board("b", seasons=("all",))
    tr.create_season("b", "cup", NOW + 10 * DAY, NOW + 20 * DAY)
    idle, changing = connect(autocommit=False), connect()
    writing = connect(options=f"-c lock_timeout={SHORT_MS} -c statement_timeout=30s")
    idle.execute("SELECT truerank.update_board('b', '{\"rate_max\": 5000}', 'op', 'why')")

    def attempt() -> object:
        try:
            return changing.execute(*CHANGES[change]).fetchone()
        except psycopg.errors.LockNotAvailable:
            return None

    attempted, tries = begin(attempt), 0
    while not attempted.done() or tries < 3:
        submit(writing, f"e{tries}")
        tries += 1

    assert attempted.result() in (None, ("busy",))
    idle.rollback()
    submit(writing, "after")
    assert changing.execute(*CHANGES[change]).fetchone() in {
        ("season_has_events",), ("changed",), ("deleted",)
    }  # fmt: skip


@pytest.fixture(scope="module")
def by_language(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a database whose texts sort by the rules of a language: a before B.

    Of the system's PostgreSQL, for that of the wheels knows no languages.
    """
    folder = max(Path("/usr/lib/postgresql").glob("*/bin"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRUERANK_PG_BINDIR", str(folder))
        with start_engines(tmp_path_factory.mktemp("by_language"), durable=False) as engines:
            with psycopg.connect(engines.database_url, autocommit=True) as maker:
                maker.execute(
                    "CREATE DATABASE by_language TEMPLATE template0"
                    " LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"
                )
            url = engines.database_url.replace("/truerank?", "/by_language?")
            migrate(url)
            yield url


SCORE = """
    SELECT count(*) FROM truerank.submit_scores(%(board)s, %(ids)s, '{B,a}', %(values)s)"""
COUNT = """
    SELECT truerank.count_rates(b, '2024-01-01T00:00Z', '{B,a}')
    FROM truerank.board AS b WHERE b.key = %(board)s"""


@pytest.mark.system("postgres")
@pytest.mark.parametrize(
    ("operator", "command", "table"),
    [
        ("sum", SCORE, "standing"),
        ("best", SCORE, "standing"),
        ("latest", SCORE, "standing"),
        ("sum", COUNT, "rate"),
    ],
    ids=["sum", "best", "latest", "rate"],
)
def test_members_are_locked_in_one_order_whatever_the_database_s_language(
    by_language: str, begin: Begin, operator: str, command: str, table: str
) -> None:
    board = f"{operator} {table}"
    usual: dict[str, Any] = {"options": "-c statement_timeout=30s"}
    with (
        psycopg.connect(by_language, autocommit=True, **usual) as conn,
        psycopg.connect(by_language, **usual) as gate,
        psycopg.connect(by_language, **usual) as waiting,
        psycopg.connect(by_language, **usual) as looking,
    ):
        assert conn.execute("SELECT 'a'::text < 'B'::text").fetchone() == (True,)
        create = "SELECT truerank.create_board(%s, %s, true, '{all}', 'UTC')"
        conn.execute(create, (board, operator))
        conn.execute(
            "UPDATE truerank.board SET rate_max = 100 WHERE key = %(board)s", {"board": board}
        )
        conn.execute(command, {"board": board, "ids": ["1", "2"], "values": [1, 1]})
        lock = f"SELECT FROM truerank.{table} WHERE member = %s FOR UPDATE"
        gate.execute(lock, ("a",))

        again = {"board": board, "ids": ["3", "4"], "values": [2, 2]}
        done = begin(waiting.execute, command, again)
        until_blocked_by(conn, gate, waiting)

        # B comes before a, so who waits for a holds B.
        looking.execute("SET lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            looking.execute(lock, ("B",))
        gate.commit()
        done.result(30)


WRITES_BY_MEMBER = [
    file
    for file in sql.functions()
    if re.search(r"INSERT INTO truerank\.(standing|rate|member)\b", file.text)
]


@pytest.mark.parametrize("file", WRITES_BY_MEMBER, ids=lambda file: str(file.name))
def test_who_writes_by_member_names_the_order_of_members(file: sql.SqlFile) -> None:
    sorts = re.findall(r"ORDER BY ([^;]*?)(?:\n|FOR |\Z)", file.text)

    # s is the table of standings, whose column has the order.
    named = r'(?!s\.)\b(?:\w+\.member|m)\b(?! COLLATE "C")'
    assert not [sort for sort in sorts if re.search(named, sort)]


def until_blocked_by(watching: Connection, holding: Connection, waiting: Connection) -> None:
    """Return once a connection waits for a lock that another one holds."""
    pids = holding.info.backend_pid, waiting.info.backend_pid
    for _ in range(20_000):
        row = watching.execute("SELECT %s = ANY (pg_blocking_pids(%s))", pids).fetchone()
        if row and row[0]:
            return
    pytest.fail("the connection waits for nobody")

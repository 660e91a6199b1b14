"""A database with a board and a business table, and the ways to look at both."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

import truerank
from truerank.command import attach as attaching
from truerank.command import parked as parking
from truerank.command.attach import Attached, AttachmentSpec, Backfilled
from truerank.command.parked import Parked

Connection = psycopg.Connection[Any]

_THREADS_MAX = 8
_BLOCKED_S_MAX = 10.0
_TABLE = """
    CREATE TABLE public.completion (
        id text PRIMARY KEY,
        who text,
        points bigint,
        at timestamptz DEFAULT '2024-06-15 12:00+00',
        state text NOT NULL DEFAULT 'done'
    )"""


class Bench:
    """One board `b`, one table `public.completion`, and what tests do with them."""

    def __init__(self, tr: truerank.Truerank, conn: Connection) -> None:
        self.tr = tr
        self.conn = conn

    def attach(self, **changes: Any) -> Attached:
        spec: dict[str, Any] = {
            "board": "b",
            "table": "public.completion",
            "event_id": "id",
            "member": "who",
            "value": "points",
            "occurred_at": "at",
        }
        return self.tr.run(
            attaching.attach_table(
                AttachmentSpec(**(spec | changes)), actor="test", reason="a test"
            )
        )

    def detach(self, attachment: int) -> bool:
        return self.tr.run(attaching.detach_table(attachment, actor="test", reason="a test"))

    def backfill(self, attachment: int, **more: Any) -> Backfilled:
        return self.tr.run(attaching.backfill(attachment, actor="test", **more))

    def shown(self, attachment: int) -> attaching.Attachment:
        return self.tr.run(attaching.find_attachment(attachment))

    def parked(self, **more: Any) -> list[Parked]:
        return self.tr.run(parking.list_parked(**more))

    def retry(self, parked: int, **mended: Any) -> str:
        return self.tr.run(parking.retry_parked(parked, actor="test", reason="mended", **mended))

    def dismiss(self, parked: int) -> str:
        return self.tr.run(parking.dismiss_parked(parked, actor="test", reason="no matter"))

    def scores(self, board: str = "b", season: str = "all") -> dict[str, str]:
        page = self.tr.top(board, season, limit=1000, source="database")
        return {entry.member: entry.score for entry in page.entries}

    def events(self, board: str = "b") -> list[tuple[str, int, str, bool]]:
        """Event id, value, member and whether it is void, in order of position."""
        return self.conn.execute(
            "SELECT coalesce(e.event_text, e.event_uuid::text), e.value, e.member, EXISTS ("
            "   SELECT FROM truerank.event AS v WHERE v.board_id = e.board_id"
            "   AND v.target = e.event_uuid AND v.kind = 'v')"
            " FROM truerank.event AS e JOIN truerank.board AS b ON b.id = e.board_id"
            " WHERE e.kind = 's' AND b.key = %s ORDER BY e.position",
            (board,),
        ).fetchall()

    def live(self, board: str = "b") -> dict[str, int]:
        """The events that count: id and value."""
        return {id_: value for id_, value, _, void in self.events(board) if not void}


@pytest.fixture
def connect(database_url: str) -> Iterator[Callable[..., Connection]]:
    """A function that opens connections, in autocommit unless told otherwise."""
    opened: list[Connection] = []

    def connect(**options: Any) -> Connection:
        conn = psycopg.connect(
            database_url, **{"autocommit": True, "options": "-c statement_timeout=30s", **options}
        )
        opened.append(conn)
        return conn

    yield connect
    for conn in opened:
        conn.close()


@pytest.fixture
def conn(connect: Callable[..., Connection]) -> Connection:
    """One connection in autocommit: each statement is a transaction."""
    return connect()


@pytest.fixture
def tr(database_url: str, redis_url: str) -> Iterator[truerank.Truerank]:
    """A client. No worker runs: it reads from PostgreSQL."""
    with truerank.connect(database_url, redis_url) as client:
        yield client


@pytest.fixture
def bench(tr: truerank.Truerank, conn: Connection) -> Bench:
    """A `sum` board with all and month seasons, and an empty table that isn't attached yet."""
    tr.create_board("b", seasons=("all", "month"), value_min=-1000, value_max=1000)
    conn.execute(_TABLE)
    return Bench(tr, conn)


@pytest.fixture
def begin() -> Iterator[Callable[..., Future[Any]]]:
    """A function that starts another one in a thread of its own and returns its future."""
    with ThreadPoolExecutor(_THREADS_MAX) as threads:
        yield threads.submit


@pytest.fixture
def until_blocked(connect: Callable[..., Connection]) -> Callable[[Connection], None]:
    """A function that returns once a connection waits for another one's lock."""
    watcher = connect()

    def wait(conn: Connection) -> None:
        deadline = time.monotonic() + _BLOCKED_S_MAX
        while time.monotonic() < deadline:
            row = watcher.execute(
                "SELECT pg_blocking_pids(%s)", (conn.info.backend_pid,)
            ).fetchone()
            if row and row[0]:
                return
            time.sleep(0.002)
        pytest.fail("the connection waits for nobody")

    return wait

"""The very end of a season: closers, writers and restarts just before and just after it."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

import truerank
from tests.http.conftest import NO_CERTIFICATES, serving
from tests.projection.pipeline import wait_until
from tests.settle.conftest import Connection, Months
from truerank import ScoreEvent
from truerank.local import running_worker
from truerank.settings import Settings

BY: Any = Months.BY
Connect = Callable[..., Connection]
TICK = timedelta(microseconds=1)
DEADLINE_S = 30.0
RESTARTS = 5


def midnight_in(conn: Connection, seconds: int, *boards: str) -> datetime:
    """Move boards by day into a zone of their own, where a day ends in a few seconds; when."""
    midnight = (datetime.now(UTC) + timedelta(seconds=seconds + 1)).replace(microsecond=0)
    of_day = midnight.hour * 3600 + midnight.minute * 60 + midnight.second
    # As POSIX spells zones: what is to be added to local time to get UTC.
    sign = "+" if of_day < 43_200 else "-"
    offset = of_day if of_day < 43_200 else 86_400 - of_day
    zone = f"<midnight>{sign}{offset // 3600:02}:{offset // 60 % 60:02}:{offset % 60:02}"
    conn.execute(
        "UPDATE truerank.board SET zone = %s, close_next_at = NULL WHERE key = ANY (%s)",
        (zone, list(boards)),
    )
    return midnight


def label_at(conn: Connection, board: str, at: datetime | None = None) -> str:
    """The day of a board at an instant; now, where none is given."""
    ((label,),) = conn.execute(
        "SELECT truerank.period_label('day', truerank.period_index("
        "'day', b.zone, coalesce(%s, clock_timestamp()))) FROM truerank.board AS b"
        " WHERE b.key = %s",
        (at, board),
    ).fetchall()
    return str(label)


def test_a_season_is_due_at_its_end_and_not_a_microsecond_before(months: Months) -> None:
    months.rules(auto_close=True)
    months.conn.execute("UPDATE truerank.board SET auto_close_from = '2024-05-20'")
    end = datetime(2024, 7, 1, tzinfo=UTC)

    due = [
        months.conn.execute(
            "SELECT s.label FROM truerank.board AS b, truerank.seasons_ended(b, %s) AS s"
            " ORDER BY s.ends_at",
            (at,),
        ).fetchall()
        for at in (end - TICK, end, end + TICK)
    ]

    assert due == [[("2024-05",)], [("2024-05",), ("2024-06",)], [("2024-05",), ("2024-06",)]]


class Midnight:
    """Closers and writers who are at it all the while, before and after the end of a day."""

    def __init__(self, connect: Connect, database_url: str, redis_url: str) -> None:
        self._connect = connect
        self._urls = database_url, redis_url
        self._lock = threading.Lock()
        self._numbers = iter(range(1_000_000))
        self.acknowledged: Counter[tuple[str, str]] = Counter()  # value by board and season
        self.codes: set[str] = set()
        self.closed: list[tuple[str, str, datetime]] = []  # board, season, by when at the latest

    def close(self, until: datetime) -> None:
        with truerank.connect(*self._urls) as client:
            while datetime.now(UTC) < until:
                closes = client.close_due(actor="test", timeout_s=1.0)
                now = datetime.now(UTC)
                with self._lock:
                    self.closed += [(c.board, c.season, now) for c in closes if c.waits is None]

    def write(self, until: datetime) -> None:
        conn = self._connect()
        while datetime.now(UTC) < until:
            for board in ("b", "c"):
                with self._lock:
                    number = next(self._numbers)
                event = ScoreEvent(event_id=f"e{number}", member=f"m{number % 9}", value=1)
                (receipt,) = truerank.submit_scores(conn, board, [event])
                with self._lock:
                    if receipt.code is not None:
                        self.codes.add(receipt.code)
                    for standing in receipt.standings:
                        self.acknowledged[board, standing.season] += 1


def test_closers_at_the_end_of_a_day_close_it_once_and_every_score_is_in_its_day(
    tr: truerank.Truerank,
    conn: Connection,
    connect: Connect,
    database_url: str,
    redis_url: str,
) -> None:
    for board in ("b", "c"):
        tr.create_board(board, seasons=["day"])
    tr.create_board("months", seasons=["month"])
    for board in ("b", "c", "months"):
        tr.update_board(board, {"auto_close": True}, **BY)
    midnight = midnight_in(conn, 1, "b", "c")
    conn.execute(
        "UPDATE truerank.board SET auto_close_from = auto_close_from - interval '32 days'"
        " WHERE key = 'months'"
    )
    last_month = datetime.now(UTC).replace(day=1) - timedelta(days=1)
    busy = Midnight(connect, database_url, redis_url)
    until = midnight + timedelta(seconds=1)

    with ThreadPoolExecutor(5) as threads:
        running = [threads.submit(busy.close, until) for _ in range(3)]
        running += [threads.submit(busy.write, until) for _ in range(2)]
        for each in running:
            each.result(DEADLINE_S)
    tr.close_due(actor="test")

    before, after = (label_at(conn, "b", at) for at in (midnight - TICK, midnight))
    assert busy.codes <= {"season_sealed", "season_final"}
    assert all(by >= midnight for _, season, by in busy.closed if season == before)
    for board in ("b", "c"):
        (settlement,) = tr.settlements(board, before)
        assert int(settlement.total) == busy.acknowledged[board, before]
        assert {season for key, season in busy.acknowledged if key == board} <= {before, after}
        page = tr.top(board, after)
        assert sum(int(entry.score) for entry in page.entries) == busy.acknowledged[board, after]
        audit = conn.execute(
            "SELECT a.action FROM truerank.audit AS a JOIN truerank.board AS b ON b.id = a.board_id"
            " WHERE b.key = %s AND a.subject = %s ORDER BY a.id",
            (board, before),
        ).fetchall()
        assert audit == [("seal_season",), ("settle_season",)]
        assert tr.season(board, after).state == "open"
        in_days = conn.execute(
            "SELECT e.occurred_at < %s, sum(e.value)::integer FROM truerank.event AS e"
            " JOIN truerank.board AS b ON b.id = e.board_id WHERE b.key = %s GROUP BY 1",
            (midnight, board),
        ).fetchall()
        wanted = {
            early: busy.acknowledged[board, day] for early, day in ((True, before), (False, after))
        }
        assert dict(in_days) == {early: count for early, count in wanted.items() if count}
    assert tr.season("months", f"{last_month:%Y-%m}").state == "final", "another board's, due too"


class Service:
    """A worker and a server, which are started anew again and again."""

    def __init__(self, settings: Settings, conn: Connection) -> None:
        self._settings = settings
        self._conn = conn
        self.restarts = 0

    @contextmanager
    def up(self) -> Iterator[httpx.Client]:
        with (
            running_worker(self._settings),
            serving(self._settings) as url,
            httpx.Client(base_url=url, timeout=20.0, verify=NO_CERTIFICATES) as http,
        ):
            self.restarts += 1
            yield http

    def today(self, http: httpx.Client, **params: str) -> tuple[str, list[tuple[str, str]]]:
        """The day that is served, which is that of now, and its rows."""
        first = label_at(self._conn, "b")
        page = http.get("/v1/boards/b/top", params=params).raise_for_status().json()
        assert page["season"] in {first, label_at(self._conn, "b")}
        return page["season"], [(row["member"], row["score"]) for row in page["entries"]]


def test_restarts_around_midnight_neither_lose_a_day_nor_skip_one(
    tr: truerank.Truerank, conn: Connection, database_url: str, redis_url: str
) -> None:
    tr.create_board("b", seasons=["day"])
    tr.update_board("b", {"auto_close": True}, **BY)
    service = Service(
        Settings(
            database_url=database_url, redis_url=redis_url, board_cache_ms=1, close_ms=50,
            live_checks_percent=0,
        ),
        conn,
    )  # fmt: skip
    midnight = midnight_in(conn, 2, "b")
    receipt = tr.submit_score("b", event_id="e1", member="A", value=20)
    before, after = (label_at(conn, "b", at) for at in (midnight - TICK, midnight))
    assert [standing.season for standing in receipt.standings] == [before]

    shown = {before: [("A", "20")], after: []}
    while service.restarts < RESTARTS or datetime.now(UTC) < midnight:
        with service.up() as http:
            for source in ({}, {"source": "database"}):
                day, rows = service.today(http, **source)
                assert rows == shown[day]

    with service.up() as http:
        settlements = wait_until(lambda: tr.settlements("b", before), "the settlement")
        tr.submit_score("b", event_id="e2", member="B", value=1)
        assert service.today(http, source="database") == (after, [("B", "1")])
        past = http.get("/v1/boards/b/top", params={"season": before, "consistency": "settled"})
    assert [(row["rank"], row["member"], row["score"]) for row in past.json()["entries"]] == [
        (1, "A", "20")
    ]
    assert [(each.revision, each.population) for each in settlements] == [(1, 1)]
    actions = conn.execute("SELECT action FROM truerank.audit WHERE subject = %s", (before,))
    assert sorted(actions.fetchall()) == [("seal_season",), ("settle_season",)]
    assert [(season.label, season.state) for season in tr.seasons("b")] == [
        (after, "open"), (before, "final")
    ]  # fmt: skip

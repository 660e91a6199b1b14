"""How many standings a ranking has: known without counting them, and exact in every snapshot."""

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from typing import Any

import psycopg
import pytest

import truerank
from truerank import ScoreEvent, Truerank
from truerank.errors import EventRefused, MergeRefused
from truerank.schema import sql
from truerank.schema.migrate import migrate

Connection = psycopg.Connection[Any]

DIFFERENCES = "SELECT * FROM truerank.population_differences()"
FOLD = "SELECT truerank.fold_populations(10000)"
CHANGES = "SELECT count(*) FROM truerank.population_change"
VISIBLE = "SELECT count(*) FROM truerank.visible_standing AS s WHERE s.ranking = %s"
MEMBERS = [f"m{n}" for n in range(12)]
AUDIT = {"actor": "test", "reason": "a test"}


def one(conn: Connection, query: str, *parameters: object) -> Any:
    row = conn.execute(query, parameters).fetchone()
    assert row is not None
    return row[0]


def events(numbers: Iterator[int], *members: str) -> list[ScoreEvent]:
    return [ScoreEvent(event_id=f"e{next(numbers)}", member=m, value=1) for m in members]


class Life:
    """Random commands, each of which may add standings or remove them."""

    def __init__(self, tr: Truerank, conn: Connection, seed: int) -> None:
        self.tr, self.conn = tr, conn
        self.draw = random.Random(seed)
        self.numbers = count()
        self.boards = count()
        tr.create_board("b", seasons=("all", "day"))

    def step(self) -> None:
        self.draw.choice([
            self.submit, self.submit, self.undo, self.void, self.amend, self.merge, self.state,
            self.end, self.delete_board, self.fold,
        ])()  # fmt: skip

    def some(self) -> list[str]:
        return self.draw.sample(MEMBERS, self.draw.randint(1, 5))

    def submit(self) -> None:
        self.tr.submit_scores("b", events(self.numbers, *self.some()))

    def undo(self) -> None:
        with self.conn.transaction():
            truerank.submit_scores(self.conn, "b", events(self.numbers, *self.some()))
            with self.conn.transaction(force_rollback=True):
                truerank.submit_scores(self.conn, "b", events(self.numbers, *self.some()))
        with self.conn.transaction(force_rollback=True):
            truerank.submit_scores(self.conn, "b", events(self.numbers, *self.some()))

    def void(self) -> None:
        known = [f"e{n}" for n in range(next(self.numbers))]
        self.tr.void_events("b", self.draw.sample(known, min(len(known), 8)), **AUDIT)

    def amend(self) -> None:
        event = f"e{self.draw.randrange(next(self.numbers) + 1)}"
        with suppress(EventRefused):
            self.tr.amend_event(
                "b", event, 5, correction_id=f"amend {event}", actor="test", reason="a test"
            )

    def merge(self) -> None:
        first, second = self.draw.sample(MEMBERS, 2)
        with suppress(MergeRefused):
            self.tr.merge_members(first, second, timeout_s=0, **AUDIT)

    def state(self) -> None:
        change = self.draw.choice([
            self.tr.hide_member, self.tr.show_member, self.tr.ban_member, self.tr.unban_member,
        ])  # fmt: skip
        board = self.draw.choice(["b", None])
        change(self.draw.choice(MEMBERS), board=board, timeout_s=0, **AUDIT)

    def end(self) -> None:
        change = self.draw.choice([self.tr.reset_member, self.tr.delete_member])
        change(self.draw.choice(MEMBERS), timeout_s=0, **AUDIT)

    def delete_board(self) -> None:
        key = f"other {next(self.boards)}"
        self.tr.create_board(key, seasons=("all",))
        self.tr.submit_scores(key, events(self.numbers, *self.some()))
        self.tr.delete_board(key, **AUDIT)
        self.tr.purge_boards()

    def fold(self) -> None:
        self.conn.execute(FOLD)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_adds_or_removes_standings_is_counted(
    tr: Truerank, conn: Connection, seed: int
) -> None:
    life = Life(tr, conn, seed)
    rankings = {label: tr.season("b", label).ranking for label in ("all", None)}

    for _ in range(25):
        life.step()

        assert conn.execute(DIFFERENCES).fetchall() == []
        for label, ranking in rankings.items():
            total = tr.top("b", label, source="database").total
            assert total == one(conn, VISIBLE, ranking)


def test_totals_are_exact_in_every_snapshot_while_others_write_and_fold(
    tr: Truerank, connect: Callable[[], Connection]
) -> None:
    tr.create_board("b", seasons=("all",))
    numbers = count()
    delete = "SELECT truerank.set_member_state(%s, 'delete', 'test', 'a test')"

    def write(conn: Connection, seed: int) -> None:
        draw = random.Random(seed)
        for _ in range(40):
            with conn.transaction(force_rollback=draw.random() < 0.3):
                truerank.submit_scores(conn, "b", events(numbers, *draw.sample(MEMBERS, 4)))
            with suppress(psycopg.errors.SerializationFailure):
                conn.execute(delete, (draw.choice(MEMBERS),))

    def fold(conn: Connection) -> None:
        for _ in range(60):
            conn.execute("SELECT truerank.fold_populations(3)")

    def look(conn: Connection) -> list[Any]:
        found = []
        for _ in range(40):
            with conn.transaction():
                conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                found += conn.execute(DIFFERENCES).fetchall()
                found += conn.execute(DIFFERENCES).fetchall()
        return found

    with ThreadPoolExecutor(6) as threads:
        working = [threads.submit(write, connect(), seed) for seed in range(3)]
        working += [threads.submit(fold, connect()) for _ in range(2)]
        looking = threads.submit(look, connect())
        for work in working:
            work.result(120)

        assert looking.result(120) == []
    conn = connect()
    conn.execute(FOLD)
    assert (one(conn, CHANGES), conn.execute(DIFFERENCES).fetchall()) == (0, [])


def test_an_older_snapshot_keeps_its_total_through_writes_and_folds(
    tr: Truerank, conn: Connection, connect: Callable[[], Connection]
) -> None:
    numbers = count()
    tr.create_board("b", seasons=("all",))
    tr.submit_scores("b", events(numbers, "ann", "bob"))
    ranking = tr.season("b").ranking
    total = "SELECT total FROM truerank.read_page(%s, 8)"
    older = connect()
    with older.transaction():
        older.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        before = one(older, total, ranking)
        tr.submit_scores("b", events(numbers, "cid"))
        conn.execute(FOLD)

        after = one(older, total, ranking)

    assert (before, after, one(conn, total, ranking)) == (2, 2, 3)


def test_folding_leaves_one_row_per_ranking_and_none_of_those_that_are_empty(
    tr: Truerank, conn: Connection
) -> None:
    numbers = count()
    for key in ("b", "gone"):
        tr.create_board(key, seasons=("all",))
        tr.submit_scores(key, events(numbers, "ann"))
        tr.submit_scores(key, events(numbers, "bob"))
    conn.execute(FOLD)
    tr.delete_board("gone", **AUDIT)
    tr.purge_boards()

    folded = one(conn, FOLD)

    assert folded == 1
    assert conn.execute("SELECT n FROM truerank.population").fetchall() == [(2,)]
    assert (one(conn, CHANGES), one(conn, FOLD)) == (0, 0)


def test_folding_passes_over_what_another_session_is_at_work_on(
    tr: Truerank, conn: Connection, connect: Callable[[], Connection]
) -> None:
    tr.create_board("b", seasons=("all",))
    tr.submit_scores("b", events(count(), "ann"))
    other = connect()
    with other.transaction():
        assert one(other, FOLD) == 1

        assert one(conn, FOLD) == 0


def test_a_reader_takes_in_what_no_worker_did(tr: Truerank, conn: Connection) -> None:
    tr.create_board("b", seasons=("all",))
    tr.submit_scores("b", events(count(), "ann"))
    conn.execute(
        "INSERT INTO truerank.population_change SELECT %s, i %% 2 * 2 - 1"
        " FROM generate_series(1, 1200) AS i",
        (tr.season("b").ranking,),
    )

    first = tr.top("b", source="database")

    assert (first.total, one(conn, CHANGES)) == (1, 0)
    assert tr.top("b", source="database").total == 1


def test_truncated_standings_are_no_population(tr: Truerank, conn: Connection) -> None:
    numbers = count()
    tr.create_board("b", seasons=("all",))
    tr.submit_scores("b", events(numbers, "ann"))
    conn.execute(FOLD)
    tr.submit_scores("b", events(numbers, "bob"))

    conn.execute("TRUNCATE truerank.standing")

    assert tr.top("b", source="database").total == 0
    assert conn.execute(DIFFERENCES).fetchall() == []


def test_a_population_that_does_not_fit_is_told(tr: Truerank, conn: Connection) -> None:
    tr.create_board("b", seasons=("all",))
    tr.submit_scores("b", events(count(), "ann", "bob"))
    with conn.transaction():
        conn.execute("SET LOCAL session_replication_role = replica")  # triggers are off

        conn.execute("DELETE FROM truerank.standing WHERE member = 'ann'")

    assert conn.execute(DIFFERENCES).fetchall() == [(tr.season("b").ranking, 2, 1)]


def test_standings_of_before_the_migration_are_counted_by_it(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sql.migrations()
    with monkeypatch.context() as earlier:
        earlier.setattr(sql, "migrations", lambda: [f for f in files if f.name < "0013"])
        earlier.setattr(sql, "functions", list)
        migrate(empty_database_url)
    with psycopg.connect(empty_database_url, autocommit=True) as conn:
        conn.execute(
            "INSERT INTO truerank.standing"
            " SELECT r, 1, 1, now(), 1, true, 'm' || m, int8send(m)"
            " FROM generate_series(1, 3) AS r, generate_series(1, r * 10) AS m"
        )

        migrate(empty_database_url)

        assert conn.execute(DIFFERENCES).fetchall() == []
        found = conn.execute("SELECT * FROM truerank.population ORDER BY ranking").fetchall()
        assert found == [(1, 10), (2, 20), (3, 30)]

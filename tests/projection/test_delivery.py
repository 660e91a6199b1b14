"""The outbox, read by the difference of snapshots: all that was committed, once, when visible."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import truerank
from tests.projection.pipeline import Pipeline, differences
from truerank.model import ScoreEvent
from truerank.outbox.snapshot import Snapshot
from truerank.outbox.ticks import Batch, Part, Tick, read_batch, take_tick
from truerank.projection.held import chunks

WRITERS = 3
_members = count(1)


@dataclass
class Writer:
    """One connection, what it wrote, and what a rollback to its savepoint would leave of that."""

    conn: psycopg.Connection[Any]
    written: list[str] = field(default_factory=list)
    saved: list[int] = field(default_factory=list)

    @property
    def open(self) -> bool:
        return self.conn.info.transaction_status != psycopg.pq.TransactionStatus.IDLE

    def write(self) -> None:
        member = f"m{next(_members)}"
        event = ScoreEvent(event_id=member, member=member, value=1)
        truerank.submit_score(self.conn, "b", event)
        self.written.append(member)

    def savepoint(self) -> None:
        self.conn.execute(f"SAVEPOINT s{len(self.saved)}")
        self.saved.append(len(self.written))

    def back(self) -> None:
        if self.saved:
            del self.written[self.saved[-1] :]
            self.conn.execute(f"ROLLBACK TO SAVEPOINT s{len(self.saved) - 1}")

    def release(self) -> None:
        if self.saved:
            self.saved.pop()
            self.conn.execute(f"RELEASE SAVEPOINT s{len(self.saved)}")

    def read(self) -> None:
        self.conn.execute("SELECT count(*) FROM truerank.standing")

    def end(self, *, commit: bool) -> list[str]:
        """End the transaction; the members that this made visible."""
        written, self.written, self.saved = self.written, [], []
        if commit:
            self.conn.commit()
            return written
        self.conn.rollback()
        return []


def members(batch: Batch) -> list[str]:
    """Who is in a batch of boards without tie-breaks, in order of name."""
    rows = [row for parts in batch.parts.values() for part in parts for row in part.rows]
    return sorted(row[9 + 24 :].decode() for row in rows)


@dataclass
class Reader:
    """Follows the outbox of group 0, as a worker with one copy would."""

    conn: psycopg.Connection[Any]
    at: Tick
    reached: str
    rows_max: int = 1_000_000

    @classmethod
    def begin(cls, conn: psycopg.Connection[Any], rows_max: int = 1_000_000) -> "Reader":
        tick = take_tick(conn, since=None, anyway=True)
        assert tick is not None
        return cls(conn, tick, tick.snapshot, rows_max)

    def read(self) -> list[str]:
        """Everything up to a new tick, in as many batches as it takes."""
        delivered: list[str] = []
        while True:
            tick = take_tick(self.conn, since=None, anyway=True)
            assert tick is not None
            batch = read_batch(
                self.conn,
                since=self.reached,
                until=tick.snapshot,
                groups=[0],
                ticks=[(self.at.id, self.at.nonce), (tick.id, tick.nonce)],
                rows_max=self.rows_max,
            )
            assert batch.proven
            assert Snapshot.parse(batch.reached).contains(Snapshot.parse(self.reached))
            assert Snapshot.parse(tick.snapshot).contains(Snapshot.parse(batch.reached))
            delivered += members(batch)
            self.at, self.reached = tick, batch.reached
            if batch.reached == tick.snapshot:
                return sorted(delivered)


@pytest.fixture
def writers(single: Pipeline) -> list[Writer]:
    return [Writer(single.connection()) for _ in range(WRITERS)]


STEPS = st.one_of(
    st.tuples(
        st.integers(0, WRITERS - 1),
        st.sampled_from(["write", "write", "savepoint", "back", "release", "read"]),
    ),
    st.tuples(st.integers(0, WRITERS - 1), st.sampled_from(["commit", "commit", "rollback"])),
    st.just((-1, "tick")),
)


@given(steps=st.lists(STEPS, min_size=4, max_size=30), rows_max=st.sampled_from([1, 2, 1000]))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_delivered_at_a_tick_is_what_was_committed_since_the_last(
    single: Pipeline, writers: list[Writer], steps: list[tuple[int, str]], rows_max: int
) -> None:
    reader = Reader.begin(single.conn, rows_max)
    committed: list[str] = []

    for index, step in [*steps, (-1, "tick")]:
        if step == "tick":
            assert reader.read() == sorted(committed)
            committed = []
        elif step in {"commit", "rollback"}:
            committed += writers[index].end(commit=step == "commit")
        else:
            getattr(writers[index], step)()

    for writer in writers:
        committed += writer.end(commit=True)
    assert reader.read() == sorted(committed)
    assert reader.read() == []


def test_a_transaction_that_commits_late_is_delivered_in_the_batch_that_sees_it(
    single: Pipeline, writers: list[Writer]
) -> None:
    # PRJ-2
    early, late, _ = writers
    reader = Reader.begin(single.conn)

    late.write()  # draws the lower numbers
    early.write()
    quick = early.end(commit=True)
    assert reader.read() == quick
    assert reader.read() == []

    slow = late.end(commit=True)
    assert reader.read() == slow


def test_what_commits_between_a_tick_and_its_batch_is_left_to_the_next(
    single: Pipeline, writers: list[Writer]
) -> None:
    """Nothing is delivered that its tick doesn't cover, or a fail-back would leave it behind."""
    old, new, _ = writers
    old.write()
    start = whole_tick(single)
    new.write()
    end = whole_tick(single)
    committed = old.end(commit=True) + new.end(commit=True)
    rest: Any = {"groups": [0], "ticks": [], "rows_max": 1000}

    covered = read_batch(single.conn, since=start.snapshot, until=end.snapshot, **rest)
    later = read_batch(single.conn, since=end.snapshot, until=whole_tick(single).snapshot, **rest)

    assert (members(covered), members(later)) == ([], sorted(committed))


def test_a_transaction_is_delivered_whole_with_what_its_savepoints_left(
    single: Pipeline, writers: list[Writer]
) -> None:
    writer = writers[0]
    reader = Reader.begin(single.conn, rows_max=1)

    for _ in range(3):
        writer.savepoint()
        writer.write()
        writer.write()
        assert reader.read() == []
    writer.back()
    writer.release()
    written = list(writer.written)
    assert len(written) == 4

    assert writer.end(commit=True) == written
    assert reader.read() == sorted(written)


def test_a_held_snapshot_delays_nobody(single: Pipeline, writers: list[Writer]) -> None:
    holder, writer, _ = writers
    holder.conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    holder.read()
    reader = Reader.begin(single.conn)

    for _ in range(5):
        writer.write()
        committed = writer.end(commit=True)
        assert reader.read() == committed


def test_an_open_transaction_of_another_kind_delays_nobody(
    single: Pipeline, writers: list[Writer]
) -> None:
    holder, writer, _ = writers
    holder.conn.execute("CREATE TEMPORARY TABLE held AS SELECT 1")  # has a transaction id
    reader = Reader.begin(single.conn)

    for _ in range(5):
        writer.write()
        committed = writer.end(commit=True)
        assert reader.read() == committed


def test_a_batch_is_cut_between_transactions_and_ends_at_the_same(
    single: Pipeline, writers: list[Writer]
) -> None:
    whole, pieces = Reader.begin(single.conn), Reader.begin(single.conn, rows_max=2)
    committed: list[str] = []
    for size in (1, 5, 1, 1, 3, 2):
        for _ in range(size):
            writers[0].write()
        committed += writers[0].end(commit=True)
    writers[1].write()
    writers[0].write()
    committed += writers[0].end(commit=True)

    batch = read_batch(
        single.conn,
        since=pieces.reached,
        until=whole_tick(single).snapshot,
        groups=[0],
        ticks=[],
        rows_max=2,
    )

    assert members(batch) == committed[:1], "the second transaction is too large to be cut"
    assert pieces.read() == whole.read() == sorted(committed)


def whole_tick(single: Pipeline) -> Tick:
    tick = take_tick(single.conn, since=None, anyway=True)
    assert tick is not None
    return tick


def test_a_standing_that_changed_often_is_in_a_batch_once_with_its_newest_version(
    single: Pipeline,
) -> None:
    reader = Reader.begin(single.conn)
    for value in range(1, 6):
        single.submit("b", {"ann": value, f"other {value}": 1})
    ((version,),) = single.conn.execute(
        "SELECT version FROM truerank.standing WHERE member = 'ann'"
    ).fetchall()

    batch = read_batch(
        single.conn,
        since=reader.reached,
        until=whole_tick(single).snapshot,
        groups=[0],
        ticks=[],
        rows_max=1000,
    )

    (part,) = batch.parts[0]
    assert len(part.rows) == 6
    assert [int.from_bytes(row[1:9]) for row in part.rows if row.endswith(b"ann")] == [version]


def test_a_batch_holds_only_the_groups_asked_for(several: Pipeline) -> None:
    start = whole_tick(several)
    for group in range(3):
        several.submit(f"b{group}", {f"m{group}": 1})

    batch = read_batch(
        several.conn,
        since=start.snapshot,
        until=whole_tick(several).snapshot,
        groups=[0, 2],
        ticks=[],
        rows_max=1000,
    )

    assert members(batch) == ["m0", "m0", "m2", "m2"], "in all time and this month"


@pytest.mark.parametrize("broken", ["gone", "nonce"])
def test_a_batch_proves_its_ticks_in_its_own_snapshot(single: Pipeline, broken: str) -> None:
    start, end = whole_tick(single), whole_tick(single)
    read: Any = {"since": start.snapshot, "until": end.snapshot, "groups": [0], "rows_max": 10}
    named = [(start.id, start.nonce), (end.id, end.nonce)]
    assert read_batch(single.conn, **read, ticks=named).proven

    if broken == "gone":
        single.conn.execute("DELETE FROM truerank.tick WHERE id = %s", (start.id,))
    else:
        single.conn.execute(
            "UPDATE truerank.tick SET nonce = gen_random_uuid() WHERE id = %s", (end.id,)
        )

    assert not read_batch(single.conn, **read, ticks=named).proven


def test_a_tick_is_taken_only_where_rows_wait_or_somebody_wants_one(single: Pipeline) -> None:
    start = whole_tick(single)
    assert take_tick(single.conn, since=start.snapshot, anyway=False) is None

    single.submit("b", {"ann": 1})

    assert take_tick(single.conn, since=start.snapshot, anyway=False) is not None


def test_a_late_commit_makes_a_tick_due(single: Pipeline, writers: list[Writer]) -> None:
    writers[0].write()
    start = whole_tick(single)
    assert take_tick(single.conn, since=start.snapshot, anyway=False) is None

    writers[0].end(commit=True)

    assert take_tick(single.conn, since=start.snapshot, anyway=False) is not None


@pytest.mark.parametrize("rows_max", [1, 3, 1000])
def test_the_projection_catches_up_in_pieces(single: Pipeline, rows_max: int) -> None:
    projector = single.projector(batch_rows_max=rows_max, call_rows_max=2)
    single.settle(projector)
    for i in range(12):
        single.submit("b", {f"m{j}": i * j - 20 for j in range(i % 4 + 1)})
    assert differences(single)

    generation = single.generation()
    single.settle(projector)

    assert single.generation() == generation, "nothing was filled anew"


def test_where_a_batch_was_cut_the_age_is_that_of_what_is_shown_whole(single: Pipeline) -> None:
    projector = single.projector(batch_rows_max=3, heartbeat_ms=1)
    single.submit("b", {"m0": 1})
    single.settle(projector)
    whole = single.meta()
    for i in range(12):
        single.submit("b", {f"m{i}": 1})

    projector.step()

    cut = single.meta()
    assert cut["snapshot"] != whole["snapshot"]
    assert [cut[name] for name in ("tick", "through", "time")] == [
        whole[name] for name in ("tick", "through", "time")
    ]
    page = single.client.top("b", limit=100, source="projection")
    assert page.total < 12
    single.settle(projector)
    assert int(single.meta()["time"]) > int(whole["time"])


def test_a_large_batch_is_split_without_copying_it_over_and_over() -> None:
    class Rows(list[bytes]):
        copied = 0

        def __getitem__(self, at: Any) -> Any:
            taken = super().__getitem__(at)
            Rows.copied += len(taken) if isinstance(at, slice) else 0
            return taken

    rows = Rows(bytes([n % 251]) for n in range(10_000))

    calls = list(chunks([Part(1, 0, Rows(rows[:4_999])), Part(2, 0, rows)], 400))

    assert [sum(len(part.rows) for part in call) for call in calls] == [400] * 37 + [199]
    assert [
        row for call in calls for part in call if part.ranking == 2 for row in part.rows
    ] == rows
    assert Rows.copied < 3 * 15_000


@pytest.fixture(autouse=True)
def _ended(writers: list[Writer]) -> Iterator[None]:
    yield
    for writer in writers:
        writer.conn.rollback()

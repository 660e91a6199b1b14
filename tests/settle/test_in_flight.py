"""Whatever a transaction was about when its season was sealed: it is settled whole, or not at all.

Of each kind of command, at each isolation level it may have, at each step of a close.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import IsolationLevel

import truerank
from tests.settle.conftest import Connection, Months
from truerank import ScoreEvent
from truerank.command import attach as attaching
from truerank.command.attach import AttachmentSpec

BY: Any = Months.BY
Connect = Callable[..., Connection]
Table = list[tuple[str, int]]
RC, RR, SER = (
    IsolationLevel.READ_COMMITTED,
    IsolationLevel.REPEATABLE_READ,
    IsolationLevel.SERIALIZABLE,
)
BEFORE: Table = [("A", 5), ("B", 3), ("C", 1)]

_SEAL = "SELECT outcome FROM truerank.seal_season('b', %s, true, 'test', 'over')"
_BARRIER = "SELECT truerank.pass_barrier('b', %s)"
_SETTLE = "SELECT outcome FROM truerank.settle_season('b', %s, 'test', 'over')"
_REVISE = "SELECT FROM truerank.revise_season('b', %s, '{}', NULL, NULL, NULL, 'a', 'r')"
_REFUSED = "TR002"  # what a trigger raises, with the code as its detail
_OWN = "CREATE TABLE public.own (id text PRIMARY KEY, who text, points bigint, at timestamptz)"


@dataclass(frozen=True)
class Month:
    """A season of 2024, whose events have ids of their own."""

    number: int

    @property
    def label(self) -> str:
        return f"2024-{self.number:02}"

    @property
    def at(self) -> datetime:
        return datetime(2024, self.number, 15, tzinfo=UTC)

    def event(self, name: str, member: str, value: int) -> ScoreEvent:
        return ScoreEvent(
            event_id=f"{self.label} {name}", member=self.member(member), value=value,
            occurred_at=self.at,
        )  # fmt: skip

    def member(self, name: str) -> str:
        """Everybody has scores in one season alone, so that no other is in the way."""
        return f"{name} {self.label}"

    def table(self, rows: list[tuple[Any, ...]]) -> Table:
        return [(str(member).partition(" ")[0], int(score)) for member, score in rows]


def called(sql: LiteralString, *names: str) -> Callable[[Connection, Month], object]:
    """A call of SQL that is given ids of members."""
    return lambda conn, month: conn.execute(sql, [month.member(name) for name in names])


class Refused(Exception):
    """A command was refused because of its season."""


def taken(rows: Iterable[tuple[Any, ...]]) -> None:
    """Fail with the first code there is."""
    for (code,) in rows:
        if code is not None:
            assert code in {"season_sealed", "season_final"}
            raise Refused(code)


@contextmanager
def refused(*, stale: bool) -> Iterator[None]:
    """The block ends with a refusal; or, from a snapshot that is too old, with one to retry."""
    with pytest.raises(psycopg.errors.SerializationFailure if stale else Refused):
        yield


def single(conn: Connection, month: Month) -> None:
    (receipt,) = truerank.submit_scores(conn, "b", [month.event("new", "A", 10)])
    taken([(receipt.code,)])


def batch(conn: Connection, month: Month) -> None:
    events = [month.event(f"new {name}", name, 10) for name in "CAD"]
    taken((receipt.code,) for receipt in truerank.submit_scores(conn, "b", events))


def with_a_row_of_ones_own(conn: Connection, month: Month) -> None:
    conn.execute("INSERT INTO public.own (id) VALUES (%s)", (month.label,))
    rows = conn.execute(
        "SELECT code FROM truerank.submit_score('b', %s, %s, 10, %s)",
        (f"{month.label} new", month.member("A"), month.at),
    )
    taken(rows.fetchall())


def by_trigger(conn: Connection, month: Month) -> None:
    row = (month.label, month.member("A"), month.at)
    try:
        conn.execute("INSERT INTO public.own VALUES (%s, %s, 10, %s)", row)
    except psycopg.DatabaseError as exc:
        taken([(exc.diag.message_detail,)] if exc.sqlstate == _REFUSED else [])
        raise


def void(conn: Connection, month: Month) -> None:
    rows = conn.execute(
        "SELECT code FROM truerank.correct_events("
        "'b', ARRAY[%s], NULL, NULL, NULL, 'a', 'r', '{final}')",
        (f"{month.label} A",),
    )
    taken(rows.fetchall())


def amend(conn: Connection, month: Month) -> None:
    rows = conn.execute(
        "SELECT code FROM truerank.correct_events("
        "'b', ARRAY[%s], ARRAY[%s], ARRAY[50], NULL, 'a', 'r', '{final}')",
        (f"{month.label} A", f"{month.label} correction"),
    )
    taken(rows.fetchall())


@dataclass(frozen=True)
class Kind:
    """A command, and what the season comes to with it."""

    does: Callable[[Connection, Month], object]
    after: Table
    levels: tuple[IsolationLevel, ...] = (RC,)


GONE: Table = [("B", 3), ("C", 1)]
TEN: Table = [("A", 15), ("B", 3), ("C", 1)]
ALL = (RC, RR, SER)
WRITES = {
    "single": Kind(single, TEN, ALL),
    "batch": Kind(batch, [("A", 15), ("C", 11), ("D", 10), ("B", 3)], ALL),
    "caller": Kind(with_a_row_of_ones_own, TEN, ALL),
    "trigger": Kind(by_trigger, TEN, ALL),
}
CHANGES = {
    "void": Kind(void, GONE, ALL),
    "amend": Kind(amend, [("A", 50), *GONE], ALL),
    "reset": Kind(
        called("SELECT FROM truerank.set_member_state(%s, 'reset', 'a', 'r')", "A"), GONE
    ),
    "delete": Kind(
        called("SELECT FROM truerank.set_member_state(%s, 'delete', 'a', 'r')", "A"), GONE
    ),
    "erase": Kind(called("SELECT truerank.erase_member(%s, 'a', 'r')", "A"), GONE),
    "merge": Kind(
        called("SELECT truerank.merge_members(%s, %s, 'a', 'r')", "C", "B"), [("A", 5), ("B", 4)]
    ),
    "rename": Kind(
        called("SELECT truerank.merge_members(%s, %s, 'a', 'r')", "C", "Z"),
        [("A", 5), ("B", 3), ("Z", 1)],
    ),
}


class Closing:
    """A board by month, and the steps of a close, each a transaction."""

    def __init__(self, months: Months, connect: Connect) -> None:
        self.months = months
        self.conn = months.conn
        self.connect = connect
        self.months.tr.create_board("b", seasons=["month"])
        self.conn.execute(_OWN)
        self._used = iter(range(1, 13))

    def attach(self) -> None:
        """From now on rows of the callers' table are events."""
        spec = AttachmentSpec(
            board="b", table="public.own", event_id="id", member="who", value="points",
            occurred_at="at", on_refusal="raise",
        )  # fmt: skip
        self.months.tr.run(attaching.attach_table(spec, **BY))

    def month(self) -> Month:
        """A season that nobody has closed, with scores."""
        month = Month(next(self._used))
        events = [month.event(name, name, value) for name, value in BEFORE]
        truerank.submit_scores(self.conn, "b", events)
        return month

    def seal(self, month: Month) -> object:
        return self._one(_SEAL, month)

    def barrier(self, month: Month) -> object:
        return self._one(_BARRIER, month)

    def settle(self, month: Month, conn: Connection | None = None) -> object:
        """In a transaction of its own; or in one that is open."""
        if conn is not None:
            return self._one(_SETTLE, month, conn)
        with self.at(RR) as other, other.transaction():
            return self._one(_SETTLE, month, other)

    def finish(self, month: Month) -> None:
        """What is left of a close, as often as it takes."""
        closed = self.months.tr.close_season("b", month.label, actor="test", timeout_s=30.0)
        assert (closed.state, closed.revision) == ("final", 1)

    def at(self, level: IsolationLevel) -> Connection:
        conn = self.connect()
        conn.isolation_level = level
        return conn

    def standings(self, month: Month) -> Table:
        rows = self.conn.execute(
            "SELECT member, score FROM truerank.standing WHERE ranking = %s"
            " ORDER BY sort_key, member",
            (self.months.tr.season("b", month.label).ranking,),
        ).fetchall()
        return month.table(rows)

    def settled(self, month: Month) -> Table:
        """The places, which the events prove, and which are what the standings are."""
        found = self.months.tr.settlement_places("b", month.label)
        table = month.table([(place.member, place.score) for place in found.places])
        assert self.months.proven(month.label) == [(1, True, True)]
        assert table == self.standings(month)
        return table

    def _one(self, sql: LiteralString, month: Month, conn: Connection | None = None) -> object:
        ((outcome,),) = (conn or self.conn).execute(sql, (month.label,)).fetchall()
        return outcome


@pytest.fixture
def closing(tr: truerank.Truerank, conn: Connection, connect: Connect) -> Closing:
    return Closing(Months(tr, conn, made=True), connect)


@pytest.mark.parametrize("kind", [*WRITES, *CHANGES])
def test_what_was_under_way_at_the_seal_is_waited_for_and_settled_as_it_ends(
    closing: Closing, kind: str
) -> None:
    command = {**WRITES, **CHANGES}[kind]
    if kind == "trigger":
        closing.attach()
    for level in command.levels:
        for commits in (True, False):
            month = closing.month()
            writer, early = closing.at(level), closing.at(RR)
            with early.transaction(force_rollback=True):
                with writer.transaction(force_rollback=not commits):
                    writer.execute("SELECT FROM truerank.board")  # takes the snapshot
                    command.does(writer, month)
                    assert closing.seal(month) == "sealed"
                    assert closing.barrier(month) == "waiting"
                    assert closing.settle(month) == "no_barrier"
                    early.execute("SELECT FROM truerank.board")
                # A closer whose snapshot is older than the barrier doesn't see the writer.
                assert closing.barrier(month) == "passed"
                with pytest.raises(psycopg.errors.SerializationFailure):
                    closing.settle(month, early)

            closing.finish(month)

            assert closing.settled(month) == (command.after if commits else BEFORE)


@pytest.mark.parametrize("kind", WRITES)
def test_a_writer_that_comes_to_it_after_the_seal_adds_nothing_at_any_step(
    closing: Closing, kind: str
) -> None:
    if kind == "trigger":
        closing.attach()
    steps = [closing.seal, closing.barrier, closing.finish]
    for level, count in product(ALL, (1, 2, 3)):
        month = closing.month()
        writer = closing.at(level)
        with refused(stale=level is not RC), writer.transaction():
            writer.execute("SELECT FROM truerank.event")
            for step in steps[:count]:
                step(month)
            WRITES[kind].does(writer, month)

        closing.finish(month)

        assert closing.settled(month) == BEFORE


@pytest.mark.parametrize("kind", ["void", "amend"])
def test_a_correction_that_comes_after_the_seal_is_settled_and_one_after_that_is_refused(
    closing: Closing, kind: str
) -> None:
    command = CHANGES[kind]
    for level, knows in product(ALL, (True, False)):
        month = closing.month()
        corrector = closing.at(level)
        stale = level is not RC and not knows
        with refused(stale=stale) if stale else nullcontext(), corrector.transaction():
            if not knows:
                corrector.execute("SELECT FROM truerank.event")
            closing.seal(month)
            command.does(corrector, month)
            assert closing.barrier(month) == "waiting"
            with pytest.raises(psycopg.errors.LockNotAvailable):
                closing.settle(month)
        closing.finish(month)
        assert closing.settled(month) == (BEFORE if stale else command.after)

        month = closing.month()
        with refused(stale=stale), corrector.transaction():
            if not knows:
                corrector.execute("SELECT FROM truerank.event")
            closing.finish(month)
            command.does(corrector, month)
        assert closing.settled(month) == BEFORE


@pytest.mark.parametrize("kind", CHANGES)
def test_a_change_between_the_seal_and_the_settlement_is_in_it(closing: Closing, kind: str) -> None:
    command = CHANGES[kind]
    for level in command.levels:
        # While it is open nobody settles without it.
        month = closing.month()
        changer = closing.at(level)
        closing.seal(month)
        assert closing.barrier(month) == "passed"
        with changer.transaction():
            command.does(changer, month)
            with pytest.raises(psycopg.errors.LockNotAvailable):
                closing.settle(month)
        closing.finish(month)
        assert closing.settled(month) == command.after

        # A closer whose snapshot is older than it fails.
        month = closing.month()
        early = closing.at(RR)
        closing.seal(month)
        assert closing.barrier(month) == "passed"
        with early.transaction(force_rollback=True):
            early.execute("SELECT FROM truerank.board")
            with closing.at(level) as changer, changer.transaction():
                command.does(changer, month)
            with pytest.raises(psycopg.errors.SerializationFailure):
                closing.settle(month, early)
        closing.finish(month)
        assert closing.settled(month) == command.after


@pytest.mark.parametrize("kind", CHANGES)
def test_a_change_after_the_settlement_moves_no_place_of_it(closing: Closing, kind: str) -> None:
    command = CHANGES[kind]
    month = closing.month()
    closing.finish(month)

    with refused(stale=False) if kind in {"void", "amend"} else nullcontext():
        command.does(closing.conn, month)

    places = closing.months.tr.settlement_places("b", month.label).places
    assert [int(place.score) for place in places] == [score for _, score in BEFORE]
    assert closing.months.proven(month.label) == [(1, True, True)]


@pytest.mark.parametrize("kind", ["reset", "delete", "erase"])
def test_no_revision_is_made_from_a_snapshot_that_has_somebody_who_left(
    closing: Closing, kind: str
) -> None:
    month = closing.month()
    closing.finish(month)
    early = closing.at(RR)

    with early.transaction(force_rollback=True):
        early.execute("SELECT FROM truerank.board")
        CHANGES[kind].does(closing.conn, month)
        with pytest.raises(psycopg.errors.SerializationFailure):
            early.execute(_REVISE, (month.label,))
    (revised,) = closing.months.tr.revise_season("b", month.label, **BY)

    assert revised.revision == 2
    places = closing.months.tr.settlement_places("b", month.label).places
    assert month.table([(place.member, place.score) for place in places]) == GONE
    assert closing.months.proven(month.label) == [(1, True, True), (2, True, True)]


@pytest.mark.parametrize("kind", [name for name, each in CHANGES.items() if each.levels == (RC,)])
def test_what_takes_a_members_past_away_is_not_done_from_a_snapshot(
    closing: Closing, kind: str
) -> None:
    month = closing.month()

    for level in (RR, SER):
        changer = closing.at(level)
        with pytest.raises(psycopg.errors.ActiveSqlTransaction), changer.transaction():
            CHANGES[kind].does(changer, month)

    closing.finish(month)
    assert closing.settled(month) == BEFORE

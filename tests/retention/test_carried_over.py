"""Whatever is forgotten and whenever: standings are those of the whole history, to the byte.

A board that forgets is compared with one of the same rules that remembers everything. Both get
the same commands, except those that the first refuses because the events are gone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count, product
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import truerank
from truerank import Order, Outcome, ScoreEvent, TieBreak

DAY = timedelta(days=1)
RETENTIONS = (60, 30, 12, 5, 1)  # days: a horizon that rises
TIES = [(), (Order.DESC,), (Order.ASC, Order.DESC)]
GONE = {"occurred_at_too_old", "history_incomplete", "event_unknown"}


@dataclass(frozen=True)
class Twins:
    """Two boards of the same rules: one forgets."""

    forgets: str
    remembers: str
    ties: tuple[Order, ...]


@dataclass(frozen=True)
class Correction:
    """Void an event, or let it count with another row."""

    event: int
    row: tuple[int, ...] | None


@dataclass(frozen=True)
class Prune:
    """Forget what is older than so many days, in slices of so many events."""

    days: int
    rows_max: int


@pytest.fixture
def twins(tr: truerank.Truerank) -> dict[object, Twins]:
    """Twins of every kind, made once for all histories."""
    numbers = count()
    made: dict[object, Twins] = {}
    for operator, order, ties in product(["sum", "best", "latest"], Order, TIES):
        number = next(numbers)
        pair = Twins(f"forgets{number}", f"remembers{number}", ties)
        for key in (pair.forgets, pair.remembers):
            tr.create_board(
                key,
                operator=operator,
                order=order,
                seasons=("all", "week", "month"),
                tie_breaks=[TieBreak(name=f"t{i}", order=o) for i, o in enumerate(ties)],
            )
        made[operator, order, ties] = pair
    return made


@st.composite
def histories(draw: st.DrawFn, ties: int) -> list[Any]:
    """Batches with repeats, corrections, and ever higher horizons, in any order."""
    values = draw(st.sampled_from([st.integers(0, 1), st.integers(-2, 2)]))
    hours = st.sampled_from([70 * 24, 61 * 24, 29 * 24, 13 * 24, 6 * 24, 4 * 24, 30, 20, 1, 0])
    events = draw(
        st.lists(
            st.tuples(st.sampled_from("AB"), values, hours, st.tuples(*[values] * ties)),
            min_size=3,
            max_size=18,
        )
    )
    numbers = st.integers(0, len(events) - 1)
    order = draw(st.permutations(range(len(events)))) + draw(st.lists(numbers, max_size=5))
    commands: list[Any] = [(number, *events[number]) for number in order]
    rows = st.none() | st.tuples(values, *[values] * ties)
    for correction in draw(st.lists(st.builds(Correction, numbers, rows), max_size=6)):
        commands.insert(draw(st.integers(0, len(commands))), correction)
    days = draw(st.lists(st.sampled_from(RETENTIONS), min_size=1, max_size=3, unique=True))
    places = sorted(draw(st.lists(st.integers(0, len(commands)), min_size=3, max_size=3)))
    for place, after in reversed(list(zip(places, sorted(days, reverse=True), strict=False))):
        commands.insert(place, Prune(after, draw(st.integers(1, 4))))
    last = [Prune(1, 3), draw(st.builds(Correction, numbers, rows))]
    return commands + last


@contextmanager
def undone(conn: psycopg.Connection[Any]) -> Iterator[None]:
    with conn.transaction(force_rollback=True):
        yield


def prune(conn: psycopg.Connection[Any], board: str, order: Prune) -> None:
    """One whole walk, as `prune_events` does it, in the transaction that is open."""
    conn.execute(
        "UPDATE truerank.board SET retention = make_interval(days => %s) WHERE key = %s",
        (order.days, board),
    )
    conn.execute(
        "SELECT truerank.raise_horizon(id) FROM truerank.board WHERE key = %s", (board,)
    ).fetchone()
    walking = """
        SELECT truerank.prune_slice(b, p.after_member, %s)
        FROM truerank.board AS b JOIN truerank.pruning AS p ON p.board_id = b.id
        WHERE b.key = %s AND p.ended_at IS NULL"""
    while conn.execute(walking, (order.rows_max, board)).fetchone():
        pass


def correct(
    conn: psycopg.Connection[Any], board: str, name: str, correction: Correction
) -> tuple[str, str | None]:
    row = correction.row
    ((outcome, code),) = conn.execute(
        "SELECT DISTINCT outcome, code FROM truerank.correct_events(%s, %s::text[], %s::text[],"
        " %s::numeric[], %s::bigint[], 'tester', 'test')",
        (
            board,
            [f"e{correction.event}"],
            [name],
            None if row is None else [row[0]],
            list(row[1:]) if row and row[1:] else None,
        ),
    ).fetchall()
    return outcome, code


def standings(conn: psycopg.Connection[Any], board: str) -> dict[Any, Any]:
    """By season and member all that is stored, but for what only the board's events decide."""
    rows = conn.execute(
        """SELECT s.ranking & (1::bigint << 36) - 1, s.member, s.score, s.ties, s.event_at,
                  s.moved, substr(s.sort_key, 1, length(s.sort_key) - 8)
           FROM truerank.board AS b JOIN truerank.standing AS s ON s.ranking >> 36 = b.id
           WHERE b.key = %s""",
        (board,),
    ).fetchall()
    return {(season, member): rest for season, member, *rest in rows}


def recomputed(conn: psycopg.Connection[Any], board: str) -> list[Any]:
    """Standings of seasons that are not over before the horizon and differ from a recompute."""
    return conn.execute(
        """SELECT s, f
           FROM truerank.board AS b
           JOIN truerank.standing AS s ON s.ranking >> 36 = b.id
           JOIN LATERAL truerank.season_of_ranking(b, s.ranking) AS p
             ON p.ends_at > b.history_from
           LEFT JOIN LATERAL truerank.fold_events(
               b, s.ranking, truerank.names_of(s.member), p.starts_at, p.ends_at) AS f ON true
           WHERE b.key = %s
             AND (s.score, s.ties, s.event_at, s.event_position, s.moved, s.sort_key)
                 IS DISTINCT FROM
                 (f.score, f.ties, f.event_at, f.event_position, f.moved, f.sort_key)""",
        (board,),
    ).fetchall()


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_standings_are_those_of_the_whole_history_whatever_was_forgotten(
    conn: psycopg.Connection[Any], twins: dict[object, Twins], data: st.DataObject
) -> None:
    pair = twins[data.draw(st.sampled_from(list(twins)))]
    commands = data.draw(histories(len(pair.ties)))
    now = datetime.now(UTC)

    with undone(conn):
        for number, command in enumerate(commands):
            if isinstance(command, Prune):
                prune(conn, pair.forgets, command)
            elif isinstance(command, Correction):
                name = f"correction {number}"
                found = correct(conn, pair.forgets, name, command)
                if found[1] not in GONE:
                    assert correct(conn, pair.remembers, name, command) == found
            else:
                event_n, member, value, hours, ties = command
                event = ScoreEvent(
                    event_id=f"e{event_n}",
                    member=member,
                    value=value,
                    occurred_at=now - timedelta(hours=hours),
                    ties=ties,
                )
                (receipt,) = truerank.submit_scores(conn, pair.forgets, [event])
                if receipt.code not in GONE:
                    (twin,) = truerank.submit_scores(conn, pair.remembers, [event])
                    assert twin.outcome is receipt.outcome is not Outcome.REFUSED
            assert standings(conn, pair.forgets) == standings(conn, pair.remembers)
            assert recomputed(conn, pair.forgets) == []

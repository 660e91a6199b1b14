"""A standing is a function of the set of events: any history, compared byte for byte.

The oracle is written from the definitions alone and shares nothing with the SQL. Positions are
given in order of submission, so it takes them, and the server's clock, from the stored events.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise, product
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import truerank
from truerank import Order, Outcome, ScoreEvent, TieBreak

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WEEK = timedelta(days=7)
MONDAY = datetime(2024, 12, 30, tzinfo=UTC)
TICK = timedelta(microseconds=1)
TIES = [combination for n in range(3) for combination in product((Order.DESC, Order.ASC), repeat=n)]


@dataclass(frozen=True)
class Rules:
    """What the oracle knows of a board."""

    key: str
    operator: str
    order: Order
    ties: tuple[Order, ...]


@dataclass(frozen=True, order=True)
class Stored:
    """One event as it was stored, in the order that the events of a member have."""

    at: datetime
    position: int
    row: tuple[int, ...]  # the value, then the tie-breaks


@dataclass(frozen=True)
class Correction:
    """Void an event, or let it count with another row."""

    event_id: str
    row: tuple[int, ...] | None


@dataclass
class Ledger:
    """What a sequence of commands must answer, and which rows count after it."""

    rules: Rules
    known: dict[str, ScoreEvent] = field(default_factory=dict)
    counting: dict[str, tuple[int, ...]] = field(default_factory=dict)
    void: set[str] = field(default_factory=set)

    def submit(self, event: ScoreEvent) -> Outcome:
        before = self.known.get(event.event_id)
        if before is not None:
            return Outcome.DUPLICATE if before == event else Outcome.CONFLICT
        self.known[event.event_id] = event
        if self._counts(event, (int(event.value), *event.ties)):
            return Outcome.APPLIED
        del self.known[event.event_id]
        return Outcome.REFUSED

    def correct(self, correction: Correction) -> Outcome:
        event = self.known.get(correction.event_id)
        if event is None:
            return Outcome.REFUSED
        if event.event_id in self.void:
            return Outcome.DUPLICATE if correction.row is None else Outcome.APPLIED
        if not self._counts(event, correction.row):
            return Outcome.REFUSED
        if correction.row is None:
            self.void.add(event.event_id)
        return Outcome.APPLIED

    def _counts(self, event: ScoreEvent, row: tuple[int, ...] | None) -> bool:
        rows = {**self.counting, event.event_id: row}
        after = {event_id: row for event_id, row in rows.items() if row is not None}
        if self.rules.operator == "sum" and not all(
            INT64_MIN <= sum(column) <= INT64_MAX
            for season in ("all", week(event))
            for column in zip(
                *(
                    row
                    for event_id, row in after.items()
                    if self.known[event_id].member == event.member
                    and season in {"all", week(self.known[event_id])}
                ),
                strict=True,
            )
        ):
            return False
        self.counting = after
        return True


def week(event: ScoreEvent) -> int | None:
    return None if event.occurred_at is None else (event.occurred_at - MONDAY) // WEEK


def reached(rules: Rules, events: Sequence[Stored]) -> tuple[tuple[int, ...], Stored]:
    """The row that counts, and the event at which it was reached."""
    ordered = sorted(events)
    if rules.operator == "sum":
        row = tuple(sum(column) for column in zip(*(e.row for e in ordered), strict=True))
        moves = [e for e in ordered if any(e.row)]
        return row, moves[-1] if moves else ordered[0]
    if rules.operator == "best":
        directions = [-1 if o is Order.DESC else 1 for o in (rules.order, *rules.ties)]
        best = min(
            ordered,
            key=lambda e: [d * n for d, n in zip(directions, e.row, strict=True)],
        )
        return best.row, best
    first = last = ordered.pop()
    while ordered and ordered[-1].row == last.row:
        first = ordered.pop()
    return last.row, first


def sort_key(rules: Rules, events: Sequence[Stored]) -> bytes:
    row, event = reached(rules, events)
    columns = zip(row, (rules.order, *rules.ties), strict=True)
    numbers = [-1 - n if order is Order.DESC else n for n, order in columns]
    numbers += [(event.at - EPOCH) // TICK, event.position]
    return b"".join((n + 2**63).to_bytes(8) for n in numbers)


def expected_standings(rules: Rules, events: Sequence[tuple[str, Stored]]) -> dict[Any, bytes]:
    """Member and start of season (None: all) to the sort key."""
    parts: dict[Any, list[Stored]] = defaultdict(list)
    for member, event in events:
        parts[member, None].append(event)
        parts[member, MONDAY + (event.at - MONDAY) // WEEK * WEEK].append(event)
    return {key: sort_key(rules, part) for key, part in parts.items()}


def stored_events(conn: psycopg.Connection[Any], ledger: Ledger) -> list[tuple[str, Stored]]:
    """The events that are stored, with the rows that count; those that are void left out."""
    rows = conn.execute(
        "SELECT e.event_text, e.member, e.occurred_at, e.position FROM truerank.event AS e"
        " JOIN truerank.board AS b ON b.id = e.board_id WHERE b.key = %s AND e.kind = 's'",
        (ledger.rules.key,),
    ).fetchall()
    assert {event_id for event_id, _, _, _ in rows} == set(ledger.known)
    return [
        (member, Stored(at, position, ledger.counting[event_id]))
        for event_id, member, at, position in rows
        if event_id in ledger.counting
    ]


def actual_standings(
    conn: psycopg.Connection[Any], rules: Rules
) -> tuple[dict[Any, bytes], list[tuple[Any, ...]]]:
    """The standings as they are stored, and those that differ from a recompute."""
    rows = conn.execute(
        """
        SELECT s.member, nullif(p.starts_at, '-infinity'), s.sort_key,
               (s.score, s.ties, s.event_at, s.event_position, s.moved, s.sort_key)
                   IS NOT DISTINCT FROM
               (f.score, f.ties, f.event_at, f.event_position, f.moved, f.sort_key),
               s::text, f::text
        FROM truerank.board AS b
        JOIN truerank.standing AS s ON s.ranking >> 36 = b.id
        JOIN LATERAL truerank.seasons_of(b, ARRAY[s.event_at]) AS p ON p.ranking = s.ranking
        LEFT JOIN LATERAL truerank.fold_events(
            b, s.ranking, truerank.names_of(s.member), p.starts_at, p.ends_at) AS f ON true
        WHERE b.key = %s""",
        (rules.key,),
    ).fetchall()
    found = {(member, starts_at): key for member, starts_at, key, _, _, _ in rows}
    assert len(found) == len(rows)
    return found, [row for row in rows if not row[3]]


def send(
    conn: psycopg.Connection[Any], rules: Rules, command: list[ScoreEvent] | Correction, name: str
) -> list[Outcome]:
    """Submit a batch, or make a correction under a name of its own."""
    if isinstance(command, list):
        return [r.outcome for r in truerank.submit_scores(conn, rules.key, command)]
    row = command.row
    rows = conn.execute(
        "SELECT DISTINCT outcome FROM truerank.correct_events(%s, %s::text[], %s::text[],"
        " %s::numeric[], %s::bigint[], 'tester', 'test')",
        (
            rules.key,
            [command.event_id],
            [name],
            None if row is None else [row[0]],
            list(row[1:]) if row and row[1:] else None,
        ),
    )
    return [Outcome(outcome) for (outcome,) in rows]


EXTREMES = [INT64_MIN, INT64_MIN + 1, -(2**53) - 1, 0, 2**53 + 1, INT64_MAX - 1, INT64_MAX]
# Each history takes one of these: equal rows and zeros must meet, which is rare among all values.
POOLS = [
    st.just(0),
    st.integers(0, 1),
    st.integers(-2, 2),
    st.sampled_from(EXTREMES),
    st.integers(-1, 1) | st.sampled_from(EXTREMES) | st.integers(INT64_MIN, INT64_MAX),
]
instants = st.one_of(
    st.none(),
    st.sampled_from([MONDAY, MONDAY - TICK, MONDAY + TICK, MONDAY + WEEK, EPOCH - TICK]),
    st.integers(-(2**51) + 2**46, 2**50 + 2**49).map(lambda us: EPOCH + us * TICK),
)


@st.composite
def histories(
    draw: st.DrawFn,
) -> tuple[str, Order, tuple[Order, ...], list[list[ScoreEvent] | Correction]]:
    """An operator, an order, tie-breaks, and commands: batches with repeats, corrections."""
    ties = draw(st.sampled_from(TIES))
    values = draw(st.sampled_from(POOLS))
    times = draw(st.lists(instants, min_size=1, max_size=8))
    made = draw(
        st.lists(
            st.builds(
                ScoreEvent,
                event_id=st.integers(0, 30).map("e{}".format),
                member=st.sampled_from("AB"),
                value=values,
                occurred_at=st.sampled_from(times),
                ties=st.tuples(*[values for _ in ties]),
            ),
            min_size=1,
            max_size=24,
        )
    )
    sent = draw(st.lists(st.sampled_from(made), max_size=6))
    order = draw(st.permutations(made + sent))
    cuts = sorted(draw(st.sets(st.integers(1, len(order)), max_size=5)) | {0, len(order)})
    commands: list[list[ScoreEvent] | Correction] = [order[a:b] for a, b in pairwise(cuts)]
    rows = st.none() | st.tuples(values, *[values for _ in ties])
    ids = st.sampled_from([event.event_id for event in made])
    for correction in draw(st.lists(st.builds(Correction, ids, rows), max_size=6)):
        commands.insert(draw(st.integers(0, len(commands))), correction)
    operator = draw(st.sampled_from(["sum", "best", "latest"]))
    return operator, draw(st.sampled_from(list(Order))), ties, commands


@pytest.fixture
def boards(tr: truerank.Truerank) -> dict[object, Rules]:
    """A board of every kind, made once for all histories."""
    made: dict[object, Rules] = {}
    numbers = count()
    for operator, order, ties in product(["sum", "best", "latest"], Order, TIES):
        rules = Rules(f"b{next(numbers)}", operator, order, ties)
        breaks = [TieBreak(name=f"t{i}", order=o) for i, o in enumerate(ties)]
        tr.create_board(
            rules.key, operator=operator, order=order, seasons=("all", "week"), tie_breaks=breaks
        )
        made[operator, order, ties] = rules
    return made


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=histories())
def test_any_history_in_any_batches_gives_the_standings_of_the_set_of_its_events(
    conn: psycopg.Connection[Any], boards: dict[object, Rules], history: Any
) -> None:
    operator, order, ties, commands = history
    rules = boards[operator, order, ties]
    ledger = Ledger(rules)

    with conn.transaction(force_rollback=True):
        for number, command in enumerate(commands):
            expected = (
                [ledger.submit(event) for event in command]
                if isinstance(command, list)
                else [ledger.correct(command)]
            )

            outcomes = send(conn, rules, command, f"correction {number}")

            assert outcomes == expected
            standings, differing = actual_standings(conn, rules)
            assert standings == expected_standings(rules, stored_events(conn, ledger))
            assert not differing


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_order_of_arrival_decides_nothing_between_events_of_different_instants(
    conn: psycopg.Connection[Any], boards: dict[object, Rules], data: st.DataObject
) -> None:
    rules = boards[data.draw(st.sampled_from(list(boards)))]
    events = [
        ScoreEvent(
            event_id=f"e{number}",
            member=data.draw(st.sampled_from("AB")),
            value=data.draw(st.integers(-2, 2)),
            occurred_at=MONDAY + timedelta(hours=hours),
            ties=data.draw(st.tuples(*[st.integers(-2, 2) for _ in rules.ties])),
        )
        for number, hours in enumerate(
            data.draw(st.lists(st.integers(-300, 300), min_size=2, max_size=12, unique=True))
        )
    ]
    permuted = data.draw(st.permutations(events))
    batch_n = data.draw(st.integers(1, len(events)))

    found = []
    for arrival in (events, permuted):
        with conn.transaction(force_rollback=True):
            for first in range(0, len(arrival), batch_n):
                truerank.submit_scores(conn, rules.key, arrival[first : first + batch_n])
            standings, _ = actual_standings(conn, rules)
            found.append({key: sort_key[:-8] for key, sort_key in standings.items()})

    assert found[0] == found[1]

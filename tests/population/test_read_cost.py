"""What answers from PostgreSQL read, as counts that do not depend on the machine."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

import truerank
from truerank import ScoreEvent

Connection = psycopg.Connection[Any]
MEMBERS_N = 3000
TIMES = 7  # after five a session keeps the plan, and it must be as good
# Entries of the table's indexes that were read, and rows that were read without an index.
READ = """
    SELECT sum(pg_stat_get_xact_tuples_returned(i.indexrelid)),
           pg_stat_get_xact_tuples_returned('truerank.standing'::regclass)
    FROM pg_index AS i WHERE i.indrelid = 'truerank.standing'::regclass"""


def member(place: int) -> str:
    return f"m{place:04}"


@pytest.fixture
def ranking(tr: truerank.Truerank, conn: Connection) -> int:
    """A season in which each member stands at the place that its name tells, from 1."""
    tr.create_board("b", seasons=("all",), operator="best")
    for low in range(1, MEMBERS_N + 1, 1000):
        tr.submit_scores(
            "b",
            [
                ScoreEvent(event_id=f"e{n}", member=member(n), value=(MEMBERS_N - n) // 10)
                for n in range(low, low + 1000)
            ],
        )
    conn.execute("VACUUM truerank.standing")  # rows from before their versions were drawn
    return tr.season("b").ranking


@pytest.fixture
def read(conn: Connection, ranking: int) -> Callable[..., int]:
    """A function that asks once and tells how many index entries of standings were read."""

    def read(**asked: Any) -> int:
        names = ", ".join(f"{name} => %s" for name in asked)
        query = f"SELECT * FROM truerank.read_page({ranking}, 8, {names})"
        with conn.transaction():
            before = conn.execute(READ).fetchone()
            conn.execute(query.encode(), list(asked.values()))
            after = conn.execute(READ).fetchone()
        assert before is not None
        assert after is not None
        assert after[1] == before[1], "the table was read from end to end"
        return int(after[0] - before[0])

    return read


def mislead(conn: Connection) -> None:
    """Let the planner believe that a season has a few members."""
    conn.execute(
        "INSERT INTO truerank.standing"
        " SELECT r, 1, 1, now(), 1, true, 'm' || m, int8send(m)"
        " FROM generate_series(1, 2000) AS r, generate_series(1, 3) AS m"
    )
    conn.execute("VACUUM ANALYZE truerank.standing")


def analyze(conn: Connection) -> None:
    conn.execute("ANALYZE truerank.standing")


def leave(_conn: Connection) -> None:
    pass


@pytest.mark.parametrize("prepare", [mislead, analyze, leave])
def test_the_top_costs_its_rows_whatever_the_planner_knows(
    conn: Connection, read: Callable[..., int], prepare: Callable[[Connection], None]
) -> None:
    prepare(conn)

    assert max(read(p_limit=100) for _ in range(TIMES)) <= 101
    assert max(read(p_members=[member(3)], p_around_limit=5) for _ in range(TIMES)) <= 50


@pytest.mark.parametrize("place", [1, 1000, 2500])
def test_a_place_costs_those_before_it_once(read: Callable[..., int], place: int) -> None:
    costs = [read(p_members=[member(place)]) for _ in range(TIMES)]

    assert place - 1 <= min(costs)
    assert max(costs) <= place + 10


def test_places_beside_each_other_cost_no_more_than_the_last(read: Callable[..., int]) -> None:
    friends = [member(place) for place in range(10, 1001, 10)]

    assert read(p_members=friends) <= 1000 + 10 * len(friends)


def test_a_neighbourhood_costs_its_rows_and_those_before_it(read: Callable[..., int]) -> None:
    assert read(p_members=[member(1000)], p_around_limit=11) <= 1000 + 11 + 30


def test_the_next_page_costs_those_before_it_once(
    conn: Connection, ranking: int, read: Callable[..., int]
) -> None:
    row = conn.execute(
        "SELECT sort_key, member FROM truerank.standing WHERE ranking = %s AND member = %s",
        (ranking, member(1000)),
    ).fetchone()
    assert row is not None
    key, name = row

    cost = read(p_limit=100, p_start="after", p_beside_key=key, p_beside_member=name)

    assert cost <= 1000 + 100 + 30


def test_the_top_and_a_place_stay_cheap_where_members_are_withheld(
    conn: Connection, read: Callable[..., int]
) -> None:
    ban = "SELECT truerank.set_member_state(%s, 'ban', 'test', 'a test')"
    for place in (1, 50, 99, 2000):
        conn.execute(ban, (member(place),))

    assert read(p_limit=100) <= 130
    assert read(p_members=[member(1500)]) <= 1500 + 40

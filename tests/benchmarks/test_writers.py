import dataclasses
import json

import psycopg
import pytest

from benchmarks.__main__ import BENCHMARKS
from benchmarks.hot_member import hot_member
from benchmarks.result import Result
from benchmarks.seasons import seasons
from benchmarks.write import write
from benchmarks.writers import ROUNDS, Side, Size
from truerank.embedded import Engines

TINY = Size(members=50, seconds=0.2)
SEASONS_SQL = """
    SELECT b.key, count(DISTINCT s.ranking) FROM truerank.board AS b
    JOIN truerank.standing AS s ON s.ranking >> 36 = b.id GROUP BY b.key"""


@pytest.fixture
def own(engines: Engines, database_url: str) -> Engines:
    return dataclasses.replace(engines, database_url=database_url)


def bars(result: Result) -> list[tuple[float, bool]]:
    return [(bar.bar, bar.at_least) for bar in result.bars]


def ratio_of_medians(result: Result, side: str, other: str) -> float:
    medians: dict[str, float] = json.loads(json.dumps(result.to_json()))["medians"]
    return medians[side] / medians[other]


def test_write_compares_calls_of_many_and_the_group_commit_with_a_commit_per_event(
    own: Engines,
) -> None:
    result = write(own, print, short=True, size=TINY)

    many, group = (bar.value for bar in result.bars)
    assert bars(result) == [(10, True), (4, True)]
    assert many == pytest.approx(ratio_of_medians(result, "calls", "single"))
    assert group == pytest.approx(ratio_of_medians(result, "group commit", "single"))
    assert {len(rates) for rates in result.rounds.values()} == {ROUNDS}


def test_the_group_commit_puts_events_in_flight_together_into_few_transactions(
    own: Engines,
) -> None:
    side = Side(own, "group commit", members=50, in_flight=64)
    side.prepare()

    side.rate(0.2, "seed")

    with psycopg.connect(own.database_url) as conn:
        ((events, transactions),) = conn.execute(
            "SELECT count(*), count(DISTINCT xid) FROM truerank.event"
        ).fetchall()
    assert events > 50 + 64
    assert transactions * 4 < events


@pytest.mark.soak
def test_hot_member_writes_for_one_member_and_for_all(own: Engines) -> None:
    result = hot_member(own, print, short=True, size=TINY)

    with psycopg.connect(own.database_url) as conn:
        members: dict[str, int] = dict(
            conn.execute(
                "SELECT b.key, count(DISTINCT e.member) FROM truerank.event AS e"
                " JOIN truerank.board AS b ON b.id = e.board_id GROUP BY b.key"
            ).fetchall()
        )
    assert members == {"one member": 1, "all members": TINY.members}
    assert bars(result) == [(1, True)]
    assert result.ratio == pytest.approx(ratio_of_medians(result, "one member", "all members"))


@pytest.mark.soak
def test_seasons_compares_the_time_of_an_event_in_three_seasons_with_that_in_one(
    own: Engines,
) -> None:
    result = seasons(own, print, short=True, size=Size(members=50, seconds=0.5))

    with psycopg.connect(own.database_url) as conn:
        counts: dict[str, int] = dict(conn.execute(SEASONS_SQL).fetchall())
    assert counts["one season"] == 1
    assert counts["three seasons"] >= 3  # more where a week or month ends meanwhile
    assert bars(result) == [(2.2, False)]
    assert result.ratio == pytest.approx(ratio_of_medians(result, "three seasons", "one season"))


def test_a_side_whose_events_went_missing_is_not_believed(own: Engines) -> None:
    side = Side(own, "calls", members=50, events_per_call=10)
    side.prepare()
    side.rate(0.1, "seed")
    side.verify()

    with psycopg.connect(own.database_url) as conn:
        conn.execute("UPDATE truerank.standing SET score = score + 1 WHERE member = 'm000000007'")

    with pytest.raises(AssertionError, match="points were lost or made"):
        side.verify()


def test_the_command_line_knows_every_benchmark_of_writers() -> None:
    assert {"write": write, "hot_member": hot_member, "seasons": seasons}.items() <= (
        BENCHMARKS.items()
    )

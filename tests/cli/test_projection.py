"""What can't be shown from Redis is listed, and tried again when somebody says so."""

from collections.abc import Callable

import psycopg
import pytest

from tests.cli.commands import Command, Done

RANKING = 75_161_927_680
PARK = """
    INSERT INTO truerank.parked_standing
        (ranking, grp, member, version, reason, tries, retry_at)
    VALUES (%s, 7, E'a\\tb', 5, 'WRONGTYPE of a key', 3, clock_timestamp() + interval '1 hour')"""

Run = Callable[..., Done]


@pytest.fixture
def run(database_url: str, redis_url: str) -> Run:
    """The command on the stores of this test, where one ranking is parked."""
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(PARK, (RANKING,))

    def run(*arguments: str) -> Done:
        return Command(None)(
            *arguments, TRUERANK_DATABASE_URL=database_url, TRUERANK_REDIS_URL=redis_url
        )

    return run


def test_what_is_parked_is_listed_with_the_reason(run: Run) -> None:
    told = run("projection", "parked")
    (parked,) = run("projection", "parked", "--json").json["parked"]

    assert told.status == 0
    assert str(RANKING) in told.out
    assert "WRONGTYPE of a key" in told.out
    assert (parked["ranking"], parked["version"], parked["tries"]) == (str(RANKING), "5", 3)
    assert (parked["group"], parked["member"], parked["board"]) == (7, "a\tb", None)


def test_a_retry_makes_it_due_and_says_how_many_there_were(run: Run, database_url: str) -> None:
    assert run("projection", "retry", str(RANKING), "--json").json == {"retried": 1}
    assert run("projection", "retry").out == "1 to be tried again\n"

    with psycopg.connect(database_url) as conn:
        assert conn.execute(
            "SELECT retry_at <= clock_timestamp() FROM truerank.parked_standing"
        ).fetchall() == [(True,)]


def test_a_retry_of_what_is_not_parked_fails(run: Run) -> None:
    done = run("projection", "retry", "5")

    assert (done.status, "error[parked_unknown]" in done.err) == (1, True)

"""`truerank rebuild` as people and scripts use it."""

from collections.abc import Callable

import psycopg
import pytest

import truerank
from tests.cli.commands import Command, Done
from tests.conftest import StartRedis
from tests.projection.pipeline import wait_until
from truerank.local import running_worker
from truerank.model import ScoreEvent
from truerank.repair.rebuild import rebuild_states
from truerank.settings import Settings

Run = Callable[..., Done]


@pytest.fixture
def bare(database_url: str, redis_url: str) -> Run:
    """The command on the stores of this test, where nothing is."""

    def run(*arguments: str) -> Done:
        return Command(None)(
            *arguments,
            TRUERANK_DATABASE_URL=database_url,
            TRUERANK_REDIS_URL=redis_url,
            TRUERANK_LEASE_MS="100",
        )

    return run


@pytest.fixture
def run(bare: Run, database_url: str, redis_url: str) -> Run:
    """The same where a board has two scores."""
    settings = Settings(database_url=database_url, redis_url=redis_url)
    with truerank.Truerank(settings) as client:
        client.create_board("b")
        client.submit_scores(
            "b",
            [ScoreEvent(event_id=member, member=member, value=5) for member in ("ann", "bob")],
        )
    return bare


def test_the_group_of_a_board_is_rebuilt_though_no_worker_runs_and_there_is_a_way_back(
    run: Run,
) -> None:
    done = run("rebuild", "b", "--json")
    (made,) = done.json["rebuilds"]

    assert (done.status, made["state"], made["code"]) == (0, "switched", None)
    assert made["kept_until"] is not None
    assert "no worker runs" in done.err
    group = str(made["group"])
    back = run("rebuild", "--back", "--group", group)
    assert (back.status, back.out.split()[6:8]) == (0, [group, "switched"])
    again = run("rebuild", "--back", "--group", group)
    assert (again.status, "error[no_way_back]" in again.err) == (1, True)


def test_a_command_that_may_not_be_the_worker_says_why_and_ends(
    database_url: str, start_redis: StartRedis
) -> None:
    url, _ = start_redis("--maxmemory-policy", "allkeys-lru")

    done = Command(None)(
        *("rebuild", "--group", "3"),
        TRUERANK_DATABASE_URL=database_url,
        TRUERANK_REDIS_URL=url,
        TRUERANK_LEASE_MS="100",
    )

    assert (done.status, "error[projection_unsafe]" in done.err) == (1, True)


def test_what_is_only_asked_for_is_done_by_the_next_worker(
    run: Run, database_url: str, redis_url: str
) -> None:
    done = run("rebuild", "--group", "3", "--detach", "--json")
    (asked,) = done.json["rebuilds"]

    assert (done.status, asked["state"]) == (0, "asked")
    settings = Settings(database_url=database_url, redis_url=redis_url)
    with running_worker(settings), truerank.Truerank(settings) as client:
        wait_until(
            lambda: client.run(rebuild_states([int(asked["id"])]))[0].state == "switched",
            "the rebuild is done",
        )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), "invalid_input"),
        (("b", "--all"), "invalid_input"),
        (("b", "--repair"), "invalid_input"),
        (("--from-events", "--group", "1"), "invalid_input"),
        (("--group", "64"), "group_unknown"),
        (("nowhere",), "board_unknown"),
    ],
)
def test_what_makes_no_sense_is_refused(bare: Run, arguments: tuple[str, ...], code: str) -> None:
    done = bare("rebuild", *arguments)

    assert (done.status, f"error[{code}]" in done.err) == (1, True)


def test_standings_that_differ_from_their_events_are_shown_and_mended(
    run: Run, database_url: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("UPDATE truerank.standing SET score = 9 WHERE member = 'bob'")

    shown = run("rebuild", "--from-events")
    mended = run("rebuild", "--from-events", "b", "--repair", "--json")
    whole = run("rebuild", "--from-events", "b")

    assert (shown.status, mended.status, whole.status) == (1, 0, 0)
    assert ["different", "9", "5", "no", "b", "all", "bob"] in [
        line.split() for line in shown.out.splitlines()
    ]
    assert {each["member"] for each in mended.json["differing"]} == {"bob"}
    assert whole.out.endswith(": 0 differ, 0 left\n")

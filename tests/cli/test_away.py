"""What starts while PostgreSQL is away: it says so, shows what Redis has, and goes on by itself."""

import json
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

import truerank as library
from tests.cli.commands import Command
from tests.cli.test_up import ready
from tests.faults.proxy import Proxy, postgresql_through
from truerank.local import running_worker
from truerank.projection.keys import boards_key
from truerank.settings import Settings

Started = Callable[[subprocess.Popen[str]], subprocess.Popen[str]]
WaitUntil = Callable[[Callable[[], bool], str], None]

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@pytest.fixture
def away(
    database_url: str, redis_url: str, wait_until: WaitUntil
) -> Iterator[tuple[Proxy, dict[str, str]]]:
    """Stores of which PostgreSQL refuses connections; in Redis ann has 7 on board `b`."""
    settings = Settings(database_url=database_url, redis_url=redis_url)
    with ExitStack() as stack:
        client = stack.enter_context(library.Truerank(settings))
        client.create_board("b", seasons=["all"])
        receipt = client.submit_score("b", event_id="e", member="ann", value=7)
        assert receipt.token is not None
        with running_worker(settings), redis.Redis.from_url(redis_url) as held:
            client.wait_visible(receipt.token, ["b"])
            wait_until(
                lambda: set(held.hkeys(boards_key(settings.prefix))) == {b"b", b""},
                "what readers must know of the board is written down",
            )
        proxy, url = stack.enter_context(postgresql_through(database_url))
        proxy.refuse()
        yield (
            proxy,
            {
                "TRUERANK_DATABASE_URL": url,
                "TRUERANK_REDIS_URL": redis_url,
                "TRUERANK_DATABASE_TIMEOUT_MS": "500",
            },
        )


def fetch(url: str) -> tuple[int, dict[str, Any]]:
    """Status and body."""
    try:
        with _DIRECT.open(url, timeout=20) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code, json.loads(exc.read())


def test_reads_of_the_command_line_come_from_redis(
    preloaded_truerank: Path, away: tuple[Proxy, dict[str, str]]
) -> None:
    _, environ = away
    truerank = Command(None, preloaded_truerank)

    top = truerank("top", "b", "--json", **environ)
    written = truerank("submit", "b", "ann", "1", **environ)

    assert top.status == 0, top.err
    assert [entry["member"] for entry in top.json["entries"]] == ["ann"]
    assert top.json["freshness"]["source"] == "projection"
    assert "no connection to PostgreSQL" in top.err
    assert (written.status, written.out) == (1, "")
    assert written.err.startswith("error[database_unavailable]: ")


def test_serve_answers_from_redis_until_postgresql_is_back_and_then_from_both(
    started: Started, wait_until: WaitUntil, away: tuple[Proxy, dict[str, str]]
) -> None:
    proxy, environ = away
    process = started(Command(None).start("serve", "--port", "18080", "--json", **environ))
    url = ready(process)["ready"]

    shown = fetch(f"{url}v1/boards/b/top")
    insisted = fetch(f"{url}v1/boards/b/top?source=database")
    readiness = fetch(f"{url}readyz")
    proxy.mend()

    assert (shown[0], shown[1]["freshness"]["source"]) == (200, "projection")
    assert [entry["member"] for entry in shown[1]["entries"]] == ["ann"]
    assert (insisted[0], insisted[1]["code"]) == (503, "database_unavailable")
    assert (readiness[0], readiness[1]["code"]) == (503, "database_unavailable")
    wait_until(
        lambda: fetch(f"{url}v1/boards/b/top?source=database")[0] == 200, "PostgreSQL answers"
    )
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert "database_away" in err


def test_serve_ends_where_the_schema_turns_out_to_be_of_another_release(
    started: Started, database_url: str, away: tuple[Proxy, dict[str, str]]
) -> None:
    proxy, environ = away
    process = started(Command(None).start("serve", "--port", "18080", "--json", **environ))
    ready(process)
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("DELETE FROM public.truerank_migration WHERE version = 1")

    proxy.mend()

    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "error[schema_mismatch]: " in err

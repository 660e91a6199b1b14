"""The server as a process: where it listens, how it ends, what it does without its stores."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import psycopg
import pytest

import truerank
from truerank.errors import InvalidInput, SettingsInvalid
from truerank.local import running_worker
from truerank.serve.server import run_server
from truerank.settings import Settings

SCORES = "/v1/boards/points/scores"
PROGRAM = """
import os
from truerank.serve.server import run_server
from truerank.settings import load
run_server(load(), port=0, ready=lambda url: print(url, flush=True))
print("ended", flush=True)
"""


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])  # noqa: S104
def test_only_the_loopback_is_listened_on(settings: Settings, host: str) -> None:
    with pytest.raises(InvalidInput, match="host"):
        run_server(settings, host=host, port=0, ready=print)


def test_a_missing_address_is_told_before_anything_starts() -> None:
    with pytest.raises(SettingsInvalid):
        run_server(Settings(), port=0, ready=print)


def test_a_taken_port_is_passed_over_where_more_may_be_tried(
    settings: Settings,
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInput, match="no port"):
            run_server(settings, port=port, ready=print)
        urls: list[str] = []
        stop = threading.Event()
        stop.set()

        run_server(settings, port=port, port_tries=20, ready=urls.append, stop=stop)

    assert int(urls[0].rstrip("/").rpartition(":")[2]) > port


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_cleanly_with_a_stream_open(
    settings: Settings, tr: truerank.Truerank, number: signal.Signals
) -> None:
    tr.create_board("points")
    environment = os.environ | {
        "TRUERANK_DATABASE_URL": settings.database_url or "",
        "TRUERANK_REDIS_URL": settings.redis_url or "",
    }
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    with httpx.stream("GET", f"{url}v1/boards/points/live", timeout=10.0) as stream:
        lines = stream.iter_lines()
        while next(lines) != "event: tick":
            pass
        began = time.monotonic()

        process.send_signal(number)

        for _ in lines:
            pass
    output, errors = process.communicate(timeout=10)
    assert (process.returncode, output.strip()) == (0, "ended"), errors
    assert time.monotonic() - began < 3
    assert errors == ""


async def test_reads_go_on_from_the_projection_while_the_database_is_away(
    serve: Callable[..., Any], wires: tuple[Any, ...], settings: Settings, tr: truerank.Truerank
) -> None:
    through, postgres, _ = wires
    tr.create_board("points", seasons=("all",))
    with running_worker(settings), serve(through) as url:
        receipt = tr.submit_score("points", event_id="e1", member="ann", value=1)
        assert receipt.token is not None
        tr.wait_visible(receipt.token, ["points"])
        async with httpx.AsyncClient(base_url=url, timeout=30.0) as client:
            assert (await client.get("/v1/boards/points/top")).status_code == 200
            assert (await client.get("/health/ready")).status_code == 200
            postgres.cut()
            await asyncio.sleep(through.board_cache_ms / 1000)

            began = time.monotonic()
            answers = await asyncio.gather(
                *(client.get("/v1/boards/points/top") for _ in range(20))
            )
            read_s = time.monotonic() - began
            write = await client.post(SCORES, json={"event_id": "e2", "member": "a", "value": 1})
            ready = await client.get("/health/ready")
            live = await client.get("/health/live")

            assert {answer.status_code for answer in answers} == {200}
            assert {a.json()["freshness"]["source"] for a in answers} == {"projection"}
            assert read_s < 5
            assert (write.status_code, write.json()["code"]) == (503, "database_unavailable")
            assert int(write.headers["retry-after"]) > 0
            assert (ready.status_code, ready.json()["code"]) == (503, "database_unavailable")
            assert live.status_code == 200
            postgres.join()
            deadline = time.monotonic() + 20
            while write.status_code != 200:
                assert time.monotonic() < deadline
                write = await client.post(
                    SCORES, json={"event_id": "e2", "member": "a", "value": 1}
                )


async def test_reads_come_from_the_database_while_redis_is_away_and_say_so(
    serve: Callable[..., Any], wires: tuple[Any, ...], settings: Settings, tr: truerank.Truerank
) -> None:
    through, _, valkey = wires
    tr.create_board("points", seasons=("all",))
    with running_worker(settings), serve(through) as url:
        tr.submit_score("points", event_id="e1", member="ann", value=1)
        valkey.cut()
        async with httpx.AsyncClient(base_url=url, timeout=30.0) as client:
            top = await client.get("/v1/boards/points/top")
            ready = await client.get("/health/ready")

    assert (top.status_code, top.json()["total"]) == (200, 1)
    assert top.json()["freshness"] | {"epoch": "", "projected_through": ""} == {
        "source": "database", "epoch": "", "generation": None, "tick": None,
        "projected_through": "", "staleness_ms": 0,
    }  # fmt: skip
    assert (ready.status_code, ready.json()["code"]) == (503, "projection_unavailable")


async def test_a_projection_that_was_never_filled_is_not_ready(
    served: str, tr: truerank.Truerank
) -> None:
    tr.create_board("points")
    async with httpx.AsyncClient(base_url=served, timeout=30.0) as client:
        ready = await client.get("/health/ready")
        top = await client.get("/v1/boards/points/top")

    assert (ready.status_code, ready.json()["code"]) == (503, "projection_unavailable")
    assert "0 of 64" in ready.json()["message"]
    assert top.json()["freshness"]["source"] == "database"


def test_a_schema_that_is_not_there_is_told_as_such(http: httpx.Client, settings: Settings) -> None:
    with psycopg.connect(settings.database_url or "") as conn:
        conn.execute("ALTER FUNCTION truerank.boards(text) RENAME TO boards_gone")

    answer = http.get("/v1/boards")

    assert (answer.status_code, answer.json()["code"]) == (503, "schema_mismatch")


def test_a_failure_nobody_foresaw_is_logged_and_answered_without_its_details(
    http: httpx.Client, settings: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    with psycopg.connect(settings.database_url or "") as conn:
        conn.execute("DROP FUNCTION truerank.boards(text)")
        conn.execute(
            "CREATE FUNCTION truerank.boards(p_key text) RETURNS SETOF text LANGUAGE plpgsql"
            " AS $$BEGIN RAISE division_by_zero USING MESSAGE = 'a secret'; END$$"
        )

    answer = http.get("/v1/boards")

    assert answer.status_code == 500
    assert answer.json() == {
        "code": "internal", "message": "something went wrong; it was logged", "field": None
    }  # fmt: skip
    said = capfd.readouterr()
    assert "a secret" in said.out + said.err
    assert http.get("/health/live").status_code == 200


@pytest.mark.usefixtures("worker")
async def test_many_parallel_reads_are_answered_from_the_projection(
    served: str, tr: truerank.Truerank
) -> None:
    tr.create_board("points", seasons=("all",))
    receipt = tr.submit_score("points", event_id="e1", member="ann", value=1)
    assert receipt.token is not None
    tr.wait_visible(receipt.token, ["points"])
    async with httpx.AsyncClient(base_url=served, timeout=30.0) as client:
        answers = await asyncio.gather(*(client.get("/v1/boards/points/top") for _ in range(100)))

    assert {a.json()["freshness"]["source"] for a in answers} == {"projection"}


def test_the_page_allows_no_script_but_its_own(http: httpx.Client) -> None:
    page = http.get("/")

    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    again = http.get("/", headers={"if-none-match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert http.get("/web/page.js").headers["content-type"].startswith("text/javascript")
    assert http.get("/web/page.css").headers["content-type"].startswith("text/css")

"""`truerank up`, `worker` and `serve`: they start, work together, and leave nothing behind."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from tests.cli.commands import Command
from tests.processes import runs
from truerank.embedded import start_engines
from truerank.embedded.folder import DataFolder, try_lock

Started = Callable[[subprocess.Popen[str]], subprocess.Popen[str]]
WaitUntil = Callable[[Callable[[], bool], str], None]

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def fetch(url: str) -> str:
    with _DIRECT.open(url, timeout=10) as answer:
        assert answer.status == 200
        text: str = answer.read().decode()
        return text


def ready(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What `up --json` tells once it is ready."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        _, err = process.communicate()
        pytest.fail(f"ended with status {process.returncode}: {err}")
    told: dict[str, Any] = json.loads(line)
    return told


def engine_pids(told: dict[str, Any]) -> list[int]:
    with (
        psycopg.connect(told["database_url"]) as conn,
        redis.Redis.from_url(told["redis_url"]) as client,
    ):
        # Not the backend of this connection: that ends with it.
        row = conn.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'"
        ).fetchone()
        assert row is not None
        postmaster = Path(told["data"], "postgres", "postmaster.pid").read_text().split()[0]
        return [row[0], int(postmaster), client.info("server")["process_id"]]


def nothing_runs(data: Path, pids: list[int]) -> bool:
    """Whether these processes, and all that held the lock of the engines, have ended."""
    lock = DataFolder(data).open_lock("engines")
    try:
        return not any(runs(pid) for pid in pids) and try_lock(lock, fcntl.LOCK_EX)
    finally:
        os.close(lock)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_up_serves_the_page_and_however_it_ends_nothing_is_left(
    truerank: Command, started: Started, wait_until: WaitUntil, number: signal.Signals
) -> None:
    process = started(truerank.start("up", "--port", "18080", "--json"))
    told = ready(process)
    pids = engine_pids(told)
    assert all(runs(pid) for pid in pids)
    assert "<!doctype html>" in fetch(told["ready"]).lower()

    process.send_signal(number)

    _, err = process.communicate(timeout=20)
    assert process.returncode == (-9 if number == signal.SIGKILL else 0), err
    wait_until(lambda: nothing_runs(truerank.data, pids), "all engines have ended")
    assert "Traceback" not in err


@pytest.mark.parametrize("engine", ["PostgreSQL", "Valkey"])
def test_up_ends_and_says_so_when_one_of_its_engines_is_killed(
    truerank: Command, started: Started, wait_until: WaitUntil, engine: str
) -> None:
    process = started(truerank.start("up", "--port", "18080", "--json"))
    pids = engine_pids(ready(process))

    os.kill(pids[1 if engine == "PostgreSQL" else 2], signal.SIGKILL)

    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"error[engine_ended]: {engine} ended" in err
    wait_until(lambda: nothing_runs(truerank.data, pids), "all engines have ended")


def test_up_with_the_demo_is_ready_with_data_and_scores_keep_arriving(
    truerank: Command, started: Started, wait_until: WaitUntil
) -> None:
    process = started(truerank.start("up", "--demo", "--port", "18080", "--json"))
    url = ready(process)["ready"]

    first = json.loads(fetch(f"{url}v1/boards/daily-steps/top"))
    assert first["freshness"]["source"] == "projection"
    assert first["total"] > 100
    assert len(first["entries"]) == 10
    again = truerank("demo", "--json")
    assert again.status == 0
    assert again.json["applied"] <= 100, "only the hour that may have begun meanwhile is new"
    assert again.json["duplicate"] > 10_000
    wait_until(
        lambda: (
            json.loads(fetch(f"{url}v1/boards/daily-steps/top?limit=1000"))["entries"]
            != first["entries"]
        ),
        "a new score is shown",
    )


def test_other_commands_join_a_running_up_and_a_second_up_says_where_it_is(
    truerank: Command, started: Started
) -> None:
    told = ready(started(truerank.start("up", "--port", "18080", "--json")))

    assert truerank("board", "create", "b").status == 0
    score = truerank("submit", "b", "ada", "5", "--wait", "--json")
    status = truerank("status", "--json").json
    second = truerank("up")

    assert score.status == 0
    assert json.loads(fetch(f"{told['ready']}v1/boards/b/top"))["entries"][0]["score"] == "5"
    assert (status["workers"], status["embedded"]["attached"]) == (1, True)
    assert (second.status, second.out) == (1, "")
    assert second.err.startswith("error[already_up]: ")
    assert told["ready"] in second.err


def test_a_port_that_is_taken_is_passed_over(truerank: Command, started: Started) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        url = ready(started(truerank.start("up", "--port", str(port), "--json")))["ready"]

        assert port < int(url.rstrip("/").rsplit(":", 1)[1]) <= port + 50
        fetch(url)


@pytest.mark.parametrize("command", ["up", "serve"])
@pytest.mark.parametrize("port", ["-1", "65536", "99999"])
def test_a_number_that_no_port_has_is_refused_before_anything_starts(
    truerank: Command, command: str, port: str
) -> None:
    done = truerank(command, "--port", port)

    assert (done.status, done.out) == (1, "")
    assert done.err == f"error[invalid_input]: a port is a number from 0 to 65535, not {port}\n"
    assert not truerank.data.exists()


def test_a_person_reads_where_everything_is_and_the_last_line_says_ready(
    truerank: Command, started: Started
) -> None:
    process = started(truerank.start("up", "--port", "18080"))
    assert process.stdout is not None

    lines = [process.stdout.readline() for _ in range(3)]

    assert lines[0].startswith("PostgreSQL  postgresql://")
    assert lines[1].startswith("Redis       unix://")
    assert lines[2].startswith("ready http://127.0.0.1:")


def test_worker_and_serve_work_on_stores_that_variables_name(
    tmp_path: Path, started: Started, database_url: str, redis_url: str
) -> None:
    truerank = Command(None)
    urls = {
        "TRUERANK_DATABASE_URL": database_url,
        "TRUERANK_REDIS_URL": redis_url,
        "XDG_DATA_HOME": str(tmp_path),
    }
    worker = started(truerank.start("worker", "--json", **urls))
    server = started(truerank.start("serve", "--port", "18080", "--json", **urls))
    assert ready(worker) == {"ready": True}
    url = ready(server)["ready"]

    assert truerank("board", "create", "b", **urls).status == 0
    assert truerank("submit", "b", "ada", "5", "--wait", **urls).status == 0

    answer = json.loads(fetch(f"{url}v1/boards/b/top"))
    assert answer["entries"] == [{"rank": 1, "member": "ada", "score": "5"}]
    assert answer["freshness"]["source"] == "projection"
    assert list(tmp_path.iterdir()) == [], "no embedded engines were asked for"
    for process in (worker, server):
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_a_worker_on_engines_of_another_process_ends_with_them(
    truerank: Command, started: Started
) -> None:
    with start_engines(truerank.data, durable=False):
        worker = started(truerank.start("worker", "--json"))
        assert ready(worker) == {"ready": True}

    _, err = worker.communicate(timeout=20)
    assert worker.returncode == 1
    assert "error[engines_gone]: " in err


def test_up_waits_for_a_command_that_runs_the_engines(truerank: Command, started: Started) -> None:
    with start_engines(truerank.data, durable=False):
        up = started(truerank.start("up", "--port", "18080", "--json"))
        assert up.stderr is not None
        assert f"process {os.getpid()} works on" in up.stderr.readline()

    assert ready(up)["data"] == str(truerank.data)

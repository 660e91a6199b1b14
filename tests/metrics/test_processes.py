"""The commands as processes: a worker that is watched, and addresses that stay unsaid."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.metrics.scrape import Numbers
from tests.projection.pipeline import DEADLINE_S, wait_until
from truerank.cli.app import run
from truerank.settings import Settings


@contextmanager
def running(settings: Settings, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command that stays, ended with SIGTERM."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("TRUERANK_")}
    environ = {
        "TRUERANK_DATABASE_URL": settings.database_url or "",
        "TRUERANK_REDIS_URL": settings.redis_url or "",
        "TRUERANK_PREFIX": settings.prefix,
    }
    with subprocess.Popen(
        [sys.executable, "-m", "truerank", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=kept | environ,
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(DEADLINE_S)
            except subprocess.TimeoutExpired:
                process.kill()


def test_a_worker_serves_its_numbers_and_its_health_and_ends_in_order(settings: Settings) -> None:
    with running(settings, "worker", "--metrics-port", "0") as process:
        assert process.stdout is not None
        name, url = process.stdout.readline().split()
        ready = process.stdout.readline()
        with httpx.Client(base_url=url.removesuffix("metrics")) as http:
            wait_until(
                lambda: http.get("/readyz").json().get("status") == "ready", "the worker is ready"
            )
            page = Numbers(http.get("/metrics").text)
            live = http.get("/healthz").status_code
            elsewhere = http.get("/metrics", headers={"host": "elsewhere.example"}).status_code

    assert (name, ready.startswith("ready")) == ("metrics", True)
    assert url.startswith("http://127.0.0.1:")
    assert page("truerank_leases_held_groups") == 64
    assert (page("truerank_ticks_total") or 0) > 0
    assert (live, elsewhere) == (200, 421)
    assert process.returncode == 0


def test_a_port_that_is_taken_or_cannot_be_is_told(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRUERANK_DATABASE_URL", settings.database_url or "")
    monkeypatch.setenv("TRUERANK_REDIS_URL", settings.redis_url or "")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        statuses = [run(["worker", "--metrics-port", str(n)]) for n in (port, 65_536, -1)]

    told = capfd.readouterr().err
    assert statuses == [1, 1, 1]
    assert f"error[invalid_input]: no port from {port} to {port} is free" in told
    assert "error[invalid_input]: a port is a number from 0 to 65535, not -1" in told


def test_up_shows_the_addresses_of_variables_without_their_passwords(settings: Settings) -> None:
    url = (settings.database_url or "").replace("//truerank@", "//truerank:s3cret@")
    assert "s3cret" in url
    secret = Settings(database_url=url, redis_url=settings.redis_url, prefix=settings.prefix)
    with running(secret, "up", "--port", "0") as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(3)]

    assert [line.split()[0] for line in said] == ["PostgreSQL", "Redis", "ready"]
    assert "//truerank:***@" in said[0]

"""Real engines for every test: started once, a database and a key space of its own for each."""

import logging
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import hypothesis
import psutil
import psycopg
import pytest
import redis
import structlog
from psycopg import sql

from tests.faults.pooler import asked_for, entrance
from tests.preloaded import preloaded
from truerank.embedded import Engines, start_engines
from truerank.embedded.account import choose_account
from truerank.embedded.binaries import find_valkey

_REPOSITORY = Path(__file__).resolve().parent.parent
_DATA_DIR = Path(os.environ.get("TRUERANK_TEST_DATA") or _REPOSITORY.parent / "shared" / "data")
_TEMPLATE = "truerank_template"
_REDIS_DATABASES = 64  # as many as the embedded engine has
_MEMORY = Path("/dev/shm")  # noqa: S108 - where Linux has a file system in memory
_MEMORY_BYTES_MIN = 4 << 30
_WAL = "128MB"  # files in memory are to be few
_START_S_MAX = 30.0
_SOAK_S_MAX = 3600
_LEFT_OUT = "left out"  # a property of a test, which a worker of pytest-xdist reports too
_TOOK = "took"  # the same, of tests that measure how long a repair takes

# A machine that does other things as well makes single examples slow, not wrong.
hypothesis.settings.register_profile("truerank", deadline=None, print_blob=True)
hypothesis.settings.load_profile("truerank")


@pytest.fixture(autouse=True)
def _logging() -> Iterator[None]:
    """Forget how a test had the log written: its captured stream is closed after it."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = before[0]
    root.setLevel(before[1])


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    """One PostgreSQL and one Valkey for the whole run, in a temporary folder."""
    folder = tmp_path_factory.mktemp("engines")
    settings = {"max_wal_size": _WAL, "min_wal_size": "32MB"}
    with start_engines(folder, durable=False, postgres_settings=settings) as running:
        yield running
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    """Numbers that are given once in a run."""
    return count(1)


@pytest.fixture(scope="session")
def template(engines: Engines) -> str:
    """The name of a migrated database that tests get copies of; nobody may connect to it."""
    from truerank.schema.migrate import migrate  # noqa: PLC0415 - only runs that need it load it

    with psycopg.connect(engines.database_url, autocommit=True) as conn:
        conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(_TEMPLATE)))
        migrate(_url_of(engines, _TEMPLATE))
        closed = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false IS_TEMPLATE true")
        conn.execute(closed.format(sql.Identifier(_TEMPLATE)))
    return _TEMPLATE


@pytest.fixture(scope="session")
def used() -> list[str]:
    """The names of databases whose tests have ended."""
    return []


@pytest.fixture(scope="session")
def way_in(engines: Engines) -> Iterator[Callable[[str], str]]:
    """See `entrance`."""
    with entrance(engines) as through:
        yield through


@pytest.fixture
def database_url(
    engines: Engines,
    template: str,
    numbers: Iterator[int],
    used: list[str],
    way_in: Callable[[str], str],
) -> Iterator[str]:
    """The URL of a database of this test's own, migrated and otherwise empty."""
    yield from map(way_in, _database(engines, template, next(numbers), used))


@pytest.fixture(scope="module")
def shared_database_url(
    engines: Engines,
    template: str,
    numbers: Iterator[int],
    used: list[str],
    way_in: Callable[[str], str],
) -> Iterator[str]:
    """The URL of a migrated database for the tests of a module, each with boards of its own."""
    yield from map(way_in, _database(engines, template, next(numbers), used))


@pytest.fixture
def empty_database_url(
    engines: Engines, numbers: Iterator[int], used: list[str], way_in: Callable[[str], str]
) -> Iterator[str]:
    """The URL of a database of this test's own that was never migrated."""
    yield from map(way_in, _database(engines, "template0", next(numbers), used))


@pytest.fixture
def redis_url(engines: Engines, numbers: Iterator[int]) -> str:
    """The URL of a logical database of this test's own, empty.

    Channels, functions and scripts belong to the server: tests share these.
    """
    number = next(numbers) % _REDIS_DATABASES
    url = engines.redis_url.replace("?db=0", f"?db={number}")
    with redis.Redis.from_url(url) as client:
        client.flushdb()
    return url


class StartRedis(Protocol):
    """See `redis_starter`."""

    def __call__(
        self,
        *arguments: str,
        program: str | None = None,
        environ: dict[str, str] | None = None,
        folder: Path | None = None,
    ) -> tuple[str, subprocess.Popen[bytes]]: ...


@contextmanager
def redis_starter() -> Iterator[StartRedis]:
    """A function that starts servers with other settings, which end with the block or before.

    It gives the server's URL, the same for the same folder, and its process.
    """
    started: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="tr-") as temporary:  # a socket's path must be short

        def start(
            *arguments: str,
            program: str | None = None,
            environ: dict[str, str] | None = None,
            folder: Path | None = None,
        ) -> tuple[str, subprocess.Popen[bytes]]:
            folder = folder or Path(tempfile.mkdtemp(dir=temporary))
            socket = folder / "s"
            process = subprocess.Popen(
                [
                    program or find_valkey(choose_account(), os.environ),
                    *("--port", "0", "--unixsocket", str(socket), "--dir", str(folder)),
                    *("--save", "", *arguments),
                ],
                env={**os.environ, **(environ or {})},
                stdout=subprocess.DEVNULL,
            )
            started.append(process)
            url = f"unix://{socket}"
            _await_redis(url, process)
            return url, process

        try:
            yield start
        finally:
            for process in started:
                process.kill()
                process.wait()


@pytest.fixture
def start_redis() -> Iterator[StartRedis]:
    """Start servers of this test's own."""
    with redis_starter() as start:
        yield start


@pytest.fixture(scope="session")
def preloaded_truerank() -> Iterator[Path]:
    """A program `truerank` that starts at once; see `tests.preloaded`."""
    with preloaded() as program:
        yield program


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data; tests that need it are left out where it is missing."""
    if not _DATA_DIR.is_dir():
        pytest.skip(f"no real data in {_DATA_DIR}")
    return _DATA_DIR


@pytest.fixture(scope="session")
def chromium() -> dict[str, Any]:
    """The options with which playwright launches the system's chromium, as root too."""
    arguments = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    arguments += ["--disable-background-networking", "--disable-component-update"]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")
    return {"executable_path": _find_program("chromium"), "args": arguments}


def pytest_configure() -> None:
    # Who is started in the background of a shell ignores Ctrl-C, and so would all it starts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # A copy of a database is hundreds of files, and disks can be slow at making them: all that
    # is temporary lies in memory, where there is enough. Whoever sets TMPDIR decides alone.
    if "TMPDIR" in os.environ or not _MEMORY.is_dir():
        return
    if min(shutil.disk_usage(_MEMORY).free, psutil.virtual_memory().available) > _MEMORY_BYTES_MIN:
        os.environ["TMPDIR"] = str(_MEMORY)
        tempfile.tempdir = None  # looked up once; it is to be looked up again


def pytest_itemcollected(item: pytest.Item) -> None:
    # What takes minutes on purpose is not stopped after two; one of its own limits it further.
    if item.get_closest_marker("soak") and not item.get_closest_marker("timeout"):
        item.add_marker(pytest.mark.timeout(_SOAK_S_MAX))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if asked_for() and item.get_closest_marker("direct"):
        pytest.skip("a pooler stands before PostgreSQL")
    for marker in item.iter_markers("system"):
        missing = [program for program in marker.args if _find_program(program) is None]
        if missing:
            reason = f"{' and '.join(missing)} not found"
            item.user_properties.append((_LEFT_OUT, reason))
            pytest.skip(reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    left_out = [
        (report.nodeid, dict(getattr(report, "user_properties", ())).get(_LEFT_OUT))
        for report in skipped
    ]
    if any(reason for _, reason in left_out):
        terminalreporter.section("left out: programs that this machine lacks")
        for name, reason in left_out:
            if reason:
                terminalreporter.write_line(f"{name}: {reason}")
    took = [
        (report.nodeid.rpartition("::test_")[2], line)
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, line in report.user_properties
        if name == _TOOK
    ]
    if took:
        terminalreporter.section("faults: until all was well again")
        width = max(len(name) for name, _ in took)
        for name, line in took:
            terminalreporter.write_line(f"{name:{width}}  {line}")
    if not _DATA_DIR.is_dir():
        terminalreporter.section("left out: tests on real data")
        terminalreporter.write_line(f"{_DATA_DIR} is missing; TRUERANK_TEST_DATA names another")


def _await_redis(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_S_MAX
    with redis.Redis.from_url(url) as client:
        while process.poll() is None and time.monotonic() < deadline:
            try:
                client.ping()
            except redis.ConnectionError:
                time.sleep(0.005)
                continue
            return
    pytest.fail(f"the server does not answer: {process.args!r}")


def _find_program(name: str) -> str | None:
    """Find a program that pip does not bring; `postgres` is rarely on PATH where it is there."""
    if name == "chromium" and (named := os.environ.get("TRUERANK_CHROMIUM")):
        return named
    if name == "postgres":
        for program in sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres")):
            return str(program)
    return shutil.which(name)


def _url_of(engines: Engines, database: str) -> str:
    return engines.database_url.replace("/truerank?", f"/{database}?")


def _database(engines: Engines, template: str, number: int, used: list[str]) -> Iterator[str]:
    # As files: through the log of the server it costs twice as much.
    copy = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
    drop = sql.SQL("DROP DATABASE {} WITH (FORCE)")
    name = f"test_{number}"
    with psycopg.connect(engines.database_url, autocommit=True) as conn:
        # Not at the end of its own test: while connections to it are just ending, PostgreSQL
        # waits a tenth of a second before it drops a database.
        while used:
            conn.execute(drop.format(sql.Identifier(used.pop())))
        conn.execute(copy.format(sql.Identifier(name), sql.Identifier(template)))
    yield _url_of(engines, name)
    used.append(name)

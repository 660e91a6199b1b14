"""A real server on a free port of the loopback, over real engines, with a worker where asked."""

import asyncio
import json
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import msgspec
import pytest

import truerank
from tests.http.stand import Stand
from tests.projection.pipeline import pipeline
from truerank.local import running_worker
from truerank.serve.server import run_server
from truerank.settings import Settings

_DEADLINE_S = 20.0
# No certificate is ever asked for, and to load those of the world takes longer than most tests.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@contextmanager
def serving(settings: Settings) -> Iterator[str]:
    """Serve in a thread; the address, without the slash at its end."""
    stop, ready = threading.Event(), threading.Event()
    urls: list[str] = []
    failures: list[BaseException] = []

    def note(url: str) -> None:
        urls.append(url)
        ready.set()

    def run() -> None:
        try:
            run_server(settings, port=0, ready=note, stop=stop)
        except BaseException as exc:
            failures.append(exc)
            ready.set()
            raise

    thread = threading.Thread(target=run, name="server")
    thread.start()
    try:
        assert ready.wait(_DEADLINE_S), "the server does not start"
        assert not failures, failures
        yield urls[0].rstrip("/")
    finally:
        stop.set()
        thread.join(_DEADLINE_S)
        assert not thread.is_alive(), "the server does not stop"


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    # Channels are shared by all logical databases of a server: a prefix of this test's own.
    return Settings(
        database_url=database_url,
        redis_url=redis_url,
        prefix="test-" + database_url.partition("?")[0].rpartition("/")[2],
    )


@pytest.fixture
def holding(settings: Settings) -> Settings:
    """Pages are held for longer than any test takes: what goes earlier goes for another reason."""
    return msgspec.structs.replace(
        settings,
        heartbeat_ms=3_600_000,
        lease_ms=3_600_000,
        board_cache_ms=1,
        cache_max_ms=60_000,
        live_checks_percent=0,
    )


@pytest.fixture
def stand(holding: Settings) -> Iterator[Stand]:
    """Boards `b` and `other`; ann has 10 on each, which is shown."""
    with pipeline(holding, groups=1) as made:
        projector = made.projector()
        for board in ("b", "other"):
            made.client.create_board(board, seasons=["all"])
        stand = Stand(made, projector)
        stand.write({"ann": 10})
        stand.write({"ann": 10}, "other")
        yield stand


@pytest.fixture
def worker(settings: Settings) -> Iterator[None]:
    """A worker that projects; ask for it before `served`."""
    with running_worker(settings):
        yield


@pytest.fixture
def served(settings: Settings) -> Iterator[str]:
    with serving(settings) as url:
        yield url


@pytest.fixture
def http(served: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served, timeout=20.0, verify=NO_CERTIFICATES) as client:
        yield client


@pytest.fixture
def tr(settings: Settings) -> Iterator[truerank.Truerank]:
    with truerank.Truerank(settings) as client:
        yield client


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    """Wait for a condition, with a deadline."""

    def wait(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, "the condition does not become true"
            time.sleep(0.02)

    return wait


class Wire:
    """A unix socket before an engine's, which can be cut or go silent."""

    def __init__(self, path: Path, target: str) -> None:
        self._path, self._target = path, target
        self._pairs: list[socket.socket] = []
        self._listening: socket.socket | None = None
        self._silent = threading.Event()
        self.join()

    def join(self) -> None:
        """Take connections and pass on what they carry."""
        self._path.unlink(missing_ok=True)
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self._path))
        self._listening.listen()
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def cut(self) -> None:
        """Close all connections and refuse new ones."""
        assert self._listening is not None
        self._path.unlink(missing_ok=True)
        _close(self._listening)
        self.drop()

    def drop(self) -> None:
        """Close all connections; new ones are taken."""
        while self._pairs:
            _close(self._pairs.pop())

    def silence(self) -> None:
        """Let the connections that are open now swallow what arrives, and say nothing."""
        self._silent.set()
        self._silent = threading.Event()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                near, _ = listening.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self._target)
            self._pairs += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(
                    target=self._pump, args=(source, sink, self._silent), daemon=True
                ).start()

    def _pump(self, source: socket.socket, sink: socket.socket, silent: threading.Event) -> None:
        try:
            while data := source.recv(65536):
                if not silent.is_set():
                    sink.sendall(data)
        except OSError:
            pass  # the other direction ended first
        finally:
            _close(source)
            _close(sink)


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


@pytest.fixture
def wires(settings: Settings) -> Iterator[tuple[Settings, Wire, Wire]]:
    """Settings that reach PostgreSQL and Valkey through a wire each, and the two wires."""
    assert settings.database_url is not None
    assert settings.redis_url is not None
    database, redis = urlsplit(settings.database_url), urlsplit(settings.redis_url)
    parts = parse_qs(database.query)
    port = parts.get("port", ["5432"])[0]
    with tempfile.TemporaryDirectory(prefix="wire-") as folder:
        postgres = Wire(Path(folder, f".s.PGSQL.{port}"), f"{parts['host'][0]}/.s.PGSQL.{port}")
        valkey = Wire(Path(folder, "valkey"), redis.path)
        through = Settings(
            database_url=f"postgresql://truerank@{database.path}?host={folder}&port={port}",
            redis_url=f"unix://{folder}/valkey?{redis.query}",
            prefix=settings.prefix,
            redis_timeout_ms=1000,
        )
        yield through, postgres, valkey
        postgres.cut()
        valkey.cut()


class Events:
    """The events of one open stream."""

    def __init__(self, answer: httpx.Response) -> None:
        self.headers = answer.headers
        self.status_code = answer.status_code
        self._lines = answer.aiter_lines()

    async def next(self, timeout_s: float = _DEADLINE_S) -> tuple[str, dict[str, Any]]:
        """Name and data of the next event; comments are passed over."""
        name, data = "", ""
        async with asyncio.timeout(timeout_s):
            async for line in self._lines:
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    data = value
                elif not line and name:
                    return name, json.loads(data)
        raise EOFError("the stream ended")

    async def ended(self) -> None:
        """Read to the end of the stream."""
        async with asyncio.timeout(_DEADLINE_S):
            async for _ in self._lines:
                pass


@asynccontextmanager
async def streaming(url: str, board: str, **headers: str) -> AsyncIterator[Events]:
    """Open the stream of a board."""
    async with (
        httpx.AsyncClient(base_url=url, timeout=30.0, verify=NO_CERTIFICATES) as client,
        client.stream("GET", f"/v1/boards/{board}/live", headers=headers) as answer,
    ):
        yield Events(answer)


@pytest.fixture
def stream() -> Callable[..., Any]:
    """Opens the stream of a board, given the address and the board."""
    return streaming


@pytest.fixture
def serve() -> Callable[[Settings], Any]:
    """Serves with other settings, for the length of a block."""
    return serving

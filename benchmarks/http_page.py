"""A page over HTTP from one server process, beside constant bytes from the same stack."""

import re
import selectors
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from benchmarks.pipeline import Truerank
from benchmarks.processes import Child, Pipe, Task, ready, started, stop_on_close
from benchmarks.result import Bar, Result, median, versions
from truerank.embedded import Engines
from truerank.serve.server import run_server
from truerank.settings import Settings

ROUNDS = 3
ROWS = 100
CONNECTIONS = 16  # kept alive

_SECONDS, _SECONDS_SHORT = 5.0, 1.0
_WARM_S = 0.5
_HOST = "127.0.0.1"
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n")
_PAGE = f"/v1/boards/bench/top?limit={ROWS}"


def http_page(engines: Engines, progress: Callable[[str], None], *, short: bool) -> Result:
    """The top 100 over HTTP, held by the server, beside constant bytes and PostgreSQL's answer."""
    members = 10_000 if short else 100_000
    seconds = _SECONDS_SHORT if short else _SECONDS
    pipeline = Truerank(engines, members)
    pipeline.prepare()
    settings = Settings(database_url=engines.database_url, redis_url=engines.redis_url)
    rates: dict[str, list[float]] = {}
    with ExitStack() as stack:
        stack.enter_context(started(pipeline.worker()))
        ours = _url(stack.enter_context(started(Task(serve_boards, (settings,)))))
        body = _shown(ours)
        constant = _url(stack.enter_context(started(Task(serve_constant, (body,)))))
        sides = {
            "truerank": ours + _PAGE,
            "constant": constant + "/",
            "PostgreSQL each time": f"{ours}{_PAGE}&source=database",
        }
        for number in range(ROUNDS):
            for side, url in sides.items():
                progress(f"round {number + 1} of {ROUNDS}: {side}")
                with started(Task(ask, (url, seconds))) as asker:
                    asker.begin()
                    rates.setdefault(side, []).append(asker.result())
    middles = {side: median(rounds) for side, rounds in rates.items()}
    ratio = middles["truerank"] / middles["constant"]
    gain = middles["truerank"] / middles["PostgreSQL each time"]
    return Result(
        name="http_page",
        short=short,
        ratio=ratio,
        ratio_of="answers/s by constant answers/s of the same size, from the same stack",
        bars=[
            Bar(of="times the rate of a constant response", value=ratio, bar=0.7, at_least=True),
            Bar(of="times the rate of asking PostgreSQL", value=gain, bar=2, at_least=True),
        ],
        sizes={"members": members, "rows": ROWS, "bytes": len(body), "connections": CONNECTIONS},
        engines=versions(engines),
        rounds=rates,
        rounds_of="answers per second of one server process",
    )


def serve_boards(pipe: Pipe, settings: Settings) -> None:
    """A process that serves what Truerank serves; it tells its address."""
    run_server(settings, port=0, ready=lambda url: _tell(pipe, url), stop=stop_on_close(pipe))


def serve_constant(pipe: Pipe, body: bytes) -> None:
    """A process that serves the same bytes always, with nothing of Truerank in the way."""

    async def constant(_: Request) -> Response:
        return Response(body, media_type="application/json")

    app = Starlette(routes=[Route("/", constant)])
    config = uvicorn.Config(
        app, http="httptools", loop="uvloop", ws="none", access_log=False, log_config=None,
        server_header=False, proxy_headers=False,
    )  # fmt: skip
    server = uvicorn.Server(config)
    stop = stop_on_close(pipe)

    async def on_tick(counter: int) -> bool:
        server.should_exit = server.should_exit or stop.is_set()
        return await type(server).on_tick(server, counter)

    server.on_tick = on_tick  # type: ignore[method-assign]  # how it learns that it may end
    with socket.create_server((_HOST, 0)) as listening:
        _tell(pipe, f"http://{_HOST}:{listening.getsockname()[1]}/")
        server.run(sockets=[listening])


def ask(pipe: Pipe, url: str, seconds: float) -> None:
    """A process that asks over some connections, each again once it is answered.

    It hands back the answers per second.
    """
    parts = urlsplit(url)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    request = f"GET {path} HTTP/1.1\r\nhost: {parts.netloc}\r\n\r\n".encode()
    with _connections(parts.hostname or "", parts.port or 0) as connections:
        ready(pipe)
        _answers(connections, request, _WARM_S)
        count, took_s = _answers(connections, request, seconds)
    pipe.send(count / took_s)


@contextmanager
def _connections(host: str, port: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection((host, port))) for _ in range(CONNECTIONS)
        ]


def _answers(connections: list[socket.socket], request: bytes, seconds: float) -> tuple[int, float]:
    """How many were answered, and how many seconds it took."""
    count, began = 0, time.perf_counter()
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ, (connection, bytearray()))
            connection.sendall(request)
        while selector.get_map():
            for key, _ in selector.select():
                connection, got = key.data
                got += connection.recv(1 << 16)
                if not _is_whole(got):
                    continue
                got.clear()
                count += 1
                if time.perf_counter() < began + seconds:
                    connection.sendall(request)
                else:
                    selector.unregister(connection)
    return count, time.perf_counter() - began


def _is_whole(answer: bytearray) -> bool:
    end = answer.find(b"\r\n\r\n")
    if end < 0:
        return False
    assert answer.startswith(b"HTTP/1.1 200 "), bytes(answer[:200])
    length = _LENGTH.search(answer, 0, end + 2)
    assert length is not None, "every answer tells its length"
    return len(answer) == end + 4 + int(length[1])


def _shown(url: str) -> bytes:
    """The page as the projection shows it."""
    answer = httpx.get(url + _PAGE).raise_for_status()
    assert answer.headers["truerank-source"] == "projection", "the worker was waited for"
    return answer.content


def _url(server: Child) -> str:
    told: str = server.result()
    return told.rstrip("/")


def _tell(pipe: Pipe, url: str) -> None:
    pipe.send(None)  # ready
    pipe.send(url)

"""Receivers on the loopback that answer as told, and deliveries that a test makes step by step."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

import truerank
from tests.faults.pooler import caller_options
from tests.settle.conftest import Months
from truerank.deliver.deliverer import Deliverer
from truerank.deliver.schedule import Schedule
from truerank.projection import worker
from truerank.settings import Settings
from truerank.telemetry.meter import Meter
from truerank.webhooks import Message, verify

DEADLINE_S = 30.0
LOCALHOST = Path(__file__).parent / "localhost.pem"  # a certificate and its key, valid for long
BY: Any = Months.BY
ALL = ("award.given", "award.withdrawn", "season.final", "season.revised", "member.erased",
       "event.voided")  # fmt: skip


@dataclass(frozen=True)
class Got:
    """A request that a receiver got."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def key(self) -> str:
        return self.headers["webhook-id"]

    @property
    def message(self) -> Any:
        return json.loads(self.body)

    def verified(self, *secrets: str) -> Message:
        return verify(secrets, self.headers, self.body)


class Receiver:
    """Answers each request with what `answer` says: a status, or a status and headers."""

    def __init__(self, *, encrypted: bool = False) -> None:
        self.answer: Callable[[Got], int | tuple[int, dict[str, str]]] = lambda _: 200
        self.got: list[Got] = []
        self._more = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                got = Got(self.path, dict(self.headers), body)
                with receiver._more:
                    receiver.got.append(got)
                    receiver._more.notify_all()
                answer = receiver.answer(got)
                status, headers = answer if isinstance(answer, tuple) else (answer, {})
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                pass  # who was cut off is told by the test

        self._server = Server(("127.0.0.1", 0), Handler)
        scheme = "http"
        if encrypted:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(LOCALHOST)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
            scheme = "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_port}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def wait(self, requests: int) -> None:
        with self._more:
            assert self._more.wait_for(lambda: len(self.got) >= requests, DEADLINE_S)

    def messages(self, kind: str) -> list[Any]:
        return [got.message for got in self.got if got.message["type"] == kind]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Counting(Meter):
    def __init__(self) -> None:
        self.outcomes: list[str] = []

    def delivery_ended(self, outcome: str) -> None:
        self.outcomes.append(outcome)


class Post:
    """A client of an empty installation, receivers, and whoever delivers to them.

    By default a delivery that failed is tried again at once.
    """

    def __init__(self, settings: Settings, client: truerank.Truerank) -> None:
        assert settings.database_url is not None
        self.settings = settings
        self.client = client
        self.meter = Counting()
        self.conn: psycopg.Connection[Any] = worker.connect(settings.database_url)
        self._receivers: list[Receiver] = []

    def receiver(self, *, encrypted: bool = False) -> Receiver:
        self._receivers.append(Receiver(encrypted=encrypted))
        return self._receivers[-1]

    def add(self, name: str, url: str, *kinds: str, board: str | None = None) -> str:
        return self.client.add_webhook(name, url, kinds or ALL, board=board, allow_http=True, **BY)

    def deliver(self, *, again_s: float = 0.0, attempts_max: int = 3, **changes: Any) -> None:
        """Deliver until nothing is due."""
        self.deliverer(again_s=again_s, attempts_max=attempts_max, **changes).deliver(
            self.conn, self.meter, threading.Event()
        )

    def deliverer(
        self, *, again_s: float = 0.0, attempts_max: int = 3, **changes: Any
    ) -> Deliverer:
        schedule = Schedule(attempts_max=attempts_max, first_s=again_s, receiver_s=0.0)
        return Deliverer(msgspec.structs.replace(self.settings, **changes), schedule)

    @contextmanager
    def delivering(self, **how: Any) -> Iterator[None]:
        """Deliver in a thread for the length of the block, on a connection of its own."""
        assert self.settings.database_url is not None
        stop = threading.Event()
        deliverer = self.deliverer(**how)
        failures: list[BaseException] = []
        with worker.connect(self.settings.database_url) as conn:

            def work() -> None:
                try:
                    while not stop.is_set():
                        stop.wait(deliverer.deliver(conn, self.meter, stop))
                except BaseException as exc:  # noqa: BLE001 - raised again below
                    failures.append(exc)

            thread = threading.Thread(target=work)
            thread.start()
            try:
                yield
            finally:
                stop.set()
                thread.join()
        if failures:
            raise failures[0]

    def caller(self) -> psycopg.Connection[Any]:
        """A connection of somebody who decides when to commit."""
        assert self.settings.database_url is not None
        return psycopg.connect(self.settings.database_url, **caller_options())

    def states(self, name: str = "w") -> list[tuple[str, str | None, int]]:
        """State, outcome and attempts of each delivery, the first one first."""
        found = self.client.deliveries(name)
        return [(each.state, each.outcome, each.attempts) for each in reversed(found)]

    def close(self) -> None:
        self.conn.close()
        for receiver in self._receivers:
            receiver.close()


@pytest.fixture
def post(database_url: str, redis_url: str) -> Iterator[Post]:
    """No worker runs."""
    settings = Settings(
        database_url=database_url,
        redis_url=redis_url,
        webhook_networks="127.0.0.0/8",
        webhook_ms=5,
        board_cache_ms=1,
    )
    with truerank.Truerank(settings) as client:
        made = Post(settings, client)
        try:
            yield made
        finally:
            made.close()


@pytest.fixture
def months(post: Post) -> Months:
    """A board `b` by month that sums; see `Months`."""
    return Months(post.client, post.conn)

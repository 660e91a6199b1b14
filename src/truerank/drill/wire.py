"""A wire before an engine that can lose a reply, or hold a request back; it knows no protocol.

Over unix sockets, where the drill's engines listen. Where a reply is lost, its request was carried
out: it went through, and its answer never came.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

from psycopg.conninfo import conninfo_to_dict

_PIECE_BYTES = 65_536
_QUIET_S = 0.3  # after which a server that answered has answered all of a request


class Wire:
    """See the module. All methods may be called from any thread.

    Args:
        upstream: path of the engine's socket.
        listen: path of the wire's own.
    """

    def __init__(self, upstream: Path, listen: Path) -> None:
        self._upstream = upstream
        self._listen = listen
        self._lock = threading.Lock()
        self._ends: set[socket.socket] = set()
        self._losing: bytes | None = None
        self._holding: bytes | None = None
        self._released = threading.Event()
        self.lost = 0  # replies so far
        self.held = 0  # requests so far
        self._replied_at = 0.0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(listen))
        self._listener.listen()
        self._threads = [threading.Thread(target=self._accept, name="wire")]
        self._threads[0].start()

    def lose_reply(self, request: bytes) -> None:
        """Lose the reply to the next request that contains these bytes, and its connection."""
        with self._lock:
            self._losing = request

    def hold_request(self, request: bytes) -> None:
        """Keep the next request that contains these bytes from arriving, until `release`."""
        with self._lock:
            self._holding = request

    def release(self) -> None:
        """Let what is held back arrive."""
        self._replied_at = 0.0
        self._released.set()

    @property
    def is_answered(self) -> bool:
        """Whether what was released was answered, and the server has nothing more to say."""
        return 0 < self._replied_at < time.monotonic() - _QUIET_S

    def close(self) -> None:
        """End everything."""
        self._released.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._listen.unlink(missing_ok=True)
        self._cut()
        for thread in self._threads:
            thread.join()

    def _cut(self) -> None:
        with self._lock:
            ends = list(self._ends)
        for end in ends:
            with suppress(OSError):  # it ended by itself
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(str(self._upstream))
            except OSError:
                client.close()
                server.close()
                continue
            with self._lock:
                self._ends |= {client, server}
            doomed = threading.Event()
            for source, target, asks in ((client, server, True), (server, client, False)):
                thread = threading.Thread(
                    target=self._pump, args=(source, target, doomed, asks), name="wire"
                )
                thread.start()
                self._threads.append(thread)

    def _pump(
        self,
        source: socket.socket,
        target: socket.socket,
        doomed: threading.Event,
        asks: bool,  # noqa: FBT001 - a thread's argument
    ) -> None:
        with suppress(OSError):  # the other side's pump ended the connection
            while piece := source.recv(_PIECE_BYTES):
                if asks:
                    self._judge(piece, doomed)
                elif doomed.is_set():
                    self._lose(source)
                    break
                target.sendall(piece)
                self._replied_at = self._replied_at if asks else time.monotonic()
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._ends.discard(source)
        source.close()

    def _judge(self, request: bytes, doomed: threading.Event) -> None:
        """Hold a request back, or remember that its reply is to be lost, where that was asked."""
        with self._lock:
            if self._losing is not None and self._losing in request:
                self._losing = None
                doomed.set()
            holds = self._holding is not None and self._holding in request
            if holds:
                self._holding = None
                self.held += 1
        if holds:
            self._released.wait()

    def _lose(self, server: socket.socket) -> None:
        """Hear a server out, so that all of the request is carried out, and keep it to yourself."""
        server.settimeout(_QUIET_S)
        with suppress(TimeoutError):
            while server.recv(_PIECE_BYTES):
                continue
        with self._lock:
            self.lost += 1


@contextmanager
def redis_through(redis_url: str) -> Iterator[tuple[Wire, str]]:
    """A wire before Redis, and the URL that leads through it."""
    parts = urlsplit(redis_url)
    # The engines' own folder: its path is short enough, and nobody else can enter it.
    listen = Path(parts.path).with_name("wire")
    wire = Wire(Path(parts.path), listen)
    try:
        yield wire, f"unix://{listen}?{parts.query}"
    finally:
        wire.close()


@contextmanager
def postgresql_through(database_url: str) -> Iterator[tuple[Wire, str]]:
    """A wire before PostgreSQL, and the URL that leads through it."""
    known = conninfo_to_dict(database_url)
    folder, port = Path(str(known["host"])), int(str(known["port"]))
    parts = urlsplit(database_url)
    # The name of a socket is made of its port.
    query = parse_qs(parts.query) | {"port": [str(port + 1)]}
    wire = Wire(folder / f".s.PGSQL.{port}", folder / f".s.PGSQL.{port + 1}")
    try:
        yield wire, parts._replace(query=urlencode(query, doseq=True)).geturl()
    finally:
        wire.close()

"""A wire between a client and a server that a test can harm; it knows no protocol.

Redis and PostgreSQL alike, over unix sockets: the client is given the proxy's address, and
everything goes through until a test does one of

- `refuse()`: connections end, and new ones are refused, until `mend()`;
- `cut()`: all connections end; new ones are welcome;
- `hold()`: half-open: connections are accepted and stay, nothing passes, until `mend()`;
- `swallow_replies()`: the server gets and does everything, the client hears nothing; `mend()`;
- `delay_s`: every piece of every reply waits so long;
- `cut_after(n, Side.REQUESTS)`: once: `n` further bytes pass to the server, then the connection
  that they came by ends; with `Side.REPLIES` the same of bytes to the client;
- `lose_reply(b"EVALSHA", nth=2)`: once: the third request from now that contains these bytes is
  carried out by the server, its reply is lost, and the connection ends;
- `lose_request(b"EVALSHA", nth=2)`: once: that request does not arrive, and the connection ends;
- `upstream = path`: where connections made from now on lead, as after a failover.

`faults` counts what `cut_after`, `lose_reply` and `lose_request` did: wait for it before looking at
what followed.
`requests` counts pieces of requests that passed: what a client sends in one round trip is one
piece or, where it is longer than 64 KiB, a few.

    with redis_through(url) as (proxy, url_through):
        proxy.lose_reply(b"EVALSHA")
        ...
        wait_until(lambda: proxy.faults == 1, "the reply was lost")

`postgresql_through(url)` is the same for a URL of PostgreSQL: `proxy.lose_reply(b"COMMIT")`. It
takes only URLs that name the folder of a unix socket, as those of the embedded engines do.
"""

import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, urlencode, urlsplit

from psycopg.conninfo import conninfo_to_dict

_PIECE_BYTES = 65_536


class Side(Enum):
    """Which way bytes go."""

    REQUESTS = "to the server"
    REPLIES = "to the client"


class Proxy:
    """See the module. All its methods may be called from any thread.

    Args:
        upstream: path of the server's unix socket.
        listen: path of the proxy's own.
    """

    def __init__(self, upstream: Path, listen: Path) -> None:
        self.upstream = upstream
        self.listen = listen
        self.delay_s = 0.0
        self.faults = 0
        self.requests = 0
        self._changed = threading.Condition()
        self._wires: set[_Wire] = set()
        self._held = self._mute = False
        self._bytes_left: dict[Side, int] = {}
        self._losing: tuple[Side, bytes, int] | None = None
        self._listener: socket.socket | None = None
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.refuse()
        with self._changed:
            self._changed.wait_for(lambda: not self._wires)
        for thread in self._threads:
            thread.join()

    def refuse(self) -> None:
        """End all connections, and let the system refuse new ones."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.cut()

    def cut(self) -> None:
        """End all connections."""
        with self._changed:
            wires = list(self._wires)
        for wire in wires:
            self._end(wire)

    def hold(self) -> None:
        """Let nothing pass, neither way, and end nothing."""
        with self._changed:
            self._held = True

    def swallow_replies(self) -> None:
        """Let requests pass, and drop every reply."""
        with self._changed:
            self._mute = True

    def mend(self) -> None:
        """Let everything pass again that is not lost, and accept connections."""
        with self._changed:
            self._held = self._mute = False
            self._losing = None
            self._bytes_left.clear()
            self._changed.notify_all()
        if self._listener is None:
            self._open()

    def cut_after(self, bytes_: int, side: Side) -> None:
        """End the connection by which the byte after `bytes_` further ones goes to a side."""
        with self._changed:
            self._bytes_left[side] = bytes_

    def lose_reply(self, request: bytes, *, nth: int = 0) -> None:
        """Let the server carry out the nth request from now (from 0) that contains some bytes.

        Its reply is dropped, and its connection ends.
        """
        with self._changed:
            self._losing = (Side.REPLIES, request, nth)

    def lose_request(self, request: bytes, *, nth: int = 0) -> None:
        """Let the nth request from now (from 0) that contains some bytes not arrive.

        Its connection ends.
        """
        with self._changed:
            self._losing = (Side.REQUESTS, request, nth)

    @property
    def connections(self) -> int:
        """How many connections go through just now."""
        with self._changed:
            return len(self._wires)

    def _open(self) -> None:
        self.listen.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.listen))
        listener.listen(128)
        self._listener = listener
        thread = threading.Thread(target=self._accept, args=(listener,), name="proxy")
        thread.start()
        self._threads.append(thread)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server, upstream = socket.socket(socket.AF_UNIX), self.upstream
            try:
                server.connect(str(upstream))
            except OSError:
                client.close()
                server.close()
                continue
            wire = _Wire(client, server)
            with self._changed:
                # `refuse`, or another way, may have come between.
                refused = self._listener is not listener or self.upstream != upstream
                if not refused:
                    self._wires.add(wire)
            if refused:
                wire.close()
                continue
            for side in Side:
                threading.Thread(target=self._pump, args=(wire, side), name="proxy").start()

    def _pump(self, wire: "_Wire", side: Side) -> None:
        source, target = (
            (wire.client, wire.server) if side is Side.REQUESTS else (wire.server, wire.client)
        )
        try:
            while piece := source.recv(_PIECE_BYTES):
                passing, ends = self._admit(wire, side, piece)
                target.sendall(passing)
                if ends:
                    break
        except OSError:
            pass  # the other side's pump, or a fault, ended the connection
        self._end(wire)
        with self._changed:
            wire.pumps -= 1
            if wire.pumps == 0:
                wire.close()
                self._wires.discard(wire)
                self._changed.notify_all()

    def _admit(self, wire: "_Wire", side: Side, piece: bytes) -> tuple[bytes, bool]:
        """What of a piece passes, and whether its connection ends with that."""
        with self._changed:
            if side is Side.REPLIES and self.delay_s:
                self._changed.wait_for(lambda: wire.ended, self.delay_s)
            self._changed.wait_for(lambda: wire.ended or not self._held)
            left = self._bytes_left.get(side)
            if left is not None:
                if len(piece) > left:
                    del self._bytes_left[side]
                    self.faults += 1
                    return piece[:left], True
                self._bytes_left[side] = left - len(piece)
            if side is Side.REQUESTS:
                self.requests += 1
                if self._aim(wire, piece):
                    self.faults += 1
                    return b"", True
            elif wire.doomed:
                self.faults += 1
                return b"", True
            return (b"" if side is Side.REPLIES and self._mute else piece), False

    def _aim(self, wire: "_Wire", piece: bytes) -> bool:
        """Whether this request is lost; a reply that is to be lost is remembered."""
        if self._losing is None or self._losing[1] not in piece:
            return False
        side, request, nth = self._losing
        self._losing = (side, request, nth - 1) if nth else None
        wire.doomed = nth == 0 and side is Side.REPLIES
        return nth == 0 and side is Side.REQUESTS

    def _end(self, wire: "_Wire") -> None:
        with self._changed:
            wire.ended = True
            self._changed.notify_all()
        wire.shut()


class _Wire:
    """The two sockets of one connection."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        self.pumps = len(Side)
        self.ended = False
        self.doomed = False  # the next reply is lost, and the connection with it

    def shut(self) -> None:
        for end in (self.client, self.server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it ended by itself

    def close(self) -> None:
        self.client.close()
        self.server.close()


@contextmanager
def redis_through(redis_url: str) -> Iterator[tuple[Proxy, str]]:
    """A proxy before a Redis server on a unix socket, and the URL that leads through it."""
    parts = urlsplit(redis_url)
    assert parts.scheme == "unix", f"not a unix socket: {redis_url}"
    with tempfile.TemporaryDirectory(prefix="tr-") as folder:  # a socket's path must be short
        listen = Path(folder) / "s"
        with Proxy(Path(parts.path), listen) as proxy:
            yield proxy, f"unix://{parts.netloc}{listen}?{parts.query}"


@contextmanager
def postgresql_through(database_url: str) -> Iterator[tuple[Proxy, str]]:
    """A proxy before PostgreSQL on a unix socket, and the URL that leads through it."""
    known = conninfo_to_dict(database_url)
    name = f".s.PGSQL.{known.get('port') or 5432}"
    parts = urlsplit(database_url)
    with tempfile.TemporaryDirectory(prefix="tr-") as folder:
        listen = Path(folder) / name
        query = parse_qs(parts.query) | {"host": [folder]}
        with Proxy(Path(str(known["host"])) / name, listen) as proxy:
            yield proxy, parts._replace(query=urlencode(query, doseq=True)).geturl()

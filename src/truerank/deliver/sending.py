"""One request to a receiver: bounded in time and size, and never redirected.

Proxies that the environment names are not used: what is judged is the address that is called.
"""

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from truerank.deliver.addresses import AddressRefused, Network, connect

_BODY_BYTES_MAX = 16_384  # of an answer, which nobody reads
_BODY_S_MAX = 1.0
_TRUST_S = 60.0

_WORDS: tuple[tuple[type[Exception], str], ...] = (
    (AddressRefused, "address_refused"),
    (socket.gaierror, "name_unknown"),
    (TimeoutError, "timeout"),
    (ssl.SSLError, "tls_failed"),
    (ConnectionRefusedError, "connection_refused"),
    (OSError, "connection_lost"),
    (UnicodeError, "name_unknown"),
    (http.client.HTTPException, "no_http"),
    (ValueError, "url_invalid"),
)


class Trust:
    """The certificates that are trusted: read once a minute, for all requests of a process.

    To read them takes longer than all else that a request costs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._context: ssl.SSLContext | None = None
        self._until = 0.0

    def context(self) -> ssl.SSLContext:
        """What a connection is wrapped by."""
        with self._lock:
            if self._context is None or time.monotonic() > self._until:
                self._context = ssl.create_default_context()
                self._until = time.monotonic() + _TRUST_S
            return self._context


@dataclass(frozen=True, slots=True)
class Answer:
    """How an attempt ended."""

    outcome: str  # a status of HTTP, or a word where there was none
    status: int | None = None
    retry_after_s: float | None = None

    @property
    def delivered(self) -> bool:
        """Whether the receiver has taken it."""
        return self.status is not None and self.status // 100 == 2  # noqa: PLR2004 - of HTTP


class Sending:
    """One attempt, which another thread may cut short.

    Args:
        url: of the receiver.
        networks: private ones that may be called.
        timeout_s: for all of it together.
        trust: what certificates are judged by.
    """

    def __init__(
        self, url: str, networks: Sequence[Network], timeout_s: float, trust: Trust
    ) -> None:
        self._url = url
        self._networks = networks
        self._trust = trust
        self._deadline = time.monotonic() + timeout_s
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._aborted = False

    @property
    def overdue(self) -> bool:
        """Whether it has taken too long."""
        return time.monotonic() > self._deadline

    def post(self, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send a request, and tell how it ended; nothing is raised that a receiver can cause."""
        try:
            return self._post(body, headers)
        except (OSError, http.client.HTTPException, ValueError) as exc:
            cut = self._aborted and not isinstance(exc, AddressRefused)
            return Answer("timeout" if cut else _word(exc))

    def abort(self) -> None:
        """End it, from another thread: who sends a byte now and then isn't waited for."""
        with self._lock:
            self._aborted = True
            if self._socket is not None:
                with suppress(OSError):
                    # Of the class itself: that of TLS would forget its state while another reads.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _post(self, body: bytes, headers: Mapping[str, str]) -> Answer:
        url = urlsplit(self._url)
        host = url.hostname or ""
        encrypted = url.scheme == "https"
        port = url.port or (443 if encrypted else 80)
        opened = connect(host, port, self._networks, self._left_s)
        try:
            if encrypted:
                opened = self._trust.context().wrap_socket(
                    opened, server_hostname=host, do_handshake_on_connect=False
                )
            opened.settimeout(self._left_s())
            self._watch(opened)
            if isinstance(opened, ssl.SSLSocket):
                opened.do_handshake()
            return self._exchange(opened, url, body, headers)
        finally:
            with self._lock:
                self._socket = None
            opened.close()

    def _exchange(
        self, opened: socket.socket, url: SplitResult, body: bytes, headers: Mapping[str, str]
    ) -> Answer:
        path = url.path or "/"
        target = f"{path}?{url.query}" if url.query else path
        connection = http.client.HTTPConnection(url.hostname or "", 80)  # never connects
        connection.sock = opened
        host = url.netloc.rpartition("@")[2]
        connection.request("POST", target, body, {"host": host, "connection": "close", **headers})
        with connection.getresponse() as response:
            answer = Answer(str(response.status), response.status, _retry_after_s(response))
            # Whoever answers may write all of it before the connection ends; it isn't kept.
            with suppress(OSError, http.client.HTTPException, ValueError):
                opened.settimeout(min(_BODY_S_MAX, self._left_s()))
                response.read1(_BODY_BYTES_MAX)
        return answer

    def _watch(self, opened: socket.socket) -> None:
        with self._lock:
            self._socket = opened
            if self._aborted:
                raise TimeoutError

    def _left_s(self) -> float:
        left_s = self._deadline - time.monotonic()
        if left_s <= 0 or self._aborted:
            raise TimeoutError
        return left_s


def _retry_after_s(response: http.client.HTTPResponse) -> float | None:
    """For how long a receiver wants to be left in peace, where it says so in seconds."""
    text = response.getheader("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else None


def _word(exc: Exception) -> str:
    return next(word for kind, word in _WORDS if isinstance(exc, kind))

"""A client's own deadline for an answer: a server that stands still keeps none of its own.

What waits for it is woken by shutting the socket down, as if the server had ended the connection.
"""

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import structlog

_LOOK_S = 0.2


def cut(fd: int) -> None:
    """End the conversation on a socket; whoever waits for it reads its end."""
    with socket.socket(fileno=os.dup(fd)) as line:
        try:
            line.shutdown(socket.SHUT_RDWR)
        except OSError as exc:
            # The other side was quicker.
            structlog.get_logger("truerank").debug("already_cut", error=str(exc))


class Patience:
    """Watches the waits of several threads; its own thread begins with the first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waits: dict[int, tuple[float, int]] = {}  # by number: until when, for which socket
        self._number = 0
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    @contextmanager
    def limiting(
        self, conn: psycopg.Connection[tuple[object, ...]], limit_s: float
    ) -> Iterator[None]:
        """Cut a connection whose server has not answered within so many seconds."""
        with self._lock:
            self._number += 1
            number = self._number
            self._waits[number] = (time.monotonic() + limit_s, conn.fileno())
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._watch, name="truerank-patience", daemon=True
                )
                self._thread.start()
        try:
            yield
        finally:
            # Before the connection can be closed, and its number be another's.
            with self._lock:
                self._waits.pop(number, None)

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_S):
            now = time.monotonic()
            with self._lock:
                late = [number for number, (until, _) in self._waits.items() if until < now]
                for number in late:
                    _, fd = self._waits.pop(number)
                    cut(fd)

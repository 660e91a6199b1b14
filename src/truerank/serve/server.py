"""Run the HTTP server in this thread until it is told to stop."""

import errno
import ipaddress
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from truerank.connections import urls
from truerank.errors import InvalidInput
from truerank.serve.app import create_app, create_watch_app
from truerank.serve.protocol import Protocol
from truerank.settings import Settings
from truerank.telemetry.metrics import Metrics

_PORT_MAX = 65_535
_SHUTDOWN_S_MAX = 2


def run_server(
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int,
    port_tries: int = 1,
    ready: Callable[[str], None],
    stop: threading.Event | None = None,
    numbers: Metrics | None = None,
) -> None:
    """Serve until `stop` is set, or where none is given until SIGINT or SIGTERM.

    Open streams are ended, requests get two seconds to finish.

    Args:
        settings: with both URLs.
        host: of the loopback; requests carry no keys yet, so nobody else may reach it.
        port: 0 takes any free one.
        port_tries: where the port is taken, so many in a row are tried.
        ready: called with the address once requests are accepted.
        stop: set from any thread. The caller then minds signals itself.
        numbers: what this process counts, where other parts of it count too.

    Raises:
        InvalidInput: the host isn't of the loopback, or there is no such port, or none is free.
        SettingsInvalid: an address is missing.
    """
    urls(settings)  # an address that is missing is told before anything starts
    app = create_app(settings, numbers)
    _run(app, host=host, port=port, port_tries=port_tries, ready=ready, stop=stop)


def run_watch_server(
    settings: Settings,
    numbers: Metrics,
    *,
    port: int,
    ready: Callable[[str], None],
    stop: threading.Event,
) -> None:
    """Serve `/metrics` and the health checks alone on 127.0.0.1, until `stop` is set.

    Arguments and errors as for `run_server`.
    """
    urls(settings)
    app = create_watch_app(settings, numbers)
    _run(app, host="127.0.0.1", port=port, port_tries=1, ready=ready, stop=stop)


def _run(
    app: Starlette,
    *,
    host: str,
    port: int,
    port_tries: int,
    ready: Callable[[str], None],
    stop: threading.Event | None,
) -> None:
    check_port(port)
    listening = _listen(_loopback(host), port, port_tries)
    try:
        name, number = listening.getsockname()[:2]
        url = f"http://[{name}]:{number}/" if ":" in name else f"http://{name}:{number}/"
        config = uvicorn.Config(
            app,
            http=Protocol,
            loop="uvloop",
            ws="none",
            lifespan="on",
            access_log=False,
            log_config=None,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=_SHUTDOWN_S_MAX,
        )
        _Server(config, app, lambda: ready(url), stop).run(sockets=[listening])
    finally:
        listening.close()


def check_port(port: int) -> None:
    """Refuse a number that no port can have.

    Raises:
        InvalidInput: it is below 0 or above 65535.
    """
    if not 0 <= port <= _PORT_MAX:
        raise InvalidInput(f"a port is a number from 0 to {_PORT_MAX}, not {port}", field="port")


class _Server(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        app: Starlette,
        ready: Callable[[], None],
        stop: threading.Event | None,
    ) -> None:
        super().__init__(config)
        self._app = app
        self._ready = ready
        self._stop = stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def on_tick(self, counter: int) -> bool:
        stopped = self._stop is not None and self._stop.is_set()
        return await super().on_tick(counter) or stopped

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn waits for open streams, and these wait for this.
        self._app.state.closing.set()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if self._stop is not None or threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Not raised again once the server has ended: it was asked to end, and did.
        del frame
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True


def _loopback(host: str) -> str:
    if host == "localhost":
        return "127.0.0.1"
    try:
        address = ipaddress.ip_address(host)
    except ValueError as exc:
        raise InvalidInput(
            f"host is an address such as 127.0.0.1, not {host!r}", field="host"
        ) from exc
    if not address.is_loopback:
        raise InvalidInput(
            f"host {host} can be reached from elsewhere, and requests carry no keys yet:"
            " only addresses of the loopback are taken",
            field="host",
        )
    return host


def _listen(host: str, port: int, tries: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    last = min(port + tries - 1, _PORT_MAX) if port else 0
    for number in range(port, last + 1):
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, number))
            # At once: until it listens, another process could bind the same port.
            listening.listen()
        except OSError as exc:
            listening.close()
            if exc.errno != errno.EADDRINUSE:
                message = f"port {number} of {host}: {exc.strerror}"
                raise InvalidInput(message, field="port") from exc
        else:
            return listening
    raise InvalidInput(f"no port from {port} to {last} is free on {host}", field="port")

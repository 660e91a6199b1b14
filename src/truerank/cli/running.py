"""`truerank up`, `worker`, `serve` and `migrate`: what keeps an installation going."""

import http.client
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from cyclopts import Parameter

from truerank.cli.options import Given, Json
from truerank.cli.output import note, say, write_json
from truerank.errors import TruerankError

if TYPE_CHECKING:
    from truerank.cli.context import Context
    from truerank.cli.foreground import Parts
    from truerank.embedded import Engines
    from truerank.settings import Settings
    from truerank.telemetry.metrics import Metrics

_PORT_TRIES = 50
_PAGE_S_MAX = 10.0
_DEMO_VISIBLE_S_MAX = 60.0
_LIVE_PAUSE_S = (0.1, 0.3)  # about five scores a second
_LIVE_EVENTS_MAX = 18_000  # about an hour of them

Port = Annotated[
    int,
    Parameter(name="--port", help="Of the page, on 127.0.0.1; where it is taken, the next free."),
]


def up(
    *,
    demo: Annotated[bool, Parameter(negative=())] = False,
    port: Port = 8080,
    tcp: Annotated[bool, Parameter(negative=())] = False,
    json: Json = False,
    given: Given,
) -> None:
    """Run everything in the foreground: engines, worker, page and HTTP; ends on Ctrl-C.

    One `up` at a time works on a data folder; a second one says where the first is, and ends.
    Other commands on the same folder join it. Where the variables name stores, it runs on these.

    Args:
        demo: Fill in the demo boards, and let new scores arrive for an hour.
        tcp: Let embedded PostgreSQL and Valkey listen on the loopback as well, with a password.
    """
    from truerank.cli.foreground import Parts, publish_address, until_told, watch_engines
    from truerank.embedded.folder import DataFolder
    from truerank.serve.server import check_port
    from truerank.telemetry.metrics import Metrics

    check_port(port)
    with until_told(), _up_on(given, tcp=tcp) as (settings, engines), Parts() as parts:
        folder = None
        if engines is not None:
            folder = DataFolder(engines.data)
            parts.start("engines", partial(watch_engines, engines, parts.stop))
        numbers = Metrics()
        _start_worker(parts, settings, numbers)
        url = _start_server(parts, settings, port, numbers)
        if demo:
            _fill(settings)
        _await_page(url)
        if folder is not None:
            publish_address(folder, url)
        shown = settings if folder is not None else _without_passwords(settings)
        if json:
            write_json(
                {
                    "ready": url,
                    "database_url": shown.database_url,
                    "redis_url": shown.redis_url,
                    "data": None if folder is None else str(folder.path),
                }
            )
        else:
            say(f"PostgreSQL  {shown.database_url}")
            say(f"Redis       {shown.redis_url}")
            say(f"ready {url}")
        if demo:
            parts.start("live scores", partial(_live, settings, parts.stop), passing=True)
        parts.wait()


def work(
    *,
    metrics_port: Annotated[int | None, Parameter(show_default=False)] = None,
    json: Json = False,
    given: Given,
) -> None:
    """Keep the projection up to date, in the foreground; ends on Ctrl-C.

    Any number of workers may run: they share the groups of boards among them. On embedded
    engines it joins those that run, and ends with them.

    Args:
        metrics_port: Serve /metrics, /healthz and /readyz on this port of 127.0.0.1; 0: any free
            one. Without it, nothing is served.
    """
    from truerank.serve.server import check_port
    from truerank.telemetry.metrics import Metrics

    check_port(metrics_port or 0)
    with _joined(given, away=False) as (settings, parts, _):
        numbers = Metrics()
        # Before the worker is ready: why it isn't is what there is to see.
        watched = None
        if metrics_port is not None:
            watched = _start_watch(parts, settings, metrics_port, numbers)
        _start_worker(parts, settings, numbers)
        if json:
            write_json({"ready": True} | ({} if watched is None else {"metrics": watched}))
        else:
            if watched is not None:
                say(f"metrics {watched}")
            say("ready: the projection is kept up to date")
        parts.wait()


def serve(*, port: Port = 8080, json: Json = False, given: Given) -> None:
    """Serve the page and HTTP on the loopback, in the foreground; ends on Ctrl-C.

    A worker must run as well, here or elsewhere; without one, answers come from PostgreSQL. Where
    PostgreSQL doesn't answer yet, they come from Redis until it does.
    """
    import structlog

    from truerank.cli.context import await_schema
    from truerank.serve.server import check_port
    from truerank.telemetry.metrics import Metrics

    check_port(port)
    with _joined(given, away=True) as (settings, parts, missed):
        if missed is not None:
            structlog.get_logger("truerank.serve").warning("database_away", error=missed[:300])
            assert settings.database_url is not None, "it is what doesn't answer"
            run = partial(await_schema, settings.database_url, parts.stop)
            parts.start("schema", run, passing=True)
        url = _start_server(parts, settings, port, Metrics())
        if json:
            write_json({"ready": url})
        else:
            say(f"ready {url}")
        parts.wait()


def migrate(*, json: Json = False, given: Given) -> None:
    """Bring the database to the schema of this release; safe to run again, and by several."""
    from truerank.embedded import start_engines
    from truerank.schema.migrate import migrate as bring

    settings = given.settings()
    if settings.database_url is not None:
        applied = bring(settings.database_url)
    else:
        with start_engines(given.folder) as engines:
            applied = bring(engines.database_url)
    if json:
        write_json({"applied": applied})
    elif applied:
        say(f"applied {', '.join(f'{number:04}' for number in applied)}")
    else:
        say("nothing to do: the database is at the schema of this release")


@contextmanager
def _up_on(given: "Context", *, tcp: bool) -> "Iterator[tuple[Settings, Engines | None]]":
    """The stores that variables name, or engines of this process alone."""
    from truerank.cli.foreground import only_up, own_engines
    from truerank.local import prepared
    from truerank.schema.migrate import migrate as bring

    settings = given.settings(level="info")
    if settings.database_url is not None:
        bring(settings.database_url)
        yield settings, None
        return
    with only_up(given.folder) as folder, own_engines(folder, tcp=tcp) as engines:
        yield prepared(engines, settings), engines


@contextmanager
def _joined(given: "Context", *, away: bool) -> "Iterator[tuple[Settings, Parts, str | None]]":
    """The stores that variables name, or embedded engines: ours, or joined while they run.

    Also why PostgreSQL doesn't answer, where `away` lets one go on without.
    """
    from truerank.cli.foreground import Parts, until_told, watch_owner

    with (
        until_told(),
        given.installation(project=False, level="info", away=away) as installation,
        Parts() as parts,
    ):
        engines = installation.engines
        if engines is not None and engines.attached:
            parts.start("engines", partial(watch_owner, engines, parts.stop))
        yield installation.settings, parts, installation.missed


def _without_passwords(settings: "Settings") -> "Settings":
    """Settings as they may be shown where the user wrote the addresses."""
    import msgspec

    from truerank.telemetry.safe import without_passwords

    return msgspec.structs.replace(
        settings,
        database_url=without_passwords(settings.database_url or ""),
        redis_url=without_passwords(settings.redis_url or ""),
    )


def _start_worker(parts: "Parts", settings: "Settings", numbers: "Metrics") -> None:
    from truerank import upkeep
    from truerank.projection import worker

    ready = threading.Event()
    run = partial(worker.run, settings, parts.stop, ready=ready.set, meter=numbers)
    parts.start("worker", run)
    parts.start("upkeep", partial(upkeep.run, settings, parts.stop, meter=numbers))
    parts.wait_ready(ready, "worker")


def _start_watch(parts: "Parts", settings: "Settings", port: int, numbers: "Metrics") -> str:
    from truerank.serve.server import run_watch_server

    run = partial(run_watch_server, settings, numbers, port=port, stop=parts.stop)
    return _listening(parts, run, "metrics") + "metrics"


def _start_server(parts: "Parts", settings: "Settings", port: int, numbers: "Metrics") -> str:
    from truerank.serve.server import run_server

    run = partial(
        run_server,
        settings,
        port=port,
        port_tries=_PORT_TRIES,
        stop=parts.stop,
        numbers=numbers,
    )
    return _listening(parts, run, "server")


def _listening(parts: "Parts", run: Callable[..., None], name: str) -> str:
    """Run what serves in a thread; its address, once requests are accepted."""
    ready = threading.Event()
    urls: list[str] = []

    def note_ready(url: str) -> None:
        urls.append(url)
        ready.set()

    parts.start(name, partial(run, ready=note_ready))
    parts.wait_ready(ready, name)
    return urls[0]


def _await_page(url: str) -> None:
    """Wait until the page answers; asked directly, whatever proxies the environment names."""
    address = urlsplit(url)
    deadline = time.monotonic() + _PAGE_S_MAX
    while True:
        connection = http.client.HTTPConnection(
            str(address.hostname), address.port, timeout=_PAGE_S_MAX
        )
        try:
            connection.request("GET", "/")
            status = connection.getresponse().status
        finally:
            connection.close()
        if status == http.client.OK:
            return
        if time.monotonic() > deadline:
            raise TruerankError(f"{url} answers with status {status}", code="page_failed")


def _fill(settings: "Settings") -> None:
    from truerank.cli.loading import fill_demo
    from truerank.client import Truerank

    note("filling in the demo")
    with Truerank(settings) as client:
        fill_demo(client, None).loader.wait_visible(timeout_s=_DEMO_VISIBLE_S_MAX)


def _live(settings: "Settings", stop: threading.Event) -> None:
    """Let scores arrive, as many as there may be; one that fails is told and passed over."""
    import structlog

    from truerank.client import Truerank
    from truerank.demo import live_event

    log = structlog.get_logger("truerank.demo")
    rng = random.SystemRandom()
    with Truerank(settings) as client:
        for _ in range(_LIVE_EVENTS_MAX):
            if stop.wait(rng.uniform(*_LIVE_PAUSE_S)):
                return
            board, event = live_event(rng, datetime.now(UTC))
            try:
                client.submit_scores(board, [event])
            except TruerankError as exc:
                log.warning("score_lost", board=board, error=exc.message)

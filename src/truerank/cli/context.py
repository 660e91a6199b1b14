"""What a command runs on: the stores that variables name, or embedded engines in a folder."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from truerank.errors import DatabaseUnavailable, SettingsInvalid

if TYPE_CHECKING:
    import threading

    from truerank.client import Truerank
    from truerank.embedded import Engines
    from truerank.settings import Settings

_CONNECT_S_MAX = 10
_GO_ON_S = 2  # after which one goes on without
_AGAIN_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Settings with both addresses, and the embedded engines behind them, if they are."""

    settings: "Settings"
    engines: "Engines | None"
    missed: str | None = None  # why PostgreSQL doesn't answer, where one goes on without


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The options before the command."""

    data: Path | None
    log_level: str | None
    log_json: bool = False

    @property
    def folder(self) -> Path:
        """The data folder of embedded engines."""
        from truerank.embedded import default_data_dir

        return self.data or default_data_dir()

    def settings(self, *, level: str = "warning") -> "Settings":
        """The settings of this process; with both addresses, or with none for embedded engines.

        Args:
            level: of log entries, where the user names none; "info" for what serves on.

        Raises:
            SettingsInvalid: one address is set without the other, or both beside `--data`.
        """
        from truerank.settings import load
        from truerank.telemetry.logs import configure_logging

        # A command ends with what the pool warns of; a service goes on, and its log tells.
        raised = () if level == "info" else ("psycopg.pool",)
        configure_logging(level=self.log_level or level, json=self.log_json, raised=raised)
        settings = load()
        urls = {
            "TRUERANK_DATABASE_URL": settings.database_url,
            "TRUERANK_REDIS_URL": settings.redis_url,
        }
        missing = [name for name, url in urls.items() if url is None]
        if len(missing) == 1:
            (found,) = set(urls) - set(missing)
            raise SettingsInvalid(
                f"{found} is set and {missing[0]} is not: set both, or neither to run on "
                "embedded engines"
            )
        if not missing:
            _check_addresses(settings)
        if not missing and self.data is not None:
            raise SettingsInvalid(
                "--data is the folder of embedded engines, and the variables "
                f"{' and '.join(urls)} name others: use one or the other"
            )
        return settings

    @contextmanager
    def installation(
        self, *, project: bool, level: str = "warning", check: bool = True, away: bool = False
    ) -> Iterator[Installation]:
        """Both stores, for the length of a command.

        Embedded engines are started, or attached to where they run, and their database is
        migrated. Stores that variables name are used as they are.

        Args:
            project: the command needs the projection; where the engines are embedded, a worker
                works meanwhile.
            level: as in `settings`.
            check: fail at once where the variables' database does not answer.
            away: where it doesn't, go on without: what is served comes from Redis.

        Raises:
            SettingsInvalid, EngineError: there is nothing to run on.
        """
        settings = self.settings(level=level)
        if settings.database_url is not None:
            missed = None
            if check:
                try:
                    check_database(settings.database_url, wait_s=_GO_ON_S if away else None)
                except DatabaseUnavailable as exc:
                    if not away:
                        raise
                    missed = exc.message
            yield Installation(settings=settings, engines=None, missed=missed)
            return
        from truerank.cli.foreground import telling_of_owner
        from truerank.embedded import start_engines
        from truerank.local import prepared, projecting

        with ExitStack() as stack:
            engines = stack.enter_context(start_engines(self.folder))
            if engines.attached:
                stack.enter_context(telling_of_owner(engines))
            settings = prepared(engines, settings)
            if project:
                stack.enter_context(projecting(settings, engines))
            yield Installation(settings=settings, engines=engines)

    @contextmanager
    def client(self, *, project: bool = False) -> "Iterator[Truerank]":
        """A client for the length of a command; `project` as in `installation`."""
        from truerank.client import Truerank

        with (
            self.installation(project=project) as installation,
            Truerank(installation.settings) as client,
        ):
            yield client

    @contextmanager
    def reader(self, *, project: bool) -> "Iterator[Truerank]":
        """A client that only reads, even if PostgreSQL doesn't answer; `project` as there."""
        from truerank.cli.output import note
        from truerank.client import Truerank

        with (
            self.installation(project=project, away=True) as installation,
            Truerank(installation.settings) as client,
        ):
            if installation.missed is not None:
                note(f"{installation.missed}; Redis is asked alone")
            yield client


def await_schema(database_url: str, stop: "threading.Event") -> None:
    """Look at the schema as soon as PostgreSQL answers; return then, or when `stop` is set.

    Raises:
        SchemaMismatch: it isn't of this release: what runs on it must end.
    """
    while not stop.is_set():
        try:
            check_database(database_url, wait_s=_GO_ON_S)
        except DatabaseUnavailable:
            stop.wait(_AGAIN_S)
        else:
            return


def _check_addresses(settings: "Settings") -> None:
    """Refuse addresses that can't be read, before each driver complains in its own way."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
    from redis.connection import parse_url

    try:
        conninfo_to_dict(settings.database_url or "")
    except psycopg.ProgrammingError as exc:
        raise SettingsInvalid(f"TRUERANK_DATABASE_URL: {exc}") from exc
    try:
        parse_url(settings.redis_url or "")  # type: ignore[no-untyped-call]  # untyped there
    except ValueError as exc:
        raise SettingsInvalid(f"TRUERANK_REDIS_URL: {exc}") from exc


def check_database(database_url: str, *, wait_s: int | None = None) -> None:
    """Fail at once, with the cause, where a pool would try for seconds.

    Args:
        database_url: whose server is asked.
        wait_s: for a server that doesn't even refuse; None: what a person waits for.

    Raises:
        DatabaseUnavailable: it doesn't answer.
        SchemaMismatch: its schema isn't of this release.
        SettingsInvalid: the address is none.
    """
    import psycopg

    from truerank.schema.migrate import check
    from truerank.sessions import plain

    try:
        options = plain(database_url) | {"connect_timeout": wait_s or _CONNECT_S_MAX}
        with psycopg.connect(database_url, **options) as conn:
            check(conn)
    except psycopg.ProgrammingError as exc:
        raise SettingsInvalid(f"TRUERANK_DATABASE_URL: {exc}") from exc
    except psycopg.OperationalError as exc:
        raise DatabaseUnavailable(f"no connection to PostgreSQL: {exc}") from exc

"""PgBouncer in transaction mode before the PostgreSQL of a test."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from truerank.embedded import Engines
from truerank.embedded.account import choose_account

PROGRAM = "pgbouncer"
_PORT = 6432
_START_S_MAX = 30.0
# No password on this side either: the sockets lie in folders that only their user may enter.
_SETTINGS = """\
[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr =
listen_port = {listen_port}
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users
auth_user = {user}
auth_query = SELECT rolname, '' FROM pg_roles WHERE rolname = $1
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 500
query_wait_timeout = 20
{further}
"""

Through = Callable[[str], str]


def asked_for() -> bool:
    """Whether the databases of all tests are reached through it."""
    return bool(os.environ.get("TRUERANK_TEST_POOLER"))


@contextmanager
def entrance(engines: Engines) -> Iterator[Through]:
    """What makes the URL that clients use out of one that leads to the server.

    `make test-pooler` puts PgBouncer between the two; otherwise they are the same.
    """
    if not asked_for():
        yield str
        return
    # Connections that tests open themselves may ask for options; those of the package do not.
    with pooler(engines.database_url, further="ignore_startup_parameters = options") as through:
        yield through


def caller_options() -> dict[str, Any]:
    """The options with which a test opens a connection, as any caller must who goes through it."""
    return {"prepare_threshold": None} if asked_for() else {}


@contextmanager
def pooler(database_url: str, *, sessions: int = 20, further: str = "") -> Iterator[Through]:
    """Run PgBouncer; yields what makes of a database's URL one that leads through it.

    Args:
        database_url: on a unix socket of the server, as its superuser.
        sessions: how many of the server it opens for each database.
        further: lines of its settings.
    """
    known = conninfo_to_dict(database_url)
    account = choose_account()
    with tempfile.TemporaryDirectory(prefix="tr-") as temporary:  # a socket's path must be short
        folder = Path(temporary)
        settings = folder / "pgbouncer.ini"
        settings.write_text(
            _SETTINGS.format(
                host=known["host"],
                port=known.get("port") or 5432,
                listen_port=_PORT,
                folder=folder,
                user=known["user"],
                sessions=sessions,
                further=further,
            )
        )
        (folder / "users").write_text(f'"{known["user"]}" ""\n')
        if account.dropped:
            for path in (folder, *folder.iterdir()):
                shutil.chown(path, account.uid, account.gid)
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [PROGRAM, "-q", str(settings)],
                stdout=log,
                stderr=log,
                cwd="/",
                **account.process_options(),
            )
        try:

            def through(url: str) -> str:
                parts = urlsplit(url)
                query = parse_qs(parts.query) | {"host": [temporary], "port": [str(_PORT)]}
                return parts._replace(query=urlencode(query, doseq=True)).geturl()

            _await(through(database_url), process, folder / "log")
            yield through
        finally:
            process.kill()
            process.wait()


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_S_MAX
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(log.read_text()) from None
            time.sleep(0.01)
        else:
            return

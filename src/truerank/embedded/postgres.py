"""Make, start and await the embedded PostgreSQL."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from truerank.embedded.errors import EngineStartFailed
from truerank.embedded.folder import DataFolder, make_folder, write_private
from truerank.embedded.process import Engine, Place, environment, launched
from truerank.embedded.wires import Tcp

NAME = "truerank"  # of the superuser and of the database
_SOCKET_PORT = 5432
_PID = re.compile(rb"-?[1-9]\d*")  # negative where a server runs without a postmaster
_HBA = """\
# Written at every start. The socket lies in a folder that only its owner may enter.
local all all trust
host all all 127.0.0.1/32 scram-sha-256
"""


def made_with(folder: DataFolder) -> int | None:
    """Give the major version that made the data; None where there is none yet."""
    version = folder.postgres / "PG_VERSION"
    return int(version.read_text()) if version.exists() else None


def socket_url(sockets: Path, tcp: Tcp | None) -> str:
    """Give the URL of the database through the socket."""
    host = quote(str(sockets), safe="")
    return f"postgresql://{NAME}@/{NAME}?host={host}&port={_port(tcp)}"


def tcp_url(tcp: Tcp) -> str:
    """Give the URL of the database through TCP; the wheel's PostgreSQL has no TLS."""
    address = f"127.0.0.1:{tcp.postgres_port}"
    return f"postgresql://{NAME}:{tcp.password}@{address}/{NAME}?sslmode=disable"


def _port(tcp: Tcp | None) -> int:
    """Give the port, which is a part of the socket's name even without TCP."""
    return _SOCKET_PORT if tcp is None else tcp.postgres_port


def initialize(bindir: Path, place: Place, *, durable: bool) -> None:
    """Make the cluster where there is none; one whose making was cut short is made anew.

    Raises:
        EngineStartFailed: `initdb` failed; the message carries what it said.
    """
    folder, account = place.folder, place.account
    if folder.postgres.exists():
        return
    new = folder.path / "postgres.new"
    if new.exists():
        shutil.rmtree(new)
    make_folder(new, account)
    with account.reach(new) as data:
        done = subprocess.run(
            [
                bindir / "initdb",
                f"--pgdata={data.name}",
                f"--username={NAME}",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
                "--no-instructions",
                *([] if durable else ["--no-sync"]),
            ],
            cwd="/",
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            # With the lock: the next starter waits for it, should we be killed meanwhile.
            pass_fds=(place.lock, *data.inherited),
            **account.process_options(),
        )
    if done.returncode != 0:
        raise EngineStartFailed(f"initdb failed:\n{done.stdout}{done.stderr}")
    new.rename(folder.postgres)


@contextmanager
def postgres(
    bindir: Path, place: Place, *, tcp: Tcp | None, durable: bool, settings: Mapping[str, str]
) -> Iterator[Engine]:
    """Start PostgreSQL on an initialized folder; stop it at the end of the block.

    Args:
        bindir: where the programs are.
        place: user, folder and lock.
        tcp: where to listen beside the socket.
        durable: False gives up what a crash of the machine would keep, for tests.
        settings: further parameters, as in postgresql.conf.
    """
    cluster = place.folder.postgres
    _forget_stale_pid(cluster)
    write_private(cluster / "pg_hba.conf", _HBA, place.account)
    parameters = {
        "max_connections": "100",
        # The role is called like our schema: "$user" would put a user's own tables into it.
        "search_path": "public",
        **({} if durable else {"fsync": "off", "full_page_writes": "off"}),
        **settings,
        "listen_addresses": "" if tcp is None else "127.0.0.1",
        "port": str(_port(tcp)),
        "unix_socket_directories": str(place.sockets),
        "unix_socket_permissions": "0700",
    }
    arguments = [argument for pair in parameters.items() for argument in ("-c", "=".join(pair))]
    with (
        place.account.reach(cluster) as data,
        launched(
            "PostgreSQL",
            [str(bindir / "postgres"), "-D", data.name, *arguments],
            place=place,
            inherited=data.inherited,
            stop_signal="INT",
        ) as engine,
    ):
        yield engine


def await_postgres(engine: Engine, url: str, tcp: Tcp | None) -> str:
    """Wait until PostgreSQL takes connections and the database exists; give its version.

    Args:
        engine: as started.
        url: through the socket.
        tcp: the password to ask of clients that come through TCP.

    Raises:
        EngineStartFailed: it ended, was not ready in time, or does not let us in.
    """
    for _ in engine.polls():
        try:
            with psycopg.connect(url, autocommit=True) as conn:
                if tcp is not None:
                    _set_password(conn, tcp.password)
                return str(conn.info.parameter_status("server_version")).split(" ", 1)[0]
        except psycopg.OperationalError as exc:
            if f'database "{NAME}" does not exist' in str(exc):
                with psycopg.connect(url, dbname="postgres", autocommit=True) as conn:
                    conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(NAME)))
            elif "FATAL:" in str(exc) and "FATAL:  the database system is" not in str(exc):
                raise EngineStartFailed(f"PostgreSQL refuses its own starter: {exc}") from exc
    raise AssertionError("polls() ends by raising")


def _set_password(conn: psycopg.Connection, password: str) -> None:
    """Set it as a verifier made here, so that no log can show it."""
    verifier = conn.pgconn.encrypt_password(password.encode(), NAME.encode(), b"scram-sha-256")
    change = sql.SQL("ALTER ROLE {} PASSWORD {}")
    conn.execute(change.format(sql.Identifier(NAME), sql.Literal(verifier.decode())))


def _forget_stale_pid(cluster: Path) -> None:
    """Remove a postmaster.pid that outlived its server and names no process, or another by now.

    PostgreSQL removes one whose process is gone, or another user's; after a restart of the machine
    the number may belong to any process of ours, and it would refuse to start. It refuses as well
    where a crash of the machine left the file empty or full of anything. The caller holds the
    lock, so only a server started by hand may be there: its cwd is its data folder.
    """
    status = cluster / "postmaster.pid"
    if not status.exists():
        return
    number = status.read_bytes().split(b"\n", 1)[0].strip()
    if not _PID.fullmatch(number):
        status.unlink()
        return
    try:
        cwd = Path(f"/proc/{number.decode()}/cwd").stat()
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return
    if not os.path.samestat(cwd, cluster.stat()):
        status.unlink()

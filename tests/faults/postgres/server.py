"""A PostgreSQL of a test's own, which it may end in every way there is, and start again."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import psycopg

from truerank.embedded.account import Account, choose_account
from truerank.embedded.binaries import find_postgres

USER = "truerank"
_PORT = 5432
_DEADLINE_S = 60.0
_SETTINGS = {
    "listen_addresses": "''",
    "fsync": "off",  # a process that is killed loses nothing; the machine goes on
    "shared_buffers": "32MB",
    "max_prepared_transactions": "5",
    "wal_keep_size": "256MB",
    "restart_after_crash": "on",
}


class How(Enum):
    """How a server is ended, by the signal its first process gets."""

    FAST = signal.SIGINT  # sessions are ended, a checkpoint is written
    IMMEDIATE = signal.SIGQUIT  # as by a crash: the next start recovers
    KILLED = signal.SIGKILL  # nobody tells the others, who find out


class Server:
    """A cluster in a folder of its own; its socket stays at one place.

    Args:
        folder: holds data and socket; short, and open to `account`.
        account: the user that it runs as.
        bindir: with the programs of PostgreSQL.
    """

    def __init__(self, folder: Path, account: Account, bindir: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self._account = account
        self._bindir = bindir
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, **settings: str) -> None:
        """Start, and wait until it takes connections."""
        arguments = [f"-c{name}={value}" for name, value in settings.items()]
        deadline = time.monotonic() + _DEADLINE_S
        with (self.folder / "log").open("ab") as log:
            while True:
                self._process = subprocess.Popen(
                    [self._bindir / "postgres", "-D", self.data, *arguments],
                    stdout=log,
                    stderr=log,
                    cwd="/",
                    **self._account.process_options(),
                )
                # After a kill the others may still hold the memory: then it refuses to start.
                if self._await_ready(self._process, deadline):
                    return

    def start_again(self) -> None:
        """Start it unless it runs."""
        if self._process is None or self._process.poll() is not None:
            self.start()

    def end(self, how: How = How.FAST) -> None:
        """End it, and wait until its first process has ended."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how.value)
            process.wait(_DEADLINE_S)

    def restart(self, how: How) -> None:
        self.end(how)
        self.start()

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{USER}@/{database}?host={quote(str(self.folder), safe='')}"

    def connect(self, database: str = "postgres", **options: Any) -> psycopg.Connection[Any]:
        """A connection in autocommit."""
        return psycopg.connect(self.url(database), autocommit=True, **options)

    def copy(self, folder: Path) -> "Server":
        """Another server with the data of this one, which must not run."""
        assert self._process is None
        other = _make(folder, self._account, self._bindir)
        shutil.copytree(self.data, other.data)
        other.configure()
        return other

    def configure(self, **settings: str) -> None:
        """Write its settings file, and give its files to the user it runs as."""
        given = _SETTINGS | {"unix_socket_directories": f"'{self.folder}'"} | settings
        lines = [f"{name} = {value}\n" for name, value in given.items()]
        (self.data / "postgresql.auto.conf").write_text("".join(lines))
        if self._account.dropped:
            for path in (self.data, *self.data.rglob("*")):
                os.chown(path, self._account.uid, self._account.gid)

    def follow(self, primary: "Server") -> None:
        """Be a standby of another from the next start on."""
        known = f"user={USER} host={primary.folder}"
        self.configure(primary_conninfo=f"'{known}'", recovery_target_timeline="latest")
        (self.data / "standby.signal").touch()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(How.IMMEDIATE)

    def _await_ready(self, process: subprocess.Popen[bytes], deadline: float) -> bool:
        while process.poll() is None:
            try:
                self.connect().close()
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, (self.folder / "log").read_text()[-3000:]
                time.sleep(0.005)
            else:
                return True
        assert time.monotonic() < deadline, (self.folder / "log").read_text()[-3000:]
        time.sleep(0.02)
        return False


def _make(folder: Path, account: Account, bindir: Path) -> Server:
    if account.dropped:
        os.chown(folder, account.uid, account.gid)
    return Server(folder, account, bindir)


@contextmanager
def new_server() -> Iterator[Server]:
    """A new cluster, not started; ended with the block, if it runs then."""
    account = choose_account()
    bindir = find_postgres(account, None, os.environ)
    with tempfile.TemporaryDirectory(prefix="tr-") as folder:  # a socket's path must be short
        server = _make(Path(folder), account, bindir)
        subprocess.run(
            [
                *(bindir / "initdb", "--pgdata", server.data, "--username", USER, "--auth=trust"),
                *("--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"),
            ],
            check=True,
            capture_output=True,
            cwd="/",
            **account.process_options(),
        )
        server.configure()
        with server:
            yield server

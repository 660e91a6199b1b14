"""The data folder: what lies where, who may read it, and who may start engines on it.

Three lock files decide without trusting a process number, which another process may have by now:
`engines` is held by the starter *and* by the engines it started, so it is free only once they
have ended; `owner` by the starter alone; `guests`, shared, by those that attach.
"""

import fcntl
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from truerank.embedded.account import Account, choose_account, open_high
from truerank.embedded.errors import DataFolderUnusable


def default_data_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Give the folder used when none is named: `truerank` below the user's data home.

    Source: XDG Base Directory Specification, `$XDG_DATA_HOME`; a relative value is ignored.
    """
    named = Path(environ.get("XDG_DATA_HOME") or "")
    home = named if named.is_absolute() else Path.home() / ".local" / "share"
    return home / "truerank"


class DataFolder:
    """One data folder, made where it was missing, with the user its engines run as."""

    def __init__(self, data: Path) -> None:
        self.path = data.absolute()
        self.postgres = self.path / "postgres"
        self.valkey = self.path / "valkey"
        self.logs = self.path / "log"
        self.locks = self.path / "lock"
        self.state = self.path / "engine.json"
        self.password = self.path / "password"
        try:
            self.account = choose_account(self.postgres, self.path)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            for folder in (self.path, self.valkey, self.logs, self.locks):
                make_folder(folder, self.account)
        except (OSError, KeyError) as exc:
            raise DataFolderUnusable(
                f"{self.path} can't be used as data folder: {exc}. Choose another with --data"
            ) from exc

    def open_lock(self, name: str) -> int:
        """Open a lock file; the caller closes it."""
        fd = open_high(self.locks / name, os.O_RDWR | os.O_CREAT)
        self.account.own(fd)
        return fd

    def is_locked(self, name: str) -> bool:
        """Tell whether anybody holds the lock for itself just now."""
        fd = self.open_lock(name)
        try:
            return not try_lock(fd, fcntl.LOCK_SH)
        finally:
            os.close(fd)

    @contextmanager
    def holding(self, name: str, operation: int) -> Iterator[int]:
        """Hold a lock, waited for where `operation` doesn't say otherwise; give its descriptor.

        Raises:
            BlockingIOError: `operation` has LOCK_NB, and somebody else holds it.
        """
        fd = self.open_lock(name)
        try:
            fcntl.flock(fd, operation)
            yield fd
        finally:
            os.close(fd)


def try_lock(fd: int, operation: int) -> bool:
    """Take a lock if it is free; tell whether it was."""
    try:
        fcntl.flock(fd, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def make_folder(path: Path, account: Account) -> None:
    """Make a folder that only `account` may use; one that exists is left as it is."""
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        account.own(fd)
    finally:
        os.close(fd)


def write_private(path: Path, text: str, account: Account) -> None:
    """Write a file that only `account` may read; a reader sees the old text or the new one."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        account.own(fd)
        file.write(text)
    new.replace(path)

"""Which operating-system user the engines run as.

PostgreSQL refuses to run as root, and no server should. An ordinary user runs the engines as
itself; root steps down to the owner of the data, else to `postgres`, else to `nobody`.
"""

import fcntl
import os
import pwd
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from truerank.embedded.errors import DataFolderUnusable


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A name for a folder, good in a process that inherits these descriptors."""

    name: str
    inherited: tuple[int, ...]


class ProcessOptions(TypedDict, total=False):
    """The keywords with which `subprocess` starts a program as an account."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The user an engine runs as; `dropped` when the caller is root and steps down to it."""

    name: str
    uid: int
    gid: int
    dropped: bool

    def process_options(self) -> ProcessOptions:
        """Give the keywords for `subprocess`; empty where the caller already is this user."""
        if not self.dropped:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, fd: int) -> None:
        """Hand an open file or folder to this user."""
        if self.dropped:
            os.fchown(fd, self.uid, self.gid)

    def can_enter(self, folder: Path) -> bool:
        """Tell whether this user reaches `folder`, which the caller does."""
        if not self.dropped:
            return True
        done = subprocess.run(
            ["/bin/sh", "-c", 'cd "$0"', str(folder)],
            cwd="/",  # the caller's own folder may be out of this user's reach
            capture_output=True,
            check=False,
            **self.process_options(),
        )
        return done.returncode == 0

    @contextmanager
    def reach(self, folder: Path) -> Iterator[Reached]:
        """Give a name for `folder` that works for this user, for processes begun in the block.

        Folders above it may be closed to the user, such as root's home: instead of opening them,
        the process inherits the folder itself.

        Raises:
            DataFolderUnusable: they are closed, and the system has no /proc for that way.
        """
        if self.can_enter(folder):
            yield Reached(name=str(folder), inherited=())
            return
        fd = open_high(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if not Path(f"/proc/self/fd/{fd}").is_dir():
                raise DataFolderUnusable(
                    f"the engines run as user {self.name}, who can't enter {folder}: "
                    "choose another data folder"
                )
            yield Reached(name=f"/proc/self/fd/{fd}", inherited=(fd,))
        finally:
            os.close(fd)


def open_high(path: Path, flags: int) -> int:
    """Open a file on a descriptor of two digits, to be passed on; the caller closes it.

    The shell before an engine uses those of one digit itself.
    """
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    finally:
        os.close(fd)


def choose_account(*kept: Path) -> Account:
    """Choose the user the engines run as.

    Args:
        kept: files that earlier runs left, the most telling first. Root gives the engines to
            the owner of the first that exists and isn't root's: PostgreSQL refuses a folder of
            another user, and a user's own folder must stay usable without root.

    Raises:
        DataFolderUnusable: the caller is root and has no user to step down to.
    """
    uid, gid = os.geteuid(), os.getegid()
    if uid != 0:
        return Account(name=str(uid), uid=uid, gid=gid, dropped=False)
    for path in kept:
        status = path.stat() if path.exists() else None
        if status is not None and status.st_uid != 0:
            return _account_of(pwd.getpwuid(status.st_uid))
    for name in ("postgres", "nobody"):
        try:
            return _account_of(pwd.getpwnam(name))
        except KeyError:
            continue
    raise DataFolderUnusable(
        "PostgreSQL does not run as root, and there is neither a user `postgres` nor `nobody` "
        "to run it as: start as an ordinary user"
    )


def _account_of(entry: pwd.struct_passwd) -> Account:
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid, dropped=True)

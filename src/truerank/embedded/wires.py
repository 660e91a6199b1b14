"""Where engines listen: sockets in a folder that only their user may enter, and TCP on request."""

import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from truerank.embedded.errors import DataFolderUnusable
from truerank.embedded.folder import DataFolder, write_private

_PREFIX = "truerank-"
_PATH_BYTES_MAX = 103  # of a socket on macOS; Linux takes 107
_BELOW_PARENT_BYTES_MAX = len(f"/{_PREFIX}12345678/.s.PGSQL.65535")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tcp:
    """Ports of the loopback on which the engines listen beside their sockets, and for whom."""

    password: str
    postgres_port: int
    valkey_port: int

    @classmethod
    def of(cls, folder: DataFolder) -> Self:
        """Take free ports, and the password of the data folder: made once, so clients keep it."""
        if not folder.password.exists():
            write_private(folder.password, secrets.token_urlsafe(24), folder.account)
        with ExitStack() as stack:
            probes = [stack.enter_context(closing(socket.socket())) for _ in range(2)]
            for probe in probes:
                probe.bind(("127.0.0.1", 0))
            postgres_port, valkey_port = (probe.getsockname()[1] for probe in probes)
        return cls(
            password=folder.password.read_text(),
            postgres_port=postgres_port,
            valkey_port=valkey_port,
        )


@contextmanager
def socket_folder(folder: DataFolder) -> Iterator[Path]:
    """Make a folder for sockets, with a path short enough for them; remove it at the end.

    Raises:
        DataFolderUnusable: no folder for temporary files will do.
    """
    note = folder.path / "sockets"
    if note.exists():
        _remove(Path(note.read_text()), folder)  # a crash left it
    sockets = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_parent(folder)))
    try:
        write_private(note, str(sockets), folder.account)
        fd = os.open(sockets, os.O_RDONLY | os.O_CLOEXEC)
        try:
            folder.account.own(fd)
        finally:
            os.close(fd)
        yield sockets
    finally:
        _remove(sockets, folder)
        note.unlink(missing_ok=True)


def _parent(folder: DataFolder) -> Path:
    tried = [Path(tempfile.gettempdir()), Path("/tmp")]  # noqa: S108 - mkdtemp's folder is private
    for parent in tried:
        fits = len(os.fsencode(parent)) + _BELOW_PARENT_BYTES_MAX <= _PATH_BYTES_MAX
        if fits and parent.is_dir() and folder.account.can_enter(parent):
            return parent
    raise DataFolderUnusable(
        f"no folder for sockets: {' and '.join(map(str, tried))} are too long, missing, or closed "
        f"to user {folder.account.name}. Let TMPDIR name another"
    )


def _remove(sockets: Path, folder: DataFolder) -> None:
    """Remove a folder of sockets, unless it is gone or somebody else's by now."""
    ours = sockets.name.startswith(_PREFIX) and sockets.is_dir() and not sockets.is_symlink()
    if ours and sockets.stat().st_uid == folder.account.uid:
        shutil.rmtree(sockets)

"""`truerank` as forks of a process that has loaded everything already.

Pages and tests run hundreds of commands, each for a moment: a fork costs milliseconds where the
start of an interpreter with all modules costs half a second. How the program itself starts is for
tests that start it. Run as a program it serves commands on a unix socket, one for each connection.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

_REPOSITORY = Path(__file__).resolve().parents[1]
_MODULES = ("truerank.cli", "truerank.client", "truerank.local")  # with all that they need
_START_S_MAX = 60.0
_POLL_S = 0.02
_BYTES = 1 << 16
# The fork gets its standard streams, and tells its status; one that was killed tells nothing.
# `_socket` is there without loading anything, which is what takes a program long.
_PROGRAM = """\
#!{python} -IS
import _socket, os, sys
way = _socket.socket(_socket.AF_UNIX)
way.connect({socket!r})
streams = b"".join(fd.to_bytes(4, sys.byteorder) for fd in range(3))
way.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
environ = (name + b"=" + text for name, text in os.environb.items())
asked = [os.getcwdb(), b"%d" % len(sys.argv), *map(os.fsencode, sys.argv), *environ]
way.sendall(b"\\0".join(asked))
way.shutdown(_socket.SHUT_WR)
sys.exit(int(way.recv(9) or b"137"))
"""


@contextmanager
def preloaded() -> Iterator[Path]:
    """A program `truerank`, which works for the length of the block."""
    with tempfile.TemporaryDirectory(prefix="tr-") as temporary:  # a socket's path must be short
        folder = Path(temporary)
        where = folder / "s"
        program = folder / "bin" / "truerank"
        program.parent.mkdir()
        text = _PROGRAM.format(python=sys.executable, socket=str(where))
        program.write_text(text, encoding="utf-8")
        program.chmod(0o700)
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.preloaded", str(where)],
            cwd=_REPOSITORY,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # with its forks
        )
        try:
            deadline = time.monotonic() + _START_S_MAX
            while not where.exists():
                assert server.poll() is None, "it ended"
                assert time.monotonic() < deadline, "it is not ready"
                time.sleep(_POLL_S)
            yield program
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def serve(where: Path) -> None:
    """Fork for each connection, until killed."""
    for name in _MODULES:
        import_module(name)
    listening = socket.socket(socket.AF_UNIX)
    bound = where.with_suffix(".new")
    listening.bind(str(bound))
    listening.listen()
    bound.rename(where)  # whoever finds it may connect
    forks: set[int] = set()
    while True:
        way, _ = listening.accept()
        forks = {pid for pid in forks if os.waitpid(pid, os.WNOHANG) == (0, 0)}
        with way:
            pid = os.fork()
            if pid == 0:
                listening.close()
                _answer(way)
            forks.add(pid)


def _answer(way: socket.socket) -> None:
    """Run the command that a connection asks for, with the streams that it brings."""
    status = 1
    try:
        _, streams, _, _ = socket.recv_fds(way, 1, 3)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - as an interpreter does
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", 1, closefd=False)  # noqa: SIM115
        received = b"".join(iter(lambda: way.recv(_BYTES), b""))
        folder, number_, *rest = received.split(b"\0")
        os.chdir(folder)
        arguments, environ = rest[: int(number_)], rest[int(number_) :]
        os.environ.clear()
        for line in environ:
            name, _, text = line.partition(b"=")
            os.environb[name] = text
        sys.argv = [os.fsdecode(each) for each in arguments]
        import_module("truerank.cli").main()
    except SystemExit as exc:
        status = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
    except BaseException:  # noqa: BLE001 - as an interpreter does that ends
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        way.sendall(b"%d" % status)
        os._exit(status)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))

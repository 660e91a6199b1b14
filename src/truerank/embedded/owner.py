"""Start both engines on a data folder that is ours, and stop them at the end."""

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

from truerank.crashpoints import crashpoint
from truerank.embedded import postgres as pg
from truerank.embedded import valkey as vk
from truerank.embedded.binaries import find_postgres, find_valkey
from truerank.embedded.errors import EngineStartFailed
from truerank.embedded.folder import DataFolder, try_lock
from truerank.embedded.process import POLL_S, Place
from truerank.embedded.state import Engines, publish, withdraw
from truerank.embedded.wires import Tcp, socket_folder

_GUESTS_S_MAX = 2.0  # time for a command that only asks; a longer one loses its engines


@contextmanager
def owned(
    folder: DataFolder, lock: int, *, tcp: bool, durable: bool, settings: Mapping[str, str]
) -> Iterator[Engines]:
    """Start the engines and let others attach; stop them at the end of the block.

    Args:
        folder: the data folder.
        lock: the lock `engines`, held by the caller; the engines inherit it.
        tcp: as in `start_engines`, like the others.
        durable: likewise.
        settings: likewise.

    Raises:
        EngineError: nothing that was started still runs.
    """
    with ExitStack() as stack:
        withdraw(folder)  # what a crash left, before anybody can take it for ours
        stack.enter_context(folder.holding("owner", fcntl.LOCK_EX))
        bindir = find_postgres(folder.account, pg.made_with(folder), os.environ)
        program = find_valkey(folder.account, os.environ)
        sockets = stack.enter_context(socket_folder(folder))
        place = Place(folder=folder, sockets=sockets, lock=lock)
        wire = Tcp.of(folder) if tcp else None

        # Valkey first: it loads its data while PostgreSQL starts.
        start_valkey = partial(vk.valkey, program, place, tcp=wire, durable=durable)
        valkey = stack.enter_context(start_valkey())
        crashpoint("engine_started")
        pg.initialize(bindir, place, durable=durable)
        postgres = stack.enter_context(
            pg.postgres(bindir, place, tcp=wire, durable=durable, settings=settings)
        )
        pg_socket, vk_socket = pg.socket_url(sockets, wire), vk.socket_url(sockets, wire)
        postgres_version = pg.await_postgres(postgres, pg_socket, wire)
        try:
            valkey_version = vk.await_valkey(valkey, vk_socket)
        except EngineStartFailed:
            if not vk.set_aside_unreadable(valkey, folder):
                raise
            valkey = stack.enter_context(start_valkey())
            valkey_version = vk.await_valkey(valkey, vk_socket)
        engines = Engines(
            postgres_version=postgres_version,
            valkey_version=valkey_version,
            database_url=pg_socket if wire is None else pg.tcp_url(wire),
            redis_url=vk_socket if wire is None else vk.tcp_url(wire),
            owner_pid=os.getpid(),
            data=folder.path,
            attached=False,
            processes=(postgres, valkey),
        )
        stack.callback(_wait_for_guests, folder)
        stack.callback(withdraw, folder)
        crashpoint("engines_started")
        publish(folder, engines)
        yield engines


def _wait_for_guests(folder: DataFolder) -> None:
    fd = folder.open_lock("guests")
    try:
        deadline = time.monotonic() + _GUESTS_S_MAX
        while not try_lock(fd, fcntl.LOCK_EX) and time.monotonic() < deadline:
            time.sleep(POLL_S)
    finally:
        os.close(fd)

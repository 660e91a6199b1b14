"""Run engines on a data folder: start them, or attach to those that another process started."""

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import psycopg
import redis

from truerank.embedded.errors import DataFolderBusy, EnginesWithoutTcp, EngineUnresponsive
from truerank.embedded.folder import DataFolder, try_lock
from truerank.embedded.owner import owned
from truerank.embedded.process import START_S_MAX, STOP_S_MAX
from truerank.embedded.state import Engines, running

__all__ = ["Engines", "start_engines"]

_RETRY_S = 0.02
_ANSWER_S_MAX = 5
_UNRESPONSIVE_S_MAX = 10.0


@contextmanager
def start_engines(
    data: Path,
    *,
    tcp: bool = False,
    durable: bool = True,
    postgres_settings: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Engines]:
    """Run PostgreSQL and Valkey on a data folder for the length of the block.

    What they hold is kept for the next time. Where another process has them running, this one
    attaches: the engines then end with that process, which waits a moment for its guests.
    However the process that started them ends, the engines are stopped cleanly.

    Args:
        data: made where it is missing.
        tcp: also listen on free ports of the loopback, with a generated password that stays the
            same for the folder. Otherwise on unix sockets alone, which only this user can reach.
        durable: False gives up what a crash of the machine would keep, for tests.
        postgres_settings: further parameters, as in postgresql.conf; those that say where
            PostgreSQL listens can't be set. Like `durable` without effect on engines that run.

    Raises:
        EngineError: see `truerank.embedded.errors`; nothing that this call started still runs.
    """
    folder = DataFolder(data)
    since = time.monotonic()
    while True:
        with folder.holding("guests", fcntl.LOCK_SH):
            engines = running(folder)
            if engines is not None and _answers(engines):
                _check_wire(engines, tcp=tcp)
                yield engines
                return
        lock = folder.open_lock("engines")
        try:
            if try_lock(lock, fcntl.LOCK_EX):
                with owned(
                    folder, lock, tcp=tcp, durable=durable, settings=postgres_settings
                ) as engines:
                    yield engines
                return
        finally:
            os.close(lock)
        _check_patience(folder, engines, waited_s=time.monotonic() - since)
        time.sleep(_RETRY_S)


def _answers(engines: Engines) -> bool:
    """Tell whether both engines take connections."""
    try:
        psycopg.connect(engines.database_url, connect_timeout=_ANSWER_S_MAX).close()
        with redis.Redis.from_url(engines.redis_url, socket_timeout=_ANSWER_S_MAX) as client:
            client.ping()
    except (psycopg.OperationalError, redis.RedisError):
        return False
    return True


def _check_wire(engines: Engines, *, tcp: bool) -> None:
    if tcp and not engines.over_tcp:
        raise EnginesWithoutTcp(
            f"process {engines.owner_pid} runs the engines of {engines.data} without TCP: "
            "stop it, or connect through its unix sockets"
        )


def _check_patience(folder: DataFolder, engines: Engines | None, *, waited_s: float) -> None:
    if engines is not None and waited_s > _UNRESPONSIVE_S_MAX:
        raise EngineUnresponsive(
            f"process {engines.owner_pid} runs the engines of {folder.path}, and one of them does "
            f"not answer: stop that process and look into {folder.logs}"
        )
    if waited_s > START_S_MAX + STOP_S_MAX:
        raise DataFolderBusy(
            f"another process has held {folder.path} for {waited_s:.0f} s without getting ready: "
            f"look into {folder.logs}"
        )

"""What a process that started engines tells the others: the file `engine.json`."""

import json
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from truerank.embedded.errors import EngineEnded
from truerank.embedded.folder import DataFolder, write_private
from truerank.embedded.process import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """A PostgreSQL and a Valkey that run, and where.

    The URLs hold the password where the engines listen on TCP.
    """

    database_url: str  # for psycopg and other clients of libpq; superuser of its cluster
    redis_url: str  # for redis-py; logical database 0
    owner_pid: int  # of the process that started the engines; they end with it
    data: Path  # absolute
    attached: bool  # True where another start_engines() started them
    postgres_version: str  # such as "18.6"
    valkey_version: str  # such as "Valkey 9.1.2", "Redis 7.0.15"
    processes: tuple[Engine, ...] = field(default=(), repr=False, compare=False)  # of ours alone

    @property
    def over_tcp(self) -> bool:
        """Tell whether the URLs go through TCP."""
        return not self.redis_url.startswith("unix:")

    def check_alive(self) -> None:
        """Raise if an engine has ended that this process started.

        Raises:
            EngineEnded: with the end of its log.
        """
        for engine in self.processes:
            engine.check_alive(EngineEnded)


def publish(folder: DataFolder, engines: Engines) -> None:
    """Let other processes attach."""
    told = {
        each.name: getattr(engines, each.name)
        for each in fields(engines)
        if each.name not in {"data", "processes"}
    } | {"data": str(engines.data)}
    write_private(folder.state, json.dumps(told, indent=2) + "\n", folder.account)


def withdraw(folder: DataFolder) -> None:
    """Let no further process attach."""
    folder.state.unlink(missing_ok=True)


def running(folder: DataFolder) -> Engines | None:
    """Give the engines whose owner lives, None where there are none or they aren't ready."""
    if not folder.is_locked("owner"):
        return None
    try:
        told = json.loads(folder.state.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return replace(Engines(**told), data=folder.path, attached=True)

"""Start and await the embedded Valkey, or the Redis found in its place."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import redis
import structlog

from truerank.embedded.folder import DataFolder, write_private
from truerank.embedded.process import Engine, Place, launched
from truerank.embedded.wires import Tcp

SOCKET = "valkey.sock"
DATABASES = 64
_FILES = "appendonlydir"
_LOADING, _LOADED = b"Server initialized", b"Ready to accept connections"
_SETTINGS = """\
# Written at every start.
dir "{dir}"
unixsocket "{socket}"
unixsocketperm 700
bind 127.0.0.1
port {port}
databases {databases}
appendonly yes
appendfsync {appendfsync}
save ""
maxmemory-policy noeviction
"""


def socket_url(sockets: Path, tcp: Tcp | None) -> str:
    """Give the URL of database 0 through the socket, where the password is asked as well."""
    password = "" if tcp is None else f"&password={tcp.password}"
    return f"unix://{quote(str(sockets / SOCKET))}?db=0{password}"


def tcp_url(tcp: Tcp) -> str:
    """Give the URL of database 0 through TCP."""
    return f"redis://:{tcp.password}@127.0.0.1:{tcp.valkey_port}/0"


@contextmanager
def valkey(program: Path, place: Place, *, tcp: Tcp | None, durable: bool) -> Iterator[Engine]:
    """Start Valkey; stop it at the end of the block.

    Args:
        program: the server.
        place: user, folder and lock.
        tcp: where to listen beside the socket; its password is asked of every client then.
        durable: False leaves it to the system when to write to disk, for tests.
    """
    with place.account.reach(place.folder.valkey) as data:
        settings = _SETTINGS.format(
            dir=data.name,
            socket=place.sockets / SOCKET,
            port=0 if tcp is None else tcp.valkey_port,
            databases=DATABASES,
            appendfsync="everysec" if durable else "no",
        )
        if tcp is not None:
            settings += f"requirepass {tcp.password}\n"
        write_private(place.folder.valkey / "valkey.conf", settings, place.account)
        with launched(
            "Valkey",
            [str(program), "-"],  # settings from standard input, whatever the program is called
            place=place,
            inherited=data.inherited,
            stop_signal="TERM",
            stdin=f"{data.name}/valkey.conf",
        ) as engine:
            yield engine


def await_valkey(engine: Engine, url: str) -> str:
    """Wait until Valkey answers, its data loaded; give its name and version.

    Raises:
        EngineStartFailed: it ended, or was not ready in time.
    """
    with redis.Redis.from_url(url) as client:
        for _ in engine.polls():
            try:
                client.ping()
            except (redis.ConnectionError, redis.BusyLoadingError):
                continue
            break
        return version_of(client)


def set_aside_unreadable(engine: Engine, folder: DataFolder) -> bool:
    """Set its files aside where Valkey ended over loading them; tell whether it did.

    It holds nothing that PostgreSQL doesn't: begun empty, it is filled again. The files are kept
    for whoever wants to know what happened to them, in place of those set aside before.
    """
    files = folder.valkey / _FILES
    ended_loading = (
        engine.shell.poll() is not None
        and engine.log.says(_LOADING)
        and not engine.log.says(_LOADED)
    )
    if not ended_loading or not files.is_dir():
        return False
    broken = files.with_name(f"{_FILES}.broken")
    if broken.exists():
        shutil.rmtree(broken)
    files.rename(broken)
    structlog.get_logger("truerank.embedded").warning(
        "valkey_begins_empty", unreadable=str(broken), log=str(engine.log.path)
    )
    return True


def version_of(client: redis.Redis) -> str:
    """Give the server's name and version, such as `Valkey 9.1.2`."""
    info = client.info("server")
    if "valkey_version" in info:
        return f"Valkey {info['valkey_version']}"
    return f"Redis {info['redis_version']}"

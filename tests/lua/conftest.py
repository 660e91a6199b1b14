"""Every script test runs on three servers.

The embedded one, one whose locale sorts as people do (Lua compares strings by it), and Debian's.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import StartRedis, redis_starter
from tests.lua.harness import Scripts
from truerank.embedded import Engines
from truerank.projection.link import Link

_LOCALE = "en_US.UTF-8"
_LOCALE_SOURCE = Path("/usr/share/i18n/locales/en_US")


@pytest.fixture(scope="session")
def start_server() -> Iterator[StartRedis]:
    with redis_starter() as start:
        yield start


@pytest.fixture(scope="session")
def own_locale(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which programs compare text as English dictionaries do.

    Made here, because a machine rarely has another locale than C.
    """
    if not _LOCALE_SOURCE.exists():
        pytest.skip(f"no sources of locales: {_LOCALE_SOURCE}")
    folder = tmp_path_factory.mktemp("locale")
    command = ["localedef", "-i", "en_US", "-f", "UTF-8", "--no-archive", str(folder / _LOCALE)]
    subprocess.run(command, check=True, capture_output=True)
    return {"LOCPATH": str(folder), "LC_ALL": _LOCALE}


# Who names another server (`make test-engines`) wants that one alone.
_SERVERS = ["embedded"]
if "TRUERANK_VALKEY_SERVER" not in os.environ:
    _SERVERS += ["english", "debian"]
_PROGRAMS = {"english": "localedef", "debian": "redis-server"}


@pytest.fixture(
    scope="session",
    params=[
        pytest.param(name, marks=[pytest.mark.system(program)] * bool(program))
        for name in _SERVERS
        for program in [_PROGRAMS.get(name, "")]
    ],
)
def server_url(request: pytest.FixtureRequest, start_server: StartRedis) -> str:
    if request.param == "embedded":
        engines: Engines = request.getfixturevalue("engines")
        return engines.redis_url
    if request.param == "english":
        environ: dict[str, str] = request.getfixturevalue("own_locale")
        return start_server(environ=environ)[0]
    return start_server(program="redis-server")[0]


@pytest.fixture
def scripts(server_url: str) -> Iterator[Scripts]:
    """An empty key space, with the scripts of the group in it."""
    link = Link(server_url, timeout_ms=5000)
    scripts = Scripts(link)
    link.command("FLUSHDB")
    yield scripts
    link.close()

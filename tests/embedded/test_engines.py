"""The life of embedded engines: begin, keep, attach, end, and the ways in which that goes wrong."""

import json
import os
import signal
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pytest
import redis
import structlog

import truerank
from tests.processes import runs
from truerank.embedded import Engines, start_engines
from truerank.embedded.account import choose_account
from truerank.embedded.errors import (
    DataFolderUnusable,
    EngineNotFound,
    EngineStartFailed,
    EnginesWithoutTcp,
)
from truerank.model import Source


class Starter(Protocol):
    process: subprocess.Popen[str]

    def engines(self) -> dict[str, Any]: ...
    def kill(self) -> None: ...
    def tell_to_end(self) -> None: ...
    def end(self) -> None: ...


Start = Callable[[Path], Starter]


def remember(engines: Engines, value: str) -> None:
    with psycopg.connect(engines.database_url) as conn:
        conn.execute("CREATE TABLE IF NOT EXISTS remembered (value text)")
        conn.execute("INSERT INTO remembered VALUES (%s)", [value])
    with redis.Redis.from_url(engines.redis_url) as client:
        client.rpush("remembered", value)


def remembered(engines: Engines) -> tuple[list[str], list[str]]:
    with psycopg.connect(engines.database_url) as conn:
        rows = [value for (value,) in conn.execute("SELECT value FROM remembered")]
    with redis.Redis.from_url(engines.redis_url, decode_responses=True) as client:
        return rows, client.lrange("remembered", 0, -1)


def pids(data: Path, redis_url: str) -> tuple[int, int]:
    postmaster = int((data / "postgres" / "postmaster.pid").read_text().split("\n", 1)[0])
    with redis.Redis.from_url(redis_url) as client:
        return postmaster, client.info("server")["process_id"]


def test_what_was_written_is_there_at_the_next_start(tmp_path: Path) -> None:
    with start_engines(tmp_path) as engines:
        remember(engines, "kept")

    with start_engines(tmp_path) as engines:
        assert remembered(engines) == (["kept"], ["kept"])


def test_nothing_runs_and_no_socket_is_left_after_the_block(tmp_path: Path) -> None:
    with start_engines(tmp_path, durable=False) as engines:
        sockets = Path((tmp_path / "sockets").read_text())
        both = pids(tmp_path, engines.redis_url)
        assert sockets.is_dir()

    assert not any(runs(pid) for pid in both)
    assert not sockets.exists()
    assert not (tmp_path / "engine.json").exists()


def test_the_engines_stop_cleanly_when_their_owner_is_killed(
    tmp_path: Path,
    starter: Start,
    wait_until: Callable[[Callable[[], bool], str], None],
) -> None:
    owner = starter(tmp_path)
    both = pids(tmp_path, owner.engines()["redis_url"])
    sockets = Path((tmp_path / "sockets").read_text())

    owner.kill()

    wait_until(lambda: not any(runs(pid) for pid in both), "both engines have ended")
    wait_until(lambda: not sockets.exists(), "the folder of the sockets is gone")
    assert (
        (tmp_path / "log" / "postgresql.log").read_text().endswith("database system is shut down\n")
    )
    assert "bye bye" in (tmp_path / "log" / "valkey.log").read_text()


def test_a_start_right_after_the_owner_was_killed_waits_for_the_old_engines(
    tmp_path: Path, starter: Start
) -> None:
    owner = starter(tmp_path)
    first = owner.engines()

    owner.kill()
    with start_engines(tmp_path) as engines:
        remember(engines, "after")
        assert not engines.attached
        assert engines.owner_pid == os.getpid() != first["owner_pid"]

    assert "was not properly shut down" not in (tmp_path / "log" / "postgresql.log").read_text()


@pytest.mark.parametrize("sign", ["postgres.new", "log/postgresql.log"])
def test_an_owner_killed_while_it_starts_leaves_the_folder_usable(
    sign: str,
    tmp_path: Path,
    starter: Start,
    wait_until: Callable[[Callable[[], bool], str], None],
) -> None:
    owner = starter(tmp_path)
    wait_until((tmp_path / sign).exists, f"{sign} is there")

    owner.kill()
    with start_engines(tmp_path, durable=False) as engines:
        assert not engines.attached
        remember(engines, "after")


def test_engines_that_were_killed_recover_at_the_next_start(
    tmp_path: Path,
    starter: Start,
    wait_until: Callable[[Callable[[], bool], str], None],
) -> None:
    owner = starter(tmp_path)
    engines = Engines(**owner.engines())
    remember(engines, "kept")
    with redis.Redis.from_url(engines.redis_url) as client:
        client.waitaof(1, 0, 5000)
    both = pids(tmp_path, engines.redis_url)

    for pid in both:
        os.kill(pid, signal.SIGKILL)
    owner.kill()
    wait_until(lambda: not any(runs(pid) for pid in both), "both engines have ended")

    assert (tmp_path / "engine.json").exists()
    assert (tmp_path / "postgres" / "postmaster.pid").exists()
    with start_engines(tmp_path) as again:
        assert not again.attached
        assert remembered(again) == (["kept"], ["kept"])


def test_a_process_number_that_another_program_has_by_now_does_not_hinder_the_start(
    tmp_path: Path,
) -> None:
    with start_engines(tmp_path, durable=False):
        stale_state = (tmp_path / "engine.json").read_text()
        stale_pid = (tmp_path / "postgres" / "postmaster.pid").read_text()
    account = choose_account(tmp_path / "postgres")
    other = subprocess.Popen(
        ["/bin/sh", "-c", "read -r _"],
        stdin=subprocess.PIPE,
        cwd="/",
        start_new_session=True,
        **account.process_options(),
    )
    state = json.loads(stale_state) | {"owner_pid": other.pid}
    (tmp_path / "engine.json").write_text(json.dumps(state))
    number, rest = stale_pid.split("\n", 1)
    assert int(number) != other.pid
    (tmp_path / "postgres" / "postmaster.pid").write_text(f"{other.pid}\n{rest}")
    os.chown(tmp_path / "postgres" / "postmaster.pid", account.uid, account.gid)

    with start_engines(tmp_path, durable=False) as engines:
        assert not engines.attached
    assert other.poll() is None
    other.communicate(b"\n")


@pytest.mark.parametrize("left", [b"", b"\0\0\0\0", b"\xff\xfe\n5432\n", b"0\n"])
def test_what_a_crash_of_the_machine_left_of_a_process_number_does_not_hinder_the_start(
    left: bytes, tmp_path: Path
) -> None:
    with start_engines(tmp_path, durable=False) as engines:
        remember(engines, "kept")
    status = tmp_path / "postgres" / "postmaster.pid"
    status.write_bytes(left)
    account = choose_account(tmp_path / "postgres")
    os.chown(status, account.uid, account.gid)

    with start_engines(tmp_path, durable=False) as engines:
        assert remembered(engines)[0] == ["kept"]


@pytest.mark.parametrize(
    ("file", "contents"),
    [
        ("appendonly.aof.manifest", b""),
        ("appendonly.aof.1.incr.aof", b"\xf3\x00 no command \r\n" * 9),
        ("appendonly.aof.1.base.rdb", b"\xf3\x00 no dump" * 9),
    ],
)
def test_where_valkey_cannot_read_its_files_it_begins_empty_and_a_worker_fills_it_again(
    file: str, contents: bytes, tmp_path: Path
) -> None:
    with truerank.sandbox(tmp_path) as tr:
        tr.create_board("b", seasons=("all",))
        tr.submit_score("b", event_id="e1", member="ada", value=5)
    files = tmp_path / "valkey" / "appendonlydir"
    older = files.with_name("appendonlydir.broken")
    older.mkdir()
    (older / "older").touch()
    (files / file).write_bytes(contents)

    with structlog.testing.capture_logs() as entries, truerank.sandbox(tmp_path) as tr:
        receipt = tr.submit_score("b", event_id="e2", member="bao", value=3)
        assert receipt.token is not None
        tr.wait_visible(receipt.token, ["b"])
        page = tr.top("b", season="all")

    assert page.freshness.source is Source.PROJECTION
    assert [entry.member for entry in page.entries] == ["ada", "bao"]
    told = [entry for entry in entries if entry["event"] == "valkey_begins_empty"]
    assert [(entry["log_level"], entry["unreadable"]) for entry in told] == [
        ("warning", str(older))
    ]
    assert (older / file).read_bytes() == contents
    assert not (older / "older").exists()


def test_files_that_valkey_can_read_stay_where_it_fails_for_another_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start_engines(tmp_path, durable=False) as engines:
        remember(engines, "kept")

    with monkeypatch.context() as patch:
        patch.setattr("truerank.embedded.valkey._SETTINGS", "nonsense yes\n")
        with pytest.raises(EngineStartFailed, match="Valkey"), start_engines(tmp_path):
            pass

    with start_engines(tmp_path, durable=False) as engines:
        assert remembered(engines) == (["kept"], ["kept"])


def test_a_second_process_attaches_and_leaves_the_engines_running(
    tmp_path: Path, starter: Start
) -> None:
    with start_engines(tmp_path, durable=False) as engines:
        guest = starter(tmp_path)
        told = guest.engines()
        guest.end()

        assert told["attached"] is True
        assert told["database_url"] == engines.database_url
        assert told["redis_url"] == engines.redis_url
        assert told["owner_pid"] == os.getpid()
        remember(engines, "still running")


def test_the_owner_lets_a_guest_finish_before_it_stops_the_engines(
    tmp_path: Path,
    starter: Start,
    wait_until: Callable[[Callable[[], bool], str], None],
) -> None:
    owner = starter(tmp_path)
    owner.engines()

    with start_engines(tmp_path) as engines:
        assert engines.attached
        owner.tell_to_end()
        wait_until(lambda: not (tmp_path / "engine.json").exists(), "nobody else may attach")
        remember(engines, "the guest's last word")
    owner.end()

    with start_engines(tmp_path) as engines:
        assert remembered(engines)[0] == ["the guest's last word"]


def test_of_several_that_start_at_once_one_owns_the_engines_and_the_others_attach(
    tmp_path: Path, starter: Start
) -> None:
    starters = [starter(tmp_path) for _ in range(4)]
    told = [each.engines() for each in starters]

    assert sorted(engines["attached"] for engines in told) == [False, True, True, True]
    assert len({engines["database_url"] for engines in told}) == 1
    (owner,) = (
        each for each, engines in zip(starters, told, strict=True) if not engines["attached"]
    )
    assert {engines["owner_pid"] for engines in told} == {owner.process.pid}


def test_sockets_lie_in_a_folder_that_only_the_engines_user_may_enter(tmp_path: Path) -> None:
    with start_engines(tmp_path, durable=False):
        sockets = Path((tmp_path / "sockets").read_text()).stat()
        owner = (tmp_path / "postgres").stat().st_uid

        assert stat.S_IMODE(sockets.st_mode) == 0o700
        assert sockets.st_uid == owner
        assert stat.S_IMODE((tmp_path / "engine.json").stat().st_mode) == 0o600


def test_over_tcp_the_password_is_asked_of_everybody(tmp_path: Path) -> None:
    with start_engines(tmp_path, tcp=True, durable=False) as engines:
        remember(engines, "with the password")
        password = (tmp_path / "password").read_text()
        wrong_database = engines.database_url.replace(password, "wrong")
        wrong_redis = engines.redis_url.replace(password, "wrong")

        assert "@127.0.0.1:" in engines.database_url
        assert "@127.0.0.1:" in engines.redis_url
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(wrong_database)
        with (
            redis.Redis.from_url(wrong_redis) as client,
            pytest.raises(redis.AuthenticationError),
        ):
            client.ping()
        with start_engines(tmp_path) as guest:
            assert guest.database_url == engines.database_url

    with start_engines(tmp_path, tcp=True, durable=False) as engines:
        assert password in engines.database_url


def test_tcp_is_refused_where_the_engines_that_run_have_none(tmp_path: Path) -> None:
    with (
        start_engines(tmp_path, durable=False),
        pytest.raises(EnginesWithoutTcp, match=str(os.getpid())),
        start_engines(tmp_path, tcp=True),
    ):
        pass


def test_a_failed_start_shows_the_log_and_leaves_nothing_running(tmp_path: Path) -> None:
    with (
        pytest.raises(EngineStartFailed, match='unrecognized configuration parameter "nonsense"'),
        start_engines(tmp_path, durable=False, postgres_settings={"nonsense": "1"}),
    ):
        pass

    with start_engines(tmp_path, durable=False) as engines:
        assert not engines.attached


def test_settings_reach_postgresql_and_its_durability_is_on_unless_given_up(tmp_path: Path) -> None:
    with (
        start_engines(tmp_path, postgres_settings={"work_mem": "5MB"}) as engines,
        psycopg.connect(engines.database_url) as conn,
    ):
        found = conn.execute("SELECT current_setting('work_mem'), current_setting('fsync')")
        assert found.fetchone() == ("5MB", "on")


def test_a_making_of_the_cluster_that_was_cut_short_is_done_anew(tmp_path: Path) -> None:
    remains = tmp_path / "postgres.new"
    remains.mkdir()
    (remains / "PG_VERSION").write_text("18\n")

    with start_engines(tmp_path, durable=False) as engines:
        remember(engines, "made anew")
    assert not remains.exists()


def test_variables_meant_for_clients_of_another_server_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PGHOST", "PGPORT", "PGDATA", "PGUSER", "PGDATABASE"):
        monkeypatch.setenv(name, "1")

    with start_engines(tmp_path, durable=False) as engines:
        remember(engines, "here")


def test_a_log_that_grew_too_long_begins_anew(tmp_path: Path) -> None:
    log = tmp_path / "log" / "postgresql.log"
    log.parent.mkdir()
    with log.open("wb") as file:
        file.truncate(10 * 1024 * 1024 + 1)

    with start_engines(tmp_path, durable=False):
        pass

    assert log.stat().st_size < 100_000


def test_a_data_folder_that_cannot_be_made_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with (
        pytest.raises(DataFolderUnusable, match="file/data"),
        start_engines(tmp_path / "file" / "data"),
    ):
        pass


def test_a_named_program_that_does_not_exist_is_not_replaced_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUERANK_PG_BINDIR", str(tmp_path / "nothing"))

    with pytest.raises(EngineNotFound, match="nothing"), start_engines(tmp_path / "data"):
        pass

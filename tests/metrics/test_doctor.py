"""The examination of a deployment: each check finds what it is for, on real engines."""

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import psycopg
import pytest
import redis
from psycopg import sql

import truerank
from tests.conftest import StartRedis
from tests.docs import names
from tests.faults.pooler import PROGRAM, pooler
from tests.projection.pipeline import Pipeline, wait_until
from truerank.cli.app import run
from truerank.doctor import both, examine, permissions, postgres, schema, valkey
from truerank.doctor.findings import Check, Deployment, Severity
from truerank.embedded import start_engines
from truerank.local import running_worker
from truerank.schema.migrate import migrate
from truerank.settings import Settings
from truerank.telemetry.words import bytes_words

OK, WARNING, ERROR = Severity.OK, Severity.WARNING, Severity.ERROR


@contextmanager
def deployment(settings: Settings) -> Iterator[Deployment]:
    """What `examine` makes for its checks."""
    assert settings.database_url is not None
    assert settings.redis_url is not None
    with (
        psycopg.connect(settings.database_url, autocommit=True) as conn,
        redis.Redis.from_url(settings.redis_url) as client,
        truerank.Truerank(settings) as tr,
    ):
        yield Deployment(
            settings=settings,
            conn=conn,
            redis=client,
            info={name: str(value) for name, value in client.info().items()},
            status=tr.status(),
        )


@pytest.fixture
def here(single: Pipeline) -> Iterator[Deployment]:
    with deployment(single.settings) as made:
        yield made


def found(check: Check, here: Deployment) -> tuple[Severity, str]:
    """The one finding of a check; what isn't well says what to do."""
    (finding,) = examine.run(check, here)
    assert (finding.severity is OK) == (not finding.advice)
    return finding.severity, finding.message


@pytest.mark.parametrize("check", examine.CHECKS, ids=lambda check: check.__name__)
def test_each_check_says_in_its_docstring_what_it_looks_at(check: Check) -> None:
    assert (check.__doc__ or "").splitlines()[0].endswith(".")


@pytest.mark.parametrize(
    ("number", "severity"), [(140_011, ERROR), (150_000, OK), (180_006, OK), (190_000, WARNING)]
)
def test_the_version_of_postgresql_is_judged(number: int, severity: Severity) -> None:
    assert postgres.judge_version(number).severity is severity


def test_the_version_of_the_server_itself_is_told(here: Deployment) -> None:
    severity, message = found(postgres.postgresql_version, here)

    assert severity is OK
    assert message.startswith("PostgreSQL 1")


def test_a_read_only_database_is_found(here: Deployment) -> None:
    assert found(postgres.primary, here)[0] is OK
    here.conn.execute("SET default_transaction_read_only = on")

    severity, message = found(postgres.primary, here)

    assert (severity, "read_only" in message) == (ERROR, True)


def test_a_server_that_may_lose_the_database_is_found(here: Deployment) -> None:
    # The engines of tests run like that.
    assert found(postgres.durability, here) == (
        ERROR, "fsync and full_page_writes off: a crash of the machine may destroy the database"
    )  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Engines as a user gets them, with a worker."""
    with start_engines(tmp_path_factory.mktemp("sound")) as engines:
        migrate(engines.database_url)
        settings = Settings(database_url=engines.database_url, redis_url=engines.redis_url)
        with running_worker(settings):
            yield settings


def test_acknowledged_scores_that_may_be_lost_are_found(sound: Settings) -> None:
    with deployment(sound) as here:
        well = found(postgres.durability, here)
        here.conn.execute("SET synchronous_commit = off")
        severity, message = found(postgres.durability, here)

    assert well[0] is OK
    assert (severity, message.startswith("synchronous_commit is off")) == (WARNING, True)


def test_autovacuum_that_is_off_for_the_server_is_found(sound: Settings) -> None:
    with deployment(sound) as here:
        well = found(postgres.autovacuum, here)
        here.conn.execute("SET track_counts = off")
        severity, _ = found(postgres.autovacuum, here)

    assert (well[0], severity) == (OK, ERROR)


def test_autovacuum_that_is_off_for_a_table_is_found(here: Deployment) -> None:
    here.conn.execute("ALTER TABLE truerank.standing SET (autovacuum_enabled = false)")

    assert found(postgres.autovacuum, here) == (ERROR, "autovacuum is off for standing")


@pytest.fixture
def role(here: Deployment) -> Iterator[sql.Identifier]:
    """A role that may do nothing yet."""
    name = f"role_{here.conn.info.dbname}"
    here.conn.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(name)))
    yield sql.Identifier(name)
    here.conn.execute("RESET ROLE")
    here.conn.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
    here.conn.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def test_what_a_role_may_do_is_found(here: Deployment, role: sql.Identifier) -> None:
    owner = found(postgres.privileges, here)
    here.conn.execute(sql.SQL("SET ROLE {}").format(role))
    stranger = found(postgres.privileges, here)
    here.conn.execute("RESET ROLE")
    here.conn.execute("SELECT truerank.grant_caller(%s::regrole)", (role.as_string(),))
    here.conn.execute(sql.SQL("SET ROLE {}").format(role))
    caller = found(postgres.privileges, here)

    assert [severity for severity, _ in (owner, stranger, caller)] == [OK, ERROR, WARNING]
    assert "is a caller" in caller[1]


def test_a_check_that_the_role_may_not_run_is_told_and_the_rest_goes_on(
    here: Deployment, role: sql.Identifier
) -> None:
    here.conn.execute(sql.SQL("SET ROLE {}").format(role))

    severities = {
        check.__name__: found(check, here)[0]
        for check in (schema.time_zones, postgres.statistics, postgres.connections)
    }

    assert severities == {"time_zones": WARNING, "statistics": WARNING, "connections": OK}


def test_a_role_that_sees_all_sessions_is_well(here: Deployment) -> None:
    assert found(postgres.statistics, here)[0] is OK


def test_more_connections_than_the_server_allows_are_found(here: Deployment) -> None:
    many = replace(here, settings=msgspec.structs.replace(here.settings, pool_max=1000))

    assert found(postgres.connections, here)[0] is OK
    severity, message = found(postgres.connections, many)
    assert (severity, message.endswith("may open 2007")) == (WARNING, True)


def test_a_limit_of_the_role_counts(here: Deployment, role: sql.Identifier) -> None:
    here.conn.execute(sql.SQL("ALTER ROLE {} CONNECTION LIMIT 5").format(role))
    here.conn.execute(sql.SQL("SET ROLE {}").format(role))

    assert found(postgres.connections, here)[1].startswith("5 connections are allowed")


def test_a_direct_connection_is_told_as_such(here: Deployment) -> None:
    assert found(postgres.pooler, here) == (OK, "connections are direct")


@pytest.mark.system(PROGRAM)
def test_a_pooler_between_is_found(single: Pipeline) -> None:
    url = single.settings.database_url
    assert url is not None
    with pooler(url) as through:
        pooled = msgspec.structs.replace(single.settings, database_url=through(url))
        with deployment(pooled) as here:
            severity, message = found(postgres.pooler, here)

    assert (severity, message.startswith("a pooler stands between")) == (WARNING, True)


def test_a_schema_of_another_release_is_found(here: Deployment) -> None:
    well = found(schema.schema_version, here)
    here.conn.execute("UPDATE public.truerank_migration SET sha256 = '' WHERE version = 0")
    functions = found(schema.schema_version, here)
    here.conn.execute("DELETE FROM public.truerank_migration WHERE version > 1")
    tables = found(schema.schema_version, here)

    assert well[0] is OK
    assert (functions[0], "functions" in functions[1]) == (ERROR, True)
    assert (tables[0], "lacks migration 0002" in tables[1]) == (ERROR, True)


def test_missing_and_broken_indexes_are_found(here: Deployment) -> None:
    well = found(schema.indexes, here)
    here.conn.execute("DROP INDEX truerank.standing_order")
    missing = found(schema.indexes, here)
    here.conn.execute(
        "CREATE INDEX standing_order ON truerank.standing (ranking, sort_key, member)"
    )
    here.conn.execute(
        "UPDATE pg_index SET indisvalid = false"
        " WHERE indexrelid = 'truerank.standing_order'::regclass"
    )
    invalid = found(schema.indexes, here)

    assert well[0] is OK
    assert missing == (ERROR, "missing: standing_order")
    assert invalid == (ERROR, "not valid: standing_order")


def test_a_zone_that_the_server_does_not_know_is_found(here: Deployment) -> None:
    well = found(schema.time_zones, here)
    here.conn.execute("UPDATE truerank.board SET zone = 'Mars/Olympus_Mons'")

    severity, message = found(schema.time_zones, here)

    assert well[0] is OK
    assert severity is ERROR
    assert "Mars/Olympus_Mons, the zone of 1 boards, 'b' for one" in message


def test_an_old_transaction_is_found(
    single: Pipeline, here: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    single.connection().execute("SELECT pg_current_xact_id()")
    monkeypatch.setattr(schema, "_OPEN_MS_MAX", 0)
    time.sleep(0.002)  # so that it is older than the limit

    young, old = found(schema.held_back, here), None
    with deployment(single.settings) as later:
        old = found(schema.held_back, later)

    assert young[0] is OK
    assert old[0] is WARNING
    assert old[1].startswith("session pid ")


@pytest.mark.parametrize(
    ("version", "severity"),
    [
        ({"redis_version": "6.2.14"}, ERROR),
        ({"redis_version": "7.0.15"}, OK),
        ({"redis_version": "9.0.0"}, WARNING),
        ({"redis_version": "7.2.4", "valkey_version": "7.2.9"}, ERROR),
        ({"redis_version": "7.2.4", "valkey_version": "9.1.2"}, OK),
        ({"redis_version": "7.2.4", "valkey_version": "10.0.0"}, WARNING),
    ],
)
def test_the_version_of_redis_is_judged(
    here: Deployment, version: dict[str, str], severity: Severity
) -> None:
    assert found(valkey.redis_version, replace(here, info=version))[0] is severity


def asked(url: str, here: Deployment) -> Deployment:
    """The same with another Redis."""
    with redis.Redis.from_url(url) as client:
        return replace(here, info={name: str(value) for name, value in client.info().items()})


def test_a_server_that_evicts_is_found(here: Deployment, start_redis: StartRedis) -> None:
    url, _ = start_redis("--maxmemory-policy", "allkeys-lru")

    severity, message = found(valkey.eviction, asked(url, here))

    assert found(valkey.eviction, here)[0] is OK
    assert (severity, "allkeys-lru" in message) == (ERROR, True)


def test_too_little_memory_is_found(here: Deployment, start_redis: StartRedis) -> None:
    url, _ = start_redis()
    severities = []
    with redis.Redis.from_url(url) as client:
        used = int(client.info("memory")["used_memory"])
        for limit in (0, 10 * used, int(1.5 * used), used // 2):
            client.config_set("maxmemory", limit)
            severities.append(found(valkey.memory, asked(url, here))[0])

    assert severities == [OK, OK, WARNING, ERROR]


def test_a_server_that_keeps_nothing_is_found(here: Deployment, start_redis: StartRedis) -> None:
    nothing, _ = start_redis()
    kept, _ = start_redis("--appendonly", "yes")

    assert found(valkey.persistence, asked(nothing, here))[0] is WARNING
    assert found(valkey.persistence, asked(kept, here))[0] is OK


def test_a_server_that_cannot_write_its_files_is_found(
    here: Deployment, start_redis: StartRedis, tmp_path: Path
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    url, _ = start_redis(folder=folder)
    with redis.Redis.from_url(url) as client:
        client.ping()  # its socket goes away with the folder, the connection stays
        shutil.rmtree(folder)
        client.bgsave()
        wait_until(lambda: client.info()["rdb_last_bgsave_status"] != "ok", "saving fails")
        info = client.info()

    told = replace(here, info={name: str(value) for name, value in info.items()})
    severity, message = found(valkey.persistence, told)
    assert (severity, message.startswith("rdb_last_bgsave_status: ")) == (ERROR, True)


def test_a_replica_is_found(here: Deployment, start_redis: StartRedis) -> None:
    url, _ = start_redis()
    with redis.Redis.from_url(url) as client:
        client.replicaof("127.0.0.1", 1)

    assert found(valkey.role, here)[0] is OK
    assert found(valkey.role, asked(url, here)) == (ERROR, "the server is a replica")


def test_clocks_that_differ_are_found(here: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    well = found(both.clocks, here)
    now = time.time
    monkeypatch.setattr(both, "time", lambda: now() + 5)

    findings = list(both.clocks(here))

    assert well[0] is OK
    assert [(finding.severity, finding.message.split(",")[0]) for finding in findings] == [
        (WARNING, f"the clock of {name} is 5.0 s behind this machine's")
        for name in ("PostgreSQL", "Redis")
    ]


def test_keys_that_were_evicted_are_found_after_the_policy_was_mended(
    here: Deployment, start_redis: StartRedis
) -> None:
    url, _ = start_redis("--maxmemory-policy", "allkeys-lru", "--maxmemory", "3mb")
    with redis.Redis.from_url(url) as client:
        wait_until(
            lambda: (
                client.set(str(time.monotonic_ns()), "x" * 100_000)
                and client.info("stats")["evicted_keys"]
            ),
            "keys are evicted",
        )
        client.config_set("maxmemory-policy", "noeviction")

    severity, message = found(valkey.eviction, asked(url, here))

    assert (severity, "evicted since the server's start" in message) == (WARNING, True)


def test_sizes_are_told_in_readable_units(here: Deployment) -> None:
    told = replace(here, info={**here.info, "used_memory": "1610612736", "maxmemory": "4294967296"})

    assert found(valkey.memory, told) == (OK, "1.5 GiB of 4.0 GiB used")
    assert [bytes_words(size) for size in (0, 1023, 1024, 10 * 1024, 1 << 50)] == [
        "0 bytes", "1023 bytes", "1.0 KiB", "10 KiB", "1024 TiB",
    ]  # fmt: skip


def test_the_commands_that_are_tried_are_those_that_are_sent() -> None:
    assert permissions.COMMANDS.keys() == names.redis_commands()


@pytest.mark.parametrize(
    ("rules", "severity", "told"),
    [
        (["+@all", "-@dangerous", "+info"], OK, "all of "),
        (["+@all", "-publish", "-unlink"], ERROR, "not allowed on keys and channels of "),
        (["+@all", "-eval"], ERROR, "scripts can't be run: "),
    ],
)
def test_what_the_user_of_redis_may_not_do_is_found_and_nothing_is_done(
    here: Deployment, start_redis: StartRedis, rules: list[str], severity: Severity, told: str
) -> None:
    url, _ = start_redis()
    prefix = here.settings.prefix
    with redis.Redis.from_url(url) as admin:
        reach = [f"~{prefix}:*", f"&{prefix}:*"]
        admin.execute_command("ACL", "SETUSER", "app", "on", ">secret", *reach, *rules)
        with redis.Redis.from_url(url, username="app", password="secret") as client:
            judged = found(permissions.redis_permissions, replace(here, redis=client))
        keys = admin.keys("*")

    assert (judged[0], judged[1].startswith(told)) == (severity, True)
    assert judged[1].endswith("PUBLISH, UNLINK") == ("-unlink" in rules)
    assert keys == []


def test_keys_that_the_user_of_redis_may_not_touch_are_found(
    here: Deployment, start_redis: StartRedis
) -> None:
    url, _ = start_redis()
    with redis.Redis.from_url(url) as client:
        client.execute_command("ACL", "SETUSER", "default", "resetkeys", "~other:*")
        severity, message = found(permissions.redis_permissions, replace(here, redis=client))

    assert severity is ERROR
    assert "ZADD" in message
    assert "PING" not in message


def overdue(single: Pipeline) -> Deployment:
    """The same, after the outbox has been written to one segment for ten hours."""
    single.conn.execute("UPDATE truerank.ring SET turned_at = turned_at - interval '10 hours'")
    with deployment(single.settings) as made:
        return made


def test_whoever_holds_up_the_outbox_is_found(single: Pipeline, here: Deployment) -> None:
    single.settle(single.projector())
    well = found(schema.outbox, here)
    late = replace(overdue(single), conn=here.conn)
    idle = found(schema.outbox, late)
    for _ in range(3):
        single.submit("b", {"ann": 1})
        single.conn.execute("SELECT truerank.turn_ring(0, 1, 86400, true)")
    copy = found(schema.outbox, replace(overdue(single), conn=here.conn))
    writer = single.connection()
    writer.execute("LOCK TABLE truerank.outbox_0 IN ROW EXCLUSIVE MODE")

    def locks() -> list[str]:
        return [finding.message for finding in schema.outbox(late) if "lock" in finding.message]

    held = wait_until(locks, "the lock is old enough to be told")

    assert well[0] is OK
    assert (idle[0], "nothing holds up the next" in idle[1]) == (WARNING, True)
    assert (copy[0], f"generation {single.generation()}" in copy[1].replace("-", "")) == (
        WARNING, True,
    )  # fmt: skip
    assert len(held) == 1
    assert f"pid {writer.info.backend_pid}" in held[0]


def test_a_copy_that_has_read_all_and_whose_tick_would_be_emptied_is_found(
    single: Pipeline, here: Deployment
) -> None:
    single.settle(single.projector())
    turns = [
        single.conn.execute("SELECT truerank.turn_ring(0, 1, 86400, true)").fetchone()
        for _ in range(4)
    ]

    severity, message = found(schema.outbox, replace(overdue(single), conn=here.conn))

    assert turns[-1] == ("unread",)
    assert (severity, f"generation {single.generation()}" in message.replace("-", "")) == (
        WARNING, True,
    )  # fmt: skip


def test_a_ranking_that_is_larger_than_what_was_measured_is_found(
    single: Pipeline, here: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    single.submit("b", {f"m{n}": n for n in range(60)})
    single.conn.execute("ANALYZE truerank.standing")
    well = found(schema.large_rankings, here)
    monkeypatch.setattr(schema, "_MEMBERS_MAX", 50)

    assert well[0] is OK
    assert found(schema.large_rankings, here) == (
        WARNING, "board 'b', season all: about 60 members"
    )  # fmt: skip


def test_one_worker_is_told_in_the_singular(sound: Settings) -> None:
    with deployment(sound) as here:
        severity, message = found(both.pipeline, here)

    assert (severity, message.startswith("1 worker holds 64 of 64 groups;")) == (OK, True)


def test_what_status_finds_is_found(here: Deployment) -> None:
    findings = list(both.pipeline(here))

    assert "no worker holds a group" in [finding.message for finding in findings]
    assert {finding.severity for finding in findings} == {ERROR}


def test_a_sound_deployment_has_no_findings(sound: Settings) -> None:
    findings = [finding for finding in examine.examine(sound) if finding.severity is not OK]

    assert findings == []
    assert len(list(examine.examine(sound))) == len(examine.CHECKS)


@pytest.mark.parametrize(
    ("away", "told"),
    [
        (["database_url"], {"PostgreSQL"}),
        (["redis_url"], {"Redis"}),
        (["database_url", "redis_url"], {"PostgreSQL", "Redis"}),
    ],
)
def test_every_store_that_is_away_is_told_and_the_other_is_looked_at(
    sound: Settings, away: list[str], told: set[str]
) -> None:
    nowhere = {
        "database_url": "postgresql://127.0.0.1:1/none",
        "redis_url": "redis://127.0.0.1:1",
    }

    found = list(
        examine.examine(msgspec.structs.replace(sound, **{name: nowhere[name] for name in away}))
    )

    assert {finding.check for finding in found if finding.severity is ERROR} == told
    assert ("postgresql version" in {finding.check for finding in found}) == (told == {"Redis"})


def test_the_command_says_with_its_exit_status_how_bad_it_is(
    sound: Settings,
    single: Pipeline,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def command(settings: Settings, *options: str) -> int:
        monkeypatch.setenv("TRUERANK_DATABASE_URL", settings.database_url or "")
        monkeypatch.setenv("TRUERANK_REDIS_URL", settings.redis_url or "")
        monkeypatch.setenv("TRUERANK_PREFIX", settings.prefix)
        return run(["doctor", *options])

    well, out = command(sound), capfd.readouterr().out
    bad = command(single.settings, "--json")
    shape = json.loads(capfd.readouterr().out)

    assert well == 0
    assert {line.split()[0] for line in out.splitlines()} == {"ok"}
    assert (bad, shape["verdict"]) == (4, "error")
    assert {"check", "severity", "message", "advice"} == set(shape["findings"][0])

"""A primary turns into a standby or read-only: nobody writes, nobody is lied to, work resumes."""

import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import httpx
import msgspec
import psycopg
import pytest

import truerank
from tests.faults.postgres.server import How, Server, new_server
from tests.faults.proxy import Proxy, postgresql_through
from tests.http.conftest import serving
from tests.projection.pipeline import Pipeline, differences, pipeline, wait_until
from truerank.errors import DatabaseUnavailable
from truerank.local import running_worker
from truerank.model import Source
from truerank.outbox import ticks
from truerank.projection import worker
from truerank.schema.migrate import migrate
from truerank.settings import Settings

SCORES = "/v1/boards/b/scores"


@pytest.fixture
def pair() -> Iterator[tuple[Server, Server]]:
    """A migrated primary, and a standby that follows it; both run."""
    with new_server() as primary, tempfile.TemporaryDirectory(prefix="tr-") as folder:
        primary.start()
        migrate(primary.url())
        primary.end()
        with primary.copy(Path(folder)) as standby:
            standby.follow(primary)
            primary.start()
            standby.start()
            yield primary, standby


@pytest.fixture
def pair_settings(pair: tuple[Server, Server], settings: Settings) -> Settings:
    return msgspec.structs.replace(
        settings, database_url=pair[0].url(), board_cache_ms=60_000, database_timeout_ms=4000
    )


def caught_up(primary: Server, standby: Server) -> bool:
    with primary.connect() as conn, standby.connect() as follower:
        ((at,),) = conn.execute("SELECT pg_current_wal_lsn()::text").fetchall()
        return follower.execute(
            "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", (at,)
        ).fetchone() == (True,)


def test_a_standby_gives_no_ticks_and_no_answers(
    pair: tuple[Server, Server], pair_settings: Settings
) -> None:
    """What it shows is older than it can tell, and became visible there in another order."""
    primary, standby = pair
    with pipeline(pair_settings, groups=1) as made:
        made.client.create_board("b", seasons=["all"])
        made.submit("b", {"ann": 1})
    wait_until(lambda: caught_up(primary, standby), "the standby has everything")
    there = msgspec.structs.replace(pair_settings, database_url=standby.url())

    with standby.connect() as conn, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        ticks.take_tick(conn, since=None, anyway=True)
    with pytest.raises(DatabaseUnavailable, match="hot standby"):
        worker.connect(standby.url())
    with pytest.raises(DatabaseUnavailable, match="hot standby"):
        migrate(standby.url())
    with truerank.Truerank(there) as client:
        with pytest.raises(DatabaseUnavailable, match="hot standby"):
            client.top("b", source=Source.DATABASE)
        with pytest.raises(DatabaseUnavailable, match="hot standby"):
            client.submit_score("b", event_id="e", member="ann", value=1)


def test_an_address_of_two_servers_leads_to_the_one_that_is_primary(
    pair: tuple[Server, Server], pair_settings: Settings
) -> None:
    primary, standby = pair
    both = f"postgresql://truerank@/postgres?host={standby.folder},{primary.folder}"
    settings = msgspec.structs.replace(pair_settings, database_url=both)
    with pipeline(pair_settings, groups=1) as made:
        made.client.create_board("b", seasons=["all"])

        with running_worker(settings), truerank.Truerank(settings) as client:
            client.submit_score("b", event_id="e", member="ann", value=1)
            wait_until(lambda: not differences(made), "both stores agree")


def switch_over(pair: tuple[Server, Server]) -> None:
    """Make the standby the primary, and the primary its standby."""
    primary, standby = pair
    primary.end(How.FAST)  # the standby gets all there is
    with standby.connect() as conn:
        conn.execute("SELECT pg_promote()")
    primary.follow(standby)
    primary.start()


def written(http: httpx.Client, event_id: str) -> int:
    event = {"event_id": event_id, "member": "ann", "value": 1}
    answer = http.post(SCORES, json=event)
    if answer.status_code != 200:
        assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")
        assert int(answer.headers["retry-after"]) > 0
    return answer.status_code


def test_a_primary_that_was_demoted_is_left_for_the_new_one_without_a_restart(
    pair: tuple[Server, Server], pair_settings: Settings, note: Callable[[str], None]
) -> None:
    """Its address leads to the standby for a while, as a name does that is still remembered."""
    _, standby = pair
    with pipeline(pair_settings, groups=1) as made:
        made.client.create_board("b", seasons=["all"])
    assert pair_settings.database_url is not None
    with postgresql_through(pair_settings.database_url) as (proxy, url):
        settings = msgspec.structs.replace(pair_settings, database_url=url)
        with (
            running_worker(settings),
            serving(settings) as address,
            httpx.Client(base_url=address, timeout=30.0) as http,
            truerank.Truerank(settings) as client,
        ):
            client.top("b")
            acknowledged = [f"e{n}" for n in range(5) if written(http, f"e{n}") == 200]
            assert len(acknowledged) == 5

            switch_over(pair)
            refused = [written(http, f"r{n}") for n in range(2)]
            page = client.top("b", source=Source.PROJECTION)
            proxy.upstream = socket_of(proxy, standby)

            assert refused == [503] * 2
            assert all(int(entry.score) <= 5 for entry in page.entries)
            assert page.freshness.staleness_ms is None or page.freshness.staleness_ms > 1000
            wait_until(lambda: written(http, "r0") == written(http, "r1") == 200, "both writes")
            with pipeline(
                msgspec.structs.replace(settings, database_url=standby.url()), groups=1
            ) as after:
                wait_until(lambda: not differences(after), "both stores agree")
                assert [e.score for e in after.client.top("b").entries] == ["7"]
    note("writes were refused with 503 until the address led to the new primary")


def socket_of(proxy: Proxy, server: Server) -> Path:
    return server.folder / proxy.upstream.name


def writer_pids(conn: psycopg.Connection) -> set[int]:
    rows = conn.execute(
        "SELECT pid FROM pg_stat_activity"
        " WHERE application_name = 'truerank writer' AND datname = current_database()"
    ).fetchall()
    return {pid for (pid,) in rows}


def test_a_server_that_turned_read_only_refuses_writes_and_answers_reads_until_it_is_well(
    lone: Pipeline, settings: Settings
) -> None:
    """As a full disk or an operator has it: connections stay, and every write fails."""
    with (
        running_worker(settings),
        serving(settings) as address,
        httpx.Client(base_url=address, timeout=30.0) as http,
    ):
        assert written(http, "e0") == 200
        before = writer_pids(lone.conn)
        wait_until(lambda: not differences(lone), "the first score")
        tries, answers = count(), []

        def is_refused() -> bool:
            # The servers of connections learn of it one after the other: some may still write.
            answers.append(written(http, f"try {next(tries)}"))
            return answers[-1] == 503

        try:
            lone.conn.execute("ALTER SYSTEM SET default_transaction_read_only = on")
            lone.conn.execute("SELECT pg_reload_conf()")
            wait_until(is_refused, "a write is refused")
            pages = [
                http.get("/v1/boards/b/top", params={"consistency": how}).json()
                for how in ("any", "authoritative")
            ]
            assert not writer_pids(lone.conn) & before, "a broken connection was kept"
        finally:
            lone.conn.execute("SET default_transaction_read_only = off")
            lone.conn.execute("ALTER SYSTEM RESET default_transaction_read_only")
            lone.conn.execute("SELECT pg_reload_conf()")
        wait_until(lambda: written(http, "e1") == 200, "a write")
        wait_until(lambda: not differences(lone), "both stores agree")

    taken = 1 + answers.count(200)
    shown, stored = (int(page["entries"][0]["score"]) for page in pages)
    assert 1 <= shown <= stored == taken
    assert [e.score for e in lone.client.top("b").entries] == [str(taken + 1)]

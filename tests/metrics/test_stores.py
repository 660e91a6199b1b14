"""What both stores say of themselves: each number follows what happens in them."""

from collections.abc import Iterator

import msgspec
import psycopg
import pytest
import redis

import truerank
from tests.conftest import StartRedis
from tests.metrics.scrape import Numbers, told
from tests.projection.pipeline import Pipeline, wait_until
from truerank.command.attach import AttachmentSpec, attach_table
from truerank.embedded import start_engines
from truerank.read.status import Status
from truerank.schema.migrate import migrate
from truerank.settings import Settings


def page(client: truerank.Truerank) -> Numbers:
    return told(client.status())


def test_rows_wait_until_the_live_copies_show_them(
    single: Pipeline, watcher: truerank.Truerank
) -> None:
    projector = single.projector()
    single.settle(projector)
    before = page(watcher)
    single.submit("b", {"ann": 1, "bob": 2})

    waiting = page(watcher)
    wait_until(
        lambda: (
            (page(watcher)("truerank_outbox_age_seconds") or 0)
            > (waiting("truerank_outbox_age_seconds") or 0)
        ),
        "what waits gets older",
    )
    single.settle(projector)
    after = page(watcher)

    assert [n("truerank_outbox_waiting_rows") for n in (before, waiting, after)] == [0, 2, 0]
    assert before("truerank_outbox_age_seconds") == after("truerank_outbox_age_seconds") == 0
    assert (waiting("truerank_outbox_age_seconds") or 0) > 0


def test_rows_of_a_transaction_that_was_open_at_the_tick_wait_as_well(
    single: Pipeline, watcher: truerank.Truerank
) -> None:
    projector = single.projector()
    single.settle(projector)
    slow = single.connection()
    single.submit("b", {"slow": 1}, slow)
    single.submit("b", {"ann": 1})
    projector.step()
    open_still = page(watcher)("truerank_outbox_waiting_rows")

    slow.commit()

    assert open_still == 0, "what isn't committed does not wait"
    assert page(watcher)("truerank_outbox_waiting_rows") == 1
    single.settle(projector)
    assert page(watcher)("truerank_outbox_waiting_rows") == 0


def test_ages_grow_without_ticks_and_fall_with_one(
    single: Pipeline, watcher: truerank.Truerank
) -> None:
    projector = single.projector()
    single.settle(projector)
    names = ("truerank_lag_seconds", "truerank_last_tick_age_seconds")
    group = {"name": "truerank_projected_through_age_seconds", "group": "0"}
    wait_until(lambda: all((page(watcher)(name) or 0) > 0.3 for name in names), "ages grow")
    old = page(watcher)

    single.submit("b", {"ann": 1})
    single.settle(projector)

    young = page(watcher)
    for name in names:
        assert (young(name) or 0) < (old(name) or 0)
    assert young(**group) == young("truerank_lag_seconds")


def test_groups_workers_and_copies_are_told(single: Pipeline, watcher: truerank.Truerank) -> None:
    names = ["truerank_groups_live", "truerank_groups_leased", "truerank_workers"]
    names += ["truerank_copies_warming", "truerank_copies_dead"]

    before = [page(watcher)(name) for name in names]
    projector = single.projector()
    projector.step()
    filling = [page(watcher)(name) for name in names]
    single.settle(projector)
    after = [page(watcher)(name) for name in names]
    single.conn.execute("UPDATE truerank.generation SET state = 'dead'")

    assert page(watcher)("truerank_groups") == 1
    assert before == [0, 0, 0, 0, 0]
    assert filling in ([0, 1, 1, 1, 0], [1, 1, 1, 0, 0])
    assert after == [1, 1, 1, 0, 0]
    assert page(watcher)("truerank_copies_dead") == 1


def test_segments_of_the_outbox_are_told(single: Pipeline, watcher: truerank.Truerank) -> None:
    single.conn.execute("UPDATE truerank.ring SET turned_at = turned_at - interval '1 hour'")
    before = page(watcher)
    single.submit("b", {f"member {n}": n for n in range(1000)})
    full = page(watcher)

    single.conn.execute("SELECT truerank.turn_ring(0, 1, 86400, true)")

    turned = page(watcher)
    segment = {"name": "truerank_segment_bytes", "segment": "0"}
    assert (full(**segment) or 0) > (before(**segment) or 0)
    assert (full("truerank_outbox_bytes") or 0) > (before("truerank_outbox_bytes") or 0)
    assert (before("truerank_segment_age_seconds") or 0) >= 3600
    assert (turned("truerank_segment_age_seconds") or 0) < 3600


def test_what_is_parked_is_told(single: Pipeline, watcher: truerank.Truerank) -> None:
    single.conn.execute(
        "INSERT INTO truerank.parked_standing (ranking, grp, reason) VALUES (1, 0, 'too long')"
    )
    single.conn.execute("CREATE TABLE run (id text PRIMARY KEY, runner text, points bigint)")
    spec = AttachmentSpec(
        board="b", table="public.run", event_id="id", member="runner", value="points"
    )
    watcher.run(attach_table(spec, actor="test", reason="a test"))
    single.conn.execute("INSERT INTO run VALUES ('r1', '', 1)")  # nobody's

    single.client.add_webhook(
        "w", "https://127.0.0.1:9/", ["event.voided"], actor="op", reason="test"
    )
    single.client.change_webhook("w", enabled=False, actor="op", reason="test")
    single.conn.execute(
        "INSERT INTO truerank.webhook_delivery (webhook, kind, data, state, occurred_at)"
        " SELECT w.id, 'webhook.test', '{}', s, now() - interval '1 hour'"
        " FROM truerank.webhook AS w, unnest('{waiting,parked,parked}'::text[]) AS s"
    )

    assert page(watcher)("truerank_webhook_deliveries_waiting") == 1
    assert page(watcher)("truerank_webhook_deliveries_parked") == 2
    assert page(watcher)("truerank_webhooks_disabled") == 1
    assert (page(watcher)("truerank_webhook_delivery_age_seconds") or 0) >= 3600
    assert page(watcher)("truerank_problem", code="deliveries_parked") == 1
    assert page(watcher)("truerank_parked_rankings") == 1
    assert page(watcher)("truerank_problem", code="rankings_parked") == 1
    assert page(watcher)("truerank_parked_rows") == 1


def test_dead_rows_of_the_score_table_are_told(
    single: Pipeline, watcher: truerank.Truerank
) -> None:
    assert page(watcher)("truerank_score_table_dead_rows") == 0
    with single.conn.transaction():  # one transaction, so that nothing is pruned on the way
        for n in range(20):
            single.submit("b", {"ann": n})
    single.conn.execute("SELECT pg_stat_force_next_flush()")

    wait_until(lambda: page(watcher)("truerank_score_table_dead_rows"), "dead rows are told")


def test_an_open_transaction_is_told_by_age_and_by_what_began_since(
    single: Pipeline, watcher: truerank.Truerank
) -> None:
    idle = page(watcher)
    holder = single.connection()
    holder.execute("SELECT pg_current_xact_id()")
    for n in range(5):
        single.submit("b", {"ann": n})

    wait_until(
        lambda: (page(watcher)("truerank_oldest_transaction_seconds", kind="session") or 0) > 0.1,
        "the transaction gets old",
    )
    held = page(watcher)
    holder.rollback()

    xids = {"name": "truerank_oldest_xmin_age_transactions", "kind": "session"}
    assert idle("truerank_oldest_transaction_seconds", kind="session") == 0
    assert (held(**xids) or 0) >= 5
    assert (page(watcher)(**xids) or 0) < 5


@pytest.fixture(scope="module")
def replicating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Engines of their own, which take prepared transactions and logical slots."""
    changed = {"max_prepared_transactions": "2", "wal_level": "logical"}
    folder = tmp_path_factory.mktemp("replicating")
    with start_engines(folder, durable=False, postgres_settings=changed) as engines:
        migrate(engines.database_url)
        yield Settings(database_url=engines.database_url, redis_url=engines.redis_url)


def test_prepared_transactions_and_slots_are_told(replicating: Settings) -> None:
    assert replicating.database_url is not None
    with (
        truerank.Truerank(replicating) as client,
        psycopg.connect(replicating.database_url, autocommit=True) as conn,
    ):
        before = page(client)
        # First: it would wait for the transaction to end.
        conn.execute("SELECT pg_create_logical_replication_slot('left', 'pgoutput')")
        conn.execute("BEGIN")
        conn.execute("SELECT pg_current_xact_id()")
        conn.execute("PREPARE TRANSACTION 'forgotten'")
        for _ in range(3):
            conn.execute("SELECT pg_current_xact_id()")

        held = page(client)
        conn.execute("ROLLBACK PREPARED 'forgotten'")
        conn.execute("SELECT pg_drop_replication_slot('left')")

        prepared = "truerank_prepared_transactions"
        assert (before(prepared), held(prepared), page(client)(prepared)) == (0, 1, 0)
        for kind in ("prepared", "slot"):
            assert before("truerank_oldest_xmin_age_transactions", kind=kind) == 0
            assert (held("truerank_oldest_xmin_age_transactions", kind=kind) or 0) >= 3
        assert (held("truerank_oldest_transaction_seconds", kind="prepared") or 0) > 0


def test_the_memory_of_redis_is_told(single: Pipeline, start_redis: StartRedis) -> None:
    url, _ = start_redis("--maxmemory", "64mb")
    with truerank.Truerank(msgspec.structs.replace(single.settings, redis_url=url)) as client:
        limited = page(client)

    assert limited("truerank_redis_memory_limit_bytes") == 64 * 1024 * 1024
    assert 0 < (limited("truerank_redis_memory_bytes") or 0) < 64 * 1024 * 1024


def test_keys_that_redis_evicted_are_told(single: Pipeline, start_redis: StartRedis) -> None:
    url, _ = start_redis("--maxmemory-policy", "allkeys-lru", "--maxmemory", "3mb")
    settings = msgspec.structs.replace(single.settings, redis_url=url)
    with truerank.Truerank(settings) as client, redis.Redis.from_url(url) as admin:
        before = page(client)("truerank_redis_evicted_keys")

        def evicted() -> float | None:
            for number in range(50):
                admin.set(f"key {number}", "x" * 100_000)
            return page(client)("truerank_redis_evicted_keys")

        assert before == 0
        wait_until(evicted, "keys are evicted")


def test_a_look_costs_no_more_with_a_large_outbox_behind_the_cursors(
    single: Pipeline, watcher: truerank.Truerank
) -> None:
    single.submit("b", {"ann": 1})
    single.conn.execute(
        """INSERT INTO truerank.outbox
           SELECT o.segment, o.grp, o.op, o.ranking, o.version, o.xid, o.member, o.sort_key
           FROM truerank.outbox AS o, generate_series(1, 200000)"""
    )
    single.conn.execute("ANALYZE truerank.outbox")
    single.settle(single.projector())
    copies = single.conn.execute(
        """SELECT array_agg(grp), array_agg(cursor_snapshot::text) FROM truerank.generation"""
    ).fetchone()
    assert copies is not None

    (plan,) = single.conn.execute(
        "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM truerank.health_state("
        "%s::smallint[], %s::pg_snapshot[], ARRAY[now()], ARRAY[1])",
        copies,
    ).fetchone() or ([],)

    read = plan[0]["Plan"]
    assert page(watcher)("truerank_outbox_waiting_rows") == 0
    assert read["Shared Hit Blocks"] + read["Shared Read Blocks"] < 2000, "not the whole outbox"


def test_without_a_store_its_numbers_are_absent_and_not_zero() -> None:
    away = told(Status(database_error="gone", redis_error="gone"))

    for name in ("truerank_outbox_waiting_rows", "truerank_workers", "truerank_redis_memory_bytes"):
        assert name not in away.families
    assert not away.families["truerank_projected_through_age_seconds"].samples

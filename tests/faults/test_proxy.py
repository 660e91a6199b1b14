"""The harm that the proxy does is the harm that its page promises."""

from collections.abc import Callable, Iterator

import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.faults.proxy import Proxy, Side, postgresql_through, redis_through
from tests.projection.pipeline import wait_until


@pytest.fixture
def through(redis_url: str) -> Iterator[tuple[Proxy, redis.Redis, redis.Redis]]:
    """A proxy, a client through it that repeats nothing, and one beside it."""
    with (
        redis_through(redis_url) as (proxy, url),
        redis.Redis.from_url(url, socket_timeout=0.2, retry=Retry(NoBackoff(), 0)) as client,
        redis.Redis.from_url(redis_url) as beside,
    ):
        client.set("greeted", 1)
        yield proxy, client, beside


def test_a_reply_is_lost_after_the_server_did_what_was_asked(
    through: tuple[Proxy, redis.Redis, redis.Redis],
) -> None:
    proxy, client, beside = through

    proxy.lose_reply(b"INCR", nth=1)
    client.incr("n")
    with pytest.raises(redis.ConnectionError):
        client.incr("n")

    assert proxy.faults == 1
    assert beside.get("n") == b"2"
    assert client.incr("n") == 3


def test_a_request_can_be_cut_at_every_byte(
    through: tuple[Proxy, redis.Redis, redis.Redis],
) -> None:
    proxy, client, beside = through
    request = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"

    for length in range(len(request)):
        proxy.cut_after(length, Side.REQUESTS)
        with pytest.raises(redis.ConnectionError):
            client.set("k", "v")
        client.ping()
        beside.delete("k")  # of a complete request no byte is missing

    assert proxy.faults == len(request)


@pytest.mark.parametrize("harm", [Proxy.hold, Proxy.swallow_replies])
def test_a_half_open_connection_says_nothing_until_it_is_mended(
    through: tuple[Proxy, redis.Redis, redis.Redis], harm: Callable[[Proxy], None]
) -> None:
    proxy, client, beside = through

    harm(proxy)
    with pytest.raises(redis.TimeoutError):
        client.set("k", "v")

    if harm is Proxy.swallow_replies:
        assert beside.get("k") == b"v"
    proxy.mend()
    assert client.set("k", "w")


def test_what_is_refused_is_let_in_after_it_is_mended(
    through: tuple[Proxy, redis.Redis, redis.Redis],
) -> None:
    proxy, client, _ = through

    proxy.refuse()
    for _ in range(3):
        with pytest.raises(redis.ConnectionError):
            client.ping()
    wait_until(lambda: proxy.connections == 0, "all connections ended")

    proxy.mend()
    assert client.ping()


def test_a_commit_of_postgresql_whose_reply_is_lost_stands(database_url: str) -> None:
    with (
        postgresql_through(database_url) as (proxy, url),
        psycopg.connect(database_url, autocommit=True) as beside,
    ):
        beside.execute("CREATE TABLE t (n int)")
        with psycopg.connect(url) as conn:
            conn.execute("INSERT INTO t VALUES (1)")
            proxy.lose_reply(b"COMMIT")
            with pytest.raises(psycopg.OperationalError):
                conn.commit()

        assert proxy.faults == 1
        assert beside.execute("SELECT n FROM t").fetchall() == [(1,)]

"""A wire loses one reply after the work was done, or holds one request back."""

import threading
from collections.abc import Iterator

import psycopg
import pytest
import redis

from tests.projection.pipeline import wait_until
from truerank.drill.wire import Wire, postgresql_through, redis_through
from truerank.embedded import Engines


@pytest.fixture
def through(engines: Engines) -> Iterator[tuple[Wire, redis.Redis, redis.Redis]]:
    """A wire, a client behind it, and one beside it."""
    with (
        redis_through(engines.redis_url) as (wire, url),
        redis.Redis.from_url(url, retry=None) as behind,
        redis.Redis.from_url(engines.redis_url) as beside,
    ):
        yield wire, behind, beside


def test_a_reply_is_lost_once_and_its_request_carried_out(
    through: tuple[Wire, redis.Redis, redis.Redis],
) -> None:
    wire, behind, beside = through
    behind.set("wire", "before")
    wire.lose_reply(b"marked")

    with pytest.raises(redis.ConnectionError):
        behind.set("wire", "marked")

    assert wire.lost == 1
    assert beside.get("wire") == b"marked"
    behind.set("wire", "marked again")
    assert (wire.lost, beside.get("wire")) == (1, b"marked again")


def test_a_request_is_held_back_until_it_is_let_go(
    through: tuple[Wire, redis.Redis, redis.Redis],
) -> None:
    wire, behind, beside = through
    beside.set("wire", "before")
    wire.hold_request(b"marked")
    sender = threading.Thread(target=behind.set, args=("wire", "marked"))
    sender.start()
    wait_until(lambda: wire.held == 1, "the request is on its way")
    assert (beside.get("wire"), wire.is_answered) == (b"before", False)

    wire.release()

    wait_until(lambda: wire.is_answered, "the request is answered")
    sender.join()
    assert beside.get("wire") == b"marked"


def test_a_commit_whose_reply_is_lost_stands(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as beside:
        beside.execute("CREATE TABLE kept (text text)")
        with (
            postgresql_through(database_url) as (wire, url),
            psycopg.connect(url, autocommit=True) as behind,
        ):
            wire.lose_reply(b"marked")
            with pytest.raises(psycopg.OperationalError):
                behind.execute("INSERT INTO kept VALUES ('marked')")
        assert wire.lost == 1
        assert beside.execute("SELECT text FROM kept").fetchall() == [("marked",)]

"""Live hints: where the stream begins, one hint per change, nothing lost unnoticed."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import httpx
import psycopg
import pytest
import redis

import truerank
from truerank.model import Receipt
from truerank.projection.keys import GroupKeys
from truerank.serve.feed import GAP_S
from truerank.settings import Settings

Stream = Callable[..., Any]
GENERATION = "0" * 32


@pytest.fixture
def board(tr: truerank.Truerank, worker: None) -> truerank.Truerank:
    del worker
    tr.create_board("points", seasons=("all", "week"))
    tr.create_board("other", seasons=("all",))
    return tr


def submit(tr: truerank.Truerank, number: int, board: str = "points") -> Receipt:
    return tr.submit_score(board, event_id=f"e{number}", member=f"m{number}", value=1)


def channel(tr: truerank.Truerank, settings: Settings, board: str = "points") -> str:
    return GroupKeys(settings.prefix, tr.board(board).group).hints


async def test_a_stream_begins_with_the_current_tick_and_tells_each_change(
    board: truerank.Truerank, served: str, stream: Stream
) -> None:
    async with stream(served, "points") as events:
        assert events.headers["content-type"].startswith("text/event-stream")
        assert "no-cache" in events.headers["cache-control"]
        assert events.headers["x-accel-buffering"] == "no"
        name, beginning = await events.next()
        assert name == "tick"
        assert beginning["board"] == "points"
        assert beginning["tick"].isdigit()

        receipt = await asyncio.to_thread(submit, board, 1)
        name, hint = await events.next()

    page = await asyncio.to_thread(board.top, "points")
    assert name == "hint"
    assert hint["generation"] == beginning["generation"] == page.freshness.generation
    assert int(beginning["tick"]) < int(hint["tick"]) <= (page.freshness.tick or 0)
    assert page.total == 1
    assert hint["seasons"] == [standing.season for standing in receipt.standings]


async def test_what_is_hinted_at_can_be_fetched_at_once(
    board: truerank.Truerank, served: str, stream: Stream
) -> None:
    async with stream(served, "points") as events, httpx.AsyncClient(base_url=served) as client:
        await events.next()
        for number in range(5):
            await asyncio.to_thread(submit, board, number)
            await events.next()
            answer = await client.get("/v1/boards/points/top")
            assert answer.json()["total"] == number + 1


async def test_changes_of_another_board_are_not_told(
    board: truerank.Truerank, served: str, stream: Stream
) -> None:
    async with stream(served, "points") as events:
        await events.next()
        await asyncio.to_thread(submit, board, 1, "other")
        await asyncio.to_thread(submit, board, 2)
        _, hint = await events.next()

    assert hint["board"] == "points"


async def test_hints_are_merged_and_come_at_a_bounded_rate(
    board: truerank.Truerank, served: str, settings: Settings, stream: Stream
) -> None:
    ranking = board.season("points", "all").ranking
    name = channel(board, settings)
    async with stream(served, "points") as events:
        await events.next()
        began = asyncio.get_running_loop().time()
        with redis.Redis.from_url(settings.redis_url or "") as client:
            for tick in range(1, 2001):
                client.publish(name, f"{ranking >> 36} {tick}:aa {GENERATION} {ranking}")
        count, last = 0, 0
        while last < 2000:
            _, hint = await events.next()
            count, last = count + 1, int(hint["tick"])
        took_s = asyncio.get_running_loop().time() - began

    assert count <= took_s / GAP_S + 2


async def test_a_client_that_does_not_read_delays_nobody(
    board: truerank.Truerank, served: str, settings: Settings, stream: Stream
) -> None:
    ranking = board.season("points", "all").ranking
    name, address = channel(board, settings), httpx.URL(served)
    rankings = ",".join(str(ranking + at) for at in range(100))  # about 2 kB
    with socket.create_connection((address.host, address.port or 0)) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(b"GET /v1/boards/points/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with stream(served, "points") as events:
            await events.next()
            with redis.Redis.from_url(settings.redis_url or "") as client:
                for tick in range(1, 10_001):
                    client.publish(name, f"{ranking >> 36} {tick}:aa {GENERATION} {rankings}")
            hint: dict[str, Any] = {"tick": "0"}
            while int(hint["tick"]) < 10_000:
                _, hint = await events.next(timeout_s=2)
            assert hint["seasons"] is None


async def test_forged_hints_show_nothing_and_break_nothing(
    board: truerank.Truerank, served: str, settings: Settings, stream: Stream
) -> None:
    ranking = board.season("points", "all").ranking
    number, name = ranking >> 36, channel(board, settings)
    forged: list[str | bytes] = [
        "", "points", b"\xff\xfe", f"{number} 1:aa {GENERATION} 1\n\nevent: top\ndata: {{}}",
        f"{number} -1:aa {GENERATION} 1", f"{number} 1:aa {GENERATION} {'9' * 40}",
        f"{number} 1:aa {GENERATION}", f"{number} 1:aa secret-member 5",
    ]  # fmt: skip
    async with stream(served, "points") as events:
        await events.next()
        with redis.Redis.from_url(settings.redis_url or "") as client:
            for message in forged:
                client.publish(name, message)
            client.publish(name, f"{number} 77:aa {GENERATION} {(number << 36) | (15 << 32)}")
            _, odd = await events.next()
            client.publish(name, f"{number} 78:aa {GENERATION} {ranking}")
            _, true = await events.next()

    assert (odd["tick"], odd["seasons"]) == ("77", None)
    assert (true["tick"], true["seasons"]) == ("78", ["all"])


async def test_a_client_that_comes_back_is_told_to_look_again(
    board: truerank.Truerank, served: str, stream: Stream
) -> None:
    del board
    for last_id in ("72", "abc", "x" * 5000):
        async with stream(served, "points", **{"Last-Event-ID": last_id}) as events:
            assert (await events.next())[0] == "resync"


async def test_every_stream_is_told_to_look_again_after_the_subscription_was_lost(
    board: truerank.Truerank, served: str, settings: Settings, stream: Stream
) -> None:
    async with stream(served, "points") as first, stream(served, "other") as second:
        await first.next()
        await second.next()
        with redis.Redis.from_url(settings.redis_url or "") as client:
            assert client.execute_command("CLIENT", "KILL", "TYPE", "pubsub") == 1

        assert (await first.next())[0] == "resync"
        assert (await second.next())[0] == "resync"
        await asyncio.to_thread(submit, board, 1)
        assert (await first.next())[0] == "hint"


async def test_a_subscription_that_went_silent_is_noticed(
    board: truerank.Truerank, serve: Callable[..., Any], wires: tuple[Any, ...], stream: Stream
) -> None:
    settings, _, valkey = wires
    with serve(settings) as url:
        async with stream(url, "points") as events:
            await events.next()
            valkey.silence()
            await asyncio.to_thread(submit, board, 1)

            assert (await events.next())[0] == "resync"


async def test_one_subscription_serves_all_streams_and_they_hold_no_database_connection(
    board: truerank.Truerank, served: str, settings: Settings, stream: Stream
) -> None:
    async with asyncio.TaskGroup() as group:
        ready, over = [asyncio.Event() for _ in range(50)], asyncio.Event()

        async def follow(at: int) -> None:
            async with stream(served, "points") as events:
                await events.next()
                ready[at].set()
                await over.wait()
                await events.next()

        for at in range(50):
            group.create_task(follow(at))
        await asyncio.gather(*(event.wait() for event in ready))
        with redis.Redis.from_url(settings.redis_url or "") as client:
            counted = client.pubsub_numsub(channel(board, settings))
        with psycopg.connect(settings.database_url or "") as conn:
            row = conn.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND application_name = 'truerank' AND state <> 'idle'"
            ).fetchone()
        over.set()
        await asyncio.to_thread(submit, board, 1)

    assert counted[0][1] == 1
    assert row == (0,)


async def test_compression_is_not_forced_on_a_stream(
    board: truerank.Truerank, served: str, stream: Stream
) -> None:
    async with stream(served, "points", **{"Accept-Encoding": "gzip"}) as events:
        assert "content-encoding" not in events.headers
        await events.next()
        for number in range(3):
            await asyncio.to_thread(submit, board, number)
            assert (await events.next(timeout_s=5))[0] == "hint"


async def test_a_head_request_gets_the_headers_and_ends(
    board: truerank.Truerank, served: str
) -> None:
    del board
    async with httpx.AsyncClient(base_url=served, timeout=5.0) as client:
        answer = await client.head("/v1/boards/points/live")

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")


async def test_a_line_break_in_a_boards_name_ends_no_event(
    settings: Settings, board: truerank.Truerank, served: str, stream: Stream
) -> None:
    del board
    with psycopg.connect(settings.database_url or "") as conn:
        conn.execute("ALTER TABLE truerank.board DROP CONSTRAINT IF EXISTS board_key_check")
        conn.execute("UPDATE truerank.board SET key = %s WHERE key = 'other'", ("a\nid: 1\n\nb",))

    async with stream(served, "a%0Aid%3A%201%0A%0Ab") as events:
        name, data = await events.next()

    assert (name, data["board"]) == ("tick", "a\nid: 1\n\nb")

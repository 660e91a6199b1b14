"""A whole season over HTTP: the file of the command line, and no snapshot for longer than that."""

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import quote

import httpx
import msgspec
import pytest
from starlette.applications import Starlette
from starlette.types import Message

import truerank
from tests.http.conftest import NO_CERTIFICATES, serving
from tests.http.stand import DEADLINE_S, until
from truerank.model import ScoreEvent
from truerank.serve import exports
from truerank.serve.app import create_app
from truerank.settings import Settings
from truerank.steps import Query, Steps

EXPORT = "/v1/boards/points/export"
_ROWS = 1100  # of two slices
_SNAPSHOTS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE application_name = 'truerank export' AND datname = current_database()
      AND backend_xmin IS NOT NULL AND pid <> pg_backend_pid()"""
_END = """
    SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
    WHERE application_name = 'truerank export' AND datname = current_database()
      AND pid <> pg_backend_pid()"""


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return msgspec.structs.replace(settings, exports_max=1, board_cache_ms=1)


@pytest.fixture
def points(tr: truerank.Truerank) -> truerank.Truerank:
    """A board of four members; nothing is projected."""
    tr.create_board("points", seasons=("all",))
    scores = {"=ann": 30, "bob": 20, "cid": 20, "dan": 10}
    tr.submit_scores(
        "points",
        [ScoreEvent(event_id=f"e-{m}", member=m, value=value) for m, value in scores.items()],
    )
    return tr


@pytest.fixture
def large(points: truerank.Truerank) -> truerank.Truerank:
    """The same of so many members that not all are read at once."""
    for at in range(0, _ROWS, 550):
        points.submit_scores(
            "points",
            [ScoreEvent(event_id=f"{i}", member=f"{i}", value=1) for i in range(at, at + 550)],
        )
    return points


def test_a_file_is_that_of_the_client_with_its_freshness_in_headers(
    points: truerank.Truerank, http: httpx.Client
) -> None:
    table = http.get(EXPORT)
    lines = http.get(EXPORT, params={"format": "ndjson", "season": "all", "numbering": "dense"})

    told = table.headers
    assert (table.status_code, lines.status_code) == (200, 200)
    assert told["content-type"] == "text/csv; charset=utf-8; header=present"
    assert told["content-disposition"] == "attachment; filename*=UTF-8''points-all.csv"
    assert told["cache-control"] == "no-store"
    assert (told["truerank-season"], told["truerank-state"]) == ("all", "open")
    assert (told["truerank-source"], told["truerank-staleness-ms"]) == ("database", "0")
    rows = list(csv.DictReader(io.StringIO(table.text, newline="")))
    with points.export("points") as same:
        assert [(int(r["rank"]), r["member"].removeprefix("'"), r["points"]) for r in rows] == [
            (r.rank, r.member, r.score) for r in same
        ]
    assert {(r["as_of"], r["epoch"]) for r in rows} == {
        (told["truerank-projected-through"], told["truerank-epoch"])
    }
    assert lines.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line)["rank"] for line in lines.text.splitlines()] == [1, 2, 2, 3]
    head = http.head(EXPORT)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["truerank-epoch"] == told["truerank-epoch"]


@pytest.mark.usefixtures("points")
def test_what_cannot_be_exported_is_refused(http: httpx.Client) -> None:
    for query, refusal in (
        ("format=xml", (422, "invalid_input", "format")),
        ("format=", (422, "invalid_input", "format")),
        ("revision=1", (422, "invalid_input", "revision")),
        ("settled=yes", (422, "invalid_input", "settled")),
        ("numbering=none", (422, "invalid_input", "numbering")),
        ("limit=1", (422, "invalid_input", "limit")),
        ("season=2026-13", (404, "season_unknown", "season")),
        ("settled=1", (403, "operators_only", None)),
    ):
        answer = http.get(f"{EXPORT}?{query}")

        assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == refusal


def test_the_public_gets_what_was_frozen_and_operators_what_is(
    points: truerank.Truerank, http: httpx.Client, settings: Settings
) -> None:
    points.hide_member("=ann", actor="a", reason="r", timeout_s=0)
    points.freeze_season("points", "all", actor="a", reason="r")
    points.submit_score("points", event_id="late", member="dan", value=1000)

    with (
        serving(msgspec.structs.replace(settings, operator=True)) as url,
        httpx.Client(base_url=url, timeout=DEADLINE_S, verify=NO_CERTIFICATES) as operators,
    ):
        shown, all_of_it = (each.get(EXPORT, params={"format": "ndjson"}) for each in
                            (http, operators))  # fmt: skip
        not_yet = operators.get(EXPORT, params={"settled": 1})

    assert [json.loads(line)["member"] for line in shown.text.splitlines()] == ["bob", "cid", "dan"]
    assert [json.loads(line)["as_of"] for line in shown.text.splitlines()] == [
        shown.headers["truerank-frozen-at"]
    ] * 3
    first = json.loads(all_of_it.text.splitlines()[0])
    assert (first["member"], first["score"]) == ("dan", "1010")
    assert "truerank-frozen-at" not in all_of_it.headers
    assert (not_yet.status_code, not_yet.json()["code"]) == (409, "not_settled")


def test_operators_get_the_settlement_under_everybodys_own_id(
    points: truerank.Truerank, settings: Settings
) -> None:
    points.close_season("points", "all", now=True, actor="a", reason="r")
    points.hide_member("=ann", actor="a", reason="r", timeout_s=0)

    with (
        serving(msgspec.structs.replace(settings, operator=True)) as url,
        httpx.Client(base_url=url, timeout=DEADLINE_S, verify=NO_CERTIFICATES) as operators,
    ):
        answer = operators.get(EXPORT, params={"settled": 1, "revision": 1, "format": "ndjson"})

    assert answer.headers["truerank-settled"] == "true"
    assert (answer.headers["truerank-state"], answer.headers["truerank-revision"]) == ("final", "1")
    assert json.loads(answer.text.splitlines()[0])["member"] == "=ann"


class Client:
    """One request to the application, of a client that takes what it gets when a test says so."""

    def __init__(self, app: Starlette, path: str = EXPORT) -> None:
        self.sent: asyncio.Queue[Message] = asyncio.Queue()
        self.gone = asyncio.Event()
        self._takes = asyncio.Semaphore(0)
        scope = {
            "type": "http", "method": "GET", "path": path, "raw_path": quote(path).encode(),
            "query_string": b"", "headers": [(b"host", b"localhost")], "app": app,
            "http_version": "1.1", "scheme": "http", "root_path": "", "server": ("localhost", 80),
        }  # fmt: skip
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    async def take(self) -> Message:
        """What comes next, taken."""
        self._takes.release()
        async with asyncio.timeout(DEADLINE_S):
            return await self.sent.get()

    async def ended(self) -> None:
        """Return once the request is over, whatever was taken of its answer."""
        async with asyncio.timeout(DEADLINE_S):
            await self.task

    async def _receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        await self._takes.acquire()
        self.sent.put_nowait(message)


@asynccontextmanager
async def application(settings: Settings) -> AsyncIterator[Starlette]:
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        yield app


def asked(sql: str) -> Steps[int]:
    ((count,),) = yield Query(sql)
    return int(count)


async def half_way(app: Starlette, tr: truerank.Truerank) -> Client:
    """A client that took a part and then nothing; its export keeps a snapshot."""
    client = Client(app)
    start, part = await client.take(), await client.take()
    assert (start["status"], part["more_body"]) == (200, True)
    assert tr.run(asked(_SNAPSHOTS)) == 1
    return client


async def nothing_is_open(tr: truerank.Truerank) -> None:
    async def is_over() -> bool:
        return tr.run(asked(_SNAPSHOTS)) == 0

    await until(is_over, "the snapshot to be gone")


async def test_a_client_that_goes_ends_the_transaction(
    large: truerank.Truerank, settings: Settings
) -> None:
    async with application(settings) as app:
        client = await half_way(app, large)

        client.gone.set()
        await client.ended()

        await nothing_is_open(large)
        assert (await Client(app).take())["status"] == 200  # its slot is free again


async def test_a_client_that_takes_nothing_any_more_is_given_up(
    large: truerank.Truerank, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "STALL_S_MAX", 0.5)
    async with application(settings) as app:
        client = await half_way(app, large)

        await client.ended()

        await nothing_is_open(large)
    assert client.sent.empty()  # no end: who reads on sees that the body is cut off


async def test_an_export_that_breaks_has_no_end(
    large: truerank.Truerank, settings: Settings
) -> None:
    async with application(settings) as app:
        client = await half_way(app, large)
        assert large.run(asked(_END)) == 1

        for _ in range(3):
            await_end = asyncio.ensure_future(client.take())
            done, _ = await asyncio.wait(
                {await_end, client.task}, return_when=asyncio.FIRST_COMPLETED
            )
            if client.task in done:
                await_end.cancel()
                break
            assert await_end.result()["more_body"]
        await client.ended()


async def test_no_more_exports_than_allowed_are_made_at_a_time(
    large: truerank.Truerank, settings: Settings
) -> None:
    async with application(settings) as app:
        client = await half_way(app, large)

        refused = Client(app)
        start, body = await refused.take(), await refused.take()
        rest = [await client.take()]
        while rest[-1]["more_body"]:
            rest.append(await client.take())
        await client.ended()
        later = await Client(app).take()

    assert start["status"] == 503
    assert dict(start["headers"])[b"retry-after"] == b"1"
    assert json.loads(body["body"])["code"] == "busy"
    assert later["status"] == 200


async def test_a_service_that_stops_ends_its_exports(
    large: truerank.Truerank, settings: Settings
) -> None:
    async with application(settings) as app:
        client = await half_way(app, large)

        app.state.closing.set()
        await client.ended()

        await nothing_is_open(large)

"""The command line, HTTP and the asyncio client say and do the same about webhooks."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest

from tests.deliver.conftest import BY, Post
from tests.http.conftest import NO_CERTIFICATES, serving
from truerank import aio
from truerank.cli import app
from truerank.local import running_worker


class Surfaces:
    """Commands with `--json`, and requests, of one installation."""

    def __init__(self, post: Post, url: str, capture: pytest.CaptureFixture[bytes]) -> None:
        self.post = post
        self._http = httpx.Client(base_url=url, verify=NO_CERTIFICATES, trust_env=False)
        self._capture = capture

    def run(self, *arguments: str) -> tuple[int, Any]:
        self._capture.readouterr()
        status = app.run([*arguments, "--json"])
        captured = self._capture.readouterr()
        return status, json.loads(captured.out) if captured.out else captured.err.decode()

    def get(self, path: str, **params: str) -> Any:
        return self._http.get(f"/v1/webhooks{path}", params=params).raise_for_status().json()

    def send(self, path: str, **body: Any) -> tuple[int, Any]:
        answer = self._http.post(f"/v1/webhooks{path}", json=body)
        return answer.status_code, answer.json()

    def close(self) -> None:
        self._http.close()


@pytest.fixture
def surfaces(
    post: Post, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Iterator[Surfaces]:
    """With a worker, and a server for operators."""
    monkeypatch.setenv("TRUERANK_DATABASE_URL", str(post.settings.database_url))
    monkeypatch.setenv("TRUERANK_REDIS_URL", str(post.settings.redis_url))
    operators = msgspec.structs.replace(post.settings, operator=True)
    with running_worker(post.settings), serving(operators) as url:
        made = Surfaces(post, url, capfdbinary)
        yield made
        made.close()


def test_a_webhook_lives_its_life_by_commands_and_requests(surfaces: Surfaces) -> None:
    run, get, send, receiver = surfaces.run, surfaces.get, surfaces.send, surfaces.post.receiver()
    by = {"actor": "ann", "reason": "test"}

    added = run(
        "webhook", "add", "w", receiver.url, "--kinds", "season.final, event.voided",
        "--allow-http",
    )  # fmt: skip
    assert added[0] == 0
    by_http = {"name": "v", "url": "https://example.com/?x=1", "kinds": ["member.erased"]}
    status, made = send("", **by_http, **by)
    assert (status, made["secret"][:6]) == (201, "whsec_")

    listed = run("webhook", "list")[1]
    assert listed == get("")
    assert [(w["name"], w["url"]) for w in listed["webhooks"]] == [
        ("v", "https://example.com/?***"),
        ("w", receiver.url),
    ]
    assert get("", name="w")["webhooks"] == [run("webhook", "show", "w")[1]]

    tested = run("webhook", "test", "w")
    assert (tested[0], tested[1]["outcome"]) == (0, "200")
    receiver.answer = lambda _: 503
    status, failed = send("/test", name="w")
    assert (status, failed["state"], failed["outcome"]) == (200, "waiting", "503")
    receiver.answer = lambda _: 200
    assert send("/retry", name="w", ids=[failed["id"]], **by) == (
        200,
        {"webhook": "w", "retried": 1},
    )
    receiver.wait(3)
    for got in receiver.got:
        assert got.verified(added[1]["secret"]).data == {"webhook": "w"}
    delivered = run("webhook", "deliveries", "w", "--limit", "1")[1]
    assert delivered["deliveries"][0]["key"] == receiver.got[2].key
    assert get("/deliveries", name="w", before="2")["deliveries"][0]["id"] == "1"

    rotated = run("webhook", "rotate", "w", "--overlap-s", "60")[1]["secret"]
    assert send("/rotate", name="w", overlap_s=0, **by)[1]["secret"] != rotated
    assert run("webhook", "change", "w", "--disable")[1]["enabled"] is False
    assert send("/change", name="w", enabled=True, **by)[1]["enabled"] is True
    assert run("webhook", "retry", "w", "77")[1] == {"webhook": "w", "retried": 0}
    assert run("webhook", "remove", "w")[0] == 0
    assert send("/remove", name="v", **by)[0] == 200
    assert get("") == {"webhooks": []}
    actors = surfaces.post.conn.execute(
        "SELECT DISTINCT actor FROM truerank.audit WHERE subject = 'v'"
    ).fetchall()
    assert actors == [("ann",)]


def test_what_is_wrong_is_told_with_its_code(surfaces: Surfaces) -> None:
    run, send = surfaces.run, surfaces.send
    by = {"actor": "ann", "reason": "test"}

    assert "error[webhook_unknown]" in run("webhook", "show", "w")[1]
    status, refused = send("/rotate", name="w", **by)
    assert (status, refused["code"]) == (404, "webhook_unknown")
    status, refused = send("", name="w", url="http://example.com", kinds=["season.final"], **by)
    assert (status, refused["field"]) == (422, "url")
    assert "kinds" in run("webhook", "add", "w", "https://example.com")[1]
    status, refused = send("/test", name="w", wait_s=61)
    assert (status, refused["field"]) == (422, "wait_s")


def test_a_server_for_everybody_says_nothing_of_webhooks(post: Post) -> None:
    with (
        serving(post.settings) as url,
        httpx.Client(base_url=url, verify=NO_CERTIFICATES, trust_env=False) as http,
    ):
        answers = [
            http.get("/v1/webhooks"),
            http.get("/v1/webhooks/deliveries", params={"name": "w"}),
            http.post("/v1/webhooks", json={}),
            http.post("/v1/webhooks/test", json={}),
        ]

    assert {answer.json()["code"] for answer in answers} == {"operators_only"}


async def test_the_asyncio_client_does_the_same(post: Post) -> None:
    receiver = post.receiver()
    async with aio.Truerank(post.settings) as client:
        secret = await client.add_webhook(
            "w", receiver.url, ["season.final"], allow_http=True, **BY
        )
        with post.delivering():
            delivery = await client.test_webhook("w")

        assert delivery.state == "delivered"
        assert await client.deliveries("w") == [delivery]
        assert (await client.webhook("w")).name == "w"
    receiver.got[0].verified(secret)

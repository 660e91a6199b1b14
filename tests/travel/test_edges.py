"""The same answers over HTTP and on the command line."""

import asyncio
import json
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import httpx
import pytest

import truerank
from tests.http.conftest import NO_CERTIFICATES, serving
from tests.travel.conftest import BY, Past
from truerank.cli.app import run
from truerank.read.shapes import page_json, place_json, time_text, window_json
from truerank.settings import Settings


def without_age(shape: dict[str, Any]) -> dict[str, Any]:
    return shape | {"freshness": shape["freshness"] | {"staleness_ms": None}}


def test_http_answers_what_the_library_answers(past: Past, settings: Settings) -> None:
    first = past.scores(("1", "ann", 5), ("2", "bob", 3))
    second = past.scores(("3", "bob", 3), ("4", "cid", 1))
    past.scores(("5", "ann", 9))
    first_text, second_text = quote(str(time_text(first))), quote(str(time_text(second)))
    back: Any = {"as_of": second, "since": first}

    with (
        serving(settings) as url,
        httpx.Client(base_url=f"{url}/v1/boards/b", verify=NO_CERTIFICATES) as http,
    ):

        def get(question: str) -> httpx.Response:
            return http.get(f"{question}&as_of={second_text}&since={first_text}")

        top = get("/top?limit=2")
        assert without_age(top.json()) == without_age(page_json(past.tr.top("b", limit=2, **back)))
        assert top.json()["since"] == time_text(first)
        assert top.json()["entries"] == [
            {"rank": 1, "member": "bob", "score": "6", "rank_before": 2, "change": 1},
            {"rank": 2, "member": "ann", "score": "5", "rank_before": 1, "change": -1},
        ]
        assert top.json()["freshness"]["as_of"] == time_text(second)
        assert top.headers["truerank-as-of"] == time_text(second)
        place = get("/place?member=cid").json()
        assert without_age(place) == without_age(place_json(past.tr.place("b", "cid", **back)))
        assert place["place"] == {
            "rank": 3, "member": "cid", "score": "1", "rank_before": None, "change": None,
        }  # fmt: skip
        assert [p["rank"] for p in get("/places?member=cid&member=ann").json()["places"]] == [3, 2]
        assert [e["rank"] for e in get("/around?member=ann&limit=3").json()["around"]] == [1, 2, 3]
        window = get("/around?rank=1&limit=1").json()
        assert without_age(window) == without_age(
            window_json(past.tr.around("b", rank=1, limit=1, **back))
        )
        with_offset = quote(second.astimezone(None).isoformat())
        assert http.get(f"/top?as_of={with_offset}").json()["total"] == 3
        assert "rank_before" not in http.get("/top").json()["entries"][0]

        past.tr.create_board("c", seasons=[])
        past.tr.create_season("c", "cup", first - timedelta(days=5), first - timedelta(days=2))
        during = quote(str(time_text(first - timedelta(days=3))))
        for question in ("top?", "around?rank=1&"):
            told = http.get(f"{url}/v1/boards/c/{question}as_of={during}").json()
            assert told["season"] == "cup", "which ran then, where none runs now"

        past.tr.update_board("b", {"retention": "1 day"}, **BY)
        past.conn.execute("UPDATE truerank.board SET history_from = now() + interval '1 hour'")
        refused = {
            f"as_of={quote(str(time_text(second + timedelta(days=1))))}": (422, "as_of"),
            f"since={first_text}&cursor=x": (422, "cursor"),
            "as_of=2026-08-29T12:00:00": (422, "as_of"),
            f"as_of={first_text}&consistency=settled": (422, "settled"),
        }
        for query, (status, field) in refused.items():
            answer = http.get(f"/top?{query}")
            assert (answer.status_code, answer.json()["field"]) == (status, field), query
        gone = http.get(f"/top?as_of={first_text}")
        assert (gone.status_code, gone.json()["code"]) == (410, "history_forgotten")


def test_the_async_client_answers_the_same(past: Past, settings: Settings) -> None:
    first = past.scores(("1", "ann", 5))
    second = past.scores(("2", "ann", 5))

    async def ask() -> list[truerank.Page]:
        async with truerank.aio.Truerank(settings) as tr:
            return [
                await tr.top("b", as_of=first, since=first),
                await tr.place("b", "ann", as_of=second),
                await tr.around("b", "ann", since=first),
            ]

    top, place, around = asyncio.run(ask())

    assert (top.entries[0].score, top.entries[0].change) == ("5", 0)
    assert place.places[0].score == "10"
    assert around.around[0].rank_before == 1


def test_the_command_line_shows_a_change_beside_each_rank(
    past: Past, settings: Settings, monkeypatch: pytest.MonkeyPatch, capfdbinary: Any
) -> None:
    monkeypatch.setenv("TRUERANK_DATABASE_URL", str(settings.database_url))
    monkeypatch.setenv("TRUERANK_REDIS_URL", str(settings.redis_url))
    first = past.scores(("1", "ann", 5), ("2", "bob", 3), ("3", "dan", 1))
    second = past.scores(("4", "bob", 3), ("5", "cid", 2))
    past.scores(("6", "ann", 9))
    first_text, second_text = str(time_text(first)), second.astimezone(None).isoformat()

    def said(*words: str) -> str:
        assert run(words) == 0
        return str(capfdbinary.readouterr().out.decode())

    assert said("top", "b", "--as-of", second_text, "--since", first_text).splitlines()[:-1] == [
        "b, season all, 4 members",
        "rank  change  score  member",
        "   1      +1      6  bob",
        "   2      -1      5  ann",
        "   3     new      2  cid",
        "   4      -1      1  dan",
        f"authoritative, from the history, as of {second:%Y-%m-%d %H:%M:%SZ}",
    ]
    assert said("top", "b", "--since", first_text, "-n", "1").splitlines()[1:-1] == [
        "rank  change  score  member",
        "   1       =     14  ann",
        "from PostgreSQL, as of now",
    ]
    told = json.loads(said("places", "b", "ann", "--as-of", first_text, "--json"))
    assert told["places"] == [{"rank": 1, "member": "ann", "score": "5"}]
    assert "   1      +1" in said(
        "around", "b", "bob", "--since", first_text, "--as-of", second_text
    )

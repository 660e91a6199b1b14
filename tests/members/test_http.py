"""Commands about members and freezes over HTTP: what everybody may say, and what operators."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.http.stand import Served, Stand
from tests.members.conftest import Club
from truerank.command import freezing

WHO: Any = {"actor": "op", "reason": "test"}


@pytest.fixture
def stand(club: Club) -> Stand:
    return Stand(club.pipeline, club.projector)


async def post(served: Served, path: str, **body: Any) -> httpx.Response:
    return await served.client.post(path, json=body)


async def test_a_member_hides_and_shows_itself_and_nobody_else_does(
    club: Club, stand: Stand
) -> None:
    club.scores("b", ("ann", 9), ("bob", 7))
    async with stand.serving() as served:
        hidden = await post(served, "/v1/members/hide", member="ann", wait_s=0)

        change = hidden.json()
        assert hidden.status_code == 202  # no worker showed it yet
        assert (change["state"], change["pending"], change["known"]) == ("hidden", True, True)
        assert await served.scores() == {"bob": "7"}  # PostgreSQL answers
        club.project()
        seen = await served.top(at_least=change["token"])
        assert [entry["member"] for entry in seen.json()["entries"]] == ["bob"]
        other = await post(served, "/v1/members/show", member="ann", actor="bob")
        assert (other.status_code, other.json()["code"]) == (403, "operators_only")
        shown = await post(served, "/v1/members/show", member="ann", board=None, wait_s=0)
        assert (shown.json()["state"], shown.json()["changed"]) == ("active", True)
    audit = "SELECT actor, action, reason FROM truerank.audit ORDER BY id"
    assert club.pipeline.conn.execute(audit).fetchall()[-2:] == [
        ("ann", "hide_member", "its own wish"),
        ("ann", "show_member", "its own wish"),
    ]


async def test_operators_say_everything_that_the_library_says(club: Club, stand: Stand) -> None:
    club.scores("b", ("ann", 9), ("bob", 7), ("cid", 5))
    until = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    async with stand.serving(operator=True) as served:

        async def says(action: str, **body: Any) -> Any:
            answer = await post(served, f"/v1/members/{action}", wait_s=0, **WHO, **body)
            assert answer.status_code in {200, 202}, answer.text
            return answer.json()

        banned = await says("ban", member="ann", board="b", until=until)
        assert banned["state"] == "banned"
        assert datetime.fromisoformat(banned["until"]) == datetime.fromisoformat(until)
        states = await served.client.get("/v1/members/states", params={"member": "ann"})
        assert [(s["board"], s["state"]) for s in states.json()["states"]] == [("b", "banned")]
        assert (await says("unban", member="ann", board="b"))["state"] == "active"
        assert (await says("hide", member="ann"))["state"] == "hidden"
        merged = await says("merge", member="bob", into="cid")
        assert (merged["state"], merged["merged_into"], merged["known"]) == ("merged", "cid", True)
        refused = await post(served, "/v1/members/merge", member="cid", into="bob", **WHO)
        assert (refused.status_code, refused.json()["code"]) == (409, "merge_cycle")
        assert (await says("delete", member="ann"))["state"] == "deleted"
        assert (await says("reset", member="cid"))["changed"]
        assert not (await says("ban", member="anm"))["known"]  # perhaps a spelling
        club.project()
        assert await served.scores() == {}


async def test_an_erasure_and_its_proof(club: Club, stand: Stand) -> None:
    club.scores("b", ("ann", 9))
    async with stand.serving(operator=True) as served:
        begun = await post(served, "/v1/members/erase", member="ann", wait_s=0, **WHO)

        erasure = begun.json()
        assert begun.status_code == 202
        assert (erasure["state"], erasure["pending"], erasure["token"] is None) == (
            "erasing",
            True,
            False,
        )
        for _ in range(4):
            club.pipeline.conn.execute("SELECT truerank.sweep_erasures(10)")
        found = await served.client.get("/v1/erasures", params={"erasure": erasure["erasure"]})
        (proof,) = found.json()["erasures"]
        assert (proof["events"], len(proof["digest"])) == (1, 64)
        assert "ann" not in found.text
        assert "token" not in proof
        assert len((await served.client.get("/v1/erasures?limit=1")).json()["erasures"]) == 1


async def test_a_season_is_frozen_to_come_or_now_and_revealed(club: Club, stand: Stand) -> None:
    club.scores("b", ("ann", 9))
    at = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    path = "/v1/boards/b/seasons/"
    async with stand.serving(operator=True, board_cache_ms=1) as served:
        to_come = await post(served, f"{path}freeze", season="all", at=at, **WHO)
        frozen = await post(served, f"{path}freeze", **WHO)

        assert (to_come.status_code, to_come.json()["frozen_at"]) == (202, None)
        assert frozen.status_code == 200
        club.scores("b", ("ann", 1))
        assert club.top("b").entries[0].score == "9"
        listed = await served.client.get("/v1/freezes", params={"board": "b"})
        assert listed.json()["freezes"] == [frozen.json()]
        assert (await served.scores()) == {"ann": "10"}  # operators see on
        revealed = [(await post(served, f"{path}reveal", **WHO)).json()["revealed"] for _ in "12"]
        assert revealed == [True, False]


async def test_a_freeze_that_others_hold_up_says_so(club: Club, stand: Stand) -> None:
    club.scores("b", ("ann", 9))
    deleting = club.pipeline.connection()
    deleting.execute("SELECT truerank.set_member_state('ann', 'delete', 'op', 'test')")
    async with stand.serving(operator=True, board_cache_ms=1) as served:
        held_up = await post(served, "/v1/boards/b/seasons/freeze", wait_s=0, **WHO)

        assert (held_up.status_code, held_up.json()["code"]) == (503, "freeze_pending")
        assert "retry-after" in held_up.headers
        deleting.commit()
        club.client.run(freezing.work())
        again = await post(served, "/v1/boards/b/seasons/freeze", **WHO)
        assert again.json()["frozen_at"] is not None


ASKS: dict[str, Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]] = {
    **{
        path: lambda client, path=path: client.post(path, json={"member": "ann", **WHO})  # type: ignore[misc]
        for path in (
            *(f"/v1/members/{w}" for w in ("ban", "unban", "reset", "delete", "merge", "erase")),
            "/v1/boards/b/seasons/freeze",
            "/v1/boards/b/seasons/reveal",
        )
    },
    **{
        path: lambda client, path=path: client.get(path)  # type: ignore[misc]
        for path in ("/v1/members/states?member=ann", "/v1/erasures", "/v1/freezes")
    },
}


async def test_a_server_for_everybody_says_none_of_it(club: Club, stand: Stand) -> None:
    club.does("hide", "ann")
    async with stand.serving() as served:
        for path, ask in ASKS.items():
            answer = await ask(served.client)
            assert (path, answer.status_code) == (path, 403)
            assert answer.json()["code"] == "operators_only"
    assert club.client.member_states("ann")[0].state == "hidden"


async def test_what_is_malformed_is_refused_before_anything_is_said(
    club: Club, stand: Stand
) -> None:
    async with stand.serving(operator=True) as served:
        for body in (
            {"member": "ann", **WHO, "until": "tomorrow"},
            {"member": "ann", **WHO, "until": "2020-01-01T00:00:00Z"},
            {"member": "ann", **WHO, "wait_s": 1000},
            {"member": "", **WHO},
            {"member": "ann", "actor": "op"},
            {"member": "ann", **WHO, "state": "banned"},
        ):
            answer = await post(served, "/v1/members/ban", **body)
            assert (body, answer.status_code) == (body, 422)
        unknown = await post(served, "/v1/members/ban", member="ann", board="none", **WHO)
        assert (unknown.status_code, unknown.json()["code"]) == (404, "board_unknown")
    assert club.client.member_states("ann") == []


async def test_what_a_frozen_season_came_to_is_not_told_before_it_is_revealed(
    club: Club, stand: Stand
) -> None:
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    club.scores("b", ("ann", 9))
    club.client.freeze_season("b", today, **WHO)
    club.scores("b", ("bob", 100))
    club.client.close_season("b", today, now=True, **WHO)
    path = f"/v1/boards/b/settlements?season={today}"
    async with stand.serving(board_cache_ms=1) as served, stand.serving(operator=True) as operator:
        refused = await served.client.get(path)
        told = await operator.client.get(path)

        assert (refused.status_code, refused.json()["code"]) == (409, "not_settled")
        assert told.json()["settlements"][0]["population"] == 2
        club.client.reveal_season("b", today, **WHO)
        (settlement,) = (await served.client.get(path)).json()["settlements"]
        assert settlement["population"] == 2

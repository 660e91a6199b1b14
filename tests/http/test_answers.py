"""Every read, over HTTP, from a real projection."""

from collections.abc import Callable
from typing import Any

import httpx
import msgspec
import pytest

import truerank
from tests.http.conftest import NO_CERTIFICATES, serving
from truerank.model import ScoreEvent
from truerank.settings import Settings

pytestmark = pytest.mark.usefixtures("worker")


@pytest.fixture
def scores(tr: truerank.Truerank, http: httpx.Client) -> httpx.Client:
    """A board of four members, two of them equal, shown by the projection."""
    tr.create_board("points", seasons=("all", "week"))
    tr.create_board("empty")
    scores = {"ann": 30, "bob": 20, "cid": 20, "dan": 10}
    receipts = tr.submit_scores(
        "points",
        [ScoreEvent(event_id=f"e-{m}", member=m, value=value) for m, value in scores.items()],
    )
    assert receipts[0].token is not None
    tr.wait_visible(receipts[0].token, ["points"])
    return http


def test_a_top_list_has_ranks_members_exact_scores_and_its_age(scores: httpx.Client) -> None:
    answer = scores.get("/v1/boards/points/top")

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "private, no-cache"
    page = answer.json()
    head = ["board", "season", "state", "total"]
    assert list(page) == [*head, "entries", "next", "previous", "freshness"]
    assert (page["board"], page["season"], page["total"]) == ("points", "all", 4)
    assert page["entries"] == [
        {"rank": 1, "member": "ann", "score": "30"},
        {"rank": 2, "member": "bob", "score": "20"},
        {"rank": 2, "member": "cid", "score": "20"},
        {"rank": 4, "member": "dan", "score": "10"},
    ]
    freshness = page["freshness"]
    assert set(freshness) - {"partial"} == {
        "source", "epoch", "generation", "tick", "projected_through", "staleness_ms"
    }  # fmt: skip
    assert freshness["source"] == "projection"
    assert freshness["tick"].isdigit()
    assert freshness["projected_through"].endswith("Z")
    assert 0 <= freshness["staleness_ms"] < 20_000


def test_a_slice_begins_where_it_is_asked_to_and_numbers_as_asked(scores: httpx.Client) -> None:
    page = scores.get(
        "/v1/boards/points/top", params={"limit": 2, "offset": 2, "numbering": "ordinal"}
    ).json()

    assert [(e["rank"], e["member"]) for e in page["entries"]] == [(3, "cid"), (4, "dan")]


def test_dense_numbering_of_a_board_that_does_not_keep_it_comes_from_postgresql(
    scores: httpx.Client,
) -> None:
    how: dict[str, str | int] = {"limit": 1, "offset": 3, "numbering": "dense"}

    page = scores.get("/v1/boards/points/top", params=how).json()

    assert page["freshness"]["source"] == "database"
    assert [(e["rank"], e["member"]) for e in page["entries"]] == [(3, "dan")]


def test_the_asking_member_gets_its_place_and_neighbours_in_the_same_answer(
    scores: httpx.Client,
) -> None:
    page = scores.get(
        "/v1/boards/points/top", params={"limit": 1, "member": "cid", "around_limit": 3}
    ).json()

    assert [e["member"] for e in page["entries"]] == ["ann"]
    assert page["place"] == {"rank": 2, "member": "cid", "score": "20"}
    assert [e["member"] for e in page["around"]] == ["bob", "cid", "dan"]


def test_a_member_without_a_place_has_a_null_rank(scores: httpx.Client) -> None:
    place = scores.get("/v1/boards/points/place", params={"member": "eve"})

    assert place.status_code == 200
    assert place.json()["place"] == {"rank": None, "member": "eve", "score": None}
    around = scores.get("/v1/boards/points/around", params={"member": "eve"}).json()
    assert (around["place"]["rank"], around["around"]) == (None, [])
    asked: dict[str, str | int] = {"member": "eve", "percentile": 1}
    assert scores.get("/v1/boards/points/place", params=asked).json()["place"] == {
        "rank": None, "member": "eve", "score": None, "percentile": None
    }  # fmt: skip
    (friend,) = scores.get("/v1/boards/points/places", params=asked | {"among": 1}).json()["places"]
    assert (friend["rank_among"], friend["percentile"]) == (None, None)


def test_why_a_member_has_no_place_is_told_to_operators_alone(
    scores: httpx.Client, tr: truerank.Truerank, settings: Settings
) -> None:
    tr.hide_member("ann", actor="a", reason="r")
    tr.ban_member("bob", board="points", actor="a", reason="r")
    questions = ("place?member={}", "places?member={}", "around?member={}", "top?member={}")

    with (
        serving(msgspec.structs.replace(settings, operator=True)) as url,
        httpx.Client(base_url=url, timeout=20.0, verify=NO_CERTIFICATES) as operators,
    ):
        for question in questions:
            for member, state in (("ann", "hidden"), ("bob", "banned"), ("dan", None)):
                path = f"/v1/boards/points/{question.format(member)}"
                public, own = (each.get(path).json() for each in (scores, operators))
                seen, told = (
                    one["place"] if "place" in one else one["places"][0] for one in (public, own)
                )
                assert told.get("state") == state
                assert seen == {name: told[name] for name in ("rank", "member", "score")}
                assert (seen["rank"] is None) == (state is not None)
    nobody = scores.get("/v1/boards/points/place", params={"member": "eve"}).json()["place"]
    hidden = scores.get("/v1/boards/points/place", params={"member": "ann"}).json()["place"]
    assert nobody | {"member": "ann"} == hidden


def test_many_members_come_in_the_order_asked_repeats_too(scores: httpx.Client) -> None:
    answer = scores.get(
        "/v1/boards/points/places", params={"member": ["dan", "eve", "ann", "dan"]}
    ).json()

    assert [(p["member"], p["rank"]) for p in answer["places"]] == [
        ("dan", 4), ("eve", None), ("ann", 1), ("dan", 4)
    ]  # fmt: skip


def test_a_neighbourhood_has_the_rows_asked_for_at_the_end_too(scores: httpx.Client) -> None:
    answer = scores.get("/v1/boards/points/around", params={"member": "dan", "limit": 3}).json()

    assert [e["member"] for e in answer["around"]] == ["bob", "cid", "dan"]


def test_the_seasons_of_a_board_are_listed_with_their_bounds(
    scores: httpx.Client, until: Callable[[Callable[[], bool]], None]
) -> None:
    def listed() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = scores.get("/v1/boards/points/seasons").json()["seasons"]
        return found

    until(lambda: len(listed()) == 2)
    everything, week = listed()
    assert everything == {
        "season": "all", "period": "all", "starts_at": None, "ends_at": None, "state": "open",
        "closes_at": None, "hold_until": None,
    }  # fmt: skip
    assert week["period"] == "week"
    answer = scores.get("/v1/boards/points/top", params={"season": week["season"]}).json()
    assert (answer["season"], answer["total"]) == (week["season"], 4)
    answer = scores.get("/v1/boards/points/seasons", params={"period": "week"})
    only = answer.json()["seasons"]
    assert answer.json()["freshness"]["source"] == answer.headers["truerank-source"] == "database"
    assert answer.json()["freshness"]["epoch"] == answer.headers["truerank-epoch"]
    known = {"If-None-Match": answer.headers["etag"]}
    assert scores.get(answer.url, headers=known).status_code == 304
    assert only == [week]


def test_boards_are_listed_and_shown(scores: httpx.Client) -> None:
    listed = scores.get("/v1/boards").json()["boards"]

    assert [board["board"] for board in listed] == ["empty", "points"]
    assert scores.get("/v1/boards/points").json() == listed[1]
    assert listed[1]["value_max"] == "9223372036854775807"


def test_an_empty_board_answers_with_nothing_in_it(scores: httpx.Client) -> None:
    page = scores.get("/v1/boards/empty/top", params={"member": "ann"}).json()

    assert (page["total"], page["entries"], page["around"]) == (0, [], [])
    assert page["place"]["rank"] is None
    assert scores.get("/v1/boards/empty/seasons").json()["seasons"] == []
    future = scores.get("/v1/boards/points/top", params={"season": "2199-W01"})
    assert (future.status_code, future.json()["total"]) == (200, 0)


@pytest.mark.parametrize("route", ["", "/top", "/place?member=a", "/places?member=a",
                                   "/around?member=a", "/seasons", "/live"])  # fmt: skip
def test_a_board_that_does_not_exist_is_not_found(scores: httpx.Client, route: str) -> None:
    answer = scores.get(f"/v1/boards/nobody{route}")

    assert answer.status_code == 404
    assert answer.json()["code"] == "board_unknown"
    assert answer.json()["field"] == "board"


def test_a_season_that_the_board_does_not_keep_is_not_found(scores: httpx.Client) -> None:
    answer = scores.get("/v1/boards/points/top", params={"season": "2026-13"})

    assert (answer.status_code, answer.json()["code"]) == (404, "season_unknown")


def test_health_tells_that_the_process_lives_and_can_answer(scores: httpx.Client) -> None:
    assert scores.get("/health/live").json() == {"status": "live"}
    assert scores.get("/health/ready").json() == {"status": "ready", "groups": 64}

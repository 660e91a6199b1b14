"""Questions with many values fit into a body; an address that is too long is told as such."""

import json
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

import truerank
from tests.http.conftest import NO_CERTIFICATES
from tests.http.stand import Stand
from truerank.model import ScoreEvent
from truerank.serve.protocol import ADDRESS_BYTES_MAX

POINTS = "/v1/boards/points"
JSON = {"content-type": "application/json"}


@pytest.fixture
def board(tr: truerank.Truerank, http: httpx.Client) -> httpx.Client:
    """A board of four members; nothing projects it."""
    tr.create_board("points", seasons=("all", "week"))
    scores = {"ann": 30, "bob": 20, "cid": 20, "é\n": 10}
    tr.submit_scores(
        "points",
        [ScoreEvent(event_id=f"e-{m}", member=m, value=value) for m, value in scores.items()],
    )
    return http


def ask(url: httpx.URL, address: str) -> tuple[int, str | None, dict[str, Any]]:
    """Status, type and body; httpx itself takes no address so long."""
    connection = HTTPConnection(url.host, url.port, timeout=20)
    with closing(connection):
        connection.request("GET", address)
        answer = connection.getresponse()
        return answer.status, answer.headers["content-type"], json.loads(answer.read())


def without_freshness(answer: httpx.Response) -> Any:
    assert answer.status_code == 200, answer.text
    return {name: value for name, value in answer.json().items() if name != "freshness"}


@pytest.mark.parametrize(
    ("route", "asked"),
    [
        (
            "places",
            {"member": ["bob", "é\n", "x"], "among": 1, "percentile": True, "names": False},
        ),
        ("places", {"member": ["ann"], "season": "all", "numbering": "ordinal", "wait": None}),
        ("counts", {"score": ["20", 25], "numbering": "competition", "max_age": "1h"}),
        ("histogram", {"edge": [10, "20"], "consistency": "authoritative"}),
    ],
)
def test_what_is_asked_in_a_body_is_answered_as_in_an_address(
    board: httpx.Client, route: str, asked: dict[str, Any]
) -> None:
    asked = {name: value for name, value in asked.items() if value is not None}
    params = {
        name: int(value) if isinstance(value, bool) else value for name, value in asked.items()
    }

    by_body = board.post(f"{POINTS}/{route}", json=asked)
    by_address = board.get(f"{POINTS}/{route}", params=params)

    assert without_freshness(by_body) == without_freshness(by_address)


def test_a_thousand_friends_with_long_ids_fit_into_a_body(board: httpx.Client) -> None:
    members = [f"{i:0>100}" for i in range(999)] + ["ann"]

    address = f"{POINTS}/places?{urlencode({'member': members}, doseq=True)}"
    status, media, told = ask(board.base_url, address)
    in_body = board.post(f"{POINTS}/places", json={"member": members, "among": True})

    assert (status, media, told["code"]) == (414, "application/json", "address_too_long")
    assert "POST" in told["message"]
    places = in_body.json()["places"]
    assert [place["member"] for place in places] == members
    assert (places[-1]["rank"], places[-1]["rank_among"]) == (1, 1)
    more = board.post(f"{POINTS}/places", json={"member": [*members, "bob"]})
    assert (more.status_code, more.json()["field"]) == (422, "member")


@pytest.mark.parametrize(
    ("route", "body", "field"),
    [
        ("places", [], None),
        ("places", None, None),
        ("places", {}, "member"),
        ("places", {"member": []}, "member"),
        ("places", {"member": "ann"}, "member"),
        ("places", {"member": [1]}, "member"),
        ("places", {"member": ["ann", None]}, "member"),
        ("places", {"member": ["a\0"]}, "member"),
        ("places", {"member": ["ann"], "score": ["1"]}, "score"),
        ("places", {"member": ["ann"], "season": {}}, "season"),
        ("places", {"member": ["ann"], "season": ""}, "season"),
        ("places", {"member": ["ann"], "among": 2}, "among"),
        ("counts", {"score": [True]}, "score"),
        ("counts", {"score": [1.5]}, "score"),
        ("counts", {"score": [1], "ties": [1]}, "ties"),
        ("histogram", {"edge": [2, 1]}, "edge"),
    ],
)
def test_a_body_that_makes_no_sense_is_refused(
    board: httpx.Client, route: str, body: Any, field: str | None
) -> None:
    answer = board.post(f"{POINTS}/{route}", content=json.dumps(body), headers=JSON)

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input"), answer.text
    assert answer.json()["field"] == field


def test_a_question_stands_in_the_body_alone_and_as_json(board: httpx.Client) -> None:
    both = board.post(f"{POINTS}/places?member=ann", json={"member": ["ann"]})
    form = board.post(f"{POINTS}/places", data={"member": "ann"})

    assert (both.status_code, both.json()["code"]) == (422, "invalid_input")
    assert (form.status_code, form.json()["code"]) == (415, "media_type_unsupported")


def test_what_an_address_takes_is_told_whichever_way_it_is_asked(board: httpx.Client) -> None:
    answers = [board.put(f"{POINTS}/counts"), board.put(f"{POINTS}/top"), board.put("/v1/boards")]

    assert [answer.status_code for answer in answers] == [405] * 3
    told = [answer.headers["allow"] for answer in answers]
    assert told == ["GET, HEAD, POST", "GET, HEAD", "GET, HEAD, POST"]


async def test_a_page_that_was_asked_for_in_a_body_is_held_and_answers_no_address(
    stand: Stand,
) -> None:
    async with stand.serving() as served:
        path, asked = "/v1/boards/b/counts", {"score": ["10"]}
        first = await served.client.post(path, json=asked)
        tagged = {"if-none-match": first.headers["etag"]}
        again = await served.client.post(path, json=asked, headers=tagged)
        other = await served.client.post(path, json={"score": ["11"]})
        address = await served.client.get(path)

    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json()["counts"] == first.json()["counts"]
    assert other.json()["counts"] != first.json()["counts"]
    assert (address.status_code, address.json()["field"]) == (422, "score")


@pytest.mark.parametrize(
    ("beyond", "status"), [(0, 422), (1, 414), (100_000, 414)], ids=["at most", "longer", "far"]
)
def test_an_address_has_a_longest_length(http: httpx.Client, beyond: int, status: int) -> None:
    head = "/v1/boards?x="
    path = head + "x" * (ADDRESS_BYTES_MAX - len(head) + beyond)

    told_status, _, told = ask(http.base_url, path)

    assert told_status == status
    assert set(told) == {"code", "message", "field"}


def test_what_is_no_http_is_refused_in_the_one_error_shape(served: str) -> None:
    with httpx.Client(base_url=served, verify=NO_CERTIFICATES) as client:
        request = client.build_request("GET", "/")
        request.method = "NOSUCH"  # the parser knows its methods
        refused = client.send(request)

    assert (refused.status_code, refused.json()["code"]) == (400, "request_malformed")

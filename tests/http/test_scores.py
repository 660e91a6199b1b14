"""Scores over HTTP: what is taken, what each caller is told, and what is refused."""

import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import psycopg
import pytest

import truerank
from tests.faults.pooler import caller_options
from tests.http.conftest import NO_CERTIFICATES, serving
from tests.projection.pipeline import wait_until
from truerank.embedded import Engines
from truerank.settings import Settings


@dataclass
class Board:
    """A board of a test's own, on the server that all tests of this file share."""

    key: str
    client: httpx.Client
    database: psycopg.Connection[Any]

    def post(self, body: str | bytes, **headers: str) -> httpx.Response:
        """Send a body as it is, so that no client library mends it."""
        return self.client.post(
            f"/v1/boards/{self.key}/scores",
            content=body.encode(errors="surrogatepass") if isinstance(body, str) else body,
            headers={"content-type": "application/json"} | headers,
        )

    def post_json(self, body: object) -> httpx.Response:
        """Send what a client library makes of a value."""
        return self.client.post(f"/v1/boards/{self.key}/scores", json=body)

    def stored(self) -> int:
        """How many events the board has."""
        row = self.database.execute(
            "SELECT count(*) FROM truerank.event AS e JOIN truerank.board AS b ON b.id = e.board_id"
            " WHERE b.key = %s",
            (self.key,),
        ).fetchone()
        assert row is not None
        return int(row[0])


@pytest.fixture(scope="module")
def shared_settings(shared_database_url: str, engines: Engines) -> Settings:
    """No test of this file but those with a database of their own reads a projection."""
    return Settings(database_url=shared_database_url, redis_url=engines.redis_url, prefix="scores")


@pytest.fixture(scope="module")
def shared_http(shared_settings: Settings) -> Iterator[httpx.Client]:
    with (
        serving(shared_settings) as url,
        httpx.Client(base_url=url, timeout=20.0, verify=NO_CERTIFICATES) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def shared_database(shared_database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(shared_database_url, autocommit=True, **caller_options()) as conn:
        yield conn


@pytest.fixture(scope="module")
def shared_tr(shared_settings: Settings) -> Iterator[truerank.Truerank]:
    with truerank.Truerank(shared_settings) as client:
        yield client


@pytest.fixture
def make_board(
    shared_tr: truerank.Truerank,
    shared_http: httpx.Client,
    shared_database: psycopg.Connection[Any],
    numbers: Iterator[int],
) -> Callable[..., Board]:
    """A function that makes a board of these settings, under a key of its own."""

    def make(**settings: Any) -> Board:
        key = f"points-{next(numbers)}"
        shared_tr.create_board(key, **{"seasons": ("all", "month"), **settings})
        return Board(key, shared_http, shared_database)

    return make


@pytest.fixture
def board(make_board: Callable[..., Board]) -> Board:
    return make_board()


def one(**fields: Any) -> str:
    return json.dumps({"event_id": "e1", "member": "ann", "value": 1} | fields)


def test_one_event_is_answered_with_its_score_version_and_token(board: Board) -> None:
    answer = board.post_json({
            "event_id": "e1", "member": "ann", "value": 5,
            "occurred_at": "2026-11-03T10:00:00Z", "metadata": {"from": "a test"},
        },
    )  # fmt: skip

    assert answer.status_code == 200
    receipt = answer.json()
    assert (receipt["event_id"], receipt["outcome"]) == ("e1", "applied")
    assert [(s["season"], s["score"]) for s in receipt["standings"]] == [
        ("all", "5"), ("2026-11", "5")
    ]  # fmt: skip
    assert all(s["version"].isdigit() for s in receipt["standings"])
    assert receipt["token"]


def test_the_same_event_again_is_a_duplicate_with_the_first_token(board: Board) -> None:
    first = board.post(one()).json()

    second = board.post(one())

    assert second.status_code == 200
    assert second.json() == first | {"outcome": "duplicate"}


@pytest.mark.parametrize(
    ("again", "status", "outcome"),
    [
        (r'{"value": 5, "member": "\u00e9", "event_id": "e1"}', 200, "duplicate"),
        ('{ "event_id" : "e1",\n"member":\t"é", "value":5 }', 200, "duplicate"),
        ('{"event_id": "e1", "member": "é", "value": "5"}', 200, "duplicate"),
        ('{"event_id": "e1", "member": "é", "value": "5.0"}', 200, "duplicate"),
        ('{"event_id": "e1", "member": "é", "value": 5.0}', 422, None),
        ('{"event_id": "e1", "member": "é", "value": 5, "delta": 1}', 422, None),
    ],
)
def test_the_same_content_in_another_spelling_is_a_duplicate(
    board: Board, again: str, status: int, outcome: str | None
) -> None:
    first = board.post('{"event_id": "e1", "member": "é", "value": 5}').json()

    answer = board.post(again)

    assert answer.status_code == status, answer.text
    if outcome:
        assert answer.json() == first | {"outcome": outcome}
    assert board.stored() == 1


def test_a_reply_that_was_lost_can_be_asked_for_again(board: Board) -> None:
    url = board.client.base_url
    body = one(value=5).encode()
    with socket.create_connection((url.host, url.port or 80)) as raw:
        raw.sendall(
            f"POST /v1/boards/{board.key}/scores HTTP/1.1\r\nHost: {url.host}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        wait_until(board.stored, "the event is stored")

    answers = [board.post(one(value=5)) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    receipt = answers[0].json()
    assert (receipt["outcome"], receipt["standings"][0]["score"]) == ("duplicate", "5")
    row = board.database.execute(
        "SELECT xid::text FROM truerank.event AS e JOIN truerank.board AS b ON b.id = e.board_id"
        " WHERE b.key = %s", (board.key,),
    ).fetchone()  # fmt: skip
    assert row is not None
    assert receipt["token"].startswith(f"{row[0]}.")


def test_the_operator_guard_refuses_a_board_with_another_operator(board: Board) -> None:
    refused = board.post(one(expected_operator="best"))
    unknown = board.post(one(expected_operator="max"))

    assert (refused.status_code, refused.json()["code"]) == (422, "operator_mismatch")
    assert (unknown.status_code, unknown.json()["field"]) == (422, "expected_operator")
    assert board.post(one(expected_operator="sum")).status_code == 200


def test_the_same_id_for_another_command_is_a_conflict(board: Board) -> None:
    board.post(one())

    answer = board.post(one(value=2))

    assert answer.status_code == 409
    assert answer.json()["code"] == "event_conflict"
    assert (answer.json()["field"], answer.json()["event_id"]) == ("event_id", "e1")


def test_what_the_rules_of_a_board_refuse_is_told_with_its_code(board: Board) -> None:
    answer = board.post(one(occurred_at="2199-01-01T00:00:00Z"))

    assert answer.status_code == 422
    assert answer.json() | {"message": ""} == {
        "code": "occurred_at_in_future", "message": "", "field": "occurred_at", "event_id": "e1"
    }  # fmt: skip


def test_the_season_guard_refuses_an_event_of_another_season(board: Board) -> None:
    told = {"occurred_at": "2026-11-03T10:00:00Z", "expected_season": "2026-10"}

    answer = board.post(one(**told))

    assert answer.status_code == 422
    assert board.post(one(**told | {"expected_season": "2026-11"})).status_code == 200


def test_many_events_get_an_outcome_each_in_their_order(board: Board) -> None:
    board.post(one())

    answer = board.post_json(
        {
            "events": [
                {"event_id": "e3", "member": "bob", "value": 3},
                {"event_id": "e1", "member": "ann", "value": 9},
                {"event_id": "e1", "member": "ann", "value": 1},
                {"event_id": "", "member": "ann", "value": 1},
            ]
        },
    )

    assert answer.status_code == 200
    results = answer.json()["results"]
    assert [(r["event_id"], r["outcome"], r.get("code")) for r in results] == [
        ("e3", "applied", None),
        ("e1", "conflict", None),
        ("e1", "duplicate", None),
        ("", "refused", "event_id_invalid"),
    ]


def test_an_unknown_board_is_not_found_for_one_and_for_many(shared_http: httpx.Client) -> None:
    event = {"event_id": "e1", "member": "ann", "value": 1}

    for body in (event, {"events": [event, event]}):
        answer = shared_http.post("/v1/boards/unknown/scores", json=body)
        assert (answer.status_code, answer.json()["code"]) == (404, "board_unknown")


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("9007199254740993", "9007199254740993"),
        ('"9007199254740993"', "9007199254740993"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("-0", "0"),
        ('"-0"', "0"),
        ('"0010"', "10"),
    ],
)
def test_integers_of_any_size_are_read_exactly(board: Board, text: str, score: str) -> None:
    answer = board.post('{"event_id": "e1", "member": "ann", "value": %s}' % text)  # noqa: UP031

    assert answer.status_code == 200, answer.text
    assert answer.json()["standings"][0]["score"] == score


def test_decimals_come_as_text_and_stay_exact(make_board: Callable[..., Board]) -> None:
    board = make_board(decimals=3)
    board.post(one(event_id="e1", value="0.1"))

    answer = board.post(one(event_id="e2", value="0.2"))

    assert answer.json()["standings"][0]["score"] == "0.300"
    too_fine = board.post(one(event_id="e9", value="2.8569999999999998"))
    assert (too_fine.status_code, too_fine.json()["code"]) == (422, "value_too_precise")


@pytest.mark.parametrize(
    "text",
    [
        "true", '""', "null", "[]", "{}", "1.5", "46.0", "1e3", '"1e3"', '"0x10"', '"NaN"', '"+5"',
        '" 5"', '"five"', '"' + "9" * 60 + '"', "9" * 60,
    ],
)  # fmt: skip
def test_what_is_no_exact_number_is_refused_and_nothing_is_stored(board: Board, text: str) -> None:
    answer = board.post('{"event_id": "e1", "member": "ann", "value": %s}' % text)  # noqa: UP031

    assert (answer.status_code, answer.json()["field"]) == (422, "value"), answer.text
    assert board.stored() == 0


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e400", "9" * 5000])
def test_what_is_no_json_number_makes_the_body_malformed(board: Board, text: str) -> None:
    answer = board.post('{"event_id": "e1", "member": "ann", "value": %s}' % text)  # noqa: UP031

    assert (answer.status_code, answer.json()["code"]) == (400, "json_malformed")


@pytest.mark.parametrize(
    "text", ["2026-06-30T23:59:59Z", "2026-07-01T01:59:59+02:00", "2026-06-30t23:59:59.000z",
             "2026-06-30T23:59:59.999999999Z"],
)  # fmt: skip
def test_spellings_of_an_instant_in_june_fall_into_june(board: Board, text: str) -> None:
    answer = board.post(one(occurred_at=text))

    assert answer.json()["standings"][1]["season"] == "2026-06"


@pytest.mark.parametrize(
    "value",
    [
        "2026-06-30T23:59:60Z", "2026-06-30T23:59:59", "2026-06-31T00:00:00Z", "2026-06-30", "",
        "2026-06-30T24:00:00Z", "2026-06-30T23:59Z", "1782863999", 1782863999, 1782863999.5, True,
        "0000-01-01T00:00:00Z", "infinity", "now",
        "\u0662026-06-30T23:59:59Z",
    ],
)  # fmt: skip
def test_what_is_no_instant_with_an_offset_is_refused(board: Board, value: object) -> None:
    answer = board.post(one(occurred_at=value))

    assert (answer.status_code, answer.json()["field"]) == (422, "occurred_at"), answer.text
    assert board.stored() == 0


@pytest.mark.parametrize("bad", [r"ab\u0000c", r"a\ud800", r"\udc00b"])
@pytest.mark.parametrize("field", ["event_id", "member", "metadata", "expected_season"])
def test_nul_and_half_a_surrogate_pair_are_refused_by_field(
    board: Board, field: str, bad: str
) -> None:
    body = one(**{field: "REPLACED"}).replace("REPLACED", bad)

    answer = board.post(body)

    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text
    assert board.stored() == 0


@pytest.mark.parametrize("metadata", [r'{"a\u0000": 1}', r'{"a": ["x", {"b": "\ud800"}]}'])
def test_metadata_is_looked_through(board: Board, metadata: str) -> None:
    body = one(metadata="REPLACED").replace('"REPLACED"', metadata)

    assert board.post(body).json()["field"] == "metadata"


def test_a_whole_surrogate_pair_comes_back_as_the_character_it_is(board: Board) -> None:
    answer = board.post(one(event_id="REPLACED").replace("REPLACED", r"\ud83d\ude00"))

    assert (answer.status_code, answer.json()["event_id"]) == (200, "\U0001f600")


@pytest.mark.parametrize("member", [7, 0, True, None, ["a"], {"id": "a"}])
def test_a_member_that_is_no_text_is_refused(board: Board, member: object) -> None:
    answer = board.post(one(member=member))

    assert (answer.status_code, answer.json()["field"]) == (422, "member")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"event_id": "e", "value": 1}, "member"),
        ({"event_id": "e", "member": "a", "value": 1, "delta": 1}, "delta"),
        ({"event_id": "e", "member": "a", "value": 1, "ties": [1.5]}, "ties[0]"),
        ({"event_id": "e", "member": "a", "value": 1, "ties": [2**63]}, "ties"),
        ({"event_id": "e", "member": "a", "value": 1, "expected_season": 5}, "expected_season"),
        ({"events": []}, "events"),
        ({"events": {}}, "events"),
        ({"events": [{"event_id": "e", "member": "a", "value": 1}, 5]}, "events[1]"),
        ({"events": [{"event_id": "e", "member": 5, "value": 1}]}, "events[0].member"),
        ({"events": [{"event_id": "e", "member": "a", "value": None}]}, "events[0].value"),
        ({"events": [{"event_id": "e", "member": "a"}]}, "events[0].value"),
        ({"events": [], "more": 1}, "more"),
        ([], None),
        (5, None),
        ("text", None),
    ],
)
def test_a_body_of_another_shape_is_refused_by_field(
    board: Board, body: object, field: str | None
) -> None:
    answer = board.post_json(body)

    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text
    assert answer.json()["code"] == "invalid_input"


def test_one_malformed_event_refuses_the_whole_list(board: Board) -> None:
    good = {"event_id": "e1", "member": "ann", "value": 1}

    answer = board.post_json({"events": [good, good | {"member": "a\0b"}]})

    assert (answer.status_code, answer.json()["field"]) == (422, "events[1].member")
    assert board.stored() == 0


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"event_id":"e","member":"a","value":1,"value":1000}', 400),
        (b'{"event_id":"e","member":"a","value":1,"metadata":{"a":1,"a":2}}', 400),
        (b"[" * 100_000, 400),
        (b"", 400),
        (b"{", 400),
        (b'{"event_id":"e","member":"\xff","value":1}', 400),
        ('{"event_id":"e","member":"a","value":1}'.encode("utf-16"), 400),
        (b'\xef\xbb\xbf{"event_id":"e","member":"a","value":1}', 400),
        (b'{"event_id":"e","member":"a","value":1} {}', 400),
        (b'{"event_id":"e","member":"a","value":01}', 400),
        (b'{"event_id":"e","member":"a","value":1,"metadata":' + b"[" * 50 + b"]" * 50 + b"}", 422),
        (b'{"event_id":"e","member":"a","value":1,"metadata":"' + b"x" * 2000 + b'"}', 422),
        (b" " * 1_048_577, 413),
        (b" " * 10_000_000, 413),
    ],
)
def test_a_body_that_is_not_one_clear_meaning_is_refused(
    board: Board, body: bytes, status: int
) -> None:
    answer = board.post(body)

    assert answer.status_code == status, answer.text
    assert set(answer.json()) >= {"code", "message", "field"}
    assert board.stored() == 0


def test_more_than_a_thousand_events_are_refused(board: Board) -> None:
    events = [{"event_id": f"e{i}", "member": "a", "value": 1} for i in range(1001)]

    answer = board.post_json({"events": events})

    assert (answer.status_code, answer.json()["field"]) == (422, "events")
    assert board.stored() == 0
    assert board.post_json({"events": events[:1000]}).status_code == 200


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_that_a_form_could_send_is_refused(board: Board, media: str) -> None:
    answer = board.post(one(), **{"content-type": media})

    assert (answer.status_code, answer.json()["code"]) == (415, "media_type_unsupported")


ODD_MEMBERS = [
    "1234/5678", "a%2Fb", "a b", "a?b", "a#b", "..", ".", "openid:main:1", "a&member=b", "a+b",
    "007", "7", "7.0", "1e3", "0x10", "-0", "null", "true", "None", "NaN", "<b>x</b>",
    "é", "e\u0301",
]  # fmt: skip


@pytest.mark.usefixtures("worker")
def test_every_id_that_can_be_stored_can_be_asked_for(
    tr: truerank.Truerank, http: httpx.Client
) -> None:
    tr.create_board("points", seasons=("all", "month"))
    events = [
        {"event_id": f"e-{member}", "member": member, "value": at}
        for at, member in enumerate(ODD_MEMBERS)
    ]
    results = http.post("/v1/boards/points/scores", json={"events": events}).json()["results"]
    tr.wait_visible(results[0]["token"], ["points"])

    for at, member in enumerate(ODD_MEMBERS):
        answer = http.get("/v1/boards/points/place", params={"member": member}).json()
        assert answer["place"] == {
            "rank": len(ODD_MEMBERS) - at, "member": member, "score": str(at)
        }  # fmt: skip
    page = http.get("/v1/boards/points/top", params={"limit": 100}).json()
    assert [e["member"] for e in page["entries"]] == ODD_MEMBERS[::-1]

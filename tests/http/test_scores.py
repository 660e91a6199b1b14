"""Scores over HTTP: what is taken, what each caller is told, and what is refused."""

import json
from typing import Any

import httpx
import psycopg
import pytest

import truerank

SCORES = "/v1/boards/points/scores"


@pytest.fixture
def board(tr: truerank.Truerank, http: httpx.Client) -> httpx.Client:
    tr.create_board("points", seasons=("all", "month"))
    return http


def post(client: httpx.Client, body: str | bytes, **headers: str) -> httpx.Response:
    """Send a body as it is, so that no client library mends it."""
    return client.post(
        SCORES,
        content=body.encode(errors="surrogatepass") if isinstance(body, str) else body,
        headers={"content-type": "application/json"} | headers,
    )


def stored(database_url: str) -> int:
    with psycopg.connect(database_url) as conn:
        row = conn.execute("SELECT count(*) FROM truerank.event").fetchone()
    assert row is not None
    return int(row[0])


def one(**fields: Any) -> str:
    return json.dumps({"event_id": "e1", "member": "ann", "value": 1} | fields)


def test_one_event_is_answered_with_its_score_version_and_token(board: httpx.Client) -> None:
    answer = board.post(
        SCORES,
        json={
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


def test_the_same_event_again_is_a_duplicate_with_the_first_token(board: httpx.Client) -> None:
    first = post(board, one()).json()

    second = post(board, one())

    assert second.status_code == 200
    assert second.json() == first | {"outcome": "duplicate"}


def test_the_same_id_for_another_command_is_a_conflict(board: httpx.Client) -> None:
    post(board, one())

    answer = post(board, one(value=2))

    assert answer.status_code == 409
    assert answer.json()["code"] == "event_conflict"
    assert (answer.json()["field"], answer.json()["event_id"]) == ("event_id", "e1")


def test_what_the_rules_of_a_board_refuse_is_told_with_its_code(board: httpx.Client) -> None:
    answer = post(board, one(occurred_at="2199-01-01T00:00:00Z"))

    assert answer.status_code == 422
    assert answer.json() | {"message": ""} == {
        "code": "occurred_at_in_future", "message": "", "field": "occurred_at", "event_id": "e1"
    }  # fmt: skip


def test_the_season_guard_refuses_an_event_of_another_season(board: httpx.Client) -> None:
    told = {"occurred_at": "2026-11-03T10:00:00Z", "expected_season": "2026-10"}

    answer = post(board, one(**told))

    assert answer.status_code == 422
    assert post(board, one(**told | {"expected_season": "2026-11"})).status_code == 200


def test_many_events_get_an_outcome_each_in_their_order(board: httpx.Client) -> None:
    post(board, one())

    answer = board.post(
        SCORES,
        json={
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


def test_an_unknown_board_is_not_found_for_one_and_for_many(http: httpx.Client) -> None:
    event = {"event_id": "e1", "member": "ann", "value": 1}

    for body in (event, {"events": [event, event]}):
        answer = http.post(SCORES, json=body)
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
def test_integers_of_any_size_are_read_exactly(board: httpx.Client, text: str, score: str) -> None:
    answer = post(board, '{"event_id": "e1", "member": "ann", "value": %s}' % text)  # noqa: UP031

    assert answer.status_code == 200, answer.text
    assert answer.json()["standings"][0]["score"] == score


def test_decimals_come_as_text_and_stay_exact(http: httpx.Client, tr: truerank.Truerank) -> None:
    tr.create_board("points", decimals=3)
    post(http, one(event_id="e1", value="0.1"))

    answer = post(http, one(event_id="e2", value="0.2"))

    assert answer.json()["standings"][0]["score"] == "0.300"
    too_fine = post(http, one(event_id="e9", value="2.8569999999999998"))
    assert (too_fine.status_code, too_fine.json()["code"]) == (422, "value_too_precise")


@pytest.mark.parametrize(
    "text",
    [
        "true", '""', "null", "[]", "{}", "1.5", "46.0", "1e3", '"1e3"', '"0x10"', '"NaN"', '"+5"',
        '" 5"', '"five"', '"' + "9" * 60 + '"', "9" * 60,
    ],
)  # fmt: skip
def test_what_is_no_exact_number_is_refused_and_nothing_is_stored(
    board: httpx.Client, database_url: str, text: str
) -> None:
    answer = post(board, '{"event_id": "e1", "member": "ann", "value": %s}' % text)  # noqa: UP031

    assert (answer.status_code, answer.json()["field"]) == (422, "value"), answer.text
    assert stored(database_url) == 0


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e400", "9" * 5000])
def test_what_is_no_json_number_makes_the_body_malformed(board: httpx.Client, text: str) -> None:
    answer = post(board, '{"event_id": "e1", "member": "ann", "value": %s}' % text)  # noqa: UP031

    assert (answer.status_code, answer.json()["code"]) == (400, "json_malformed")


@pytest.mark.parametrize(
    "text", ["2026-06-30T23:59:59Z", "2026-07-01T01:59:59+02:00", "2026-06-30t23:59:59.000z",
             "2026-06-30T23:59:59.999999999Z"],
)  # fmt: skip
def test_spellings_of_an_instant_in_june_fall_into_june(board: httpx.Client, text: str) -> None:
    answer = post(board, one(occurred_at=text))

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
def test_what_is_no_instant_with_an_offset_is_refused(
    board: httpx.Client, database_url: str, value: object
) -> None:
    answer = post(board, one(occurred_at=value))

    assert (answer.status_code, answer.json()["field"]) == (422, "occurred_at"), answer.text
    assert stored(database_url) == 0


@pytest.mark.parametrize("bad", [r"ab\u0000c", r"a\ud800", r"\udc00b"])
@pytest.mark.parametrize("field", ["event_id", "member", "metadata", "expected_season"])
def test_nul_and_half_a_surrogate_pair_are_refused_by_field(
    board: httpx.Client, database_url: str, field: str, bad: str
) -> None:
    body = one(**{field: "REPLACED"}).replace("REPLACED", bad)

    answer = post(board, body)

    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text
    assert stored(database_url) == 0


@pytest.mark.parametrize("metadata", [r'{"a\u0000": 1}', r'{"a": ["x", {"b": "\ud800"}]}'])
def test_metadata_is_looked_through(board: httpx.Client, metadata: str) -> None:
    body = one(metadata="REPLACED").replace('"REPLACED"', metadata)

    assert post(board, body).json()["field"] == "metadata"


def test_a_whole_surrogate_pair_comes_back_as_the_character_it_is(board: httpx.Client) -> None:
    answer = post(board, one(event_id="REPLACED").replace("REPLACED", r"\ud83d\ude00"))

    assert (answer.status_code, answer.json()["event_id"]) == (200, "\U0001f600")


@pytest.mark.parametrize("member", [7, 0, True, None, ["a"], {"id": "a"}])
def test_a_member_that_is_no_text_is_refused(board: httpx.Client, member: object) -> None:
    answer = post(board, one(member=member))

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
    board: httpx.Client, body: object, field: str | None
) -> None:
    answer = board.post(SCORES, json=body)

    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text
    assert answer.json()["code"] == "invalid_input"


def test_one_malformed_event_refuses_the_whole_list(board: httpx.Client, database_url: str) -> None:
    good = {"event_id": "e1", "member": "ann", "value": 1}

    answer = board.post(SCORES, json={"events": [good, good | {"member": "a\0b"}]})

    assert (answer.status_code, answer.json()["field"]) == (422, "events[1].member")
    assert stored(database_url) == 0


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
    board: httpx.Client, database_url: str, body: bytes, status: int
) -> None:
    answer = post(board, body)

    assert answer.status_code == status, answer.text
    assert set(answer.json()) >= {"code", "message", "field"}
    assert stored(database_url) == 0


def test_more_than_a_thousand_events_are_refused(board: httpx.Client, database_url: str) -> None:
    events = [{"event_id": f"e{i}", "member": "a", "value": 1} for i in range(1001)]

    answer = board.post(SCORES, json={"events": events})

    assert (answer.status_code, answer.json()["field"]) == (422, "events")
    assert stored(database_url) == 0
    assert board.post(SCORES, json={"events": events[:1000]}).status_code == 200


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_that_a_form_could_send_is_refused(board: httpx.Client, media: str) -> None:
    answer = post(board, one(), **{"content-type": media})

    assert (answer.status_code, answer.json()["code"]) == (415, "media_type_unsupported")


ODD_MEMBERS = [
    "1234/5678", "a%2Fb", "a b", "a?b", "a#b", "..", ".", "openid:main:1", "a&member=b", "a+b",
    "007", "7", "7.0", "1e3", "0x10", "-0", "null", "true", "None", "NaN", "<b>x</b>",
    "é", "e\u0301",
]  # fmt: skip


@pytest.mark.usefixtures("worker")
def test_every_id_that_can_be_stored_can_be_asked_for(
    tr: truerank.Truerank, board: httpx.Client
) -> None:
    events = [
        {"event_id": f"e-{member}", "member": member, "value": at}
        for at, member in enumerate(ODD_MEMBERS)
    ]
    results = board.post(SCORES, json={"events": events}).json()["results"]
    tr.wait_visible(results[0]["token"], ["points"])

    for at, member in enumerate(ODD_MEMBERS):
        answer = board.get("/v1/boards/points/member", params={"member": member}).json()
        assert answer["place"] == {
            "rank": len(ODD_MEMBERS) - at, "member": member, "score": str(at)
        }  # fmt: skip
    page = board.get("/v1/boards/points/top", params={"limit": 100}).json()
    assert [e["member"] for e in page["entries"]] == ODD_MEMBERS[::-1]

"""Closing, settlements and awards over HTTP: as in Python, and for operators alone."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.http.conftest import NO_CERTIFICATES, serving
from tests.settle.conftest import Connection, Months
from truerank.settings import Settings

BY = {"actor": "ann", "reason": "a test"}
JUNE = {"season": "2024-06"}
CLOSE, REOPEN, REVISE = (f"/v1/boards/b/seasons/{what}" for what in ("close", "reopen", "revise"))
RULES, DROP = "/v1/boards/b/award-rules", "/v1/boards/b/award-rules/drop"
SETTLEMENTS = "/v1/boards/b/settlements"


def client_of(settings: Settings) -> Iterator[httpx.Client]:
    with (
        serving(settings) as url,
        httpx.Client(base_url=url, timeout=20.0, verify=NO_CERTIFICATES) as client,
    ):
        yield client


@pytest.fixture
def http(database_url: str, redis_url: str) -> Iterator[httpx.Client]:
    """A server for operators."""
    yield from client_of(
        Settings(
            database_url=database_url, redis_url=redis_url, live_checks_percent=0, operator=True
        )
    )


@pytest.fixture
def public(database_url: str, redis_url: str) -> Iterator[httpx.Client]:
    """A server for everybody."""
    yield from client_of(
        Settings(database_url=database_url, redis_url=redis_url, live_checks_percent=0)
    )


def ok(response: httpx.Response, status: int = 200) -> Any:
    assert response.status_code == status, response.text
    return response.json()


def refused(response: httpx.Response) -> tuple[int, str, str | None]:
    body = response.json()
    return response.status_code, body["code"], body["field"]


def test_a_season_is_closed_paid_out_and_revised_over_http(
    months: Months, http: httpx.Client
) -> None:
    rule = {"period": "month", "name": "medal", "ranks": [1, 2], **BY}
    made = [ok(http.post(RULES, json=rule), status)["made"] for status in (201, 200)]
    months.submit(*((f"e{m}", m, v) for m, v in zip("ABCD", (9, 8, 8, 1), strict=True)))
    months.rules(hold="1 day")

    sealed = ok(http.post(CLOSE, json={**JUNE, "actor": "ann"}))
    held = http.get("/v1/awards", params={"board": "b", **JUNE})
    reopened = ok(http.post(REOPEN, json={**JUNE, **BY}))
    months.rules(hold="0 s")
    closed = ok(http.post(CLOSE, json={**JUNE, "actor": "ann"}))

    assert made == [True, False]
    assert (sealed["season"]["state"], sealed["settlements"]) == ("sealed", [])
    assert refused(held) == (409, "not_settled", None)
    assert held.json()["ready_at"] == sealed["season"]["hold_until"]
    assert 80_000 < int(held.headers["retry-after"]) <= 86_400
    assert reopened == {"board": "b", "season": "2024-06", "reopened": True}
    assert closed["season"]["state"] == "final"
    assert [(each["actor"], each["population"]) for each in closed["settlements"]] == [("ann", 4)]
    late = {"event_id": "late", "member": "A", "value": 1, "occurred_at": "2024-06-15T00:00:00Z"}
    assert refused(http.post("/v1/boards/b/scores", json=late))[:2] == (409, "season_final")

    first = ok(http.get("/v1/awards", params={"board": "b", **JUNE, "limit": 2}))
    rest = ok(http.get("/v1/awards", params={"after": first["after"]}))
    awards = first["awards"] + rest["awards"]
    assert [(each["member"], each["rank"], each["state"]) for each in awards] == [
        ("A", 1, "given"), ("B", 2, "given"), ("C", 2, "given"),
    ]  # fmt: skip
    changes = [each["change"] for each in awards]
    paid = ok(http.post("/v1/awards/acknowledge", json={"changes": changes, "actor": "payroll"}))
    assert paid == {"acknowledged": 3}

    revised = ok(http.post(REVISE, json={**JUNE, **BY, "void": ["eA"]}))
    opened = ok(http.get("/v1/awards", params={"unacknowledged": "1"}))["awards"]
    assert [(e["season"], e["revision"], e["changed"]) for e in revised["revised"]] == [
        ("2024-06", 2, 4)
    ]
    assert {(e["member"], e["state"], e["acknowledged_state"]) for e in opened} == {
        ("A", "withdrawn", "given"), ("B", "given", "given"), ("C", "given", "given"),
    }  # fmt: skip

    slices = [ok(http.get(f"{SETTLEMENTS}/changes", params={**JUNE, "limit": 3}))]
    slices.append(
        ok(http.get(f"{SETTLEMENTS}/changes", params={**JUNE, "cursor": slices[0]["next"]}))
    )
    assert [each["member"] for part in slices for each in part["changes"]] == ["B", "C", "D", "A"]
    assert {(part["since"], part["revision"]) for part in slices} == {(1, 2)}
    places = ok(http.get(f"{SETTLEMENTS}/places", params={**JUNE, "revision": 1, "limit": 2}))
    assert [each["member"] for each in places["places"]] == ["A", "B"]
    assert (places["revision"], places["population"]) == (1, 4)
    excluded = ok(http.get(f"{SETTLEMENTS}/excluded", params=JUNE))
    assert (excluded["revision"], excluded["excluded"], excluded["next"]) == (2, [], None)
    assert len(ok(http.get(SETTLEMENTS, params=JUNE))["settlements"]) == 2
    assert [each["name"] for each in ok(http.get(RULES))["rules"]] == ["medal"]
    ok(http.post(DROP, json={"period": "month", "name": "medal", **BY}))
    assert ok(http.get(RULES))["rules"] == []
    assert ok(http.post("/v1/seasons/close-due", json={"actor": "ann"})) == {"closed": []}


def test_a_season_and_its_settlements_fit_whoever_closed_it(
    months: Months, public: httpx.Client
) -> None:
    months.submit(("e1", "A", 5))
    ok(public.get("/v1/boards/b/top", params=JUNE))
    before = ok(public.get(SETTLEMENTS, params=JUNE))

    months.close()
    final = ok(public.get(SETTLEMENTS, params=JUNE))
    months.tr.revise_season("b", "2024-06", void=["e1"], actor="ann", reason="a bot")
    revised = ok(public.get(SETTLEMENTS, params=JUNE))

    assert (before["season"]["state"], before["settlements"]) == ("open", [])
    for answer, revision in ((final, 1), (revised, 2)):
        assert (answer["season"]["state"], answer["season"]["revision"]) == ("final", revision)
        assert answer["settlements"][0]["revision"] == revision
        assert answer["season"]["settled_at"] == answer["settlements"][0]["settled_at"]


def test_what_makes_no_sense_is_refused_with_the_name_of_it(
    months: Months, http: httpx.Client, conn: Connection
) -> None:
    months.submit(("e1", "A", 5))
    now = f"{conn.execute('SELECT now()').fetchall()[0][0]:%Y-%m}"
    assert refused(http.post(CLOSE, json={"season": now, "actor": "ann"}))[:2] == (
        409, "season_not_over",
    )  # fmt: skip
    assert refused(http.post(CLOSE, json={"season": "2131-01", "now": True, **BY})) == (
        409, "season_not_begun", "season",
    )  # fmt: skip
    assert refused(http.post(CLOSE, json={**JUNE, "actor": "ann", "now": True})) == (
        422, "invalid_input", "reason",
    )  # fmt: skip
    assert refused(http.post(CLOSE, json={**JUNE, "actor": "ann", "wait_s": 61})) == (
        422, "invalid_input", "wait_s",
    )  # fmt: skip
    assert refused(http.post(CLOSE, json=JUNE)) == (422, "invalid_input", "actor")
    assert refused(http.post(REVISE, json={**JUNE, **BY, "void": ["e1"]}))[:2] == (
        409, "not_settled",
    )  # fmt: skip
    ok(http.post(CLOSE, json={**JUNE, "actor": "ann"}))
    assert refused(http.post(REOPEN, json={**JUNE, **BY})) == (409, "season_final", "season")
    assert refused(http.post(REVISE, json={**JUNE, **BY, "void": ["e2"]})) == (
        422, "event_unknown", "event_id",
    )  # fmt: skip
    assert refused(http.post(REVISE, json={**JUNE, **BY, "amend": "e1"})) == (
        422, "invalid_input", "value",
    )  # fmt: skip
    for name, value in (("revision", "0"), ("revision", "-1"), ("limit", "1001"), ("cursor", "x")):
        for what in ("places", "changes", "excluded"):
            answer = http.get(f"{SETTLEMENTS}/{what}", params={**JUNE, name: value})
            assert refused(answer) == (422, "invalid_input", name)
    assert refused(http.get(f"{SETTLEMENTS}/places", params={**JUNE, "revision": "2"}))[:2] == (
        409, "not_settled",
    )  # fmt: skip
    for params, field in (
        ({"after": "-1"}, "after"), ({"after": "x"}, "after"), ({"season": "2024-06"}, "board"),
        ({"unacknowledged": "yes"}, "unacknowledged"), ({"who": "A"}, "who"),
    ):  # fmt: skip
        assert refused(http.get("/v1/awards", params=params)) == (422, "invalid_input", field)
    for body, field in (
        ({"changes": []}, "changes"), ({"changes": ["0"]}, "changes"),
        ({"changes": ["x"]}, "changes"),
        ({}, "changes"),
    ):  # fmt: skip
        answer = http.post("/v1/awards/acknowledge", json={"actor": "ann", **body})
        assert refused(answer) == (422, "invalid_input", field)
    rule = {"period": "month", "name": "x", **BY}
    for given, field in (
        ({}, "rule"), ({"ranks": [1, 2], "percent": 5}, "rule"), ({"percent": "0"}, "percent"),
        ({"ranks": [1]}, "ranks"), ({"ranks": [1, 1], "numbering": "x"}, "numbering"),
    ):  # fmt: skip
        assert refused(http.post(RULES, json=rule | given)) == (422, "invalid_input", field)


def test_a_server_for_everybody_does_none_of_it(months: Months, public: httpx.Client) -> None:
    months.submit(("e1", "A", 5))
    gets = [f"{SETTLEMENTS}/{what}" for what in ("places", "changes", "excluded")]
    posts = [CLOSE, REOPEN, REVISE, RULES, DROP, "/v1/seasons/close-due", "/v1/awards/acknowledge"]

    answers = [public.get(path, params=JUNE) for path in (*gets, RULES, "/v1/awards")]
    answers += [public.post(path, json={**JUNE, **BY}) for path in posts]

    assert {refused(answer)[:2] for answer in answers} == {(403, "operators_only")}
    assert months.tr.season("b", "2024-06").state == "open"
    months.close()
    (settlement,) = ok(public.get(SETTLEMENTS, params=JUNE))["settlements"]
    assert not {"actor", "reason", "excluded"} & set(settlement)

"""Headers say what the JSON says, and tell a client that it has an answer already."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from truerank.model import Freshness, Histogram, Page, Source, Token
from truerank.read.shapes import histogram_json, page_json
from truerank.serve.replies import Encoded, has_already

NOW = datetime(2026, 8, 29, 12, tzinfo=UTC)
# Every field with a value that is told; a new one is to be added here.
FULL: dict[str, Any] = {
    "source": Source.PROJECTION,
    "epoch": "0" * 32,
    "generation": "g1",
    "tick": 2**60,
    "projected_through": NOW,
    "staleness_ms": 7,
    "settled": True,
    "partial": True,
    "token": Token("10:20:11,12.00000000-00000001-abc"),
    "lives": "00000000-00000001-abc 00000000-00000001-aab<9",
    "frozen_at": NOW,
    "as_of": NOW,
}
BESIDE: dict[str, Any] = {
    "season": "summer ä%=1",
    "state": "final",
    "settled_at": NOW,
    "revision": 3,
}
TOGETHER = {"token": {"token", "lives"}}  # what is absent with it
NEVER_ABSENT = {"source", "epoch", "lives"}


def shaped(freshness: Freshness, kind: str) -> dict[str, Any]:
    if kind == "histogram":
        return histogram_json(
            Histogram(board="b", total=0, buckets=(), freshness=freshness, **BESIDE)
        )
    return page_json(Page(board="b", total=0, entries=(), freshness=freshness, **BESIDE))


def sent(encoded: Encoded, *headers: tuple[bytes, bytes]) -> httpx.Response:
    response = encoded.response({"method": "GET", "headers": list(headers)}, held_ms=5)
    return httpx.Response(
        response.status_code, headers=response.raw_headers, content=bytes(response.body)
    )


def told(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("truerank-")}


@pytest.mark.parametrize("kind", ["page", "histogram"])
@pytest.mark.parametrize("without", [None, *sorted(set(FULL) - NEVER_ABSENT)])
def test_every_field_of_freshness_is_in_the_json_in_a_header_and_in_a_304(
    kind: str, without: str | None
) -> None:
    assert set(FULL) == set(Freshness.__struct_fields__)
    absent = set() if without is None else TOGETHER.get(without, {without})
    values = FULL | {name: False if FULL[name] is True else None for name in absent}
    encoded = Encoded(shaped(Freshness(**values), kind))

    answer = sent(encoded)
    again = sent(encoded, (b"if-none-match", answer.headers["etag"].encode()))

    shape = answer.json()
    in_json = {**shape["freshness"], **{name: shape[name] for name in BESIDE}}
    expected = {
        f"truerank-{name.replace('_', '-')}": "true" if value is True else str(value)
        for name, value in in_json.items()
        if value is not None
    }
    headers = told(answer)
    headers["truerank-season"] = unquote(headers["truerank-season"])
    assert headers == expected
    assert set(FULL) - absent <= set(in_json)
    assert (again.status_code, again.content) == (304, b"")
    for name in (*told(answer), "etag", "cache-control"):
        assert again.headers[name] == answer.headers[name]
    assert "content-type" not in again.headers


def test_an_answer_has_a_weak_tag_of_what_it_shows() -> None:
    first, older, other = (
        sent(Encoded(shaped(Freshness(**(FULL | change)), "page"))).headers["etag"]
        for change in ({}, {"staleness_ms": 9, "tick": 3}, {"epoch": "1" * 32})
    )

    assert first.startswith('W/"')
    assert first == older
    assert first != other


@pytest.mark.parametrize(
    ("matches", "lines"),
    [
        (True, ['"a"']),
        (True, ['W/"a"']),
        (True, ['"b", W/"a"']),
        (True, ['"b"', '"a"']),
        (True, [',"b",, "a" ,']),
        (True, ["*"]),
        (True, [" * "]),
        (True, ['"a,b"', '"a"']),
        (False, []),
        (False, [""]),
        (False, ['"b"']),
        (False, ['"A"']),
        (False, ['"a,b"']),
        (False, ["a"]),
        (False, ['w/"a"']),
        (False, ['"a" "b"']),
        (False, ['"a']),
        (False, ['"a", b']),
        (False, ['*, "b"']),
        (False, ['"a"x']),
        (False, ['"b" ' + " ," * 5000 + "x"]),
    ],
)
def test_what_a_client_has_is_read_as_the_standard_says(matches: object, lines: list[str]) -> None:
    headers = [(b"if-none-match", line.encode()) for line in lines]

    scope = {"method": "GET", "headers": [(b"x", b'"a"'), *headers]}
    assert has_already(scope, 'W/"a"') is matches
    assert has_already(scope, '"a"') is matches
    assert not has_already({**scope, "method": "POST"}, '"a"'), "a condition of reads alone"

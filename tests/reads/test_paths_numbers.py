"""Scores, versions and ticks keep every digit on every way to read a board."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from tests.reads.paths import Paths, board, rows
from truerank.exporting import event_ids_of

SAFE = 2**53 - 1  # what a JavaScript reader keeps whole


def numbers(value: Any) -> Iterator[int | float]:
    """Every number in a JSON value."""
    if isinstance(value, dict):
        for each in value.values():
            yield from numbers(each)
    elif isinstance(value, list):
        for each in value:
            yield from numbers(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def test_neighbours_above_53_bits_are_told_apart(paths: Paths) -> None:
    """NUM-1."""
    for order in ("desc", "asc"):
        board(paths, order, order=order)
        paths.world.scores(
            order, ("A", 9007199254740991), ("B", 9007199254740992), ("C", 9007199254740993)
        )

    best_first = [(1, "C", "9007199254740993"), (2, "B", "9007199254740992")]
    assert paths.table("desc") == [*best_first, (3, "A", "9007199254740991")]
    assert [member for _, member, _ in paths.table("asc")] == ["A", "B", "C"]
    assert paths.counts("desc", ["9007199254740992"]) == [(1, 1)]
    exact = paths.between("desc", "9007199254740993", "9007199254740993")
    assert rows(exact.entries) == best_first[:1]
    for _, member, score in paths.table("desc"):
        assert paths.compared("desc", member) == (ord("D") - ord(member), member, score)


def test_numbers_that_scripts_would_round_are_exact_in_both_stores(paths: Paths) -> None:
    """NUM-2."""
    values = [1824192940134586, 100000000000000, 99999999999999, -99999999999999, -(2**63)]
    board(paths)
    paths.world.scores("b", *((f"m{i}", value) for i, value in enumerate(values)))

    assert paths.table("b") == [(i + 1, f"m{i}", str(value)) for i, value in enumerate(values)]
    assert paths.world.differences() == [], "byte for byte what SQL holds"
    raw = paths.http.get("/v1/boards/b/top").text
    assert "e+" not in raw.lower()
    assert all(f'"{value}"' in raw for value in values)


def test_numbers_beyond_32_bits_are_added_and_compared_exactly(paths: Paths) -> None:
    """NUM-4."""
    board(paths)
    paths.world.scores("b", ("A", 2147483647), ("B", 2147483648), ("C", 4294967295))
    assert [member for _, member, _ in paths.table("b")] == ["C", "B", "A"]

    paths.world.scores("b", ("A", 1))

    assert paths.table("b") == [
        (1, "C", "4294967295"),
        (2, "B", "2147483648"),
        (2, "A", "2147483648"),
    ]
    assert paths.counts("b", [2147483648, 4294967296]) == [(1, 2), (0, 0)]
    assert paths.histogram("b", [2147483648, 4294967295]) == [0, 2, 1]
    assert paths.compared("b", "A") == (2, "A", "2147483648")


def test_no_number_in_json_is_beyond_what_javascript_keeps_whole(paths: Paths) -> None:
    """NUM-7: scores, versions and ticks are strings of digits, however large they have become."""
    large = 2**53 + 1
    for sequence in ("version", "position", "tick_id"):
        paths.world.pipeline.conn.execute(
            f"ALTER SEQUENCE truerank.{sequence} RESTART WITH {large}"
        )
    board(paths)
    event = {"event_id": "e", "member": "A", "value": str(large)}
    replies = [paths.http.post("/v1/boards/b/scores", json=event).json()]
    paths.world.scores("b", ("B", large + 1), ("C", large + 2))

    assert [score for _, _, score in paths.table("b")] == [str(large + i) for i in (2, 1, 0)]
    assert paths.world.differences() == []
    queries = [
        *("", "/top?member=A", "/place?member=A&percentile=1", "/around?member=B", "/seasons"),
        *("/places?member=A&among=1", f"/between?score_min={large}", f"/counts?score={large}"),
        f"/histogram?edge={large}",
    ]
    replies += [paths.http.get(f"/v1/boards/b{q}").raise_for_status().json() for q in queries]
    lines = [*paths.client.export("b", format="ndjson")]
    replies += [json.loads(line) for line in lines]
    assert [n for n in numbers(replies) if isinstance(n, int) and abs(n) > SAFE] == []
    assert replies[0]["standings"][0]["version"] == str(large)
    assert int(replies[2]["freshness"]["tick"]) >= large
    assert [line["version"] for line in map(json.loads, lines)] == [
        str(large + i) for i in (2, 1, 0)
    ]
    with paths.http.stream("GET", "/v1/boards/b/live") as answer:
        data = next(line for line in answer.iter_lines() if line.startswith("data: "))
    assert int(json.loads(data.removeprefix("data: "))["tick"]) >= large
    text = b"".join(paths.client.export("b", format="csv")).decode()
    begins = event_ids_of(paths.client.installation())
    assert [row["event_id"] for row in csv.DictReader(io.StringIO(text, newline=""))] == [
        f"{begins}{large + i}" for i in (2, 1, 0)
    ]

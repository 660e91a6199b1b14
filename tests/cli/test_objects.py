"""NDJSON becomes events; a line that can't be read never spoils the others."""

import gzip
import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truerank.intake.lines import Malformed, Naming, Row, decompressed
from truerank.intake.objects import is_ndjson, read_objects

_GOOD = {
    "event_id": "e1",
    "board": "b",
    "member": "ada",
    "points": 5,
    "occurred_at": "2026-01-01T00:00:00Z",
}
_EXPORTED = Naming(exported="standing-own-")


def read(raw: str | bytes, naming: Naming | None = None) -> list[Row | Malformed]:
    file: Any = io.BufferedReader(io.BytesIO(raw if isinstance(raw, bytes) else raw.encode()))
    return list(read_objects(decompressed(file), naming or Naming()))


def line(**changed: object) -> str:
    return json.dumps(_GOOD | changed, ensure_ascii=False) + "\n"


def row(raw: str | bytes, naming: Naming | None = None) -> Row:
    (found,) = read(raw, naming)
    assert isinstance(found, Row), found
    return found


def test_an_object_becomes_an_event_with_its_exact_text() -> None:
    found = row(line(event_id="e 1", member=" Ada ", note={"passed": ["over"]}))

    assert (found.line, found.board, found.event.event_id) == (1, "b", "e 1")
    assert (found.event.member, found.event.value, found.event.ties) == (" Ada ", 5, ())
    assert found.event.occurred_at == datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("spelt", "value"),
    [
        ("9007199254740993", 2**53 + 1),
        ("-9223372036854775808", -(2**63)),
        ('"9223372036854775807"', 2**63 - 1),
        ("0.1000000000000000055", "0.1000000000000000055"),
        ('"-12.50"', "-12.50"),
    ],
)
def test_points_are_exact_as_numbers_and_as_text(spelt: str, value: int | str) -> None:
    assert row(line(points=0).replace('"points": 0', f'"points": {spelt}')).event.value == value


def test_names_may_be_others_and_one_board_serves_all_lines() -> None:
    naming = Naming(columns={"member": "runner", "points": "seconds"}, board="laps")
    text = '{"event_id": "e", "runner": "m", "seconds": 3, "occurred_at": "2026-01-01T00:00:00Z"}'

    found = row(text, naming)

    assert (found.board, found.event.member, found.event.value) == ("laps", "m", 3)


def test_an_exported_line_has_names_and_tie_breaks_of_its_own() -> None:
    shape = _GOOD | {"event_id": "standing-other-7", "member": "'=ann", "score": "-0.5", "rank": 1}
    del shape["points"], shape["occurred_at"]
    shape |= {"reached_at": _GOOD["occurred_at"], "ties": {"z": "-9223372036854775808", "a": 2}}
    text = json.dumps(shape)

    found = row(text, _EXPORTED)

    assert (found.event.member, found.event.value) == ("'=ann", "-0.5"), "nothing is taken off"
    assert found.event.ties == (-(2**63), 2), "in the order of the line"
    (unknown,) = read(text)
    assert isinstance(unknown, Malformed)
    assert unknown.message == "it lacks points, occurred_at"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "json_invalid"),
        ("event_id,board,member,points,occurred_at", "json_invalid"),
        ("[1]", "json_invalid"),
        ("null", "json_invalid"),
        ("[" * 50_000, "json_invalid"),
        (
            line(points=0).replace("0", "NaN", 1).replace('"points": 0', '"points": NaN'),
            "json_invalid",
        ),
        ('{"member": "a", "member": "b"}', "json_invalid"),
        ('{"event_id": "e"}', "fields_missing"),
        (line(event_id=7), "event_id_invalid"),
        (line(event_id=""), "event_id_invalid"),
        (line(board=None), "board_invalid"),
        (line(member=["m"]), "member_invalid"),
        (line(member="a\0b"), "member_invalid"),
        (line(member="M").replace("M", "\\ud800"), "member_invalid"),
        (line(points="five"), "points_invalid"),
        (line(points=1e300), "points_invalid"),
        (line(points=True), "points_invalid"),
        (line(points="9" * 41), "points_invalid"),
        (line(occurred_at=1767225600), "occurred_at_invalid"),
        (line(occurred_at="2026-01-01T00:00:00"), "occurred_at_invalid"),
        (line(note="x" * 100_001), "line_too_long"),
    ],
)
def test_a_malformed_line_is_told_and_the_lines_around_it_go_in(text: str, code: str) -> None:
    found = read(f"{line()}\n{text.rstrip()}\n{line(event_id='e2')}")

    first, bad, last = found
    assert isinstance(first, Row)
    assert isinstance(last, Row)
    assert (first.line, last.line, last.event.event_id) == (1, 4, "e2")
    assert isinstance(bad, Malformed)
    assert (bad.line, bad.code) == (3, code)


@pytest.mark.parametrize("ties", [[1], {"a": "x"}, {"a": 1.5}, {"a": None}, "1"])
def test_tie_breaks_that_are_no_integers_are_told(ties: object) -> None:
    shape = {"score": 1, "reached_at": _GOOD["occurred_at"], "ties": ties}

    (found,) = read(line(**shape), _EXPORTED)

    assert isinstance(found, Malformed)
    assert found.code == "ties_invalid"


def test_bytes_that_are_not_utf_8_and_damaged_gzip_spoil_nothing_else() -> None:
    latin, good = read(f"{line(member='é')}".encode("latin-1") + line().encode())
    damaged = read(gzip.compress((line() * 300).encode(), mtime=0)[:-9])

    assert isinstance(latin, Malformed)
    assert (latin.code, isinstance(good, Row)) == ("encoding_invalid", True)
    assert isinstance(damaged[0], Row)
    assert [each.code for each in damaged if isinstance(each, Malformed)] == ["gzip_damaged"]


def test_a_byte_order_mark_gzip_and_an_empty_file_are_read() -> None:
    assert row(b"\xef\xbb\xbf" + line().encode()) == row(gzip.compress(line().encode()))
    assert read("") == read("\n \r\n") == []


def test_a_name_says_whether_a_file_is_of_this_kind() -> None:
    named = ["a.ndjson", "/x/A.JSONL", "a.ndjson.gz", "a.csv", "a.json", "-", "ndjson", "a.gz"]

    assert [name for name in named if is_ndjson(name)] == named[:3]


@given(st.binary(max_size=60))
def test_no_bytes_make_the_reader_fail(raw: bytes) -> None:
    for naming in (Naming(), _EXPORTED):
        assert all(isinstance(each, Row | Malformed) for each in read(raw, naming))


_IDS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1)


@given(member=_IDS, ascii_=st.booleans())
def test_every_id_that_json_can_write_is_read_back(member: str, ascii_: bool) -> None:  # noqa: FBT001 - drawn
    text = json.dumps(_GOOD | {"member": member}, ensure_ascii=ascii_)

    assert row(text).event.member == member

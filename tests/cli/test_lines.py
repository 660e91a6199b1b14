"""CSV files become events; a line that can't be read never spoils the others."""

import csv
import gzip
import io
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truerank.errors import InvalidInput
from truerank.instants import read_instant
from truerank.intake.fields import read_value
from truerank.intake.lines import (
    FileUnusable,
    Malformed,
    Naming,
    Row,
    decompressed,
    read_events,
)

_HEADER = "event_id,board,member,points,occurred_at\n"
_GOOD = "e1,b,ada,5,2026-01-01T00:00:00Z\n"


def read(text: str | bytes, naming: Naming | None = None) -> list[Row | Malformed]:
    raw = text if isinstance(text, bytes) else text.encode()
    file: Any = io.BufferedReader(io.BytesIO(raw))
    return list(read_events(decompressed(file), naming or Naming()))


def rows(text: str | bytes, naming: Naming | None = None) -> list[Row]:
    return [row for row in read(text, naming) if isinstance(row, Row)]


def malformed(text: str | bytes) -> list[tuple[int, str]]:
    return [(row.line, row.code) for row in read(text) if isinstance(row, Malformed)]


def test_a_line_becomes_an_event_with_its_exact_text() -> None:
    (row,) = rows(_HEADER + "e 1,b, Ada ,-5,2026-01-01T00:00:00.25+01:00\r\n")

    assert (row.line, row.board, row.event.event_id, row.event.member) == (2, "b", "e 1", " Ada ")
    assert row.event.value == -5
    assert row.event.occurred_at == datetime(2025, 12, 31, 23, 0, 0, 250_000, tzinfo=UTC)


def test_columns_may_stand_in_any_order_beside_others() -> None:
    (row,) = rows(
        "note,points,occurred_at,member,board,event_id\nx,1.50,2026-01-01T00:00:00Z,m,b,e"
    )

    assert (row.event.event_id, row.event.member, row.event.value) == ("e", "m", "1.50")


def test_columns_may_have_names_of_their_own_and_one_board_serves_all_lines() -> None:
    naming = Naming(columns={"member": "runner", "points": "seconds"}, board="laps")

    (row,) = rows("event_id,runner,seconds,occurred_at\ne,ada,62.5,2026-01-01T00:00:00Z\n", naming)

    assert (row.board, row.event.member, row.event.value) == ("laps", "ada", "62.5")


def test_tie_breaks_are_read_from_a_file_that_was_exported_alone() -> None:
    text = (
        "event_id,board,rank,member,points,occurred_at,tie hits,tie misses\n"
        "e1,b,1,ada,5,2026-01-01T00:00:00Z,2,-3\n"
        "e2,b,2,bao,4,2026-01-01T00:00:00Z,2.5,0\n"
    )

    first, second = read(text, Naming(exported="standing-"))

    assert isinstance(first, Row)
    assert first.event.ties == (2, -3)
    assert isinstance(second, Malformed)
    assert second.code == "ties_invalid"
    assert [row.event.ties for row in rows(text)] == [(), ()]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("\n\n", "empty"),
        ("event_id,board,member,points\n", "lacks occurred_at"),
        ("event_id,board,member,member,points,occurred_at\n", "member more than once"),
        (b"\xff\n", "not UTF-8"),
        (gzip.compress(b"", mtime=0), "empty"),
    ],
)
def test_a_file_without_a_usable_header_is_refused_as_a_whole(
    text: str | bytes, reason: str
) -> None:
    with pytest.raises(FileUnusable, match=reason):
        read(text)


@pytest.mark.parametrize("encoded", [gzip.compress, lambda raw: b"\xef\xbb\xbf" + raw])
def test_gzip_and_a_byte_order_mark_are_told_by_content(encoded: object) -> None:
    assert callable(encoded)

    assert len(rows(encoded((_HEADER + _GOOD).encode()))) == 1


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("e,b,m,5", "fields_missing"),
        ("e,b,m,5,2026-01-01T00:00:00Z,x", "fields_extra"),
        (",b,m,5,2026-01-01T00:00:00Z", "event_id_invalid"),
        ("e,,m,5,2026-01-01T00:00:00Z", "board_invalid"),
        ("e,b,,5,2026-01-01T00:00:00Z", "member_invalid"),
        ("e,b,m\0,5,2026-01-01T00:00:00Z", "member_invalid"),
        ("e,b,m,,2026-01-01T00:00:00Z", "points_invalid"),
        ("e,b,m,5 ,2026-01-01T00:00:00Z", "points_invalid"),
        ("e,b,m,1e3,2026-01-01T00:00:00Z", "points_invalid"),
        ("e,b,m,NaN,2026-01-01T00:00:00Z", "points_invalid"),
        ("e,b,m,\u0665,2026-01-01T00:00:00Z", "points_invalid"),
        ("e,b,m,5,", "occurred_at_invalid"),
        ("e,b,m,5,2026-01-01T00:00:00", "occurred_at_invalid"),
        ("e,b,m,5,2026-02-30T00:00:00Z", "occurred_at_invalid"),
        ('e,b,"m"x,5,2026-01-01T00:00:00Z', "csv_invalid"),
        ('e,b,"m,5,2026-01-01T00:00:00Z', "csv_invalid"),
        ("e,b,m\rn,5,2026-01-01T00:00:00Z", "csv_invalid"),
        ("e,b," + "m" * 100_001 + ",5,2026-01-01T00:00:00Z", "line_too_long"),
    ],
)
def test_a_malformed_line_is_told_and_the_lines_around_it_go_in(line: str, code: str) -> None:
    text = _HEADER + _GOOD + line + "\n" + _GOOD.replace("e1", "e2")

    assert malformed(text) == [(3, code)]
    assert [row.event.event_id for row in rows(text)] == ["e1", "e2"]


def test_bytes_that_are_not_utf_8_spoil_only_their_line() -> None:
    text = (_HEADER + _GOOD).encode() + b"e2,b,\xff,5,2026-01-01T00:00:00Z\n" + _GOOD.encode()

    assert malformed(text) == [(3, "encoding_invalid")]
    assert [row.line for row in rows(text)] == [2, 4]


def test_quotes_hold_commas_quotes_and_line_breaks() -> None:
    text = _HEADER + 'e1,b,"a ""b"", c\r\nd",5,2026-01-01T00:00:00Z\r\n' + _GOOD

    first, second = rows(text)

    assert (first.line, first.event.member) == (2, 'a "b", c\r\nd')
    assert second.line == 4


def test_a_quote_that_never_closes_costs_one_line_not_the_file() -> None:
    text = _HEADER + 'e0,b,"m,5,2026-01-01T00:00:00Z\n' + _GOOD * 200

    assert malformed(text) == [(2, "csv_invalid")]
    assert len(rows(text)) == 200


def test_two_stray_quotes_do_not_swallow_the_lines_between_them() -> None:
    stray = 'e0,b,"m,5,2026-01-01T00:00:00Z\n'
    text = _HEADER + stray + _GOOD + stray + _GOOD

    assert malformed(text) == [(2, "csv_invalid"), (4, "csv_invalid")]
    assert [row.line for row in rows(text)] == [3, 5]


def test_damaged_gzip_gives_what_was_readable_and_tells_where_it_ends() -> None:
    lines = "".join(f"e{n},b,m{n * 7919 % 997},5,2026-01-01T00:00:00Z\n" for n in range(5000))
    whole = gzip.compress((_HEADER + lines).encode())

    found = read(whole[: len(whole) // 2])

    last = found[-1]
    assert isinstance(last, Malformed)
    assert last.code == "gzip_damaged"
    assert 1000 < len(found) < 5000


@given(st.binary(max_size=400))
def test_no_bytes_make_the_reader_fail(raw: bytes) -> None:
    found = read(_HEADER.encode() + raw + b"\n" + _GOOD.encode())

    assert all(isinstance(row, Row | Malformed) for row in found)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1))
def test_every_text_that_csv_can_write_is_read_back(members: list[str]) -> None:
    members = [member.replace("\0", "0") for member in members]
    target = io.StringIO()
    writer = csv.writer(target)
    for number, member in enumerate(members):
        writer.writerow([number, "b", member, 1, "2026-01-01T00:00:00Z"])

    found = [row for row in read(_HEADER + target.getvalue()) if isinstance(row, Row)]

    assert [row.event.member for row in found] == members


@pytest.mark.parametrize(
    "text",
    [
        "2026-08-29",
        "2026-08-29T12:00Z",
        "2026-08-29T12:00:00+0200",
        "2026-08-29T12:00:00+24:00",
        "2026-08-29T24:00:00Z",
        "2026-08-29T23:59:60Z",
        "0000-01-01T00:00:00Z",
        "2026-W35-6T12:00:00Z",
        "\u0662\u0660\u0662\u0666-08-29T12:00:00Z",
        " 2026-08-29T12:00:00Z",
        "infinity",
        "now",
        "2026-08-29T12:00:00.0000000001Z",
    ],
)
def test_what_is_no_instant_with_an_offset_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="occurred_at"):
        read_instant(text, "occurred_at")


def test_what_is_finer_than_a_microsecond_is_cut_off_never_rounded_up() -> None:
    found = read_instant("2026-12-31t23:59:59.999999999z", "occurred_at")

    assert found == datetime(2026, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)


@given(
    st.datetimes(
        min_value=datetime(1, 1, 2),  # noqa: DTZ001 - the zone is drawn beside it
        timezones=st.builds(timezone, st.integers(-1439, 1439).map(lambda m: timedelta(minutes=m))),
    )
)
def test_instants_are_read_as_python_writes_them(at: datetime) -> None:
    assert read_instant(at.isoformat(), "occurred_at") == at


@pytest.mark.parametrize("text", ["5", "+5", "-5", "007", "9" * 40, "12.340", "-0"])
def test_numbers_are_read_exactly(text: str) -> None:
    found = read_value(text, "value")

    assert found == (text if "." in text else int(text))

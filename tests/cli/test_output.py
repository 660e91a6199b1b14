"""What a terminal shows: ids as they are, columns in line, nothing that acts."""

import io
import json
import os
import sys
from datetime import UTC, datetime

import pytest
from rich.cells import cell_len

from truerank.cli.output import (
    complain,
    duration_words,
    escaped,
    freshness_words,
    shown,
    table,
    write_json,
)
from truerank.model import Freshness, Source

_NAMES = ["ada", "さくら", "김민준", "مريم العلي", "👩‍🚀 astro", "<3 [bold]A&B[/bold]", "e\u0301"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("\x1b[2J\x1b[31m", "\\x1b[2J\\x1b[31m"),
        ("a\nerror[x]: y", "a\\x0aerror[x]: y"),
        ("a\r\tb\x7f\x9b", "a\\x0d\\x09b\\x7f\\x9b"),
        ("a\u202eb\u2066c\u2028", "a\\u202eb\\u2066c\\u2028"),
    ],
)
def test_what_could_move_the_cursor_forge_a_line_or_turn_the_text_is_shown_escaped(
    name: str, safe: str
) -> None:
    assert escaped(name) == safe


@pytest.mark.parametrize(
    "name", [*_NAMES, "dɹǝᗡ", "a_b-c d", "नमस्ते", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"]
)
def test_every_other_name_is_shown_complete_and_unchanged(name: str) -> None:
    assert escaped(name) == name
    assert shown(name) == name


def test_no_name_moves_a_column() -> None:
    rows = [(str(n), str(10**n), name) for n, name in enumerate(_NAMES)]

    lines = table(("rank", "score", "member"), rows, left="member")

    for line, (_, _, name) in zip(lines[1:], rows, strict=True):
        assert line.endswith(f"  {name}")
        assert cell_len(line.removesuffix(name)) == len("rank") + 2 + 7 + 2


def test_a_right_to_left_name_keeps_its_direction_to_itself_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())

    assert shown("مريم") == "\u2068مريم\u2069"
    assert shown("ada") == "ada"
    assert cell_len(shown("مريم")) == cell_len("مريم")


def test_an_error_stays_one_entry_whatever_it_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    complain("board_unknown", "there is no board \x1b[2J\r")

    assert capsys.readouterr().err == "error[board_unknown]: there is no board \\x1b[2J\n"


def test_json_carries_a_file_name_that_is_no_utf_8(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    name = os.fsdecode("é\udcff.csv".encode(errors="surrogateescape"))

    write_json({"file": name})

    out = capfdbinary.readouterr().out
    assert out == '{"file": "é\\udcff.csv"}\n'.encode()
    assert json.loads(out)["file"] == name


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1 s"),
        (59_999, "59 s"),
        (60_000, "1 min"),
        (3_600_000, "1 h"),
        (47 * 3_600_000, "47 h"),
        (48 * 3_600_000, "2 days"),
    ],
)
def test_ages_are_told_in_words(ms: int, words: str) -> None:
    assert duration_words(ms) == words


def test_freshness_names_the_source_and_never_invents_an_age() -> None:
    def freshness(source: Source, staleness_ms: int | None) -> Freshness:
        return Freshness(
            source=source,
            epoch="e",
            generation="g",
            tick=1,
            projected_through=datetime(2026, 1, 1, tzinfo=UTC),
            staleness_ms=staleness_ms,
        )

    assert freshness_words(freshness(Source.DATABASE, 0)) == "from PostgreSQL, as of now"
    assert "as of 40 ms ago" in freshness_words(freshness(Source.PROJECTION, 40))
    assert "unknown age" in freshness_words(freshness(Source.PROJECTION, None))

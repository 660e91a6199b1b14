"""`truerank import`: everything that can go in goes in, once, and the rest is told."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.cli.commands import Command
from truerank.embedded import start_engines

_HEADER = "event_id,board,member,points,occurred_at"
_MALFORMED = [
    "e1,b,ada,5,2026-01-01T00:00:00Z",
    "e2,b,ada,five,2026-01-01T00:00:00Z",
    "e3,b,ada,5,2026-01-01T00:00:00",
    "e4,b,ada,5,2026-02-30T00:00:00Z",
    "e5,b,ada,5,2026-01-01T00:00:60Z",
    "e6,b,ada,5",
    'e7,b,"ada,5,2026-01-01T00:00:00Z',
    "e8,b,,5,2026-01-01T00:00:00Z",
    "e9,b,ada,5,2999-01-01T00:00:00Z",
    "e10,b,ada,99999999999999999999,2026-01-01T00:00:00Z",
    f"e11,b,{'m' * 201},5,2026-01-01T00:00:00Z",
    "e12,b/c,ada,5,2026-01-01T00:00:00Z",
    "e1,b,ada,6,2026-01-01T00:00:00Z",
    "e1,b,ada,5,2026-01-01T01:00:00+01:00",
    "e13,b,bao,5,2026-01-01T00:00:00Z",
]


@pytest.fixture
def attached(truerank: Command) -> Iterator[Command]:
    """The command on engines that run all the while, to which each attaches: it is quicker."""
    with start_engines(truerank.data, durable=False):
        yield truerank


def _line(number: int) -> str:
    return f"e{number},b,m{number % 100},1,2026-01-01T00:00:00Z"


def write(path: Path, lines: list[str]) -> str:
    path.write_text("\n".join([_HEADER, *lines]) + "\n", encoding="utf-8")
    return str(path)


def test_bad_lines_are_told_with_number_and_reason_and_the_rest_goes_in(
    attached: Command, tmp_path: Path
) -> None:
    file = write(tmp_path / "mixed.csv", _MALFORMED)

    done = attached("import", file, "--create-boards", "--json")
    shown = attached("import", file, "--create-boards")

    summary = done.json
    counts = [summary[k] for k in ("applied", "duplicate", "conflict", "refused", "malformed")]
    assert (done.status, counts, summary["lines"]) == (1, [2, 1, 1, 4, 7], 15)
    assert [(problem["line"], problem["code"]) for problem in summary["problems"]] == [
        (3, "points_invalid"),
        (4, "occurred_at_invalid"),
        (5, "occurred_at_invalid"),
        (6, "occurred_at_invalid"),
        (7, "fields_missing"),
        (8, "csv_invalid"),
        (9, "member_invalid"),
        (10, "occurred_at_in_future"),
        (11, "value_out_of_range"),
        (12, "member_invalid"),
        (13, "board_invalid"),
        (14, "event_conflict"),
    ]
    assert summary["visible"] is True
    assert (shown.status, "line 3: points_invalid: points 'five'" in shown.out) == (1, True)
    entries = attached("top", "b", "--json").json["entries"]
    assert [(entry["member"], entry["score"]) for entry in entries] == [("ada", "5"), ("bao", "5")]


def test_a_second_import_finds_only_duplicates_and_changes_nothing(
    attached: Command, tmp_path: Path
) -> None:
    lines = [f"e{n},b{n % 2},m{n % 50},{n % 7},2026-01-01T00:00:{n % 60:02}Z" for n in range(3000)]
    file = write(tmp_path / "events.csv", lines)

    first = attached("import", file, "--create-boards", "--json")
    before = attached("top", "b1", "--limit", "50", "--json").json["entries"]
    second = attached("import", file, "--create-boards", "--json")
    after = attached("top", "b1", "--limit", "50", "--json").json["entries"]

    assert (first.status, first.json["applied"], first.json["duplicate"]) == (0, 3000, 0)
    assert sorted(first.json["boards_created"]) == ["b0", "b1"]
    assert (second.status, second.json["applied"], second.json["duplicate"]) == (0, 0, 3000)
    assert second.json["boards_created"] == second.json["boards_kept"] == []
    assert after == before
    assert len(after) == 25


def test_an_import_that_was_killed_goes_on_when_it_is_run_again(
    truerank: Command,
    tmp_path: Path,
    started: Callable[[subprocess.Popen[str]], subprocess.Popen[str]],
    wait_until: Callable[[Callable[[], bool], str], None],
) -> None:
    lines = [f"e{n},b,m{n % 100},1,2026-01-01T00:00:00Z" for n in range(5000)]
    file = write(tmp_path / "events.csv", lines)
    process = started(truerank.start("import", "-", "--create-boards"))
    assert process.stdin is not None
    process.stdin.write("\n".join([_HEADER, *lines[:2500]]))
    process.stdin.flush()
    wait_until((truerank.data / "engine.json").exists, "the engines run")
    with (
        start_engines(truerank.data) as engines,
        psycopg.connect(engines.database_url, autocommit=True) as conn,
    ):
        assert engines.owner_pid == process.pid

        def stored() -> int:
            row = conn.execute("SELECT to_regclass('truerank.event') IS NOT NULL").fetchone()
            if row is None or not row[0]:
                return 0
            row = conn.execute("SELECT count(*) FROM truerank.event").fetchone()
            return int(row[0]) if row else 0

        wait_until(lambda: stored() >= 2000, "two batches are committed")

    process.send_signal(signal.SIGKILL)
    process.wait()
    done = truerank("import", file, "--create-boards", "--json")

    assert done.status == 0
    assert (done.json["applied"], done.json["duplicate"]) == (3000, 2000)
    answer = truerank("top", "b", "--limit", "1000", "--json").json
    assert answer["total"] == 100
    assert {entry["score"] for entry in answer["entries"]} == {"50"}


def test_an_import_on_engines_of_another_command_says_so_when_they_end_with_it(
    truerank: Command,
    started: Callable[[subprocess.Popen[str]], subprocess.Popen[str]],
    wait_until: Callable[[Callable[[], bool], str], None],
) -> None:
    with (
        start_engines(truerank.data, durable=False) as engines,
        psycopg.connect(engines.database_url, autocommit=True) as conn,
    ):
        process = started(truerank.start("import", "-", "--create-boards", "--no-wait"))
        assert process.stdin is not None
        process.stdin.write("\n".join([_HEADER, *(_line(n) for n in range(2500))]))
        process.stdin.flush()

        def stored() -> bool:
            row = conn.execute("SELECT to_regclass('truerank.event') IS NOT NULL").fetchone()
            if row is None or not row[0]:
                return False
            row = conn.execute("SELECT count(*) FROM truerank.event").fetchone()
            return row is not None and int(row[0]) >= 2000

        wait_until(stored, "two batches are committed")

    _, err = process.communicate("\n" + "\n".join(_line(n) for n in range(2500, 5000)), timeout=60)
    assert process.returncode == 1
    assert f"error[engines_gone]: process {os.getpid()}, which ran the engines of " in err
    assert "run the same command again to go on" in err


def test_lines_of_one_instant_stand_in_the_order_of_the_file(
    attached: Command, tmp_path: Path
) -> None:
    members = [f"m{n * 7919 % 1500:04}" for n in range(1500)]
    lines = [f"{member},b,{member},1,2026-01-01T00:00:00Z" for member in members]
    file = write(tmp_path / "ties.csv", lines)

    assert attached("import", file, "--create-boards").status == 0

    # Over the edge between two batches.
    page = attached("top", "b", "--limit", "800", "--offset", "700", "--json").json["entries"]
    assert [entry["member"] for entry in page] == members[700:]


def test_boards_are_made_only_when_asked_and_keep_their_settings(
    attached: Command, tmp_path: Path
) -> None:
    file = write(tmp_path / "one.csv", ["e1,laps,ada,1.50,2026-01-01T00:00:00Z"])
    settings = ("--operator", "best", "--order", "asc", "--decimals", "2", "--seasons", "all,year")

    refused = attached("import", file, "--json")
    made = attached("import", file, "--create-boards", *settings, "--json")
    kept = attached("import", file, "--create-boards", "--json")
    board = attached("board", "show", "laps", "--json").json["board"]

    assert (refused.status, refused.json["refused_by_code"]) == (1, {"board_unknown": 1})
    assert (made.status, made.json["applied"], made.json["boards_created"]) == (0, 1, ["laps"])
    assert (kept.status, kept.json["duplicate"], kept.json["boards_kept"]) == (0, 1, ["laps"])
    assert (board["operator"], board["decimals"], board["seasons"]) == ("best", 2, ["all", "year"])


def test_columns_and_the_board_can_be_named(attached: Command) -> None:
    text = "event_id,runner,seconds,occurred_at\ne1,ada,62.318,2026-01-01T00:00:00Z\n"
    names = ("--board", "laps", "--map", "member=runner", "--map", "points=seconds")
    new = ("--create-boards", "--decimals", "3")

    done = attached("import", "-", *names, *new, "--no-wait", "--json", text=text)

    assert (done.status, done.json["applied"], done.json["visible"]) == (0, 1, None)
    assert attached("top", "laps", "--json").json["entries"][0]["score"] == "62.318"


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (("absent.csv",), 2, "error[file_unusable]: absent.csv: No such file"),
        (("-",), 2, "error[file_unusable]: -: the header lacks event_id"),
        (("-", "--map", "who=runner"), 1, "error[invalid_input]: --map"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_before_anything_starts(
    truerank: Command, arguments: tuple[str, ...], status: int, error: str
) -> None:
    done = truerank("import", *arguments, text="a,b\n1,2\n")

    assert done.status == status
    assert done.err.startswith(error)
    assert not truerank.data.exists()


def test_settings_of_new_boards_that_make_no_sense_stop_the_import(truerank: Command) -> None:
    text = f"{_HEADER}\ne1,b,ada,1,2026-01-01T00:00:00Z\n"

    done = truerank("import", "-", "--create-boards", "--zone", "Mars/Olympus", text=text)

    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("error[invalid_input]: ")

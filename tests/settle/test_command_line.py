"""Seasons and awards by the command line; what the how-to page runs isn't repeated here."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.settle.conftest import Months
from truerank.cli import app

BY: Any = Months.BY
Run = Callable[..., tuple[int, Any]]


@pytest.fixture
def run(
    months: Months,
    database_url: str,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> Run:
    """A function that runs a command with `--json`; its exit status and its object."""
    months.submit(("e1", "A", 5), ("e2", "B", 9), ("e3", "C", 1))
    monkeypatch.setenv("TRUERANK_DATABASE_URL", database_url)
    monkeypatch.setenv("TRUERANK_REDIS_URL", redis_url)

    def run(*arguments: str) -> tuple[int, Any]:
        capfdbinary.readouterr()
        status = app.run([*arguments, "--json"])
        captured = capfdbinary.readouterr()
        return status, json.loads(captured.out) if captured.out else captured.err.decode()

    return run


def test_a_season_is_shown_closed_and_told_of_those_without_a_place(
    months: Months, run: Run, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    months.tr.hide_member("B", timeout_s=0.0, **BY)

    before = run("season", "show", "b", "2024-06")
    closed = run("season", "close", "b", "2024-06", "--actor", "ann")
    shown = run("season", "show", "b", "2024-06")
    excluded = run("season", "excluded", "b", "2024-06")

    assert app.run(["top", "b", "--season", "2024-06", "--source", "database"]) == 0
    assert capfdbinary.readouterr().out.startswith(b"b, season 2024-06, final, 2 members\n")
    assert before[1]["season"]["state"] == "open"
    assert before[1]["settlements"] == []
    assert closed == shown
    assert shown[1]["season"]["revision"] == 1
    (settlement,) = shown[1]["settlements"]
    assert (settlement["population"], settlement["excluded"], settlement["total"]) == (2, 1, "6")
    assert excluded == (
        0, {"revision": 1, "excluded": [{"member": "B", "why": "hidden", "score": "9"}]}
    )  # fmt: skip


def test_what_may_not_be_closed_is_refused_with_its_code(months: Months, run: Run) -> None:
    months.rules(late_grace="100000 days")
    too_early = run("season", "close", "b", "2024-06")
    without_reason = run("season", "close", "b", "2024-06", "--now")
    not_begun = run("season", "close", "b", "2131-01", "--now", "--reason", "by mistake")

    assert (too_early[0], without_reason[0], not_begun[0]) == (1, 1, 1)
    assert "error[season_not_begun]" in not_begun[1]
    assert "error[season_not_over]" in too_early[1]
    assert "error[invalid_input]" in without_reason[1]
    assert months.tr.season("b", "2024-06").state == "open"


def test_what_is_due_is_closed_by_one_command(months: Months, run: Run) -> None:
    months.rules(auto_close=True)
    months.conn.execute("UPDATE truerank.board SET auto_close_from = now() - interval '40 days'")

    first = run("season", "close-due", "--actor", "cron")
    second = run("season", "close-due", "--actor", "cron")

    assert first[0] == second[0] == 0
    assert [each["waits"] for each in first[1]["closed"]] == [None] * len(first[1]["closed"])
    assert first[1]["closed"]
    assert second[1] == {"closed": []}


def test_awards_are_ruled_listed_and_acknowledged(months: Months, run: Run) -> None:
    by = ("--reason", "prizes", "--actor", "ann")
    made = run("award", "make", "b", "month", "gold", "--ranks", "1", *by)
    run("award", "make", "b", "month", "most", "--percent", "60", *by)
    run("award", "make", "b", "month", "gone", "--score", "5", *by)
    dropped = run("award", "drop", "b", "month", "gone", *by)
    rules = run("award", "rules", "b")
    early = run("award", "list", "b", "2024-06")
    months.close()
    listed = run("award", "list", "b", "2024-06")
    change = listed[1]["awards"][0]["change"]
    done = run("award", "acknowledge", change, "--actor", "payer")
    still_open = run("award", "list", "--unacknowledged")

    assert (made[1]["made"], dropped[1]["dropped"]) == (True, True)
    assert [rule["name"] for rule in rules[1]["rules"]] == ["gold", "most"]
    assert early[0] == 1
    assert "error[not_settled]" in early[1]
    assert sorted((a["rule"], a["member"], a["rank"]) for a in listed[1]["awards"]) == [
        ("gold", "B", 1), ("most", "A", 2), ("most", "B", 1)
    ]  # fmt: skip
    assert done == (0, {"acknowledged": 1})
    assert len(still_open[1]["awards"]) == 2


def test_awards_are_exported_with_cells_that_are_no_formulas(
    months: Months, run: Run, tmp_path: Path
) -> None:
    by = ("--reason", "prizes", "--actor", "ann")
    run("award", "make", "b", "month", "=medal", "--ranks", "1-5", *by)
    months.submit(("x1", "=A", 99), ("x2", "-B", -8))
    months.close()
    sheet, lines = tmp_path / "awards.csv", tmp_path / "awards.ndjson"

    told = [
        app.run(["award", "export", "b", "2024-06", "-o", str(sheet)]),
        app.run(["award", "export", "-o", str(lines), "--format", "ndjson", "--after", "4"]),
    ]

    assert told == [0, 0]
    with sheet.open(newline="") as file:
        rows = [(row["member"], row["rule"], row["score"]) for row in csv.DictReader(file)]
    assert rows == [
        (member, "'=medal", score)
        for member, score in (("'=A", "99"), ("B", "9"), ("A", "5"), ("C", "1"), ("'-B", "-8"))
    ]
    (last,) = [json.loads(line) for line in lines.read_text().splitlines()]
    assert (last["member"], last["change"], last["state"]) == ("-B", "5", "given")

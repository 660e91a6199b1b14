"""A season as a file: whole, in order, from one snapshot, safe to open, and read back."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.projection.pipeline import Pipeline
from truerank.cli.app import run
from truerank.exporting import csv_lines, event_ids_of, export_rows, ndjson_lines
from truerank.intake.lines import Malformed, Naming, Row, read_events
from truerank.model import Numbering, ScoreEvent, TieBreak

NAMES = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "'quoted", "''twice", "plain", "a,b\n=c"]


def exported(pipeline: Pipeline, key: str, **how: Any) -> list[Any]:
    assert pipeline.settings.database_url is not None
    board, season = pipeline.client.board(key), pipeline.client.season(key)
    return list(export_rows(pipeline.settings.database_url, board, season, **how))


def test_a_file_holds_every_member_in_order_with_exact_numbers(idle: Pipeline) -> None:
    idle.client.create_board(
        "laps", operator="best", order="asc", decimals=3, tie_breaks=[TieBreak(name="hits")]
    )
    for i, (member, value, hits) in enumerate(
        [("ada", "61.5", 2), ("bao", "61.5", 2), ("cid", "-0.001", 0)]
    ):
        idle.client.submit_score("laps", event_id=f"e{i}", member=member, value=value, ties=[hits])

    rows = exported(idle, "laps")
    ordinal = exported(idle, "laps", numbering=Numbering.ORDINAL)

    assert [(row.rank, row.member, row.score, row.ties) for row in rows] == [
        (1, "cid", "-0.001", (0,)),
        (2, "ada", "61.500", (2,)),
        (2, "bao", "61.500", (2,)),
    ]
    assert [row.rank for row in ordinal] == [1, 2, 3]
    standing = idle.client.standing("laps", "ada")
    assert standing is not None
    assert (rows[1].version, rows[1].reached_at) == (standing.version, standing.reached_at)
    board, season = idle.client.board("laps"), idle.client.season("laps")
    (first, *_) = ndjson_lines(board, season, rows)
    assert json.loads(first)["ties"] == {"hits": "0"}


def test_a_file_is_numbered_as_asked(idle: Pipeline) -> None:
    for member, value in (("ann", 101), ("bob", 100), ("cid", 100), ("dan", 99)):
        idle.client.submit_score("b", event_id=member, member=member, value=value)

    ranks = {how: [row.rank for row in exported(idle, "b", numbering=how)] for how in Numbering}

    assert ranks == {
        Numbering.ORDINAL: [1, 2, 3, 4],
        Numbering.COMPETITION: [1, 2, 2, 4],
        Numbering.DENSE: [1, 2, 2, 3],
    }


def test_a_file_of_many_slices_repeats_and_loses_nobody_while_scores_change(
    idle: Pipeline,
) -> None:
    members = [f"m{i:05}" for i in range(10_001)]
    events = [
        ScoreEvent(event_id=f"e{i}", member=member, value=i % 7) for i, member in enumerate(members)
    ]
    for at in range(0, len(events), 1000):
        idle.client.submit_scores("b", events[at : at + 1000])
    assert idle.settings.database_url is not None
    board, season = idle.client.board("b"), idle.client.season("b")
    rows = export_rows(idle.settings.database_url, board, season)

    seen = [next(rows)]
    idle.submit("b", {"m10000": 1000, "m00006": -1000, "new": 3})
    seen += list(rows)

    assert sorted(row.member for row in seen) == sorted([*members, "ann"])
    scores = [int(row.score) for row in seen]
    assert scores == sorted(scores, reverse=True)


def test_cells_are_inert_in_a_spreadsheet_numbers_stay_numbers_and_import_reads_them_back(
    idle: Pipeline,
) -> None:
    idle.client.create_board("odd", seasons=["all"])
    idle.submit("odd", {name: -5 - i for i, name in enumerate(NAMES)})
    board, season = idle.client.board("odd"), idle.client.season("odd")

    installation = idle.client.installation()
    content = b"".join(csv_lines(board, exported(idle, "odd"), installation=installation))
    ndjson = [json.loads(line) for line in ndjson_lines(board, season, exported(idle, "odd"))]

    table = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    cells = [row["member"] for row in table]
    assert not [cell for cell in cells if cell[0] in "=+-@\t\r"]
    assert [row["points"] for row in table] == [str(-5 - i) for i in range(len(NAMES))]
    own = event_ids_of(installation)
    back = list(read_events(io.BytesIO(content), Naming(board="copy", exported=own)))
    assert [row.event.member for row in back if isinstance(row, Row)] == NAMES
    assert [line["member"] for line in ndjson] == NAMES


def test_the_command_writes_a_file_that_the_import_takes_in(
    idle: Pipeline,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TRUERANK_DATABASE_URL", str(idle.settings.database_url))
    monkeypatch.setenv("TRUERANK_REDIS_URL", str(idle.settings.redis_url))
    idle.client.create_board("odd", seasons=["all"])
    idle.submit("odd", {name: i for i, name in enumerate(NAMES)})
    idle.client.create_board("copy", seasons=["all"])
    file = tmp_path / "odd.csv"

    for arguments in (
        ["export", "odd", "--output", str(file)],
        ["import", str(file), "--board", "copy", "--exported", "--no-wait"],
    ):
        assert run(arguments) == 0

    assert "10 members of odd, season all, as of" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [file]
    assert [(row.rank, row.member, row.score) for row in exported(idle, "copy")] == [
        (row.rank, row.member, row.score) for row in exported(idle, "odd")
    ]


@pytest.mark.parametrize("named", [None, "odd"])
def test_an_export_is_not_taken_into_the_board_that_it_comes_from(
    idle: Pipeline, named: str | None
) -> None:
    idle.client.create_board("odd", seasons=["all"])
    idle.submit("odd", {"=ann": 1})
    installation = idle.client.installation()
    content = b"".join(
        csv_lines(idle.client.board("odd"), exported(idle, "odd"), installation=installation)
    )

    def read(own: str) -> Any:
        (line,) = read_events(io.BytesIO(content), Naming(board=named, exported=own))
        return line

    own, other = read(event_ids_of(installation)), read(event_ids_of("another installation"))

    assert isinstance(own, Malformed)
    assert own.code == "event_id_invalid"
    assert (other.board, other.event.member) == ("odd", "=ann")


def test_a_file_that_cannot_be_written_is_told(
    idle: Pipeline,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TRUERANK_DATABASE_URL", str(idle.settings.database_url))
    monkeypatch.setenv("TRUERANK_REDIS_URL", str(idle.settings.redis_url))

    assert run(["export", "b", "--output", str(tmp_path / "missing" / "b.csv")]) == 1

    assert "error[file_unusable]" in capsys.readouterr().err


def test_an_empty_season_is_a_file_with_a_header(idle: Pipeline) -> None:
    idle.client.create_board("empty", seasons=["all"])
    board = idle.client.board("empty")

    assert b"".join(csv_lines(board, exported(idle, "empty"), installation="x")) == (
        b"event_id,board,rank,member,points,occurred_at\r\n"
    )

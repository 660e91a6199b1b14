"""A season as a file: whole, in order, from one snapshot, safe to open, and read back."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

import truerank
from tests.projection.pipeline import Pipeline, wait_until
from truerank import aio
from truerank.cli.app import run
from truerank.errors import BoardUnknown, DatabaseUnavailable, InvalidInput
from truerank.exporting import ROWS, Export, event_ids_of
from truerank.intake.lines import Malformed, Naming, Row, read_events
from truerank.intake.load import Loader
from truerank.intake.objects import read_objects
from truerank.model import Numbering, Order, ScoreEvent, TieBreak
from truerank.read.exported import Wish

FORMATS = pytest.mark.parametrize("kind", ["csv", "ndjson"])
# What spreadsheets, quotes and scripts make of ids.
NAMES = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "'quoted", "''twice", "plain", "a,b\n=c"]
ODD = [
    *NAMES,
    'a "b" \\ c',
    "\u2028",
    "e\u0301",
    "é",
    "null",
    "007",
    " ",
    "\U0001f600",
    "-0.5",
    "{}",
]


def exported(pipeline: Pipeline, key: str, **how: Any) -> list[Any]:
    return list(pipeline.client.export(key, **how))


# What keeps old rows for a snapshot, whether or not it reads at the moment.
_OPEN = """
    SELECT count(*) FROM pg_stat_activity
    WHERE application_name = 'truerank export' AND datname = current_database()
      AND backend_xmin IS NOT NULL AND pid <> pg_backend_pid()"""


def snapshots(pipeline: Pipeline) -> int:
    """How many exports keep a snapshot open."""
    row = pipeline.conn.execute(_OPEN).fetchone()
    assert row is not None
    return int(row[0])


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
    (first, *_) = exported(idle, "laps", format="ndjson")
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
    with idle.client.export("b") as export:
        rows = iter(export)

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

    content = b"".join(exported(idle, "odd", format="csv"))
    ndjson = [json.loads(line) for line in exported(idle, "odd", format="ndjson")]

    table = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    cells = [row["member"] for row in table]
    assert not [cell for cell in cells if cell[0] in "=+-@\t\r"]
    assert [row["points"] for row in table] == [str(-5 - i) for i in range(len(NAMES))]
    own = event_ids_of(idle.client.installation())
    back = list(read_events(io.BytesIO(content), Naming(board="copy", exported=own)))
    assert [row.event.member for row in back if isinstance(row, Row)] == NAMES
    assert [line["member"] for line in ndjson] == NAMES


@FORMATS
def test_the_command_writes_a_file_that_the_import_takes_in(
    idle: Pipeline,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: Any,
) -> None:
    monkeypatch.setenv("TRUERANK_DATABASE_URL", str(idle.settings.database_url))
    monkeypatch.setenv("TRUERANK_REDIS_URL", str(idle.settings.redis_url))
    ties = [TieBreak(name="hits"), TieBreak(name="=misses, all", order=Order.ASC)]
    for key in ("=odd", "copy"):
        idle.client.create_board(
            key, operator="latest", seasons=["all"], decimals=3, tie_breaks=ties
        )
    scores = ["-9223372036854775.808", "9223372036854775.807", "-0.001", "0"]
    for i, name in enumerate(ODD):
        idle.client.submit_score(
            "=odd",
            event_id=f"e{i}",
            member=name,
            value=scores[i % len(scores)],
            ties=[i % 2, -i - (2**62)],
            occurred_at=datetime(1969, 12, 31, 23, 59, 59, i, UTC),
        )
    file = tmp_path / f"odd.{kind}"
    back = ["import", str(file), "--board", "copy", "--exported", "--no-wait"]

    assert run(["export", "=odd", "--output", str(file), "--format", kind]) == 0
    assert f"{len(ODD)} members of =odd, season all, as of" in capsys.readouterr().err
    first, again = (run(back), run([*back, "--format", kind, "--json"]))

    assert (first, again) == (0, 0)
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["applied"], told["duplicate"], told["lines"]) == (0, len(ODD), len(ODD))
    assert list(tmp_path.iterdir()) == [file]
    copied, origin = (
        [(row.rank, row.member, row.score, row.ties, row.reached_at) for row in exported(idle, key)]
        for key in ("copy", "=odd")
    )
    assert copied == origin
    assert len({(row[3], row[4]) for row in origin}) == len(ODD)


@FORMATS
def test_fields_in_another_order_give_every_tie_break_its_own_value(
    idle: Pipeline, kind: Any
) -> None:
    ties = [TieBreak(name="=z"), TieBreak(name="a", order=Order.ASC)]
    for key, named in (("b0", ties), ("copy", ties), ("others", [TieBreak(name="x"), ties[1]])):
        idle.client.create_board(key, seasons=["all"], tie_breaks=named)
    idle.client.submit_score("b0", event_id="e", member="ann", value=1, ties=[5, -7])
    content = b"".join(exported(idle, "b0", format=kind)).decode()
    if kind == "csv":
        (header, values) = csv.reader(io.StringIO(content, newline=""))
        order = sorted(range(len(header)), key=lambda at: header[at], reverse=True)
        moved = "\n".join(",".join(row[at] for at in order) for row in (header, values))
        assert header.index("tie a") > [name[:5] for name in header].index("tie '")
    else:
        moved = json.dumps(json.loads(content) | {"ties": {"a": "-7", "=z": "5"}})
    read_back: Any = read_events if kind == "csv" else read_objects
    own = event_ids_of(idle.client.installation())

    loader = Loader(idle.client)
    for key in ("copy", "others"):
        loader.load(read_back(io.BytesIO(moved.encode()), Naming(board=key, exported=own)))

    assert [row.ties for row in exported(idle, "copy")] == [(5, -7)]
    assert dict(loader.summary.refused) == {"ties_invalid": 1}
    assert "the board's x, a" in loader.summary.problems[0].message


@FORMATS
@pytest.mark.parametrize("named", [None, "odd"])
def test_an_export_is_not_taken_into_the_board_that_it_comes_from(
    idle: Pipeline, named: str | None, kind: Any
) -> None:
    idle.client.create_board("odd", seasons=["all"])
    idle.submit("odd", {"=ann": 1})
    installation = idle.client.installation()
    content = b"".join(exported(idle, "odd", format=kind))
    read_back = {"csv": read_events, "ndjson": read_objects}[kind]

    def read(own: str) -> Any:
        (line,) = read_back(io.BytesIO(content), Naming(board=named, exported=own))
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

    assert exported(idle, "empty", format="csv") == [
        b"event_id,board,rank,member,points,occurred_at,season,as_of,epoch\r\n"
    ]
    assert exported(idle, "empty", format="ndjson") == []


def test_every_row_says_its_season_its_instant_and_its_epoch(idle: Pipeline) -> None:
    idle.client.create_board("odd", seasons=[])
    begins, ends = datetime.now(UTC) - timedelta(days=1), datetime.now(UTC) + timedelta(days=1)
    idle.client.create_season("odd", "=a, b", begins, ends)
    idle.submit("odd", {"ann": 1})
    before = datetime.now(UTC)

    with idle.client.export("odd", format="csv") as csv_file:
        table = b"".join(csv_file).decode()
    with idle.client.export("odd", "=a, b", format="ndjson") as ndjson_file:
        (line,) = ndjson_file

    (row,) = csv.DictReader(io.StringIO(table, newline=""))
    for told, head in ((row, csv_file.head), (json.loads(line), ndjson_file.head)):
        assert before <= head.as_of <= datetime.now(UTC)
        assert datetime.fromisoformat(told["as_of"]) == head.as_of
        assert told["epoch"] == idle.client.top("odd").freshness.epoch
        assert (head.season.label, head.season.state) == ("=a, b", "open")
    assert (row["season"], json.loads(line)["season"]) == ("'=a, b", "=a, b")


def test_an_export_is_as_of_an_instant_before_its_snapshot(idle: Pipeline) -> None:
    (receipt,) = idle.submit("b", {"bob": 5})
    del receipt

    with idle.client.export("b") as export:
        idle.submit("b", {"cid": 5})
        rows = list(export)

    standing = idle.client.standing("b", "cid")
    assert standing is not None
    assert [row.member for row in rows] == ["ann", "bob"]
    assert export.head.as_of < standing.reached_at


def test_the_transaction_ends_with_the_last_row_and_with_the_block(idle: Pipeline) -> None:
    idle.submit("b", {"bob": 5})

    with idle.client.export("b") as read_to_its_end:
        assert snapshots(idle) == 1
        list(read_to_its_end)
        ended_with_the_rows = snapshots(idle)
    with idle.client.export("b") as left_early:
        next(iter(left_early))
    for _ in idle.client.export("b"):
        break

    assert ended_with_the_rows == 0
    wait_until(lambda: snapshots(idle) == 0, "no snapshot is open")


async def test_the_asynchronous_client_exports_the_same(idle: Pipeline) -> None:
    idle.submit("b", {f"m{i:04}": i % 7 for i in range(2500)})  # of more than one slice
    async with aio.Truerank(idle.settings) as client:
        rows = [row async for row in client.export("b", numbering="dense")]
        async with client.export("b", format="csv") as export:
            lines = [line async for line in export]
            head = export.head
        async with client.export("b") as left_early:
            async for _ in left_early:
                break
        with pytest.raises(BoardUnknown):
            await client.export("nowhere").__aenter__()

    assert rows == exported(idle, "b", numbering="dense")
    without_instant = [line.rpartition(b",all,")[0] for line in lines[1:]]
    assert without_instant == [
        line.rpartition(b",all,")[0] for line in exported(idle, "b", format="csv")[1:]
    ]
    assert head.board == idle.client.board("b")
    wait_until(lambda: snapshots(idle) == 0, "no snapshot is open")


def test_what_cannot_be_exported_is_told(idle: Pipeline) -> None:
    client = idle.client
    with pytest.raises(InvalidInput) as no_format:
        client.export("b", format="xml")  # type: ignore[call-overload]
    with pytest.raises(InvalidInput) as no_settlement:
        client.export("b", revision=1)
    with pytest.raises(BoardUnknown):
        list(client.export("nowhere"))
    away = msgspec.structs.replace(idle.settings, database_url="postgresql:///x?host=/nonexistent")

    assert (no_format.value.field, no_settlement.value.field) == ("format", "revision")
    with truerank.Truerank(away) as nobody, pytest.raises(DatabaseUnavailable):
        list(nobody.export("b"))


def test_a_connection_that_is_lost_on_the_way_ends_the_export_with_an_error(
    idle: Pipeline,
) -> None:
    idle.submit("b", {f"m{i:04}": i for i in range(10)})
    with Export(idle.settings, Wish(board="b"), ROWS, rows_per_slice=2) as export:
        rows = iter(export)
        next(rows)
        idle.conn.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE application_name = 'truerank export' AND datname = current_database()"
            " AND pid <> pg_backend_pid()"
        )

        with pytest.raises(DatabaseUnavailable):
            list(rows)

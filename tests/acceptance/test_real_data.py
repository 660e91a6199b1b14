"""Twenty years of completions on ten boards, imported as a user would, against a plain count.

The count below shares no code with the package: it reads the file with the standard library, and
the order of equals is that of the design: the instant the score was reached, then the line.
"""

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest

from tests.cli.commands import Command
from tests.faults.pooler import entrance
from truerank.client import Truerank
from truerank.embedded import start_engines
from truerank.local import prepared, running_worker
from truerank.settings import Settings

_FILE = "completions.csv.gz"
_EVENTS = 49_042
_BOARDS = 10
_RANKINGS = 5_385
_YEAR = timedelta(days=365)
_SETTINGS = ("--zone", "Europe/Berlin", "--seasons", "all,week,month", "--operator", "sum")
_FINGERPRINT = """
    SELECT (SELECT count(*) FROM truerank.event), (SELECT count(*) FROM truerank.outbox),
           md5(string_agg(s::text, E'\n' ORDER BY s.ranking, s.member COLLATE "C"))
    FROM truerank.standing AS s"""

pytestmark = pytest.mark.timeout(300)

Ranking = tuple[str, str]  # board, season
Rows = list[tuple[int, str, str]]  # rank, member, score


@dataclass(frozen=True)
class Imported:
    """The real file, taken in twice by the command line, and a client for what came of it."""

    first: dict[str, Any]
    second: dict[str, Any]
    fingerprints: tuple[object, object]  # of the database, after each import
    client: Truerank


@pytest.fixture(scope="module")
def file(data_dir: Path) -> Path:
    """The real file, which is not part of the repository."""
    if not (data_dir / _FILE).is_file():
        pytest.skip(f"no {_FILE} in {data_dir}")
    return data_dir / _FILE


@pytest.fixture(scope="module")
def imported(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imported]:
    truerank = Command(None)
    data = tmp_path_factory.mktemp("real") / "data"
    with start_engines(data, durable=False) as engines, entrance(engines) as way_in:
        prepared(engines, Settings())
        settings = Settings(database_url=way_in(engines.database_url), redis_url=engines.redis_url)
        stores = {
            "TRUERANK_DATABASE_URL": str(settings.database_url),
            "TRUERANK_REDIS_URL": engines.redis_url,
        }
        summaries, fingerprints = [], []
        with running_worker(settings), Truerank(settings) as client:
            for _ in range(2):
                done = truerank(
                    "import", str(file), "--create-boards", *_SETTINGS, "--json", **stores
                )
                assert done.status == 0, done.err
                summaries.append(done.json)
                with psycopg.connect(engines.database_url) as conn:
                    fingerprints.append(conn.execute(_FINGERPRINT).fetchone())
            yield Imported(
                first=summaries[0],
                second=summaries[1],
                fingerprints=(fingerprints[0], fingerprints[1]),
                client=client,
            )


@pytest.fixture(scope="module")
def counted(file: Path) -> dict[Ranking, Rows]:
    """Every ranking of the file, complete and in order, counted in plain Python."""
    zone = ZoneInfo("Europe/Berlin")
    scores: dict[Ranking, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    reached: dict[Ranking, dict[str, tuple[datetime, int]]] = defaultdict(dict)
    with gzip.open(file, "rt", encoding="utf-8", newline="") as text:
        for line, row in enumerate(csv.DictReader(text)):
            at = datetime.fromisoformat(row["occurred_at"])
            local = at.astimezone(zone)
            year, week, _ = local.isocalendar()
            points = int(row["points"])
            assert points != 0, "an event of 0 would not move the instant"
            for season in ("all", f"{year}-W{week:02}", f"{local:%Y-%m}"):
                ranking, member = (row["board"], season), row["member"]
                scores[ranking][member] += points
                latest = reached[ranking].get(member)
                if latest is None or (at, line) > latest:
                    reached[ranking][member] = (at, line)
    return {ranking: _ranked(members, reached[ranking]) for ranking, members in scores.items()}


def _ranked(scores: dict[str, int], reached: dict[str, tuple[datetime, int]]) -> Rows:
    order = sorted(scores, key=lambda member: (-scores[member], reached[member], member.encode()))
    rows: Rows = []
    for place, member in enumerate(order, 1):
        shared = rows and rows[-1][2] == str(scores[member])
        rows.append((rows[-1][0] if shared else place, member, str(scores[member])))
    return rows


def test_every_line_goes_in_and_makes_ten_boards(imported: Imported) -> None:
    first = imported.first

    assert (first["lines"], first["applied"]) == (_EVENTS, _EVENTS)
    assert len(first["boards_created"]) == _BOARDS
    assert first["visible"] is True


def test_a_second_import_finds_only_duplicates_and_changes_no_standing_and_no_version(
    imported: Imported,
) -> None:
    second = imported.second

    assert (second["lines"], second["duplicate"], second["applied"]) == (_EVENTS, _EVENTS, 0)
    assert imported.fingerprints[0] == imported.fingerprints[1]


def test_every_season_that_the_file_touches_exists_and_no_other(
    imported: Imported, counted: dict[Ranking, Rows]
) -> None:
    client = imported.client

    found = [
        (board.spec.key, season.label)
        for board in client.boards()
        for offset in (0, 1000, 2000)
        for season in client.seasons(board.spec.key, offset=offset)
    ]

    assert len(found) == _RANKINGS
    assert set(found) == set(counted)


@pytest.mark.parametrize("source", ["projection", "database"])
def test_every_total_and_every_place_is_that_of_a_plain_count(
    imported: Imported, counted: dict[Ranking, Rows], source: str
) -> None:
    wrong = []
    for (board, season), rows in counted.items():
        page = imported.client.top(board, season, limit=1000, source=source)
        found = [(entry.rank, entry.member, entry.score) for entry in page.entries]
        if page.freshness.source != source or page.total != len(rows) or found != rows[:1000]:
            wrong.append((board, season, found[:10], rows[:10]))

    assert sum(len(rows) > 1000 for rows in counted.values()) == 0, "read further pages as well"
    assert not wrong, f"{len(wrong)} of {len(counted)} rankings differ, such as {wrong[0]}"


def test_the_history_of_now_is_what_the_standings_say_and_was_empty_before(
    imported: Imported, counted: dict[Ranking, Rows]
) -> None:
    now = datetime.now(UTC)
    boards = sorted({board for board, _ in counted})

    for board in boards:
        page = imported.client.top(board, "all", as_of=now, since=now - _YEAR, limit=1000)
        found = [(entry.rank, entry.member, entry.score) for entry in page.entries]
        assert found == counted[board, "all"]
        assert {entry.rank_before for entry in page.entries} == {None}, "it was imported just now"

"""The four tests of the field: equal leaders, deleted users, a season's end, rebuild in traffic."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from truerank.client import Truerank
from truerank.errors import EventRefused, NotSettled
from truerank.local import running_worker
from truerank.model import Numbering, Page, Receipt, Source
from truerank.repair.rebuild import ask_rebuilds, rebuild_states
from truerank.settings import Settings

BY: dict[str, Any] = {"actor": "ops", "reason": "a test of the field"}
STORES = list(Source)
_DEADLINE_S = 60.0
_WRITES_MAX = 3000


@pytest.fixture
def tr(database_url: str, redis_url: str) -> Iterator[Truerank]:
    settings = Settings(database_url=database_url, redis_url=redis_url, board_cache_ms=1)
    with running_worker(settings), Truerank(settings) as client:
        yield client


def submit(tr: Truerank, board: str, *scores: tuple[str, str, int]) -> None:
    """Commit (event id, member, value) one after the other, and wait until all are shown."""
    receipts = [
        tr.submit_score(board, event_id=event_id, member=member, value=value)
        for event_id, member, value in scores
    ]
    show(tr, board, receipts[-1])


def show(tr: Truerank, board: str, receipt: Receipt) -> None:
    assert receipt.token is not None
    tr.wait_visible(receipt.token, [board])


def rows(page: Page) -> list[tuple[int, str, str]]:
    return [(entry.rank, entry.member, entry.score) for entry in page.entries]


@pytest.mark.parametrize("source", STORES)
def test_three_equal_leaders_share_the_first_rank_in_the_order_they_came(
    tr: Truerank, source: Source
) -> None:
    tr.create_board("b", seasons=["all"], dense=True)
    submit(
        tr, "b", ("1", "zoe", 9), ("2", "ann", 9), ("3", "moe", 4), ("4", "moe", 5), ("5", "kim", 1)
    )

    ranks = {how: rows(tr.top("b", numbering=how, source=source)) for how in Numbering}

    order = ["zoe", "ann", "moe", "kim"]  # moe reached 9 last
    assert all([member for _, member, _ in table] == order for table in ranks.values())
    assert [rank for rank, _, _ in ranks[Numbering.COMPETITION]] == [1, 1, 1, 4]
    assert [rank for rank, _, _ in ranks[Numbering.DENSE]] == [1, 1, 1, 2]
    assert [rank for rank, _, _ in ranks[Numbering.ORDINAL]] == [1, 2, 3, 4]
    (own,) = tr.place("b", "moe", source=source).places
    assert (own.rank, own.score) == (1, "9")


@pytest.mark.parametrize("source", STORES)
def test_a_deleted_user_is_nowhere_and_begins_at_zero_when_it_comes_back(
    tr: Truerank, source: Source
) -> None:
    tr.create_board("b", seasons=["all"])
    submit(tr, "b", ("1", "ann", 9), ("2", "bob", 7), ("3", "cid", 5))

    tr.delete_member("ann", **BY)

    assert rows(tr.top("b", source=source)) == [(1, "bob", "7"), (2, "cid", "5")]
    page = tr.around("b", "bob", source=source)
    assert ([entry.member for entry in page.around], page.total) == (["bob", "cid"], 2)
    assert [place.rank for place in tr.places("b", ["ann", "cid"], source=source).places] == [
        None,
        2,
    ]
    again = tr.submit_score("b", event_id="1", member="ann", value=9)
    assert again.outcome == "duplicate", "what was counted once stays counted once"
    submit(tr, "b", ("4", "ann", 6))
    assert rows(tr.top("b", source=source)) == [(1, "bob", "7"), (2, "ann", "6"), (3, "cid", "5")]


def test_a_week_ends_once_and_the_next_begins_by_itself(tr: Truerank) -> None:
    tr.create_board("b", seasons=["week"], zone="Europe/Berlin")
    monday = datetime(2026, 8, 30, 22, 0, tzinfo=UTC)  # 00:00 in Berlin
    before, after = monday - timedelta(microseconds=1), monday
    receipts = [
        tr.submit_score("b", event_id=event_id, member=member, value=value, occurred_at=at)
        for event_id, member, value, at in (
            ("1", "ann", 5, before),
            ("2", "bob", 3, before),
            ("3", "bob", 8, after),
        )
    ]
    show(tr, "b", receipts[-1])
    old = [(1, "ann", "5"), (2, "bob", "3")]

    assert rows(tr.top("b", "2026-W35")) == old
    assert rows(tr.top("b", "2026-W36")) == [(1, "bob", "8")]
    with pytest.raises(NotSettled):
        tr.top("b", "2026-W35", consistency="settled")
    states = {str(tr.close_season("b", "2026-W35", actor="ops").state) for _ in range(2)}
    assert states == {"final"}
    assert rows(tr.top("b", "2026-W35", consistency="settled")) == old
    assert len(tr.settlements("b", "2026-W35")) == 1
    with pytest.raises(EventRefused) as late:
        tr.submit_score("b", event_id="4", member="bob", value=9, occurred_at=before)
    assert late.value.reason == "season_final"
    assert rows(tr.top("b", "2026-W35", source="database")) == old
    assert rows(tr.top("b", "2026-W36", source="database")) == [(1, "bob", "8")]


def test_a_rebuild_in_traffic_loses_nothing_and_shows_no_step_back(tr: Truerank) -> None:
    tr.create_board("b", seasons=["all"])
    submit(tr, "b", *((f"first {n}", f"m{n}", n) for n in range(50)))
    done = threading.Event()
    written: list[int] = []

    def write() -> None:
        while not done.is_set() and len(written) < _WRITES_MAX:
            number = len(written)
            tr.submit_score("b", event_id=f"e{number}", member=f"m{number % 50}", value=1)
            written.append(number)

    writer = threading.Thread(target=write)
    before = tr.top("b", source="projection").freshness.generation
    totals, ticks = [], []
    writer.start()
    try:
        group = tr.board("b").group
        asked = tr.run(ask_rebuilds([group], actor="ops", throttled=False))
        deadline = datetime.now(UTC) + timedelta(seconds=_DEADLINE_S)
        while not all(each.ended for each in tr.run(rebuild_states(asked))):
            page = tr.top("b", limit=50, source="projection")
            totals.append(sum(int(entry.score) for entry in page.entries))
            ticks.append(int(page.freshness.tick or 0))
            assert datetime.now(UTC) < deadline
    finally:
        done.set()
        writer.join()

    assert [each.state for each in tr.run(rebuild_states(asked))] == ["switched"]
    page = tr.top("b", source="projection")
    assert page.freshness.generation != before
    assert totals == sorted(totals), "scores only ever rise here"
    assert ticks == sorted(ticks)
    show(tr, "b", tr.submit_score("b", event_id="last", member="m0", value=1))
    shown, true = (tr.top("b", limit=50, source=source) for source in STORES)
    assert rows(shown) == rows(true)
    assert sum(int(score) for _, _, score in rows(true)) == sum(range(50)) + len(written) + 1

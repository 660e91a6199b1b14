"""What is authoritative or settled tells nothing that was remembered."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

import truerank
from tests.projection.pipeline import Pipeline
from truerank.errors import BoardUnknown, CursorGone, NotSettled
from truerank.model import Page

BY: dict[str, Any] = {"actor": "ops", "reason": "test"}


@pytest.fixture
def reader(stopped: Pipeline) -> Iterator[truerank.Truerank]:
    """Another process, which remembers boards and seasons for the length of the test."""
    settings = msgspec.structs.replace(stopped.settings, board_cache_ms=60_000)
    with truerank.Truerank(settings) as client:
        yield client


@pytest.fixture
def cup(stopped: Pipeline) -> truerank.Truerank:
    """Who has made a season that is over, and may close it."""
    begins, ends = (datetime(2024, 5, day, tzinfo=UTC) for day in (1, 8))
    stopped.client.create_season("b", "cup", begins, ends)
    stopped.client.submit_score(
        "b", event_id="in the cup", member="ann", value=5, occurred_at=begins
    )
    return stopped.client


def told(page: Page) -> tuple[str, int | None, bool]:
    return page.state, page.revision, page.settled_at is not None


def test_a_season_that_another_process_closed_is_final(
    reader: truerank.Truerank, cup: truerank.Truerank
) -> None:
    before = reader.top("b", "cup", consistency="authoritative")
    with pytest.raises(NotSettled):
        reader.top("b", "cup", consistency="settled")
    cup.close_season("b", "cup", **BY)

    after = reader.top("b", "cup", consistency="authoritative")
    settled = reader.top("b", "cup", consistency="settled")

    assert told(before) == ("open", None, False)
    assert told(after) == told(settled) == ("final", 1, True)
    assert [entry.score for entry in after.entries] == ["5"]


def test_a_board_that_another_process_deleted_is_none(
    reader: truerank.Truerank, cup: truerank.Truerank
) -> None:
    cup.close_season("b", "cup", **BY)
    for need in ("authoritative", "settled"):
        assert reader.top("b", "cup", consistency=need).entries
    cup.delete_board("b", **BY)

    for need in ("authoritative", "settled"):
        with pytest.raises(BoardUnknown):
            reader.top("b", "cup", consistency=need)
        with pytest.raises(BoardUnknown):
            reader.histogram("b", [1], "cup", consistency=need)


def test_a_board_made_anew_under_the_key_of_another_is_the_new_one(
    reader: truerank.Truerank, cup: truerank.Truerank
) -> None:
    cup.submit_score("b", event_id="second", member="bob", value=3)
    first = reader.top("b", limit=1, consistency="authoritative")
    cup.delete_board("b", **BY)
    cup.create_board("b", seasons=["all"], order="asc", decimals=1)
    cup.submit_score("b", event_id="third", member="cid", value="0.5")

    page = reader.top("b", consistency="authoritative")
    spread = reader.histogram("b", ["0.4", "0.5"], consistency="authoritative")

    assert [(entry.member, entry.score) for entry in page.entries] == [("cid", "0.5")]
    assert [bucket.members for bucket in spread.buckets] == [0, 0, 1]
    with pytest.raises(CursorGone):
        reader.top("b", cursor=first.next, consistency="authoritative")


def test_a_season_that_another_process_froze_is_shown_as_it_was(
    reader: truerank.Truerank, cup: truerank.Truerank
) -> None:
    assert reader.top("b", consistency="authoritative").freshness.frozen_at is None
    frozen = cup.freeze_season("b", "all", timeout_s=0.0, **BY)
    cup.submit_score("b", event_id="after it", member="ann", value=100)

    page = reader.top("b", consistency="authoritative")

    assert page.freshness.frozen_at == frozen.frozen_at
    assert [entry.score for entry in page.entries] == ["15"]

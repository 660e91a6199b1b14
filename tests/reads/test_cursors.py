"""Pages that go on from a row: nobody who stays is repeated or left out, whoever else moves."""

from base64 import urlsafe_b64encode
from datetime import UTC, datetime

import msgspec
import pytest

from tests.projection.pipeline import Pipeline
from truerank.errors import BoardUnknown, CursorGone, InvalidInput, SeasonUnknown
from truerank.model import Page, ScoreEvent, Source
from truerank.projection.projector import Projector

BOTH = pytest.mark.parametrize("source", Source)
PLAYERS = [f"p{i:03}" for i in range(1, 101)]


@pytest.fixture
def hundred(idle: Pipeline, projector: Projector) -> Pipeline:
    """Board `many`: a hundred players, the first with 10,000 points, each next with 100 less."""
    idle.client.create_board("many", seasons=["all"])
    idle.submit("many", {player: 10_000 - 100 * i for i, player in enumerate(PLAYERS)})
    idle.settle(projector)
    return idle


def names(page: Page) -> list[str]:
    return [entry.member for entry in page.entries]


@BOTH
def test_who_does_not_move_is_shown_once_whoever_else_jumps_while_one_pages(
    hundred: Pipeline, projector: Projector, source: Source
) -> None:
    page = hundred.client.top("many", limit=20, source=source)
    seen = names(page)
    hundred.submit("many", {"p070": 20_000, "p005": -9_500})
    projector.step()

    as_of = {page.freshness.projected_through}
    while page.next is not None:
        page = hundred.client.top("many", limit=20, cursor=page.next, source=source)
        seen += names(page)
        as_of.add(page.freshness.projected_through)

    assert [name for name in seen if name not in {"p070", "p005"}] == [
        name for name in PLAYERS if name not in {"p070", "p005"}
    ]
    assert None not in as_of
    assert len(as_of) > 1


@BOTH
def test_paging_goes_on_from_a_row_that_has_left(
    hundred: Pipeline, projector: Projector, source: Source
) -> None:
    page = hundred.client.top("many", limit=5, source=source)
    hundred.client.void_where("many", member="p005", actor="ann", reason="cheated")
    projector.step()

    page = hundred.client.top("many", limit=2, cursor=page.next, source=source)

    assert [(entry.rank, entry.member) for entry in page.entries] == [(5, "p006"), (6, "p007")]


@BOTH
def test_pages_back_and_forth_are_the_same_when_nothing_moves(
    hundred: Pipeline, source: Source
) -> None:
    first = hundred.client.top("many", limit=20, source=source)
    second = hundred.client.top("many", limit=20, cursor=first.next, source=source)
    again = hundred.client.top("many", limit=20, cursor=second.previous, source=source)

    assert (again.entries, again.next, again.previous) == (
        *(first.entries, first.next, first.previous),
    )
    assert again.previous is None


def test_a_cursor_goes_on_after_redis_lost_everything_and_in_the_other_store(
    hundred: Pipeline, projector: Projector
) -> None:
    first = hundred.client.top("many", limit=20, source=Source.PROJECTION)
    second = hundred.client.top("many", limit=20, cursor=first.next, source=Source.PROJECTION)
    before = hundred.generation()
    hundred.redis.flushdb()
    del projector
    hundred.settle(hundred.projector())

    again = [
        hundred.client.top("many", limit=20, cursor=first.next, source=source) for source in Source
    ]

    assert hundred.generation() != before
    assert [page.freshness.source for page in again] == list(Source)
    assert names(second) == PLAYERS[20:40]
    for page in again:
        assert msgspec.structs.replace(page, freshness=second.freshness) == second


def test_a_page_that_was_begun_in_the_current_season_ends_in_it(
    idle: Pipeline, projector: Projector
) -> None:
    idle.client.create_board("daily", seasons=["day"])
    events = [
        ScoreEvent(
            event_id=f"e{i}",
            member=f"m{i}",
            value=9 - i,
            occurred_at=datetime(2026, 1, 5, tzinfo=UTC),
        )
        for i in range(4)
    ]
    idle.client.submit_scores("daily", events)
    idle.settle(projector)
    first = idle.client.top("daily", "2026-01-05", limit=2)

    # Without a label it would be today's.
    second = idle.client.top("daily", limit=2, cursor=first.next)

    assert (second.season, names(second)) == ("2026-01-05", ["m2", "m3"])


def test_a_cursor_of_another_board_or_season_is_gone(hundred: Pipeline) -> None:
    hundred.client.create_board("other", seasons=["all", "day"])
    cursor = hundred.client.top("many", limit=2).next

    with pytest.raises(CursorGone):
        hundred.client.top("other", cursor=cursor)
    with pytest.raises(CursorGone):
        hundred.client.top("other", "2026-01-05", cursor=cursor)
    hundred.client.create_board("no whole", seasons=["day"])
    with pytest.raises(CursorGone):
        hundred.client.top("no whole", cursor=cursor)
    with pytest.raises(SeasonUnknown):
        hundred.client.top("no whole", "all", cursor=cursor)
    hundred.client.delete_board("many", actor="ann", reason="over")
    with pytest.raises(BoardUnknown):
        hundred.client.top("many", cursor=cursor)
    hundred.client.create_board("many", seasons=["all"])
    hundred.client.create_board("many again", seasons=["all"])
    with pytest.raises(CursorGone):
        hundred.client.top("many", cursor=cursor, source="database")


def packed(fields: list[object]) -> str:
    return urlsafe_b64encode(msgspec.msgpack.encode(fields)).decode().rstrip("=")


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "====", "\N{LATIN SMALL LETTER E WITH ACUTE}", "A" * 2001, packed([])),
        packed(["all", "1", False, b""]),
        packed(["all", 1, False, b"", 1]),
    ],
)
def test_what_is_no_cursor_is_refused(idle: Pipeline, text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        idle.client.top("b", cursor=text)

    assert caught.value.field == "cursor"


@pytest.mark.parametrize("row", [b"", b"x" * 24, b"x" * 24 + b"\xff", b"x" * 24 + b"a\0b"])
def test_a_cursor_whose_row_cannot_be_one_is_refused(idle: Pipeline, row: bytes) -> None:
    ranking = idle.client.season("b").ranking

    with pytest.raises(InvalidInput):
        idle.client.top("b", cursor=packed(["all", ranking, False, row]), source="database")


def test_a_page_starts_at_a_cursor_or_an_offset(hundred: Pipeline) -> None:
    cursor = hundred.client.top("many", limit=2).next

    with pytest.raises(InvalidInput):
        hundred.client.top("many", offset=1, cursor=cursor)

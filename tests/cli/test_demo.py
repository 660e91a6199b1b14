"""The demo is invented, and always the same."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from truerank import demo

_UNTIL = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize("board", demo.BOARDS, ids=lambda board: board.spec.key)
def test_a_demo_made_later_repeats_every_event_of_the_year_that_both_have(
    board: demo.DemoBoard,
) -> None:
    before = {event.event_id: event for event in demo.events(board, _UNTIL)}
    later = {event.event_id: event for event in demo.events(board, _UNTIL + timedelta(days=9))}

    both = before.keys() & later.keys()

    assert len(both) > 0.9 * len(before)
    assert all(before[event_id] == later[event_id] for event_id in both)


@pytest.mark.parametrize("board", demo.BOARDS, ids=lambda board: board.spec.key)
def test_a_demo_has_what_boards_must_bear(board: demo.DemoBoard) -> None:
    events = demo.events(board, _UNTIL)
    times = [event.occurred_at for event in events if event.occurred_at is not None]
    counts = sorted(
        (sum(event.member == member for event in events) for member in {e.member for e in events}),
        reverse=True,
    )

    assert len({event.event_id for event in events}) == len(events) == len(times)
    assert _UNTIL - timedelta(days=demo.DAYS + 2) < min(times) <= max(times) <= _UNTIL
    assert any(one > two for one, two in pairwise(times)), "no late event"
    assert len(set(times)) < len(times), "no two events of one instant"
    assert len({at.utcoffset() for at in times}) >= 10, "few zones"
    assert sum(counts[: len(counts) // 10]) > 0.3 * len(events), "no few who do most"


def test_members_are_all_different_and_some_names_are_long_or_right_to_left() -> None:
    members = [demo.member(place) for place in range(480)]

    assert len(set(members)) == len(members)
    assert any(len(member) > 70 for member in members)
    assert any("\u05d0" <= character <= "\u06ff" for member in members for character in member)

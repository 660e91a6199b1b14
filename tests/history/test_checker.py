"""The checker takes a history that keeps its promises, and none that breaks one."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.history.checker import SETTLED_TICKS_MAX, Snapshot, check, fold
from tests.history.history import (
    Acknowledged,
    Answered,
    Change,
    Event,
    History,
    Marked,
    Sent,
    Source,
)

ALL = 1 << 36 | 1 << 32 | 1 << 31
RACE = 1 << 36 | 6 << 32 | (1 << 31) + 1
SNAPSHOTS = {1: "100:100:", 2: "102:102:", 3: "103:105:103", 4: "107:107:"}


@dataclass
class Story:
    """What happened, and what the database says of it: both may be bent."""

    history: History
    source: Source

    def judged(self) -> set[str]:
        return {violation.invariant for violation in check(self.history, self.source)}


def event(number: int, member: str, value: int, xid: int) -> Event:
    return Event(
        board="b",
        event_id=f"e{number}",
        member=member,
        value=value,
        occurred_us=number * 1000,
        position=number,
        xid=xid,
    )


EVENTS = [
    event(1, "ann", 5, 100),
    event(2, "bob", 3, 101),
    event(3, "ann", 2, 103),
    event(4, "bob", 9, 106),
]
VOID = Event(board="b", event_id="e2", void=True, xid=104)


def change(ranking: int, version: int, xid: int, member: str, *events: int) -> Change:
    """A standing made of some of the events; of none: it went."""
    made_of = [EVENTS[number - 1] for number in events]
    score, key = fold("sum", made_of) if made_of else (None, None)
    return Change(
        ranking=ranking, member=member, version=version, xid=xid, sort_key=key, score=score
    )


CHANGES = [
    change(ALL, 1, 100, "ann", 1),
    change(RACE, 2, 100, "ann", 1),
    change(ALL, 3, 101, "bob", 2),
    change(ALL, 4, 103, "ann", 1, 3),
    change(ALL, 5, 104, "bob"),
    change(ALL, 6, 106, "bob", 4),
]


def acknowledged(
    number: int, xid: int, at: int, member: str, *, score: int | None, version: int | None
) -> Acknowledged:
    return Acknowledged(
        sent_us=at - 5,
        received_us=at,
        board="b",
        event_id=f"e{number}",
        void=xid == 104,
        xid=xid,
        member=member,
        standings=(("all", score, version),),
    )


def answered(at: int, tick: int | None, rows: dict[str, int], **more: Any) -> Answered:
    """An answer of the projection, as of a tick."""
    ranked = sorted(rows.items(), key=lambda row: -row[1])
    return Answered(
        **{
            "session": "s",
            "asked_us": at - 5,
            "sent_us": at - 5,
            "received_us": at,
            "mode": "projection",
            "board": "b",
            "season": "all",
            "source": "projection",
            "generation": "g",
            "tick": tick,
            "total": len(rows),
            "rows": tuple((n, *row) for n, row in enumerate(ranked, 1)),
            **more,
        }
    )


@pytest.fixture
def story() -> Story:
    sent = [
        Sent(
            board="b",
            event_id=e.event_id,
            member=e.member,
            value=e.value,
            occurred_us=e.occurred_us,
        )
        for e in EVENTS
    ]
    return Story(
        History(
            sent=[*sent, Sent(board="b", event_id="e2", void=True)],
            acknowledged=[
                replace(
                    acknowledged(1, 100, 1010, "ann", score=5, version=1),
                    standings=(("all", 5, 1), ("race", 5, 2)),
                ),
                acknowledged(2, 101, 1020, "bob", score=3, version=3),
                acknowledged(2, 104, 1040, "bob", score=None, version=None),
                acknowledged(3, 103, 1050, "ann", score=7, version=4),
                acknowledged(4, 106, 1060, "bob", score=9, version=6),
                replace(acknowledged(1, 100, 1070, "ann", score=7, version=4), outcome="duplicate"),
            ],
            answered=[
                answered(1030, 2, {"ann": 5, "bob": 3}, through_us=1025, staleness_ms=0),
                answered(1045, 2, {"ann": 5}, partial=True),
                answered(1048, 3, {"ann": 5}, through_us=1042, staleness_ms=0),
                answered(1065, 4, {"bob": 9, "ann": 7}, through_us=1062, staleness_ms=0),
                answered(1075, 4, {"ann": 7, "bob": 9}, generation="h", at_least=106),
                answered(1080, 4, {"bob": 9, "ann": 7}, mode="final"),
                answered(1030, 2, {"ann": 5}, season="race"),
                answered(1058, None, {"ann": 7}, source="database", generation=None),
                answered(
                    1056,
                    None,
                    {"ann": 7},
                    source="database",
                    generation=None,
                    snapshot="105:105:",
                    after="103:105:103",
                ),
                answered(
                    1090, 4, {"bob": 9, "ann": 7}, mode="max_age", staleness_ms=3, max_age_ms=5
                ),
            ],
            marked=[
                Marked(kind="stopped", at_us=1070, tick=4),
                Marked(kind="settled", at_us=1075, tick=4),
                Marked(kind="closed", at_us=1025, board="b", season="race", snapshot="102:102:"),
            ],
        ),
        Source(
            boards={"b": (1, "sum")},
            custom={RACE: ("race", 0, 1500)},
            events=[*EVENTS, VOID],
            changes=list(CHANGES),
            outbox=[replace(c, score=None) for c in CHANGES],
            standings=[CHANGES[1], CHANGES[3], CHANGES[5]],
            ticks=dict(SNAPSHOTS),
        ),
    )


def test_a_history_that_keeps_every_promise_is_taken(story: Story) -> None:
    assert check(story.history, story.source) == []


Bend = Callable[[Story], None]
BROKEN: list[tuple[str, str, Bend]] = []


def breaks(invariant: str) -> Callable[[Bend], Bend]:
    """Name the promise that a bent story breaks."""

    def note(bend: Bend) -> Bend:
        BROKEN.append((invariant, bend.__name__, bend))
        return bend

    return note


def bend_answer(story: Story, number: int, **changes: Any) -> None:
    story.history.answered[number] = replace(story.history.answered[number], **changes)


def rows(*shown: tuple[str, int]) -> tuple[tuple[int, str, int], ...]:
    return tuple((n, *row) for n, row in enumerate(shown, 1))


@breaks("I1")
def event_is_counted_twice(story: Story) -> None:
    twice = replace(CHANGES[3], score=9)
    story.source.changes[3] = story.source.standings[1] = twice


@breaks("I1")
def event_is_stored_twice(story: Story) -> None:
    story.source.events.append(EVENTS[0])


@breaks("I1")
def event_was_never_sent(story: Story) -> None:
    del story.history.sent[0]


@breaks("I1")
def event_is_stored_with_another_value(story: Story) -> None:
    story.history.sent[1] = replace(story.history.sent[1], value=4)


@breaks("I1")
def acknowledged_event_is_gone(story: Story) -> None:
    del story.source.events[3]


@breaks("I1")
def event_is_applied_twice(story: Story) -> None:
    repeated = story.history.acknowledged[5]
    story.history.acknowledged[5] = replace(repeated, outcome="applied")


@breaks("I1")
def token_names_another_transaction(story: Story) -> None:
    story.history.acknowledged[4] = replace(story.history.acknowledged[4], xid=105)


@breaks("I1")
def standing_outlives_its_events(story: Story) -> None:
    story.source.standings.append(replace(CHANGES[0], member="cid"))


@breaks("I1")
def standing_is_missing(story: Story) -> None:
    story.source.standings.pop()


@breaks("I1")
def reached_at_is_of_another_event(story: Story) -> None:
    _, wrong = fold("sum", [replace(EVENTS[0], value=7)])
    story.source.standings[1] = replace(CHANGES[3], sort_key=wrong)


@breaks("I2")
def version_is_used_twice(story: Story) -> None:
    story.source.outbox[5] = replace(story.source.outbox[5], version=4)
    story.source.changes[5] = replace(CHANGES[5], version=4)


@breaks("I2")
def version_falls_after_a_removal(story: Story) -> None:
    story.source.outbox[4] = replace(story.source.outbox[4], version=7)


@breaks("outbox")
def change_is_not_logged(story: Story) -> None:
    del story.source.outbox[3]


@breaks("outbox")
def removal_is_not_logged(story: Story) -> None:
    del story.source.outbox[4]


@breaks("outbox")
def log_holds_another_score(story: Story) -> None:
    story.source.outbox[3] = replace(story.source.outbox[3], sort_key=CHANGES[0].sort_key)


@breaks("outbox")
def rolled_back_change_is_logged(story: Story) -> None:
    story.source.outbox.append(replace(story.source.outbox[3], version=9, xid=105))


@breaks("I3")
def answer_is_older_than_its_tick(story: Story) -> None:
    bend_answer(story, 3, rows=rows(("bob", 9), ("ann", 5)))


@breaks("I3")
def answer_lacks_a_member(story: Story) -> None:
    bend_answer(story, 3, rows=rows(("bob", 9)), total=1)


@breaks("I3")
def answer_shows_who_was_removed(story: Story) -> None:
    bend_answer(story, 2, rows=rows(("ann", 5), ("bob", 3)), total=2)


@breaks("I3")
def answer_shows_half_of_the_next_batch_as_whole(story: Story) -> None:
    bend_answer(story, 1, partial=False)


@breaks("I3")
def empty_board_is_shown(story: Story) -> None:
    bend_answer(story, 3, rows=(), total=0)


@breaks("I3")
def total_is_not_that_of_the_rows(story: Story) -> None:
    bend_answer(story, 3, total=3)


@breaks("I3")
def ranks_are_wrong(story: Story) -> None:
    bend_answer(story, 3, rows=((1, "bob", 9), (1, "ann", 7)))


@breaks("I3")
def order_is_wrong(story: Story) -> None:
    bend_answer(story, 3, rows=((1, "ann", 7), (2, "bob", 9)))


@breaks("I3")
def freshness_is_invented(story: Story) -> None:
    bend_answer(story, 2, through_us=1055)


@breaks("I3")
def age_is_too_young(story: Story) -> None:
    bend_answer(story, 2, sent_us=1_000_000, received_us=1_000_005, staleness_ms=1)
    story.history.answered.insert(0, story.history.answered.pop(2))


@breaks("I3")
def age_is_more_than_was_asked_for(story: Story) -> None:
    bend_answer(story, 9, staleness_ms=6)


@breaks("I3")
def database_lacks_what_was_acknowledged(story: Story) -> None:
    bend_answer(story, 7, rows=rows(("ann", 5)))


@breaks("I3")
def database_is_not_of_its_snapshot(story: Story) -> None:
    bend_answer(story, 8, rows=rows(("bob", 9), ("ann", 7)), total=2)


@breaks("I4")
def score_never_was(story: Story) -> None:
    bend_answer(story, 1, rows=rows(("ann", 6)))


@breaks("I4")
def member_never_was(story: Story) -> None:
    bend_answer(story, 1, rows=rows(("ann", 5), ("cid", 1)), total=2)


@breaks("I4")
def score_was_another_members(story: Story) -> None:
    bend_answer(story, 7, rows=rows(("ann", 9)))


@breaks("I4")
def tick_was_never_taken(story: Story) -> None:
    bend_answer(story, 3, tick=9)


@breaks("I4")
def season_never_was(story: Story) -> None:
    bend_answer(story, 6, season="2026-01-01")


@breaks("I4")
def receipt_is_invented(story: Story) -> None:
    story.history.acknowledged[3] = replace(
        story.history.acknowledged[3], standings=(("all", 8, 4),)
    )


@breaks("I5")
def session_goes_back_inside_a_copy(story: Story) -> None:
    story.history.answered.append(answered(1068, 2, {"ann": 5, "bob": 3}))


@breaks("I5")
def session_goes_back_inside_a_batch(story: Story) -> None:
    story.history.answered.append(answered(1046, 2, {"ann": 5, "bob": 3}, partial=True))


@breaks("I5")
def monotonic_answer_is_older_than_the_last(story: Story) -> None:
    bend_answer(story, 8, after="107:107:")


@breaks("I6")
def awaited_write_is_not_shown(story: Story) -> None:
    # As a projection could that was read after a promotion: all it says agrees with itself.
    bend_answer(story, 4, tick=3, rows=rows(("ann", 5)), total=1, session="other")


@breaks("I7")
def ends_are_never_equal(story: Story) -> None:
    del story.history.marked[1]


@breaks("I7")
def it_takes_too_many_ticks(story: Story) -> None:
    last = 5 + SETTLED_TICKS_MAX
    story.source.ticks |= dict.fromkeys(range(5, last + 1), "107:107:")
    story.history.marked[1] = replace(story.history.marked[1], tick=last)


@breaks("I7")
def last_answer_is_old(story: Story) -> None:
    bend_answer(story, 5, tick=2, rows=rows(("ann", 5), ("bob", 3)), session="other")


@breaks("I8")
def switch_takes_a_reader_back(story: Story) -> None:
    bend_answer(story, 4, tick=2, rows=rows(("ann", 5), ("bob", 3)), at_least=None)


@breaks("I8")
def switch_goes_to_a_copy_beside_the_old_one(story: Story) -> None:
    # Neither snapshot contains the other.
    story.source.ticks[5] = "104:104:"
    story.history.answered.append(answered(1049, 5, {"ann": 7, "bob": 3}, generation="h"))


@breaks("I9")
def closed_season_takes_an_event(story: Story) -> None:
    story.history.acknowledged.append(
        Acknowledged(
            sent_us=1030,
            received_us=1035,
            board="b",
            event_id="e1",
            member="ann",
            xid=100,
            standings=(("race", 5, 2),),
        )
    )


@breaks("I9")
def closed_season_changes(story: Story) -> None:
    story.source.changes.append(change(RACE, 9, 105, "ann", 1))


@pytest.mark.parametrize(
    ("invariant", "bend"), [(i, b) for i, _, b in BROKEN], ids=[f"{i}-{n}" for i, n, _ in BROKEN]
)
def test_a_history_is_not_taken_where(story: Story, invariant: str, bend: Bend) -> None:
    bent = deepcopy(story)

    bend(bent)

    assert invariant in bent.judged()


def test_every_promise_is_broken_somewhere() -> None:
    assert {invariant for invariant, _, _ in BROKEN} == {f"I{n}" for n in range(1, 10)} | {"outbox"}


def test_a_redis_that_went_back_may_take_its_readers_back(story: Story) -> None:
    story.history.answered.append(answered(1068, 2, {"ann": 5, "bob": 3}))
    assert story.judged() == {"I5"}

    story.history.marked.append(Marked(kind="went_back", at_us=1066, until_us=1067))

    assert story.judged() == set()


def test_snapshots_are_compared_by_what_they_show() -> None:
    one, other, both = (Snapshot.of(text) for text in ("10:12:10", "11:12:11", "12:12:"))

    assert [one.shows(xid) for xid in (9, 10, 11, 12)] == [True, False, True, False]
    assert both.shows_all_of(one)
    assert not one.shows_all_of(both)
    assert not one.shows_all_of(other)
    assert not other.shows_all_of(one)


@pytest.mark.parametrize(
    ("operator", "values", "score", "reached"),
    [
        ("sum", [5, -5, 0], 0, 2),
        ("sum", [0, 0], 0, 1),
        ("best", [3, 9, 9, 4], 9, 2),
        ("latest", [3, 9, 4, 4], 4, 3),
    ],
)
def test_a_standing_is_what_its_events_give(
    operator: str, values: list[int], score: int, reached: int
) -> None:
    events = [event(n, "ann", value, 100) for n, value in enumerate(values, 1)]

    folded, key = fold(operator, events[::-1])

    assert folded == score
    assert int.from_bytes(key[16:]) - 2**63 == reached

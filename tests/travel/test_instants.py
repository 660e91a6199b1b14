"""What counts at an instant, who is shown, and what is said beside."""

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import psycopg
import pytest

import truerank
from tests.faults.pooler import caller_options
from tests.travel.conftest import AT_ONCE, BY, Past, ranks
from truerank import ScoreEvent
from truerank.errors import Busy, InvalidInput, SeasonUnknown
from truerank.model import Consistency, MemberState, Numbering, Source, TieBreak
from truerank.settings import Settings

DAY = timedelta(days=1)


def test_voids_and_amendments_count_from_when_they_came(past: Past) -> None:
    first = past.scores(("1", "ann", 5), ("2", "bob", 3))
    past.tr.void_events("b", ["1"], **BY)
    voided = past.now()
    past.tr.amend_event("b", "2", 7, correction_id="a1", **BY)
    amended = past.now()
    past.tr.amend_event("b", "2", 9, correction_id="a2", **BY)

    assert past.at(first) == {"ann": "5", "bob": "3"}
    assert past.at(voided) == {"bob": "3"}
    assert past.at(amended) == {"bob": "7"}
    assert past.at(past.now()) == past.at(None) == {"bob": "9"}


def test_a_late_event_counts_from_when_it_came_not_from_when_it_occurred(past: Past) -> None:
    first = past.scores(("1", "ann", 5))
    late = past.scores(("2", "ann", 2), occurred_at=first - DAY)

    assert past.at(first) == {"ann": "5"}
    assert past.at(late) == {"ann": "7"}


def test_what_commits_after_a_freeze_is_behind_it_whenever_it_was_received(past: Past) -> None:
    past.scores(("1", "ann", 5), ("2", "bob", 3))
    info = past.conn.info
    with psycopg.connect(info.dsn, password=info.password, **caller_options()) as other:
        truerank.submit_score(other, "b", ScoreEvent(event_id="3", member="cid", value=9))
        other.execute(
            "SELECT * FROM truerank.correct_events('b', '{1}', '{a}', '{6}', NULL, 'op', 'test')"
        )
        other.execute("SELECT * FROM truerank.void_events('b', '{2}', 'op', 'test')")
        meanwhile = past.now()
        past.tr.freeze_season("b", **BY)

    assert past.at(meanwhile) == {"ann": "5", "bob": "3"}
    past.tr.reveal_season("b", **BY)
    assert past.at(meanwhile) == {"cid": "9", "ann": "6"}


def test_an_event_of_an_open_transaction_counts_as_of_when_it_was_received(past: Past) -> None:
    info = past.conn.info
    with psycopg.connect(info.dsn, password=info.password, **caller_options()) as other:
        truerank.submit_score(other, "b", ScoreEvent(event_id="1", member="ann", value=5))
        meanwhile = past.now()
        assert past.at(meanwhile) == {}

    assert past.at(meanwhile) == {"ann": "5"}


def test_before_a_reset_the_member_has_what_it_had(past: Past) -> None:
    before = past.scores(("1", "ann", 5), ("2", "bob", 3))
    past.tr.reset_member("ann", **AT_ONCE)
    reset = past.now()
    past.scores(("3", "ann", 1))

    assert past.at(before) == {"ann": "5", "bob": "3"}
    assert past.at(reset) == {"bob": "3"}
    assert past.at(past.now()) == {"bob": "3", "ann": "1"}


@pytest.mark.parametrize("board", [None, "b"])
def test_a_deleted_member_is_left_out_of_what_was_before(past: Past, board: str | None) -> None:
    before = past.scores(("1", "ann", 5), ("2", "bob", 3))
    past.tr.delete_member("ann", board=board, **AT_ONCE)
    # What is said of it later doesn't bring back what was.
    past.tr.hide_member("ann", board=board, **AT_ONCE)
    past.tr.show_member("ann", board=board, **AT_ONCE)
    again = past.scores(("3", "ann", 9))

    assert past.at(before) == {"bob": "3"}
    assert past.at(again) == {"ann": "9", "bob": "3"}
    assert past.tr.place("b", "ann", as_of=before).places[0].rank is None


def test_deleted_on_another_board_a_member_is_shown_on_this_one(past: Past) -> None:
    past.tr.create_board("other", seasons=["all"])
    before = past.scores(("1", "ann", 5))
    past.tr.reset_member("ann", **AT_ONCE)
    past.tr.delete_member("ann", board="other", **AT_ONCE)

    assert past.at(before) == {"ann": "5"}


def test_an_erased_member_is_in_no_list_and_has_no_place_by_any_name(past: Past) -> None:
    before = past.scores(("1", "ann", 5), ("2", "bob", 3))
    past.conn.execute("SELECT truerank.erase_member('ann', 'op', 'test')")
    assert past.at(before) == {"bob": "3"}, "at once"
    while past.conn.execute("SELECT 1 FROM truerank.erasure WHERE swept_xid IS NULL").fetchone():
        past.conn.execute("SELECT truerank.sweep_erasures(100)")

    assert past.at(before) == {"bob": "3"}
    names = [name for row in past.tr.erasures() for name in row.stand_ins]
    (ann, stand_in) = past.tr.places("b", ["ann", *names], as_of=before).places
    assert (ann.rank, stand_in.rank) == (None, None)


def test_who_is_withheld_today_takes_no_place_at_any_instant(past: Past) -> None:
    before = past.scores(("1", "ann", 5), ("2", "bob", 3), ("3", "cid", 3))
    for (action, undo), board in product([("hide", "show"), ("ban", "unban")], [None, "b"]):
        getattr(past.tr, f"{action}_member")("ann", board=board, **AT_ONCE)
        hidden = past.now()

        page = past.tr.top("b", as_of=before, since=before, member="ann")

        assert ranks(page) == {"bob": (1, 1), "cid": (1, 1)}
        (place,) = page.places
        assert (place.rank, place.rank_before, place.score) == (None, None, None)
        assert place.state is (MemberState.HIDDEN if action == "hide" else MemberState.BANNED)
        getattr(past.tr, f"{undo}_member")("ann", board=board, **AT_ONCE)
        assert past.at(before) == past.at(hidden) == {"ann": "5", "bob": "3", "cid": "3"}


def test_a_ban_that_is_over_withholds_nobody_who_is_asked_for(past: Past) -> None:
    before = past.scores(("1", "ann", 5))
    past.tr.ban_member("ann", until=datetime.now(UTC) + DAY, **AT_ONCE)
    past.conn.execute("UPDATE truerank.member_state SET until = now() - interval '1 second'")

    assert past.tr.place("b", "ann", as_of=before).places[0].rank == 1
    assert past.at(before) == {"ann": "5"}


def test_events_of_merged_members_are_those_of_the_account_of_today(past: Past) -> None:
    before = past.scores(("1", "old", 5), ("2", "new", 3), ("3", "bob", 7))
    past.tr.merge_members("old", "new", **AT_ONCE)

    assert past.at(before) == {"new": "8", "bob": "7"}
    assert past.tr.place("b", "old", as_of=before).places[0].state is MemberState.MERGED


def test_ranks_are_compared_with_those_of_an_earlier_instant(past: Past) -> None:
    first = past.scores(("1", "ann", 9), ("2", "bob", 5), ("3", "cid", 5), ("4", "dan", 1))
    second = past.scores(("5", "cid", 9), ("6", "eve", 2))
    past.tr.reset_member("dan", **AT_ONCE)

    page = past.tr.top("b", since=first, member="dan")
    assert ranks(page) == {"cid": (1, 2), "ann": (2, 1), "bob": (3, 2), "eve": (4, None)}
    assert [entry.change for entry in page.entries] == [1, -1, -1, None]
    (dan,) = page.places
    assert (dan.rank, dan.rank_before, dan.change) == (None, 4, None)
    assert (page.since, page.freshness.as_of) == (first, None)
    assert page.freshness.source is Source.DATABASE
    assert page.freshness.staleness_ms == 0

    then = past.tr.top("b", as_of=second, since=first)
    assert ranks(then) == ranks(page) | {"dan": (5, 4)}
    assert then.freshness.as_of == second
    assert then.freshness.staleness_ms is not None
    assert then.freshness.staleness_ms > 0
    assert past.tr.top("b", as_of=second).entries[0].rank_before is None


@pytest.mark.parametrize(
    ("numbering", "was", "is_"),
    [
        (Numbering.COMPETITION, [1, 2, 2, 4], [1, 1, 1, 4]),
        (Numbering.DENSE, [1, 2, 2, 3], [1, 1, 1, 2]),
        (Numbering.ORDINAL, [1, 2, 3, 4], [1, 2, 3, 4]),
    ],
)
def test_every_numbering_counts_equals_its_way_at_both_instants(
    past: Past, numbering: Numbering, was: list[int], is_: list[int]
) -> None:
    first = past.scores(("1", "ann", 9), ("2", "bob", 5), ("3", "cid", 5), ("4", "dan", 1))
    past.scores(("5", "bob", 4), ("6", "cid", 4))

    page = past.tr.top("b", since=first, numbering=numbering, offset=1, limit=3)

    assert [entry.member for entry in page.entries] == ["bob", "cid", "dan"]
    assert [entry.rank for entry in page.entries] == is_[1:]
    assert [entry.rank_before for entry in page.entries] == was[1:]
    assert (page.total, page.next, page.previous) == (4, None, None)


def test_neighbourhoods_and_places_are_those_of_the_instant(past: Past) -> None:
    then = past.scores(*((str(i), f"m{i}", 10 - i) for i in range(10)))
    past.scores(("x", "m9", 100), ("y", "new", 50))

    window = past.tr.around("b", "m9", limit=3, as_of=then)
    assert [(entry.member, entry.rank) for entry in window.around] == [
        ("m7", 8), ("m8", 9), ("m9", 10),
    ]  # fmt: skip
    window = past.tr.around("b", rank=2, limit=3, as_of=then, since=then)
    assert [(e.member, e.rank, e.rank_before) for e in window.around] == [
        ("m0", 1, 1), ("m1", 2, 2), ("m2", 3, 3),
    ]  # fmt: skip
    page = past.tr.top("b", limit=2, member="m2", around_limit=3, as_of=then)
    assert [entry.member for entry in page.entries] == ["m0", "m1"]
    assert [entry.member for entry in page.around] == ["m2", "m3"], "no row twice"
    places = past.tr.places(
        "b", ["m9", "new", "m0"], among=True, percentile=True, as_of=then, since=then
    ).places
    assert [(p.rank, p.rank_among, p.percentile) for p in places] == [
        (10, 2, 0.0), (None, None, None), (1, 1, 100.0),
    ]  # fmt: skip


def test_decimals_and_tie_breaks_are_those_of_the_board(past: Past) -> None:
    past.tr.create_board(
        "t",
        operator="best",
        order="asc",
        seasons=["all"],
        decimals=2,
        tie_breaks=[TieBreak(name="moves")],
    )
    rows = [("1", "ann", "9.50", 3), ("2", "bob", "9.5", 4), ("3", "cid", "9.5", 4)]
    for event_id, member, value, moves in rows:
        past.tr.submit_score("t", event_id=event_id, member=member, value=value, ties=(moves,))
    then = past.now()
    past.tr.submit_score("t", event_id="4", member="ann", value="1.25", ties=(0,))

    entries = past.tr.top("t", as_of=then).entries
    assert [(e.rank, e.member, e.score) for e in entries] == [
        (1, "bob", "9.50"), (1, "cid", "9.50"), (3, "ann", "9.50"),
    ]  # fmt: skip


def test_before_the_board_was_made_it_is_empty_and_everybody_is_new(past: Past) -> None:
    past.scores(("1", "ann", 5))
    before = past.now() - 10 * DAY

    page = past.tr.top("b", as_of=before)
    assert (page.entries, page.total, page.state) == ((), 0, "open")
    assert ranks(past.tr.top("b", since=before)) == {"ann": (1, None)}


def test_without_a_label_it_is_the_season_that_was_current_then(past: Past) -> None:
    zone = ZoneInfo("Europe/Berlin")
    past.tr.create_board("d", seasons=["day"], zone="Europe/Berlin")
    past.conn.execute("UPDATE truerank.board SET created_at = '2020-01-01'")
    # The day of 25 hours: the same wall clock twice.
    first, second = (datetime(2026, 10, 25, 2, 30, tzinfo=zone, fold=fold) for fold in (0, 1))
    late = datetime(2026, 10, 25, 23, 30, tzinfo=zone)
    for at in (first, second, late):
        past.tr.submit_score(
            "d", event_id=at.isoformat(), member=f"m{at.astimezone(UTC):%H}", value=1,
            occurred_at=at,
        )  # fmt: skip
    past.conn.execute("UPDATE truerank.event SET received_at = occurred_at")

    def shown(at: datetime) -> tuple[str, set[str]]:
        page = past.tr.top("d", as_of=at)
        return page.season, {entry.member for entry in page.entries}

    assert shown(first) == ("2026-10-25", {"m00"})
    assert shown(second) == ("2026-10-25", {"m00", "m01"})
    assert shown(late) == ("2026-10-25", {"m00", "m01", "m22"})
    assert shown(datetime(2026, 10, 25, 22, 59, 59, tzinfo=UTC))[0] == "2026-10-25"
    assert shown(datetime(2026, 10, 25, 23, 0, tzinfo=UTC)) == ("2026-10-26", set())
    assert past.tr.top("d", "2026-10-25", as_of=late + DAY).total == 3


def test_where_no_season_ran_then_there_is_none(past: Past) -> None:
    past.tr.create_board("c", seasons=[])
    start = past.now() - 5 * DAY
    past.tr.create_season("c", "cup", start, start + 3 * DAY)

    assert past.tr.top("c", as_of=start + DAY).season == "cup"
    with pytest.raises(SeasonUnknown):
        past.tr.top("c", as_of=start - DAY)


def test_a_final_season_says_what_it_was_before_and_which_revision_held(past: Past) -> None:
    day = (past.now() - 3 * DAY).date().isoformat()
    noon = datetime.fromisoformat(f"{day}T12:00:00+00:00")
    past.scores(("1", "ann", 5), ("2", "bob", 3), occurred_at=noon)
    open_ = past.now()
    past.tr.close_season("b", day, actor="op")
    final = past.now()
    past.tr.revise_season("b", day, void=["1"], **BY)

    def told(at: datetime) -> tuple[str, int | None, dict[str, str]]:
        page = past.tr.top("b", day, as_of=at)
        return page.state, page.revision, {e.member: e.score for e in page.entries}

    assert told(open_) == ("open", None, {"ann": "5", "bob": "3"})
    assert told(final) == ("final", 1, {"ann": "5", "bob": "3"})
    assert told(past.now()) == ("final", 2, {"bob": "3"})


def test_a_freeze_holds_for_the_past_as_well(past: Past, settings: Settings) -> None:
    first = past.scores(("1", "ann", 5), ("2", "bob", 3))
    past.scores(("3", "bob", 3))
    frozen_at = past.tr.freeze_season("b", **BY).frozen_at
    later = past.scores(("4", "ann", 9), ("5", "cid", 1))
    assert frozen_at is not None

    for asked in (later, past.now(), frozen_at):
        page = past.tr.top("b", as_of=asked, since=first)
        assert ranks(page) == {"bob": (1, 2), "ann": (2, 1)}
        assert (page.freshness.as_of, page.freshness.frozen_at) == (asked, frozen_at)
    assert ranks(past.tr.top("b", since=later)) == {"bob": (1, 1), "ann": (2, 2)}
    assert past.at(first) == {"ann": "5", "bob": "3"}
    assert past.tr.place("b", "cid", as_of=later, since=later).places[0].rank_before is None
    with truerank.Truerank(msgspec.structs.replace(settings, operator=True)) as operator:
        page = operator.top("b", as_of=later, since=first)
        assert ranks(page) == {"ann": (1, 1), "bob": (2, 2), "cid": (3, None)}
        assert page.freshness.frozen_at is None
    past.tr.reveal_season("b", **BY)
    assert past.at(later) == {"ann": "14", "bob": "6", "cid": "1"}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "to come": ({"as_of": datetime.now(UTC) + DAY}, "as_of"),
    "since to come": ({"since": datetime.now(UTC) + DAY}, "since"),
    "no offset": ({"as_of": datetime(2026, 1, 1)}, "as_of"),  # noqa: DTZ001 - that is refused
    "no time": ({"since": "yesterday"}, "since"),
    "wrong order": (
        {"as_of": datetime(2026, 1, 1, tzinfo=UTC), "since": datetime(2026, 1, 2, tzinfo=UTC)},
        "since",
    ),
    "projection": ({"source": "projection"}, "source"),
    "settled": ({"consistency": "settled"}, "settled"),
    "max age": ({"consistency": Consistency.max_age(1000)}, "max_age"),
    "monotonic": ({"consistency": Consistency.monotonic_after(None)}, "monotonic"),
    "cursor": ({"cursor": "anything"}, "cursor"),
}


def test_what_the_history_cannot_answer_is_refused_by_name(past: Past) -> None:
    fields = {}
    for case, (how, _) in REFUSED.items():
        with pytest.raises(InvalidInput) as refused:
            past.tr.top("b", **({"as_of": past.now(), **how} if "since" not in how else how))
        fields[case] = refused.value.field

    assert fields == {case: field for case, (_, field) in REFUSED.items()}


def test_readers_who_look_back_are_limited_and_leave_the_others_alone(
    settings: Settings, past: Past
) -> None:
    past.scores(("1", "ann", 5))
    with truerank.Truerank(msgspec.structs.replace(settings, fallback_max=1)) as tr:
        steps = tr.operations.top("b", as_of=past.now())
        request = next(steps)
        while "read_history" not in getattr(request, "sql", ""):
            request = steps.send(tr.run(_single(request)))

        with pytest.raises(Busy):
            tr.top("b", as_of=past.now())
        assert tr.top("b", source="database").total == 1
        steps.close()
        assert tr.top("b", as_of=past.now()).total == 1


def _single(request: Any) -> Any:
    return (yield request)

"""A board with a retention forgets its old events: what that means for who writes and asks."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg
import pytest

import truerank
from tests.projection.pipeline import Pipeline, differences
from truerank import Outcome, ScoreEvent
from truerank.errors import EventRefused, InvalidInput
from truerank.model import Receipt
from truerank.outbox.retention import Retention
from truerank.telemetry.meter import Meter

Connection = psycopg.Connection[Any]
NOW = datetime.now(UTC)
DAY = timedelta(days=1)
BY: dict[str, Any] = {"actor": "tester", "reason": "test"}
_CALLS_MAX = 200


@pytest.fixture(autouse=True)
def board(tr: truerank.Truerank) -> None:
    """The board `b`: sums, all time and by month; it keeps every event so far."""
    tr.create_board("b", seasons=("all", "month"))


def event(event_id: str, days: float | None = None, **changes: Any) -> ScoreEvent:
    """An event of so many days ago; without a time of its own where that is None."""
    at = None if days is None else NOW - days * DAY
    return ScoreEvent(
        **{"event_id": event_id, "member": "ann", "value": 1, **changes}, occurred_at=at
    )


def submit(conn: Connection, *events: ScoreEvent) -> list[Receipt]:
    return truerank.submit_scores(conn, "b", events)


def codes(receipts: list[Receipt]) -> list[str]:
    return [receipt.code or receipt.outcome.value for receipt in receipts]


def keep(tr: truerank.Truerank, days: int) -> None:
    tr.update_board("b", {"retention": f"{days} days"}, **BY)


def forget(tr: truerank.Truerank, *, rows_max: int = 1000) -> int:
    """Prune until nothing is left to do; how many events went."""
    removed = 0
    for _ in range(_CALLS_MAX):
        pruned = tr.prune_events("b", rows_max=rows_max, at_once=removed == 0)
        removed += pruned.removed
        if not pruned.pending:
            return removed
    raise AssertionError("there is always more to do")


def score(tr: truerank.Truerank, season: str = "all") -> str | None:
    return tr.place("b", "ann", season, source="database").places[0].score


def kept(conn: Connection) -> list[Any]:
    rows = conn.execute(
        "SELECT coalesce(event_text, ''), kind::text FROM truerank.event ORDER BY position"
    )
    return rows.fetchall()


def test_events_before_the_retention_go_and_standings_stay(
    tr: truerank.Truerank, conn: Connection
) -> None:
    submit(conn, event("old", 40, value=5), event("new", 2, value=2))
    versions = conn.execute("SELECT array_agg(version ORDER BY ranking) FROM truerank.standing")
    before = versions.fetchone()
    keep(tr, 30)

    assert forget(tr) == 1

    assert kept(conn) == [("new", "s")]
    assert score(tr) == "7"
    versions = conn.execute("SELECT array_agg(version ORDER BY ranking) FROM truerank.standing")
    assert versions.fetchone() == before, "nobody is told of what didn't change"


def test_a_repeat_of_a_forgotten_event_is_refused(tr: truerank.Truerank, conn: Connection) -> None:
    old = event("old", 40)
    submit(conn, old)
    keep(tr, 30)
    assert codes(submit(conn, old)) == ["duplicate"], "still there"
    forget(tr)

    assert codes(submit(conn, old, event("new", 1))) == ["occurred_at_too_old", "applied"]
    assert score(tr) == "2"


def test_a_repeat_without_a_time_of_its_own_is_refused_too(
    tr: truerank.Truerank, conn: Connection
) -> None:
    submit(conn, event("timeless", value=5))
    conn.execute("UPDATE truerank.event SET occurred_at = occurred_at - interval '40 days'")
    keep(tr, 30)
    forget(tr)

    assert codes(submit(conn, event("timeless", value=5))) == ["event_forgotten"]
    assert codes(submit(conn, event("timeless", 1, value=9))) == ["event_forgotten"]
    assert kept(conn) == [("timeless", "f")]
    assert score(tr) == "5"


def test_a_longer_retention_does_not_bring_forgotten_ids_back(
    tr: truerank.Truerank, conn: Connection
) -> None:
    submit(conn, event("old", 40))
    keep(tr, 30)
    forget(tr)

    tr.update_board("b", {"retention": None}, **BY)

    assert codes(submit(conn, event("old", 40))) == ["occurred_at_too_old"]
    assert codes(submit(conn, event("older", 35))) == ["occurred_at_too_old"]


def test_forgotten_events_cannot_be_corrected(tr: truerank.Truerank, conn: Connection) -> None:
    submit(conn, event("old", 40, value=5), event("new", 1, value=2))
    keep(tr, 30)
    tr.prune_events("b", at_once=True)  # the horizon is raised, and the event still there

    assert codes(tr.void_events("b", ["old", "new"], **BY)) == ["history_incomplete", "applied"]
    with pytest.raises(EventRefused, match="older than what the board remembers"):
        tr.amend_event("b", "old", 7, correction_id="c", **BY)
    assert tr.void_where("b", member="ann", **BY) == 0
    forget(tr)

    assert codes(tr.void_events("b", ["old"], **BY)) == ["event_unknown"]
    assert score(tr) == "5"


def test_a_void_goes_with_its_event_and_stays_in_the_audit(
    tr: truerank.Truerank, conn: Connection
) -> None:
    submit(conn, event("bad", 40, value=5), event("good", 41, value=2))
    tr.void_events("b", ["bad"], **BY)
    tr.amend_event("b", "good", 3, correction_id="c", **BY)
    keep(tr, 30)

    assert forget(tr) == 2

    assert kept(conn) == []
    assert score(tr) == "3"
    actions = conn.execute("SELECT action FROM truerank.audit ORDER BY id").fetchall()
    assert [action for (action,) in actions] == ["void", "amend", "update_board"]
    (carried,) = tr.explain("b", "ann", "all")
    assert (carried.state, carried.value, carried.metadata) == (
        "carried",
        Decimal(3),
        {"events": 1},
    )


def test_an_explanation_begins_with_what_was_carried_over(
    tr: truerank.Truerank, conn: Connection
) -> None:
    submit(conn, event("o1", 40, value=5), event("o2", 39, value=3), event("new", 1, value=2))
    keep(tr, 30)
    forget(tr)

    carried, new = tr.explain("b", "ann", "all")

    assert (carried.event_id, carried.value, carried.metadata) == (None, Decimal(8), {"events": 2})
    assert carried.occurred_at == NOW - 39 * DAY
    assert (new.event_id, new.state) == ("new", "counted")
    standing = tr.standing("b", "ann", "all")
    assert standing is not None
    assert standing.event_id == "new"


def test_a_season_that_ended_before_the_history_is_its_standing(
    tr: truerank.Truerank, conn: Connection
) -> None:
    submit(conn, event("old", 100, value=5))
    season = f"{NOW - 100 * DAY:%Y-%m}"
    keep(tr, 30)
    forget(tr)

    (carried,) = tr.explain("b", "ann", season)

    assert (carried.state, carried.value, carried.metadata) == ("carried", Decimal(5), None)
    assert score(tr, season) == "5"
    openings = conn.execute("SELECT count(*) FROM truerank.opening").fetchone()
    assert openings == (1,), "of all time alone"


def test_what_was_carried_over_for_a_season_goes_when_the_season_does(
    tr: truerank.Truerank, conn: Connection
) -> None:
    tr.create_season("b", "cup", NOW - 50 * DAY, NOW - 20 * DAY)
    submit(conn, event("old", 40, value=5), event("later", 25, value=2))
    cup = tr.season("b", "cup").ranking
    carried = "SELECT count(*) FROM truerank.opening WHERE ranking = %s"
    keep(tr, 30)
    forget(tr)
    assert conn.execute(carried, (cup,)).fetchone() == (1,)

    keep(tr, 10)
    forget(tr)

    assert conn.execute(carried, (cup,)).fetchone() == (0,)
    assert score(tr, "cup") == "7"


def test_a_season_cannot_reach_back_before_the_history(
    tr: truerank.Truerank, conn: Connection
) -> None:
    tr.create_season("b", "cup", NOW - 50 * DAY, NOW + DAY)
    submit(conn, event("old", 40, value=5), event("new", 5, value=2))
    keep(tr, 30)
    forget(tr)

    with pytest.raises(InvalidInput, match="before the board's history"):
        tr.create_season("b", "other", NOW - 60 * DAY, NOW - 35 * DAY)
    with pytest.raises(InvalidInput, match="forgotten"):
        tr.change_season("b", "cup", NOW - 45 * DAY, NOW + DAY, **BY)
    with pytest.raises(InvalidInput, match="forgotten"):
        tr.change_season("b", "cup", NOW - 50 * DAY, NOW - 35 * DAY, **BY)
    assert not tr.create_season("b", "cup", NOW - 50 * DAY, NOW + DAY)
    assert tr.change_season("b", "cup", NOW - 50 * DAY, NOW - 10 * DAY, **BY)
    assert score(tr, "cup") == "5"


def test_a_season_that_ended_just_where_the_history_begins_keeps_its_end(
    tr: truerank.Truerank, conn: Connection
) -> None:
    tr.create_season("b", "cup", NOW - 50 * DAY, NOW - 35 * DAY)
    submit(conn, event("old", 40, value=5), event("new", 5, value=2))
    keep(tr, 30)
    forget(tr)
    conn.execute("UPDATE truerank.ranking SET ends_at = b.history_from FROM truerank.board AS b")

    with pytest.raises(InvalidInput, match="forgotten"):
        tr.change_season("b", "cup", NOW - 50 * DAY, NOW, **BY)

    assert score(tr, "cup") == "5"


def test_a_deleted_member_leaves_no_standing_of_those_merged_into_it(
    tr: truerank.Truerank, conn: Connection
) -> None:
    submit(conn, event("a", 100, value=5), event("b", 100, member="bob", value=7))
    keep(tr, 30)
    forget(tr)
    tr.merge_members("bob", "ann", **BY, timeout_s=0)

    tr.delete_member("ann", **BY, timeout_s=0)

    assert conn.execute("SELECT ranking, member FROM truerank.standing").fetchall() == []
    told = conn.execute(
        "SELECT count(DISTINCT ranking) FROM truerank.outbox WHERE op = 'd' AND member = 'bob'"
    )
    assert told.fetchone() == (2,), "every copy drops them"


@pytest.fixture
def writer(database_url: str) -> Iterator[Connection]:
    """A connection in transactions of its own."""
    with psycopg.connect(database_url) as conn:
        yield conn


def test_nothing_is_forgotten_while_a_writer_may_know_the_old_horizon(
    tr: truerank.Truerank, conn: Connection, writer: Connection
) -> None:
    submit(conn, event("old", 40))
    submit(writer, event("late", 35))  # not committed yet
    keep(tr, 30)

    for _ in range(5):
        pruned = tr.prune_events("b", at_once=True)
        assert (pruned.removed, pruned.pending) == (0, True)
    writer.commit()

    assert forget(tr) == 2
    assert score(tr) == "2"


def test_a_slice_is_bounded_and_the_next_goes_on(tr: truerank.Truerank, conn: Connection) -> None:
    events = [event(f"e{n}", 40 + n / 100, member=f"m{n % 7}") for n in range(50)]
    submit(conn, *events, event("new", 1))
    keep(tr, 30)
    slices: list[int] = []

    for _ in range(_CALLS_MAX):
        pruned = tr.prune_events("b", rows_max=4, at_once=not slices)
        slices.append(pruned.removed)
        if not pruned.pending:
            break

    assert max(slices) == 4
    assert sum(slices) == 50
    assert [e.event_id for e in tr.explain("b", "ann")] == ["new"]


def test_a_board_without_retention_forgets_nothing(tr: truerank.Truerank, conn: Connection) -> None:
    submit(conn, event("old", 400))

    assert not tr.prune_events("b", at_once=True).pending
    assert kept(conn) == [("old", "s")]


def test_a_sum_that_would_leave_64_bits_half_way_is_kept_whole(
    tr: truerank.Truerank, conn: Connection
) -> None:
    conn.execute("UPDATE truerank.board SET seasons = '{all}'")
    submit(conn, event("b", 40, value=-(2**62)), event("c", 39, value=-(2**62)))
    submit(conn, event("a", 10, value=2**62))
    submit(conn, event("d", 41, value=-(2**62)))
    assert score(tr) == str(-(2**63))
    keep(tr, 30)

    assert forget(tr) == 0

    assert len(kept(conn)) == 4
    assert tr.amend_event("b", "a", 2**62 + 1, correction_id="x", **BY).outcome is Outcome.APPLIED
    assert score(tr) == str(-(2**63) + 1)


def test_a_worker_forgets_by_itself(single: Pipeline) -> None:
    single.submit("b", {"ann": 5})
    single.conn.execute("UPDATE truerank.event SET occurred_at = occurred_at - interval '3 days'")
    single.client.update_board("b", {"retention": "1 day"}, **BY)
    retention = Retention(single.settings)

    for _ in range(_CALLS_MAX):
        retention.keep(single.conn, Meter())
        if single.conn.execute("SELECT FROM truerank.pruning WHERE ended_at > began_at").fetchone():
            break

    assert single.conn.execute("SELECT kind::text FROM truerank.event").fetchall() == [("f",)]
    single.settle(single.projector())
    assert differences(single) == []


def test_a_board_whose_walk_somebody_holds_is_passed_by(
    tr: truerank.Truerank, conn: Connection, writer: Connection
) -> None:
    submit(conn, event("old", 40))
    keep(tr, 30)
    forget(tr)
    submit(conn, event("older", 29))
    keep(tr, 20)
    writer.execute("SELECT FROM truerank.pruning FOR SHARE")
    conn.execute("SET lock_timeout = '1s'")

    held = conn.execute("SELECT removed, pending FROM truerank.prune_events(10)").fetchone()
    conn.execute("SELECT truerank.raise_horizon(id) FROM truerank.board")
    writer.rollback()

    assert held == (0, True)
    assert forget(tr) == 1


def test_a_walk_that_a_dump_brought_from_another_server_goes_on(
    tr: truerank.Truerank, conn: Connection
) -> None:
    submit(conn, event("old", 40))
    keep(tr, 30)
    tr.prune_events("b", at_once=True)
    conn.execute("UPDATE truerank.pruning SET barrier = '5000000000000'")

    assert forget(tr) == 1

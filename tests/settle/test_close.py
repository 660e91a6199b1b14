"""A season is open, sealed, final; what it came to is stored once, and nothing moves it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

import pytest

import truerank
from tests.settle.conftest import Connection, Months
from truerank.errors import (
    EventRefused,
    InvalidInput,
    NotSettled,
    SeasonFinal,
    SeasonNotBegun,
    SeasonNotOver,
    SeasonSealed,
    SeasonUnknown,
)

BY: Any = Months.BY


def test_a_season_takes_late_events_until_it_is_closed(months: Months) -> None:
    months.submit(("e1", "A", 5))

    (late,) = months.submit(("e2", "A", 6))
    season = months.close()
    (too_late,) = months.submit(("e3", "A", 7))

    assert (late.code, too_late.code) == (None, "season_final")
    assert (season.state, season.revision) == ("final", 1)
    assert months.settled() == [(1, "A", "11")]
    assert months.tr.season("b", "all").state == "open"


def test_a_season_is_not_closed_before_its_grace_is_over_but_by_force(months: Months) -> None:
    now = datetime.now(UTC)
    label = f"{now:%Y-%m}"
    months.rules(late_grace="2 hours")
    season = months.tr.season("b", label)

    with pytest.raises(SeasonNotOver):
        months.close(label)
    with pytest.raises(SeasonNotOver):
        months.close("all")
    closed = months.close(label, now=True, reason="the contest is called off")

    assert season.ends_at is not None
    assert season.closes_at == season.ends_at + timedelta(hours=2)
    assert closed.state == "final"
    (settlement,) = months.tr.settlements("b", label)
    assert settlement.reason == "the contest is called off"


def test_a_season_of_another_board_or_none_is_not_closed(months: Months) -> None:
    with pytest.raises(SeasonUnknown):
        months.close("2024-W23")
    with pytest.raises(SeasonUnknown):
        months.close("")
    with pytest.raises(truerank.errors.BoardUnknown):
        months.tr.close_season("c", "2024-06", **BY)


def test_a_season_in_which_nothing_happened_comes_to_nothing(months: Months) -> None:
    season = months.close("2024-03")

    assert season.state == "final"
    assert months.settled("2024-03") == []
    (settlement,) = months.tr.settlements("b", "2024-03")
    assert (settlement.population, settlement.total) == (0, "0")
    assert months.proven("2024-03") == [(1, True, True)]


def test_a_hold_seals_a_season_and_settles_it_later(months: Months) -> None:
    months.rules(hold="1 day")
    months.submit(("e1", "A", 5), ("e2", "B", 9))

    sealed = months.close()
    again = months.close()
    (late,) = months.submit(("e3", "A", 7))
    with pytest.raises(NotSettled) as caught:
        months.settled()
    final = months.close(now=True, reason="looked at")

    assert (sealed.state, again.state, final.state) == ("sealed", "sealed", "final")
    assert late.code == "season_sealed"
    assert sealed.hold_until == caught.value.ready_at == again.hold_until
    assert months.settled() == [(1, "B", "9"), (2, "A", "5")]


def test_events_are_corrected_until_the_season_is_final(months: Months) -> None:
    months.rules(hold="1 day")
    months.submit(("e1", "A", 50), ("e2", "A", 1), ("e3", "B", 9))
    months.close()

    (voided,) = months.tr.void_events("b", ["e1"], **BY)
    months.tr.amend_event("b", "e3", 8, correction_id="c1", **BY)
    months.close(now=True, reason="looked at")
    (refused,) = months.tr.void_events("b", ["e2"], **BY)
    with pytest.raises(EventRefused):
        months.tr.amend_event("b", "e3", 7, correction_id="c2", **BY)

    assert voided.outcome is truerank.Outcome.APPLIED
    assert refused.code == "season_final"
    assert months.settled() == [(1, "B", "8"), (2, "A", "1")]
    assert months.proven() == [(1, True, True)]


def test_a_sealed_season_is_opened_again_and_a_final_one_is_not(months: Months) -> None:
    months.rules(hold="1 day")
    months.close()

    reopened = months.tr.reopen_season("b", "2024-06", **BY)
    open_already = months.tr.reopen_season("b", "2024-06", **BY)
    (receipt,) = months.submit(("e1", "A", 5))
    months.close(now=True, reason="looked at")
    with pytest.raises(SeasonFinal):
        months.tr.reopen_season("b", "2024-06", **BY)

    assert (reopened, open_already) == (True, False)
    assert receipt.code is None
    assert months.settled() == [(1, "A", "5")]


def test_sql_corrects_a_sealed_season_like_python_and_a_final_one_not(months: Months) -> None:
    months.rules(hold="1 day")
    months.submit(("e1", "A", 50), ("e2", "A", 1), ("e3", "B", 9))
    months.close()
    void = "SELECT DISTINCT outcome, code FROM truerank.void_events('b', ARRAY[%s], 'kim', 'bot')"
    amend = (
        "SELECT DISTINCT outcome, code FROM truerank.correct_events("
        "'b', ARRAY['e3'], ARRAY['c1'], ARRAY[8], NULL, 'kim', 'typo')"
    )

    taken = [months.conn.execute(each).fetchall() for each in (void % "'e1'", amend)]
    months.close(now=True, reason="looked at")
    refused = months.conn.execute(void % "'e2'").fetchall()

    assert taken == [[("applied", None)]] * 2
    assert refused == [("refused", "season_final")]
    assert months.settled() == [(1, "B", "8"), (2, "A", "1")]


def test_a_season_opened_again_takes_events_whatever_the_grace(months: Months) -> None:
    months.submit(("e1", "A", 5))
    months.conn.execute("UPDATE truerank.board SET created_at = '2024-01-01'")
    months.rules(late_grace="1 day", hold="2 days", auto_close=True)
    june = months.close()
    (sealed,) = months.submit(("e2", "A", 6))
    (over,) = months.submit(("e3", "A", 6), month=7)

    reopened = [months.tr.reopen_season("b", label, **BY) for label in ("2024-06", "2024-07")]
    again = months.tr.reopen_season("b", "2024-07", **BY)
    late = [months.submit(("e4", "A", 7))[0], months.submit(("e5", "A", 8), month=7)[0]]
    (may,) = months.submit(("e6", "A", 6), month=5)

    assert june.state == "sealed"
    assert (sealed.code, over.code, may.code) == ("season_sealed", "season_over", "season_over")
    assert (reopened, again) == ([True, True], False)
    assert [receipt.code for receipt in late] == [None, None]
    # Nor is one that somebody opened before anything was due.
    assert months.tr.reopen_season("b", f"{datetime.now(UTC):%Y-%m}", **BY) is False
    months.close("2024-07", now=True, reason="all are there")
    (too_late,) = months.submit(("e7", "A", 9), month=7)
    assert too_late.code == "season_final"
    assert months.settled("2024-07") == [(1, "A", "8")]


def test_a_season_that_has_not_begun_is_closed_by_nobody(months: Months) -> None:
    label = f"{datetime.now(UTC).year + 2}-01"
    start = datetime.now(UTC) + timedelta(days=2)
    months.tr.create_season("b", "cup", start, start + timedelta(days=1))

    for each in (label, "cup"):
        with pytest.raises(SeasonNotOver) as early:
            months.close(each)
        with pytest.raises(SeasonNotBegun):
            months.close(each, now=True, reason="by mistake")
        assert early.value.ready_at is not None
        assert months.tr.season("b", each).state == "open"


def test_a_final_season_is_not_settled_again(months: Months) -> None:
    months.submit(("e1", "A", 5))
    months.close()
    before = months.tr.settlements("b", "2024-06")

    months.close()
    months.close(now=True, reason="again")

    assert months.tr.settlements("b", "2024-06") == before


@pytest.mark.parametrize(("operator", "order"), [("sum", "desc"), ("best", "asc")])
def test_ranks_are_stored_in_all_three_numberings(
    tr: truerank.Truerank, conn: Connection, operator: str, order: str
) -> None:
    months = Months(tr, conn, operator, order)
    months.submit(*((f"e{n}", f"m{n:02}", n * 7 % 5) for n in range(25)))
    live = {kind: tr.top("b", "2024-06", limit=25, numbering=kind) for kind in truerank.Numbering}

    months.close()

    for kind, page in live.items():
        assert months.settled(numbering=kind) == [
            (entry.rank, entry.member, entry.score) for entry in page.entries
        ]
    stored = conn.execute(
        "SELECT ordinal, competition, dense, score FROM truerank.settlement_row ORDER BY ordinal"
    ).fetchall()
    assert [row[0] for row in stored] == list(range(1, 26))
    by_score = [list(rows) for _, rows in groupby(stored, key=lambda row: row[3])]
    assert [{row[2] for row in rows} for rows in by_score] == [{n + 1} for n in range(5)]
    assert [{row[1] for row in rows} for rows in by_score] == [{n * 5 + 1} for n in range(5)]
    (settlement,) = tr.settlements("b", "2024-06")
    assert (settlement.population, settlement.different) == (25, 5)


def test_who_is_not_active_takes_no_place_and_is_stored_with_why(months: Months) -> None:
    tr = months.tr
    members = ["active", "hidden", "banned", "here", "deleted", "anew", "merged"]
    months.submit(*((member, member, 100 - n) for n, member in enumerate(members)))
    how = {**BY, "timeout_s": 0.0}
    tr.hide_member("hidden", **how)
    tr.ban_member("banned", **how)
    tr.hide_member("here", board="b", **how)
    tr.delete_member("deleted", **how)
    tr.delete_member("anew", **how)
    months.submit(("anew2", "anew", 1))
    tr.merge_members("merged", "active", **how)

    months.close()

    assert months.settled() == [(1, "active", "194"), (2, "anew", "1")]
    excluded = {each.member: each.why for each in tr.settlement_excluded("b", "2024-06").excluded}
    assert excluded == {
        "hidden": "hidden", "banned": "banned", "here": "hidden", "deleted": "deleted"
    }  # fmt: skip
    assert months.proven() == [(1, True, True)]


def test_a_ban_that_is_over_keeps_nobody_out(months: Months) -> None:
    months.submit(("e1", "A", 5))
    until = datetime.now(UTC) + timedelta(hours=1)
    months.tr.ban_member("A", until=until, timeout_s=0.0, **BY)
    months.conn.execute("UPDATE truerank.member_state SET until = clock_timestamp()")

    months.close()

    assert months.settled() == [(1, "A", "5")]


def test_a_ban_that_is_over_keeps_nobody_out_while_somebody_holds_its_row(
    months: Months, connect: Callable[..., Connection]
) -> None:
    months.submit(("e1", "A", 5), ("e2", "B", 4), ("e3", "C", 3), ("e4", "D", 9))
    until = datetime.now(UTC) + timedelta(hours=1)
    months.tr.hide_member("B", timeout_s=0.0, **BY)
    for member in "ABC":
        months.tr.ban_member(member, until=until, timeout_s=0.0, **BY)
    months.conn.execute("UPDATE truerank.member_state SET until = now() WHERE member <> 'C'")
    holder = connect()

    with holder.transaction():
        holder.execute("SELECT FROM truerank.member_state FOR UPDATE")
        months.close()
        assert months.settled() == [(1, "D", "9"), (2, "A", "5")]
        excluded = months.tr.settlement_excluded("b", "2024-06").excluded
        assert [(each.member, each.why) for each in excluded] == [("B", "hidden"), ("C", "banned")]

    months.conn.execute("UPDATE truerank.member_state SET until = now() WHERE member = 'C'")
    with holder.transaction():
        holder.execute("SELECT FROM truerank.member_state FOR UPDATE")
        (revised,) = months.tr.revise_season("b", "2024-06", **BY)
        assert (revised.revision, revised.changed) == (2, 1)
        assert months.settled() == [(1, "D", "9"), (2, "A", "5"), (3, "C", "3")]
    assert months.proven() == [(1, True, True), (2, True, True)]


def test_nothing_that_happens_to_a_member_moves_what_is_settled(months: Months) -> None:
    tr, how = months.tr, {**BY, "timeout_s": 0.0}
    months.submit(*((member, member, 100 - n) for n, member in enumerate("ABCDE")))
    months.close()
    digest = tr.settlements("b", "2024-06")[0].digest

    tr.hide_member("A", **how)
    tr.ban_member("B", **how)
    tr.delete_member("C", **how)
    tr.merge_members("D", "E", **how)
    months.submit(("new", "C", 7), month=7)

    rows = months.settled()
    assert [(rank, score) for rank, _, score in rows] == [(n + 1, str(100 - n)) for n in range(5)]
    assert rows[4][1] == "E"
    assert not {member for _, member, _ in rows[:4]} & set("ABCD")
    assert tr.settlements("b", "2024-06")[0].digest == digest
    assert months.proven() == [(1, True, True)]


def test_a_deleted_member_that_comes_back_is_not_shown_where_it_was(months: Months) -> None:
    tr, how = months.tr, {**BY, "timeout_s": 0.0}
    months.submit(("e1", "A", 5))
    months.close()

    tr.delete_member("A", **how)
    tr.hide_member("A", **how)
    tr.show_member("A", **how)

    ((_, member, score),) = months.settled()
    assert (member == "A", score) == (False, "5")
    (place,) = tr.place("b", "A", "2024-06", consistency="settled").places
    assert place.rank is None


def test_a_custom_season_is_closed_and_its_bounds_stay(months: Months) -> None:
    start, end = datetime(2024, 6, 15, tzinfo=UTC), datetime(2024, 6, 16, tzinfo=UTC)
    months.tr.create_season("b", "cup", start, end)
    months.submit(("e1", "A", 5))

    months.close("cup")

    with pytest.raises(SeasonFinal):
        months.tr.change_season("b", "cup", start, end + timedelta(days=1), **BY)
    (receipt,) = months.submit(("e2", "A", 5))
    assert receipt.code == "season_final"
    assert months.settled("cup") == [(1, "A", "5")]


def test_force_takes_a_reason_and_everything_takes_an_actor(months: Months) -> None:
    with pytest.raises(InvalidInput):
        months.tr.close_season("b", "2024-06", actor="", reason="x")
    with pytest.raises(InvalidInput):
        months.tr.close_season("b", "2024-06", actor="x", reason="")


def test_every_step_stands_in_the_audit(months: Months) -> None:
    months.rules(hold="1 day")
    months.close(reason="over")
    months.tr.reopen_season("b", "2024-06", actor="ann", reason="late")
    months.close(reason="over again")
    months.close(now=True, reason="now")

    actions = months.conn.execute(
        "SELECT action, actor, reason FROM truerank.audit WHERE subject = '2024-06' ORDER BY id"
    ).fetchall()
    assert actions == [
        ("seal_season", "test", "over"),
        ("reopen_season", "ann", "late"),
        ("seal_season", "test", "over again"),
        ("end_hold", "test", "now"),
        ("settle_season", "test", "now"),
    ]


def test_a_deleted_board_takes_its_settlements_along(months: Months) -> None:
    months.submit(("e1", "A", 5), ("e2", "B", 5))
    months.tr.hide_member("B", timeout_s=0.0, **BY)
    months.close()

    months.tr.delete_board("b", **BY)
    while months.tr.purge_boards(1):
        pass

    for table in ("settlement", "settlement_row", "settlement_excluded", "settlement_name"):
        assert months.conn.execute(f"SELECT FROM truerank.{table}").fetchall() == []


def test_a_sealed_season_is_opened_again_before_its_bounds_are_changed(months: Months) -> None:
    start, end = datetime(2024, 6, 15, tzinfo=UTC), datetime(2024, 6, 16, tzinfo=UTC)
    months.tr.create_season("b", "cup", start, end)
    months.rules(hold="1 day")
    months.close("cup")
    longer = end + timedelta(days=1)

    with pytest.raises(SeasonSealed):
        months.tr.change_season("b", "cup", start, longer, **BY)
    months.tr.reopen_season("b", "cup", **BY)

    assert months.tr.change_season("b", "cup", start, longer, **BY)
    assert months.tr.season("b", "cup").ends_at == longer

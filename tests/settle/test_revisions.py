"""A correction of a final season is another numbered revision, which says what it changed."""

from typing import Any

import psycopg
import pytest

from tests.settle.conftest import Months
from truerank.errors import CommandError, CursorGone, InvalidInput, NotSettled
from truerank.read import revisions

BY: Any = Months.BY


@pytest.fixture
def final(months: Months) -> Months:
    """June is final: A 30, B 20, C 10; all time is open."""
    months.submit(("a1", "A", 25), ("a2", "A", 5), ("b", "B", 20), ("c", "C", 10))
    months.close()
    return months


def test_a_voided_event_makes_a_revision_and_the_one_before_stays(final: Months) -> None:
    (revised,) = final.tr.revise_season("b", "2024-06", void=["a1"], **BY)

    assert (revised.season, revised.revision, revised.changed) == ("2024-06", 2, 3)
    assert final.settled() == [(1, "B", "20"), (2, "C", "10"), (3, "A", "5")]
    assert [each.total for each in final.tr.settlements("b", "2024-06")] == ["35", "60"]
    told = final.tr.settlement_changes("b", "2024-06")
    assert (told.since, told.revision, told.next) == (1, 2, None)
    assert [(c.member, c.rank_before, c.rank, c.score_before, c.score) for c in told.changes] == [
        ("B", 2, 1, "20", "20"), ("C", 3, 2, "10", "10"), ("A", 1, 3, "30", "5"),
    ]  # fmt: skip
    assert final.proven() == [(1, True, True), (2, True, True)]
    assert final.tr.settlement_changes("b", "2024-06", 1).changes == ()


def test_open_seasons_follow_a_revision(final: Months) -> None:
    final.tr.revise_season("b", "2024-06", void=["a1"], **BY)

    page = final.tr.top("b", "all")
    assert [(entry.member, entry.score) for entry in page.entries] == [
        ("B", "20"), ("C", "10"), ("A", "5"),
    ]  # fmt: skip


def test_an_event_counts_with_another_value_in_a_revision(final: Months) -> None:
    how = {"amend": "c", "value": 45, "correction_id": "c1", **BY}

    (revised,) = final.tr.revise_season("b", "2024-06", **how)
    (again,) = final.tr.revise_season("b", "2024-06", **how)

    assert (revised.revision, again.revision, again.changed) == (2, 2, 0)
    assert final.settled() == [(1, "C", "45"), (2, "A", "30"), (3, "B", "20")]
    assert final.proven() == [(1, True, True), (2, True, True)]


def test_an_event_of_several_final_seasons_revises_them_all(final: Months) -> None:
    final.close("all", now=True, reason="the end")

    revised = final.tr.revise_season("b", "2024-06", void=["a1"], **BY)

    assert [(each.season, each.revision) for each in revised] == [("2024-06", 2), ("all", 2)]
    assert final.settled("all") == final.settled()
    assert final.proven("all") == [(1, True, True), (2, True, True)]


def test_who_was_banned_since_gives_up_the_place_in_a_revision(final: Months) -> None:
    final.tr.ban_member("A", timeout_s=0.0, **BY)
    before = final.settled()

    (revised,) = final.tr.revise_season("b", "2024-06", actor="test", reason="A cheated")

    assert [(rank, score) for rank, _, score in before] == [(1, "30"), (2, "20"), (3, "10")]
    assert (revised.revision, revised.changed) == (2, 3)
    assert final.settled() == [(1, "B", "20"), (2, "C", "10")]
    assert [e.why for e in final.tr.settlement_excluded("b", "2024-06").excluded] == ["banned"]
    assert final.tr.settlement_excluded("b", "2024-06", 1).excluded == ()
    assert final.tr.settlements("b", "2024-06")[0].reason == "A cheated"
    assert final.proven() == [(1, True, True), (2, True, True)]


def test_a_deletion_and_a_merge_are_brought_in_by_a_revision_and_earlier_ones_stay_provable(
    final: Months,
) -> None:
    final.tr.delete_member("A", timeout_s=0.0, **BY)
    final.tr.merge_members("C", "B", timeout_s=0.0, **BY)

    final.tr.revise_season("b", "2024-06", **BY)

    assert final.settled() == [(1, "B", "30")]
    assert [e.why for e in final.tr.settlement_excluded("b", "2024-06").excluded] == ["deleted"]
    assert final.proven() == [(1, True, True), (2, True, True)]


def test_nothing_to_change_makes_no_revision(final: Months) -> None:
    (revised,) = final.tr.revise_season("b", "2024-06", **BY)

    assert (revised.revision, revised.changed) == (1, 0)
    assert len(final.tr.settlements("b", "2024-06")) == 1
    (rows,) = final.conn.execute("SELECT count(*) FROM truerank.settlement_row").fetchall()
    assert rows == (3,)


def test_a_refused_correction_changes_nothing(final: Months) -> None:
    with pytest.raises(CommandError) as caught:
        final.tr.revise_season("b", "2024-06", void=["a1", "nothing"], **BY)

    assert caught.value.reason == "event_unknown"
    assert final.settled() == [(1, "A", "30"), (2, "B", "20"), (3, "C", "10")]
    assert final.conn.execute("SELECT FROM truerank.event WHERE kind = 'v'").fetchall() == []


def test_a_season_that_is_not_final_is_corrected_as_usual(months: Months) -> None:
    months.submit(("a1", "A", 25))

    with pytest.raises(NotSettled):
        months.tr.revise_season("b", "2024-06", void=["a1"], **BY)

    assert months.tr.top("b", "2024-06").total == 1


def test_the_steps_refuse_transactions_that_could_not_see_all(final: Months) -> None:
    for call in (
        "SELECT * FROM truerank.settle_season('b', '2024-06', 'a', 'r')",
        "SELECT * FROM truerank.revise_season('b', '2024-06', '{}', NULL, NULL, NULL, 'a', 'r')",
    ):
        with pytest.raises(psycopg.errors.ActiveSqlTransaction):
            final.conn.execute(call)
    final.conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    for call in (
        "SELECT * FROM truerank.seal_season('b', '2024-06', false, 'a', 'r')",
        "SELECT truerank.pass_barrier('b', '2024-06')",
    ):
        with pytest.raises(psycopg.errors.ActiveSqlTransaction), final.conn.transaction():
            final.conn.execute(call)


def test_a_season_is_not_settled_without_its_barrier(months: Months) -> None:
    months.submit(("a1", "A", 25))
    months.conn.execute("SELECT * FROM truerank.seal_season('b', '2024-06', false, 'a', 'r')")
    months.conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ

    with months.conn.transaction():
        row = months.conn.execute(
            "SELECT outcome FROM truerank.settle_season('b', '2024-06', 'a', 'r')"
        ).fetchone()

    assert row == ("no_barrier",)
    assert months.tr.season("b", "2024-06").state == "sealed"


def test_a_digest_tells_of_whatever_was_changed(final: Months) -> None:
    tampered = [
        "UPDATE truerank.event SET value = 26 WHERE event_text = 'a1'",
        "UPDATE truerank.event SET occurred_at = occurred_at + '1 s' WHERE event_text = 'b'",
        "DELETE FROM truerank.event WHERE event_text = 'c'",
        "DELETE FROM truerank.settlement_row WHERE member = 'C'",
        "UPDATE truerank.settlement_row SET stand_in = substr(sort_key, 1, 16) WHERE member = 'B'",
    ]
    for change in tampered:
        with final.conn.transaction(force_rollback=True):
            assert final.conn.execute(change).rowcount == 1
            assert final.proven() == [(1, False, True)], change
    with final.conn.transaction(force_rollback=True):
        final.conn.execute("UPDATE truerank.settlement_row SET competition = 2")
        (row,) = final.conn.execute(
            "SELECT s.digest = d.digest FROM truerank.settlement AS s,"
            " truerank.settlement_digest(s.ranking, s.revision) AS d"
        ).fetchall()
        assert row == (False,)
    assert final.proven() == [(1, True, True)]


def test_where_events_are_forgotten_a_digest_says_that_it_proves_nothing(
    final: Months,
) -> None:
    final.conn.execute("UPDATE truerank.board SET history_from = '2024-06-10'")

    ((_, _, complete),) = final.proven()

    assert complete is False


def test_slices_of_what_changed_fit_together_though_another_revision_comes_between(
    months: Months,
) -> None:
    tr = months.tr
    months.submit(*((f"e{n}", f"m{n:02}", 100 - n) for n in range(20)))
    months.close()
    tr.revise_season("b", "2024-06", void=["e3", "e19"], **BY)

    slices = [tr.settlement_changes("b", "2024-06", limit=4)]
    excluded = [tr.settlement_excluded("b", "2024-06", limit=1)]
    tr.ban_member("m00", timeout_s=0.0, **BY)
    tr.revise_season("b", "2024-06", **BY)
    while (cursor := slices[-1].next) is not None:
        slices.append(tr.settlement_changes("b", "2024-06", limit=4, cursor=cursor))

    assert {(each.since, each.revision) for each in slices} == {(1, 2)}
    moved = [(c.member, c.rank_before, c.rank) for each in slices for c in each.changes]
    assert moved == [(f"m{n:02}", n + 1, n) for n in range(4, 19)] + [
        ("m03", 4, None), ("m19", 20, None),
    ]  # fmt: skip
    assert (excluded[0].revision, excluded[0].next) == (2, None)
    both = tr.settlement_changes("b", "2024-06", since=1, limit=1000)
    assert (both.since, both.revision) == (1, 3)
    assert [(c.member, c.rank_before, c.rank) for c in both.changes] == [
        (f"m{n:02}", n + 1, n if n < 3 else n - 1) for n in (*range(1, 3), *range(4, 19))
    ] + [("m00", 1, None), ("m03", 4, None), ("m19", 20, None)]


def test_a_slice_looks_at_so_many_places_and_no_more_however_little_differs(
    months: Months, monkeypatch: pytest.MonkeyPatch
) -> None:
    tr = months.tr
    months.submit(*((f"e{n}", f"m{n:02}", 100 - n) for n in range(20)))
    months.close()
    tr.revise_season("b", "2024-06", void=["e18"], **BY)
    monkeypatch.setattr(revisions, "_PLACES_MAX", 7)

    slices = [tr.settlement_changes("b", "2024-06")]
    while (cursor := slices[-1].next) is not None:
        slices.append(tr.settlement_changes("b", "2024-06", cursor=cursor))

    assert [[change.member for change in each.changes] for each in slices] == [
        [], [], ["m19"], [], [], ["m18"],
    ]  # fmt: skip


def test_the_planner_knows_of_a_new_settlement_before_anybody_reads_it(months: Months) -> None:
    """Until then it may look at all places of a season to find one member."""
    months.submit(*((f"e{n}", f"m{n:04}", n % 50) for n in range(2000)))

    months.close()

    known = "SELECT reltuples FROM pg_class WHERE oid = 'truerank.settlement_row'::regclass"
    assert months.conn.execute(known).fetchall() == [(2000.0,)]
    (revised,) = months.tr.revise_season("b", "2024-06", void=["e49"], **BY)
    assert revised.changed == 2000
    assert months.conn.execute(known).fetchall() == [(3999.0,)]


def test_places_are_read_in_slices_of_one_revision(final: Months) -> None:
    tr = final.tr
    tr.ban_member("B", timeout_s=0.0, **BY)

    first = tr.settlement_places("b", "2024-06", limit=2)
    tr.revise_season("b", "2024-06", **BY)
    last = tr.settlement_places("b", "2024-06", limit=2, cursor=first.next)

    assert [(p.ordinal, p.member, p.score) for p in (*first.places, *last.places)] == [
        (1, "A", "30"), (2, "B", "20"), (3, "C", "10"),
    ]  # fmt: skip
    assert (first.revision, last.revision, last.next) == (1, 1, None)
    newest = tr.settlement_places("b", "2024-06")
    assert (newest.revision, newest.population) == (2, 2)
    assert newest.digest == tr.settlements("b", "2024-06")[0].digest
    only_banned = tr.settlement_excluded("b", "2024-06", limit=0)
    again = tr.settlement_excluded("b", "2024-06", cursor=only_banned.next)
    assert [each.member for each in again.excluded] == ["B"]


def test_what_is_no_revision_or_no_cursor_of_it_is_refused(final: Months) -> None:
    tr = final.tr
    final.submit(("july", "A", 1), month=7)
    final.close("2024-07")
    tr.revise_season("b", "2024-06", void=["a1"], **BY)
    places = tr.settlement_places("b", "2024-06", limit=1)
    for ask in (tr.settlement_places, tr.settlement_changes, tr.settlement_excluded):
        for revision in (0, -1, True, 2**31):
            with pytest.raises(InvalidInput) as refused:
                ask("b", "2024-06", revision)
            assert refused.value.field == "revision"
        with pytest.raises(NotSettled):
            ask("b", "2024-06", 3)
        with pytest.raises(NotSettled) as open_:
            ask("b", "all")
        assert open_.value.ready_at is None
        with pytest.raises(InvalidInput):
            ask("b", "2024-06", cursor="none")
    with pytest.raises(InvalidInput):
        tr.settlement_changes("b", "2024-06", cursor=places.next)
    with pytest.raises(InvalidInput):
        tr.settlement_places("b", "2024-06", 1, cursor=places.next)
    with pytest.raises(CursorGone):
        tr.settlement_places("b", "2024-07", cursor=places.next)
    with pytest.raises(InvalidInput):
        tr.settlement_changes("b", "2024-06", 1, since=2)
    with pytest.raises(InvalidInput):
        tr.export("b", "2024-06", settled=True, revision=0)
    for malformed in ("a\0b", "\ud800"):
        for field, how in (
            ("season", {"season": malformed}),
            ("event_id", {"void": [malformed]}),
            ("event_id", {"amend": malformed, "value": 1}),
            ("event_id", {"amend": "a1", "value": 1, "correction_id": malformed}),
        ):
            with pytest.raises(InvalidInput) as refused:
                tr.revise_season(**{"board": "b", "season": "2024-06", **how, **BY})
            assert refused.value.field == field

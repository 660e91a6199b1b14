"""Ids that are merged after a season was settled: revisions take two ids of one person for one."""

from typing import Any

import pytest

from tests.settle.conftest import Months
from truerank.model import Award, AwardRule, Numbering
from truerank.repair.settlement import check_places

BY: Any = Months.BY
JUNE = "2024-06"


@pytest.fixture
def final(months: Months) -> Months:
    """June is final, and every prize of its podium is paid: p1 4, p2 3, p3 2, p4 1."""
    podium = AwardRule(period="month", name="podium", ranks=(1, 3), numbering=Numbering.ORDINAL)
    months.tr.make_award_rule("b", podium, **BY)
    months.submit(("e1", "p1", 4), ("e2", "p2", 3), ("e3", "p3", 2), ("e4", "p4", 1))
    months.close()
    changes = [award.change for award in months.tr.awards("b", JUNE)]
    assert months.tr.acknowledge_awards(changes, actor="payer") == 3
    return months


def merge(final: Months, merged: str, into: str) -> None:
    final.tr.merge_members(merged, into, timeout_s=0, **BY)


def stand_ins(final: Months) -> dict[tuple[int, str], bytes]:
    rows = final.conn.execute(
        "SELECT revision, member, stand_in FROM truerank.settlement_row WHERE ranking = %s",
        (final.tr.season("b", JUNE).ranking,),
    ).fetchall()
    return {(revision, member): stand_in for revision, member, stand_in in rows}


def told(award: Award) -> tuple[str, str, str | None, bool]:
    return award.member, award.state, award.acknowledged_state, award.acknowledged_at is not None


def awards(final: Months) -> dict[int, tuple[str, str, str | None, bool]]:
    found = check_places(final.conn, final.tr.season("b", JUNE))
    assert found is not None
    assert found.same, found.differences
    return {award.id: told(award) for award in final.tr.awards("b", JUNE)}


def test_whoever_is_renamed_keeps_what_it_was_given_and_paid(final: Months) -> None:
    before = awards(final)
    changes = [award.change for award in final.tr.awards("b", JUNE)]

    merge(final, "p1", "p1new")
    assert awards(final) == before
    (revised,) = final.tr.revise_season("b", JUNE, void=["e4"], **BY)

    assert revised.changed == 1
    assert [c.member for c in final.tr.settlement_changes("b", JUNE).changes] == ["p4"]
    assert list(awards(final)) == list(before)
    assert list(awards(final).values()) == [
        ("p1new", "given", "given", True),
        ("p2", "given", "given", True),
        ("p3", "given", "given", True),
    ]
    assert [award.change for award in final.tr.awards("b", JUNE)] == changes
    assert final.tr.awards("b", JUNE, unacknowledged=True) == []
    names = stand_ins(final)
    assert names[2, "p1new"] == names[1, "p1"]
    assert final.proven() == [(1, True, True), (2, True, True)]


def test_an_award_that_changes_with_the_name_comes_again_under_its_id(final: Months) -> None:
    ids = list(awards(final))

    merge(final, "p2", "p2new")
    final.tr.revise_season("b", JUNE, void=["e1"], **BY)

    found = awards(final)
    assert [found[each] for each in ids[:2]] == [
        ("p1", "withdrawn", "given", False),  # to be taken back
        ("p2new", "given", "given", False),  # it was paid: another rank
    ]
    assert [found[each] for each in found if each not in ids] == [("p4", "given", None, False)]
    (places,) = [c for c in final.tr.settlement_changes("b", JUNE).changes if c.member == "p2new"]
    assert (places.rank_before, places.rank) == (2, 1)


def test_of_two_paid_accounts_that_are_one_by_now_one_prize_is_taken_back(final: Months) -> None:
    ids = list(awards(final))

    merge(final, "p3", "p1")
    final.tr.revise_season("b", JUNE, **BY)

    found = awards(final)
    assert found.pop(ids[0])[:3] == ("p1", "given", "given")  # its own
    assert found.pop(ids[2]) == ("p3", "withdrawn", "given", False)
    assert found.pop(ids[1]) == ("p2", "given", "given", True)
    assert list(found.values()) == [("p4", "given", None, False)]
    final.tr.revise_season("b", JUNE, void=["e4"], **BY)
    assert awards(final)[ids[0]][:3] == ("p1", "given", "given")
    assert final.proven() == [(n, True, True) for n in (1, 2, 3)]


def test_of_two_accounts_the_prize_that_was_paid_stays(months: Months) -> None:
    rule = AwardRule(period="month", name="all", percent="100")
    months.tr.make_award_rule("b", rule, **BY)
    months.submit(("e1", "p1", 4), ("e2", "p2", 3), ("e3", "p3", 2))
    months.close()
    first, second, third = months.tr.awards("b", JUNE)
    months.tr.acknowledge_awards([first.change, third.change], actor="payer")

    merge(months, "p1", "p2")
    months.tr.revise_season("b", JUNE, **BY)

    assert awards(months) == {
        first.id: ("p2", "given", "given", False),  # other score, paid already
        second.id: ("p1", "withdrawn", None, False),  # and never paid
        third.id: ("p3", "given", "given", False),  # another rank
    }


def test_a_member_who_comes_back_is_called_as_before(final: Months) -> None:
    final.tr.ban_member("p1", timeout_s=0, **BY)
    final.tr.revise_season("b", JUNE, **BY)
    merge(final, "p1", "other")  # and the ban with it
    final.tr.unban_member("other", timeout_s=0, **BY)
    final.tr.revise_season("b", JUNE, **BY)

    names = stand_ins(final)
    assert (2, "p1") not in names
    assert names[3, "other"] == names[1, "p1"]
    compared = final.tr.settlement_changes("b", JUNE, since=1)
    assert compared.changes == ()
    assert [told(a) for a in final.tr.awards("b", JUNE) if a.member == "other"] == [
        ("other", "given", "given", False)
    ]


def test_after_the_person_is_erased_revisions_still_fit_together(final: Months) -> None:
    merge(final, "p1", "p1new")
    final.tr.revise_season("b", JUNE, void=["e4"], **BY)
    final.tr.erase_member("p1new", timeout_s=0, **BY)

    assert [c.rank for c in final.tr.settlement_changes("b", JUNE).changes] == [None]
    assert final.proven() == [(1, True, True), (2, True, True)]
    assert len(awards(final)) == 3
    final.tr.revise_season("b", JUNE, **BY)
    states = [award.state for award in final.tr.awards("b", JUNE)]
    assert sorted(states) == ["given", "given", "withdrawn"]

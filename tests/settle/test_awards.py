"""Awards come with the settlement, once for each rule and member, and follow its revisions."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

import truerank
from tests.settle.conftest import Connection, Months
from truerank.errors import BoardUnknown, InvalidInput, NotSettled
from truerank.model import Award, AwardRule, Numbering

BY: Any = Months.BY
SCORES = [9, 8, 8, 7, 7, 7, 1]  # of A, B, C ...


def rule(name: str, **how: object) -> AwardRule:
    return AwardRule(period="month", name=name, **how)  # type: ignore[arg-type]


def submit(months: Months) -> None:
    months.submit(*((f"e{m}", m, v) for m, v in zip("ABCDEFG", SCORES, strict=True)))


def given(awards: list[Award]) -> dict[str, str]:
    """The members of each rule, of what is given now."""
    found: dict[str, list[str]] = {}
    for award in awards:
        if award.state == "given":
            found.setdefault(award.rule, []).append(award.member)
    return {name: "".join(sorted(members)) for name, members in found.items()}


def test_each_kind_of_rule_gives_to_whom_it_says_also_among_equals(months: Months) -> None:
    wanted = {
        rule("gold", ranks=(1, 1)): "A",
        rule("two", ranks=(1, 2)): "ABC",
        rule("second ordinal", ranks=(2, 2), numbering=Numbering.ORDINAL): "B",
        rule("third dense", ranks=(3, 3), numbering=Numbering.DENSE): "DEF",
        rule("third", ranks=(3, 3)): "",
        rule("beyond", ranks=(8, 10)): "",
        rule("top 15 percent", percent="15"): "ABC",  # 1.05, so 2 of 7
        rule("top 1 percent", percent="1"): "A",
        rule("all", percent="100"): "ABCDEFG",
        rule("eight", score="8"): "ABC",
        rule("ten", score="10"): "",
    }
    for each in wanted:
        months.tr.make_award_rule("b", each, **BY)
    submit(months)

    months.close()

    awards = months.tr.awards("b", "2024-06")
    assert given(awards) == {each.name: who for each, who in wanted.items() if who}
    assert [award.change for award in awards] == sorted({award.change for award in awards})
    (first, *_) = [award for award in awards if award.rule == "two"]
    assert (first.rank, first.score, first.revision, first.season) == (1, "9", 1, "2024-06")


def test_where_lower_is_better_a_score_at_most_is_as_good(
    tr: truerank.Truerank, conn: Connection
) -> None:
    months = Months(tr, conn, "best", "asc")
    tr.make_award_rule("b", rule("seven", score="7"), **BY)
    submit(months)

    months.close()

    assert given(tr.awards("b")) == {"seven": "DEFG"}


def test_before_the_season_is_final_there_are_none_but_when_to_come_back(months: Months) -> None:
    months.tr.make_award_rule("b", rule("gold", ranks=(1, 1)), **BY)
    months.rules(hold="1 day")
    submit(months)

    with pytest.raises(NotSettled) as before:
        months.tr.awards("b", "2024-06")
    months.close()
    with pytest.raises(NotSettled) as held:
        months.tr.awards("b", "2024-06")

    hold_until = months.tr.season("b", "2024-06").hold_until
    assert hold_until is not None
    assert before.value.ready_at is not None
    # Closed when it was asked for, it would have been settled a day later.
    assert before.value.ready_at <= hold_until <= before.value.ready_at + timedelta(minutes=1)
    assert held.value.ready_at == hold_until
    assert months.tr.awards("b") == []


def test_rules_hold_for_what_is_settled_later_and_one_that_is_dropped_for_nothing(
    months: Months,
) -> None:
    submit(months)
    months.tr.make_award_rule("b", rule("dropped", ranks=(1, 1)), **BY)
    months.tr.drop_award_rule("b", "month", "dropped", **BY)
    months.tr.make_award_rule("b", AwardRule(period="week", name="weekly", ranks=(1, 1)), **BY)
    months.close()

    months.tr.make_award_rule("b", rule("late", ranks=(1, 1)), **BY)
    months.tr.revise_season("b", "2024-06", void=["eA"], **BY)

    assert months.tr.awards() == []


def test_a_revision_gives_and_withdraws_and_asks_for_attention_again(months: Months) -> None:
    tr = months.tr
    tr.make_award_rule("b", rule("podium", ranks=(1, 2), numbering=Numbering.ORDINAL), **BY)
    submit(months)
    months.close()
    first = tr.awards("b", unacknowledged=True)
    assert tr.acknowledge_awards([award.change for award in first], actor="payer") == 2
    assert tr.awards("b", unacknowledged=True) == []

    tr.drop_award_rule("b", "month", "podium", **BY)
    tr.revise_season("b", "2024-06", void=["eA"], **BY)

    changed = tr.awards("b", after=first[-1].change)
    assert {(award.member, award.state, award.rank) for award in changed} == {
        ("A", "withdrawn", 1), ("B", "given", 1), ("C", "given", 2)
    }  # fmt: skip
    assert tr.awards("b", unacknowledged=True) == changed
    ids = {award.member: award.id for award in first}
    assert {award.member: award.id for award in changed if award.member in ids} == ids
    assert [award.acknowledged_state for award in changed] == [
        "given" if award.member in ids else None for award in changed
    ]


def test_what_was_read_before_a_revision_is_acknowledged_as_what_it_was(months: Months) -> None:
    tr = months.tr
    tr.make_award_rule("b", rule("podium", ranks=(1, 2)), **BY)
    submit(months)
    months.close()
    read = {award.member: award for award in tr.awards("b")}
    tr.revise_season("b", "2024-06", void=["eA"], **BY)  # who pays has read before that

    assert tr.acknowledge_awards([award.change for award in read.values()], actor="payer") == 3
    changed = {award.member: award for award in tr.awards("b", unacknowledged=True)}
    now = {m: (a.state, a.rank, a.acknowledged_state) for m, a in changed.items()}
    assert now == {
        "A": ("withdrawn", 1, "given"), "B": ("given", 1, "given"), "C": ("given", 1, "given"),
    }  # fmt: skip
    assert tr.acknowledge_awards([award.change for award in changed.values()], actor="payer") == 3
    assert tr.awards("b", unacknowledged=True) == []
    tr.acknowledge_awards([read["A"].change], actor="late")  # what is older takes nothing back
    (a,) = [award for award in tr.awards("b") if award.member == "A"]
    assert (a.state, a.acknowledged_state, a.acknowledged_by) == (
        "withdrawn", "withdrawn", "payer",
    )  # fmt: skip


def test_who_follows_the_list_pays_every_award_once_whatever_is_revised(months: Months) -> None:
    tr = months.tr
    tr.make_award_rule("b", rule("podium", ranks=(1, 2), numbering=Numbering.ORDINAL), **BY)
    submit(months)
    months.close()
    paid: dict[int, int] = {}

    def pay() -> None:
        for award in tr.awards(unacknowledged=True):
            if award.state == "given" and award.acknowledged_state != "given":
                paid[award.id] = paid.get(award.id, 0) + 1
            elif award.state == "withdrawn" and award.acknowledged_state == "given":
                paid[award.id] -= 1
            tr.acknowledge_awards([award.change], actor="payer")

    tr.revise_season("b", "2024-06", void=["eB"], **BY)  # before anything was paid
    pay()
    for how in ({"void": ["eA"]}, {"amend": "eG", "value": 99, "correction_id": "c1"}):
        tr.revise_season("b", "2024-06", **how, **BY)
        pay()
    pay()

    awards = tr.awards()
    assert {paid.get(award.id, 0) for award in awards if award.state == "given"} == {1}
    assert {paid.get(award.id, 0) for award in awards if award.state == "withdrawn"} == {0}
    assert given(awards) == {"podium": "CG"}


def test_payers_and_revisions_at_once_pay_and_take_back_what_is_due(
    months: Months, database_url: str, redis_url: str
) -> None:
    tr, paid, over = months.tr, Counter[int](), threading.Event()
    tr.make_award_rule("b", rule("gold", ranks=(1, 1)), **BY)
    tr.make_award_rule("b", rule("podium", ranks=(1, 3), numbering=Numbering.ORDINAL), **BY)
    submit(months)
    months.close()

    def pay(client: truerank.Truerank) -> int:
        awards = client.awards(unacknowledged=True)
        for award in awards:
            if award.state == "given" and award.acknowledged_state != "given":
                paid[award.id] += 1
            elif award.state == "withdrawn" and award.acknowledged_state == "given":
                paid[award.id] -= 1
        client.acknowledge_awards([award.change for award in awards], actor="payer")
        return len(awards)

    def keep_paying() -> None:
        with truerank.connect(database_url, redis_url) as client:
            while not over.is_set():
                pay(client)

    with ThreadPoolExecutor(1) as threads:
        paying = threads.submit(keep_paying)
        try:
            for n in range(8):
                tr.revise_season(
                    "b", "2024-06", amend="eG", value=99 * (n % 2), correction_id=f"c{n}", **BY
                )
        finally:
            over.set()
        paying.result()
    while pay(tr):
        pass

    due = {award.id: int(award.state == "given") for award in tr.awards()}
    assert {id_: paid[id_] for id_ in due} == due
    assert given(tr.awards()) == {"gold": "G", "podium": "ABG"}


def test_a_rule_that_a_settlement_did_not_see_gives_nothing_in_its_revisions(
    months: Months, conn: Connection
) -> None:
    submit(months)
    months.close()
    months.tr.make_award_rule("b", rule("gold", ranks=(1, 1)), **BY)
    # As one that was made before the settlement, and committed while that went on.
    conn.execute("UPDATE truerank.award_rule SET made_at = '2024-01-01'")

    months.tr.revise_season("b", "2024-06", void=["eA"], **BY)

    assert months.tr.awards() == []


def test_an_award_whose_place_stays_is_not_touched_by_a_revision(months: Months) -> None:
    months.tr.make_award_rule("b", rule("gold", ranks=(1, 1)), **BY)
    submit(months)
    months.close()
    before = months.tr.awards("b")

    months.tr.revise_season("b", "2024-06", void=["eG"], **BY)

    assert months.tr.awards("b") == before


def test_acknowledging_again_changes_nothing(months: Months) -> None:
    months.tr.make_award_rule("b", rule("gold", ranks=(1, 1)), **BY)
    submit(months)
    months.close()
    (award,) = months.tr.awards("b")

    counts = [months.tr.acknowledge_awards([award.change], actor=who) for who in ("a", "b")]

    assert counts == [1, 1]
    assert [each.acknowledged_by for each in months.tr.awards("b")] == ["a"]


def test_a_rule_is_made_once_and_must_make_sense(months: Months) -> None:
    tr = months.tr
    assert tr.make_award_rule("b", rule("gold", ranks=(1, 1)), **BY) is True
    assert tr.make_award_rule("b", rule("gold", ranks=(1, 1)), **BY) is False
    assert tr.award_rules("b") == [rule("gold", ranks=(1, 1))]
    for bad in (
        rule("gold", ranks=(1, 2)),
        rule("x"),
        rule("x", ranks=(1, 2), percent="5"),
        rule("x", ranks=(0, 2)),
        rule("x", ranks=(3, 2)),
        rule("x", percent="0"),
        rule("x", percent="101"),
        rule("x", percent="some"),
        rule("x", percent="NaN"),
        rule("x", percent="-1"),
        rule("x", ranks=(1, 2**63)),
        rule("x", ranks=(1, 2, 3)),
        rule("x", ranks=(1.0, 2)),
        rule("x", ranks=(1, 2), numbering="by luck"),
        rule("", ranks=(1, 2)),
        rule("x" * 101, ranks=(1, 2)),
        rule("x", score="1.5"),
        AwardRule(period="decade", name="x", ranks=(1, 1)),
    ):
        with pytest.raises(InvalidInput):
            tr.make_award_rule("b", bad, **BY)
    with pytest.raises(BoardUnknown):
        tr.make_award_rule("c", rule("gold", ranks=(1, 1)), **BY)
    with pytest.raises(InvalidInput):
        tr.drop_award_rule("b", "week", "gold", **BY)


def test_awards_go_with_their_board(months: Months, conn: Connection) -> None:
    months.tr.make_award_rule("b", rule("gold", ranks=(1, 1)), **BY)
    submit(months)
    months.close()

    months.tr.delete_board("b", **BY)
    assert months.tr.awards() == []
    while months.tr.purge_boards():
        pass

    assert conn.execute("SELECT FROM truerank.award").fetchall() == []
    assert conn.execute("SELECT FROM truerank.award_rule").fetchall() == []


def test_who_has_no_place_then_gets_nothing_and_takes_nobodys_award(months: Months) -> None:
    tr, how = months.tr, {"timeout_s": 0.0, **BY}
    tr.make_award_rule("b", rule("two", ranks=(1, 2)), **BY)
    tr.make_award_rule("b", rule("half", percent="50"), **BY)
    submit(months)
    tr.hide_member("A", **how)
    tr.ban_member("B", **how)
    tr.delete_member("C", **how)
    months.close()
    at_first = given(tr.awards("b"))
    tr.show_member("A", **how)
    tr.hide_member("D", **how)
    now = given(tr.awards("b"))

    tr.revise_season("b", "2024-06", **BY)

    assert at_first == {"two": "DEF", "half": "DEF"}  # of four: two, and who is equal to them
    assert now == at_first
    assert given(tr.awards("b")) == {"two": "AEF", "half": "AEF"}
    withdrawn = {award.member for award in tr.awards("b") if award.state == "withdrawn"}
    assert withdrawn == {"D"}


def test_an_empty_season_is_settled_and_gives_nothing(months: Months) -> None:
    for each in (rule("one", ranks=(1, 1)), rule("all", percent="100"), rule("any", score="0")):
        months.tr.make_award_rule("b", each, **BY)

    months.close()

    (settlement,) = months.tr.settlements("b", "2024-06")
    assert (settlement.population, settlement.total, settlement.different) == (0, "0", 0)
    assert months.tr.awards("b", "2024-06") == []
    assert months.settled() == []
    assert months.tr.settlement_places("b", "2024-06").places == ()
    assert months.proven() == [(1, True, True)]

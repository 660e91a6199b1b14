"""The stored places of settlements, which pay out, are compared with what was announced."""

from typing import Any

import psycopg
import pytest

from tests.settle.conftest import Months
from truerank.model import AwardRule, Season
from truerank.repair.settlement import check_places
from truerank.repair.verified import PathResult

BY: Any = Months.BY


def checked(conn: psycopg.Connection[Any], season: Season) -> PathResult:
    found = check_places(conn, season)
    assert found is not None
    return found


@pytest.fixture
def final(months: Months) -> Months:
    """June is final: A and B 30, C 10; a second revision voids C's score."""
    months.submit(("a1", "A", 30), ("b", "B", 30), ("c", "C", 10))
    months.close()
    months.tr.revise_season("b", "2024-06", void=["c"], **BY)
    return months


def test_whatever_is_changed_in_a_stored_place_of_any_revision_is_found(final: Months) -> None:
    season = final.tr.season("b", "2024-06")
    sound = checked(final.conn, season)
    assert (sound.same, sound.whole, sound.compared) == (True, True, 5)

    rows = "UPDATE truerank.settlement_row SET"
    made = "UPDATE truerank.settlement SET"
    for change, revision, subject in (
        (f"{rows} score = 900000 WHERE revision = 2 AND member = 'B'", 2, "place 2: score"),
        (f"{rows} competition = 2 WHERE revision = 2 AND member = 'B'", 2,
         "place 2: competition rank"),
        (f"{rows} dense = 1 WHERE revision = 1 AND member = 'C'", 1, "place 3: dense rank"),
        (f"{rows} ordinal = 9 WHERE revision = 1 AND member = 'C'", 1, "place 3: ordinal rank"),
        (f"{rows} ties = '{{7}}' WHERE revision = 1 AND member = 'C'", 1,
         "place 3: tie-breaks"),
        ("DELETE FROM truerank.settlement_row WHERE revision = 1 AND member = 'C'", 1,
         "population"),
        ("DELETE FROM truerank.settlement_row WHERE revision = 2 AND member = 'A'", 2,
         "place 1: ordinal rank"),
        (f"{rows} stand_in = substr(sort_key, 1, 16) WHERE revision = 1 AND member = 'B'", 1,
         "digest"),
        (f"{rows} sort_key = '\\xff' || sort_key WHERE revision = 1 AND member = 'A'", 1,
         "place 2: order"),
        (f"{made} population = 4 WHERE revision = 1", 1, "population"),
        (f"{made} total = 71 WHERE revision = 1", 1, "total"),
        (f"{made} different = 1 WHERE revision = 1", 1, "different"),
        ("DELETE FROM truerank.settlement WHERE revision = 2", 2, "digest"),
    ):  # fmt: skip
        with final.conn.transaction(force_rollback=True):
            assert final.conn.execute(change).rowcount == 1, change
            found = checked(final.conn, season)
            subjects = {each.subject for each in found.differences}
            assert f"revision {revision}: {subject}" in subjects, change
            assert all(each.startswith(f"revision {revision}:") for each in subjects), change


def test_an_award_that_the_rules_do_not_give_is_found(months: Months) -> None:
    """And one that they give and nobody has; of a rule that came later nothing is expected."""
    first = AwardRule(period="month", name="first", ranks=(1, 1))
    months.tr.make_award_rule("b", first, **BY)
    months.submit(("a1", "A", 30), ("b", "B", 20))
    months.close()
    months.tr.make_award_rule("b", AwardRule(period="month", name="late", ranks=(1, 9)), **BY)
    season = months.tr.season("b", "2024-06")
    assert checked(months.conn, season).same

    for change, wanted in (
        ("member = 'B'", {("A", "rank 1 by 30", None), ("B", None, "rank 1 by 30")}),
        ("score = 31", {("A", "rank 1 by 30", "rank 1 by 31")}),
        ("state = 'withdrawn'", {("A", "rank 1 by 30", None)}),
    ):
        with months.conn.transaction(force_rollback=True):
            months.conn.execute(f"UPDATE truerank.award SET {change}")
            found = checked(months.conn, season).differences
            assert {
                (
                    each.subject.removeprefix("revision 1: award first of "),
                    each.expected,
                    each.found,
                )
                for each in found
            } == wanted, change

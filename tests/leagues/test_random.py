"""Random lives of a league against a model that knows nothing of cohorts' standings."""

import random
from typing import Any

import pytest

from tests.leagues.conftest import Connection, Leagues
from tests.settle.test_random import Life
from truerank.repair.recompute import recompute

BY: Any = Leagues.BY
SEASON = "2024-06"


@pytest.mark.parametrize("seed", range(3))
def test_cohorts_hold_what_the_season_does_whatever_happens(
    tr: Any, conn: Connection, seed: int
) -> None:
    rng = random.Random(seed)
    life = Life(tr, rng, rng.choice(["sum", "best", "latest"]))
    leagues = Leagues(tr, conn)
    leagues.set(
        size=rng.choice([2, 3, 5]), tiers=("low", "high"), promote=1, demote=1,
        from_season="2024-05",
    )  # fmt: skip
    known: dict[str, int] = {}

    for _ in range(20):
        match rng.randrange(5):
            case 0 | 1:
                life.submit(rng.randrange(1, 12))
            case 2:
                if life.events:
                    life.correct()
            case 3:
                life.change_member()
            case _:
                leagues.divide()
        if rng.random() < 0.2:
            tr.close_season("b", "2024-05", actor="test")
        for label in ("2024-05", SEASON):
            assert leagues.differences(label) == [], label
        assert no_two_cohorts(conn)
        now = dict(
            conn.execute(
                "SELECT member, cohort FROM truerank.cohort_member"
                " WHERE season = %s AND cohort IS NOT NULL",
                (leagues.season(SEASON),),
            ).fetchall()
        )
        stayed = {member for member in known if member in now}
        assert {now[m] for m in stayed} <= set(known.values())
        assert all(now[member] == known[member] for member in stayed)
        known = now

    tr.close_season("b", "2024-05", actor="test")
    tr.close_season("b", SEASON, actor="test")
    for label in ("2024-05", SEASON):
        assert leagues.differences(label) == []
        assert naive_moves(leagues, label) == stored_moves(leagues, label)
    assert tr.run(recompute("b")).differing == []


def no_two_cohorts(conn: Connection) -> bool:
    """Whether nobody has standings in two cohorts of a season."""
    return not conn.execute(
        "SELECT FROM truerank.standing AS s JOIN truerank.cohort AS c ON c.ranking = s.ranking"
        " GROUP BY c.season, s.member HAVING count(*) > 1"
    ).fetchall()


def naive_moves(leagues: Leagues, label: str) -> set[tuple[str, int, int]]:
    """Who moves from one tier to another, by the settled places of each cohort."""
    moves: set[tuple[str, int, int]] = set()
    if leagues.tr.season("b", label).state != "final":
        return moves
    for cohort in leagues.tr.cohorts("b", label):
        page = leagues.tr.top(
            "b", label, cohort=cohort.number, limit=1000, consistency="settled",
            numbering="ordinal",
        )  # fmt: skip
        members = [entry.member for entry in page.entries]
        if cohort.tier == 0:
            moves |= {(member, 0, 1) for member in members[:1]}
        else:
            moves |= {(member, 1, 0) for member in members[1:][-1:]}  # the first never
    return moves


def stored_moves(leagues: Leagues, label: str) -> set[tuple[str, int, int]]:
    return set(
        leagues.conn.execute(
            "SELECT CASE WHEN r.left_at IS NULL AND NOT EXISTS ("
            "  SELECT FROM truerank.member_state AS s WHERE s.member = v.member"
            "  AND s.board_id IN (0, v.board_id) AND s.state IN ('hidden', 'banned', 'merged'))"
            " THEN v.member ELSE encode(r.stand_in, 'hex') END, v.tier_from, v.tier_to"
            " FROM truerank.league_move AS v"
            " JOIN truerank.ranking AS n ON n.id = v.season"
            " JOIN truerank.settlement_row AS r ON r.ranking = v.season"
            "  AND r.revision = n.revision AND r.member = v.member"
            " WHERE v.season = %s",
            (leagues.season(label),),
        ).fetchall()
    )

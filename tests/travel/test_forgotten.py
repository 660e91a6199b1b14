"""A board that forgets its old events: what is still known of its past, and what isn't."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.travel.conftest import AT_ONCE, BY, Past
from truerank.errors import HistoryForgotten

DAY = timedelta(days=1)
_CALLS_MAX = 200


def received(past: Past, **days: float) -> None:
    """Let events and corrections have come so many days ago, by id; ended ones have ended then."""
    for event_id, ago in days.items():
        past.conn.execute(
            "UPDATE truerank.event SET received_at = now() - make_interval(secs => %s)"
            " WHERE event_text = %s",
            (ago * 86_400, event_id),
        )


def forget(past: Past, days: int) -> None:
    past.tr.update_board("b", {"retention": f"{days} days"}, **BY)
    for call in range(_CALLS_MAX):
        if not past.tr.prune_events("b", at_once=call == 0).pending:
            return
    raise AssertionError("there is always more to do")


@pytest.fixture
def ago(past: Past) -> Callable[[float], datetime]:
    """Instants so many days before the test began, a minute earlier still."""
    now = past.now()
    return lambda days: now - days * DAY - timedelta(minutes=1)


def test_an_instant_is_refused_while_what_was_forgotten_came_or_changed_later(
    past: Past, ago: Callable[[float], datetime]
) -> None:
    for event_id, member, value, days in (
        ("old", "ann", 5, 40),
        ("late", "bob", 3, 39),
        ("void", "cid", 7, 38),
        ("new", "ann", 1, 5),
    ):
        past.scores((event_id, member, value), occurred_at=ago(days))
    received(past, old=40, late=35, void=38, new=5)
    past.tr.void_events("b", ["void"], **BY)
    past.conn.execute(
        "UPDATE truerank.event SET received_at = now() - interval '20 days' WHERE kind = 'v'"
    )
    instants = [ago(days) for days in (19, 6, 4, 0.1)]
    before = [past.at(instant) for instant in instants]
    day, gone = ago(5).date().isoformat(), ago(39).date().isoformat()

    forget(past, 30)

    assert [past.at(instant) for instant in instants] == before
    assert before[0] == {"ann": "5", "bob": "3"}
    with pytest.raises(HistoryForgotten) as refused:
        past.at(ago(21))
    exact_from = refused.value.exact_from
    assert exact_from is not None
    assert ago(20) < exact_from < ago(19.9)
    assert past.at(exact_from) == {"ann": "5", "bob": "3"}
    with pytest.raises(HistoryForgotten):
        past.tr.top("b", since=exact_from - timedelta(microseconds=1))
    assert past.at(ago(21), day) == {}, "of this season nothing is forgotten"
    with pytest.raises(HistoryForgotten) as refused:
        past.at(past.now(), gone)
    assert refused.value.exact_from is None


@pytest.mark.parametrize(("action", "known"), [("reset", False), ("delete", True), ("hide", True)])
def test_only_the_reset_of_who_had_forgotten_events_hides_what_was_before(
    past: Past, ago: Callable[[float], datetime], action: str, *, known: bool
) -> None:
    past.scores(("1", "ann", 5), ("2", "bob", 3), occurred_at=ago(40))
    past.scores(("3", "cid", 1), occurred_at=ago(5))
    past.conn.execute("UPDATE truerank.event SET received_at = occurred_at")
    forget(past, 30)
    past.tr.reset_member("cid", **AT_ONCE)
    before = past.now()
    assert past.at(ago(4)) == {"ann": "5", "bob": "3", "cid": "1"}

    getattr(past.tr, f"{action}_member")("ann", **AT_ONCE)

    if known:
        assert past.at(ago(4)) == {"bob": "3", "cid": "1"}
    else:
        with pytest.raises(HistoryForgotten):
            past.at(before)
    assert past.at(past.now()) == past.at(None) == {"bob": "3"}


def test_every_operator_goes_on_from_what_was_forgotten(
    past: Past, ago: Callable[[float], datetime]
) -> None:
    kinds: list[dict[str, Any]] = [
        {"operator": operator, "order": order}
        for operator in ("sum", "best", "latest")
        for order in ("desc", "asc")
    ]
    for i, kind in enumerate(kinds):
        past.tr.create_board(f"k{i}", seasons=["all"], **kind)
        for n, (member, value, days) in enumerate(
            [("ann", 5, 41), ("ann", 5, 40), ("bob", 0, 39), ("ann", 5, 9), ("bob", 2, 8)]
        ):
            past.tr.submit_score(
                f"k{i}", event_id=str(n), member=member, value=value, occurred_at=ago(days)
            )
    past.conn.execute("UPDATE truerank.event SET received_at = occurred_at")
    folded = """
        SELECT b.key, d, a.member, a.sort_key FROM truerank.board AS b
        CROSS JOIN unnest(ARRAY[10, 8.5, 7]) AS d
        CROSS JOIN LATERAL truerank.standings_at(
            b, truerank.season_of_ranking(b, truerank.ranking_id(b.id, 'all', 0)),
            now() - make_interval(secs => d * 86400)) AS a
        WHERE b.key LIKE 'k%' ORDER BY 1, 2, 3"""
    before = past.conn.execute(folded).fetchall()
    assert len(before) == 3 * 2 * len(kinds)

    for i in range(len(kinds)):
        past.conn.execute(
            "UPDATE truerank.board SET retention = '30 days' WHERE key = %s", (f"k{i}",)
        )
        for call in range(_CALLS_MAX):
            if not past.tr.prune_events(f"k{i}", at_once=call == 0).pending:
                break

    assert past.conn.execute("SELECT count(*) FROM truerank.opening").fetchone() == (12,)
    assert past.conn.execute(folded).fetchall() == before

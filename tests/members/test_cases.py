"""The cases of the field: hidden leaders, bans, merged accounts, and whoever leaves all boards."""

import pytest

from tests.members.conftest import Club
from truerank.model import Outcome, ScoreEvent


def test_a_hidden_leader_takes_no_place(club: Club) -> None:
    club.scores("b", ("A", 100), ("B", 90), ("C", 80))

    club.does("hide", "A")

    assert club.settled() == {"B": (1, "90"), "C": (2, "80")}
    page = club.top("b", limit=0, member="B", around_limit=3)
    assert (page.places[0].rank, page.total) == (1, 2)
    assert [(entry.rank, entry.member) for entry in page.around] == [(1, "B"), (2, "C")]
    assert [place.rank for place in club.places("b", ["A", "B", "C"]).places] == [None, 1, 2]
    operators = club.client.standing("b", "A")
    assert operators is not None
    assert operators.score == "100"


def test_a_ban_is_a_flag_and_not_a_score(club: Club) -> None:
    club.scores("b", ("A", 80), ("B", 70), ("C", 60))

    club.does("ban", "A")
    assert club.settled() == {"B": (1, "70"), "C": (2, "60")}
    stored = club.client.standing("b", "A")
    assert stored is not None
    assert stored.score == "80"
    (receipt,) = club.scores("b", ("A", 5))
    assert receipt.outcome is Outcome.APPLIED
    assert club.settled() == {"B": (1, "70"), "C": (2, "60")}

    club.does("unban", "A")
    assert club.settled() == {"A": (1, "85"), "B": (2, "70"), "C": (3, "60")}


def test_merging_two_accounts_on_a_board_that_sums(club: Club) -> None:
    old = ScoreEvent(event_id="old", member="B", value=3)
    club.scores("b", ("A", 10), ("C", 12))
    club.submit("b", [old])
    club.pipeline.submit("b", {"B": 4})  # its row in the outbox is still pending

    change = club.does("merge", "B", "A")
    assert (change.changed, change.merged_into) == (True, "A")
    assert club.settled() == {"A": (1, "17"), "C": (2, "12")}

    (retried,) = club.submit("b", [old])
    assert retried.outcome is Outcome.DUPLICATE
    assert {now.score for now in retried.standings} == {"17"}
    assert not club.does("merge", "B", "A").changed
    assert club.settled() == {"A": (1, "17"), "C": (2, "12")}
    assert club.place("b", "B").places[0].rank is None


def test_merging_two_accounts_keeps_the_better_score_and_its_earlier_instant(club: Club) -> None:
    club.client.create_board("best", operator="best", seasons=["all"])
    club.scores("best", ("B", 9), ("rival", 9), ("A", 9), ("A", 5))
    reached = club.client.standing("best", "B")
    assert reached is not None

    club.does("merge", "B", "A")

    assert club.settled("best") == {"A": (1, "9"), "rival": (1, "9")}
    assert [entry.member for entry in club.top("best").entries] == ["A", "rival"]
    merged = club.client.standing("best", "A")
    assert merged is not None
    assert (merged.score, merged.reached_at) == ("9", reached.reached_at)
    assert merged.event_id == reached.event_id


@pytest.mark.parametrize("action", ["hide", "ban", "reset", "delete"])
def test_who_leaves_is_gone_from_every_board_and_season_at_once(club: Club, action: str) -> None:
    club.client.create_board("friends", seasons=["all", "week", "month"])
    for board in ("b", "friends"):
        club.scores(board, ("A", 3), ("B", 2), ("C", 1))
    rankings = [("b", "all"), ("friends", "all")]
    for board, period in (("b", "day"), ("friends", "week"), ("friends", "month")):
        (named,) = club.client.seasons(board, period=period)
        rankings.append((board, named.label))

    club.does(action, "A")

    club.project()
    for board, season in rankings:
        assert club.shown(board, season) == {"B": (1, "2"), "C": (2, "1")}


def test_hiding_on_one_board_leaves_the_others(club: Club) -> None:
    club.client.create_board("other", seasons=["all"])
    for board in ("b", "other"):
        club.scores(board, ("A", 3), ("B", 2))

    club.does("hide", "A", board="b")

    assert club.settled("b") == {"B": (1, "2")}
    assert club.shown("other") == {"A": (1, "3"), "B": (2, "2")}


@pytest.mark.parametrize("numbering", ["competition", "ordinal"])
@pytest.mark.parametrize("order", ["desc", "asc"])
def test_withheld_members_part_no_ties_and_fill_no_pages(
    club: Club, order: str, numbering: str
) -> None:
    club.client.create_board("ties", operator="best", order=order, seasons=["all"])
    club.scores("ties", *((f"m{i:02}", 7 if i % 3 else 8) for i in range(24)))
    everybody = [entry.member for entry in club.top("ties", limit=100).entries]
    for member in everybody[::4]:
        club.does("hide", member)
    club.project()

    page = club.top("ties", limit=100, numbering=numbering)

    left = [member for i, member in enumerate(everybody) if i % 4]
    assert [entry.member for entry in page.entries] == left
    scores = [entry.score for entry in page.entries]
    ordinal = numbering == "ordinal"
    assert [entry.rank for entry in page.entries] == [
        (i if ordinal else scores.index(score)) + 1 for i, score in enumerate(scores)
    ]
    paged = [
        entry
        for at in range(0, 20, 5)
        for entry in club.top("ties", limit=5, offset=at, numbering=numbering).entries
    ]
    assert paged == list(page.entries)
    for member in everybody[1:4]:
        around = club.around("ties", member, limit=5, numbering=numbering).around
        assert list(around) == [e for e in page.entries if e in around]
        assert len(around) == 5


def test_a_member_sees_why_it_has_no_place(club: Club) -> None:
    club.scores("b", ("A", 3), ("B", 2), ("C", 1), ("D", 4))
    club.does("hide", "A")
    club.does("ban", "B", board="b")
    club.does("hide", "B")
    club.does("merge", "C", "D")
    club.does("hide", "nobody")
    club.project()

    places = club.places("b", ["A", "B", "C", "D", "nobody", "never"]).places

    assert [(p.rank, p.score, p.state.value) for p in places] == [
        (None, None, "hidden"),
        (None, None, "banned"),
        (None, None, "merged"),
        (1, "5", "active"),
        (None, None, "hidden"),
        (None, None, "active"),
    ]


def test_a_board_is_whole_again_after_everything_in_redis_was_lost(club: Club) -> None:
    club.scores("b", ("A", 3), ("B", 2), ("C", 1))
    club.does("hide", "A")
    club.does("ban", "B", board="b")
    assert club.settled() == {"C": (1, "1")}

    club.pipeline.redis.flushdb()
    club.projector = club.pipeline.projector()

    assert club.settled() == {"C": (1, "1")}
    club.does("unban", "B", board="b")
    club.does("show", "A")
    assert club.settled() == {"A": (1, "3"), "B": (2, "2"), "C": (3, "1")}

"""The order that the stored standings have, read from PostgreSQL."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

import truerank
from truerank import Numbering, Order, ScoreEvent, Truerank
from truerank.errors import EventRefused

Connection = psycopg.Connection[Any]
TEN = datetime(2024, 6, 15, 10, tzinfo=UTC)


class Table:
    """One board, its events numbered by themselves, and its list as (member, rank, score)."""

    def __init__(self, tr: Truerank, conn: Connection, **settings: Any) -> None:
        self.tr, self.conn, self.sent = tr, conn, 0
        tr.create_board("b", **{"seasons": ("all",), **settings})

    def send(self, *scores: tuple[str, int], at: datetime | None = None) -> list[truerank.Receipt]:
        events = []
        for member, value in scores:
            self.sent += 1
            events.append(
                ScoreEvent(event_id=f"e{self.sent}", member=member, value=value, occurred_at=at)
            )
        return truerank.submit_scores(self.conn, "b", events)

    def recompute(self) -> None:
        """Compute every standing anew from its events."""
        self.conn.execute(
            "SELECT truerank.recompute_standings("
            "  b, ARRAY[truerank.season_of_ranking(b, s.ranking)], ARRAY[s.ranking],"
            "  ARRAY[s.member])"
            " FROM truerank.standing AS s JOIN truerank.board AS b ON b.id = s.ranking >> 36"
        )

    def rows(self, numbering: Numbering = Numbering.COMPETITION) -> list[tuple[str, int, str]]:
        page = self.tr.top("b", numbering=numbering, source="database", limit=100)
        assert page.total == len(page.entries)
        return [(entry.member, entry.rank, entry.score) for entry in page.entries]


# RNK-1
def test_no_score_means_no_rank(tr: Truerank, conn: Connection) -> None:
    table = Table(tr, conn)
    table.send(("A", 10), ("B", 5))

    (place,) = tr.place("b", "Z", source="database").places
    around = tr.around("b", "Z", source="database")
    page = tr.top("b", member="Z", source="database")

    assert (place.rank, place.score) == (None, None)
    assert (around.around, around.places[0].rank, around.total) == ((), None, 2)
    assert (page.places[0].rank, page.total, len(page.entries)) == (None, 2, 2)


# RNK-2
def test_on_an_ascending_board_absent_is_not_zero(tr: Truerank, conn: Connection) -> None:
    table = Table(tr, conn, order=Order.ASC, operator="latest")
    table.send(("A", 61000))
    before = table.rows()

    table.send(("B", 0))

    assert before == [("A", 1, "61000")]
    assert table.rows() == [("B", 1, "0"), ("A", 2, "61000")]


# RNK-2
def test_a_zero_below_the_boards_least_value_is_refused(tr: Truerank, conn: Connection) -> None:
    table = Table(tr, conn, order=Order.ASC, operator="best", value_min=1)
    table.send(("A", 61000))

    with pytest.raises(EventRefused) as caught:
        truerank.submit_score(conn, "b", ScoreEvent(event_id="zero", member="B", value=0))

    assert caught.value.reason == "value_out_of_range"
    assert table.rows() == [("A", 1, "61000")]


# RNK-3
def test_negative_totals_stay_in_the_table(tr: Truerank, conn: Connection) -> None:
    table = Table(tr, conn)
    table.send(("A", 10), ("B", 0), ("C", -5), ("D", -20))
    before = table.rows()

    table.send(("D", 30))

    assert before == [("A", 1, "10"), ("B", 2, "0"), ("C", 3, "-5"), ("D", 4, "-20")]
    assert table.rows() == [("A", 1, "10"), ("D", 1, "10"), ("B", 3, "0"), ("C", 4, "-5")]


# RNK-5
@pytest.mark.parametrize(
    ("order", "ranks"),
    [
        (Order.DESC, {40: 1, 31: 2, 25: 3, 19: 6, 12: 7, 3: 8}),
        (Order.ASC, {3: 1, 12: 2, 19: 3, 25: 4, 31: 7, 40: 8}),
    ],
)
def test_equals_share_a_rank_in_both_directions(
    tr: Truerank, conn: Connection, order: Order, ranks: dict[int, int]
) -> None:
    table = Table(tr, conn, order=order)
    values = [40, 31, 25, 25, 25, 19, 12, 3]
    members = [f"m{n}" for n in range(len(values))]

    table.send(*zip(members, values, strict=True))

    assert sorted(table.rows()) == [
        (member, ranks[value], str(value)) for member, value in zip(members, values, strict=True)
    ]
    places = tr.places("b", members, source="database").places
    assert [place.rank for place in places] == [ranks[value] for value in values]


# RNK-6
def test_repeating_ones_own_best_changes_nothing(tr: Truerank, conn: Connection) -> None:
    table = Table(tr, conn, order=Order.ASC, operator="best")
    table.send(("A", 1000), ("B", 1200), ("C", 1300))
    whole = "SELECT * FROM truerank.standing ORDER BY member"
    logged = "SELECT count(*) FROM truerank.outbox"
    before, logged_before = conn.execute(whole).fetchall(), conn.execute(logged).fetchone()

    (receipt,) = table.send(("B", 1200))

    assert receipt.outcome.value == "applied"
    assert conn.execute(whole).fetchall() == before
    assert conn.execute(logged).fetchone() == logged_before  # so no reader hears of it
    assert table.rows() == [("A", 1, "1000"), ("B", 2, "1200"), ("C", 3, "1300")]


# RNK-7
def test_a_correction_lowers_a_score(tr: Truerank, conn: Connection) -> None:
    table = Table(tr, conn)
    table.send(("A", 100), ("B", 90))

    table.send(("A", -50))
    lowered = table.rows()
    tr.void_where("b", member="A", actor="ops", reason="a reset")

    assert lowered == [("B", 1, "90"), ("A", 2, "50")]
    assert table.rows() == [("B", 1, "90")]


# TIE-1
def test_a_shared_place_is_numbered_1224_or_1234(tr: Truerank, conn: Connection) -> None:
    table = Table(tr, conn)
    table.send(("A", 101), ("B", 100), ("C", 100), ("D", 99))

    assert [rank for _, rank, _ in table.rows()] == [1, 2, 2, 4]
    assert [rank for _, rank, _ in table.rows(Numbering.ORDINAL)] == [1, 2, 3, 4]


# TIE-2
def test_who_reaches_a_score_again_is_behind_who_kept_it(tr: Truerank, conn: Connection) -> None:
    table = Table(tr, conn)
    lists = []
    for members, after_s in [
        ((("A", 100),), 0),
        ((("B", 100),), 5),
        ((("A", -10),), 30),
        ((("A", 10),), 60),
    ]:
        table.send(*members, at=TEN + timedelta(seconds=after_s))
        lists.append([(m, rank) for m, rank, _ in table.rows(Numbering.ORDINAL)])

    assert lists[1:] == [[("A", 1), ("B", 2)], [("B", 1), ("A", 2)], [("B", 1), ("A", 2)]]
    table.recompute()
    assert [(m, rank) for m, rank, _ in table.rows(Numbering.ORDINAL)] == lists[-1]


# TIE-2
def test_a_correction_that_arrives_late_counts_from_when_it_happened(
    tr: Truerank, conn: Connection
) -> None:
    table = Table(tr, conn)
    table.send(("A", 100), at=TEN)
    table.send(("B", 100), at=TEN + timedelta(seconds=5))
    table.send(("A", 10), at=TEN + timedelta(seconds=4))
    table.send(("A", -10), at=TEN + timedelta(seconds=3))

    assert [member for member, _, _ in table.rows(Numbering.ORDINAL)] == ["A", "B"]


# TIE-6
def test_ties_inside_one_batch_stand_in_its_order(tr: Truerank, conn: Connection) -> None:
    table = Table(tr, conn)

    # Ids and members sort the other way round than the batch.
    events = [
        ScoreEvent(event_id=f"z{9 - n}", member=member, value=100)
        for n, member in enumerate(["C", "B", "A"])
    ]
    truerank.submit_scores(conn, "b", events)

    before = table.rows(Numbering.ORDINAL)
    table.recompute()
    assert table.rows(Numbering.ORDINAL) == before
    assert [member for member, _, _ in before] == ["C", "B", "A"]
    at = conn.execute("SELECT count(DISTINCT event_at) FROM truerank.standing").fetchone()
    assert at == (1,)


def test_equal_sort_keys_fall_to_the_bytes_of_the_member(tr: Truerank, conn: Connection) -> None:
    table = Table(tr, conn)
    members = ["a", "B", "Ä", "z", "é", "\U0001f600", "\uffff", "Z"]
    table.send(*((member, 1) for member in members), at=TEN)
    conn.execute("UPDATE truerank.standing SET sort_key = (SELECT min(sort_key::text)::bytea"
                 " FROM truerank.standing)")  # fmt: skip

    shown = [member for member, _, _ in table.rows(Numbering.ORDINAL)]

    assert shown == sorted(members, key=str.encode)

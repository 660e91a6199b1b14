"""Rules of a board: what it refuses, who changed them, and what becomes of a board that goes."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

import truerank
from truerank.errors import (
    BoardExists,
    BoardUnknown,
    Contended,
    EventRefused,
    InvalidInput,
    SeasonFinal,
    SeasonUnknown,
)

Connection = psycopg.Connection[Any]
BY: dict[str, Any] = {"actor": "ops", "reason": "a check"}


def refusal(tr: truerank.Truerank, board: str, event_id: str, **event: Any) -> str | None:
    """Why an event is refused, or None where it isn't."""
    try:
        tr.submit_score(board, event_id=event_id, **{"member": "ann", "value": 1, **event})
    except EventRefused as exc:
        return exc.reason
    return None


def test_a_member_has_no_more_events_in_a_minute_than_the_board_allows(
    tr: truerank.Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=["all"])
    tr.update_board("b", {"rate_max": 3}, **BY)

    receipts = tr.submit_scores(
        "b",
        [
            truerank.ScoreEvent(event_id=f"e{n}", member=member, value=1)
            for n, member in enumerate(["ann", "ann", "bob", "ann", "ann", "bob"])
        ],
    )

    assert [receipt.code for receipt in receipts] == [
        None, None, None, None, "rate_exceeded", None,
    ]  # fmt: skip
    assert refusal(tr, "b", "e9") == "rate_exceeded"
    # A minute later, and the id was not used up.
    conn.execute("UPDATE truerank.rate SET minute = minute - interval '1 minute'")
    assert refusal(tr, "b", "e9") is None


# SEA-9
def test_a_bounded_season_takes_no_events_longer_than_the_grace_after_its_end(
    tr: truerank.Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=["all", "day"])
    tr.update_board("b", {"late_grace": "2 days"}, **BY)
    conn.execute("UPDATE truerank.board SET created_at = now() - interval '1 year'")
    now = datetime.now(UTC)

    assert refusal(tr, "b", "e1", occurred_at=now - timedelta(days=2)) is None
    assert refusal(tr, "b", "e2", occurred_at=now - timedelta(days=4)) == "season_over"
    late = f"{now - timedelta(days=2):%Y-%m-%d}"
    places = [tr.place("b", "ann", season, source="database") for season in ("all", late)]
    assert [page.places[0].score for page in places] == ["1", "1"]
    assert tr.top("b", f"{now:%Y-%m-%d}", source="database").total == 0


def test_history_comes_into_seasons_that_were_over_before_there_was_the_board(
    tr: truerank.Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=["all", "month"])
    conn.execute("UPDATE truerank.board SET created_at = '2024-07-03'")
    tr.update_board("b", {"late_grace": "2 days"}, **BY)
    june, july = datetime(2024, 6, 30, tzinfo=UTC), datetime(2024, 7, 1, tzinfo=UTC)

    assert refusal(tr, "b", "e1", occurred_at=june) is None
    assert refusal(tr, "b", "e2", occurred_at=july) == "season_over"
    # Somebody who came with an event of June was refused while the board was there.
    tr.update_board("b", {"late_grace": "3 days"}, **BY)
    assert refusal(tr, "b", "e3", occurred_at=june) == "season_over"
    tr.update_board("b", {"late_grace": "2 days"}, **BY)
    tr.close_season("b", "2024-06", **BY)
    assert refusal(tr, "b", "e4", occurred_at=june) == "season_final"


def test_history_comes_into_a_custom_season_that_was_over_when_it_was_made(
    tr: truerank.Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=["all"])
    conn.execute("UPDATE truerank.board SET created_at = '2024-01-01'")
    tr.update_board("b", {"late_grace": "2 days"}, **BY)
    bounds = datetime(2024, 6, 1, tzinfo=UTC), datetime(2024, 7, 1, tzinfo=UTC)
    tr.create_season("b", "cup", *bounds)

    assert refusal(tr, "b", "e1", occurred_at=bounds[0]) is None
    conn.execute("UPDATE truerank.ranking SET made_at = starts_at WHERE season = 'cup'")
    assert refusal(tr, "b", "e2", occurred_at=bounds[0]) == "season_over"


def test_events_beyond_the_retention_are_refused_and_stored_ones_stay_duplicates(
    tr: truerank.Truerank,
) -> None:
    tr.create_board("b", seasons=["all"])
    old = datetime.now(UTC) - timedelta(days=40)
    assert refusal(tr, "b", "e1", occurred_at=old) is None
    tr.update_board("b", {"retention": "30 days"}, **BY)

    repeated = tr.submit_score("b", event_id="e1", member="ann", value=1, occurred_at=old)

    assert repeated.outcome is truerank.Outcome.DUPLICATE
    assert refusal(tr, "b", "e2", occurred_at=old) == "occurred_at_too_old"


@pytest.mark.parametrize(
    ("changes", "event", "code"),
    [
        ({"value_max": 5}, {"value": 6}, "value_out_of_range"),
        ({"total_max": 5}, {"value": 6}, "total_out_of_range"),
        ({"earliest_at": "2026-01-01T00:00:00Z"}, {"days": -400}, "occurred_at_too_early"),
        ({"latest_at": "2026-01-01T00:00:00Z"}, {}, "occurred_at_too_late"),
        ({"future_max": "0"}, {"minutes": 1}, "occurred_at_in_future"),
        ({"accepting": False}, {}, "board_closed"),
    ],
)
def test_each_rule_refuses_with_a_code_of_its_own(
    tr: truerank.Truerank, changes: dict[str, object], event: dict[str, int], code: str
) -> None:
    tr.create_board("b", seasons=["all"])
    times = {name: event[name] for name in ("days", "minutes") if name in event}
    content: dict[str, Any] = {"value": event.get("value", 1)}
    if times:
        content["occurred_at"] = datetime.now(UTC) + timedelta(**times)

    assert tr.update_board("b", changes, **BY)
    assert not tr.update_board("b", changes, **BY)

    assert refusal(tr, "b", "e1", **content) == code


def test_changes_are_audited_with_the_old_and_the_new_value(
    tr: truerank.Truerank, conn: Connection
) -> None:
    tr.create_board("b", value_max=10)

    tr.update_board("b", {"value_max": 20, "rate_max": 5}, **BY)

    rows = conn.execute("SELECT actor, action, subject, reason, detail FROM truerank.audit")
    detail = {"value_max": [10, 20], "rate_max": [None, 5]}
    assert rows.fetchall() == [("ops", "update_board", "b", "a check", detail)]


@pytest.mark.parametrize(
    "changes",
    [
        {"operator": "best"},
        {"zone": "UTC"},
        {"seasons": ["all"]},
        {"decimals": 2},
        {"id": 7},
        {"deleted_at": None},
        {"value_min": 5, "value_max": 4},
        {"rate_max": 0},
        {"late_grace": "soon"},
    ],
)
def test_what_would_change_results_or_makes_no_sense_is_refused_whole(
    tr: truerank.Truerank, conn: Connection, changes: dict[str, object]
) -> None:
    tr.create_board("b", zone="Europe/Berlin")
    before = conn.execute("SELECT b::text FROM truerank.board AS b").fetchone()

    with pytest.raises(InvalidInput):
        tr.update_board("b", {"accepting": False, **changes}, **BY)

    assert conn.execute("SELECT b::text FROM truerank.board AS b").fetchone() == before
    assert conn.execute("SELECT count(*) FROM truerank.audit").fetchone() == (0,)


def test_a_renamed_board_keeps_everything_but_its_key(tr: truerank.Truerank) -> None:
    tr.create_board("old", seasons=["all"])
    tr.create_board("other", seasons=["all"])
    assert refusal(tr, "old", "e1") is None

    assert tr.rename_board("old", "new", **BY)

    assert tr.top("new", source="database").total == 1
    repeated = tr.submit_score("new", event_id="e1", member="ann", value=1)
    assert repeated.outcome is truerank.Outcome.DUPLICATE
    with pytest.raises(BoardUnknown):
        tr.submit_score("old", event_id="e2", member="ann", value=1)
    with pytest.raises(BoardExists):
        tr.rename_board("new", "other", **BY)
    with pytest.raises(InvalidInput):
        tr.rename_board("new", "a/b", **BY)


def test_a_deleted_board_leaves_nothing_but_its_audit_and_its_key_is_free(
    tr: truerank.Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=["all", "month"])
    tr.create_board("other", seasons=["all"])
    for n in range(5):
        assert refusal(tr, "b", f"e{n}", member=f"m{n}") is None
    assert refusal(tr, "other", "e0") is None

    tr.delete_board("b", **BY)
    removed = []
    while rows := tr.purge_boards(4):
        removed.append(rows)

    assert removed == [4, 4, 2, 4, 1]  # ten standings, then five events
    with pytest.raises(BoardUnknown):
        tr.board("b")
    assert conn.execute("SELECT count(*) FROM truerank.event").fetchone() == (1,)
    drops = conn.execute("SELECT count(*) FROM truerank.outbox WHERE op = 'd'").fetchone()
    assert drops == (10,)
    assert tr.create_board("b", operator="best")
    assert refusal(tr, "b", "e0") is None
    assert tr.top("b", source="database").total == 1
    assert tr.top("other", source="database").total == 1


def test_a_board_is_not_deleted_under_a_writer(
    tr: truerank.Truerank, connect: Callable[..., Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truerank.command.board._BUSY_TRIES_MAX", 2)
    tr.create_board("b", seasons=["all"])
    writer = connect(autocommit=False)
    event = truerank.ScoreEvent(event_id="e1", member="ann", value=1)
    truerank.submit_score(writer, "b", event)

    with pytest.raises(Contended):
        tr.delete_board("b", **BY)
    writer.commit()
    tr.delete_board("b", **BY)

    with pytest.raises(BoardUnknown):
        tr.board("b")


def day(number: int) -> datetime:
    return datetime(2026, 6, number, tzinfo=UTC)


@pytest.mark.parametrize("operator", ["sum", "best", "latest"])
def test_a_season_with_other_bounds_holds_what_its_events_give(
    tr: truerank.Truerank, conn: Connection, operator: str
) -> None:
    tr.create_board("b", operator=operator, seasons=["all"])
    tr.create_season("b", "cup", day(5), day(10))
    for n, (member, value, on) in enumerate(
        [("ann", 3, 4), ("ann", 5, 6), ("ann", 7, 9), ("bob", 4, 6), ("cat", 9, 11)]
    ):
        assert refusal(tr, "b", f"e{n}", member=member, value=value, occurred_at=day(on)) is None

    assert tr.change_season("b", "cup", day(7), day(12), **BY)
    assert not tr.change_season("b", "cup", day(7), day(12), **BY)

    page = tr.top("b", "cup", source="database")
    assert [(entry.member, entry.score) for entry in page.entries] == [("cat", "9"), ("ann", "7")]
    folded = conn.execute(
        "SELECT count(*) FROM truerank.standing AS s, truerank.board AS b,"
        " truerank.season_of_ranking(b, s.ranking) AS r,"
        " truerank.fold_events(b, r.ranking, ARRAY[s.member], r.starts_at, r.ends_at) AS f"
        " WHERE f.sort_key = s.sort_key AND f.score = s.score"
    ).fetchone()
    assert folded == (5,)  # three of all, two of the cup
    assert tr.season("b", "cup").ends_at == day(12)
    versions = conn.execute("SELECT count(*), count(DISTINCT version) FROM truerank.outbox")
    assert len(set(versions.fetchone() or ())) == 1
    row = conn.execute("SELECT action, subject FROM truerank.audit").fetchall()
    assert row == [("change_season", "cup")]


def test_the_end_of_a_season_is_the_enforced_end_until_it_is_extended(
    tr: truerank.Truerank, conn: Connection
) -> None:
    # SEA-13
    tr.create_board("b", seasons=[])
    end = datetime(2026, 6, 24, 23, 59, tzinfo=UTC)
    tr.create_season("b", "cup", day(1), end)

    assert refusal(tr, "b", "e1", occurred_at=end - timedelta(hours=1)) is None
    assert refusal(tr, "b", "e2", occurred_at=end - timedelta(microseconds=1)) is None
    assert refusal(tr, "b", "e3", occurred_at=end) == "season_none"
    tr.change_season("b", "cup", day(1), end + timedelta(days=1), **BY)
    assert refusal(tr, "b", "e3", occurred_at=end) is None

    assert tr.season("b", "cup").ends_at == end + timedelta(days=1)
    conn.execute("UPDATE truerank.ranking SET state = 'final'")
    with pytest.raises(SeasonFinal):
        tr.change_season("b", "cup", day(1), end, **BY)
    with pytest.raises(SeasonUnknown):
        tr.change_season("b", "2026-06", day(1), end, **BY)
    with pytest.raises(InvalidInput):
        tr.change_season("b", "cup", end, day(1), **BY)


def test_a_season_keeps_its_bounds_where_a_total_would_leave_the_range(
    tr: truerank.Truerank,
) -> None:
    tr.create_board("b", seasons=["all"], total_min=0)
    tr.create_season("b", "cup", day(5), day(10))
    assert refusal(tr, "b", "e1", value=5, occurred_at=day(6)) is None
    assert refusal(tr, "b", "e2", value=-5, occurred_at=day(7)) is None

    with pytest.raises(InvalidInput):
        tr.change_season("b", "cup", day(7), day(10), **BY)

    assert tr.season("b", "cup").starts_at == day(5)
    assert tr.place("b", "ann", "cup", source="database").places[0].score == "0"


def test_the_metadata_of_a_standing_is_that_of_the_score_that_was_kept(
    tr: truerank.Truerank,
) -> None:
    tr.create_board("b", operator="best", seasons=["all"], decimals=1)
    for n, value in enumerate(["7.5", "9.5", "8.0", "9.5"]):
        tr.submit_score(
            "b", event_id=f"e{n}", member="ann", value=value, occurred_at=day(1 + n),
            metadata={"run": n},
        )  # fmt: skip

    standing = tr.standing("b", "ann")

    assert standing is not None
    assert (standing.score, standing.event_id, standing.metadata) == ("9.5", "e1", {"run": 1})
    assert standing.reached_at == standing.occurred_at == day(2)
    assert tr.standing("b", "bob") is None


def test_a_source_is_kept_and_can_be_voided_as_a_whole(tr: truerank.Truerank) -> None:
    tr.create_board("b", seasons=["all"])
    tr.submit_score("b", event_id="e1", member="ann", value=1, source="import:june")
    tr.submit_score("b", event_id="e2", member="ann", value=2)
    again = tr.submit_score("b", event_id="e1", member="ann", value=1, source="another")

    assert again.outcome is truerank.Outcome.DUPLICATE  # where it came from is not its content
    assert tr.void_where("b", source="import:june", **BY) == 1

    assert tr.place("b", "ann", source="database").places[0].score == "2"

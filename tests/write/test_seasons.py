"""Into which seasons an event falls, and which events are of no season at all."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

import truerank
from truerank import ScoreEvent, Truerank
from truerank.errors import EventRefused, InvalidInput

Connection = psycopg.Connection[Any]
Connect = Callable[..., Connection]
TICK = timedelta(microseconds=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def labels(conn: Connection, board: str, *instants: datetime) -> list[list[str]]:
    """Submit one event an instant; the labels of the seasons of each."""
    events = [
        ScoreEvent(event_id=f"e{n}", member="A", value=1, occurred_at=instant)
        for n, instant in enumerate(instants)
    ]
    receipts = truerank.submit_scores(conn, board, events)
    return [[standing.season for standing in receipt.standings] for receipt in receipts]


# SEA-1
def test_iso_weeks_are_named_after_the_year_of_their_thursday(
    tr: Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=("week",))
    expected = {
        "2020-12-27": "2020-W52",
        "2020-12-28": "2020-W53",
        "2021-01-03": "2020-W53",
        "2021-01-04": "2021-W01",
        "2023-01-01": "2022-W52",
        "2024-12-29": "2024-W52",
        "2024-12-30": "2025-W01",
    }

    found = labels(conn, "b", *(at(f"{day}T12:00Z") for day in expected))

    assert found == [[label] for label in expected.values()]


# SEA-2
def test_a_week_with_a_change_of_clocks_has_167_or_169_hours(
    tr: Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=("week",), zone="Europe/Berlin")
    spring, autumn = tr.season("b", "2024-W13"), tr.season("b", "2024-W43")

    assert (spring.starts_at, spring.ends_at) == (at("2024-03-24T23:00Z"), at("2024-03-31T22:00Z"))
    assert (autumn.starts_at, autumn.ends_at) == (at("2024-10-20T22:00Z"), at("2024-10-27T23:00Z"))
    bounds = [at("2024-03-24T23:00Z"), at("2024-03-31T22:00Z"), at("2024-10-27T23:00Z")]
    found = labels(conn, "b", *(bound - step for bound in bounds for step in (TICK, 0 * TICK)))
    assert [label for (label,) in found] == [
        "2024-W12", "2024-W13", "2024-W13", "2024-W14", "2024-W43", "2024-W44",
    ]  # fmt: skip


# SEA-3
@pytest.mark.parametrize(
    ("zone", "label", "bounds"),
    [
        ("America/Santiago", "2024-09-08", ["2024-09-08T04:00Z", "2024-09-09T03:00Z"]),
        ("Africa/Cairo", "2024-04-26", ["2024-04-25T22:00Z", "2024-04-26T21:00Z"]),
        ("America/Havana", "2024-11-03", ["2024-11-03T04:00Z", "2024-11-04T05:00Z"]),
    ],
)
def test_a_day_without_midnight_or_with_two_takes_its_own_events_only(
    tr: Truerank, conn: Connection, zone: str, label: str, bounds: list[str]
) -> None:
    tr.create_board("b", seasons=("day",), zone=zone)
    first, end = map(at, bounds)
    season = tr.season("b", label)

    found = labels(conn, "b", first - TICK, first, end - TICK, end)

    assert (season.starts_at, season.ends_at) == (first, end)
    day = at(f"{label}T00:00Z").date()
    before, after = ((day + timedelta(days=n)).isoformat() for n in (-1, 1))
    assert [names for (names,) in found] == [before, label, label, after]


# SEA-4
def test_bounds_are_half_open(tr: Truerank, conn: Connection) -> None:
    tr.create_board("b", seasons=("month",))

    found = labels(
        conn,
        "b",
        at("2024-06-30T23:59:59.999999Z"),
        at("2024-07-01T00:00:00Z"),
        at("2024-06-01T00:00:00Z"),
        at("2024-05-31T23:59:59.999999Z"),
    )

    assert found == [["2024-06"], ["2024-07"], ["2024-06"], ["2024-05"]]


# SEA-5
def test_the_last_day_of_a_month_counts_and_the_months_add_up(
    tr: Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=("all", "month"), zone="America/New_York")
    october = [at(f"2023-10-{1 + n * 29 // 18:02}T12:00-04:00") for n in range(19)]
    last = [at("2023-10-31T08:00-04:00"), at("2023-10-31T23:30-04:00")]
    leap = [at("2024-02-29T23:59-05:00"), at("2024-03-01T00:00-05:00")]
    instants = [*october, *last, *leap]

    truerank.submit_scores(
        conn,
        "b",
        [
            ScoreEvent(event_id=f"{m}{n}", member=m, value=value, occurred_at=instant)
            for n, instant in enumerate(instants)
            for m, value in (("A", 1), ("B", n))
        ],
    )

    scores = {
        label: {e.member: int(e.score) for e in tr.top("b", label, source="database").entries}
        for label in ("all", "2023-10", "2024-02", "2024-03")
    }
    whole = scores.pop("all")
    assert {label: score["A"] for label, score in scores.items()} == {
        "2023-10": 21, "2024-02": 1, "2024-03": 1
    }  # fmt: skip
    assert whole == {"A": 23, "B": sum(range(23))}
    for member, total in whole.items():
        assert sum(score[member] for score in scores.values()) == total


# SEA-8
def test_yesterdays_scores_do_not_count_today(tr: Truerank, conn: Connection) -> None:
    now = datetime.now(UTC)
    hours = 12 - now.hour  # a zone in which it is noon, so that no day ends meanwhile
    tr.create_board("b", seasons=("day",), zone=f"Etc/GMT{-hours:+}" if hours else "Etc/GMT")
    truerank.submit_score(
        conn,
        "b",
        ScoreEvent(event_id="1", member="A", value=100, occurred_at=now - timedelta(days=1)),
    )

    receipt = truerank.submit_score(conn, "b", ScoreEvent(event_id="2", member="B", value=10))

    (today,) = (standing.season for standing in receipt.standings)
    page = tr.top("b", member="B", source="database")
    assert page.season == today == tr.season("b").label
    assert [(entry.member, entry.rank) for entry in page.entries] == [("B", 1)]
    assert (page.places[0].rank, page.total) == (1, 1)
    yesterday = tr.season("b", (now + timedelta(hours=hours - 24)).date().isoformat())
    past = tr.top("b", yesterday.label, source="database")
    assert [(entry.member, entry.score) for entry in past.entries] == [("A", "100")]


# SEA-10
def test_a_month_is_the_calendar_month(tr: Truerank, conn: Connection) -> None:
    tr.create_board("b", seasons=("month",))
    days = ["2024-07-12", "2024-07-30", "2024-08-01", "2024-08-11"]

    labels(conn, "b", *(at(f"{day}T12:00Z") for day in days))

    assert tr.top("b", "2024-08", source="database").entries[0].score == "2"


# SEA-11
def test_events_from_the_future_are_refused_and_open_no_season(
    tr: Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=("all", "day"))
    now = datetime.now(UTC)
    steps = [timedelta(minutes=2), timedelta(minutes=6), timedelta(days=240)]
    instants = [*(now + step for step in steps), datetime(9999, 12, 31, tzinfo=UTC)]

    receipts = truerank.submit_scores(
        conn,
        "b",
        [
            ScoreEvent(event_id=f"e{n}", member=f"m{n}", value=1, occurred_at=instant)
            for n, instant in enumerate(instants)
        ],
    )

    assert [receipt.code for receipt in receipts] == [None, *["occurred_at_in_future"] * 3]
    rows = conn.execute("SELECT DISTINCT member, ranking FROM truerank.standing").fetchall()
    assert [member for member, _ in rows] == ["m0", "m0"]


def test_the_clock_is_read_at_the_call_not_at_the_start_of_the_transaction(
    tr: Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=("all",))

    with conn.transaction():
        conn.execute("SELECT now()")
        truerank.submit_score(conn, "b", ScoreEvent(event_id="e1", member="A", value=1))
        row = conn.execute(
            "SELECT received_at > now(), occurred_at = received_at, occurred_given"
            " FROM truerank.event"
        ).fetchone()

    assert row == (True, True, False)


# SEA-12
@pytest.mark.parametrize(
    ("instant", "code"),
    [
        ("infinity", "occurred_at_invalid"),
        ("-infinity", "occurred_at_invalid"),
        ("1899-12-31 23:59:59.999999+00", "occurred_at_too_early"),
        ("4713-01-01 00:00:00+00 BC", "occurred_at_too_early"),
        ("294276-12-31 23:59:59+00", "occurred_at_in_future"),
    ],
)
def test_an_instant_outside_the_boards_bounds_is_refused_in_sql(
    tr: Truerank, conn: Connection, instant: str, code: str
) -> None:
    tr.create_board("b", seasons=("all", "day", "week", "month", "year"))

    rows = conn.execute(
        "SELECT outcome, code FROM truerank.submit_score('b', 'e1', 'A', 1, %s::timestamptz)",
        (instant,),
    ).fetchall()

    assert rows == [("refused", code)]
    assert conn.execute("SELECT FROM truerank.event").rowcount == 0


# SEA-12
def test_the_earliest_instant_of_a_board_is_taken(tr: Truerank, conn: Connection) -> None:
    tr.create_board("b", seasons=("all", "day", "year"), zone="America/New_York")

    assert labels(conn, "b", at("1900-01-01T00:00Z")) == [["all", "1899-12-31", "1899"]]


# SEA-12
def test_two_spellings_of_one_instant_are_one(tr: Truerank, conn: Connection) -> None:
    tr.create_board("b", seasons=("month",))
    spelt = ["2024-06-30T23:59:59+00:00", "2024-07-01T01:59:59+02:00"]

    receipts = [
        truerank.submit_score(
            conn,
            "b",
            ScoreEvent(
                event_id="e1", member="A", value=1, occurred_at=datetime.fromisoformat(text)
            ),
        )
        for text in spelt
    ]

    assert [receipt.outcome.value for receipt in receipts] == ["applied", "duplicate"]
    assert [receipt.standings[0].season for receipt in receipts] == ["2024-06"] * 2


# SEA-12
@pytest.mark.parametrize("naive", [datetime(2024, 6, 30), 1782863999, "2024-06-30T00:00Z"])  # noqa: DTZ001
def test_a_time_without_an_offset_is_refused_before_anything_is_sent(
    tr: Truerank, conn: Connection, naive: Any
) -> None:
    tr.create_board("b", seasons=("month",))

    with pytest.raises(InvalidInput) as caught:
        truerank.submit_score(
            conn, "b", ScoreEvent(event_id="e1", member="A", value=1, occurred_at=naive)
        )

    assert caught.value.field == "occurred_at"


def test_an_event_outside_the_expected_season_is_refused(tr: Truerank, conn: Connection) -> None:
    tr.create_board("b", seasons=("all", "month"))
    event = ScoreEvent(event_id="e1", member="A", value=1, occurred_at=at("2024-06-15T00:00Z"))

    with pytest.raises(EventRefused) as caught:
        truerank.submit_score(conn, "b", event, expected_season="2024-07")
    receipt = truerank.submit_score(conn, "b", event, expected_season="2024-06")

    assert caught.value.reason == "season_unexpected"
    assert [standing.season for standing in receipt.standings] == ["all", "2024-06"]


def test_a_custom_season_takes_the_events_between_its_bounds(
    tr: Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=("all",))
    tr.create_season("b", "spring cup", at("2024-03-01T12:00Z"), at("2024-03-02T12:00Z"))

    found = labels(
        conn,
        "b",
        at("2024-03-01T11:59:59.999999Z"),
        at("2024-03-01T12:00Z"),
        at("2024-03-02T11:59:59.999999Z"),
        at("2024-03-02T12:00Z"),
    )

    assert found == [["all"], ["all", "spring cup"], ["all", "spring cup"], ["all"]]
    assert tr.top("b", "spring cup", source="database").entries[0].score == "2"


def test_a_board_of_custom_seasons_only_refuses_what_falls_into_none(
    tr: Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=())
    tr.create_season("b", "cup", at("2024-03-01T00:00Z"), at("2024-03-02T00:00Z"))

    (receipt,) = truerank.submit_scores(
        conn,
        "b",
        [ScoreEvent(event_id="e", member="A", value=1, occurred_at=at("2024-04-01T00:00Z"))],
    )

    assert receipt.code == "season_none"


@pytest.mark.parametrize("label", ["all", "2024", "2024-06", "2024-06-31", "2024-W99", "0000"])
def test_a_custom_label_never_looks_like_a_built_in_one(tr: Truerank, label: str) -> None:
    tr.create_board("b", seasons=("all",))

    with pytest.raises(InvalidInput) as caught:
        tr.create_season("b", label, at("2024-03-01T00:00Z"), at("2024-03-02T00:00Z"))

    assert caught.value.field == "season"


def test_a_custom_season_is_made_before_its_events_or_not_at_all(
    tr: Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=("all",))
    bounds = at("2024-03-01T00:00Z"), at("2024-03-02T00:00Z")
    labels(conn, "b", bounds[0] - TICK, bounds[1])
    tr.create_season("b", "before its events", *bounds)
    truerank.submit_score(
        conn, "b", ScoreEvent(event_id="in", member="A", value=1, occurred_at=bounds[0])
    )

    with pytest.raises(InvalidInput) as caught:
        tr.create_season("b", "after them", *bounds)

    assert caught.value.field == "starts_at"
    assert not tr.create_season("b", "before its events", *bounds)


def test_a_custom_season_is_not_made_past_a_writer_that_does_not_know_it(
    connect: Connect, tr: Truerank
) -> None:
    tr.create_board("b", seasons=("all",))
    writer, maker = connect(), connect()
    now = datetime.now(UTC)
    make = "SELECT truerank.create_season('b', %s, %s, %s)"

    with writer.transaction():
        truerank.submit_score(writer, "b", ScoreEvent(event_id="e1", member="A", value=1))
        with pytest.raises(psycopg.errors.LockNotAvailable):
            maker.execute(make, ("now", now - timedelta(hours=1), now + timedelta(hours=1)))
        future = maker.execute(make, ("later", now + timedelta(days=1), now + timedelta(days=2)))
        assert future.fetchone() == ("created",)

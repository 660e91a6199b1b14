"""Every instant of every zone falls into exactly one day, week, month and year."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

Connection = psycopg.Connection[Any]
TICK = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PERIODS = ["day", "week", "month", "year"]
SHAPES = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m", "year": "%Y"}

# Where clocks change at or near midnight, or by other steps than an hour.
ODD_ZONES = [
    "UTC", "Europe/Berlin", "America/New_York", "America/Havana", "America/St_Johns",
    "America/Santiago", "America/Asuncion", "America/Scoresbysund", "Africa/Cairo",
    "Asia/Tehran", "Asia/Beirut", "Asia/Amman", "Asia/Gaza", "Asia/Dhaka", "Asia/Kathmandu",
    "Asia/Pyongyang", "Atlantic/Azores", "Antarctica/Casey", "Antarctica/Troll",
    "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Kwajalein", "Pacific/Kiritimati",
    "Pacific/Chatham", "Pacific/Norfolk", "Etc/GMT+12", "Etc/GMT-14",
]  # fmt: skip

BOUNDS = """
    SELECT p.i, truerank.period_label(%(period)s, p.i) AS label,
           truerank.period_start(%(period)s, %(zone)s, p.i) AS starts_at,
           truerank.period_start(%(period)s, %(zone)s, p.i + 1) AS ends_at
    FROM (SELECT truerank.period_index(%(period)s, %(zone)s, %(at)s::timestamptz) AS i) AS p"""


@pytest.fixture
def conn(rolled_back: Connection) -> Connection:
    """A connection to a database with one board that keeps every kind of season."""
    rolled_back.execute("SELECT truerank.create_board('b', 'sum', true, %s, 'UTC')", (PERIODS,))
    return rolled_back


@pytest.fixture
def zones(conn: Connection) -> list[str]:
    """All zones that this server knows."""
    rows = conn.execute("SELECT name FROM pg_timezone_names ORDER BY name").fetchall()
    return [name for (name,) in rows]


def bounds(conn: Connection, period: str, zone: str, at: datetime) -> tuple[Any, ...]:
    """Index, label, start and end of the period that an instant falls into."""
    row: tuple[Any, ...] | None = conn.execute(
        BOUNDS, {"period": period, "zone": zone, "at": at}
    ).fetchone()
    assert row is not None
    return row


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("zone", "label", "starts_at", "ends_at"),
    [
        # SEA-2
        ("Europe/Berlin", "2026-W13", "2026-03-22T23:00Z", "2026-03-29T22:00Z"),
        ("Europe/Berlin", "2026-W43", "2026-10-18T22:00Z", "2026-10-25T23:00Z"),
        # SEA-3: no midnight
        ("America/Santiago", "2026-09-06", "2026-09-06T04:00Z", "2026-09-07T03:00Z"),
        ("Africa/Cairo", "2026-04-24", "2026-04-23T22:00Z", "2026-04-24T21:00Z"),
        ("Asia/Tehran", "2022-03-22", "2022-03-21T20:30Z", "2022-03-22T19:30Z"),
        # Midnight comes twice, and the first begins the day.
        ("America/Havana", "2024-11-03", "2024-11-03T04:00Z", "2024-11-04T05:00Z"),
        ("America/Havana", "2024-11-02", "2024-11-02T04:00Z", "2024-11-03T04:00Z"),
        ("America/St_Johns", "2006-10-29", "2006-10-29T02:30Z", "2006-10-30T03:30Z"),
        ("America/St_Johns", "2006-10-28", "2006-10-28T02:30Z", "2006-10-29T02:30Z"),
        ("America/St_Johns", "1988-10-30", "1988-10-30T01:30Z", "1988-10-31T03:30Z"),
        ("Antarctica/Casey", "2010-03-05", "2010-03-04T13:00Z", "2010-03-05T16:00Z"),
        # 24:00 of the day before is the instant that the change takes back to 23:00.
        ("Asia/Tehran", "2022-09-21", "2022-09-20T19:30Z", "2022-09-21T20:30Z"),
        # A day that never was, and its neighbours.
        ("Pacific/Apia", "2011-12-29", "2011-12-29T10:00Z", "2011-12-30T10:00Z"),
        ("Pacific/Apia", "2011-12-30", "2011-12-30T10:00Z", "2011-12-30T10:00Z"),
        ("Pacific/Apia", "2011-12-31", "2011-12-30T10:00Z", "2011-12-31T10:00Z"),
        # A leap day, and steps of half an hour.
        ("UTC", "2028-02", "2028-02-01T00:00Z", "2028-03-01T00:00Z"),
        ("Australia/Lord_Howe", "2024-04-07", "2024-04-06T13:00Z", "2024-04-07T13:30Z"),
        ("Pacific/Kiritimati", "2025", "2024-12-31T10:00Z", "2025-12-31T10:00Z"),
    ],
)
def test_a_season_has_the_bounds_that_its_zone_gives_it(
    conn: Connection, zone: str, label: str, starts_at: str, ends_at: str
) -> None:
    conn.execute("UPDATE truerank.board SET zone = %s", (zone,))

    row = conn.execute(
        "SELECT s.label, s.starts_at, s.ends_at FROM truerank.board AS b,"
        " truerank.find_season(b.id, %s) AS s",
        (label,),
    ).fetchone()

    assert row == (label, instant(starts_at), instant(ends_at))


# SEA-1
@pytest.mark.parametrize(
    ("day", "week"),
    [
        ("2024-12-29", "2024-W52"), ("2024-12-30", "2025-W01"), ("2025-12-28", "2025-W52"),
        ("2025-12-29", "2026-W01"), ("2026-12-27", "2026-W52"), ("2026-12-28", "2026-W53"),
        ("2027-01-03", "2026-W53"), ("2027-01-04", "2027-W01"),
    ],
)  # fmt: skip
def test_weeks_at_new_year_are_iso_weeks(conn: Connection, day: str, week: str) -> None:
    assert bounds(conn, "week", "UTC", instant(f"{day}T12:00Z"))[1] == week


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    at=st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    period=st.sampled_from(PERIODS),
    choice=st.integers(0, 10**6),
)
def test_any_instant_falls_into_one_period_whose_end_begins_the_next(
    conn: Connection, zones: list[str], at: datetime, period: str, choice: int
) -> None:
    zone = zones[choice % len(zones)]

    index, label, starts_at, ends_at = bounds(conn, period, zone, at)

    assert starts_at <= at < ends_at
    assert bounds(conn, period, zone, starts_at)[0] == index
    assert bounds(conn, period, zone, ends_at - TICK)[0] == index
    assert bounds(conn, period, zone, ends_at)[2] == ends_at
    assert bounds(conn, period, zone, starts_at - TICK)[3] == starts_at
    conn.execute("UPDATE truerank.board SET zone = %s", (zone,))
    found = conn.execute(
        "SELECT s.period, s.label, s.starts_at, s.ends_at FROM truerank.board AS b,"
        " truerank.find_season(b.id, %s) AS s",
        (label,),
    ).fetchall()
    assert found == [(period, label, starts_at, ends_at)]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    zone=st.sampled_from(ODD_ZONES),
    day=st.dates(date(1970, 1, 2), date(2037, 12, 30)),
    minutes=st.integers(-300, 300),
    step=st.sampled_from([-TICK, 0 * TICK, TICK]),
)
@example("America/Havana", date(2024, 11, 3), 30, TICK)
@example("America/St_Johns", date(2006, 10, 29), 31, 0 * TICK)
@example("Antarctica/Casey", date(2010, 3, 5), 90, 0 * TICK)
@example("America/Toronto", date(1919, 3, 31), -15, 0 * TICK)  # clocks went from 23:30 to 0:30
@example("Pacific/Apia", date(2011, 12, 30), 0, -TICK)
@example("Pacific/Apia", date(2011, 12, 31), 0, -TICK)
def test_near_midnight_too_every_instant_is_in_the_day_that_began_last(
    conn: Connection, zone: str, day: date, minutes: int, step: timedelta
) -> None:
    number = (day - EPOCH.date()).days
    row = conn.execute("SELECT truerank.period_start('day', %s, %s)", (zone, number)).fetchone()
    assert row is not None
    at = row[0] + timedelta(minutes=minutes) + step

    _, _, starts_at, ends_at = bounds(conn, "day", zone, at)

    assert starts_at <= at < ends_at
    assert bounds(conn, "day", zone, ends_at)[2] == ends_at
    # Every other kind of period that holds the instant begins with this day or before it.
    assert all(bounds(conn, p, zone, at)[2] <= starts_at for p in PERIODS)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(zone=st.sampled_from(ODD_ZONES), year=st.integers(1971, 2036))
@example("America/Havana", 2024)
@example("America/St_Johns", 2006)
@example("America/St_Johns", 1988)
@example("Antarctica/Casey", 2010)
@example("Antarctica/Casey", 2019)
@example("Pacific/Apia", 2011)
def test_a_day_begins_when_its_date_is_first_on_the_clock(
    conn: Connection, zone: str, year: int
) -> None:
    rows = conn.execute(
        """
        SELECT d.day, s.at AT TIME ZONE %(zone)s, (s.at - interval '1 us') AT TIME ZONE %(zone)s
        FROM generate_series(make_date(%(year)s, 1, 1), make_date(%(year)s, 12, 31), '1 day')
             AS g (day)
        CROSS JOIN LATERAL (SELECT g.day::date AS day) AS d
        CROSS JOIN LATERAL (SELECT truerank.period_start(
            'day', %(zone)s, d.day - date '1970-01-01') AS at) AS s
        WHERE s.at AT TIME ZONE %(zone)s < d.day
           OR EXISTS (SELECT FROM unnest(ARRAY[interval '1 us', '10 min', '20 min', '30 min',
                         '1 hour', '90 min', '2 hours', '150 min', '3 hours']) AS before
                      WHERE (s.at - before) AT TIME ZONE %(zone)s >= d.day)""",
        {"zone": zone, "year": year},
    ).fetchall()

    assert rows == []


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(day=st.dates(date(1, 1, 8), date(9998, 12, 31)), period=st.sampled_from(PERIODS))
def test_labels_are_those_of_the_calendar(conn: Connection, day: date, period: str) -> None:
    at = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)

    _, label, _, _ = bounds(conn, period, "UTC", at)

    # strftime leaves out the leading zeros of years before 1000 on some platforms.
    year, _, rest = day.strftime(SHAPES[period]).partition("-")
    assert label == "-".join([year.zfill(4), rest] if rest else [year.zfill(4)])


@pytest.mark.parametrize(
    "label",
    ["", "All", "2026-13", "2026-00", "2026-02-30", "2026-00-10", "2026-13-01", "2026-W00",
     "2026-W54", "2025-W53", "0000", "0000-01", "0000-W01", "0000-01-01", "26", "02026",
     "2026-1", "2026-W1", "2026-w01", "2026-01-1", " 2026", "2026 ", "2026\n", "-2026",
     "0001", "0001-01", "0001-W01", "0001-01-01", "9999", "9999-12", "9999-W52", "9999-12-31",
     "2026-08-30T00:00Z", "\u0662\u0660\u0662\u0666", "\uff12\uff10\uff12\uff16", "x"],
)  # fmt: skip
def test_a_label_that_names_no_season_finds_none(conn: Connection, label: str) -> None:
    rows = conn.execute(
        "SELECT s.* FROM truerank.board AS b, truerank.find_season(b.id, %s) AS s", (label,)
    ).fetchall()

    assert rows == []


@pytest.mark.parametrize("zone", ["UTC", "Etc/GMT+12", "Etc/GMT-14"])
@pytest.mark.parametrize("session", ["UTC", "<+14>-14", "<-12>+12"])
def test_the_outermost_seasons_have_bounds_that_clients_can_tell(
    conn: Connection, zone: str, session: str
) -> None:
    conn.execute("UPDATE truerank.board SET zone = %s", (zone,))
    conn.execute("SELECT set_config('TimeZone', %s, true)", (session,))

    for label in ("0002", "0001-02", "0001-W02", "0001-01-03", "9998", "9999-11", "9999-12-28"):
        rows = conn.execute(
            "SELECT s.label, s.starts_at, s.ends_at"
            " FROM truerank.board AS b, truerank.find_season(b.id, %s) AS s",
            (label,),
        ).fetchall()
        assert [(found, starts < ends) for found, starts, ends in rows] == [(label, True)]


def test_a_board_finds_only_seasons_that_it_keeps(conn: Connection) -> None:
    conn.execute("UPDATE truerank.board SET seasons = '{week}'")

    found = [
        conn.execute(
            "SELECT s.period FROM truerank.board AS b, truerank.find_season(b.id, %s) AS s",
            (label,),
        ).fetchall()
        for label in ("all", "2026", "2026-08", "2026-W35", "2026-08-30")
    ]

    assert found == [[], [], [], [("week",)], []]


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    board=st.integers(1, 134217727),
    period=st.sampled_from(["all", *PERIODS, "custom"]),
    index=st.integers(-(2**31), 2**31 - 1),
)
def test_the_number_of_a_ranking_holds_board_period_and_index(
    conn: Connection, board: int, period: str, index: int
) -> None:
    row = conn.execute(
        "SELECT truerank.ranking_id(%s::integer, %s, %s)", (board, period, index)
    ).fetchone()

    assert row is not None
    kind = ["all", *PERIODS, "custom"].index(period) + 1
    assert row[0] == board << 36 | kind << 32 | index + 2**31
    assert row[0] < 2**63

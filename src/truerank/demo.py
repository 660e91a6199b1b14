"""A year of invented completions on four boards, for a first look and for trying things out.

Every day is drawn from a generator seeded with the board and the date, so a demo that is made
again, today or next week, repeats what it said before: all of that arrives as duplicates.
"""

import random
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from itertools import accumulate
from uuid import UUID

from truerank.model import BoardSpec, Operator, Order, ScoreEvent

DAYS = 365
_SEED = "truerank demo 1"
_LATE_SHARE = 0.04  # of events that arrive hours or days after they happened
_LATE_HOURS_MAX = 60
_SAME_INSTANT_SHARE = 0.05  # of events that happened at the very time of the one before
_MEMBERS = 480
# Cumulated, by place: few members do most, and most do little.
_ACTIVITY = tuple(accumulate((place + 3) ** -1.1 for place in range(_MEMBERS)))

_ZONES = tuple(
    timezone(timedelta(minutes=minutes))
    for minutes in (-480, -420, -300, -210, 0, 60, 120, 180, 330, 345, 480, 540, 570, 765)
)
_GIVEN = (
    "ada", "bao", "chidi", "dolores", "emeka", "fatou", "grete", "hiroshi", "ines", "jarek",
    "kalinda", "lars", "mbali", "nadia", "olamide", "priya", "quentin", "rosa", "sanna", "tariq",
    "ulla", "valentina", "wanjiru", "xiadani", "yusuf", "zofia",
)  # fmt: skip
_FAMILY = (
    "alm", "bakker", "castro", "diallo", "eriksen", "fischer", "gupta", "haddad", "ito", "jensen",
    "kowalski", "lindqvist", "moreau", "nakamura", "okafor", "park", "quispe", "rossi", "santos",
    "tanaka",
)  # fmt: skip
# What a list of names has to bear: other scripts, other directions, wide and joined characters.
_UNUSUAL = (
    "مريم العلي",
    "שירה כהן",
    "さくら",
    "김민준",
    "Ngũgĩ wa Thiong'o",
    "Øyvind Ærlig-Åsgård",
    "👩‍🚀 astro",
    "Карина Ильина",
    "أحمد 99",
    "O'Brien, Mary-Jane <mj>",
    "Wolfeschlegelsteinhausenbergerdorff-Featherstonehaugh-Cholmondeley of Auchtermuchty",
    "Γαλάτεια",
)
_UNUSUAL_EVERY = 7  # among the most active, so that they are seen


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoBoard:
    """One board of the demo: its settings, and how much happens on a day."""

    spec: BoardSpec
    events_a_day: int
    weekday: int | None = None  # the only day with events, Monday is 0

    def value(self, rng: random.Random, skill: float) -> int | str:
        """A value that a member of this skill, 0 to 1, might reach."""
        match self.spec.operator:
            case Operator.SUM:
                # Steps come in hundreds, answers in ones: both tie often.
                if self.weekday is None:
                    return 100 * int(rng.lognormvariate(3.6 + skill, 0.5))
                return rng.randint(0, 4 + round(6 * skill))
            case Operator.BEST:
                return f"{62 + rng.expovariate(0.35) + 9 * (1 - skill) * rng.random():.3f}"
            case Operator.LATEST:
                return 1200 + 8 * int(rng.gauss(60 * skill, 12))


BOARDS = (
    DemoBoard(
        spec=BoardSpec(key="daily-steps", zone="Europe/Berlin"),
        events_a_day=22,
    ),
    DemoBoard(
        spec=BoardSpec(
            key="fastest-lap",
            operator=Operator.BEST,
            order=Order.ASC,
            decimals=3,
            seasons=("all", "month"),
        ),
        events_a_day=8,
    ),
    DemoBoard(
        spec=BoardSpec(
            key="chess-rating",
            operator=Operator.LATEST,
            seasons=("all", "year"),
            zone="America/New_York",
        ),
        events_a_day=7,
    ),
    DemoBoard(
        spec=BoardSpec(key="weekly-quiz", seasons=("all", "week"), zone="Asia/Tokyo"),
        events_a_day=60,
        weekday=4,
    ),
)


def latest_until(now: datetime) -> datetime:
    """The end of a demo made now: the last full hour, so that it is the same for a while."""
    return now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def events(board: DemoBoard, until: datetime) -> list[ScoreEvent]:
    """The events of a board that had arrived by an instant, in the order of their arrival.

    Args:
        board: one of `BOARDS`.
        until: aware; the demo covers the `DAYS` before it.
    """
    last = until.astimezone(UTC).date()
    days = (last - timedelta(days=back) for back in reversed(range(DAYS + 1)))
    arrived = [
        (arrival, event) for day in days for arrival, event in _day(board, day) if arrival <= until
    ]
    return [event for _, event in sorted(arrived, key=lambda pair: pair[0])]


def live_event(rng: random.Random, now: datetime) -> tuple[str, ScoreEvent]:
    """A new completion, with the key of its board.

    Args:
        rng: not one that is seeded alike in two runs, or the ids are taken.
        now: aware; when it happened.
    """
    (board,) = rng.choices(BOARDS, weights=[board.events_a_day for board in BOARDS])
    place = _place(rng)
    event = ScoreEvent(
        event_id=str(UUID(int=rng.getrandbits(128), version=4)),
        member=member(place),
        value=board.value(rng, _skill(place)),
        occurred_at=now,
    )
    return board.spec.key, event


def member(place: int) -> str:
    """The id of the member at a place in the order of activity, from 0."""
    if place % _UNUSUAL_EVERY == _UNUSUAL_EVERY // 2 and place // _UNUSUAL_EVERY < len(_UNUSUAL):
        return _UNUSUAL[place // _UNUSUAL_EVERY]
    given = _GIVEN[place * 7 % len(_GIVEN)]
    return f"{given}-{_FAMILY[place * 11 // len(_GIVEN) % len(_FAMILY)]}-{place:03}"


def _day(board: DemoBoard, day: date) -> Iterator[tuple[datetime, ScoreEvent]]:
    if board.weekday not in (None, day.weekday()):
        return
    rng = random.Random(f"{_SEED} {board.spec.key} {day}")  # noqa: S311 - invented scores
    before = None
    for number in range(board.events_a_day):
        place = _place(rng)
        # Each member lives in a zone of its own, and is up from seven to eleven.
        zone = _ZONES[place % len(_ZONES)]
        at = datetime.combine(day, time(7), zone) + timedelta(seconds=rng.randint(0, 16 * 3600))
        if before is not None and rng.random() < _SAME_INSTANT_SHARE:
            at = before
        before = at
        late_h = rng.uniform(1, _LATE_HOURS_MAX) if rng.random() < _LATE_SHARE else 0
        yield (
            at + timedelta(hours=late_h),
            ScoreEvent(
                event_id=f"demo:{day}:{number}",
                member=member(place),
                value=board.value(rng, _skill(place)),
                occurred_at=at,
            ),
        )


def _place(rng: random.Random) -> int:
    return bisect(_ACTIVITY, rng.random() * _ACTIVITY[-1])


def _skill(place: int) -> float:
    return random.Random(place).random()  # noqa: S311 - as above

"""A PostgreSQL that is away costs names, not ranks: also to readers who never asked it before."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace

import truerank
from tests.faults.proxy import Proxy, postgresql_through
from tests.projection.pipeline import Pipeline, wait_until
from truerank.errors import BoardUnknown, DatabaseUnavailable, SeasonUnknown
from truerank.model import Board, BoardSpec, Order, Profile, Season, Source
from truerank.projection.keys import boards_key
from truerank.read.athand import MORE, current_of
from truerank.read.floors import Floors
from truerank.read.reach import Reach
from truerank.repair.athand import BoardsAtHand
from truerank.settings import Settings
from truerank.steps import Pause, Query, Request, Steps, run_blocking

WHO: dict[str, Any] = {"actor": "eve", "reason": "test"}
_PATIENCE_S = 30.0


@pytest.fixture
def wire(stopped: Pipeline) -> Iterator[tuple[Proxy, Settings]]:
    """A wire before PostgreSQL, and settings of a reader behind it."""
    assert stopped.settings.database_url is not None
    with postgresql_through(stopped.settings.database_url) as (proxy, url):
        yield proxy, replace(stopped.settings, database_url=url, database_timeout_ms=300)


def write_down(pipeline: Pipeline) -> None:
    """What a worker does again and again: a whole round of all boards."""
    with psycopg.connect(str(pipeline.settings.database_url), autocommit=True) as conn:
        at_hand, link = BoardsAtHand(pipeline.settings.prefix), pipeline.link()
        at_hand.keep(conn, link)


@contextmanager
def newcomer(proxy: Proxy, settings: Settings) -> Iterator[truerank.Truerank]:
    """A client that was never answered by PostgreSQL, which refuses it."""
    proxy.refuse()
    with truerank.Truerank(settings) as client:
        yield client


def members(page: truerank.Page) -> list[str]:
    assert page.freshness.source is Source.PROJECTION
    return [entry.member for entry in page.entries]


def names(page: truerank.Page) -> list[str | None]:
    return [None if row.profile is None else row.profile.name for row in page.entries]


def test_who_comes_while_postgresql_is_away_is_answered_by_redis(
    stopped: Pipeline, wire: tuple[Proxy, Settings]
) -> None:
    now = datetime.now(UTC)
    stopped.client.create_board(
        "all kinds", seasons=["day", "week", "month", "year"], decimals=2, order="asc",
        zone="Pacific/Auckland", tie_breaks=[truerank.TieBreak(name="t", order=Order.ASC)],
    )  # fmt: skip
    stopped.client.create_board("custom", seasons=[])
    stopped.client.create_season(
        "custom", "spring", now - timedelta(days=1), now + timedelta(days=1)
    )
    stopped.client.submit_score("all kinds", event_id="e", member="bob", value="1.25", ties=[3])
    stopped.client.submit_score("custom", event_id="e", member="cid", value=1)
    stopped.settle(stopped.projector())
    with truerank.Truerank(stopped.settings) as before:
        told = before.board("all kinds")
        labels = {each.period: each.label for each in before.seasons("all kinds") if each.ends_at}
        expected = before.top("all kinds")
    write_down(stopped)

    with newcomer(*wire) as client:
        began = time.monotonic()
        assert members(client.top("b")) == members(client.top("b", "all")) == ["ann"]
        page = client.top("all kinds")
        for label in labels.values():
            assert client.top("all kinds", label).entries == page.entries
        assert members(client.top("custom")) == members(client.top("custom", "spring")) == ["cid"]
        assert client.place("b", "ann", percentile=True).places[0].rank == 1
        with pytest.raises(DatabaseUnavailable):
            client.top("never made")
        with pytest.raises(DatabaseUnavailable):
            client.top("b", "2026-W01")
        assert time.monotonic() - began < _PATIENCE_S
        assert client.run(client.operations.known.board("all kinds"))[0] == told

        wire[0].mend()

        def answers() -> bool:
            try:
                client.top("b", "2026-W01")
            except SeasonUnknown:
                return True
            except DatabaseUnavailable:
                return False
            return False

        wait_until(answers, "PostgreSQL is asked again")
    assert replace(page, freshness=expected.freshness) == expected


def test_a_season_that_is_frozen_stays_so_while_postgresql_is_away(
    stopped: Pipeline, wire: tuple[Proxy, Settings]
) -> None:
    proxy, settings = wire
    with truerank.Truerank(settings) as early:
        early.top("b")  # remembers it as it was long before
        stopped.client.freeze_season("b", "all", **WHO)
        projector = stopped.projector()
        stopped.settle(projector)
        stopped.submit("b", {"zoe": 50})
        stopped.settle(projector)
        write_down(stopped)

        with newcomer(proxy, settings) as client:
            pages = [client.top("b"), client.top("b", "all"), early.top("b")]
        operators = replace(settings, operator=True)
        with newcomer(proxy, operators) as client:
            behind = client.top("b")

    for page in pages:
        assert members(page) == ["ann"]
        assert page.freshness.frozen_at is not None
    assert members(behind) == ["zoe", "ann"]


def test_boards_that_are_renamed_or_deleted_leave_redis_with_the_next_round(
    stopped: Pipeline, wire: tuple[Proxy, Settings]
) -> None:
    stopped.client.create_board("gone")
    write_down(stopped)
    stopped.client.rename_board("b", "c", **WHO)
    stopped.client.delete_board("gone", **WHO)
    write_down(stopped)

    assert set(stopped.redis.hkeys(boards_key(stopped.settings.prefix))) == {b"c", b""}
    with newcomer(*wire) as client:
        assert members(client.top("c")) == ["ann"]
        with pytest.raises(DatabaseUnavailable):
            client.top("b")


def test_who_remembers_a_board_that_was_deleted_before_postgresql_went_does_not_show_it(
    stopped: Pipeline, wire: tuple[Proxy, Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, settings = wire
    stopped.client.create_board("c")
    projector = stopped.projector()
    with truerank.Truerank(settings) as early, truerank.Truerank(settings) as other:
        early.top("b")
        other.top("b")
        stopped.client.delete_board("b", **WHO)
        write_down(stopped)
        stopped.client.create_board("new")
        stopped.settle(projector)
        early.top("new")  # later than what is written down
        proxy.refuse()

        with pytest.raises(DatabaseUnavailable):
            early.top("b")
        assert members(early.top("new")) == []

        # Where Redis doesn't hold all boards, nothing follows from one that isn't there.
        for limit in ("_SLICE", "_ROUND_BOARDS_MAX"):
            monkeypatch.setattr(f"truerank.repair.athand.{limit}", 1)
        write_down(stopped)
        assert members(other.top("b")) == ["ann"]


@pytest.mark.parametrize("kind", ["none", "text", "hash"])
def test_all_boards_are_written_down_slice_by_slice_and_again_once_redis_lost_them(
    stopped: Pipeline, kind: str
) -> None:
    for number in range(60):
        stopped.client.create_board(f"m{number}")
    key, link, conn = boards_key(stopped.settings.prefix), stopped.link(), stopped.conn
    at_hand = BoardsAtHand(stopped.settings.prefix)

    at_hand.keep(conn, link)
    first = set(stopped.redis.hkeys(key))
    at_hand.keep(conn, link)
    whole = set(stopped.redis.hkeys(key))
    stopped.redis.delete(key)
    if kind == "text":
        stopped.redis.set(key, "x")
    elif kind == "hash":
        stopped.redis.hset(key, "x", "x")
    for _ in range(2):
        at_hand.keep(conn, link)
    lost = stopped.redis.hget(key, "")
    for _ in range(4):
        at_hand.keep(conn, link)

    assert lost.decode().endswith(MORE), "what isn't there may still be a board"
    assert not stopped.redis.hget(key, "").decode().endswith(MORE)
    assert len(first) == 50
    assert b"" not in first
    assert len(whole) == 62
    assert set(stopped.redis.hkeys(key)) == whole


@pytest.mark.parametrize("lost", ["written long before the copy", "no JSON", "another type"])
def test_what_redis_says_of_a_board_is_not_trusted_where_it_cannot_be(
    stopped: Pipeline, wire: tuple[Proxy, Settings], lost: str
) -> None:
    key = boards_key(stopped.settings.prefix)
    write_down(stopped)
    if lost == "no JSON":
        stopped.redis.hset(key, "b", "{}")
    elif lost == "another type":
        stopped.redis.delete(key)
        stopped.redis.set(key, "x")
    else:
        old = datetime.now(UTC) - timedelta(minutes=20)
        stopped.redis.hset(key, "", old.isoformat())

    with newcomer(*wire) as client, pytest.raises(DatabaseUnavailable):
        client.top("b")


def test_a_season_that_was_asked_without_its_label_is_known_by_it(
    wire: tuple[Proxy, Settings],
) -> None:
    proxy, settings = wire
    with truerank.Truerank(settings) as client:
        client.top("b")
        proxy.refuse()

        page = client.top("b", season="all")

    assert members(page) == ["ann"]


def test_without_a_label_it_is_the_season_that_runs_whichever_was_known_before() -> None:
    start = datetime(2026, 11, 30, tzinfo=UTC)
    weeks = [
        Season(
            board="b", label=f"2026-W{49 + i}", period="week", state="open", ranking=i,
            starts_at=start + timedelta(weeks=i), ends_at=start + timedelta(weeks=i + 1),
        )
        for i in range(2)
    ]  # fmt: skip
    board = Board(id=1, group=0, spec=BoardSpec(key="b", seasons=("week", "all")))
    weekly = Board(id=1, group=0, spec=BoardSpec(key="b", seasons=("week",)))

    second = start + timedelta(weeks=1)

    assert current_of(weekly, weeks, second - timedelta(microseconds=1)) is weeks[0]
    assert current_of(weekly, weeks, second) is weeks[1]
    assert current_of(weekly, weeks, second + timedelta(weeks=1)) is None
    assert current_of(board, weeks, start) is None, "all, of which nothing is known"


def test_names_are_not_waited_for_and_none_is_shown_longer_than_it_may_be(
    stopped: Pipeline, wire: tuple[Proxy, Settings]
) -> None:
    proxy, settings = wire
    stopped.client.set_profiles([Profile(member="ann", name="Ann")])
    settings = replace(
        settings, board_cache_ms=3_600_000, names_cache_ms=1, database_timeout_ms=60_000
    )
    with truerank.Truerank(settings) as client, ThreadPoolExecutor() as threads:
        assert names(client.top("b", names=True)) == ["Ann"]
        proxy.hold()
        began = time.monotonic()
        first = threads.submit(client.top, "b", names=True)
        reach = client.operations.known.reach
        wait_until(lambda: not reach.asks(), "somebody waits")

        asked: list[Request] = []

        def noted(request: Request) -> Any:
            asked.append(request)
            return client.run(one(request))

        meanwhile = run_blocking(client.operations.top("b", names=True), noted)

        assert (members(meanwhile), names(meanwhile)) == (["ann"], [None])
        assert (members(first.result()), names(first.result())) == (["ann"], [None])
        assert time.monotonic() - began < _PATIENCE_S, "a statement alone may take a minute"
        assert not any(isinstance(each, Query) for each in asked), "others have not waited"
        proxy.mend()  # or the pool, when it is closed, waits for the connections it makes


def one(request: Request) -> Steps[Any]:
    return (yield request)


def question() -> Steps[float]:
    waited: float = yield Pause(0)
    return waited


def test_what_was_remembered_long_before_a_question_takes_long_is_not_shown_for_it(
    stopped: Pipeline,
) -> None:
    with truerank.Truerank(stopped.settings) as early:
        early.top("b")
        stopped.client.freeze_season("b", "all", **WHO)
        reach = early.operations.known.reach
        slow = reach.asked(question())
        next(slow)
        wait_until(lambda: not reach.asks(), "it takes long")

        frozen = early.top("b")
        slow.close()

    assert frozen.freshness.frozen_at is not None


def test_what_redis_says_lowers_no_floor_that_postgresql_raised() -> None:
    floors, forever = Floors(), 2**63 - 1
    floors.raise_to(1, 5, epoch="e")
    first = floor(floors, 1)
    floors.learn(1, 7, asked_at=time.monotonic(), epoch="e")
    floors.raise_to(1, 6, epoch="e")
    second = floor(floors, 1)
    floors.doubt([1])
    floors.raise_to(1, 8, epoch="e")

    assert (first, second, floor(floors, 1)) == (5, 7, forever)


def floor(floors: Floors, group: int) -> int:
    """The privacy tick below which nothing is shown, while PostgreSQL tells nothing."""
    return run_blocking(floors.before(group), lambda _request: [[2**63 - 1]]).privacy_tick


def test_while_a_question_takes_long_others_are_not_asked_beside_it() -> None:
    reach = Reach()
    asked = reach.asked(question())
    began = time.monotonic()
    next(asked)
    at_once = reach.asks()

    wait_until(lambda: not reach.asks(), "it takes long")
    just_over, long_over = reach.asks(began - 0.1), reach.asks(began - 60)
    with pytest.raises(StopIteration):
        asked.send(0.0)

    assert at_once
    assert (just_over, long_over) == (False, True)
    assert reach.asks()
    failing = reach.asked(question())
    next(failing)
    with pytest.raises(DatabaseUnavailable):
        failing.throw(DatabaseUnavailable("away"))
    assert (reach.away, reach.asks()) == (True, False)
    refusing = reach.asked(question())
    next(refusing)
    with pytest.raises(BoardUnknown):
        refusing.throw(BoardUnknown("it answers"))
    assert (reach.away, reach.asks()) == (False, True)

"""From an instant on the public is shown what was, on every path, until it is revealed."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

import truerank
from tests.http.stand import Stand, until
from tests.members.conftest import BY, Club
from truerank.cli.app import run
from truerank.command import freezing
from truerank.errors import (
    BoardUnknown,
    CursorGone,
    InvalidInput,
    NotSettled,
    SeasonFrozen,
    SeasonUnknown,
)
from truerank.model import Consistency, Page, Source

WHO: Any = {"actor": "op", "reason": "test"}


@pytest.fixture
def board(club: Club) -> Club:
    """Ann has 9, bob 7, cid 7, dan 1; frozen, and then cid has 107, eve 50, and ann 10."""
    club.scores("b", ("ann", 9), ("bob", 7), ("cid", 7), ("dan", 1))
    club.client.freeze_season("b", **WHO)
    club.scores("b", ("cid", 100), ("eve", 50), ("ann", 1))
    return club


@pytest.fixture
def operator(club: Club) -> Iterator[truerank.Truerank]:
    with truerank.Truerank(msgspec.structs.replace(club.pipeline.settings, operator=True)) as tr:
        yield tr


FROZEN = [("ann", 1, "9"), ("bob", 2, "7"), ("cid", 2, "7"), ("dan", 4, "1")]
NOW = [("cid", 1, "107"), ("eve", 2, "50"), ("ann", 3, "10"), ("bob", 4, "7"), ("dan", 5, "1")]


def rows(page: Page) -> list[tuple[str, int, str]]:
    return [(entry.member, entry.rank, entry.score) for entry in page.entries or page.around]


QUESTIONS: dict[str, Callable[[Any], Page]] = {
    "top": lambda tr: tr.top("b"),
    "around": lambda tr: tr.around("b", "bob", limit=4),
    "around a rank": lambda tr: tr.around("b", rank=1, limit=4),
    "between": lambda tr: tr.between("b", 0, 1000),
}


@pytest.mark.parametrize("source", [None, *Source])
@pytest.mark.parametrize("question", QUESTIONS)
def test_lists_show_what_was_and_since_when(
    board: Club, question: str, source: Source | None
) -> None:
    class From:
        def __getattr__(self, name: str) -> Any:
            asked = getattr(board.client, name)
            return lambda *args, **kwargs: asked(*args, source=source, **kwargs)

    page = QUESTIONS[question](From())

    (freeze,) = board.client.freezes("b")
    assert rows(page) == FROZEN
    assert page.total == 4
    assert page.freshness.frozen_at == freeze.frozen_at
    assert page.freshness.source is (source or Source.PROJECTION)


def test_places_of_members_are_those_of_back_then(board: Club) -> None:
    page = board.places("b", ["cid", "eve", "ann"], among=True, percentile=True)

    assert [(place.rank, place.score) for place in page.places] == [
        (2, "7"),
        (None, None),
        (1, "9"),
    ]
    assert board.place("b", "eve").places[0].rank is None
    assert board.client.counts("b", [50]).counts[0].better == 0
    histogram = board.client.histogram("b", [5, 100])
    assert [bucket.members for bucket in histogram.buckets] == [1, 3, 0]
    assert histogram.freshness.frozen_at is not None


@pytest.mark.usefixtures("board")
def test_operators_see_on(operator: truerank.Truerank) -> None:
    for source in Source:
        page = operator.top("b", source=source)
        assert rows(page) == NOW
        assert page.freshness.frozen_at is None


def test_other_seasons_and_boards_are_not_frozen(board: Club) -> None:
    today = f"{datetime.now(UTC):%Y-%m-%d}"

    page = board.top("b", season=today)

    assert page.entries[0].score == "107"
    assert page.freshness.frozen_at is None


def test_authoritative_and_tokens_do_not_look_behind_a_freeze(board: Club) -> None:
    (receipt,) = board.scores("b", ("dan", 1000))
    assert receipt.token is not None

    for consistency in ("authoritative", Consistency.at_least(receipt.token)):
        assert rows(board.client.top("b", consistency=consistency)) == FROZEN
    with pytest.raises(NotSettled):
        board.client.top("b", consistency="settled")


def test_a_file_that_is_exported_holds_what_was(board: Club) -> None:
    with board.client.export("b") as export:
        exported = list(export)
        frozen_at = export.head.freshness.frozen_at

    assert [(row.member, row.rank, row.score) for row in exported] == FROZEN
    assert frozen_at == board.client.season("b").frozen_at
    assert board.client.top("b").freshness.frozen_at == frozen_at


def test_a_cursor_goes_on_in_what_was_and_one_from_before_is_gone(club: Club) -> None:
    club.scores("b", ("ann", 9), ("bob", 7), ("cid", 7), ("dan", 1))
    before = club.top("b", limit=2).next
    club.client.freeze_season("b", **WHO)
    club.scores("b", ("cid", 100))

    first = club.top("b", limit=2)
    second = club.top("b", limit=2, cursor=first.next)

    assert rows(first) + rows(second) == FROZEN
    assert second.freshness.frozen_at is not None
    with pytest.raises(CursorGone):
        club.client.top("b", cursor=before)


def test_what_was_is_in_redis_byte_for_byte_and_in_a_new_copy_too(board: Club) -> None:
    assert board.differences() == []

    board.pipeline.redis.flushdb()
    board.projector.interrupt()
    board.project()

    assert board.differences() == []
    assert rows(board.top("b")) == FROZEN


def test_postgresql_answers_until_the_projection_has_all_of_it(club: Club) -> None:
    club.scores("b", ("ann", 9), ("bob", 7))

    club.client.freeze_season("b", **WHO)

    page = club.client.top("b")
    assert (rows(page), page.freshness.source) == (
        [("ann", 1, "9"), ("bob", 2, "7")],
        Source.DATABASE,
    )
    club.project()
    assert club.client.top("b").freshness.source is Source.PROJECTION


def test_a_season_without_anybody_is_frozen_as_well(club: Club) -> None:
    club.client.freeze_season("b", **WHO)
    club.scores("b", ("ann", 9))

    page = club.top("b")

    assert (page.total, rows(page)) == (0, [])
    assert page.freshness.frozen_at is not None


def test_a_transaction_that_was_open_holds_up_nothing(club: Club) -> None:
    club.scores("b", ("ann", 9), ("bob", 7))
    open_one = club.pipeline.connection()
    open_one.execute("SELECT pg_current_xact_id()")

    club.client.freeze_season("b", **WHO)
    club.scores("b", ("bob", 90))

    page = club.top("b")
    assert (rows(page), page.freshness.source) == (
        [("ann", 1, "9"), ("bob", 2, "7")],
        Source.PROJECTION,
    )
    open_one.rollback()


@pytest.mark.parametrize("action", ["hide", "ban", "delete", "reset", "merge", "erase"])
def test_states_of_members_hold_for_what_was(board: Club, action: str) -> None:
    if action == "merge":
        board.does("merge", "bob", "dan")
    else:
        getattr(board.client, f"{action}_member")("bob", **BY)

    board.project()

    assert rows(board.top("b")) == [("ann", 1, "9"), ("cid", 2, "7"), ("dan", 3, "1")]
    if action in {"hide", "ban"}:
        board.does("show" if action == "hide" else "unban", "bob")
        board.project()
        assert rows(board.top("b")) == FROZEN


def test_reveal_is_one_step_and_the_copy_goes(board: Club, operator: truerank.Truerank) -> None:
    assert board.client.reveal_season("b", **WHO)

    assert rows(board.top("b")) == NOW == rows(operator.top("b"))
    assert board.top("b").freshness.frozen_at is None
    assert not board.client.reveal_season("b", **WHO)
    (freeze,) = board.client.freezes("b")
    assert freeze.revealed_at is not None
    board.pipeline.conn.execute(
        "UPDATE truerank.freeze SET revealed_at = revealed_at - interval '2 minutes'"
    )
    while work(board):
        pass
    board.project()
    assert board.differences() == []
    assert rows(board.top("b")) == NOW
    (left,) = board.pipeline.conn.execute(
        "SELECT count(*) FROM truerank.standing WHERE (ranking >> 35) & 1 = 1"
    ).fetchone() or (None,)
    assert left == 0


def test_a_season_is_frozen_again_while_the_last_copy_is_still_there(board: Club) -> None:
    board.client.reveal_season("b", **WHO)
    board.client.freeze_season("b", **WHO)
    board.scores("b", ("dan", 5000))

    assert rows(board.top("b")) == NOW
    assert len(board.client.freezes("b")) == 2


def test_freezing_again_changes_nothing(board: Club) -> None:
    (before,) = board.client.freezes("b")

    assert board.client.freeze_season("b", **WHO) == before
    assert rows(board.top("b")) == FROZEN


def test_a_freeze_to_come_is_done_by_a_worker_or_called_off(club: Club) -> None:
    club.scores("b", ("ann", 9))
    at = datetime.now(UTC) + timedelta(hours=1)
    freeze = club.client.freeze_season("b", at=at, **WHO)
    assert (freeze.due_at, freeze.frozen_at) == (at, None)
    work(club)
    assert club.top("b").freshness.frozen_at is None

    club.pipeline.conn.execute("UPDATE truerank.freeze SET due_at = clock_timestamp()")
    work(club)

    club.scores("b", ("ann", 1))
    assert rows(club.top("b")) == [("ann", 1, "9")]
    club.client.freeze_season("b", season=f"{datetime.now(UTC):%Y-%m-%d}", at=at, **WHO)
    assert club.client.reveal_season("b", season=f"{datetime.now(UTC):%Y-%m-%d}", **WHO)


def test_what_can_not_be_frozen_is_refused(club: Club) -> None:
    with pytest.raises(InvalidInput):
        club.client.freeze_season("b", at=datetime(2020, 1, 1, tzinfo=UTC), **WHO)
    with pytest.raises(InvalidInput):
        club.client.freeze_season("b", at=datetime(2100, 1, 1), **WHO)  # noqa: DTZ001
    with pytest.raises(BoardUnknown):
        club.client.freeze_season("none", **WHO)
    with pytest.raises(SeasonUnknown):
        club.client.reveal_season("b", season="2026", **WHO)
    for malformed in ("a\0b", "\ud800"):
        with pytest.raises(InvalidInput):
            club.client.freezes(malformed)
    assert club.client.freezes() == []


def test_writers_and_the_copy_wait_for_nobody(club: Club) -> None:
    club.scores("b", ("ann", 9))
    writer = club.pipeline.connection()
    club.pipeline.submit("b", {"ann": 1}, writer)  # it holds ann's standing

    club.client.freeze_season("b", **WHO)

    writer.commit()
    work(club)
    club.project()
    assert rows(club.top("b")) == [("ann", 1, "9")]


async def test_over_http_every_answer_says_so_until_it_is_revealed(
    board: Club,
) -> None:
    stand = Stand(board.pipeline, board.projector)
    async with stand.serving() as served:
        answer = await served.top()
        page = answer.json()
        assert [entry["member"] for entry in page["entries"]] == ["ann", "bob", "cid", "dan"]
        assert page["freshness"]["frozen_at"] == answer.headers["truerank-frozen-at"]
        place = (await served.client.get("/v1/boards/b/place", params={"member": "cid"})).json()
        assert (place["place"]["score"], "frozen_at" in place["freshness"]) == ("7", True)

        await asyncio.to_thread(board.client.reveal_season, "b", **WHO)

        async def is_revealed() -> bool:
            return (await served.scores()).get("cid") == "107"

        await until(is_revealed, "the season to be revealed")


def test_live_streams_know_of_what_goes_on_they_say_nothing(
    board: Club, operator: truerank.Truerank
) -> None:
    now = datetime.now(UTC)
    board.client.create_season("b", "cup", now + timedelta(days=1), now + timedelta(days=2))
    board.client.freeze_season("b", "cup", **WHO)
    settings = msgspec.structs.replace(board.pipeline.settings, board_cache_ms=3_600_000)

    with truerank.Truerank(settings) as reader:
        number = reader.board("b").id
        frozen = reader.run(reader.operations.known.frozen(number))

    assert frozen == {operator.season("b", label).ranking for label in ("all", "cup")}
    assert operator.run(operator.operations.known.frozen(number)) == set()


def test_one_members_score_is_what_it_was_and_its_events_are_for_operators(
    board: Club, operator: truerank.Truerank
) -> None:
    standing, now = board.client.standing("b", "cid"), operator.standing("b", "cid")

    (freeze,) = board.client.freezes("b")
    assert standing is not None
    assert now is not None
    assert (standing.score, standing.frozen_at) == ("7", freeze.frozen_at)
    assert (now.score, now.frozen_at) == ("107", None)
    assert board.client.standing("b", "eve") is None
    with pytest.raises(SeasonFrozen):
        board.client.explain("b", "cid")
    assert [str(event.value) for event in operator.explain("b", "cid")] == ["7", "100"]
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    assert len(board.client.explain("b", "cid", today)) == 2
    # Whoever submits is told what his score comes to: he knew all of it.
    (receipt,) = board.scores("b", ("cid", 1))
    assert {each.score for each in receipt.standings} == {"108"}


def test_commands_freeze_and_reveal(
    club: Club, monkeypatch: pytest.MonkeyPatch, capfdbinary: Any
) -> None:
    monkeypatch.setenv("TRUERANK_DATABASE_URL", str(club.pipeline.settings.database_url))
    monkeypatch.setenv("TRUERANK_REDIS_URL", str(club.pipeline.settings.redis_url))
    monkeypatch.setenv("TRUERANK_BOARD_CACHE_MS", "1")
    club.scores("b", ("ann", 9))

    def do(*words: str) -> str:
        assert run([*words]) == 0
        out, _ = capfdbinary.readouterr()
        return str(out.decode())

    assert "season all of b is frozen as of" in do("freeze", "b", "--reason", "why")
    club.scores("b", ("ann", 1))
    assert "frozen as of" in (top := do("top", "b"))
    assert "9  ann" in top
    monkeypatch.setenv("TRUERANK_OPERATOR", "true")
    assert "10  ann" in do("top", "b")
    assert do("reveal", "b", "--reason", "why") == "b is revealed\n"
    assert do("freezes").splitlines()[1].split()[:2] == ["b", "all"]


def work(club: Club) -> bool:
    """What a worker does about freezes, once."""
    return club.client.run(freezing.work())

"""All seasons of a board are frozen at one instant, and revealed in one step."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

import truerank
from tests.http.stand import Stand
from tests.members.conftest import BY, Club
from tests.projection.pipeline import wait_until
from truerank.cli.app import run
from truerank.command import freezing
from truerank.errors import InvalidInput, SeasonUnknown
from truerank.model import Page

WHO: Any = {"actor": "op", "reason": "test"}
PERIODS = ("all", "week", "month", "year")


@pytest.fixture
def wide(club: Club) -> Club:
    """A board `w` of four periods and a custom season of now: in each the same goes on."""
    now = datetime.now(UTC)
    club.client.create_board("w", seasons=PERIODS)
    club.client.create_season("w", "cup", now - timedelta(hours=1), now + timedelta(hours=1))
    club.scores("w", ("ann", 9), ("bob", 7))
    return club


@pytest.fixture
def stand(wide: Club) -> Stand:
    return Stand(wide.pipeline, wide.projector)


def labels(club: Club) -> list[str]:
    return [season.label for season in club.client.seasons("w")]


def rows(page: Page) -> list[tuple[str, int, str]]:
    return [(entry.member, entry.rank, entry.score) for entry in page.entries]


def test_every_season_shows_what_was_at_one_instant_whatever_is_written_meanwhile(
    wide: Club,
) -> None:
    over = threading.Event()
    wrote: list[int] = []

    def write() -> None:
        with truerank.Truerank(wide.pipeline.settings) as writer:
            while not over.is_set():
                number = len(wrote)
                writer.submit_score("w", event_id=f"w{number}", member="cid", value=1)
                wrote.append(number)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        wait_until(lambda: wrote, "somebody to write")
        freeze = wide.client.freeze_season("w", every=True, **WHO)
    finally:
        over.set()
        thread.join()
    wide.scores("w", ("ann", 1000))

    assert freeze.public == ()
    assert sorted(freeze.together) == sorted(labels(wide))
    assert len(labels(wide)) == 5
    pages = [wide.top("w", season=label) for label in labels(wide)]
    assert {page.freshness.frozen_at for page in pages} == {freeze.frozen_at}
    assert all(rows(page) == rows(pages[0]) for page in pages)
    assert rows(pages[0])[0][2] != "1009"
    assert {season.frozen_at for season in wide.client.seasons("w")} == {freeze.frozen_at}
    assert wide.client.freeze_season("w", every=True, **WHO).frozen_at == freeze.frozen_at

    assert wide.client.reveal_season("w", every=True, **WHO)
    assert not wide.client.reveal_season("w", every=True, **WHO)
    assert {wide.top("w", season=label).entries[0].score for label in labels(wide)} == {"1009"}
    assert {season.frozen_at for season in wide.client.seasons("w")} == {None}
    assert {each.public for each in wide.client.freezes("w")} == {()}


def test_a_freeze_says_where_everybody_sees_on_and_every_takes_in_the_others(wide: Club) -> None:
    alone = wide.client.freeze_season("w", "all", **WHO)
    assert (alone.together, {*alone.public}) == ((), {*labels(wide)} - {"all"})
    wide.client.close_season("w", "cup", now=True, **WHO)  # nothing goes on there

    others = wide.client.freeze_season("w", every=True, **WHO)

    assert {*others.together} == {*labels(wide)} - {"all", "cup"}
    assert others.frozen_at is not None
    assert alone.frozen_at is not None
    assert others.frozen_at > alone.frozen_at
    told = {each.season: each for each in wide.client.freezes("w")}
    assert told["all"].frozen_at == alone.frozen_at
    assert {each.public for each in told.values()} == {()}
    (label, *_) = others.together
    wide.client.reveal_season("w", label, **WHO)
    assert {each.public for each in wide.client.freezes("w") if each.revealed_at is None} == {
        (label,)
    }


def test_seasons_that_are_to_be_frozen_together_are_by_a_worker_whoever_is_deleted_meanwhile(
    wide: Club,
) -> None:
    at = datetime.now(UTC) + timedelta(minutes=10)
    freeze = wide.client.freeze_season("w", every=True, at=at, **WHO)
    assert (freeze.due_at, freeze.frozen_at, len(freeze.together)) == (at, None, 5)
    first = wide.client.freeze_season("w", **WHO)  # brought forward, alone
    assert (first.season, first.together, first.frozen_at is None) == ("all", (), False)
    wide.scores("w", ("bob", 1))
    wide.client.delete_member("ann", **BY)

    wide.pipeline.conn.execute("UPDATE truerank.freeze SET due_at = now() WHERE frozen_at IS NULL")
    wide.client.run(freezing.work())

    told = {each.season: each for each in wide.client.freezes("w")}
    assert len({each.frozen_at for each in told.values()}) == 2
    assert told["all"].frozen_at == first.frozen_at
    wide.project()
    assert rows(wide.top("w", season="all")) == [("bob", 1, "7")]
    for label in labels(wide)[1:]:
        assert rows(wide.top("w", season=label)) == [("bob", 1, "8")]


def test_every_season_and_one_of_them_is_a_contradiction(wide: Club) -> None:
    for refused in (wide.client.freeze_season, wide.client.reveal_season):
        with pytest.raises(InvalidInput) as caught:
            refused("w", "all", every=True, **WHO)
        assert caught.value.field == "every"
    wide.client.create_board("none", seasons=())
    with pytest.raises(SeasonUnknown):
        wide.client.freeze_season("none", every=True, **WHO)
    assert wide.client.freezes() == []


async def test_over_http_every_season_is_frozen_told_and_revealed(stand: Stand) -> None:
    async with stand.serving(board_cache_ms=1) as served, stand.serving(operator=True) as operator:
        path = "/v1/boards/w/seasons"
        body = {"actor": "op", "reason": "finale"}
        alone = await operator.client.post(f"{path}/freeze", json=body)
        assert len(alone.json()["public"]) == 4
        frozen = await operator.client.post(f"{path}/freeze", json=body | {"every": True})
        assert (frozen.status_code, len(frozen.json()["together"])) == (200, 4)

        for client in (served.client, operator.client):
            told = (await client.get(path)).json()["seasons"]
            assert {each["season"]: each.get("frozen_at") for each in told} == {
                **dict.fromkeys(frozen.json()["together"], frozen.json()["frozen_at"]),
                "all": alone.json()["frozen_at"],
            }
        revealed = await operator.client.post(f"{path}/reveal", json=body | {"every": True})
        assert revealed.json() == {"board": "w", "revealed": True}
        told = (await served.client.get(path)).json()["seasons"]
        assert [each for each in told if "frozen_at" in each] == []


def test_commands_say_what_is_frozen_and_what_is_not(
    wide: Club, monkeypatch: pytest.MonkeyPatch, capfdbinary: Any
) -> None:
    monkeypatch.setenv("TRUERANK_DATABASE_URL", str(wide.pipeline.settings.database_url))
    monkeypatch.setenv("TRUERANK_REDIS_URL", str(wide.pipeline.settings.redis_url))
    monkeypatch.setenv("TRUERANK_BOARD_CACHE_MS", "1")

    def do(*words: str) -> list[str]:
        assert run([*words]) == 0
        out, _ = capfdbinary.readouterr()
        return str(out.decode()).splitlines()

    assert "frozen" not in do("season", "list", "w")[0]
    first, warned = do("freeze", "w", "--reason", "why")
    assert first.startswith("season all of w is frozen as of")
    assert warned.startswith("everybody sees on in ")
    assert warned.count(",") == 3
    (said,) = do("freeze", "w", "--every", "--reason", "why")
    assert "of w are frozen as of" in said
    head, *listed = do("season", "list", "w")
    assert head.split()[-2:] == ["frozen", "season"]
    assert len([line for line in listed if " - " not in line]) >= 2
    assert do("reveal", "w", "--every", "--reason", "why") == ["w is revealed"]
    with truerank.Truerank(
        msgspec.structs.replace(wide.pipeline.settings, board_cache_ms=1)
    ) as reader:
        assert reader.top("w", "cup").freshness.frozen_at is None

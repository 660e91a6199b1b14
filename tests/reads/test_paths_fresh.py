"""How true an answer is, one's own write, and what is not there, on every way to read a board."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

import truerank
from tests.http.conftest import NO_CERTIFICATES, serving
from tests.projection.pipeline import wait_until
from tests.reads.paths import Paths, board
from truerank.cli.app import run
from truerank.errors import BoardUnknown, SeasonUnknown
from truerank.model import Consistency, Page, Receipt, Source

TOP = "/v1/boards/b/top"


@contextmanager
def another_node(paths: Paths, **changes: Any) -> Iterator[tuple[truerank.Truerank, httpx.Client]]:
    """A client and a service of another process, with other settings."""
    settings = msgspec.structs.replace(paths.world.pipeline.settings, **changes)
    with (
        truerank.Truerank(settings) as client,
        serving(settings) as url,
        httpx.Client(base_url=url, timeout=20.0, verify=NO_CERTIFICATES) as http,
    ):
        yield client, http


@pytest.fixture
def late(paths: Paths) -> tuple[Paths, Receipt]:
    """A's 10 is shown; B has 12. A's next 7 is committed, and no worker is there to show it."""
    board(paths)
    paths.world.scores("b", ("A", 10), ("B", 12))
    (receipt,) = paths.world.pipeline.submit("b", {"A": 7})
    return paths, receipt


def scores(page: Page | dict[str, Any]) -> dict[str, str]:
    if isinstance(page, Page):
        return {entry.member: entry.score for entry in page.entries}
    return {entry["member"]: entry["score"] for entry in page["entries"]}


OLD = {"B": "12", "A": "10"}
NEW = {"A": "17", "B": "12"}


def test_an_old_answer_tells_its_age_and_beyond_the_limit_the_source_answers(
    late: tuple[Paths, Receipt],
) -> None:
    """RED-8."""
    paths, _ = late

    page = paths.client.top("b")
    answer = paths.http.get(TOP)
    assert scores(page) == scores(answer.json()) == OLD
    told = answer.json()["freshness"]
    assert told["source"] == page.freshness.source == "projection"
    assert page.freshness.projected_through is not None
    assert told["projected_through"] is not None
    assert isinstance(told["staleness_ms"], int)
    assert answer.headers["truerank-staleness-ms"] == str(told["staleness_ms"])

    with another_node(paths, fallback_after_ms=1) as (client, http):
        # The limit is over once a millisecond is.
        wait_until(lambda: client.top("b").freshness.source is Source.DATABASE, "the source")
        page, answer = client.top("b"), http.get(TOP)
    assert scores(page) == scores(answer.json()) == NEW
    assert answer.json()["freshness"]["source"] == "database"
    assert answer.headers["truerank-source"] == "database"
    assert page.freshness.staleness_ms == answer.json()["freshness"]["staleness_ms"] == 0


def test_a_reader_may_set_the_limit_itself(late: tuple[Paths, Receipt]) -> None:
    """RED-8."""
    paths, _ = late

    for limit, expected in (("1h", OLD), ("0s", NEW)):
        assert scores(paths.http.get(TOP, params={"max_age": limit}).json()) == expected
    assert scores(paths.client.top("b", consistency=Consistency.max_age(3_600_000))) == OLD
    assert scores(paths.client.top("b", consistency=Consistency.max_age(0))) == NEW


def test_the_reply_to_a_write_has_the_new_score_and_its_version(paths: Paths) -> None:
    """RED-9."""
    board(paths)
    paths.world.scores("b", ("A", 10))

    event = {"event_id": "e", "member": "A", "value": 7}
    answer = paths.http.post("/v1/boards/b/scores", json=event).json()

    standing = paths.client.standing("b", "A")
    assert standing is not None
    assert answer["standings"] == [
        {"season": "all", "score": "17", "version": str(standing.version)}
    ]
    assert scores(paths.client.top("b")) == {"A": "10"}, "the worker stands still"
    paths.world.project()
    assert paths.table("b") == [(1, "A", "17")]


def test_ones_own_write_is_never_beside_the_old_rank_whichever_node_is_asked(
    late: tuple[Paths, Receipt],
) -> None:
    """RED-9: pending at once, or computed from the source."""
    paths, receipt = late
    assert receipt.token is not None
    place = {"member": "A", "at_least": receipt.token}
    pending = Consistency.at_least(receipt.token, or_pending=True)
    at_once = Consistency.at_least(receipt.token, wait_ms=0)
    with another_node(paths) as (client, http):
        for node, service in ((paths.client, paths.http), (client, http)):
            told = service.get("/v1/boards/b/place", params={**place, "else": "pending"}).json()
            assert told["place"] == {"rank": None, "member": "A", "score": None, "pending": True}
            beside = service.get(TOP, params={**place, "else": "pending"}).json()
            assert (beside["place"]["pending"], beside["around"]) == (True, [])
            (mine,) = node.place("b", "A", consistency=pending).places
            assert (mine.pending, mine.rank, mine.score) == (True, None, None)

            true = service.get("/v1/boards/b/place", params={**place, "wait": "0s"}).json()
            assert true["place"] == {"rank": 1, "member": "A", "score": "17"}
            listed = service.get(TOP, params={"at_least": receipt.token, "wait": "0s"}).json()
            assert (scores(listed), listed["freshness"]["source"]) == (NEW, "database")
            page = node.top("b", member="A", consistency=at_once)
            assert (scores(page), page.places[0].rank) == (NEW, 1)
            assert page.around == (), "both are on the page"

        paths.world.project()
        for node, service in ((paths.client, paths.http), (client, http)):
            told = service.get("/v1/boards/b/place", params={**place, "else": "pending"}).json()
            assert told["place"] == {"rank": 1, "member": "A", "score": "17"}
            assert told["freshness"]["source"] == "projection"
            assert scores(node.top("b", member="A", consistency=pending)) == NEW
    assert paths.compared("b", "A") == (1, "A", "17")


def routes(member: str = "Z") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every question that HTTP takes about a board, but for its stream."""
    questions: list[tuple[str, dict[str, Any]]] = [
        ("top", {}),
        ("top", {"member": member, "around_limit": 3}),
        ("place", {"member": member, "percentile": 1}),
        ("places", {"member": [member, "Y"], "among": 1, "percentile": 1}),
        ("around", {"member": member}),
        ("around", {"rank": 1}),
        ("between", {"score_min": 0}),
        ("counts", {"score": 5}),
        ("histogram", {"edge": [1, 5]}),
    ]
    yield from questions


def first_event(http: httpx.Client, key: str) -> tuple[int, str]:
    """The status and the first event's name of a board's live stream."""
    with http.stream("GET", f"/v1/boards/{key}/live") as answer:
        if answer.status_code != 200:
            return answer.status_code, ""
        for line in answer.iter_lines():
            if line.startswith("event: "):
                return answer.status_code, line.removeprefix("event: ")
    raise AssertionError("the stream ended")


def cli(*arguments: str) -> int:
    return run([*arguments])


@pytest.fixture
def installed(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """As `paths`; commands work on the same two stores."""
    settings = paths.world.pipeline.settings
    monkeypatch.setenv("TRUERANK_DATABASE_URL", str(settings.database_url))
    monkeypatch.setenv("TRUERANK_REDIS_URL", str(settings.redis_url))
    return paths


@pytest.mark.parametrize("season", ["all", None, "2099-01", "1999-12", "soon"])
def test_where_nobody_has_scored_every_answer_is_empty_and_none_is_an_error(
    installed: Paths, season: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """RED-10: on a board without players, in months to come and long past, in a custom season."""
    paths = installed
    board(paths, seasons=["all", "month"])
    starts_at = datetime.now(UTC) + timedelta(days=300)
    paths.client.create_season("b", "soon", starts_at, starts_at + timedelta(days=1))

    assert paths.table("b", season) == []
    assert paths.compared("b", "Z", season) is None
    assert paths.place("b", "Z", season, percentile=True).percentile is None
    (friend,) = paths.places("b", ["Z"], season, among=True)
    assert friend.rank_among is None
    assert paths.around_rank("b", 1, season) == []
    assert paths.counts("b", [5, -5], season) == [(0, 0), (0, 0)]
    assert paths.histogram("b", [1, 5], season) == [0, 0, 0]
    given = {} if season is None else {"season": season}
    for route, asked in routes():
        for need in ("any", "authoritative"):
            answer = paths.http.get(
                f"/v1/boards/b/{route}", params={**asked, **given, "consistency": need}
            )
            told = answer.json()
            assert (answer.status_code, told["total"]) == (200, 0), (route, told)
            assert told.get("entries", []) == told.get("around", []) == []
            assert told.get("place", {"rank": None})["rank"] is None

    named = [] if season is None else ["--season", season]
    for words in (["top", "b"], ["places", "b", "Z"], ["around", "b", "Z"], ["counts", "b", "5"]):
        assert cli(*words, *named) == 0
        assert cli(*words, *named, "--json") == 0
    for kind, content in (
        ("csv", b"event_id,board,rank,member,points,occurred_at,season,as_of,epoch\r\n"),
        ("ndjson", b""),
    ):
        file = tmp_path / kind
        assert cli("export", "b", *named, "--format", kind, "--output", str(file)) == 0
        assert file.read_bytes() == content
    assert "0 members of b" in capsys.readouterr().err


@pytest.mark.parametrize(
    "missing",
    [
        ("nowhere", None, "board_unknown"),
        ("nowhere", "all", "board_unknown"),
        ("b", "2099-13", "season_unknown"),
        ("b", "2099-W01", "season_unknown"),
        ("b", "never", "season_unknown"),
        ("b", "10000-01", "season_unknown"),
        ("b", "x" * 300, "season_unknown"),
    ],
)
def test_what_does_not_exist_is_not_found_by_any_question(
    installed: Paths,
    missing: tuple[str, str | None, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """RED-10."""
    paths, (key, season, code) = installed, missing
    board(paths, seasons=["all", "month"])
    kind = BoardUnknown if code == "board_unknown" else SeasonUnknown

    client = paths.client
    questions: tuple[Callable[..., object], ...] = (
        client.top,
        partial(client.place, member="Z"),
        partial(client.places, members=["Z"]),
        partial(client.around, member="Z"),
        partial(client.around, rank=1),
        client.between,
        partial(client.counts, scores=[5]),
        partial(client.histogram, edges=[5]),
    )
    for source, ask in product(Source, questions):
        with pytest.raises(kind):
            ask(board=key, season=season, source=source)
    named = {} if season is None else {"season": season}
    for route, asked in routes():
        for need in ("any", "authoritative"):
            answer = paths.http.get(
                f"/v1/boards/{key}/{route}", params={**asked, **named, "consistency": need}
            )
            assert (answer.status_code, answer.json()["code"]) == (404, code), route
    for format_ in ("csv", "ndjson"):
        answer = paths.http.get(f"/v1/boards/{key}/export", params={"format": format_, **named})
        assert (answer.status_code, answer.json()["code"]) == (404, code), format_
    options = [] if season is None else ["--season", season]
    file = tmp_path / "file"
    for words in (["top", key], ["places", key, "Z"], ["export", key, "--output", str(file)]):
        assert cli(*words, *options) == 1
        assert f"error[{code}]" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [], "no file is begun"


def test_a_live_stream_of_a_board_without_players_begins_and_of_no_board_is_not_found(
    paths: Paths,
) -> None:
    """RED-10."""
    board(paths, seasons=["all", "month"])
    paths.world.project()

    assert first_event(paths.http, "b") == (200, "tick")
    assert first_event(paths.http, "nowhere") == (404, "")
    assert paths.http.get("/v1/boards/nowhere").status_code == 404
    assert paths.http.get("/v1/boards/nowhere/seasons").status_code == 404
    none = paths.http.get("/v1/boards/b/seasons").json()
    assert (none["seasons"], none["freshness"]["source"]) == ([], "database")
    assert paths.http.get("/v1/boards/b/live", params={"season": "2099-01"}).status_code == 422


def test_a_board_that_was_deleted_is_found_no_more(paths: Paths) -> None:
    board(paths)
    paths.world.scores("b", ("A", 1))
    assert paths.table("b") == [(1, "A", "1")]

    paths.client.delete_board("b", actor="op", reason="over")
    paths.world.project()

    def found(route: str, asked: dict[str, Any]) -> bool:
        return paths.http.get(f"/v1/boards/b/{route}", params=asked).status_code != 404

    # A service may remember a board for a moment.
    wait_until(lambda: not any(found(*question) for question in routes()), "nothing to be found")
    with pytest.raises(BoardUnknown):
        paths.client.top("b")

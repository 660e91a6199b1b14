"""Leagues over HTTP and by the command line."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import msgspec
import pytest

from tests.http.conftest import NO_CERTIFICATES, serving
from tests.leagues.conftest import Leagues
from truerank.cli import app
from truerank.settings import Settings

BY: Any = Leagues.BY
Run = Callable[..., tuple[int, Any]]


@pytest.fixture
def run(
    database_url: str,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> Run:
    """A function that runs a command with `--json`; its exit status and its object."""
    monkeypatch.setenv("TRUERANK_DATABASE_URL", database_url)
    monkeypatch.setenv("TRUERANK_REDIS_URL", redis_url)

    def run(*arguments: str, words: bool = False) -> tuple[int, Any]:
        capfdbinary.readouterr()
        status = app.run([*arguments, *(() if words else ("--json",))])
        captured = capfdbinary.readouterr()
        if words or not captured.out:
            return status, (captured.out or captured.err).decode()
        return status, json.loads(captured.out)

    return run


def _close_in_order(leagues: Leagues, http: httpx.Client) -> None:
    leagues.submit(("A", 1), month=6)
    early = http.post("/seasons/close", json={"season": "2024-06", **BY})
    assert (early.status_code, early.json()["code"]) == (409, "earlier_season_open")
    leagues.close()


def _check_settled_lists(http: httpx.Client, url: str, within: dict[str, Any]) -> None:
    """What is listed of the cohort of A and C alone, once the season is settled."""
    (revision,) = http.get("/settlements", params=within).json()["settlements"]
    assert (revision["cohort"], revision["population"]) == (1, 2)
    for path, name, who in (
        ("places", "places", ["A", "C"]), ("changes", "changes", []),
        ("excluded", "excluded", []),
    ):  # fmt: skip
        listed = http.get(f"/settlements/{path}", params=within).json()
        assert (listed["cohort"], [row["member"] for row in listed[name]]) == (1, who)
    given = http.get(f"{url}/v1/awards", params={"board": "b", **within}).json()["awards"]
    assert [award["member"] for award in given] == ["A", "C"]


def test_everybody_asks_about_cohorts_and_operators_say_how_seasons_are_divided(
    leagues: Leagues, database_url: str, redis_url: str
) -> None:
    leagues.submit(("A", 5), ("B", 9), ("C", 1))
    settings = Settings(database_url=database_url, redis_url=redis_url, operator=True)
    rule = {
        "period": "month", "size": 2, "by_key": True, "tiers": ["low", "high"], "promote": 1,
        "from_season": "2024-05", **BY,
    }  # fmt: skip
    with (
        serving(settings) as url,
        httpx.Client(base_url=f"{url}/v1/boards/b", verify=NO_CERTIFICATES) as http,
    ):
        assert http.post("/leagues", json=rule).json()["changed"]
        assert not http.post("/leagues", json=rule).json()["changed"]
        assert http.post("/leagues/assign", json={"member": "B", "key": "red"}).json()["changed"]
        leagues.divide()

        (league,) = http.get("/leagues").json()["leagues"]
        assert (league["size"], league["undivided"], league["from_season"]) == (2, 0, "2024-05")
        answer = http.get("/cohorts", params={"season": "2024-05", "after": 1}).json()
        assert (answer["season"], answer["state"]) == ("2024-05", "open")
        assert answer["freshness"]["source"] == "database"
        assert answer["cohorts"] == [
            {"cohort": 2, "tier": 0, "tier_name": "low", "key": "red", "size": 2, "members": 1,
             "population": 1}
        ]  # fmt: skip
        within: dict[str, Any] = {"season": "2024-05", "cohort_of": "A"}
        top = http.get("/top", params=within).json()
        assert (top["cohort"], top["total"], [e["member"] for e in top["entries"]]) == (
            1, 2, ["A", "C"])  # fmt: skip
        questions: list[tuple[str, dict[str, Any]]] = [
            ("/place", {"member": "C"}),
            ("/around", {"member": "C"}),
            ("/around", {"rank": 2}),
            ("/between", {"score_min": 0}),
            ("/counts", {"score": 2}),
            ("/histogram", {"edge": 2}),
            ("/places", {"member": "C"}),
        ]
        for path, also in questions:
            answer = http.get(path, params=within | also)
            assert (answer.json()["cohort"], answer.json()["total"]) == (1, 2), path
        nobodys: list[dict[str, Any]] = [{"cohort": 3}, {"cohort_of": "Z"}]
        for params in nobodys:
            missing = http.get("/top", params={"season": "2024-05", **params})
            assert (missing.status_code, missing.json()["code"]) == (404, "not_in_cohort")
        wrong: list[dict[str, Any]] = [{"cohort": "x"}, {"cohort": 1, "cohort_of": "A"}]
        for params in wrong:
            assert http.get("/top", params={"season": "2024-05", **params}).status_code == 422

        past = http.get("/top", params=within | {"as_of": "2025-01-01T00:00:00Z"}).json()
        assert (past["cohort"], past["total"]) == (1, 0)  # the events came later
        file = http.get("/export", params=within)
        assert file.headers["truerank-cohort"] == "1"
        assert "b-2024-05-cohort-1.csv" in file.headers["content-disposition"]
        assert [line.split(",")[3] for line in file.text.splitlines()] == ["member", "A", "C"]
        award: dict[str, Any] = {"period": "month", "name": "medal", "ranks": [1, 3], **BY}
        assert http.post("/award-rules", json=award).json()["made"]
        _close_in_order(leagues, http)
        _check_settled_lists(http, url, within)
        settled = http.get("/top", params=within | {"consistency": "settled"}).json()
        assert (settled["cohort"], settled["revision"]) == (1, 1)
        place = http.get("/leagues/place", params={"season": "2024-05", "member": "A"}).json()
        assert (place["cohort"], place["rank"], place["zone"]) == (1, 1, "promotion")
        (moved, *_) = http.get("/leagues/tiers", params={"period": "month"}).json()["members"]
        assert moved == {"member": "A", "tier": 1, "tier_name": "high", "season": "2024-05"}
        assert http.post("/leagues/drop", json={"period": "month", **BY}).json()["dropped"]
        gone = http.post("/leagues/drop", json={"period": "month", **BY})
        assert (gone.status_code, gone.json()["code"]) == (422, "league_unknown")

    with (
        serving(msgspec.structs.replace(settings, operator=False)) as url,
        httpx.Client(base_url=f"{url}/v1/boards/b", verify=NO_CERTIFICATES) as http,
    ):
        assert http.post("/leagues", json=rule).status_code == 403
        assert http.get("/leagues/tiers", params={"period": "month"}).status_code == 403
        assert (
            http.get("/leagues/place", params={"season": "2024-05", "member": "Z"}).json()["cohort"]
            is None
        )


def test_the_command_line_sets_shows_and_drops_leagues(leagues: Leagues, run: Run) -> None:
    leagues.submit(("A", 5), ("B", 9), ("C", 1))
    by = ("--actor", "ann", "--reason", "why")

    made = run(
        "league", "set", "b", "month", "--size", "2", "--tiers", "low,high", "--promote", "1",
        "--by-key", "--from", "2024-05", *by,
    )  # fmt: skip
    assert made == (0, {"board": "b", "period": "month", "changed": True})
    assert run("league", "assign", "b", "B", "red")[1]["changed"]
    leagues.divide()
    shown = run("league", "show", "b")[1]["leagues"][0]
    assert (shown["tiers"], shown["promote"], shown["scanned"]) == (["low", "high"], 1, True)
    cohorts = run("league", "cohorts", "b", "--season", "2024-05")[1]["cohorts"]
    assert [(c["cohort"], c["key"]) for c in cohorts] == [(1, ""), (2, "red")]
    top = run("top", "b", "--season", "2024-05", "--cohort", "2", "--source", "database")[1]
    assert (top["cohort"], [e["member"] for e in top["entries"]]) == (2, ["B"])
    rank = run(
        "places", "b", "C", "--season", "2024-05", "--cohort-of", "A", "--source", "database"
    )[1]
    assert rank["places"][0]["rank"] == 2
    assert run("top", "b", "--season", "2024-05", "--cohort", "9")[0] == 1
    of_a = ("--season", "2024-05", "--cohort-of", "A")
    assert (
        run("top", "b", *of_a, "--since", "2025-01-01T00:00:00Z")[1]["entries"][0]["change"] is None
    )
    status, file = run("export", "b", *of_a, "--format", "ndjson", words=True)
    members = [json.loads(line)["member"] for line in file.splitlines()]
    assert (status, members) == (0, ["A", "C"])
    rule = ("award", "make", "b", "month", "medal", "--ranks", "1-3", *by)
    assert run(*rule)[1]["made"]
    leagues.submit(("A", 1), month=6)
    status, told = run("season", "close", "b", "2024-06", words=True)
    assert (status, "error[earlier_season_open]: " in told, "'2024-05'" in told) == (1, True, True)

    leagues.close()
    settled = ("b", "2024-05", "--cohort-of", "A")
    assert run("season", "show", *settled)[1]["settlements"][0]["population"] == 2
    assert "cohort" in run("season", "show", *settled, words=True)[1]
    for listed in ("changes", "excluded"):
        answer = run("season", listed, *settled)[1]
        assert (answer["cohort"], answer[listed]) == (1, [])
    assert [a["member"] for a in run("award", "list", *settled)[1]["awards"]] == ["A", "C"]
    _, file = run("award", "export", *settled, "--format", "ndjson", words=True)
    assert [json.loads(line)["member"] for line in file.splitlines()] == ["A", "C"]
    assert [m["member"] for m in run("league", "tiers", "b", "month")[1]["members"]] == ["A", "B"]
    told = run("league", "place", "b", "A", "--season", "2024-05", words=True)[1]
    assert told.startswith("season 2024-05, cohort 1, tier low: rank 1 of 2, promotion\n")
    told = run("league", "place", "b", "Z", "--season", "2024-05", words=True)[1]
    assert told.startswith("Z is in no cohort of season 2024-05\n")
    for words in (
        ("show",), ("cohorts", "b", "--season", "2024-05"), ("tiers", "b", "month"),
    ):  # fmt: skip
        assert run("league", *words, words=True)[0] == 0
    assert run("league", "drop", "b", "month", *by)[1]["dropped"]
    assert "league_unknown" in run("league", "drop", "b", "month", *by)[1]

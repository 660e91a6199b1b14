"""Seasons are added over HTTP, by the command line and from asyncio; how far they are is told."""

import asyncio
import json
import queue
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import httpx
import msgspec
import pytest

import truerank
from tests.projection.pipeline import DEADLINE_S, wait_until
from tests.settle.conftest import Connection, Months
from tests.settle.test_fill import DIFFERENCES, event, fill
from tests.settle.test_http import client_of, ok, refused
from truerank import aio
from truerank.cli import app
from truerank.cli import filling as commands
from truerank.errors import BoardUnknown, SeasonUnknown
from truerank.local import running_worker
from truerank.settings import Settings

BY: Any = Months.BY
Connect = Callable[..., Connection]
ADD, FILL, FILLING = (f"/v1/boards/b/seasons/{what}" for what in ("add", "fill", "filling"))
NOTHING = {"board": "b", "periods": [], "members_done": 0, "members": None, "waits_for": []}


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    return Settings(database_url=database_url, redis_url=redis_url, live_checks_percent=0)


@pytest.fixture
def operators(settings: Settings) -> Iterator[httpx.Client]:
    """A server for operators, with no worker beside it."""
    yield from client_of(msgspec.structs.replace(settings, operator=True))


@pytest.fixture
def nine(months: Months) -> Months:
    """Nine members have scores in a week of June 2024."""
    months.submit(*((f"e{n}", f"m{n}", n) for n in range(9)))
    return months


@pytest.mark.usefixtures("nine")
def test_operators_add_seasons_over_http_and_are_told_how_far_they_are(
    operators: httpx.Client, conn: Connection
) -> None:
    body = {"period": "week", "actor": "ann", "reason": "a weekly page"}
    assert ok(operators.get(FILLING)) == NOTHING

    added, again = (ok(operators.post(ADD, json=body), 202) for _ in range(2))
    begun = ok(operators.get(FILLING))
    slices = [ok(operators.post(FILL, json={"members_max": 4})) for _ in range(2)]
    counted = ok(operators.get(FILLING, params={"count": "1"}))
    kept = ok(operators.get(FILLING))
    unread = operators.get("/v1/boards/b/top", params={"season": "2024-W24"})
    slices += [ok(operators.post(FILL, json={})) for _ in range(2)]

    told = {"board": "b", "period": "week", "periods": ["week"]}
    assert (added, again) == (told | {"added": True}, told | {"added": False})
    assert begun == NOTHING | {"periods": ["week"]}
    assert slices == [
        {"board": "b", "members": count, "waits": False, "done": done}
        for count, done in ((4, False), (4, False), (1, False), (0, True))
    ]
    assert counted == begun | {"members_done": 8, "members": 9}
    assert kept == counted
    assert unread.json()["code"] == "season_unknown"
    assert ok(operators.get(FILLING)) == NOTHING
    assert ok(operators.post(ADD, json=body))["periods"] == []
    assert ok(operators.get("/v1/boards/b/top", params={"season": "2024-W24"}))["total"] == 9
    assert conn.execute(DIFFERENCES).fetchall() == []
    rows = conn.execute("SELECT actor, reason FROM truerank.audit WHERE action = 'add_period'")
    assert rows.fetchall() == [("ann", "a weekly page")]


def test_what_makes_no_sense_is_refused_and_a_server_for_everybody_adds_nothing(
    nine: Months, operators: httpx.Client, settings: Settings
) -> None:
    by = {"actor": "ann", "reason": "r"}
    assert refused(operators.post(ADD, json={**by, "period": "decade"})) == (
        422, "invalid_input", "period",
    )  # fmt: skip
    assert refused(operators.post(ADD, json={"period": "week"}))[:2] == (422, "invalid_input")
    for members_max in (0, 10_001):
        assert refused(operators.post(FILL, json={"members_max": members_max})) == (
            422, "invalid_input", "members_max",
        )  # fmt: skip
    assert refused(operators.get(FILLING, params={"count": "yes"})) == (
        422, "invalid_input", "count",
    )  # fmt: skip
    for path in (ADD, FILL, FILLING):
        elsewhere = path.replace("/b/", "/none/")
        answer = (
            operators.get(elsewhere)
            if path == FILLING
            else operators.post(elsewhere, json={**by, "period": "week"} if path == ADD else {})
        )
        assert refused(answer) == (404, "board_unknown", "board")

    for public in client_of(settings):
        answers = [
            public.post(ADD, json={**by, "period": "week"}), public.post(FILL, json={}),
            public.get(FILLING),
        ]  # fmt: skip
        assert {refused(answer)[:2] for answer in answers} == {(403, "operators_only")}
    assert nine.tr.board("b").spec.seasons == ("all", "month")


async def test_asyncio_adds_seasons_and_is_told_the_same(nine: Months, settings: Settings) -> None:
    async with aio.Truerank(settings) as client:
        assert await client.add_seasons("b", "week", **BY)
        await client.fill_seasons("b", members_max=4)
        filling = await client.seasons_filling("b", count=True)
        same = await asyncio.to_thread(nine.tr.seasons_filling, "b")
        while not (await client.fill_seasons("b")).done:
            pass
        with pytest.raises(BoardUnknown):
            await client.seasons_filling("none")

    assert (filling.periods, filling.members_done, filling.members) == (("week",), 4, 9)
    assert same == filling
    assert nine.tr.seasons_filling("b").periods == ()


def test_who_is_waited_for_is_told_and_nobody_who_came_later(
    nine: Months, connect: Connect
) -> None:
    before, later = connect(application_name="before"), connect(application_name="later")

    with before.transaction():
        truerank.submit_score(before, "b", event("n1", "A", 5, 14))
        nine.tr.add_seasons("b", "week", **BY)
        assert nine.tr.fill_seasons("b").waits
        with later.transaction():
            truerank.submit_score(later, "b", event("n2", "B", 5, 14))
            waits_for = nine.tr.seasons_filling("b").waits_for
    fill(nine.tr)

    assert [(w.pid, w.name) for w in waits_for] == [(before.info.backend_pid, "before")]
    assert nine.tr.seasons_filling("b").waits_for == ()
    assert nine.tr.top("b", "2024-W24").total == 11


def test_progress_begins_anew_with_another_period_and_is_over_at_the_end(nine: Months) -> None:
    tr = nine.tr
    tr.add_seasons("b", "week", **BY)
    tr.fill_seasons("b", members_max=4)
    assert tr.seasons_filling("b", count=True).members_done == 4

    tr.add_seasons("b", "day", **BY)
    both = tr.seasons_filling("b")
    fill(tr, members_max=4)

    assert (both.periods, both.members_done, both.members) == (("week", "day"), 0, None)
    assert tr.seasons_filling("b", count=True).members is None
    assert tr.top("b", "2024-06-15").total == tr.top("b", "2024-W24").total == 9


@pytest.fixture
def run(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> Callable[..., tuple[int, str, str]]:
    """A function that runs a command; its exit status, and what it said on both outputs."""
    monkeypatch.setenv("TRUERANK_DATABASE_URL", settings.database_url or "")
    monkeypatch.setenv("TRUERANK_REDIS_URL", settings.redis_url or "")
    monkeypatch.setattr(commands, "_SLICE", 2)

    def run(*arguments: str) -> tuple[int, str, str]:
        capfdbinary.readouterr()
        status = app.run(arguments)
        said = capfdbinary.readouterr()
        return status, said.out.decode(), said.err.decode()

    return run


def test_the_command_shows_how_far_it_is_and_goes_on_where_another_was_ended(
    nine: Months,
    run: Callable[..., tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
    conn: Connection,
) -> None:
    nine.tr.add_seasons("b", "week", **BY)
    nine.tr.fill_seasons("b", members_max=3)  # and there it was ended
    shown: list[tuple[int, int]] = []
    monkeypatch.setattr(
        commands, "counting_bar", lambda _what: nullcontext(lambda *far: shown.append(far))
    )

    half = run("board", "filling", "b", "--count")
    done = run("board", "add-seasons", "b", "week", "--reason", "r", "--actor", "ann", "--json")
    after = run("board", "filling", "b", "--json")

    assert half[0] == 0
    assert [line.split() for line in half[1].splitlines()] == [
        ["board", "b"], ["periods", "week"], ["members", "3", "of", "about", "9"],
    ]  # fmt: skip
    assert json.loads(done[1]) == {"board": "b", "period": "week", "added": False, "members": 6}
    assert shown == [(5, 9), (7, 9), (9, 9)]
    assert json.loads(after[1]) == NOTHING
    assert nine.tr.top("b", "2024-W24").total == 9
    assert conn.execute(DIFFERENCES).fetchall() == []


def test_a_person_at_a_terminal_sees_a_bar(
    nine: Months, run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)

    status, out, err = run("board", "add-seasons", "b", "week", "--reason", "r", "--actor", "ann")

    assert (status, out) == (0, "board b now has seasons by week; 9 members computed\n")
    assert "9/9" in err
    assert "members" in err
    assert nine.tr.top("b", "2024-W24").total == 9


def test_the_command_says_whom_it_waits_for(
    nine: Months,
    run: Callable[..., tuple[int, str, str]],
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer = connect(application_name="nightly job")
    notes: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr(commands, "note", notes.put)
    with ThreadPoolExecutor(1) as threads:
        with writer.transaction():
            truerank.submit_score(writer, "b", event("n1", "A", 5, 14))
            running = threads.submit(
                run, "board", "add-seasons", "b", "week", "--reason", "r", "--actor", "ann"
            )
            told = notes.get(timeout=DEADLINE_S)
        status, out, _ = running.result(DEADLINE_S)

    assert told.startswith("waiting for a transaction open for ")
    assert told.endswith(f": nightly job, pid {writer.info.backend_pid}")
    assert notes.empty(), "once of each"
    assert (status, "10 members computed" in out) == (0, True)
    assert nine.tr.top("b", "2024-W24").total == 10


def test_a_worker_does_the_rest_of_what_was_added_over_http(
    nine: Months, operators: httpx.Client, settings: Settings
) -> None:
    nine.tr.hide_member("m8", timeout_s=0.0, **BY)

    with running_worker(settings):
        ok(operators.post(ADD, json={"period": "week", **BY}), 202)
        wait_until(lambda: not ok(operators.get(FILLING))["periods"], "the worker to be done")

        def shown() -> Any:
            page = operators.get("/v1/boards/b/top", params={"season": "2024-W24"}).json()
            projected = page.get("freshness", {}).get("source") == "projection"
            return page if projected and page["total"] else None

        page = wait_until(shown, "the week to be shown")

    assert [(row["member"], row["score"]) for row in page["entries"]] == [
        (f"m{n}", str(n)) for n in range(7, -1, -1)
    ]


def test_no_season_is_closed_before_all_of_it_is_computed(nine: Months, conn: Connection) -> None:
    tr = nine.tr
    nine.rules(auto_close=True)
    conn.execute("UPDATE truerank.board SET auto_close_from = '2024-06-12', close_next_at = NULL")
    due = "SELECT season FROM truerank.due_closes(1000) WHERE season = '2024-W24'"
    tr.close_season("b", "2024-06", actor="test")
    tr.add_seasons("b", "week", **BY)
    tr.fill_seasons("b", members_max=4)

    assert conn.execute(due).fetchall() == []
    with pytest.raises(SeasonUnknown):
        tr.close_season("b", "2024-W24", actor="test")
    fill(tr)

    assert conn.execute(due).fetchall() == [("2024-W24",)]
    tr.close_season("b", "2024-W24", actor="test")
    assert nine.settled("2024-W24") == nine.settled("2024-06")
    assert nine.proven("2024-W24") == [(1, True, True)]

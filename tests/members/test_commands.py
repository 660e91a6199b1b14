"""`truerank member` on the stores that variables name."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.members.conftest import Club
from truerank.cli.app import run

Do = Callable[..., tuple[int, str, str]]


@pytest.fixture
def do(club: Club, monkeypatch: pytest.MonkeyPatch, capfdbinary: Any) -> Do:
    """A function that runs one command and returns its status and what it printed."""
    monkeypatch.setenv("TRUERANK_DATABASE_URL", str(club.pipeline.settings.database_url))
    monkeypatch.setenv("TRUERANK_REDIS_URL", str(club.pipeline.settings.redis_url))

    def do(*words: str) -> tuple[int, str, str]:
        status = run(["member", *words])
        out, err = capfdbinary.readouterr()
        return status, out.decode(), err.decode()

    return do


WHY = ("--reason", "why", "--actor", "op", "--wait-s", "0")


def test_a_ban_is_told_with_its_end_and_as_pending_without_a_worker(club: Club, do: Do) -> None:
    club.scores("b", ("mal\x1b[2J", 1))
    until = "2100-01-01T00:00:00.000000Z"

    status, out, err = do("ban", "mal\x1b[2J", "--board", "b", "--until", until, *WHY)

    assert (status, out) == (0, f"mal\\x1b[2J is banned until {until} on b\n")
    assert "a worker" in err
    assert club.settled() == {}
    status, out, _ = do("ban", "mal\x1b[2J", "--board", "b", "--until", until, "--json", *WHY)
    answer = json.loads(out)
    assert (answer["state"], answer["until"], answer["changed"]) == ("banned", until, False)
    assert (answer["board"], bool(answer["token"])) == ("b", True)


def test_a_state_is_shown_by_board(club: Club, do: Do) -> None:
    club.does("hide", "A", board="b")
    club.does("ban", "A")

    status, out, _ = do("state", "A")

    header, everywhere, on_board = out.splitlines()
    assert status == 0
    assert header.split() == ["state", "until", "since", "board"]
    assert (everywhere.split()[0], everywhere.split()[-1]) == ("banned", "everywhere")
    assert (on_board.split()[0], on_board.split()[-1]) == ("hidden", "b")
    states = json.loads(do("state", "A", "--json")[1])["states"]
    assert [(each["board"], each["state"], each["hides"]) for each in states] == [
        (None, "banned", False),
        ("b", "hidden", True),
    ]
    assert do("state", "B")[1] == "B is active on every board\n"


def test_a_merge_and_what_refuses_it_are_told(club: Club, do: Do) -> None:
    club.scores("b", ("A", 1), ("B", 2))
    club.project()

    assert do("merge", "B", "A", *WHY)[:2] == (0, "B is merged into A everywhere\n")
    status, out, err = do("merge", "A", "B", *WHY)

    assert (status, out) == (1, "")
    assert err.startswith("error[merge_cycle]")
    assert "B counts for A" in do("state", "B")[1]


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("hide", "A is hidden everywhere\n"),
        ("show", "A is active everywhere, as before\n"),
        ("unban", "A is active everywhere, as before\n"),
        ("reset", "A is active everywhere\n"),
        ("delete", "A is deleted everywhere\n"),
    ],
)
def test_each_action_says_what_holds(club: Club, do: Do, action: str, said: str) -> None:
    club.scores("b", ("A", 1))

    assert do(action, "A", *WHY)[:2] == (0, said)


def test_an_erasure_without_a_worker_is_told_as_under_way_and_names_nobody(
    club: Club, do: Do
) -> None:
    club.scores("b", ("ada lovelace", 1))

    status, out, err = do("erase", "ada lovelace", "--reason", "why", "--complete-s", "0")

    assert status == 0
    assert out.startswith("erasure ")
    assert out.endswith(": under way\n")
    assert "a worker" in err
    (erasure,) = json.loads(do("erasures", "--json")[1])["erasures"]
    assert (erasure["state"], erasure["events"]) == ("erasing", None)
    listed = do("erasures")[1]
    assert erasure["erasure"] in listed
    assert "ada" not in out + listed

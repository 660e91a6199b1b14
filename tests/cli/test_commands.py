"""Commands that ask and commands that change one thing, on embedded engines."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import Command
from truerank.cli.app import run
from truerank.embedded import start_engines

_FRESHNESS = ["source", "epoch", "generation", "tick", "projected_through", "staleness_ms"]
_LEAVES = [
    ("up",),
    ("demo",),
    ("import",),
    ("submit",),
    ("top",),
    ("place",),
    ("places",),
    ("around",),
    ("status",),
    ("doctor",),
    ("migrate",),
    ("worker",),
    ("serve",),
    ("board", "create"),
    ("board", "list"),
    ("board", "show"),
    ("season", "list"),
    ("season", "create"),
]
_CSV = "event_id,board,member,points,occurred_at\n"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, preloaded_truerank: Path) -> Iterator[Command]:
    """The command on a folder with one board: three members, two of them equal.

    The engines run all the while: each command attaches to them, which is quicker.
    """
    truerank = Command(tmp_path_factory.mktemp("commands") / "data", preloaded_truerank)
    rows = [
        ("e1", "ada", 5, "2026-08-29T12:00:00Z"),
        ("e2", "\x1b[2J\u202emal", 9, "2026-08-29T12:00:01Z"),
        ("e3", "مريم", 5, "2026-08-29T12:00:02Z"),
    ]
    text = _CSV + "".join(f"{e},points,{m},{v},{at}\n" for e, m, v, at in rows)
    with start_engines(truerank.data, durable=False):
        done = truerank("import", "-", "--create-boards", text=text)
        assert done.status == 0, done.err
        yield truerank


def test_top_answers_in_the_documented_shape_from_the_projection(filled: Command) -> None:
    answer = filled("top", "points", "--json").json

    head = ["board", "season", "state", "total"]
    assert list(answer) == [*head, "entries", "next", "previous", "freshness"]
    assert (answer["board"], answer["season"], answer["total"]) == ("points", "all", 3)
    assert answer["entries"] == [
        {"rank": 1, "member": "\x1b[2J\u202emal", "score": "9"},
        {"rank": 2, "member": "ada", "score": "5"},
        {"rank": 2, "member": "مريم", "score": "5"},
    ]
    assert list(answer["freshness"]) == _FRESHNESS
    assert answer["freshness"]["source"] == "projection"
    assert answer["freshness"]["staleness_ms"] is not None


def test_both_sources_give_the_same_places_and_name_themselves(filled: Command) -> None:
    shown = filled("top", "points", "--json", "--numbering", "ordinal").json
    true = filled("top", "points", "--json", "--numbering", "ordinal", "--source", "database").json

    assert true.pop("freshness")["source"] == "database"
    assert shown.pop("freshness")["source"] == "projection"
    assert shown == true
    assert [entry["rank"] for entry in true["entries"]] == [1, 2, 3]
    dense = filled("top", "points", "--json", "--numbering", "dense").json
    assert [entry["rank"] for entry in dense["entries"]] == [1, 2, 2]


def test_a_season_is_chosen_by_its_label(filled: Command) -> None:
    assert filled("top", "points", "--season", "2026-W35", "--json").json["total"] == 3
    assert filled("top", "points", "--season", "2026-W36", "--json").json["total"] == 0


def test_a_list_shows_ids_that_act_escaped_and_the_others_as_they_are(filled: Command) -> None:
    lines = filled("top", "points").out.splitlines()

    assert lines[:5] == [
        "points, season all, 3 members",
        "rank  score  member",
        "   1      9  \\x1b[2J\\u202emal",
        "   2      5  ada",
        "   2      5  مريم",
    ]
    assert re.fullmatch(r"from the projection, as of .+ ago", lines[5])
    named = (
        r"  tick \d+, generation [0-9a-f]{8}, epoch [0-9a-f]{8}, all before \d{4}-\d\d-\d\d \S+Z"
    )
    assert re.fullmatch(named, lines[6])


def test_every_question_says_how_true_its_answer_is(filled: Command, tmp_path: Path) -> None:
    named = r"  (tick \d+, generation \w{8}, )?epoch \w{8}, all before \S+ \S+Z"
    for words in (
        *(("place", "points", "ada"), ("places", "points", "ada"), ("around", "points", "ada")),
        *(("between", "points"), ("counts", "points", "5"), ("histogram", "points", "5")),
        *(("season", "list", "points"), ("league", "cohorts", "points", "--season", "2026-08")),
        ("league", "place", "points", "ada", "--season", "2026-08"),
    ):
        assert re.fullmatch(named, filled(*words).out.splitlines()[-1]), words
        assert list(filled(*words, "--json").json["freshness"]) == _FRESHNESS, words
    written = filled("export", "points", "--output", str(tmp_path / "points.csv"))
    assert re.fullmatch(named, written.err.splitlines()[-1])


def test_rank_and_around_tell_of_members_with_and_without_a_place(filled: Command) -> None:
    places = filled("places", "points", "ada", "nobody", "--json").json["places"]
    around = filled("around", "points", "ada", "--limit", "2", "--json").json

    assert places == [
        {"rank": 2, "member": "ada", "score": "5"},
        {"rank": None, "member": "nobody", "score": None},
    ]
    assert around["place"] == places[0]
    assert len(around["around"]) == 2
    assert "   -      -  nobody" in filled("places", "points", "nobody").out


def test_a_member_and_its_neighbours_come_in_the_same_answer(filled: Command) -> None:
    answer = filled("top", "points", "--member", "ada", "--limit", "1", "--json").json

    assert len(answer["entries"]) == 1
    assert answer["place"] == {"rank": 2, "member": "ada", "score": "5"}
    assert {"rank": 2, "member": "ada", "score": "5"} in answer["around"]


@pytest.mark.parametrize("limit", [1, 2])
def test_a_member_and_its_neighbours_are_listed_once(filled: Command, limit: int) -> None:
    listed = filled("top", "points", "--member", "ada", "--limit", str(limit)).out

    assert (listed.count("ada"), listed.count("مريم")) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (("top", "nope"), 1, "error[board_unknown]: "),
        (("top", "points", "--season", "2026-W99"), 1, "error[season_unknown]: "),
        (("top", "points", "--limit", "1001"), 1, "error[invalid_input]: "),
        (("top", "\x1b[2J"), 1, "error[board_unknown]: there is no board '\\x1b[2J'"),
        (("submit", "points", "ada", "1e3"), 1, "error[invalid_input]: "),
        (("submit", "points", "ada", "5", "--at", "2026-08-29"), 1, "error[invalid_input]: "),
        (("submit", "points", "ada", "7", "--event-id", "e1"), 1, "error[event_conflict]: "),
        (("submit", "points", "ada", "0.5"), 1, "error[value_too_precise]: "),
        (("board", "create", "points", "--operator", "best"), 1, "error[board_exists]: "),
        (("board", "create", "a/b"), 1, "error[invalid_input]: "),
        (("top",), 2, "error[usage]: "),
        (("top", "points", "--limit", "many"), 2, "error[usage]: "),
        (("tops",), 2, "error[usage]: "),
        (("place", "points", "-"), 2, "error[usage]: Unknown option: -.\nA board, member or label"),
    ],
)
def test_errors_go_to_standard_error_with_their_code_and_status(
    filled: Command, arguments: tuple[str, ...], status: int, error: str
) -> None:
    done = filled(*arguments, "--json") if len(arguments) > 1 else filled(*arguments)

    assert (done.status, done.out) == (status, "")
    assert done.err.startswith(error)
    assert "\x1b" not in done.err


def test_boards_and_seasons_are_made_once_and_shown(filled: Command) -> None:
    options = ("--operator", "best", "--order", "asc", "--decimals", "3", "--tie-break", "misses")
    made = filled("board", "create", "laps", *options, "--value-min", "-5", "--json").json
    again = filled("board", "create", "laps", *options, "--value-min", "-5", "--json").json
    season = ("laps", "summer", "2026-06-01T00:00:00+02:00", "2026-09-01T00:00:00+02:00")

    assert (made["created"], again["created"]) == (True, False)
    assert made["board"] == filled("board", "show", "laps", "--json").json["board"]
    assert made["board"]["value_min"] == "-5"
    boards = filled("board", "list", "--json").json["boards"]
    assert [board["board"] for board in boards] == ["laps", "points"]
    assert filled("season", "create", *season, "--json").json["created"] is True
    (summer,) = filled("season", "list", "laps", "--json").json["seasons"]
    assert (summer["season"], summer["starts_at"]) == ("summer", "2026-05-31T22:00:00.000000Z")
    labels = [s["season"] for s in filled("season", "list", "points", "--json").json["seasons"]]
    assert labels == ["all", "2026-W35", "2026-08"]


def test_a_score_is_recorded_once_under_its_id_and_shown_when_waited_for(filled: Command) -> None:
    assert filled("board", "create", "quiz").status == 0
    score = ("submit", "quiz", "ada", "-5", "--event-id", "s1", "--at", "2026-08-29T12:00:00Z")

    first = filled(*score, "--metadata", '{"a": 1}', "--wait", "--json").json
    again = filled(*score, "--metadata", '{"a": 1}', "--json").json

    assert (first["outcome"], again["outcome"]) == ("applied", "duplicate")
    assert again["standings"] == first["standings"]
    assert {now["season"]: now["score"] for now in first["standings"]} == {
        "all": "-5",
        "2026-W35": "-5",
        "2026-08": "-5",
    }
    assert filled("top", "quiz", "--json").json["entries"][0]["score"] == "-5"


def test_status_tells_how_the_pipeline_is_doing(filled: Command) -> None:
    status = filled("status", "--json").json

    assert (status["projection"], status["groups_live"]) == ("whole", status["groups"])
    assert status["outbox_waiting"] == 0
    assert status["workers"] == 0, "a look must not start anything that works"
    assert status["last_tick_age_ms"] >= 0
    assert re.match(r"\d+\.\d+", status["database_version"])
    assert re.match(r"(Valkey|Redis) \d+\.", status["redis_version"])
    assert status["embedded"] == {
        "data": str(filled.data),
        "owner_pid": os.getpid(),
        "attached": True,
    }
    assert "whole" in filled("status").out


def test_migrate_is_safe_to_run_again(truerank: Command) -> None:
    assert truerank("migrate", "--json").json["applied"][0] == 1
    assert truerank("migrate", "--json").json["applied"] == []


@pytest.mark.parametrize("given", ["TRUERANK_DATABASE_URL", "TRUERANK_REDIS_URL"])
def test_one_address_without_the_other_is_refused_before_anything_starts(
    truerank: Command, given: str
) -> None:
    done = truerank("top", "points", **{given: "redis://127.0.0.1:1"})

    assert done.status == 1
    assert done.err.startswith("error[settings_invalid]: ")
    assert "TRUERANK_DATABASE_URL" in done.err
    assert "TRUERANK_REDIS_URL" in done.err
    assert not truerank.data.exists()


@pytest.mark.parametrize(
    "words",
    [
        ("top", "points"),
        ("places", "points", "ada"),
        ("around", "points", "ada"),
        ("between", "points"),
        ("counts", "points", "5"),
        ("histogram", "points", "5"),
    ],
    ids=" ".join,
)
def test_options_that_contradict_each_other_are_refused_before_anything_starts(
    truerank: Command, words: tuple[str, ...]
) -> None:
    done = truerank(*words, "--at-least", "1.a", "--max-age", "1s")

    assert done.status == 1
    assert done.err.startswith("error[invalid_input]: ")
    assert not truerank.data.exists()


def test_a_data_folder_beside_addresses_is_refused(
    truerank: Command, database_url: str, redis_url: str
) -> None:
    urls = {"TRUERANK_DATABASE_URL": database_url, "TRUERANK_REDIS_URL": redis_url}

    assert truerank("status", **urls).err.startswith("error[settings_invalid]: --data")


@pytest.mark.parametrize("command", _LEAVES, ids=" ".join)
def test_help_of_every_command_has_examples_that_name_it(
    capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    status = run([*command, "--help"])

    told, _, examples = capsys.readouterr().out.partition("Examples:")
    assert status == 0
    assert "Options of every command" in told
    assert f"truerank {' '.join(command)}" in examples.replace("--data ./data ", "").replace(
        "--log-level debug ", ""
    )


def test_help_lists_every_command_and_neither_loads_a_driver_nor_makes_a_folder(
    truerank: Command,
) -> None:
    listed = truerank("--help").out

    for command in _LEAVES:
        assert command[0] in listed
    loaded = truerank.modules("--help")
    assert not {"psycopg", "redis", "structlog", "starlette"} & loaded
    assert not truerank.data.exists()


def test_the_version_is_told() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", Command(None)("--version").out)


def test_readers_on_the_command_line_choose_how_fresh_an_answer_is(filled: Command) -> None:
    def ask(*options: str) -> dict[str, Any]:
        found: dict[str, Any] = filled("top", "fresh", *options, "--json").json["freshness"]
        return found

    assert filled("board", "create", "fresh").status == 0
    token = filled("submit", "fresh", "ada", "1", "--wait", "--json").json["token"]

    assert ask("--consistency", "authoritative")["source"] == "database"
    assert ask("--max-age", "1h")["source"] == "projection"
    assert ask("--at-least", token, "--wait", "20s")["source"] == "projection"
    first = ask("--monotonic", "new")["token"]
    assert ask("--monotonic", first)["token"]
    for options in (
        ("--consistency", "fresh"),
        ("--max-age", "soon"),
        ("--wait", "2s"),
        ("--else", "pending"),
        ("--around-limit", "3"),
        ("--at-least", token, "--max-age", "1s"),
    ):
        refused = filled("top", "fresh", *options, "--json")
        assert (refused.status, refused.out) == (1, ""), options
        assert refused.err.startswith("error[invalid_input]: "), refused.err

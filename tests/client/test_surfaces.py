"""The same questions by the same names: in Python, over HTTP and in the command line."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any

import pytest
from cyclopts import App
from starlette.routing import Route

import truerank
from tests.docs import made
from truerank.operations import Operations
from truerank.serve.app import create_app
from truerank.settings import Settings

BOARD = "/v1/boards/{board}"
# What says, together, how fresh an answer must be: a `Consistency` in Python.
NEEDS = {"consistency", "at_least", "max_age", "monotonic", "wait", "else"}
# Lists are read slice by slice; the command line goes through all slices by itself.
SLICES = {"limit", "offset", "after", "cursor"}
# Repeated, in an address or a command, each time for one of the many that Python takes.
MANY = {"member": "members", "score": "scores", "edge": "edges", "tie": "ties"}
HOW_IT_IS_PRINTED = {"json", "output"}


@dataclass(frozen=True)
class Question:
    """Where a question is asked, and what is different there, each with its reason.

    Args:
        route: what follows the board's address, or a whole one; None: nowhere.
        command: its words; None: none.
        differs: for a parameter and a surface, why it isn't there, or is there alone.
        defaults: for a parameter and a surface, why it has another default.
    """

    route: str | None
    command: str | None
    differs: Mapping[tuple[str, str], str] = field(default_factory=dict)
    defaults: Mapping[tuple[str, str], str] = field(default_factory=dict)


def same(name: str, **differences: Any) -> Question:
    return Question(name, name, **differences)


ALL_SLICES = {(name, "command"): "it goes through all slices by itself" for name in SLICES}
QUESTIONS = {
    "top": same(
        "top", defaults={("around_limit", "command"): "5 as well, but refused without --member"}
    ),
    "place": same("place"),
    "places": same("places"),
    "around": same("around"),
    "between": same("between"),
    "counts": same("counts"),
    "histogram": same("histogram"),
    "export": same(
        "export",
        defaults={("format", "command"): "a file's lines, where Python gives rows"},
    ),
    "board": Question("", "board show"),
    "seasons": Question("seasons", "season list", ALL_SLICES),
    "cohorts": Question("cohorts", "league cohorts", ALL_SLICES),
    "league_place": Question("leagues/place", "league place"),
    "leagues": Question("leagues", "league show"),
    "league_tiers": Question("leagues/tiers", "league tiers", ALL_SLICES),
    "settlements": Question("settlements", "season show"),
    "settlement_places": Question("settlements/places", None),  # `export --settled` writes them
    "settlement_changes": Question("settlements/changes", "season changes", ALL_SLICES),
    "settlement_excluded": Question("settlements/excluded", "season excluded", ALL_SLICES),
    "award_rules": Question("award-rules", "award rules"),
    "awards": Question("/v1/awards", "award list", ALL_SLICES),
    "freezes": Question("/v1/freezes", "freezes"),
    "boards": Question("/v1/boards", "board list"),
    "deliveries": Question("/v1/webhooks/deliveries", "webhook deliveries"),
    "member_states": Question("/v1/members/states", "member state"),
    "erasures": Question(
        "/v1/erasures", "member erasures", {("erasure", "command"): "`member erase` waits for it"}
    ),
    "season": Question(None, None),  # `seasons` and `settlements` tell the same of it
    "standing": Question(None, None),  # `place`, authoritative; this is for one's own transaction
    "explain": Question(None, "explain"),  # shows what was submitted: for whoever runs it
}
# What is done, and what is asked of the installation as a whole.
OTHERS = {
    "installation", "status", "wait_visible", "run", "close", "open",
    "wait_erased", "webhooks", "webhook", "test_webhook", "purge_boards", "prune_events",
    "divide_members", "close_due",
    "fill_seasons", "seasons_filling", "set_profiles", "submit_score", "submit_scores",
    "create_board", "update_board", "rename_board", "delete_board", "create_season",
    "change_season", "add_seasons", "close_season", "reopen_season", "revise_season",
    "freeze_season", "reveal_season", "void_events", "void_where", "amend_event",
    "hide_member", "show_member", "ban_member", "unban_member", "reset_member",
    "delete_member", "merge_members", "erase_member", "set_league", "drop_league",
    "assign_league_key", "make_award_rule", "drop_award_rule", "acknowledge_awards",
    "add_webhook", "change_webhook", "rotate_webhook", "remove_webhook", "retry_deliveries",
}  # fmt: skip
SURFACES: dict[str, Callable[[str], dict[str, Any] | None]] = {}
ALSO_CALLED = {"key": "board", "label": "season", "webhook": "name"}


def surface(
    read: Callable[[str], dict[str, Any] | None],
) -> Callable[[str], dict[str, Any] | None]:
    """One way to ask: from a question's name to its parameters, with their defaults."""
    SURFACES[read.__name__] = read
    return read


@surface
def python(name: str) -> dict[str, Any] | None:
    parameters = inspect.signature(getattr(truerank.Truerank, name)).parameters.values()
    return {
        ALSO_CALLED.get(each.name, each.name): each.default
        for each in parameters
        if each.name != "self"
    }


@surface
def http(name: str) -> dict[str, Any] | None:
    asked = QUESTIONS[name].route
    if asked is None:
        return None
    path = asked if asked.startswith("/") else f"{BOARD}/{asked}".rstrip("/")
    found = _of_route(path)
    return {"board": inspect.Parameter.empty, **found} if path.startswith(BOARD) else found


@surface
def command(name: str) -> dict[str, Any] | None:
    words = QUESTIONS[name].command
    if words is None:
        return None
    found: dict[str, Any] = {}
    for argument in made.options(_commands()[words]):
        option = argument.names[0].removeprefix("--").replace("-", "_").lower()
        many = argument.parameter.consume_multiple or option == "tie"
        found[MANY[option] if many else option] = argument.field_info.default
    return _with_needs({n: default for n, default in found.items() if n not in HOW_IT_IS_PRINTED})


@cache
def _commands() -> dict[str, App]:
    return made.commands()


def _of_route(path: str) -> dict[str, Any]:
    """The parameters that the code of a route takes, and the numbers that it takes for granted."""
    app = create_app(Settings(database_url="postgresql:///", redis_url="redis://"))
    (route,) = (
        each
        for each in app.routes
        if isinstance(each, Route) and each.path == path and "GET" in (each.methods or set())
    )
    endpoint: Any = inspect.unwrap(route.endpoint)
    known = vars(sys.modules[endpoint.__module__])
    found: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for call in _calls(endpoint):
        arguments = [eval(compile(ast.Expression(each), path, "eval"), known)  # noqa: S307 - ours
                     for each in call.args[1:]]  # fmt: skip
        match call.func:
            case ast.Name("Params"):
                found |= dict.fromkeys(arguments[0])
                repeated = [word.value for word in call.keywords if word.arg == "repeated"]
                found |= {MANY[ast.literal_eval(word)]: None for word in repeated}
            case ast.Attribute(ast.Name("params"), "number"):
                defaults[ast.literal_eval(call.args[0])] = arguments[0]
            case _:
                pass  # of texts and flags nothing is taken for granted
    return _with_needs(found | defaults)


def _calls(endpoint: Callable[..., Any]) -> Iterator[ast.Call]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(endpoint)))
    wanted = {"Params", "params"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            head = node.func.value if isinstance(node.func, ast.Attribute) else node.func
            if isinstance(head, ast.Name) and head.id in wanted:
                yield node


def _with_needs(found: dict[str, Any]) -> dict[str, Any]:
    """With one name for all that says how fresh an answer must be: none of it may be missing."""
    if not NEEDS & found.keys():
        return found
    assert found.keys() >= NEEDS, NEEDS - found.keys()
    return {"consistency": None} | {n: each for n, each in found.items() if n not in NEEDS}


def test_every_operation_is_a_question_or_none() -> None:
    named = {name for name in dir(truerank.Truerank) if not name.startswith("_")}
    operations = {name for name, _ in inspect.getmembers(Operations, inspect.isfunction)}

    assert named - OTHERS - {"operations"} == set(QUESTIONS)
    assert not OTHERS & QUESTIONS.keys()
    assert {name for name in operations if not name.startswith("_")} <= named


def test_every_address_about_a_board_answers_a_question() -> None:
    app = create_app(Settings(database_url="postgresql:///", redis_url="redis://"))
    served = {
        each.path.removeprefix(BOARD).removeprefix("/")
        for each in app.routes
        if isinstance(each, Route) and each.path.startswith(BOARD) and "GET" in (each.methods or ())
    }

    asked = {question.route for question in QUESTIONS.values() if question.route is not None}
    hints_and_work = {"live", "seasons/filling"}
    assert served - hints_and_work == {route for route in asked if not route.startswith("/")}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_has_the_same_parameters_everywhere(name: str) -> None:
    question = QUESTIONS[name]
    asked = {where: ask(name) for where, ask in SURFACES.items()}
    read = {where: found for where, found in asked.items() if found is not None}
    names = {parameter for found in read.values() for parameter in found}

    missing = {
        (parameter, where) for where in read for parameter in names if parameter not in read[where]
    }
    assert missing == question.differs.keys() & missing
    assert question.differs.keys() - ALL_SLICES.keys() <= missing, "it doesn't differ any more"
    others = {
        (parameter, where): (said[parameter], read["python"][parameter])
        for where, said in read.items()
        for parameter in said.keys() & read["python"].keys()
        if parameter not in {"consistency", "board", "member", "season"}
        and _plain(said[parameter]) != _plain(read["python"][parameter])
    }
    assert others.keys() == question.defaults.keys(), others


def _plain(default: Any) -> Any:
    """A default, or what stands for none; of HTTP only those of numbers are known."""
    if isinstance(default, StrEnum):
        return _plain(default.value)
    nothing = (None, (), "", False, 0, inspect.Parameter.empty, "competition")
    return None if default in nothing else default

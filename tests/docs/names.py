"""The names that the code has: codes of errors and refusals, variables, routes, keys."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from starlette.routing import Route

from tests.docs.pages import ROOT
from truerank.intake.lines import COLUMNS
from truerank.projection.keys import GroupKeys, boards_key
from truerank.schema import sql
from truerank.serve.app import create_app
from truerank.settings import Settings

_SOURCE = ROOT / "src" / "truerank"
_CODE = re.compile(r"[a-z]+(_[a-z]+)*")
# Where codes stand in SQL: as an answer, in a list of faults, as the detail of an error.
_REFUSALS = (
    re.compile(
        r"(?:THEN|ELSE|WHEN|'refused',|code :=|outcome :=|DETAIL =)\s*'([a-z]+(?:_[a-z]+)+)'"
    ),
    re.compile(r"'([a-z]+(?:_[a-z]+)+)',\s*'(?:table|zone|value|ties)'"),
    re.compile(r"RETURN '([a-z]+_unknown)'"),
)
_COMPOSED = {"table_unknown", "update_refused", "delete_refused"}  # put together from words
_RESULTS = {"triggers_left"}  # of a function, not of an event
_VARIABLE = re.compile(r"TRUERANK_[A-Z_]*[A-Z]")
_SCRIPTED = re.compile(r"redis\.call\('([A-Z]+)'")
_SENT = re.compile(r"[(\[]\"([A-Z]{3,})\"(?=[,)])")
_CALLS = {"HttpRefusal": 1, "Malformed": 1, "complain": 0}  # which argument is the code


def error_codes() -> set[str]:
    """Every code that an error may have, in Python, over HTTP or in the command line."""
    found = {f"{column}_invalid" for column in (*COLUMNS, "ties")}  # of a line of a file
    for path in sorted(_SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found.update(code for code in _codes(node, path) if _CODE.fullmatch(code))
    return found - {"error"}


def refusal_codes() -> set[str]:
    """Every code with which SQL refuses an event or a correction."""
    found = {
        code
        for file in sql.functions()
        for pattern in _REFUSALS
        for code in pattern.findall(file.text)
        if not code.startswith("truerank_")  # a name of a table
    }
    return found - _RESULTS | _COMPOSED


def variables() -> set[str]:
    """Every variable of the environment that the package reads."""
    read = {
        name
        for path in _SOURCE.rglob("*.py")
        for name in _VARIABLE.findall(path.read_text(encoding="utf-8"))
    }
    return read | {f"TRUERANK_{name.upper()}" for name in Settings.__struct_fields__}


def routes() -> dict[str, set[str]]:
    """What is served: method and path, with the names of the query parameters."""
    app = create_app(Settings(database_url="postgresql:///", redis_url="redis://"))
    found = {}
    for route in app.routes:
        assert isinstance(route, Route), "there is nothing but routes"
        for method in (route.methods or set()) - {"HEAD"}:
            told = (route.endpoint.__doc__ or "").partition("?")[2].partition("`")[0]
            found[f"{method} {route.path}"] = set(re.findall(r"(\w+)=", told))
    return found


def redis_keys() -> set[str]:
    """Every key, with PREFIX, GROUP, GENERATION and RANKING in place of what they hold."""
    group: Any = GroupKeys("PREFIX", "GROUP")  # type: ignore[arg-type]  # a pattern, not a group
    copy = group.generation("GENERATION")
    return {
        boards_key("PREFIX"),
        group.pointer,
        group.hints,
        copy.meta,
        copy.counts,
        copy.members,
        copy.places("RANKING"),
        copy.shown("RANKING"),
        copy.prefixes("RANKING"),
    }


def redis_commands() -> set[str]:
    """Every command that is sent to Redis, by scripts, workers and readers."""
    found = {"PUBLISH"}  # comes to its script as a parameter
    senders = [
        (_SENT, f"{place}.py") for place in ("projection/*", "serve/*", "repair/athand", "client")
    ]
    for pattern, glob in ((_SCRIPTED, "projection/lua/*.lua"), *senders):
        for path in _SOURCE.glob(glob):
            found.update(pattern.findall(path.read_text(encoding="utf-8")))
    return found - {"OOM", "WRONGTYPE"}  # names of errors, that are looked for


def _codes(node: ast.AST, path: Path) -> Iterator[str]:
    match node:
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=keywords):
            if name in _CALLS and len(arguments) > _CALLS[name]:
                yield from _texts(arguments[_CALLS[name]])
            for keyword in keywords:
                if keyword.arg == "code" and isinstance(keyword.value, ast.Constant):
                    yield str(keyword.value.value)
        case ast.Assign(targets=[ast.Name(id="code")], value=value):
            yield from _texts(value)
        case ast.Tuple(elts=[ast.Constant(value=str(code)), ast.Constant() | ast.JoinedStr()]):
            if path.name == "replies.py":
                yield code
        case _:
            pass


def _texts(value: ast.expr) -> Iterator[str]:
    match value:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=body, orelse=orelse):
            yield from _texts(body)
            yield from _texts(orelse)
        case _:
            pass

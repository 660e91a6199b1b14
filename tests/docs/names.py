"""The names that the code has: codes of errors and refusals, variables, routes, keys."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from starlette.routing import Route

from tests.docs.pages import ROOT
from truerank.intake.lines import COLUMNS
from truerank.projection.keys import GroupKeys
from truerank.schema import sql
from truerank.serve.app import create_app
from truerank.settings import Settings

_SOURCE = ROOT / "src" / "truerank"
_CODE = re.compile(r"[a-z]+(_[a-z]+)*")
# What a function answers, and what a row of a receipt is refused with.
_REFUSAL = re.compile(r"(?:THEN|ELSE|'refused',)\s*'([a-z]+(?:_[a-z]+)+)'")
_VARIABLE = re.compile(r"TRUERANK_[A-Z_]*[A-Z]")
_CALLS = {"HttpRefusal": 1, "Malformed": 1, "complain": 0}  # which argument is the code


def error_codes() -> set[str]:
    """Every code that an error may have, in Python, over HTTP or in the command line."""
    found = {f"{column}_invalid" for column in COLUMNS}  # of a line of a file
    for path in sorted(_SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found.update(code for code in _codes(node, path) if _CODE.fullmatch(code))
    return found - {"error"}


def refusal_codes() -> set[str]:
    """Every code with which SQL refuses an event or a correction."""
    found = {code for file in sql.functions() for code in _REFUSAL.findall(file.text)}
    return {code for code in found if not code.startswith("truerank_")}  # names of tables


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
        group.pointer,
        group.hints,
        copy.meta,
        copy.counts,
        copy.places("RANKING"),
        copy.shown("RANKING"),
    }


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

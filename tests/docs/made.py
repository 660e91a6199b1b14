"""The parts of the reference that are made from the code, so that they say what it says."""

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from importlib import import_module
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
from cyclopts import App
from cyclopts.argument import Argument
from prometheus_client import Metric

import truerank
from truerank import model
from truerank.cli import app as cli
from truerank.doctor.examine import CHECKS
from truerank.doctor.findings import name_of
from truerank.errors import TruerankError
from truerank.operations import Operations
from truerank.read.status import Status
from truerank.read.verdict import Problem, Verdict
from truerank.schema import sql
from truerank.serve.errors import status_of
from truerank.serve.metrics import DURATIONS, NUMBERS, Page
from truerank.settings import Settings
from truerank.telemetry.metrics import Metrics

PUBLIC = {"functions", "methods", "classes"}  # of the package
OPERATORS = (
    "grant_caller",
    "void_events",
    "correct_events",
    "events_where",
    "update_board",
    "rename_board",
    "delete_board",
    "purge_boards",
    "seal_season",
    "pass_barrier",
    "writers_under_way",
    "settle_season",
    "label_before",
    "reopen_season",
    "revise_season",
    "settlement_changes",
    "settlement_excluded_members",
    "settlement_digest",
    "settlement_digest_from_events",
    "settlement_differences",
    "export_settled",
    "due_closes",
    "make_award_rule",
    "drop_award_rule",
    "award_rules",
    "awards",
    "acknowledge_awards",
    "set_league",
    "drop_league",
    "leagues",
    "assign_league_key",
    "divide_leagues",
    "divide_season",
    "league_tiers",
    "cohort_differences",
    "add_webhook",
    "change_webhook",
    "rotate_webhook",
    "remove_webhook",
    "webhooks",
    "deliveries",
    "retry_deliveries",
    "test_webhook",
    "add_period",
    "fill_slice",
    "seasons_filling",
    "filling_waits_for",
    "count_filling",
    "status",
    "attach_table",
    "backfill_attached",
    "restart_backfill",
    "attachments",
    "detach_table",
    "parked_rows",
    "retry_parked",
    "dismiss_parked",
    "parked_standings",
    "retry_standings",
)
_UNPLANNED = 500
_SUFFIXES = {"counter": "_total", "info": "_info"}
_RECEIPT = re.compile(r"CREATE TYPE truerank\.receipt AS \((.*?)\);", re.DOTALL)
_DEFAULT = re.compile(r"= (_?[A-Z][A-Z_]+)\b")
_SIGNATURE = re.compile(r"^def \w+\((.*?)\) -> (.*?):\n", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^ {4}(\w+): (.+?)(?: = (.+?))?(?:  # (.+))?$", re.MULTILINE)
_STEPS = re.compile(r"Steps\[(.*)\]")
_ARGUMENT = re.compile(r"^ {4}(\w+): (.*?)(?=^ {4}\w|\Z)", re.MULTILINE | re.DOTALL)
_PREFIX = "of all keys and channels in Redis"  # says itself in the code


def make(name: str) -> str:
    """One part, by the name in its comment: a maker, and what it is to make."""
    maker, *words = name.split()
    makers: dict[str, Callable[..., str]] = {
        "checks": _checks,
        "classes": _classes,
        "commands": _commands_of_all,
        "errors": _errors,
        "functions": _functions,
        "methods": _methods,
        "metrics": _metrics,
        "options": _options_of_all,
        "receipt": _receipt,
        "settings": _settings,
        "sql": _sql,
    }
    return makers[maker](*words)


def commands() -> dict[str, App]:
    """Every command of the command line by its words; groups of commands are left out."""
    return dict(_commands(_command_line(), ""))


def options(app: App) -> Iterator[Argument]:
    """The arguments and options of a command that people may write."""
    return (argument for argument in app.assemble_argument_collection() if argument.show)


def outside_functions() -> set[str]:
    """The SQL functions that people may call: callers, and those who run an installation."""
    (file,) = (file for file in sql.functions() if file.name == "grant_caller")
    granted = file.text.partition("p.proname IN (")[2].partition(")")[0]
    return {*re.findall(r"'(\w+)'", granted), *OPERATORS}


def table(headers: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table without the columns that say nothing; cells hold no line breaks."""
    told = [at for at in range(len(headers)) if any(row[at] for row in rows)]
    lines = [headers, tuple("---" for _ in headers), *rows]
    return "".join(
        "| " + " | ".join(line[at].replace("|", r"\|") for at in told) + " |\n" for line in lines
    )


def _command_line() -> App:
    return cli._app()  # noqa: SLF001 - the table of commands has no other way in


def _commands(app: App, before: str) -> Iterator[tuple[str, App]]:
    for name in app:
        words = f"{before} {name}".strip()
        if name.startswith("-"):
            continue
        if app[name].default_command is not None:
            yield words, app[name]
        else:
            yield from _commands(app[name], words)


def _commands_of_all() -> str:
    return "\n".join(f"## {words}\n\n{_command(words, app)}" for words, app in commands().items())


def _command(words: str, app: App) -> str:
    about, _, listed = _docstring(app.default_command).partition("\n\nArgs:\n")
    told = _told(listed)
    places, rows = [], []
    for argument in options(app):
        name = argument.names[0]
        if not name.startswith("-"):
            places.append(f"{name}..." if "tuple" in str(argument.hint) else name)
        about_it = argument.parameter.help or told[argument.field_info.name]
        rows.append((_names(argument), about_it + _default(argument)))
    usage = " ".join(("truerank", words, *places, "[OPTIONS]"))
    return f"```text\n{usage}\n```\n\n{about}\n\n{table(('', 'meaning'), rows)}"


def _options_of_all() -> str:
    launch = _command_line().meta
    told = _told(_docstring(launch.default_command).partition("\n\nArgs:\n")[2])
    rows = [(_names(argument), told[argument.field_info.name]) for argument in options(launch)]
    return table(("", "meaning"), rows)


def _names(argument: Argument) -> str:
    words = argument.get_choices() or ()
    names = ", ".join(f"`{name}`" for name in argument.names)
    return names + (": " + ", ".join(f"`{word}`" for word in words) if words else "")


def _default(argument: Argument) -> str:
    default = argument.field_info.default
    if default is None or default is False or default == () or argument.required:
        return ""
    return f" Default: `{default}`."


def _told(listed: str) -> dict[str, str]:
    """The Args of a docstring: each name with its text on one line."""
    return {found[1]: " ".join(found[2].split()) for found in _ARGUMENT.finditer(listed)}


def _settings() -> str:
    defaults, comments = Settings(), _comments(Settings) | {"prefix": _PREFIX}
    rows = []
    for field in msgspec.structs.fields(Settings):
        default = getattr(defaults, field.name)
        rows.append(
            (
                f"`TRUERANK_{field.name.upper()}`",
                "" if default is None or default == "" else f"`{_written(default)}`",
                takes(field.type),
                comments[field.name],
            )
        )
    return table(("variable", "default", "takes", "meaning"), rows)


def _written(value: object) -> str:
    return str(int(value) if isinstance(value, bool) else value)


def takes(annotation: Any) -> str:
    """What the text of a setting of this type may be, in words."""
    given = [kind for kind in get_args(annotation) if kind is not type(None)]
    if isinstance(annotation, UnionType) or get_origin(annotation) is Union:
        (annotation,) = given  # none where the variable isn't set
    if annotation is bool:
        return "1 or true, 0 or false"
    for limits in getattr(annotation, "__metadata__", ()):
        if limits.description is not None:
            return str(limits.description)
        if limits.pattern is not None:
            return "1 to 64 characters, no braces, no spaces"
        return f"{limits.ge:,} " + ("or more" if limits.le is None else f"to {limits.le:,}")
    assert annotation is str, f"nothing is said of settings that are {annotation}"
    return "a URL"


def _errors(module: str) -> str:
    rows = []
    for name, kind in vars(import_module(module)).items():
        if inspect.isclass(kind) and kind.__module__ == module and kind is not TruerankError:
            if not issubclass(kind, TruerankError) or "code" not in vars(kind):
                continue
            status = status_of(kind(""))
            shown = "" if status == _UNPLANNED else str(status)
            rows.append((f"`{kind.code}`", f"`{name}`", shown, " ".join(_docstring(kind).split())))
    return table(("code", "Python", "HTTP", "meaning, and what to do"), rows)


def _sql(*names: str) -> str:
    files = {file.name: file for file in sql.functions()}
    return "\n".join(_sql_function(files[name]) for name in names)


def _sql_function(file: sql.SqlFile) -> str:
    header, _, code = file.text.partition("CREATE OR REPLACE FUNCTION ")
    lines = [line.removeprefix("--").removeprefix(" ") for line in header.splitlines()]
    lines[0] = lines[0].partition(": ")[2]
    declared = code.partition("\nLANGUAGE")[0]
    about = "\n".join(lines).rstrip()
    return f"### {file.name}\n\n```text\n{declared}\n```\n\n```text\n{about}\n```\n"


def _metrics() -> str:
    rows = [
        (
            f"`{metric.name}{_SUFFIXES.get(metric.type, '')}`",
            metric.type,
            ", ".join(f"`{label}`" for label in labels),
            metric.documentation,
        )
        for metric, labels in metrics()
    ]
    return table(("name", "type", "labels", "meaning"), rows)


def metrics() -> Iterator[tuple[Metric, list[str]]]:
    """Every metric of our own, and its labels, from a page of a process to which all happened."""
    numbers = Metrics()
    numbers.redis_answered("apply", 0.001)
    numbers.script_replied("apply", "applied")
    numbers.ring_turned("turned")
    numbers.failed("worker", "database_unavailable")
    numbers.read_answered("projection", "any")
    numbers.live_checked("equal")
    numbers.command_answered("applied", None)
    numbers.request_answered("GET /", 200, 0.001)
    told: dict[str, Any] = {attribute: 0 for _, _, attribute in (*NUMBERS, *DURATIONS)}
    everything = Status(
        **told,
        copy_ages_ms={0: 0},
        segment_bytes=(0,),
        problems=(
            Problem(code="behind", verdict=Verdict.LAGGING, message="behind", advice="wait"),
        ),
    )
    for metric in Page(numbers, everything).collect():
        if metric.name.startswith("truerank_"):
            labels = {label for sample in metric.samples for label in sample.labels}
            yield metric, sorted(labels - {"le"})


def _checks() -> str:
    rows = [(name_of(check), _docstring(check).splitlines()[0]) for check in CHECKS]
    return table(("check", "what it looks at"), rows)


def _receipt() -> str:
    declared = _RECEIPT.search(sql.migrations()[0].text)
    assert declared is not None, "the first migration makes the type"
    return f"```text\ntruerank.receipt ({declared[1]})\n```\n"


def _methods() -> str:
    public = {
        name: value
        for kind in Operations.__mro__[1:-1]
        for name, value in vars(kind).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }
    return "\n".join(_callable(name, value) for name, value in public.items())


def _functions(module: str = "truerank") -> str:
    of = import_module(module)
    public = {name: getattr(of, name) for name in of.__all__}
    return "\n".join(
        _callable(f"{module}.{name}", value)
        for name, value in public.items()
        if inspect.isfunction(value)
    )


def _callable(name: str, value: Callable[..., Any]) -> str:
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(value)))
    found = _SIGNATURE.search(source)
    assert found is not None, "the source of a function has its signature"
    parameters = re.sub(r"\bself(,\s+)?", "", found[1])
    named = inspect.unwrap(value).__globals__
    parameters = _DEFAULT.sub(lambda name: f"= {_spelt(named[name[1]], name[1])}", parameters)
    returned = found[2]
    steps = _STEPS.fullmatch(returned)
    shown = f"{name}({parameters}) -> {steps[1] if steps else returned}"
    return f"### {name}\n\n```text\n{shown}\n```\n\n```text\n{_docstring(value)}\n```\n"


def _spelt(default: object, name: str) -> str:
    """A number by its digits: the name of a constant tells readers nothing."""
    return repr(default) if isinstance(default, int | float) else name


def _classes() -> str:
    public = (getattr(truerank, name) for name in truerank.__all__)
    return "\n".join(
        _class(value)
        for value in public
        if inspect.isclass(value) and value.__module__.startswith(model.__name__)
    )


def _class(value: type) -> str:
    title = f"### {value.__name__}\n\n{_docstring(value)}"
    if issubclass(value, StrEnum):
        return f"{title} Values: " + ", ".join(f"`{word}`" for word in value) + ".\n"
    rows = [
        (f"`{name}`", f"`{kind}`", f"`{default}`" if default else "", told)
        for name, kind, default, told in _FIELD.findall(inspect.getsource(value))
    ]
    return f"{title}\n\n" + table(("field", "type", "default", "meaning"), rows)


def _comments(value: type) -> dict[str, str]:
    """What stands behind the fields in the source of a class."""
    source = inspect.getsource(value)
    return dict(re.findall(r"^ +(\w+): .*?  # (.+)$", source, re.MULTILINE))


def _docstring(value: object) -> str:
    return inspect.getdoc(value) or ""

"""The log: JSON or text on standard error, so that standard output holds answers alone.

One line for each thing that happened, none for each event. Ids and messages are anybody's text:
what could end a line or move a terminal's cursor is written as an escape, and addresses are shown
without their passwords.
"""

import logging
import sys
from collections.abc import Collection, Mapping, MutableMapping
from typing import Any

import structlog

from truerank.telemetry.safe import escaped, without_passwords

_TRACEBACK = "exception"


def configure_logging(
    *, level: str = "info", json: bool = False, raised: Collection[str] = ()
) -> None:
    """Send log entries of this level and above to standard error, one line each.

    Args:
        level: debug, info, warning or error.
        json: one JSON object a line; without it text, in which a traceback takes several lines.
        raised: libraries whose warnings the process raises as errors of its own; what they log
            below an error is left out.
    """
    renderer = (
        structlog.processors.JSONRenderer()
        if json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            make_safe,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    # What libraries have to say, such as psycopg's pool, is written in the same form.
    root = logging.getLogger()
    passing = _Passing()
    passing.addFilter(lambda said: said.levelno >= logging.ERROR or said.name not in raised)
    root.handlers = [passing]
    root.setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[level.upper()]))


class _Passing(logging.Handler):
    """Passes on what libraries log by the standard library."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            structlog.get_logger(record.name).log(
                record.levelno,
                "library_said",
                library=record.name,
                message=record.getMessage(),
                exc_info=record.exc_info,
            )
        except Exception:  # noqa: BLE001 - a log never breaks what it tells of
            self.handleError(record)


def make_safe(_logger: object, _method: str, entry: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Escape what could forge a line, and hide passwords, in every value of an entry."""
    return {
        escaped(name): _traceback(value) if name == _TRACEBACK else _safe(value)
        for name, value in entry.items()
    }


def _traceback(text: str) -> str:
    # Indented, so that no line of a message in it looks like the beginning of an entry.
    lines = escaped(without_passwords(text), lines=True).splitlines()
    return "\n".join(f"    {line}" for line in lines)


def _safe(value: object) -> object:
    match value:
        case str():
            return escaped(without_passwords(value))
        case bytes():
            return escaped(without_passwords(repr(value)))
        case dict():
            return {_safe(name): _safe(each) for name, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_safe(each) for each in value]
        case bool() | int() | float() | None:
            return value
        case _:
            return escaped(without_passwords(str(value)))

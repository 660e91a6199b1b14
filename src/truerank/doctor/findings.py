"""What an examination finds, and what there is to examine."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import psycopg
import redis

from truerank.read.status import Status
from truerank.settings import Settings

Connection = psycopg.Connection[tuple[Any, ...]]


class Severity(StrEnum):
    """How bad a finding is, from good to bad."""

    OK = "ok"
    WARNING = "warning"  # works, and may not when it matters
    ERROR = "error"  # does not work, or may lose what it should keep


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check found, and what to do about it; nothing where it is well."""

    check: str
    severity: Severity
    message: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A PostgreSQL and a Redis that answer, and what was asked of both.

    `conn` is in autocommit, so that a check that fails leaves nothing behind.
    """

    settings: Settings
    conn: Connection
    redis: redis.Redis
    info: Mapping[str, str]
    status: Status


Check = Callable[[Deployment], Iterator[Finding]]


def name_of(check: Callable[..., object]) -> str:
    """The name of a check: that of its function, in words."""
    return check.__name__.replace("_", " ")


def counted(number: int | None, one: str, many: str) -> str:
    """A number with its noun and verb: `1 worker holds`, `2 workers hold`."""
    return f"{number} {one if number == 1 else many}"


def ok(check: Callable[..., object], message: str) -> Finding:
    """All is well."""
    return Finding(check=name_of(check), severity=Severity.OK, message=message)


def warning(check: Callable[..., object], message: str, advice: str) -> Finding:
    """It works, and may not when it matters."""
    return Finding(check=name_of(check), severity=Severity.WARNING, message=message, advice=advice)


def error(check: Callable[..., object], message: str, advice: str) -> Finding:
    """It does not work, or may lose what it should keep."""
    return Finding(check=name_of(check), severity=Severity.ERROR, message=message, advice=advice)

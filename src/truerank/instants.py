"""Read instants from text strictly: RFC 3339 with an offset, nothing else."""

import re
from datetime import datetime

from truerank.errors import InvalidInput

_RFC3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]((?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?"
    r"([Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?"
)
_EXAMPLE = "2026-08-29T12:00:00Z"
_CHARS_SHOWN_MAX = 40


def read_instant(text: str, field: str) -> datetime:
    """An instant such as `2026-08-29T12:00:00Z` or `2026-08-29T14:00:00.250+02:00`.

    Up to nine decimals of a second are read; what is finer than a microsecond is cut off, so that
    no instant moves into the next season.

    Raises:
        InvalidInput: another spelling, no offset, or a day or second that doesn't exist: a leap
            second has no place on this time scale.
    """
    found = _RFC3339.fullmatch(text)
    shown = repr(text[:_CHARS_SHOWN_MAX])
    if found is None:
        raise InvalidInput(f"{field} {shown} is no time such as {_EXAMPLE}", field=field)
    day, clock, fraction, offset = found.groups()
    if offset is None:
        raise InvalidInput(f"{field} {shown} has no offset, unlike {_EXAMPLE}", field=field)
    micros = (fraction or "").ljust(6, "0")[:6]
    try:
        return datetime.fromisoformat(f"{day}T{clock}.{micros}{offset.upper()}")
    except ValueError as exc:
        raise InvalidInput(f"{field} {shown} does not exist: {exc}", field=field) from exc

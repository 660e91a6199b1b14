"""Read numbers from text, exactly."""

import re

from truerank.errors import InvalidInput

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_CHARS_MAX = 40  # far beyond 64 bits; whether it is in its range the board judges


def read_value(text: str, field: str) -> int | str:
    """Read one value as `ScoreEvent` takes it: an int, or the text of an exact decimal.

    Args:
        text: digits with or without a sign and a decimal point; no spaces, no exponent.
        field: named in the error.

    Raises:
        InvalidInput: the text is no such number.
    """
    match = _NUMBER.fullmatch(text)
    if match is None or len(text) > _CHARS_MAX:
        shown = repr(text if len(text) <= _CHARS_MAX else f"{text[:_CHARS_MAX]}...")
        raise InvalidInput(f"{field} {shown} is not a number", field=field)
    return text if match[1] else int(text)

"""JSON read strictly: what a reader could take for one thing or another is refused."""

import json
from collections.abc import Callable
from typing import Any


def read_json(
    text: str,
    *,
    parse_int: Callable[[str], Any] = int,
    parse_float: Callable[[str], Any] = float,
) -> Any:
    """One JSON value.

    Args:
        text: of the value; white space around it is passed over.
        parse_int: makes the value of a whole number as it is spelt.
        parse_float: of any other number.

    Raises:
        ValueError: it is malformed: also a name given twice in one object, NaN or Infinity, and
            what is nested too deeply.
    """
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=parse_int,
            parse_float=parse_float,
            parse_constant=_constant,
        )
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name[:100]!r} is given twice in one object")
        found[name] = value
    return found


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")

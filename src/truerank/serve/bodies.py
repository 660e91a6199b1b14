"""Read bodies strictly: what isn't exactly one meaning is refused, and nothing is applied.

JSON is parsed by the standard library, whose hooks see doubled names and spellings of numbers;
its shape is checked by msgspec.
"""

import math
import re
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from truerank import strictly
from truerank.command.board import choice
from truerank.command.submit import check_text
from truerank.errors import InvalidInput
from truerank.instants import read_instant
from truerank.model import Order, ScoreEvent, TieBreak
from truerank.serve.errors import HttpRefusal

BODY_BYTES_MAX = 1_048_576
EVENTS_MAX = 1000
_DISCARDED_BYTES_MAX = 16 * BODY_BYTES_MAX
_METADATA_DEPTH_MAX = 32
_DIGITS = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,20})?")
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_WHERE = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<path>.*)`)?", re.DOTALL)
_NAMED = re.compile(r"(?:missing required|contains unknown) field `(?P<name>.*)`")

T = TypeVar("T")


class EventIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One event as JSON. `value` is a whole number, or text with digits: "12.345"."""

    event_id: str
    member: str
    value: Any
    occurred_at: str | None = None
    ties: tuple[int, ...] = ()
    metadata: Any = None


class OneIn(EventIn, frozen=True, forbid_unknown_fields=True):
    """One event as a whole body."""

    expected_season: str | None = None
    expected_operator: str | None = None


class ManyIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Several events of one board."""

    events: list[EventIn]
    expected_season: str | None = None
    expected_operator: str | None = None


class TieBreakIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tie-break column of a new board."""

    name: str
    order: str = "desc"
    min: int | str = -(2**63)
    max: int | str = 2**63 - 1


class BoardIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new board. Limits are scaled by `decimals`, as numbers or text with digits."""

    board: str
    operator: str = "sum"
    order: str = "desc"
    seasons: tuple[str, ...] = ("all", "week", "month")
    zone: str = "UTC"
    decimals: int = 0
    tie_breaks: tuple[TieBreakIn, ...] = ()
    value_min: int | str = -(2**63)
    value_max: int | str = 2**63 - 1
    total_min: int | str = -(2**63)
    total_max: int | str = 2**63 - 1
    dense: bool = False


async def read_json(request: Request) -> Any:
    """The body of a request as plain values.

    Raises:
        HttpRefusal: 415 not JSON, 413 larger than `BODY_BYTES_MAX`, 400 malformed: not UTF-8, a
            name given twice in one object, NaN or Infinity, nested too deeply.
    """
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json" or "content-encoding" in request.headers:
        # A form of another site can't send this type, so no page can post on a visitor's behalf.
        raise HttpRefusal(415, "media_type_unsupported", "the body is application/json, plain")
    body, arrived = bytearray(), 0
    async for part in request.stream():
        arrived += len(part)
        # A client that is cut off while it sends doesn't read why; so some more is read, and
        # thrown away.
        if arrived > _DISCARDED_BYTES_MAX:
            break
        if arrived <= BODY_BYTES_MAX:
            body += part
    if arrived > BODY_BYTES_MAX:
        raise HttpRefusal(
            413,
            "body_too_large",
            f"a body has at most {BODY_BYTES_MAX} bytes",
            headers={"connection": "close"},
        )
    return parse_json(bytes(body))


def parse_json(body: bytes) -> Any:
    """JSON as plain values, strictly.

    Raises:
        HttpRefusal: 400, malformed; the message says how.
    """
    try:
        return strictly.read_json(body.decode(), parse_float=_float)
    except ValueError as exc:
        raise HttpRefusal(400, "json_malformed", f"the body is no JSON we take: {exc}") from exc


def read_events(value: Any) -> tuple[list[ScoreEvent], str | None, str | None, bool]:
    """The events of a body, the season and operator expected, and whether it was a list.

    Raises:
        InvalidInput: `field` names what is wrong, `events[3].member` in a list. One malformed
            event refuses the whole body.
    """
    if not isinstance(value, dict):
        raise InvalidInput('the body is one event, or {"events": [...]}')
    if "events" not in value:
        one = convert(value, OneIn)
        return [_event(one)], _expected(one.expected_season), one.expected_operator, False
    many = convert(value, ManyIn)
    if not 1 <= len(many.events) <= EVENTS_MAX:
        raise InvalidInput(f"events are 1 to {EVENTS_MAX} in one body", field="events")
    events = []
    for at, event in enumerate(many.events):
        try:
            events.append(_event(event))
        except InvalidInput as exc:
            raise InvalidInput(exc.message, field=f"events[{at}].{exc.field}") from exc
    return events, _expected(many.expected_season), many.expected_operator, True


def convert(value: Any, shape: type[T]) -> T:
    """Plain values as a struct, strictly.

    Raises:
        InvalidInput: `field` names what is missing, unknown or of another type.
    """
    try:
        return msgspec.convert(value, shape, strict=True)
    except UnicodeEncodeError as exc:
        raise InvalidInput("a name in the body contains half a surrogate pair") from exc
    except msgspec.ValidationError as exc:
        where = _WHERE.fullmatch(str(exc))
        assert where is not None, "the pattern takes any text"
        path, named = where["path"] or "", _NAMED.search(where["what"])
        field = ".".join(part for part in (path, named and named["name"]) if part)
        message = f"{field or 'the body'}: {where['what'].replace('`', '')}"
        raise InvalidInput(message, field=field or None) from exc


def tie_break(given: TieBreakIn, at: int) -> TieBreak:
    """A tie-break column; its order is checked where boards are made."""
    low, high = (
        whole(number, f"tie_breaks[{at}].{name}")
        for name, number in (("min", given.min), ("max", given.max))
    )
    return TieBreak(
        name=given.name,
        order=choice(Order, given.order, f"tie_breaks[{at}].order"),
        min=low,
        max=high,
    )


def whole(number: int | str, field: str) -> int:
    """A whole number that may come as text with digits, because it may be beyond 53 bits.

    Raises:
        InvalidInput: the text holds something else.
    """
    if isinstance(number, str):
        if _WHOLE.fullmatch(number) is None:
            raise InvalidInput(f"{field} is a whole number of up to 19 digits", field=field)
        number = int(number)
    return number


def _event(given: EventIn) -> ScoreEvent:
    check_text(given.event_id, "event_id")
    check_text(given.member, "member")
    _check_metadata(given.metadata)
    return ScoreEvent(
        event_id=given.event_id,
        member=given.member,
        value=score_value(given.value),
        occurred_at=None
        if given.occurred_at is None
        else read_instant(given.occurred_at, "occurred_at"),
        ties=given.ties,
        metadata=given.metadata,
    )


def score_value(value: Any) -> int | str:
    """The value of an event: a whole number, or text with digits.

    Raises:
        InvalidInput: it is something else.
    """
    if type(value) is int or (isinstance(value, str) and _DIGITS.fullmatch(value)):
        return value
    # 46.0 too: readers of JSON differ in what a fraction is rounded to, digits as text don't.
    raise InvalidInput(
        'value is a whole number, or text with digits such as "12.345"', field="value"
    )


def _expected(season: str | None) -> str | None:
    if season is not None:
        check_text(season, "expected_season")
    return season


def _check_metadata(metadata: Any) -> None:
    rest = [(metadata, 0)]
    while rest:
        value, depth = rest.pop()
        if depth > _METADATA_DEPTH_MAX:
            raise InvalidInput("metadata is nested too deeply", field="metadata")
        if isinstance(value, str):
            check_text(value, "metadata")
        elif isinstance(value, list):
            rest += [(item, depth + 1) for item in value]
        elif isinstance(value, dict):
            rest += [(item, depth + 1) for pair in value.items() for item in pair]


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is out of range")
    return number

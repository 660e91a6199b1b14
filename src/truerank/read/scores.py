"""Scores: as people write them, as they are stored, and as the bytes that order a ranking."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from struct import unpack

from truerank.command.submit import to_number
from truerank.errors import InvalidInput
from truerank.model import Board, Order

SIGN = 1 << 63
_NUMBER_BYTES = 8
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The bits in which eight bytes of a sort key differ from the number they stand for.
_FLIPPED = {Order.ASC: b"\x80" + bytes(7), Order.DESC: b"\x7f" + b"\xff" * 7}


def row_bytes(board: Board) -> int:
    """Leading bytes of a sort key in which equals agree: the score and every tie-break."""
    return _NUMBER_BYTES * (1 + len(board.spec.tie_breaks))


def key_bytes(board: Board) -> int:
    """Bytes of a sort key: score, tie-breaks, instant, position."""
    return row_bytes(board) + 2 * _NUMBER_BYTES


def number_at(sort_key: bytes, at: int) -> int:
    """The signed number in eight bytes of a sort key that don't depend on a direction."""
    return int.from_bytes(sort_key[at : at + _NUMBER_BYTES]) - SIGN


def reached_at(sort_key: bytes, at: int) -> datetime:
    """When a score was reached: it follows the `row_bytes` of a sort key."""
    return _EPOCH + timedelta(microseconds=number_at(sort_key, at))


def score_text(board: Board, sort_key: bytes) -> str:
    """The score at the front of a sort key, exact, in the board's unit: `12.345`."""
    number = number_at(sort_key, 0)
    return exact_text(board, ~number if board.spec.order is Order.DESC else number)


def score_texts(board: Board, heads: Sequence[bytes]) -> list[str]:
    """As `score_text`, of the first bytes of many sort keys, equally many of each."""
    if len(heads[0]) > _NUMBER_BYTES:
        heads = [head[:_NUMBER_BYTES] for head in heads]
    # All at once, bit by bit: one by one it takes half as long again.
    joined, flipped = b"".join(heads), _FLIPPED[board.spec.order] * len(heads)
    signed = (int.from_bytes(joined) ^ int.from_bytes(flipped)).to_bytes(len(joined))
    numbers = unpack(f">{len(heads)}q", signed)
    if board.spec.decimals == 0:
        return [str(number) for number in numbers]
    return [exact_text(board, number) for number in numbers]


def exact_text(board: Board, number: int) -> str:
    """A stored integer as text in the board's unit."""
    decimals = board.spec.decimals
    if decimals == 0:
        return str(number)
    digits = f"{abs(number):0{decimals + 1}}"
    sign = "-" if number < 0 else ""
    return f"{sign}{digits[:-decimals]}.{digits[-decimals:]}"


def scaled(board: Board, score: object, field: str) -> int:
    """A score in the board's unit as the integer that is stored.

    Raises:
        InvalidInput: it isn't a number, has more places than the board, or needs over 64 bits.
    """
    try:
        number = to_number(score)
    except InvalidInput as exc:
        raise InvalidInput(exc.message, field=field) from exc
    whole = number.scaleb(board.spec.decimals)
    if whole != whole.to_integral_value():
        raise InvalidInput(f"{field} has more than {board.spec.decimals} decimals", field=field)
    if not -SIGN <= whole < SIGN:
        raise InvalidInput(f"{field} is beyond what a board can hold", field=field)
    return int(whole)


def key_after(prefix: bytes) -> bytes | None:
    """The least bytes that come after all that begin with these; None where nothing does."""
    number = int.from_bytes(prefix) + 1
    return number.to_bytes(len(prefix)) if number < 1 << 8 * len(prefix) else None


def number_bytes(order: Order, number: int) -> bytes:
    """Eight bytes whose order is that of the numbers, or the reverse."""
    return ((~number if order is Order.DESC else number) + SIGN).to_bytes(_NUMBER_BYTES)

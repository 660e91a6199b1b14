"""How much of a list is asked for and from where, checked the same way everywhere."""

from truerank.errors import InvalidInput

LIMIT_MAX = 1000
LATEST = 100  # rows of what happened, latest first, where nobody says how many
OFFSET_MAX = 2**31 - 1
NUMBER_MAX = 2**63 - 1


def check_slice(limit: int, offset: int = 0, *, least: int = 0) -> None:
    """Refuse a slice that no list has.

    Args:
        limit: how many rows.
        offset: how many are passed over.
        least: rows that may be asked for.

    Raises:
        InvalidInput: `limit` is outside `least` to 1000, or `offset` outside 0 to 2^31 - 1.
    """
    check_whole("limit", limit, LIMIT_MAX, least=least)
    check_whole("offset", offset, OFFSET_MAX)


def check_whole(name: str, value: int, high: int = NUMBER_MAX, *, least: int = 0) -> None:
    """Refuse anything but a whole number from `least` to `high`.

    Raises:
        InvalidInput: `field` is the name.
    """
    if type(value) is not int or not least <= value <= high:
        raise InvalidInput(f"{name} is a whole number from {least} to {high}", field=name)


def check_many(name: str, number: int) -> None:
    """Refuse more values at once than one answer has rows.

    Args:
        name: what the caller calls them, for the message.
        number: of values.

    Raises:
        InvalidInput: with `name` as its field.
    """
    if number > LIMIT_MAX:
        raise InvalidInput(f"{name}: at most {LIMIT_MAX} at once, not {number}", field=name)

"""Numbers as people read them."""

_STEP = 1024
_UNITS = ("KiB", "MiB", "GiB", "TiB")
_DIGITS_MAX = 10  # from here on without a decimal


def bytes_words(size: int) -> str:
    """A size in the largest unit in which it is at least 1: `512 bytes`, `1.5 MiB`, `144 KiB`."""
    if size < _STEP:
        return f"{size} bytes"
    power = 1
    while power < len(_UNITS) and size >= _STEP ** (power + 1):
        power += 1
    value = size / _STEP**power
    return f"{value:.{1 if value < _DIGITS_MAX else 0}f} {_UNITS[power - 1]}"

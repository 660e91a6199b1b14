"""A bounded number of something at a time; what is too much is refused, and nobody queues."""

from collections.abc import Iterator
from contextlib import contextmanager

from truerank.errors import Busy


class Slots:
    """For one event loop.

    Args:
        at_once_max: no more are taken at a time.
        what: said of them where there are enough.
    """

    def __init__(self, at_once_max: int, what: str) -> None:
        self._left = at_once_max
        self._what = what

    @contextmanager
    def one(self) -> Iterator[None]:
        """One more, for the length of a block.

        Raises:
            Busy: there are enough.
        """
        if self._left == 0:
            raise Busy(f"this process takes no more {self._what} at a time; try again")
        self._left -= 1
        try:
            yield
        finally:
            self._left += 1

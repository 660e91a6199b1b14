"""Lists that say how true they are."""

from collections.abc import Iterable
from typing import TypeVar

from truerank.model.answers import Freshness
from truerank.model.boards import Season

T = TypeVar("T")


class Listed(list[T]):
    """Rows of PostgreSQL, and how true they are.

    Args:
        rows: in order.
        freshness: of all of them.
        season: whose they are; None: of several.
    """

    def __init__(
        self, rows: Iterable[T], freshness: Freshness, season: Season | None = None
    ) -> None:
        super().__init__(rows)
        self.freshness = freshness
        self.season = season

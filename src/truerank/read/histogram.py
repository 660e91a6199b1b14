"""Buckets of scores, from how many are better than each edge."""

from decimal import Decimal
from itertools import pairwise

from truerank.errors import InvalidInput
from truerank.model import Board, Bucket, Histogram, Order, Page


def spread(board: Board, page: Page) -> Histogram:
    """Turn the counts of a page into buckets, in ascending order of scores.

    Raises:
        InvalidInput: the scores counted don't rise.
    """
    edges = [count.score for count in page.counts]
    if any(Decimal(low) >= Decimal(high) for low, high in pairwise(edges)):
        raise InvalidInput("edges rise from each to the next", field="edges")
    descending = board.spec.order is Order.DESC
    from_edge_on = [
        count.better + count.equal if descending else page.total - count.better
        for count in page.counts
    ]
    bounds = [None, *edges, None]
    at_least = [page.total, *from_edge_on, 0]
    return Histogram(
        board=page.board,
        season=page.season,
        cohort=page.cohort,
        state=page.state,
        total=page.total,
        buckets=tuple(
            Bucket(low=low, high=high, members=more - fewer)
            for (low, high), (more, fewer) in zip(pairwise(bounds), pairwise(at_least), strict=True)
        ),
        freshness=page.freshness,
        settled_at=page.settled_at,
        revision=page.revision,
    )

"""Ask both sources the same question, and tell whether they agree.

They are never asked at the same moment, so answers may rightly differ. Two are compared only where
nothing lies between them: the projection stood at one tick before and after PostgreSQL was asked,
PostgreSQL shows all of that tick, and has committed nothing since that touches the ranking. Then a
difference is a fault, whichever side it is on. Everything else is left unjudged.
"""

from enum import StrEnum

import msgspec

from truerank.errors import TruerankError
from truerank.model import Board, Freshness, Page, PageRequest, Season
from truerank.read import database, projected, tokens
from truerank.read.consistency import shows
from truerank.steps import Query, Steps

_TRIES_MAX = 3
_CHANGED = "SELECT truerank.changed_since(%s, %s::pg_snapshot)"


class Outcome(StrEnum):
    """What a comparison found."""

    EQUAL = "equal"
    DIFFERENT = "different"
    UNJUDGED = "unjudged"  # something was on its way, or a source gave no answer


def compare(
    board: Board,
    season: Season,
    request: PageRequest,
    *,
    prefix: str,
    pointers: projected.Pointers,
    epoch: str | None,
) -> Steps[Outcome]:
    """Compare what the projection and PostgreSQL answer; arguments as for `projected.read_page`.

    Source: `schema/functions/changed_since.sql`.
    """
    asked = msgspec.structs.replace(request, token=True)

    def project() -> Steps[Page]:
        return projected.read_page(
            board, season, asked, prefix=prefix, pointers=pointers, epoch=epoch
        )

    for _ in range(_TRIES_MAX):
        try:
            before = yield from project()
            if before.freshness.partial or before.freshness.token is None:
                continue
            source = yield from database.read_page(board, season, asked)
            # Later than the answer of PostgreSQL, so nothing that it shows is missed. And before
            # the projection has passed the tick, so no row has been taken out of the outbox.
            snapshot = before.freshness.token.partition(".")[0]
            ((changed,),) = yield Query(_CHANGED, (season.ranking, snapshot))
            after = yield from project()
        except TruerankError:
            return Outcome.UNJUDGED  # a source is away; whoever reads is told
        outcome = judge(before, source, after, changed=changed)
        if outcome is not Outcome.UNJUDGED:
            return outcome
    return Outcome.UNJUDGED


def judge(before: Page, source: Page, after: Page, *, changed: bool) -> Outcome:
    """Compare an answer of PostgreSQL with those of the projection before and after it.

    Args:
        before: the projection's, whole, with a token.
        source: PostgreSQL's, with a token.
        after: the projection's again.
        changed: whether PostgreSQL has committed anything to the ranking that isn't in the
            snapshot of `before`.
    """
    assert before.freshness.token is not None, "the caller looked"
    shown = tokens.parse(before.freshness.token)
    if (
        changed
        or _stand(before.freshness) != _stand(after.freshness)
        or _content(before) != _content(after)
        or source.freshness.epoch != before.freshness.epoch
        or not shows(source.freshness, shown)
    ):
        return Outcome.UNJUDGED
    return Outcome.EQUAL if _content(source) == _content(before) else Outcome.DIFFERENT


def _stand(freshness: Freshness) -> tuple[object, ...]:
    """Where a copy stood; the same twice: nothing was projected in between."""
    return freshness.generation, freshness.tick, freshness.partial, freshness.token


def _content(page: Page) -> tuple[object, ...]:
    return (
        page.total,
        page.matching,
        page.entries,
        page.places,
        page.around,
        page.counts,
        page.next,
        page.previous,
    )

"""The revisions of a season's settlement, in slices that fit together.

A slice says of which revisions it is, and where the next one begins. A cursor is bound to them, so
that nobody reads half of one comparison and half of another. Rows of settlements never change.
"""

from collections.abc import Sequence

import msgspec

from truerank.errors import CursorGone, InvalidInput, NotSettled
from truerank.model import (
    Board,
    Excluded,
    Season,
    SettledPlace,
    SettledPlaces,
    Settlement,
    SettlementChange,
    SettlementChanges,
    SettlementExcluded,
)
from truerank.paging import LIMIT_MAX, NUMBER_MAX, check_slice, check_whole
from truerank.read.cursors import decoded, encoded
from truerank.read.scores import reached_at, row_bytes, score_text
from truerank.read.settled import not_settled
from truerank.steps import Query, Steps

_SETTLEMENTS = "SELECT * FROM truerank.settlements(%s)"
_CHANGES = """
    SELECT pos, member, rank_before, rank, score_before::text, score::text
    FROM truerank.settlement_changes(%s, %s, %s, %s, %s::integer, %s::integer)"""
_EXCLUDED = """
    SELECT member, why, score::text
    FROM truerank.settlement_excluded_members(%s, %s, %s, %s::integer)"""
_PLACES = """
    SELECT ordinal, competition, dense, member, sort_key, ties
    FROM truerank.export_settled(%s, %s, %s, %s::integer)"""
_REVISION_MAX = 2**31 - 1
_PLACES_MAX = 20_000  # looked at for one slice of changes


class Mark(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where the next slice of a list begins, and of what."""

    what: str
    ranking: int
    since: int
    revision: int
    after: int | str


def list_settlements(season: Season) -> Steps[list[Settlement]]:
    """The revisions of a season's settlement, the newest first; none before it is final.

    Source: `schema/functions/settlements.sql`.
    """
    rows = yield Query(_SETTLEMENTS, (season.ranking,))
    return [
        Settlement(
            revision=revision,
            settled_at=settled_at,
            actor=actor,
            reason=reason,
            population=population,
            different=different,
            total=f"{total:f}",
            excluded=excluded,
            changed=changed,
            digest=digest,
            cohort=season.cohort,
        )
        for (revision, settled_at, actor, reason, population, different, total, excluded, changed,
             digest) in rows
    ]  # fmt: skip


def as_settled(season: Season, settlements: Sequence[Settlement]) -> Season:
    """A season as its settlements say, which were read a moment after it."""
    if not settlements:
        return season
    return season.settled(settlements[0].settled_at, settlements[0].revision)


def settlement_of(board: Board, season: Season, revision: int | None) -> Steps[Settlement]:
    """A revision of a season's settlement, None: the newest.

    Raises:
        NotSettled: there is no such settlement.

    Source: `schema/functions/settlements.sql`.
    """
    settlements = yield from _settlements(board, season)
    return _settlement(settlements, season, revision)


def list_changes(
    board: Board,
    season: Season,
    revision: int | None,
    *,
    since: int | None,
    limit: int,
    cursor: str | None,
) -> Steps[SettlementChanges]:
    """In what a revision, None: the newest, differs from an earlier one, None: the one before.

    Source: `schema/functions/settlement_changes.sql`.
    """
    check_slice(limit)
    check_revision(revision)
    check_revision(since, "since")
    settlements = yield from _settlements(board, season)
    mark = _mark(cursor, "changes", season, revision=revision, since=since)
    newer = _settlement(settlements, season, revision if mark is None else mark.revision)
    since = (since or max(1, newer.revision - 1)) if mark is None else mark.since
    older = _settlement(settlements, season, since)
    if older.revision > newer.revision:
        raise InvalidInput(
            f"since is at most the revision, {newer.revision}, and not {since}", field="since"
        )
    after = _number_after(mark)
    rows: Sequence[tuple[int, str, int | None, int | None, str | None, str | None]] = ()
    looked = after
    if limit and older is not newer:
        rows = yield Query(
            _CHANGES,
            (season.ranking, older.revision, newer.revision, after, _PLACES_MAX, limit),
        )
        looked = rows[-1][0] if len(rows) == limit else after + _PLACES_MAX
    end = newer.population + older.population if older is not newer else 0
    return SettlementChanges(
        since=older.revision,
        revision=newer.revision,
        changes=tuple(
            SettlementChange(
                member=member,
                rank_before=rank_before,
                rank=rank,
                score_before=score_before,
                score=score,
            )
            for _, member, rank_before, rank, score_before, score in rows
        ),
        next=None
        if looked >= end
        else encoded(Mark("changes", season.ranking, older.revision, newer.revision, looked)),
        cohort=season.cohort,
    )


def list_excluded(
    board: Board, season: Season, revision: int | None, *, limit: int, cursor: str | None
) -> Steps[SettlementExcluded]:
    """Who had a score and no place in a revision and why, in order of ids.

    Source: `schema/functions/settlement_excluded_members.sql`.
    """
    check_slice(limit)
    check_revision(revision)
    settlements = yield from _settlements(board, season)
    mark = _mark(cursor, "excluded", season, revision=revision)
    number = _settlement(settlements, season, revision if mark is None else mark.revision).revision
    after = "" if mark is None else mark.after
    if not isinstance(after, str) or "\0" in after:
        raise InvalidInput("this is no cursor", field="cursor")
    # One more, which says whether there are more.
    rows = yield Query(_EXCLUDED, (season.ranking, number, after, limit + 1))
    found = [Excluded(member=member, why=why, score=score) for member, why, score in rows[:limit]]
    after = found[-1].member if found else after
    return SettlementExcluded(
        revision=number,
        excluded=tuple(found),
        next=encoded(Mark("excluded", season.ranking, 0, number, after))
        if len(rows) > limit
        else None,
        cohort=season.cohort,
    )


def list_places(
    board: Board, season: Season, revision: int | None, *, limit: int, cursor: str | None
) -> Steps[SettledPlaces]:
    """The places of a revision in their order, with everybody's own id.

    Source: `schema/functions/export_settled.sql`.
    """
    check_slice(limit)
    check_revision(revision)
    settlements = yield from _settlements(board, season)
    mark = _mark(cursor, "places", season, revision=revision)
    found = _settlement(settlements, season, revision if mark is None else mark.revision)
    after, equal_bytes = _number_after(mark), row_bytes(board)
    rows = yield Query(_PLACES, (season.ranking, found.revision, after, min(limit, LIMIT_MAX)))
    places = tuple(
        SettledPlace(
            ordinal=ordinal,
            competition=competition,
            dense=dense,
            member=member,
            score=score_text(board, key),
            ties=tuple(ties or ()),
            reached_at=reached_at(key, equal_bytes),
        )
        for ordinal, competition, dense, member, key, ties in rows
    )
    last = places[-1].ordinal if places else after
    return SettledPlaces(
        revision=found.revision,
        population=found.population,
        digest=found.digest,
        places=places,
        next=None
        if last >= found.population
        else encoded(Mark("places", season.ranking, 0, found.revision, last)),
        cohort=season.cohort,
    )


def _settlements(board: Board, season: Season) -> Steps[list[Settlement]]:
    settlements = yield from list_settlements(season)
    if not settlements:
        raise (yield from not_settled(board, season))
    return settlements


def _settlement(
    settlements: Sequence[Settlement], season: Season, revision: int | None
) -> Settlement:
    newest = settlements[0]
    if revision is None:
        return newest
    for each in settlements:
        if each.revision == revision:
            return each
    raise NotSettled(
        f"season {season.label} has no revision {revision} yet: the newest is {newest.revision}"
    )


def check_revision(revision: int | None, name: str = "revision") -> None:
    """Refuse what is no number of a revision; None names none.

    Raises:
        InvalidInput: it isn't a whole number from 1.
    """
    if revision is not None:
        check_whole(name, revision, _REVISION_MAX, least=1)


def _mark(
    cursor: str | None,
    what: str,
    season: Season,
    *,
    revision: int | None,
    since: int | None = None,
) -> Mark | None:
    """Where to go on, None: at the beginning.

    Raises:
        CursorGone: the cursor is of another season.
        InvalidInput: it is none of this list, or of other revisions than those that are named.
    """
    if cursor is None:
        return None
    mark = decoded(cursor, Mark)
    if mark.what != what or not 1 <= mark.revision <= _REVISION_MAX:
        raise InvalidInput("this is no cursor of this list", field="cursor")
    if mark.ranking != season.ranking:
        raise CursorGone(f"the cursor is not of season {season.label} of board {season.board!r}")
    if revision not in {None, mark.revision} or since not in {None, mark.since}:
        raise InvalidInput("the cursor is of another revision", field="cursor")
    return mark


def _number_after(mark: Mark | None) -> int:
    after = 0 if mark is None else mark.after
    if not isinstance(after, int) or not 0 <= after <= NUMBER_MAX // 2:
        raise InvalidInput("this is no cursor", field="cursor")
    return after

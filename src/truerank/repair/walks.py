"""Every way in which a ranking is read, compared with the source's own rows."""

import hashlib
import http.client
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from truerank.client import Truerank
from truerank.errors import InvalidInput, ProjectionUnavailable, TruerankError
from truerank.model import Board, Entry, Numbering, Page, Season, Source
from truerank.repair.reference import Reference
from truerank.repair.verified import EXAMPLES_MAX, Difference, PathResult, Row, digest_line

Listed = tuple[int, str, str]  # rank, member, score

_PAGE_ROWS = 1000
_BACK_ROWS_MAX = 20_000
# A page of PostgreSQL counts all places before it.
_DATABASE_ROWS_MAX = 100_000
_WINDOW_ROWS = 7
_WINDOWS = 25
_PLACES = {Source.PROJECTION: 1000, Source.DATABASE: 200}  # it counts those before each
_PARTIAL_TRIES_MAX = 50
_HTTP_S_MAX = 30.0
_WAIT = "5s"
_CONNECTIONS: Mapping[str, type[http.client.HTTPConnection]] = {
    "http": http.client.HTTPConnection,
    "https": http.client.HTTPSConnection,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Walks:
    """The paths to one season, through one client.

    Args:
        client: of the installation.
        board: whose ranking.
        season: which of its rankings.
    """

    client: Truerank
    board: Board
    season: Season

    def lists(self, source: Source, reference: Reference) -> Iterator[PathResult]:
        """All pages by cursors, forwards and back again.

        What is read of PostgreSQL ends at so many rows: to reach a page costs as much as there
        are places before it.
        """
        most = _DATABASE_ROWS_MAX if source is Source.DATABASE else None
        yield _listed(source.value, reference, self._forward(source), most=most)
        yield self._backward(source, reference)

    def export(self, reference: Reference) -> PathResult:
        """The rows that a file would have."""
        with self.client.export(
            self.board.spec.key, self.season.label, cohort=self.season.cohort
        ) as exported:
            rows = ((row.rank, row.member, row.score) for row in exported)
            return _listed("export", reference, rows)

    def http(self, url: str, reference: Reference) -> PathResult:
        """All pages over HTTP, each at least as new as the reference.

        Raises:
            InvalidInput: the address isn't one of HTTP.
        """
        return _listed("http", reference, _over_http(url, self.board, self.season, reference))

    def places(self, source: Source, reference: Reference) -> PathResult:
        """The own places of a sample, in every numbering that the source offers."""
        sample = reference.sample(_PLACES[source])

        def compared() -> Iterator[Difference | None]:
            for numbering in self._numberings(source):
                for at in range(0, len(sample), _PAGE_ROWS):
                    asked = sample[at : at + _PAGE_ROWS]
                    page = self._ask(
                        self.client.places,
                        [row.member for row in asked],
                        numbering=numbering,
                        source=source,
                    )
                    for row, place in zip(asked, page.places, strict=True):
                        expected = f"{_rank(row, numbering)} with {row.score}"
                        found = None if place.rank is None else f"{place.rank} with {place.score}"
                        yield _differs(f"place of {row.member!r}, {numbering}", expected, found)

        return _part(f"{source.value} places", reference, compared(), len(sample))

    def windows(self, source: Source, reference: Reference) -> PathResult:
        """The neighbourhoods of some members, and of their ranks; totals; who is between."""
        sample = reference.sample(_WINDOWS)
        wanted = {at for row in sample for at in range(*_window(reference, row.ordinal))}
        rows = {row.ordinal: row for row in reference.rows() if row.ordinal in wanted}

        def compared() -> Iterator[Difference | None]:
            how: dict[str, Any] = {"limit": _WINDOW_ROWS, "source": source}
            for row in sample:
                near = [rows[at] for at in range(*_window(reference, row.ordinal))]
                expected = _lines((each.competition, each.member, each.score) for each in near)
                around = self._ask(self.client.around, row.member, **how)
                yield _differs(f"around {row.member!r}", expected, _lines(_rows(around.around)))
                ranked = self._ask(self.client.around, rank=row.ordinal, **how)
                found = _lines(_rows(ranked.around))
                yield _differs(f"around place {row.ordinal}", expected, found)
            counted = self._ask(self.client.between, None, None, limit=0, source=source)
            members = str(reference.members)
            yield _differs("total", members, str(counted.total))
            yield _differs("members between all scores", members, str(counted.matching))

        return _part(f"{source.value} windows", reference, compared(), len(sample))

    def _numberings(self, source: Source) -> Iterator[Numbering]:
        for numbering in Numbering:
            kept = source is Source.DATABASE or self.board.spec.dense
            if numbering is not Numbering.DENSE or kept:
                yield numbering

    def _page(self, source: Source, cursor: str | None) -> Page:
        return self._ask(self.client.top, limit=_PAGE_ROWS, cursor=cursor, source=source)

    def _forward(self, source: Source) -> Iterator[Listed]:
        page = self._page(source, None)
        yield from _rows(page.entries)
        while page.next is not None:
            page = self._page(source, page.next)
            yield from _rows(page.entries)

    def _backward(self, source: Source, reference: Reference) -> PathResult:
        """From the end of some pages back to the first: the same rows."""

        def compared() -> Iterator[Difference | None]:
            page = self._page(source, None)
            rows = len(page.entries)
            while page.next is not None and rows < _BACK_ROWS_MAX:
                page = self._page(source, page.next)
                rows += len(page.entries)
            found = list(_rows(page.entries))
            while page.previous is not None:
                page = self._page(source, page.previous)
                found[:0] = _rows(page.entries)
            most = _BACK_ROWS_MAX if rows >= _BACK_ROWS_MAX else None
            yield from _pairs(reference.rows(), found, most=most)

        return _part(f"{source.value} backwards", reference, compared(), _BACK_ROWS_MAX)

    def _ask(self, question: Callable[..., Page], *arguments: Any, **how: Any) -> Page:
        """An answer that shows no part of what comes after its tick."""
        for _ in range(_PARTIAL_TRIES_MAX):
            page = question(
                self.board.spec.key,
                *arguments,
                season=self.season.label,
                cohort=self.season.cohort,
                **how,
            )
            if not page.freshness.partial:
                return page
        raise ProjectionUnavailable("the projection shows a part of a batch, again and again")


def _over_http(url: str, board: Board, season: Season, reference: Reference) -> Iterator[Listed]:
    base = urlsplit(url)
    if base.scheme not in _CONNECTIONS or base.hostname is None:
        raise InvalidInput("the address of a server begins with http:// or https://", field="url")
    connection = _CONNECTIONS[base.scheme](base.hostname, base.port, timeout=_HTTP_S_MAX)
    path = f"{base.path.rstrip('/')}/v1/boards/{quote(board.spec.key, safe='')}/top"
    asked = {
        "season": season.label,
        "limit": str(_PAGE_ROWS),
        "at_least": reference.token,
        "wait": _WAIT,
        **({} if season.cohort is None else {"cohort": str(season.cohort)}),
    }
    try:
        while True:
            connection.request("GET", f"{path}?{urlencode(asked)}")
            response = connection.getresponse()
            text = response.read()
            if response.status != http.client.OK:
                raise TruerankError(f"{url} answers {response.status}: {text[:200]!r}")
            page = json.loads(text)
            for entry in page["entries"]:
                yield entry["rank"], entry["member"], entry["score"]
            if page["next"] is None:
                return
            asked["cursor"] = page["next"]
    finally:
        connection.close()


def _listed(
    name: str, reference: Reference, rows: Iterable[Listed], *, most: int | None = None
) -> PathResult:
    """Compare whole rows in their order, and make their digest on the way."""
    whole = hashlib.sha256()

    def digested() -> Iterator[Listed]:
        for row in rows:
            whole.update(digest_line(*row))
            yield row

    result = _result(name, _pairs(reference.rows(), digested(), most=most))
    if result.error is not None:
        return result
    if most is not None and reference.members > most:
        return replace(result, whole=False, note=f"the first {most} rows")
    return replace(result, digest=whole.hexdigest())


def _part(
    name: str, reference: Reference, compared: Iterable[Difference | None], members: int
) -> PathResult:
    """A result that covers so many members of all there are."""
    return replace(_result(name, compared), whole=members >= reference.members)


def _window(reference: Reference, ordinal: int) -> tuple[int, int]:
    """From which place to before which one the neighbourhood of a place reaches."""
    last = reference.members
    first = max(1, min(ordinal - (_WINDOW_ROWS - 1) // 2, last - _WINDOW_ROWS + 1))
    return first, min(last, first + _WINDOW_ROWS - 1) + 1


def _result(name: str, compared: Iterable[Difference | None]) -> PathResult:
    """Count what was compared, and keep the first differences."""
    count = 0
    differences: list[Difference] = []
    error = None
    try:
        for difference in compared:
            count += 1
            if difference is not None and len(differences) < EXAMPLES_MAX:
                differences.append(difference)
    except (TruerankError, OSError, http.client.HTTPException, ValueError) as exc:
        if isinstance(exc, InvalidInput):
            raise
        error = f"{exc}"
    return PathResult(name=name, compared=count, differences=tuple(differences), error=error)


def _pairs(
    expected: Iterable[Row], found: Iterable[Listed], *, most: int | None
) -> Iterator[Difference | None]:
    """One after the other; what is over on either side is a difference too."""
    wanted = ((row.competition, row.member, row.score) for row in expected)
    both = enumerate(zip_longest(wanted, found), 1)
    for place, (want, got) in both if most is None else islice(both, most):
        yield _differs(f"row {place}", want and _line(want), got and _line(got))


def _differs(subject: str, expected: str | None, found: str | None) -> Difference | None:
    if expected == found:
        return None
    return Difference(subject=subject, expected=expected, found=found)


def _rows(entries: Iterable[Entry]) -> Iterator[Listed]:
    return ((entry.rank, entry.member, entry.score) for entry in entries)


def _line(row: Listed) -> str:
    rank, member, score = row
    return f"{rank} {member!r} {score}"


def _lines(rows: Iterable[Listed]) -> str:
    return "; ".join(map(_line, rows))


def _rank(row: Row, numbering: Numbering) -> int:
    match numbering:
        case Numbering.ORDINAL:
            return row.ordinal
        case Numbering.COMPETITION:
            return row.competition
        case Numbering.DENSE:
            return row.dense

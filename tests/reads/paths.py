"""One question by every way on which a board is read: whatever the way, it is one answer."""

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import httpx
from msgspec.structs import replace

from tests.conformance.conftest import World
from tests.reads.command_line import CommandLine, Row, Typed
from truerank.model import Entry, Histogram, MemberState, Numbering, Order, Page, Place, Source
from truerank.read.shapes import (
    around_json,
    between_json,
    counts_json,
    histogram_json,
    page_json,
    place_json,
    places_json,
    window_json,
)

_SHAPES: dict[str, Callable[..., dict[str, Any]]] = {
    "top": page_json,
    "place": place_json,
    "places": places_json,
    "around": around_json,
    "window": window_json,
    "between": between_json,
    "counts": counts_json,
    "histogram": histogram_json,
}
_REPEATED = {"members": "member", "scores": "score", "edges": "edge"}
_HTTP_NEEDS = {Source.PROJECTION: "any", Source.DATABASE: "authoritative"}


class Paths:
    """The library, from either store, HTTP, likewise, the command line; pages by cursor; files.

    Every question is put to all of them, and answered once they agree in everything but freshness.
    The command line, which is slow to read its words, is put each question once from each store.
    """

    def __init__(self, world: World, http: httpx.Client, command_line: CommandLine) -> None:
        self.world = world
        self.client = world.client
        self.http = http
        self._typed = Typed(command_line, world.client)

    def top(self, board: str, season: str | None = None, **how: Any) -> Page:
        return self._page("top", board, season=season, **how)

    def place(self, board: str, member: str, season: str | None = None, **how: Any) -> Place:
        (place,) = self._page("place", board, member=member, season=season, **how).places
        return place

    def places(
        self, board: str, members: list[str], season: str | None = None, **how: Any
    ) -> tuple[Place, ...]:
        return self._page("places", board, members=members, season=season, **how).places

    def around(self, board: str, member: str, season: str | None = None, **how: Any) -> list[Row]:
        page = self._page("around", board, member=member, season=season, **how)
        return rows(page.around)

    def around_rank(self, board: str, rank: int, season: str | None = None, **how: Any) -> Any:
        return rows(self._page("around", board, rank=rank, season=season, **how).around)

    def between(
        self, board: str, low: Any, high: Any, season: str | None = None, **how: Any
    ) -> Page:
        bounds = {"score_min": low, "score_max": high}
        return self._page("between", board, season=season, **bounds, **how)

    def counts(
        self, board: str, scores: list[Any], season: str | None = None
    ) -> list[tuple[int, int]]:
        """How many are better than each score, and how many share it."""
        page = self._page("counts", board, scores=scores, season=season)
        return [(count.better, count.equal) for count in page.counts]

    def histogram(self, board: str, edges: list[Any], season: str | None = None) -> list[int]:
        spread = self._ask("histogram", board, edges=edges, season=season)
        assert isinstance(spread, Histogram)
        return [bucket.members for bucket in spread.buckets]

    def table(
        self,
        board: str,
        season: str | None = None,
        *,
        numbering: Numbering = Numbering.COMPETITION,
        step: int = 7,
    ) -> list[Row]:
        """All rows of a season of up to 1000, the same in lists, pages, places, and files.

        Args:
            board: its key.
            season: a label.
            numbering: of the ranks.
            step: rows of each page.
        """
        page = self.top(board, season, limit=1000, numbering=numbering)
        table = rows(page.entries)
        assert page.total == len(table)
        assert (page.next, page.previous) == (None, None)
        assert [rank for rank, _, _ in table] == self._ranks(board, table, numbering)
        for fetch in self.readers(board, season, numbering):
            forward, back = pages(fetch, step)
            assert [row for one in forward for row in one] == table
            assert back == forward[::-1]
        self._typed.check_pages(
            table[:step], table[step : 2 * step], board=board, season=season, numbering=numbering
        )
        for made in self._files(board, season, numbering):
            assert made == table
        if table:
            self._check_places(board, season, table, numbering)
            assert self.around_rank(board, 1, season, limit=1000, numbering=numbering) == table
            whole = self.between(board, None, None, season, limit=1000, numbering=numbering)
            assert (rows(whole.entries), whole.matching) == (table, len(table))
        return table

    def by_offset(self, board: str, step: int, **how: Any) -> list[list[Row]]:
        """The pages of a list by offsets."""
        total = self.top(board, limit=0, **how).total
        return [
            rows(self.top(board, offset=at, limit=step, **how).entries)
            for at in range(0, total, step)
        ]

    def compared(self, board: str, member: str, season: str | None = None) -> Row | None:
        """Where one member stands, the same on its own, in the list and in its neighbourhood."""
        place = self.place(board, member, season)
        page = self.top(board, season, limit=1000, member=member)
        listed = [row for row in rows(page.entries) if row[1] == member]
        around = self.around(board, member, season, limit=3)
        assert page.places == (place,)
        if place.rank is None:
            assert (place.score, listed, around, page.around) == (None, [], [], ())
            return None
        assert place.score is not None
        row = (place.rank, member, place.score)
        assert place.state is MemberState.ACTIVE
        assert listed == [row]
        assert row in around
        assert not set(rows(page.around)) & set(rows(page.entries))
        return row

    def _page(self, question: str, board: str, **how: Any) -> Page:
        page = self._ask(question, board, **how)
        assert isinstance(page, Page)
        return page

    def _ask(self, question: str, board: str, **how: Any) -> Page | Histogram:
        ask = getattr(self.client, question)
        shown, true = (ask(board, source=source, **how) for source in Source)
        assert (shown.freshness.source, true.freshness.source) == tuple(Source)
        assert replace(shown, freshness=true.freshness) == true
        shape = _SHAPES["window" if how.get("rank") is not None else question]
        told = {name: how[name] for name in ("among", "percentile") if name in how}
        assert isinstance(true, Page | Histogram)
        self._typed.check(question, board, how, _bare(shape(true, **told)))
        expected = _bare(shape(_public(true), **told))
        tags = set()
        for source, need in _HTTP_NEEDS.items():
            response = self._get(board, question, how, need)
            answer = response.json()
            assert answer["freshness"]["source"] == source
            assert _bare(answer) == expected
            tags.add(response.headers["etag"])
        assert len(tags) == 1, "not the same bytes from both"
        assert isinstance(shown, Page | Histogram)
        return shown

    def _get(self, board: str, segment: str, how: dict[str, Any], need: str) -> httpx.Response:
        given = {_REPEATED.get(name, name): value for name, value in how.items()}
        given = {
            name: int(value) if isinstance(value, bool) else value
            for name, value in given.items()
            if value is not None
        }
        answer = self.http.get(
            f"/v1/boards/{quote(board, safe='')}/{segment}", params={**given, "consistency": need}
        )
        assert answer.status_code == 200, answer.text
        return answer

    def readers(
        self,
        board: str,
        season: str | None = None,
        numbering: Numbering = Numbering.COMPETITION,
    ) -> Iterator[Callable[..., Any]]:
        """Functions that fetch a page as its JSON: from both stores, and over HTTP from both."""
        for source in Source:

            def ask(*, asked: Source = source, **how: Any) -> Any:
                page = self.client.top(board, season, numbering=numbering, source=asked, **how)
                return page_json(page)

            def get(*, need: str = _HTTP_NEEDS[source], **how: Any) -> Any:
                return self._get(
                    board, "top", {**how, "season": season, "numbering": numbering.value}, need
                ).json()

            yield from (ask, get)

    def _files(self, board: str, season: str | None, numbering: Numbering) -> Iterator[list[Row]]:
        table = b"".join(self.client.export(board, season, format="csv", numbering=numbering))
        self._typed.check_file(table, board=board, season=season, numbering=numbering)
        yield [
            (int(row["rank"]), row["member"], row["points"])
            for row in csv.DictReader(io.StringIO(table.decode(), newline=""))
        ]
        how = {"format": "ndjson", "season": season, "numbering": numbering.value}
        answer = self.http.get(
            f"/v1/boards/{quote(board, safe='')}/export",
            params={name: value for name, value in how.items() if value is not None},
        )
        rows = map(json.loads, answer.raise_for_status().content.splitlines())
        yield [(row["rank"], row["member"], row["score"]) for row in rows]

    def _check_places(
        self, board: str, season: str | None, table: list[Row], numbering: Numbering
    ) -> None:
        """Own places, ranks among all, percentiles, counts and buckets follow from the table."""
        scores = [Decimal(score) for _, _, score in table]
        members = [member for _, member, _ in table]
        how = {"among": True, "percentile": True, "numbering": numbering}
        places = self.places(board, members, season, **how)
        assert [(p.rank, p.member, p.score) for p in places] == table
        assert [p.rank_among for p in places] == [rank for rank, _, _ in table]
        better = self._better(board, scores)
        equal = Counter(scores)
        others = len(table) - 1
        if not self.client.board(board).spec.tie_breaks:
            assert [p.percentile for p in places] == [
                100 * (others + 1 - before - equal[score]) / others if others else 100
                for before, score in zip(better, scores, strict=True)
            ]
        distinct = sorted(equal)
        at = {score: before for before, score in zip(better, scores, strict=True)}
        texts = [f"{score:f}" for score in distinct]
        assert self.counts(board, texts, season) == [
            (at[score], equal[score]) for score in distinct
        ]
        dense = {score: rank for rank, score in enumerate(dict.fromkeys(scores))}
        passed = {
            Numbering.ORDINAL: {score: at[score] + equal[score] for score in distinct},
            Numbering.COMPETITION: at,
            Numbering.DENSE: dense,
        }
        counted = self._page(
            "counts", board, scores=texts, season=season, numbering=numbering
        ).counts
        if not self.client.board(board).spec.tie_breaks:
            assert [count.rank - 1 for count in counted] == [
                passed[numbering][score] for score in distinct
            ]
        assert self.histogram(board, [f"{score:f}" for score in distinct], season) == [
            0,
            *(equal[score] for score in distinct),
        ]

    def _better(self, board: str, scores: list[Decimal]) -> list[int]:
        descending = self.client.board(board).spec.order is Order.DESC
        ordered = sorted(scores, reverse=descending)
        assert scores == ordered
        firsts = {score: len(scores) - 1 - i for i, score in enumerate(reversed(scores))}
        return [firsts[score] for score in scores]

    def _ranks(self, board: str, table: list[Row], numbering: Numbering) -> list[int]:
        """The ranks that follow from the scores of a list."""
        if numbering is Numbering.ORDINAL:
            return list(range(1, len(table) + 1))
        if self.client.board(board).spec.tie_breaks:
            return [rank for rank, _, _ in table]  # equals aren't to be told by scores alone
        if numbering is Numbering.DENSE:
            different = list(dict.fromkeys(score for _, _, score in table))
            return [1 + different.index(score) for _, _, score in table]
        return [n + 1 for n in self._better(board, [Decimal(score) for _, _, score in table])]


def board(paths: Paths, key: str = "b", **settings: Any) -> None:
    """Create a board that is kept as a whole, unless told otherwise."""
    paths.client.create_board(key, **{"seasons": ["all"], **settings})


def _public(answer: Page | Histogram) -> Page | Histogram:
    """The same without what HTTP keeps to members themselves."""
    if isinstance(answer, Histogram):
        return answer
    return replace(
        answer, places=tuple(replace(p, state=MemberState.ACTIVE) for p in answer.places)
    )


def rows(entries: tuple[Entry, ...]) -> list[Row]:
    return [(entry.rank, entry.member, entry.score) for entry in entries]


def pages(fetch: Callable[..., Any], step: int) -> tuple[list[list[Row]], list[list[Row]]]:
    """The pages of a list by `next` cursors, and by `previous` ones from the last page on."""
    page = fetch(limit=step)
    forward = [_rows(page)]
    while page["next"] is not None:
        page = fetch(limit=step, cursor=page["next"])
        forward.append(_rows(page))
    for before, after in pairwise(forward):
        assert len(before) == step, "only the last page is short"
        assert after
    back = [_rows(page)]
    while page["previous"] is not None:
        page = fetch(limit=step, cursor=page["previous"])
        back.append(_rows(page))
    return forward, back


def _rows(page: Any) -> list[Row]:
    return [(entry["rank"], entry["member"], entry["score"]) for entry in page["entries"]]


def _bare(shape: dict[str, Any]) -> Any:
    """An answer without its freshness, as a JSON reader gets it."""
    return json.loads(json.dumps({k: v for k, v in shape.items() if k != "freshness"}))

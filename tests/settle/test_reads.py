"""A settled answer by every question and on every way: the settlement, or a refusal."""

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import msgspec
import psycopg
import pytest

import truerank
from tests.http.conftest import NO_CERTIFICATES, serving
from tests.settle.conftest import Connection, Months
from truerank import aio
from truerank.errors import InvalidInput, NotSettled
from truerank.model import Numbering, Page
from truerank.read.shapes import time_text
from truerank.settings import Settings

BY: Any = Months.BY
SEASON = "2024-06"
Ask = Callable[..., Any]
QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("top", {"limit": 7}),
    ("top", {"limit": 5, "offset": 8, "member": "m11", "around_limit": 3}),
    ("top", {"limit": 5, "offset": 100}),
    ("place", {"member": "m04", "percentile": True}),
    ("place", {"member": "nobody"}),
    ("places", {"members": ["m19", "m00", "nobody"], "among": True, "percentile": True}),
    ("around", {"member": "m00", "limit": 6}),
    ("around", {"rank": 10, "limit": 4}),
    ("between", {"score_min": 1, "score_max": 2, "limit": 4}),
    ("between", {"score_min": 1, "score_max": 2, "limit": 4, "offset": 5}),
    ("counts", {"scores": [-1, 0, 2, 9]}),
    ("histogram", {"edges": [0, 2, 3]}),
]


@pytest.fixture
def final(months: Months) -> Months:
    """June is final, with 20 members of whom several share each of 4 scores."""
    months.submit(*((f"e{n}", f"m{n:02}", n * 7 % 4) for n in range(20)))
    return months


def without_freshness(answer: Any) -> dict[str, Any]:
    shape = msgspec.structs.asdict(answer) if hasattr(answer, "__struct_fields__") else None
    fields = shape or {name: getattr(answer, name) for name in answer.__slots__}
    dropped = {"freshness", "state", "settled_at", "revision"}
    return {name: value for name, value in fields.items() if name not in dropped}


@pytest.mark.parametrize("numbering", list(Numbering))
def test_every_question_has_the_answer_that_the_source_had(
    final: Months, numbering: Numbering
) -> None:
    tr = final.tr

    def ask(name: str, how: dict[str, Any], consistency: str) -> Any:
        extra = {} if name == "histogram" else {"numbering": numbering}
        return getattr(tr, name)(board="b", season=SEASON, consistency=consistency, **how, **extra)

    before = [without_freshness(ask(*question, "authoritative")) for question in QUESTIONS]
    final.close()

    after = [ask(*question, "settled") for question in QUESTIONS]
    assert [without_freshness(answer) for answer in after] == before
    assert {(answer.state, answer.revision) for answer in after} == {("final", 1)}
    assert {answer.settled_at for answer in after} == {tr.season("b", SEASON).settled_at}


def test_pages_follow_each_other_in_both_directions(final: Months) -> None:
    final.close()
    everybody = [member for _, member, _ in final.settled()]

    def page(cursor: str | None) -> Page:
        return final.tr.top("b", SEASON, limit=6, cursor=cursor, consistency="settled")

    pages = [page(None)]
    while pages[-1].next is not None:
        pages.append(page(pages[-1].next))
    back = [pages[-1]]
    while back[-1].previous is not None:
        back.append(page(back[-1].previous))

    assert [entry.member for each in pages for entry in each.entries] == everybody
    assert {entry.member for each in back for entry in each.entries} == set(everybody)
    assert [len(each.entries) for each in pages] == [6, 6, 6, 2]


def test_before_the_season_is_final_there_is_no_answer_but_when_to_come_back(
    final: Months,
) -> None:
    for name, how in QUESTIONS:
        with pytest.raises(NotSettled) as caught:
            getattr(final.tr, name)(board="b", season=SEASON, consistency="settled", **how)
        assert caught.value.ready_at == datetime(2024, 7, 1, tzinfo=UTC)
    with pytest.raises(InvalidInput):
        final.tr.top("b", SEASON, consistency="settled", source="projection")


def test_who_is_hidden_since_keeps_the_place_and_is_not_named(final: Months) -> None:
    final.close()
    before = final.settled()
    first = before[0][1]

    final.tr.hide_member(first, timeout_s=0.0, **BY)

    after = final.settled()
    assert after[1:] == before[1:]
    assert (after[0][0], after[0][2]) == (before[0][0], before[0][2])
    assert after[0][1] != first
    (place,) = final.tr.place("b", first, SEASON, consistency="settled").places
    assert (place.rank, place.state.value) == (None, "hidden")
    final.tr.show_member(first, timeout_s=0.0, **BY)
    assert final.settled() == before


@pytest.mark.parametrize("order", ["desc", "asc"])
def test_no_question_has_another_answer_once_members_are_gone_but_their_names(
    tr: truerank.Truerank, conn: Connection, order: str
) -> None:
    months = Months(tr, conn, order=order)
    months.submit(*((f"e{n}", f"m{n:02}", n * 7 % 4) for n in range(20)))
    months.close()
    before = months.settled()
    gone = {"m01", "m02", "m03"}  # whom no question is about

    def ask(name: str, **how: Any) -> dict[str, Any]:
        question = getattr(tr, name)
        return without_freshness(question("b", season=SEASON, consistency="settled", **how))

    def told(cursors: list[str]) -> list[str]:
        answers = [ask(name, **how) for name, how in QUESTIONS]
        answers += [ask("top", limit=5, cursor=cursor) for cursor in cursors]
        for answer in answers:  # cursors hold names in a form of their own
            answer |= {way: bool(answer.get(way)) for way in ("next", "previous")}
        return [str(answer) for answer in answers]

    cursors = [ask("top", limit=at)["next"] for at in range(1, 20)]
    answers = told(cursors)
    tr.ban_member("m01", timeout_s=0.0, **BY)
    tr.delete_member("m02", timeout_s=0.0, **BY)
    tr.merge_members("m03", "m05", timeout_s=0.0, **BY)

    after = months.settled()
    assert [(rank, score) for rank, _, score in after] == [(rank, s) for rank, _, s in before]
    names = {
        row[1]: stand_in
        for row, (_, stand_in, _) in zip(before, after, strict=True)
        if row[1] != stand_in
    }
    assert names.keys() == gone
    assert not set(names.values()) & {member for _, member, _ in before}
    for member, stand_in in names.items():
        answers = [answer.replace(repr(member), repr(stand_in)) for answer in answers]
    assert told(cursors) == answers


def test_other_answers_of_a_final_season_say_since_when(final: Months) -> None:
    final.close()

    page = final.tr.top("b", SEASON)

    assert (page.state, page.revision) == ("final", 1)
    assert page.settled_at == final.tr.season("b", SEASON).settled_at
    before = final.settled()
    final.tr.ban_member(page.entries[0].member, timeout_s=0.0, **BY)
    today = final.tr.top("b", SEASON)  # by the states of today; the settlement doesn't move
    assert (today.entries[0].member, today.total) == (page.entries[1].member, page.total - 1)
    assert [(rank, score) for rank, _, score in final.settled()] == [
        (rank, score) for rank, _, score in before
    ]


async def test_the_asyncio_client_closes_and_reads_the_same(
    final: Months, database_url: str, redis_url: str
) -> None:
    async with aio.connect(database_url, redis_url) as client:
        season = await client.close_season("b", SEASON, actor="test")
        page = await client.top("b", SEASON, limit=20, consistency="settled")
        (settlement,) = await client.settlements("b", SEASON)

    assert season.state == "final"
    assert [(e.rank, e.member, e.score) for e in page.entries] == final.settled()
    assert settlement == final.tr.settlements("b", SEASON)[0]


@pytest.fixture
def http(database_url: str, redis_url: str) -> Any:
    settings = Settings(database_url=database_url, redis_url=redis_url, live_checks_percent=0)
    with (
        serving(settings) as url,
        httpx.Client(base_url=url, timeout=20.0, verify=NO_CERTIFICATES) as client,
    ):
        yield client


def test_http_serves_the_settlement_and_says_409_before(final: Months, http: httpx.Client) -> None:
    now = datetime.now(UTC)
    final.rules(hold="1 day")
    final.close()
    top = f"/v1/boards/b/top?season={SEASON}&limit=20&consistency=settled"
    sealed = http.get(top)
    later = f"{now.year + 1}-01"
    running = http.get(f"/v1/boards/b/top?season={later}&consistency=settled")
    final.close(now=True, reason="now")
    settled = http.get(top)
    states = http.get("/v1/boards/b/seasons?period=month").json()["seasons"]
    shown = http.get(f"/v1/boards/b/settlements?season={SEASON}").json()

    assert (sealed.status_code, sealed.json()["code"]) == (409, "not_settled")
    assert 0 < int(sealed.headers["retry-after"]) <= 86_400
    hold = datetime.fromisoformat(sealed.json()["ready_at"]) - now
    assert timedelta(hours=23) < hold <= timedelta(days=1, minutes=1)
    assert running.status_code == 409
    closes_at = final.tr.season("b", later).closes_at
    assert closes_at is not None
    assert running.json()["ready_at"] == time_text(closes_at + timedelta(days=1))
    assert int(running.headers["retry-after"]) > 86_400
    body = settled.json()
    assert [(e["rank"], e["member"], e["score"]) for e in body["entries"]] == final.settled()
    assert (body["state"], body["revision"]) == ("final", 1)
    assert [(s["season"], s["state"], s["revision"]) for s in states] == [(SEASON, "final", 1)]
    (settlement,) = shown["settlements"]
    assert settlement["digest"] == final.tr.settlements("b", SEASON)[0].digest
    assert "actor" not in settlement
    assert http.get("/v1/boards/b/settlements").status_code == 422


def test_an_export_of_the_settlement_names_everybody_but_the_deleted(final: Months) -> None:
    final.close()
    before = final.settled()
    hidden, deleted = before[0][1], before[1][1]
    final.tr.hide_member(hidden, timeout_s=0.0, **BY)
    final.tr.delete_member(deleted, timeout_s=0.0, **BY)

    with final.tr.export("b", SEASON, settled=True) as export:
        rows, head = list(export), export.head
    lines = final.tr.export("b", SEASON, format="csv", settled=True, revision=1)

    assert (head.season.state, head.season.revision, head.freshness.settled) == ("final", 1, True)
    assert head.as_of == final.tr.settlements("b", SEASON)[0].settled_at
    assert [(row.rank, row.score) for row in rows] == [(rank, score) for rank, _, score in before]
    assert rows[0].member == hidden
    assert rows[1].member != deleted
    assert [row.member for row in rows[2:]] == [member for _, member, _ in before[2:]]
    table = list(csv.DictReader(io.StringIO(b"".join(lines).decode())))
    assert len({line["event_id"] for line in table}) == 20
    for label, revision in ((SEASON, 2), ("all", None)):
        with pytest.raises(NotSettled):
            list(final.tr.export("b", label, settled=True, revision=revision))


def test_a_caller_reads_settlements_and_can_not_close(
    final: Months, connect: Callable[..., Any]
) -> None:
    final.close()
    conn = final.conn
    conn.execute("CREATE ROLE settle_reader")
    try:
        conn.execute("SELECT truerank.grant_caller('settle_reader')")
        caller = connect()
        caller.execute("SET ROLE settle_reader")
        ranking = final.tr.season("b", SEASON).ranking

        found = caller.execute(
            "SELECT total FROM truerank.read_settled(%s, NULL, 8, 0, 3, '{}', 0)", (ranking,)
        ).fetchall()
        for call in (
            "SELECT * FROM truerank.seal_season('b', '2024-07', false, 'a', 'r')",
            "SELECT * FROM truerank.export_settled(1, 1, 0, 10)",
            "SELECT * FROM truerank.settlement_row",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                caller.execute(call)
        caller.close()
    finally:
        conn.execute("DROP OWNED BY settle_reader")
        conn.execute("DROP ROLE settle_reader")

    assert found == [(20,)]

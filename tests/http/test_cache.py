"""Pages that a server holds: never older than told, nor longer than allowed."""

import asyncio
import time
from typing import Any

import httpx
import msgspec
import pytest

from tests.http.conftest import Wire
from tests.http.stand import DEADLINE_S, TOP, Served, Stand, deafen, until
from tests.projection.pipeline import pipeline
from truerank.local import running_worker
from truerank.read.hints import Hint
from truerank.settings import Settings


class Again:
    """Learns when hints come again."""

    def __init__(self) -> None:
        self.told = asyncio.Event()

    def hinted(self, hint: Hint) -> None:
        pass

    def lost(self) -> None:
        self.told.set()


async def test_a_page_that_is_held_costs_no_read_and_is_the_same_but_for_its_age(
    stand: Stand,
) -> None:
    async with stand.serving() as served:
        await served.hearing()
        first = await served.top()
        before = served.reads
        began = time.monotonic()
        await asyncio.sleep(0.02)  # which the page must have aged by

        later = [await served.top() for _ in range(3)]

        passed_ms = (time.monotonic() - began) * 1000
        assert served.reads == before
    ages = [answer.json()["freshness"]["staleness_ms"] for answer in (first, *later)]
    assert ages == sorted(ages)
    assert ages[0] + 20 <= ages[1]
    assert ages[3] <= ages[0] + passed_ms + 1000  # no wild number: it was read a moment before
    for answer in later:
        assert answer.headers["truerank-staleness-ms"] == str(
            answer.json()["freshness"]["staleness_ms"]
        )
        assert answer.headers["etag"] == first.headers["etag"]
        assert _ageless(answer) == _ageless(first)


async def test_a_page_that_is_held_is_counted_and_not_given_to_other_hosts_names(
    stand: Stand,
) -> None:
    async with stand.serving() as served:
        await served.hearing()
        await served.top()
        reads, before = served.reads, await _answered(served)

        refused = await served.client.get(TOP, headers={"host": "evil.example"})
        held = [await served.top() for _ in range(3)]

        assert (refused.status_code, refused.json()["code"]) == (421, "host_unknown")
        assert [each.status_code for each in held] == [200, 200, 200]
        assert served.reads == reads
        assert await _answered(served) == before + 3


async def _answered(served: Served) -> float:
    """How many tops were answered, by the service's own count."""
    told = (await served.client.get("/metrics")).text
    name = 'route="GET /v1/boards/{board}/top",status="200"'
    (line,) = [each for each in told.splitlines() if name in each and "_total" in each]
    return float(line.rsplit(" ", 1)[1])


async def test_a_score_is_seen_as_soon_as_the_hint_arrives(stand: Stand) -> None:
    async with stand.serving() as served:
        await served.hearing()
        for score in (15, 20, 25):
            assert await served.scores() == {"ann": str(score - 5)}
            stand.write({"ann": 5})

            async def is_shown(score: int = score) -> bool:
                return await served.scores() == {"ann": str(score)}

            await until(is_shown, "the new score")


async def test_a_hint_for_another_board_leaves_a_page_as_it_is(stand: Stand) -> None:
    async with stand.serving() as served:
        await served.hearing()
        await served.client.get("/v1/boards/other/top")
        await served.top()
        stand.write({"ann": 5}, "other")

        async def other_is_new() -> bool:
            page = (await served.client.get("/v1/boards/other/top")).json()
            return bool(page["entries"][0]["score"] == "15")

        await until(other_is_new, "the other board's score")
        before = served.reads

        await served.top()

        assert served.reads == before


async def test_many_who_come_at_once_cost_one_read(stand: Stand) -> None:
    async with stand.serving() as served:
        await served.hearing()
        await served.top()
        before = served.reads

        answers = await asyncio.gather(*(served.top(limit=7) for _ in range(50)))

        assert served.reads == before + 1
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.headers["etag"] for answer in answers}) == 1


async def test_parameters_in_another_order_ask_the_same_and_others_do_not(stand: Stand) -> None:
    stand.write({"bob": 5})
    async with stand.serving() as served:
        await served.hearing()
        await served.client.get(f"{TOP}?limit=1&numbering=ordinal")
        before = served.reads

        same = await served.client.get(f"{TOP}?numbering=ordinal&limit=1")
        assert served.reads == before
        other = await served.client.get(f"{TOP}?numbering=ordinal&limit=2")

    assert len(same.json()["entries"]) == 1
    assert len(other.json()["entries"]) == 2


async def test_without_hints_a_page_is_held_for_a_moment_only(stand: Stand) -> None:
    async with stand.serving() as served:
        deafen(served, noticed=True)
        assert await served.scores() == {"ann": "10"}
        stand.write({"ann": 5})

        async def is_shown() -> bool:
            return await served.scores() == {"ann": "15"}

        await until(is_shown, "the moment to pass")


async def test_a_hint_that_never_came_is_made_up_for_by_the_bound(stand: Stand) -> None:
    async with stand.serving(cache_max_ms=200) as served:
        deafen(served, noticed=False)
        assert await served.scores() == {"ann": "10"}
        read_at = time.monotonic()
        stand.write({"ann": 5})

        async def is_shown() -> bool:
            asked_at = time.monotonic()
            shown = await served.scores() == {"ann": "15"}
            assert shown or asked_at <= read_at + 0.2
            return shown

        await until(is_shown, "the bound to pass")


async def test_when_hints_come_again_everything_is_read_again(
    stand: Stand, wires: tuple[Settings, Wire, Wire]
) -> None:
    through, _, valkey = wires
    changes = {"database_url": through.database_url, "redis_url": through.redis_url}
    async with stand.serving(**changes) as served:
        await served.hearing()
        assert await served.scores() == {"ann": "10"}
        valkey.silence()
        stand.write({"ann": 5})  # the hint is lost on its way
        assert await served.scores() == {"ann": "10"}, "or this test is about nothing"
        again = Again()
        served.app.state.service.feed.followers.append(again)
        valkey.drop()
        async with asyncio.timeout(DEADLINE_S):
            await again.told.wait()  # nobody asks meanwhile

        async def is_shown() -> bool:
            page = (await served.top()).json()
            shown = (page["freshness"]["source"], page["entries"][0]["score"])
            return shown == ("projection", "15")

        await until(is_shown, "the score that the lost hint told of")


async def test_readers_get_no_page_older_than_they_ask_for(stand: Stand) -> None:
    async with stand.serving() as served:
        await served.hearing()
        await served.top()
        before = served.reads

        held = await served.top(max_age="1h")
        assert (held.json()["freshness"]["source"], served.reads) == ("projection", before)
        fresh = await served.top(max_age="0s")

    assert fresh.json()["freshness"] | {"projected_through": None} == {
        "source": "database", "epoch": held.json()["freshness"]["epoch"], "generation": None,
        "tick": None, "projected_through": None, "staleness_ms": 0,
    }  # fmt: skip


async def test_a_page_that_grew_too_old_is_not_held_against_the_services_limit(
    stand: Stand,
) -> None:
    async with stand.serving(fallback_after_ms=300) as served:
        await served.hearing()
        stand.projector.step()

        async def is_old() -> bool:
            answer = (await served.top()).json()["freshness"]
            assert answer["source"] == "database" or answer["staleness_ms"] <= 300
            return bool(answer["source"] == "database")

        await until(is_old, "an answer of the source")


async def test_a_token_is_served_from_a_page_that_shows_it_and_from_no_other(stand: Stand) -> None:
    old = stand.write({"ann": 5})
    async with stand.serving() as served:
        await served.hearing()
        seen = (await served.top(monotonic="new")).json()["freshness"]["token"]
        before = served.reads

        assert await served.scores(at_least=old) == {"ann": "15"}
        assert await served.scores(monotonic=seen) == {"ann": "15"}
        assert served.reads == before
        deafen(served, noticed=False)  # the page stays: only the token says that it is old
        (receipt,) = stand.pipeline.submit("b", {"ann": 5})
        assert await served.scores() == {"ann": "15"}
        new = await served.top(at_least=receipt.token, wait="0s")
        again = await served.top(monotonic=new.json()["freshness"]["token"], wait="0s")

    assert [answer.json()["entries"][0]["score"] for answer in (new, again)] == ["20", "20"]


async def test_only_readers_who_compare_get_a_token(stand: Stand) -> None:
    async with stand.serving() as served:
        await served.hearing()
        for _ in range(2):
            assert "token" in (await served.top(monotonic="new")).json()["freshness"]
            assert "token" not in (await served.top()).json()["freshness"]


async def test_the_sources_own_answers_are_read_each_time(stand: Stand) -> None:
    async with stand.serving() as served:
        await served.hearing()
        assert await served.scores(consistency="authoritative") == {"ann": "10"}
        stand.pipeline.submit("b", {"ann": 5})

        assert await served.scores(consistency="authoritative") == {"ann": "15"}
        assert (await served.top(consistency="settled")).status_code == 409


async def test_who_has_what_is_held_gets_its_age_alone(stand: Stand) -> None:
    async with stand.serving() as served:
        await served.hearing()
        first = await served.top()
        tag = first.headers["etag"]

        same = await served.client.get(TOP, headers={"if-none-match": tag})
        other = await served.client.get(TOP, headers={"if-none-match": '"something else"'})

    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
    assert int(same.headers["truerank-staleness-ms"]) >= int(first.headers["truerank-staleness-ms"])
    assert other.status_code == 200


@pytest.mark.parametrize("action", ["rename", "delete"])
async def test_a_board_that_is_gone_is_gone_within_the_bound(stand: Stand, action: str) -> None:
    by = {"actor": "op", "reason": "test"}
    async with stand.serving(cache_max_ms=100) as served:
        await served.hearing()
        assert await served.scores() == {"ann": "10"}
        if action == "rename":
            stand.pipeline.client.rename_board("b", "c", **by)
        else:
            stand.pipeline.client.delete_board("b", **by)

        async def is_gone() -> bool:
            return (await served.top()).status_code == 404

        await until(is_gone, "the old key to be unknown")


async def test_new_names_are_shown_at_once_by_the_process_that_took_them(stand: Stand) -> None:
    async with stand.serving() as served:
        await served.hearing()
        for name in ("Ann", "Ännchen"):
            body = {"profiles": [{"member": "ann", "name": name}]}
            (await served.client.post("/v1/profiles", json=body)).raise_for_status()

            page = (await served.top(names=1)).json()

            assert page["entries"][0]["name"] == name


@pytest.mark.parametrize("action", ["hide", "ban", "delete"])
async def test_nobody_sees_a_member_after_the_call_that_hid_it(
    holding: Settings, action: str
) -> None:
    settings = msgspec.structs.replace(holding, cache_max_ms=300, heartbeat_ms=1000)
    with pipeline(settings, groups=1) as made, running_worker(settings):
        made.client.create_board("b", seasons=["all"])
        (receipt,) = made.submit("b", {"ann": 10})
        assert receipt.token is not None
        made.client.wait_visible(receipt.token, ["b"], timeout_s=DEADLINE_S)
        async with Stand(made, None).serving() as served:  # type: ignore[arg-type]  # not stepped
            deafen(served, noticed=False)
            assert await served.scores() == {"ann": "10"}
            hiding = asyncio.create_task(
                asyncio.to_thread(
                    getattr(made.client, f"{action}_member"),
                    "ann", actor="op", reason="test", timeout_s=DEADLINE_S,
                )
            )  # fmt: skip
            while not hiding.done():
                await served.top()
                await asyncio.sleep(0.001)  # readers in between, not instead

            assert not (await hiding).pending
            assert await served.scores() == {}


async def test_nothing_is_held_where_the_setting_says_so(stand: Stand) -> None:
    async with stand.serving(cache_max_ms=0) as served:
        await served.hearing()
        before = served.reads

        await served.top()
        await served.top()

        assert served.reads == before + 2


def _ageless(answer: httpx.Response) -> Any:
    page = answer.json()
    del page["freshness"]["staleness_ms"]
    return page

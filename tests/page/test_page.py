"""What a visitor sees: the board, its age, and each change without touching anything."""

import asyncio
import re
from datetime import UTC, datetime

import pytest
import redis
from playwright.async_api import Locator, Page, Route, expect

import truerank
from tests.projection.pipeline import wait_until
from truerank.model import LeagueRule
from truerank.settings import Settings

pytestmark = pytest.mark.system("chromium")

MARKUP = "<img src=x onerror=\"document.title='broken'\"><b>bold</b>"
EARLIER = datetime(2026, 1, 15, 12, tzinfo=UTC)


@pytest.fixture
def board(tr: truerank.Truerank) -> truerank.Truerank:
    """A board with an old season and the current ones."""
    tr.create_board("points", seasons=("all", "month"))
    tr.create_board("empty")
    for number, (member, value) in enumerate(
        (("ann", 9007199254740993), ("bob", 20), (MARKUP, 10), ("محمد", 5), ("x" * 200, 1))
    ):
        tr.submit_score("points", event_id=f"e{number}", member=member, value=value)
    receipt = tr.submit_score("points", event_id="old", member="zoe", value=3, occurred_at=EARLIER)
    assert receipt.token is not None
    tr.wait_visible(receipt.token, ["points"])
    return tr


async def submit(
    tr: truerank.Truerank, event_id: str, member: str, value: int, board: str = "points"
) -> None:
    await asyncio.to_thread(tr.submit_score, board, event_id=event_id, member=member, value=value)


def names(page: Page, table: str = "top") -> Locator:
    return page.locator(f"#{table} tbody tr td:nth-child(2)")


async def test_the_page_shows_the_first_board_with_ranks_and_its_age(
    board: truerank.Truerank, served: str, page: Page
) -> None:
    del board

    await page.goto(served + "?board=points")

    await expect(page.locator("h1")).to_have_text("points")
    await expect(names(page)).to_have_text(["ann", "bob", MARKUP, "محمد", "zoe", "x" * 200])
    ranks = page.locator("#top tbody tr td:first-child")
    await expect(ranks).to_have_text(["1", "2", "3", "4", "5", "6"])
    first = page.locator("#top tbody tr").first
    await expect(first.locator("td").last).to_have_text("9007199254740993")
    await expect(page.locator("#live")).to_have_text("live")
    await expect(page.locator("#age")).to_have_text(re.compile(r"^as of \d+ (ms|s) ago$"))


async def test_a_score_appears_by_itself(board: truerank.Truerank, served: str, page: Page) -> None:
    await page.goto(served + "?board=points")
    await expect(page.locator("#live")).to_have_text("live")

    await submit(board, "new", "bob", 10**17)

    await expect(names(page).first).to_have_text("bob")
    assert page.url.endswith("?board=points")


async def test_markup_in_an_id_is_shown_as_text_and_long_ones_break_nothing(
    board: truerank.Truerank, served: str, page: Page
) -> None:
    del board
    await page.goto(served + "?board=points")

    await page.get_by_role("button", name=MARKUP).click()

    await expect(page.locator("#own-name")).to_have_text(MARKUP)
    assert await page.locator("main b, main img").count() == 0
    assert await page.title() == "points · Truerank"
    await page.locator("#top button", has_text="x" * 200).click()
    await expect(page.locator("#own-name")).to_have_text("x" * 200)
    for width in (1180, 390, 320):
        await page.set_viewport_size({"width": width, "height": 800})
        wide = await page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width


async def test_choosing_a_season_shows_it_and_stays_in_the_address(
    board: truerank.Truerank, served: str, page: Page
) -> None:
    del board
    await page.goto(served + "?board=points")
    await expect(page.locator("#season option", has_text="January 2026")).to_have_count(1)

    await page.locator("#season").select_option("2026-01")

    await expect(names(page)).to_have_text(["zoe"])
    assert "season=2026-01" in page.url
    await page.reload()
    await expect(names(page)).to_have_text(["zoe"])
    await expect(page.locator("#season")).to_have_value("2026-01")
    await page.go_back()
    await expect(names(page)).to_have_count(6)


async def test_a_cohort_is_watched_by_its_address_and_refreshed_for_its_own_changes(
    board: truerank.Truerank, served: str, page: Page
) -> None:
    board.set_league("points", LeagueRule(period="all", size=2), actor="a", reason="a test")
    wait_until(lambda: len(board.cohorts("points")) == 3, "six members in cohorts of two")

    await page.goto(served + "?board=points&cohort_of=ann")

    await expect(page.locator("#total")).to_have_text("2 members, all time, cohort 1")
    await expect(names(page)).to_have_text(["ann", "bob"])
    await submit(board, "more", "bob", 10**17)
    await expect(names(page)).to_have_text(["bob", "ann"])
    for hint, concerned in (
        ({"seasons": ["all"], "cohorts": {"all": [2]}}, False),
        ({"seasons": [], "cohorts": {"all": [2, 1]}}, True),
        ({"seasons": ["all"], "cohorts": {"2026": [1]}}, False),
        ({"seasons": ["all"], "cohorts": None}, True),
    ):
        asked = await page.evaluate("hint => concerns(hint, {season: 'all', cohort: 1})", hint)
        whole = await page.evaluate("hint => concerns(hint, {season: 'all'})", hint)
        assert (asked, whole) == (concerned, hint["seasons"] == ["all"])
    await page.goto(served + "?board=points&cohort=99")
    await expect(page.locator("#message")).to_have_text("This season has no such cohort.")
    await page.locator("#season").select_option("2026-01")
    await expect(names(page)).to_have_text(["zoe"])
    assert "cohort" not in page.url


async def test_a_chosen_member_shows_its_place_and_is_marked_in_the_list(
    board: truerank.Truerank, served: str, page: Page
) -> None:
    await page.goto(served + "?board=points")

    await page.locator("#member").fill("bob")
    await page.keyboard.press("Enter")

    await expect(page.locator("#own-place")).to_have_text("Rank 2, score 20")
    await expect(page.locator("#top tr[aria-current=true] td:nth-child(2)")).to_have_text("bob")
    await expect(page.locator("#around")).to_be_hidden()
    assert "member=bob" in page.url
    await submit(board, "more", "bob", 5)
    await expect(page.locator("#own-place")).to_have_text("Rank 2, score 25")
    await page.locator("#member").fill("nobody")
    await page.keyboard.press("Enter")
    await expect(page.locator("#own-place")).to_have_text("has no place in this season.")
    await page.locator("#close").click()
    await expect(page.locator("#own")).to_be_hidden()


async def test_neighbours_of_a_chosen_member_are_shown_beside_the_list_but_for_those_in_it(
    board: truerank.Truerank, served: str, page: Page
) -> None:
    events = [
        truerank.ScoreEvent(event_id=f"many {rank}", member=f"m{rank:03}", value=1000 - rank)
        for rank in range(1, 151)
    ]
    token = board.submit_scores("empty", events)[-1].token
    assert token is not None
    board.wait_visible(token, ["empty"])
    await page.goto(served + "?board=empty&member=m053")

    await expect(page.locator("#own-place")).to_have_text("Rank 53, score 947")
    listed = await names(page).count()

    beside = [f"m{rank:03}" for rank in range(listed + 1, 59)]
    await expect(names(page, "around")).to_have_text(beside)
    await expect(page.locator("#around tr[aria-current=true] td:nth-child(2)")).to_have_text("m053")


async def test_an_empty_board_and_a_missing_one_are_said_in_words(
    board: truerank.Truerank, served: str, page: Page
) -> None:
    await page.goto(served + "?board=empty")
    await expect(page.locator("#message")).to_contain_text("Nobody has a score")
    await submit(board, "first", "ann", 1, board="empty")
    await expect(names(page)).to_have_text(["ann"])
    await expect(page.locator("#message")).to_be_hidden()

    await page.goto(served + "?board=nobody")

    await expect(page.locator("#message")).to_have_text("There is no board called “nobody”.")


async def test_a_lost_subscription_is_followed_by_a_new_look(
    board: truerank.Truerank, served: str, settings: Settings, page: Page
) -> None:
    await page.goto(served + "?board=points")
    await expect(page.locator("#live")).to_have_text("live")

    with redis.Redis.from_url(settings.redis_url or "") as client:
        client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
        await submit(board, "meanwhile", "zoe", 10**17)

    await expect(names(page).first).to_have_text("zoe")


async def test_an_older_answer_never_replaces_a_newer_one(
    board: truerank.Truerank, served: str, page: Page
) -> None:
    del board
    held: list[Route] = []

    async def hold(route: Route) -> None:
        if "season=2026-01" in route.request.url:
            held.append(route)
        else:
            await route.continue_()

    await page.route("**/top?*", hold)
    await page.goto(served + "?board=points")
    await expect(names(page)).to_have_count(6)
    await page.locator("#season").select_option("2026-01")
    await page.locator("#season").select_option("all")
    await expect(names(page)).to_have_count(6)

    for route in held:
        await route.fulfill(
            json={"board": "points", "season": "2026-01", "total": 0, "entries": [],
                  "freshness": {"source": "projection", "staleness_ms": 1}}
        )  # fmt: skip
    await page.wait_for_function("() => new Promise(done => setTimeout(() => done(true), 300))")

    await expect(names(page)).to_have_count(6)
    await expect(page.locator("#season")).to_have_value("all")


async def test_an_answer_of_the_database_and_one_of_unknown_age_are_told_so(
    board: truerank.Truerank, served: str, page: Page
) -> None:
    del board
    freshness = {"source": "database", "staleness_ms": 3000}

    async def answer(route: Route) -> None:
        await route.fulfill(
            json={"board": "points", "season": "all", "total": 1, "freshness": freshness,
                  "entries": [{"rank": 1, "member": "ann", "score": "1"}]}
        )  # fmt: skip

    await page.route("**/top?*", answer)
    await page.goto(served + "?board=points")
    await expect(page.locator("#age")).to_have_text("as of 3 s ago, from the database")

    freshness |= {"source": "projection", "staleness_ms": None}

    await expect(page.locator("#age")).to_have_text("of unknown age")


async def test_a_server_that_is_away_is_said_and_what_is_shown_stays(
    board: truerank.Truerank, served: str, page: Page
) -> None:
    del board
    away = True

    async def answer(route: Route) -> None:
        if away:
            await route.abort()
        else:
            await route.continue_()

    await page.goto(served + "?board=points")
    await expect(names(page)).to_have_count(6)
    await page.route("**/top?*", answer)

    await expect(page.locator("#message")).to_contain_text("What you see is from")
    await expect(names(page)).to_have_count(6)
    away = False
    await expect(page.locator("#message")).to_be_hidden()


async def test_a_tab_that_is_looked_at_again_fetches_again_and_holds_no_stream_meanwhile(
    board: truerank.Truerank, served: str, page: Page
) -> None:
    await page.add_init_script(
        "window.seen = 'visible';"
        "Object.defineProperty(document, 'visibilityState', { get: () => window.seen });"
    )
    await page.goto(served + "?board=points")
    await expect(page.locator("#live")).to_have_text("live")

    await page.evaluate("seen = 'hidden'; document.dispatchEvent(new Event('visibilitychange'))")
    await expect(page.locator("#live")).to_have_text("not live")
    await submit(board, "unseen", "zoe", 10**17)
    await expect(names(page).first).to_have_text("ann")

    await page.evaluate("seen = 'visible'; document.dispatchEvent(new Event('visibilitychange'))")
    await expect(names(page).first).to_have_text("zoe")
    await expect(page.locator("#live")).to_have_text("live")


async def test_everything_can_be_reached_with_the_keyboard(
    board: truerank.Truerank, served: str, page: Page
) -> None:
    del board
    await page.goto(served + "?board=points")
    await expect(names(page)).to_have_count(6)

    reached = []
    for _ in range(7):
        await page.keyboard.press("Tab")
        reached.append(
            await page.evaluate("document.activeElement.id || document.activeElement.textContent")
        )
    await page.keyboard.press("Enter")

    assert reached[1:4] == ["board", "season", "member"]
    assert reached[6] == "bob"
    await expect(page.locator("#own-name")).to_have_text("bob")

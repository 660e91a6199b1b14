"""PostgreSQL restarts again and again under load: nothing is lost, nothing counts twice."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

import msgspec
import pytest

import truerank
from tests.faults.postgres.programs import worker_process
from tests.faults.postgres.server import How, Server
from tests.faults.proxy import Proxy, postgresql_through
from tests.projection.pipeline import Pipeline, differences, pipeline, wait_until
from truerank.errors import Contended, DatabaseUnavailable, ProjectionUnavailable
from truerank.model import Outcome, Page, Source
from truerank.settings import Settings

RESTARTS = 20
WRITERS = 3
MEMBERS = 7
EVENT = b"completion"  # every event id begins with this
# The clocks of a machine are steered: two of them may differ by this over a test.
SLEW_S = 0.005


@dataclass(slots=True)
class Load:
    """Writers that repeat each event until it is acknowledged, and a reader that judges answers."""

    settings: Settings
    acknowledged: list[tuple[str, float]] = field(default_factory=list)  # member, when
    sent: Counter[str] = field(default_factory=Counter)  # counted before its first try
    failed_tries: int = 0
    answers: int = 0
    silences: int = 0
    last: truerank.Receipt | None = None
    lies: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def write(self, writer: int) -> None:
        dice = random.Random(writer)
        with truerank.Truerank(self.settings) as client:
            for number in count():
                if self.stop.is_set():
                    return
                member = f"m{dice.randrange(MEMBERS)}"
                self.sent[f"{writer} {member}"] += 1
                self._until_acknowledged(client, f"{EVENT.decode()} {writer} {number}", member)

    def await_scores(self, number: int) -> None:
        """Wait until so many more events are acknowledged."""
        seen = len(self.acknowledged)
        wait_until(lambda: len(self.acknowledged) >= seen + number, f"{number} scores")

    def _until_acknowledged(self, client: truerank.Truerank, event_id: str, member: str) -> None:
        while True:
            try:
                receipt = client.submit_score("b", event_id=event_id, member=member, value=1)
            except (DatabaseUnavailable, Contended):
                self.failed_tries += 1
                time.sleep(0.002)
            else:
                assert receipt.outcome in {Outcome.APPLIED, Outcome.DUPLICATE}
                self.acknowledged.append((member, time.monotonic()))
                self.last = receipt
                return

    def read(self) -> None:
        with truerank.Truerank(self.settings) as client:
            while not self.stop.wait(0.002):
                acknowledged = list(self.acknowledged)
                asked_at = time.monotonic()
                try:
                    page = client.top("b", source=Source.PROJECTION)
                except (DatabaseUnavailable, ProjectionUnavailable):
                    self.silences += 1
                else:
                    self._judge(page, acknowledged, asked_at)

    def _judge(self, page: Page, acknowledged: list[tuple[str, float]], asked_at: float) -> None:
        self.answers += 1
        shown = sum(int(entry.score) for entry in page.entries)
        if shown > self.sent.total():
            self.lies.append(f"{shown} events are shown, {self.sent.total()} were sent")
        age_ms = page.freshness.staleness_ms
        if age_ms is None:
            return
        fresh_at = asked_at - age_ms / 1000 - SLEW_S
        due = sum(at < fresh_at for _, at in acknowledged)
        if shown < due:
            self.lies.append(f"{due} events were {age_ms} ms old, {shown} are shown")


@contextmanager
def load(settings: Settings) -> Iterator[Load]:
    made = Load(settings)
    failures: list[BaseException] = []

    def guarded(run: object, *args: int) -> None:
        assert callable(run)
        try:
            run(*args)
        except BaseException as exc:  # noqa: BLE001 - raised again at the end
            failures.append(exc)
            made.stop.set()

    threads = [
        threading.Thread(target=guarded, args=(made.write, writer)) for writer in range(WRITERS)
    ]
    threads.append(threading.Thread(target=guarded, args=(made.read,)))
    for thread in threads:
        thread.start()
    try:
        yield made
    finally:
        made.stop.set()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]


def lose_a_reply(proxy: Proxy) -> None:
    before = proxy.faults
    proxy.lose_reply(EVENT)  # a statement that is prepared has no other text in it
    wait_until(lambda: proxy.faults > before, "a reply is lost")


def test_twenty_restarts_under_load_lose_nothing_and_count_nothing_twice(
    server: Server, settings: Settings, note: Callable[[str], None]
) -> None:
    """The freshness told meanwhile is true, and ticks resume after each."""
    settings = msgspec.structs.replace(settings, board_cache_ms=60_000)
    with pipeline(settings, groups=1) as before:
        before.client.create_board("b", seasons=["all"])
    slowest_s = 0.0
    dice = random.Random(20)
    assert settings.database_url is not None
    with (
        postgresql_through(settings.database_url) as (proxy, url),
        worker_process(settings),
        load(msgspec.structs.replace(settings, database_url=url)) as work,
    ):
        for number in range(RESTARTS):
            work.await_scores(20)
            # A server that ends has seldom committed what it doesn't tell; here it always has.
            lose_a_reply(proxy)

            server.end(list(How)[number % len(How)])
            time.sleep(dice.uniform(0, 0.1))  # how long it is away doesn't matter
            server.start()

            began = time.monotonic()
            work.await_scores(1)
            assert work.last is not None
            assert work.last.token is not None
            with truerank.Truerank(settings) as client:
                client.wait_visible(work.last.token, ["b"], timeout_s=30)
            slowest_s = max(slowest_s, time.monotonic() - began)
    assert work.lies == []
    assert work.failed_tries > 0
    assert work.answers > RESTARTS
    expected = Counter(member for member, _ in work.acknowledged)

    with pipeline(settings, groups=1) as after:
        assert differences(after) == []
        for source in Source:
            page = after.client.top("b", source=source)
            assert {entry.member: int(entry.score) for entry in page.entries} == expected
    note(
        f"{RESTARTS} restarts: visible again after {slowest_s:.2f} s at most,"
        f" {len(work.acknowledged)} events, {work.failed_tries} tries failed"
    )


@pytest.mark.parametrize("how", [How.FAST, How.KILLED])
def test_while_postgresql_is_away_the_age_grows_and_is_told(
    server: Server, lone: Pipeline, settings: Settings, how: How
) -> None:
    settings = msgspec.structs.replace(settings, board_cache_ms=60_000)
    with worker_process(settings), truerank.Truerank(settings) as client:
        (receipt,) = lone.submit("b", {"ann": 1})
        assert receipt.token is not None
        client.wait_visible(receipt.token, ["b"])
        client.top("b")

        server.end(how)
        away_at = time.monotonic()

        def aged() -> bool:
            least_ms = (time.monotonic() - away_at - SLEW_S) * 1000
            page = client.top("b")
            assert page.freshness.source is Source.PROJECTION
            assert page.total == 1
            assert page.freshness.staleness_ms is not None
            assert page.freshness.staleness_ms >= least_ms
            return page.freshness.staleness_ms > 3 * settings.heartbeat_ms

        wait_until(aged, "an age that no worker that lives would let grow so")
        with pytest.raises(DatabaseUnavailable):
            client.submit_score("b", event_id="e", member="ann", value=1)
        server.start()
        wait_until(
            lambda: (client.top("b").freshness.staleness_ms or 0) < 2 * settings.heartbeat_ms,
            "ticks resume",
        )

"""Who waits looks seldom after a while, and what the projection never keeps has its own limit."""

import threading
import time
from itertools import islice

import truerank
from tests.metrics.scrape import counted
from tests.projection.pipeline import Pipeline, wait_until
from tests.reads.test_consistency import assert_busy, client, everybody_waits, write
from truerank.model import Consistency, Page, Source
from truerank.read.waiting import pauses
from truerank.telemetry.metrics import Metrics


def test_pauses_grow_to_a_tenth_of_a_second_and_end_with_the_wait() -> None:
    patient = pauses(time.monotonic() + 3600, jitter=lambda: 0.0)
    grown = [pause.seconds for pause in islice(patient, 12)]
    (last,) = islice(pauses(time.monotonic() - 1), 1)

    assert (grown[0], grown[-1]) == (0.01, 0.1)
    assert grown == sorted(grown)
    assert last.seconds < grown[0]


def test_a_read_that_waits_for_its_write_calls_the_server_a_few_times_only(
    stopped: Pipeline,
) -> None:
    numbers = Metrics()
    token = write(stopped, {"ann": 7})
    with truerank.Truerank(stopped.settings, numbers) as reader:
        page = reader.top("b", consistency=Consistency.at_least(token, wait_ms=500))

    calls = counted(numbers)("truerank_script_calls_total", script="page", reply="ok")
    assert page.freshness.source is Source.DATABASE
    assert 2 <= (calls or 0) <= 18  # as many as 500 ms have with the shortest pauses


def test_readers_of_what_the_projection_never_keeps_have_a_limit_of_their_own(
    stopped: Pipeline,
) -> None:
    pages: list[Page] = []
    stopped.redis.flushdb()
    with client(stopped, fallback_max=1) as reader:
        dense = threading.Thread(
            target=lambda: pages.append(reader.top("b", numbering="dense")),
        )
        with everybody_waits(stopped, reader):
            dense.start()
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            wait_until(lambda: stopped.conn.execute(waiting).fetchone() == (2,), "both wait")
            assert_busy(reader)
        dense.join()

    assert [page.freshness.source for page in pages] == [Source.DATABASE]

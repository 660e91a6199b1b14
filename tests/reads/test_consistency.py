"""Readers get what they ask for, or are told; never the old answer under a new name."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

import truerank
from tests.projection.pipeline import Pipeline, wait_until
from truerank.cli import app
from truerank.errors import (
    Busy,
    EpochChanged,
    InvalidInput,
    NotCommittedYet,
    NotFreshEnough,
    NotSettled,
    TruerankError,
)
from truerank.model import Consistency, Page, Source, Token
from truerank.projection.projector import Projector

AWAY = "postgresql:///nowhere?host=/nonexistent"


def write(pipeline: Pipeline, scores: dict[str, int]) -> Token:
    (*_, receipt) = pipeline.submit("b", scores)
    assert receipt.token is not None
    return receipt.token


def scores(page: Page) -> dict[str, str]:
    return {entry.member: entry.score for entry in page.entries}


@contextmanager
def client(pipeline: Pipeline, **changes: object) -> Iterator[truerank.Truerank]:
    with truerank.Truerank(msgspec.structs.replace(pipeline.settings, **changes)) as made:
        yield made


def grown_old(pipeline: Pipeline) -> None:
    """Return once what is shown is older than a millisecond, which is more than a test allows."""

    def age_ms() -> int:
        return pipeline.client.top("b").freshness.staleness_ms or 0

    wait_until(lambda: age_ms() > 1, "the projection's answer to be older than a millisecond")


@contextmanager
def stepping(projector: Projector, after_s: float) -> Iterator[None]:
    """Another thread steps once, a little later."""
    timer = threading.Timer(after_s, projector.step)
    timer.start()
    try:
        yield
    finally:
        timer.join()


def test_any_answer_is_the_projections_with_its_age_however_old(stopped: Pipeline) -> None:
    write(stopped, {"ann": 7})

    page = stopped.client.top("b")

    assert (page.freshness.source, scores(page)) == (Source.PROJECTION, {"ann": "10"})
    assert page.freshness.staleness_ms is not None
    assert page.freshness.token is None


def test_any_answer_beyond_the_services_limit_comes_from_the_source(stopped: Pipeline) -> None:
    write(stopped, {"ann": 7})
    grown_old(stopped)
    with client(stopped, fallback_after_ms=1) as reader:
        page = reader.top("b")

    assert (page.freshness.source, scores(page)) == (Source.DATABASE, {"ann": "17"})


def test_any_answer_beyond_the_limit_is_served_with_its_age_where_the_source_is_busy(
    stopped: Pipeline,
) -> None:
    grown_old(stopped)
    with (
        client(stopped, fallback_after_ms=1, fallback_max=1) as reader,
        everybody_waits(stopped, reader),
    ):
        page = reader.top("b")

    assert page.freshness.source is Source.PROJECTION
    assert page.freshness.staleness_ms is not None
    assert page.freshness.staleness_ms > 1


def test_at_least_ones_own_write_waits_for_the_projection(
    idle: Pipeline, projector: Projector
) -> None:
    token = write(idle, {"ann": 7})
    with stepping(projector, after_s=0.05):
        page = idle.client.top("b", consistency=Consistency.at_least(token, wait_ms=20_000))

    assert (page.freshness.source, scores(page)) == (Source.PROJECTION, {"ann": "17"})


def test_at_least_ones_own_write_comes_from_the_source_when_the_wait_is_over(
    stopped: Pipeline,
) -> None:
    token = write(stopped, {"ann": 7})

    page = stopped.client.top("b", consistency=Consistency.at_least(token, wait_ms=1))

    assert (page.freshness.source, scores(page)) == (Source.DATABASE, {"ann": "17"})


def test_a_write_that_is_not_shown_yet_makes_its_writers_place_pending_where_asked(
    idle: Pipeline, projector: Projector
) -> None:
    token = write(idle, {"ann": 7})
    needed = Consistency.at_least(token, or_pending=True)

    before = idle.client.top("b", member="ann", consistency=needed)
    projector.step()
    after = idle.client.top("b", member="ann", consistency=needed)

    (place,) = before.places
    assert (place.pending, place.rank, place.score, before.around) == (True, None, None, ())
    (place,) = after.places
    assert (place.pending, place.rank, place.score) == (False, 1, "17")


def test_a_write_that_is_not_committed_is_not_waited_for_in_vain(stopped: Pipeline) -> None:
    with stopped.connection() as conn:
        (receipt,) = stopped.submit("b", {"ann": 7}, conn)
        assert receipt.token is not None

        began = time.monotonic()
        with pytest.raises(NotCommittedYet):
            stopped.client.top("b", consistency=Consistency.at_least(receipt.token, wait_ms=60_000))
        assert time.monotonic() - began < 30, "it was refused at once"


@pytest.mark.parametrize("ask", ["top", "around", "between", "counts", "histogram"])
def test_pending_is_refused_where_no_member_is_asked_for(stopped: Pipeline, ask: str) -> None:
    token = write(stopped, {"ann": 7})
    given: dict[str, Any] = {
        "around": {"rank": 1},
        "counts": {"scores": [1]},
        "histogram": {"edges": [1]},
    }

    with pytest.raises(InvalidInput) as refused:
        getattr(stopped.client, ask)(
            "b",
            **given.get(ask, {}),
            consistency=Consistency.at_least(token, or_pending=True),
        )

    assert refused.value.field == "else"


def test_who_is_pending_stands_in_the_list_neither(stopped: Pipeline) -> None:
    token = write(stopped, {"ann": 7})
    needed = Consistency.at_least(token, or_pending=True)

    page = stopped.client.top("b", member="ann", consistency=needed)
    among = stopped.client.places("b", ["ann"], among=True, percentile=True, consistency=needed)

    assert [place.pending for place in page.places] == [True]
    assert "ann" not in {entry.member for entry in page.entries}
    (place,) = among.places
    assert (place.pending, place.rank_among, place.percentile) == (True, None, None)


def test_a_command_says_who_is_pending(
    stopped: Pipeline, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    token = write(stopped, {"ann": 7})
    monkeypatch.setenv("TRUERANK_DATABASE_URL", str(stopped.settings.database_url))
    monkeypatch.setenv("TRUERANK_REDIS_URL", str(stopped.settings.redis_url))
    monkeypatch.setenv("TRUERANK_PREFIX", stopped.settings.prefix)

    status = app.run(["places", "b", "ann", "--at-least", token, "--else", "pending"])

    assert (status, capfd.readouterr().out.splitlines()[2]) == (0, "   -      -  ann, pending")


def test_what_will_never_be_shown_is_not_pending_nor_waited_for(stopped: Pipeline) -> None:
    token = write(stopped, {"ann": 7})
    seen, _, life = token.partition(".")
    epoch, timeline, started = life.split("-")
    other = "0" * 8 if epoch != "0" * 8 else "1" * 8
    past = Token(f"{seen}.{other}-{timeline}-{started}")
    unknown = [f"{seen}.{epoch}-{int(timeline, 16) + 7:08X}-{started}"]

    def ask(token: str, **how: Any) -> Page:
        needed = Consistency.at_least(Token(token), **how)
        return stopped.client.top("b", member="ann", consistency=needed)

    began = time.monotonic()
    for how in ({"or_pending": True}, {"wait_ms": 60_000}):
        with pytest.raises(EpochChanged):
            ask(past, **how)
    with pytest.raises(EpochChanged):
        stopped.client.top("b", consistency=Consistency.at_least(past), source="projection")
    for doctored in unknown:
        with pytest.raises(NotCommittedYet):
            ask(doctored, or_pending=True)
    assert time.monotonic() - began < 30, "they were refused at once"
    assert ask(token, or_pending=True).places[0].pending


def test_a_token_of_a_newer_epoch_than_the_copy_is_not_refused(stopped: Pipeline) -> None:
    with client(stopped, board_cache_ms=60_000) as reader:
        assert reader.top("b").freshness.source is Source.PROJECTION
        stopped.conn.execute("UPDATE truerank.setting SET epoch = gen_random_uuid()")
        token = write(stopped, {"ann": 7})
        pending = Consistency.at_least(token, or_pending=True)
        waited = Consistency.at_least(token, wait_ms=1)
        pages = [reader.top("b", member="ann", consistency=c) for c in (pending, waited)]

    for page in pages:
        assert (page.freshness.source, scores(page)) == (Source.DATABASE, {"ann": "17"})


def test_a_write_that_was_rolled_back_asks_for_nothing(stopped: Pipeline) -> None:
    with stopped.connection() as conn:
        (receipt,) = stopped.submit("b", {"ann": 7}, conn)
        conn.rollback()
    assert receipt.token is not None

    page = stopped.client.top("b", consistency=Consistency.at_least(receipt.token, wait_ms=1))

    assert scores(page) == {"ann": "10"}


def test_max_age_is_served_by_the_projection_within_it_and_by_the_source_beyond(
    stopped: Pipeline,
) -> None:
    write(stopped, {"ann": 7})

    old = stopped.client.top("b", consistency=Consistency.max_age(60_000))
    grown_old(stopped)
    new = stopped.client.top("b", consistency=Consistency.max_age(1))

    assert (old.freshness.source, scores(old)) == (Source.PROJECTION, {"ann": "10"})
    assert (new.freshness.source, scores(new)) == (Source.DATABASE, {"ann": "17"})


def test_max_age_is_refused_where_the_source_is_busy(stopped: Pipeline) -> None:
    grown_old(stopped)
    with (
        client(stopped, fallback_max=1) as reader,
        everybody_waits(stopped, reader),
        pytest.raises(NotFreshEnough),
    ):
        reader.top("b", consistency=Consistency.max_age(1))


def test_max_age_is_refused_where_the_projection_is_insisted_on(stopped: Pipeline) -> None:
    grown_old(stopped)

    with pytest.raises(NotFreshEnough):
        stopped.client.top("b", consistency=Consistency.max_age(1), source="projection")


def test_authoritative_is_always_the_sources(stopped: Pipeline) -> None:
    write(stopped, {"ann": 7})

    page = stopped.client.top("b", consistency="authoritative")

    assert (page.freshness.source, scores(page)) == (Source.DATABASE, {"ann": "17"})


def test_a_settled_result_is_never_guessed(stopped: Pipeline) -> None:
    with pytest.raises(NotSettled):
        stopped.client.top("b", consistency="settled")


def test_a_reader_who_passes_its_last_token_never_sees_older(
    idle: Pipeline, projector: Projector
) -> None:
    write(idle, {"ann": 7})
    newest = idle.client.top("b", consistency=Consistency.monotonic_after(None), source="database")

    again = idle.client.top(
        "b", consistency=Consistency.monotonic_after(newest.freshness.token, wait_ms=1)
    )
    projector.step()
    shown = idle.client.top("b", consistency=Consistency.monotonic_after(again.freshness.token))

    assert (again.freshness.source, scores(again)) == (Source.DATABASE, {"ann": "17"})
    assert (shown.freshness.source, scores(shown)) == (Source.PROJECTION, {"ann": "17"})
    assert shown.freshness.token is not None


@pytest.mark.parametrize("first", [True, False])
def test_a_reader_who_compares_is_not_shown_half_a_batch(stopped: Pipeline, first: object) -> None:
    whole = stopped.client.top("b", consistency=Consistency.monotonic_after(None))
    meta = stopped.keys().generation(str(stopped.generation())).meta
    stopped.redis.hset(meta, "pending", "1 x 1")
    last = None if first else whole.freshness.token

    def ask(wait_ms: int) -> Page:
        needed = Consistency.monotonic_after(last, wait_ms=wait_ms)
        return stopped.client.top("b", consistency=needed)

    anybody = stopped.client.top("b").freshness
    from_source = ask(1).freshness
    timer = threading.Timer(0.2, lambda: stopped.redis.hset(meta, "pending", ""))
    timer.start()
    waited_for = ask(60_000).freshness
    timer.join()

    assert (anybody.source, anybody.partial) == (Source.PROJECTION, True)
    assert (from_source.source, from_source.partial) == (Source.DATABASE, False)
    assert (waited_for.source, waited_for.partial) == (Source.PROJECTION, False)


def test_a_writer_is_shown_its_write_in_half_a_batch(idle: Pipeline, projector: Projector) -> None:
    token = write(idle, {"ann": 7})
    projector.step()
    meta = idle.keys().generation(str(idle.generation())).meta
    idle.redis.hset(meta, "pending", "1 x 1")

    page = idle.client.top("b", consistency=Consistency.at_least(token, wait_ms=60_000))

    assert (page.freshness.partial, page.entries[0].score) == (True, "17")


def test_answers_from_the_source_are_limited_and_too_many_are_refused(stopped: Pipeline) -> None:
    stopped.redis.flushdb()
    with client(stopped, fallback_max=1) as reader, everybody_waits(stopped, reader):
        assert_busy(reader)


@pytest.mark.parametrize(
    "text", ["", "x", "1:2", "1:2:3:4.a", "-1.a", "1:2:,.a", "1e3:2:.a", "\N{SUPERSCRIPT TWO}.a"]
)
def test_what_is_no_token_is_refused(idle: Pipeline, text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        idle.client.top("b", consistency=Consistency.at_least(Token(text)))

    assert caught.value.field == "token"


@pytest.mark.parametrize("text", ["at_least", "max_age", "fresh", ""])
def test_a_need_by_name_is_one_that_needs_no_value(idle: Pipeline, text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        idle.client.top("b", consistency=text)

    assert caught.value.field == "consistency"


def assert_busy(reader: truerank.Truerank) -> None:
    with pytest.raises(Busy):
        reader.top("b")


@contextmanager
def everybody_waits(pipeline: Pipeline, reader: truerank.Truerank) -> Iterator[None]:
    """One reader's question to the source hangs, and it is the only one who may ask."""
    told: list[TruerankError] = []

    def ask() -> None:
        try:
            reader.top("b", consistency=Consistency.max_age(1), member="ann")
        except TruerankError as exc:
            told.append(exc)

    reader.top("b")  # so that the board and its season are known
    with pipeline.connection() as conn:
        conn.execute("LOCK TABLE truerank.standing IN ACCESS EXCLUSIVE MODE")
        thread = threading.Thread(target=ask)
        thread.start()
        waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        wait_until(lambda: pipeline.conn.execute(waiting).fetchone() is not None, "a reader waits")
        try:
            yield
        finally:
            conn.rollback()
            thread.join()
    assert not told

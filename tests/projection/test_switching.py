"""Readers move to a new copy only once it is whole, and never to one that shows less."""

import pytest

from tests.projection.pipeline import InterruptedLink, Pipeline
from truerank.outbox.ticks import take_tick
from truerank.projection.copies import Copies, Copy

EPOCH = "0" * 32


def test_a_copy_is_not_read_while_it_holds_more_of_one_member_than_of_another(
    single: Pipeline,
) -> None:
    """A chunk brings rows that are newer than the log has been read; the log must pass it."""
    members = {f"m{i}": 0 for i in range(6)}
    single.submit("b", members)
    link: InterruptedLink = single.link(InterruptedLink)
    projector = single.projector(link, scan_rows_max=4)
    # Both change in one transaction: m0 is in the first chunk, m5 in the last.
    link.after_batch = lambda: single.submit("b", {"m0": 1, "m5": 1})

    while single.generation() is None:
        projector.step()

    page = single.client.places("b", ["m0", "m5"], source="projection")
    first, last = (place.score for place in page.places)
    assert first == last
    link.after_batch = None
    single.settle(projector)


@pytest.fixture
def copies(single: Pipeline) -> Copies:
    return Copies(single.link(), single.settings.prefix)


def whole_copy(single: Pipeline, copies: Copies, epoch: str = EPOCH) -> Copy:
    """A copy of an empty group, filled, and read up to now."""
    tick = take_tick(single.conn, since=None, anyway=True)
    assert tick is not None
    (begun,) = copies.begin(single.conn, [0], epoch, tick)
    single.redis.hset(
        copies.keys(0, begun.generation).meta, mapping={"scan": "done", "high": tick.snapshot}
    )
    (read,) = copies.read([(0, begun.generation)])
    assert read.warm
    return read


def test_readers_move_to_a_copy_that_shows_more_and_not_back(
    single: Pipeline, copies: Copies
) -> None:
    older, newer = whole_copy(single, copies), whole_copy(single, copies)

    assert copies.switch(single.conn, [(newer, None)]) == {0}
    assert copies.switch(single.conn, [(older, newer)]) == set()

    assert single.generation() == newer.generation


def test_of_another_epoch_less_is_more(single: Pipeline, copies: Copies) -> None:
    after = whole_copy(single, copies)
    before = whole_copy(single, copies, epoch="1" * 32)
    assert copies.switch(single.conn, [(before, None)]) == {0}

    assert copies.switch(single.conn, [(after, before)]) == {0}

    assert single.generation() == after.generation


def test_the_copy_before_is_gone_after_a_switch(single: Pipeline, copies: Copies) -> None:
    older, newer = whole_copy(single, copies), whole_copy(single, copies)
    copies.switch(single.conn, [(older, None)])

    assert copies.switch(single.conn, [(newer, older)]) == {0}

    assert copies.read([(0, older.generation)]) == []
    assert copies.listed(single.conn, [0]) == [
        (0, newer.generation, "live"),
        (0, older.generation, "retired"),
    ]


def test_to_switch_twice_to_the_same_copy_keeps_it(single: Pipeline, copies: Copies) -> None:
    """As two workers may that both found it whole."""
    copy = whole_copy(single, copies)

    assert copies.switch(single.conn, [(copy, None)]) == {0}
    assert copies.switch(single.conn, [(copy, None)]) == {0}

    assert copies.read([(0, copy.generation)]) == [copy]


@pytest.mark.parametrize("lacking", ["scan", "pending", "high"])
def test_a_copy_that_lacks_something_is_not_whole(
    single: Pipeline, copies: Copies, lacking: str
) -> None:
    copy = whole_copy(single, copies)
    single.submit("b", {"ann": 1})
    later = take_tick(single.conn, since=None, anyway=True)
    assert later is not None
    value = {"scan": '[1, "ann"]', "pending": f"{copy.cursor}|1", "high": later.snapshot}[lacking]
    single.redis.hset(copies.keys(0, copy.generation).meta, lacking, value)

    (read,) = copies.read([(0, copy.generation)])

    assert not read.warm
    assert copies.switch(single.conn, [(read, None)]) == set()
    assert single.generation() is None

"""A source that went backwards is another epoch: nothing that it no longer holds is shown."""

import pytest

from tests.projection.pipeline import FailingLink, Pipeline, differences
from tests.projection.test_crashes import fails
from truerank.errors import ProjectionUnavailable
from truerank.model import Source


def epoch(single: Pipeline) -> str:
    ((value,),) = single.conn.execute("SELECT epoch FROM truerank.setting").fetchall()
    return str(value.hex)


def scores(single: Pipeline) -> dict[str, str]:
    page = single.client.top("b")
    return {entry.member: entry.score for entry in page.entries}


class Standby:
    """PostgreSQL as a standby had it that is promoted: without the last transactions."""

    def __init__(self, single: Pipeline) -> None:
        self._single = single
        rows = "SELECT array_agg(s) FROM truerank.standing AS s"
        ((self._standings,),) = single.conn.execute(rows).fetchall()
        ((self._tick,),) = single.conn.execute("SELECT max(id) FROM truerank.tick").fetchall()
        ((self._xid,),) = single.conn.execute("SELECT pg_current_xact_id()::text").fetchall()

    def promote(self) -> None:
        conn = self._single.conn
        conn.execute("DELETE FROM truerank.standing")
        conn.execute(
            "INSERT INTO truerank.standing SELECT (s).* FROM unnest(%s::truerank.standing[]) AS s",
            (self._standings,),
        )
        conn.execute("DELETE FROM truerank.tick WHERE id > %s", (self._tick,))
        conn.execute("DELETE FROM truerank.outbox WHERE xid > %s::xid8", (self._xid,))


def test_a_tick_that_is_gone_means_a_new_epoch(single: Pipeline) -> None:
    single.submit("b", {"ann": 1})
    projector = single.projector()
    single.settle(projector)
    before, generation = epoch(single), single.generation()

    single.conn.execute("DELETE FROM truerank.tick")
    single.submit("b", {"ann": 1})

    single.settle(projector)
    assert epoch(single) != before
    assert single.generation() != generation
    assert single.meta()["epoch"] == epoch(single) == single.client.top("b").freshness.epoch


def test_a_tick_of_the_same_number_with_another_nonce_is_another_tick(single: Pipeline) -> None:
    single.submit("b", {"ann": 1})
    projector = single.projector()
    single.settle(projector)
    before = epoch(single)

    single.conn.execute("UPDATE truerank.tick SET nonce = gen_random_uuid()")
    single.submit("b", {"ann": 1})

    single.settle(projector)
    assert epoch(single) != before


def test_what_the_source_lost_is_not_shown_any_longer(single: Pipeline) -> None:
    single.submit("b", {"ann": 1, "bob": 2})
    projector = single.projector()
    single.settle(projector)
    standby = Standby(single)
    single.submit("b", {"ann": 499, "ghost": 1000})
    single.settle(projector)
    assert scores(single) == {"ghost": "1000", "ann": "500", "bob": "2"}

    standby.promote()
    single.submit("b", {"bob": 1})

    single.settle(projector)
    assert scores(single) == {"bob": "3", "ann": "1"}


def test_half_a_batch_that_the_source_lost_is_not_shown_any_longer(single: Pipeline) -> None:
    """T4: the cursor's own tick survived; the tick that covers the half batch did not."""
    single.submit("b", {"ann": 1, "bob": 2})
    single.settle(single.projector())
    standby = Standby(single)
    single.submit("b", {"ann": 499, "bob": 498, "cid": 500})
    link: FailingLink = single.link(FailingLink)
    projector = single.projector(link, call_rows_max=1)
    link.fails_at = 5
    assert fails(projector, steps=1)
    assert single.meta()["pending"] != ""
    assert "500" in scores(single).values()
    before = epoch(single)

    standby.promote()

    single.settle(single.projector())
    assert epoch(single) != before
    assert scores(single) == {"bob": "2", "ann": "1"}


def test_a_chunk_of_a_filling_that_the_source_lost_is_not_kept(single: Pipeline) -> None:
    """T4, for the scan: a chunk may hold rows that are newer than the cursor."""
    single.submit("b", {"ann": 1, "bob": 2})
    projector = single.projector(scan_rows_max=1)
    projector.step()
    standby = Standby(single)
    single.submit("b", {"bob": 998})
    # A step reads the log first. Scores that come between that and its chunk are rare: so the
    # chunks alone here, and then the worker is gone.
    projector._holding.fill()  # noqa: SLF001 - see above
    projector._holding.fill()  # noqa: SLF001 - see above
    before = epoch(single)

    standby.promote()

    single.settle(single.projector())
    assert epoch(single) != before
    assert scores(single) == {"bob": "2", "ann": "1"}


def test_a_copied_database_is_another_epoch(single: Pipeline) -> None:
    single.submit("b", {"ann": 1})
    single.settle(single.projector())
    before = epoch(single)

    single.conn.execute("UPDATE truerank.setting SET system_identifier = 1")

    single.settle(single.projector())
    assert epoch(single) != before
    assert single.meta()["epoch"] == epoch(single)
    single.settle(single.projector())
    assert single.meta()["epoch"] == epoch(single), "noticed once"


def test_no_answer_comes_from_the_copy_of_another_epoch(single: Pipeline) -> None:
    single.submit("b", {"ann": 1})
    single.settle(single.projector())

    single.conn.execute("UPDATE truerank.setting SET epoch = gen_random_uuid()")

    assert single.client.top("b").freshness.source is Source.DATABASE
    with pytest.raises(ProjectionUnavailable, match="another epoch"):
        single.client.top("b", source="projection")


def test_a_cursor_below_the_floor_is_filled_anew_in_the_same_epoch(single: Pipeline) -> None:
    single.submit("b", {"ann": 1})
    projector = single.projector()
    single.settle(projector)
    before, generation = epoch(single), single.generation()

    single.conn.execute("UPDATE truerank.ring SET floor_tick = nextval('truerank.tick_id') + 1")
    single.conn.execute("DELETE FROM truerank.outbox")
    single.submit("b", {"bob": 1})

    single.settle(projector)
    assert epoch(single) == before
    assert single.generation() != generation
    assert differences(single) == []


def test_a_copy_below_the_floor_is_read_until_the_new_one_is_whole(single: Pipeline) -> None:
    single.submit("b", {f"m{i}": i for i in range(9)})
    projector = single.projector(scan_rows_max=2)
    single.settle(projector)
    single.conn.execute("UPDATE truerank.ring SET floor_tick = nextval('truerank.tick_id') + 1")
    single.submit("b", {"bob": 1})

    projector.step()

    assert single.client.top("b").freshness.source is Source.PROJECTION
    single.settle(projector)

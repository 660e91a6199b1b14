"""What a snapshot shows, as PostgreSQL says it, and which of two shows more."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.projection.pipeline import Pipeline
from truerank.outbox.snapshot import Snapshot

XIDS = range(10, 20)


@st.composite
def snapshots(draw: st.DrawFn) -> str:
    """The text of a snapshot among these transactions, as PostgreSQL writes it."""
    xmax = draw(st.integers(XIDS.start, XIDS.stop))
    running = sorted(draw(st.sets(st.sampled_from(XIDS))) & set(range(xmax)))
    return f"{min(running, default=xmax)}:{xmax}:{','.join(map(str, running))}"


def shown(text: str) -> set[int]:
    return {xid for xid in range(XIDS.start - 2, XIDS.stop + 2) if Snapshot.parse(text).shows(xid)}


@given(text=snapshots())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_snapshot_shows_what_postgresql_says_it_does(single: Pipeline, text: str) -> None:
    query = """SELECT x FROM generate_series(8, 22) AS x
               WHERE pg_visible_in_snapshot(x::text::xid8, %s::pg_snapshot) AND x < 22"""

    assert shown(text) == {xid for (xid,) in single.conn.execute(query, (text,)).fetchall()}


@given(one=snapshots(), other=snapshots())
def test_a_snapshot_contains_another_only_if_it_shows_all_of_it(one: str, other: str) -> None:
    if Snapshot.parse(one).contains(Snapshot.parse(other)):
        assert shown(one) >= shown(other)


@given(text=snapshots(), ended=st.sets(st.sampled_from(XIDS)), steps=st.integers(0, 3))
def test_a_later_snapshot_contains_an_earlier_one(text: str, ended: set[int], steps: int) -> None:
    earlier = Snapshot.parse(text)
    later = Snapshot(
        xmin=earlier.xmin, xmax=earlier.xmax + steps, running=earlier.running - frozenset(ended)
    )

    assert later.contains(earlier)
    assert earlier.contains(earlier)


def test_of_two_snapshots_neither_may_contain_the_other() -> None:
    one, other = Snapshot.parse("10:12:10"), Snapshot.parse("11:12:11")

    assert not one.contains(other)
    assert not other.contains(one)

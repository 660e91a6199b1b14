"""Whatever is known of the outbox, nobody reads the whole of it to look up a few transactions."""

from contextlib import closing

import pytest

from tests.projection.pipeline import Pipeline
from truerank.outbox.ticks import Connection

_LOOKS = {
    "rows_waiting": "SELECT truerank.rows_waiting(%(since)s::pg_snapshot)",
    "changed_since": "SELECT truerank.changed_since(%(ranking)s, %(since)s::pg_snapshot)",
    "compared_movers": (
        "SELECT count(*) FROM truerank.compared_movers(%(since)s::pg_snapshot, 0::smallint,"
        " %(ranking)s, 100)"
    ),
    "compared_points": (
        "SELECT count(*) FROM truerank.compared_points(%(since)s::pg_snapshot,"
        " pg_current_snapshot(), 0::smallint, %(ranking)s, ARRAY['m1', 'm2'],"
        " '00000000-0000-0000-0000-000000000000'::uuid, '{}', '{}')"
    ),
    "read_batch": (
        "SELECT count(*) FROM truerank.read_batch(%(since)s::pg_snapshot, pg_current_snapshot(),"
        " '{0}'::smallint[], '{}', '{}', 1000)"
    ),
    "health_state": (
        "SELECT count(*) FROM truerank.health_state('{0,1}'::smallint[],"
        " ARRAY[%(since)s, %(since)s]::pg_snapshot[], ARRAY[now(), now()])"
    ),
}
_READ_WHOLE = """
    SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_xact_user_tables
    WHERE schemaname = 'truerank' AND relname LIKE 'outbox%'"""


@pytest.fixture
def few_large(single: Pipeline) -> Pipeline:
    """An outbox that two transactions wrote, of which PostgreSQL knows just that."""
    for _ in range(2):
        single.submit("b", {f"m{n}": 1 for n in range(2000)})
    single.conn.execute("ANALYZE truerank.outbox")
    return single


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
def test_looks_for_the_transactions_of_a_snapshot_go_by_the_index(
    few_large: Pipeline, mode: str
) -> None:
    (ranking,) = few_large.rankings()
    late = few_large.connection()
    since = _seen_running(few_large, late)
    late.commit()

    read: dict[str, int] = {}
    for name, look in _LOOKS.items():
        with (
            closing(few_large.connection()) as conn,
            conn.transaction(),
        ):
            conn.execute("SELECT set_config('plan_cache_mode', %s, false)", (mode,))
            conn.execute(look, {"ranking": ranking, "since": since})
            ((rows,),) = conn.execute(_READ_WHOLE).fetchall()
            read[name] = int(rows)

    assert read == dict.fromkeys(_LOOKS, 0)


def test_what_committed_late_is_found_by_the_index(few_large: Pipeline) -> None:
    late = few_large.connection()
    since = _seen_running(few_large, late)
    waiting = "SELECT truerank.rows_waiting(%s::pg_snapshot)"
    assert few_large.conn.execute(waiting, (since,)).fetchone() == (False,)

    late.commit()

    assert few_large.conn.execute(waiting, (since,)).fetchone() == (True,)
    found = few_large.conn.execute(
        "SELECT member FROM truerank.outbox_of(%s::pg_snapshot)", (since,)
    ).fetchall()
    assert found == [("ann",)]


def _seen_running(pipeline: Pipeline, late: Connection) -> str:
    """A snapshot in which a transaction that scored for ann runs, and a later one has ended."""
    pipeline.submit("b", {"ann": 1}, late)
    pipeline.submit("b", {"m1": 1})
    ((since,),) = pipeline.conn.execute("SELECT pg_current_snapshot()::text").fetchall()
    return str(since)

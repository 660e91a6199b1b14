"""Who closes a season is cut off in the middle, asks again as all do, and settles it once."""

import random
from datetime import timedelta
from typing import LiteralString

import pytest

from tests.history.recorder import FIRST_DAY, random_event
from tests.history.scene import Scene

# The connection on which a season's row is changed for the n-th time ends before it commits.
CUT: LiteralString = """
    CREATE TABLE history.cut (at bigint);
    CREATE SEQUENCE history.passage;
    CREATE FUNCTION history.cut_off() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
        IF nextval('history.passage') = (SELECT at FROM history.cut) THEN
            PERFORM pg_terminate_backend(pg_backend_pid()), pg_sleep(60);
        END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER cut AFTER UPDATE ON truerank.ranking
        FOR EACH ROW EXECUTE FUNCTION history.cut_off();
"""
DONE = """
    SELECT (SELECT last_value FROM history.passage),
           (SELECT count(*) FROM truerank.settlement),
           ARRAY(SELECT action FROM truerank.audit WHERE subject = 'race' ORDER BY id)"""


@pytest.mark.parametrize("passage", [1, 2, 3], ids=["seal", "barrier", "settle"])
def test_a_close_that_is_cut_off_anywhere_is_sent_again_and_settles_once(
    observed: Scene, passage: int
) -> None:
    rng = random.Random(passage)
    start, end = FIRST_DAY + timedelta(hours=6), FIRST_DAY + timedelta(hours=40)
    observed.pipeline.client.create_season("sum", "race", start, end)
    observed.recorder.submit("sum", [random_event(rng, f"before {n}", f"m{n}") for n in range(9)])
    observed.conn.execute(CUT)
    observed.conn.execute("INSERT INTO history.cut VALUES (%s)", (passage,))

    observed.close("sum", "race")

    observed.recorder.submit("sum", [random_event(rng, f"after {n}", f"m{n}") for n in range(9)])
    ((passages, settlements, actions),) = observed.conn.execute(DONE).fetchall()
    assert (passages, settlements) == (4, 1), "one of four was cut off"
    assert [action for action in actions if action != "create_season"] == [
        "seal_season", "settle_season"
    ]  # fmt: skip
    observed.judge(seed=passage)

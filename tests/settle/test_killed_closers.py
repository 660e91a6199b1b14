"""Several closers at once, all killed in the middle: the season is settled once all the same."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest

import truerank
from tests.settle.conftest import Connection, Months
from truerank.crashpoints import VARIABLE

BY: Any = Months.BY
CLOSERS = 5
POINTS = ("season_sealed", "barrier_passed", "season_settled")
DEADLINE_S = 60.0
# Each with connections of its own; how they ended, -9 where by SIGKILL.
GANG = """
import json, os, sys, traceback, truerank
connect = truerank.connect  # loaded once for all
def close(number):
    try:
        with connect(sys.argv[1], sys.argv[2]) as client:
            if sys.argv[3] == "due":
                client.close_due(actor=f"doomed {number}", timeout_s=30.0)
            else:
                client.close_season("b", "2024-06", actor=f"doomed {number}")
    except BaseException:  # or the child would go on as its parent
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
pids = []
for number in range(int(sys.argv[4])):
    pids.append(os.fork())
    if pids[-1] == 0:
        close(number)
print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]))
"""


def gang(database_url: str, redis_url: str, how: str, point: str) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-c", GANG, database_url, redis_url, how, str(CLOSERS)],
        env={**os.environ, VARIABLE: point},
        stdout=subprocess.PIPE,
        timeout=DEADLINE_S,
        check=True,
    )
    statuses: list[int] = json.loads(done.stdout)
    return statuses


@pytest.mark.parametrize("doomed", tuple(product(("close", "due"), POINTS)), ids=" at ".join)
def test_closers_killed_together_leave_one_settlement_to_whoever_comes_next_week(
    months: Months, conn: Connection, database_url: str, redis_url: str, doomed: tuple[str, str]
) -> None:
    tr, (how, point) = months.tr, doomed
    months.rules(auto_close=True)
    conn.execute("UPDATE truerank.board SET auto_close_from = '2024-06-15'")
    tr.add_webhook("w", "https://example.com/", ["season.final"], **BY)
    tr.make_award_rule("b", truerank.AwardRule(period="month", name="gold", ranks=(1, 1)), **BY)
    months.submit(("e1", "A", 5), ("e2", "B", 9))

    killed = gang(database_url, redis_url, how, point)
    left = tr.season("b", "2024-06").state
    for _ in range(2):  # next week, and the week after
        tr.close_due(actor="next week")
        tr.close_season("b", "2024-06", actor="next week")

    # Whoever comes second to a settlement finds it done, and lives.
    assert set(killed) <= {-9, 0}
    assert killed.count(-9) >= (1 if point == "season_settled" else CLOSERS)
    assert left == ("final" if point == "season_settled" else "sealed")
    (settlement,) = tr.settlements("b", "2024-06")
    assert (settlement.revision, settlement.population, settlement.total) == (1, 2, "14")
    assert months.proven() == [(1, True, True)]
    assert months.settled() == [(1, "B", "9"), (2, "A", "5")]
    assert [(a.member, a.state) for a in tr.awards("b", "2024-06")] == [("B", "given")]
    told = [each.data["season"] for each in tr.deliveries("w")]
    assert told.count("2024-06") == 1
    actions = conn.execute("SELECT action FROM truerank.audit WHERE subject = '2024-06'")
    assert sorted(actions.fetchall()) == [("seal_season",), ("settle_season",)]
    (standing, _) = tr.submit_score("b", event_id="e3", member="A", value=1).standings[::-1]
    assert standing.season == f"{datetime.now(UTC):%Y-%m}"
    assert tr.season("b", standing.season).state == "open"

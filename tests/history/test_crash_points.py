"""A process killed at any point of its way leaves nothing lost, doubled or invented."""

import ast
import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import truerank
from tests.history.recorder import FIRST_DAY, Traffic, random_event
from tests.history.scene import Scene, wait_until
from truerank.command.attach import AttachmentSpec, attach_table, find_attachment
from truerank.crashpoints import CRASH_POINTS, VARIABLE
from truerank.model import ScoreEvent
from truerank.repair.rebuild import ask_rebuilds

KILLED = -signal.SIGKILL
WAY_BACK_MS = 200
SEED = int(os.environ.get("TRUERANK_SEED", "1"))

Case = tuple[str, int, str]

# Which passage of a point is the fatal one, and what the worker finds: nothing in Redis, whole
# copies, copies whose rankings are damaged (few or many), a rebuild that was asked for and from
# which there is a way back for a moment, a ring that is due, or an order to stop.
WORKER_CASES = [
    ("leases_renewed", 1, "nothing"),
    ("before_begin", 1, "damaged"),
    ("generation_listed", 1, "damaged"),
    ("generation_begun", 1, "damaged"),
    ("before_tick", 2, "nothing"),
    ("after_tick", 2, "whole"),
    ("batch_read", 2, "whole"),
    ("before_apply", 2, "whole"),
    ("after_apply", 3, "whole"),
    ("between_calls", 1, "large"),
    ("after_cursor", 2, "whole"),
    ("chunk_read", 3, "damaged"),
    ("chunk_covered", 2, "nothing"),
    ("chunk_applied", 3, "damaged"),
    ("scan_done", 1, "damaged"),
    ("before_switch", 1, "damaged"),
    ("after_switch", 1, "nothing"),
    ("after_switch", 1, "damaged"),
    ("meta_retired", 1, "damaged"),
    ("between_slices", 1, "many"),
    ("generation_retired", 1, "damaged"),
    ("copy_proven", 1, "asked"),
    ("after_switch", 1, "asked"),
    ("switch_noted", 1, "asked"),
    ("former_retired", 1, "asked"),
    ("before_turn", 1, "due"),
    ("after_turn", 1, "due"),
    ("before_release", 1, "stop"),
    ("after_release", 1, "stop"),
]
# Other passages of the same points, and other things to find.
FURTHER_WORKER_CASES = [
    ("leases_renewed", 3, "whole"),
    ("before_begin", 1, "nothing"),
    ("generation_listed", 1, "nothing"),
    ("generation_begun", 1, "nothing"),
    ("after_tick", 1, "nothing"),
    ("batch_read", 1, "nothing"),
    ("before_apply", 1, "whole"),
    ("after_apply", 1, "whole"),
    ("after_cursor", 1, "nothing"),
    ("chunk_read", 1, "nothing"),
    ("chunk_applied", 1, "nothing"),
    ("scan_done", 1, "nothing"),
    ("before_switch", 1, "nothing"),
    ("before_begin", 1, "asked"),
    ("generation_listed", 1, "asked"),
    ("chunk_applied", 2, "asked"),
    ("scan_done", 1, "asked"),
    ("copy_proven", 1, "nothing"),
    ("switch_noted", 1, "damaged"),
]

PIECES = {
    "large": {"call_rows_max": 1},  # more calls than one round trip has
    "many": {"call_rows_max": 400, "scan_rows_max": 400},
}

# Where a process that is told to stand still, and goes on when another has long taken over, could
# write something old.
ZOMBIE_CASES = [
    ("batch_read", 2, "whole"),
    ("before_apply", 2, "whole"),
    ("chunk_covered", 2, "nothing"),
    ("after_switch", 1, "damaged"),
    ("copy_proven", 1, "asked"),
]
FURTHER_ZOMBIE_CASES = [
    ("generation_listed", 1, "nothing"),
    ("between_calls", 1, "large"),
    ("scan_done", 1, "damaged"),
    ("before_switch", 1, "damaged"),
    ("after_switch", 1, "asked"),
]
# A replica that was cut off when the worker died comes up as the primary: what was acknowledged
# since is gone, and the cursor with it.
FAILOVERS = [
    ("after_apply", 2, "whole"),
    ("after_cursor", 3, "whole"),
    ("scan_done", 1, "damaged"),
    ("after_switch", 1, "damaged"),
    ("switch_noted", 1, "asked"),
]
FURTHER_FAILOVERS = [
    ("batch_read", 2, "whole"),
    ("chunk_applied", 2, "damaged"),
    ("switch_noted", 1, "damaged"),
    ("meta_retired", 1, "damaged"),
    ("generation_retired", 1, "damaged"),
    ("copy_proven", 1, "asked"),
    ("after_switch", 1, "asked"),
]
OTHER_POINTS = {
    "before_submit", "submit_executed", "after_submit", "before_flush", "after_flush",
    "backfill_slice", "import_slice", "purge_slice", "engine_started", "engines_started",
    "season_sealed", "barrier_passed", "season_settled", "fill_slice",
    "freeze_taken", "freeze_slice_logged", "erasures_swept", "group_purged",
    "delivery_claimed", "delivery_sent",
}  # fmt: skip


def soaked(cases: list[Case]) -> list[Any]:
    """Cases that repeat a point of another case: with the other tests that take minutes."""
    return [pytest.param(*case, marks=pytest.mark.soak) for case in cases]


def set_up(scene: Scene, found: str) -> None:
    """Write a few standings, and let the worker find what a case wants it to."""
    rng = random.Random(SEED)
    scene.pieces = PIECES.get(found, {})
    for board in scene.boards:
        events = [random_event(rng, f"first {n}", f"m{n}") for n in range(8)]
        scene.recorder.submit(board.key, events)
    if found == "many":  # more rankings than one slice of a removal has
        days = [
            replace(random_event(rng, f"day {n}", "m0"), occurred_at=FIRST_DAY + timedelta(days=n))
            for n in range(530)
        ]
        scene.recorder.submit("sum", days)
    if found != "nothing":
        scene.project()
    if found in {"damaged", "many"}:
        scene.damage_rankings()
    if found == "asked":
        asked = ask_rebuilds([0, 1], actor="test", keep_ms=WAY_BACK_MS)
        scene.pipeline.client.run(asked)
    if found == "large":
        scene.recorder.submit("sum", [random_event(rng, f"large {n}", f"l{n}") for n in range(90)])
    if found == "due":
        scene.conn.execute("UPDATE truerank.ring SET turned_at = '-infinity'")


def start(scene: Scene, point: str, found: str, crash_at: str) -> int:
    """Start the worker that won't get through."""
    pid = scene.start_worker(crash_at=crash_at)
    if found == "stop":
        wait_until(
            lambda: (
                scene.pipeline.conn.execute(
                    "SELECT FROM truerank.lease WHERE worker IS NOT NULL"
                ).fetchone()
                is not None
            ),
            point,
        )
        scene.nursery.signal(pid, signal.SIGTERM)
    return pid


def kill(scene: Scene, point: str, found: str, passage: int) -> None:
    """Start a worker, and see it die at a passage of a point."""
    killed = start(scene, point, found, f"{point}:{passage}")
    assert scene.nursery.wait(killed) == KILLED


def go_on(scene: Scene, traffic: Traffic) -> None:
    """Let another worker take over, and judge what became of everything."""
    scene.start_worker()
    scene.let_pass(20)
    scene.finish(traffic, seed=SEED)


@pytest.mark.parametrize(
    ("point", "passage", "found"), [*WORKER_CASES, *soaked(FURTHER_WORKER_CASES)]
)
def test_a_worker_killed_anywhere_is_replaced_and_nothing_is_lost_or_invented(
    observed: Scene, point: str, passage: int, found: str
) -> None:
    set_up(observed, found)
    with observed.traffic(SEED) as traffic:
        kill(observed, point, found, passage)
        observed.look()

        go_on(observed, traffic)


@pytest.mark.parametrize(
    ("point", "passage", "found"), [*ZOMBIE_CASES, *soaked(FURTHER_ZOMBIE_CASES)]
)
def test_a_worker_that_stood_still_while_another_took_over_changes_nothing(
    observed: Scene, point: str, passage: int, found: str
) -> None:
    set_up(observed, found)
    with observed.traffic(SEED) as traffic:
        zombie = start(observed, point, found, f"{point}:{passage}:STOP")
        wait_until(lambda: observed.nursery.stands_still(zombie), f"the worker is at {point}")
        observed.look()
        observed.start_worker()
        receipts = observed.recorder.submit("sum", [random_event(random.Random(), "heir", "heir")])
        token = receipts[0].token
        assert token is not None
        observed.pipeline.client.wait_visible(token, ["sum", "best"], timeout_s=60)
        observed.let_pass(20)

        observed.nursery.signal(zombie, signal.SIGCONT)
        observed.let_pass(20)

        observed.finish(traffic, seed=SEED)


@pytest.mark.parametrize(("point", "passage", "found"), [*FAILOVERS, *soaked(FURTHER_FAILOVERS)])
def test_a_failover_to_a_replica_that_lacks_the_last_writes_is_read_on_from(
    observed: Scene, point: str, passage: int, found: str
) -> None:
    set_up(observed, found)
    with observed.traffic(SEED) as traffic:
        replica = observed.saved()
        kill(observed, point, found, passage)
        observed.go_back(replica)
        observed.look()

        go_on(observed, traffic)


def test_the_command_itself_dies_where_its_environment_says(observed: Scene) -> None:
    set_up(observed, "whole")
    kept = {name: text for name, text in os.environ.items() if not name.startswith("TRUERANK_")}
    with observed.traffic(SEED) as traffic:
        killed = subprocess.run(
            [sys.executable, "-m", "truerank", "worker"],
            env=kept
            | {
                "TRUERANK_DATABASE_URL": str(observed.settings.database_url),
                "TRUERANK_REDIS_URL": str(observed.settings.redis_url),
                VARIABLE: "after_apply:2",
            },
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
        assert killed.returncode == KILLED

        go_on(observed, traffic)


def test_a_point_that_does_not_exist_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from truerank.crashpoints import crashpoint; crashpoint('x')"],
        env={**os.environ, VARIABLE: "nowhere"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    assert "TRUERANK_CRASH_AT=nowhere: there is no such point" in done.stderr


def test_every_point_in_the_code_is_listed_and_every_listed_one_is_killed_at() -> None:
    assert truerank.__file__ is not None
    called = {
        ast.literal_eval(node.args[0])
        for path in Path(truerank.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "crashpoint"
    }

    listed = [name for name, _ in CRASH_POINTS]
    assert sorted(called) == sorted(listed)
    assert called == {point for point, _, _ in WORKER_CASES} | OTHER_POINTS


def some_events(number: int) -> list[ScoreEvent]:
    rng = random.Random(SEED)
    return [random_event(rng, f"e{n}", f"m{n % 4}") for n in range(number)]


@pytest.mark.parametrize(
    ("role", "point", "passage"),
    [
        ("submit", "before_submit", 1),
        ("submit", "after_submit", 1),
        ("submit_with_row", "submit_executed", 1),
        ("gather", "before_flush", 1),
        ("gather", "after_flush", 1),
        ("load", "import_slice", 2),
    ],
)
def test_a_writer_killed_anywhere_sends_again_and_has_one_effect(
    observed: Scene, role: str, point: str, passage: int
) -> None:
    observed.conn.execute("CREATE TABLE own (event_id text)")
    events = some_events(10)
    observed.recorder.send("sum", events)
    more: dict[str, Any] = {"batch_events": 3} if role == "load" else {}

    killed = observed.nursery.start(
        role, observed.settings, crash_at=f"{point}:{passage}", board="sum", events=events, **more
    )
    assert observed.nursery.wait(killed) == KILLED
    again = observed.nursery.start(role, observed.settings, board="sum", events=events, **more)
    assert observed.nursery.wait(again) == 0

    assert observed.recorder.submit("sum", events)
    source = observed.judge(seed=SEED)
    assert len(source.events) == 10
    own = observed.conn.execute("SELECT count(*) FROM own").fetchone()
    assert own == (10 if role == "submit_with_row" else 0,)


def test_a_backfill_killed_between_its_slices_goes_on_where_it_was(observed: Scene) -> None:
    events = some_events(10)
    observed.conn.execute(
        "CREATE TABLE completion (id text PRIMARY KEY, who text, points bigint, at timestamptz)"
    )
    with observed.conn.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO completion VALUES (%s, %s, %s, %s)",
            [(e.event_id, e.member, e.value, e.occurred_at) for e in events],
        )
    attached = observed.pipeline.client.run(
        attach_table(
            AttachmentSpec(
                board="sum",
                table="public.completion",
                event_id="id",
                member="who",
                value="points",
                occurred_at="at",
            ),
            actor="test",
            reason="test",
        )
    )
    observed.recorder.send("sum", events)

    fill: dict[str, Any] = {"attachment": attached.id, "rows_max": 3}
    killed = observed.nursery.start(
        "fill_back", observed.settings, crash_at="backfill_slice:2", **fill
    )
    assert observed.nursery.wait(killed) == KILLED
    again = observed.nursery.start("fill_back", observed.settings, **fill)
    assert observed.nursery.wait(again) == 0

    assert len(observed.judge(seed=SEED).events) == 10
    found = observed.pipeline.client.run(find_attachment(attached.id))
    assert (found.backfill.rows, found.backfill.applied) == (10, 10), "no row was looked at twice"


def test_a_purge_killed_between_its_slices_leaves_the_rest_to_the_next(observed: Scene) -> None:
    set_up(observed, "whole")
    observed.pipeline.client.delete_board("sum", actor="test", reason="test")

    killed = observed.nursery.start(
        "purge", observed.settings, crash_at="purge_slice:2", rows_max=3
    )
    assert observed.nursery.wait(killed) == KILLED
    again = observed.nursery.start("purge", observed.settings, rows_max=3)
    assert observed.nursery.wait(again) == 0

    left = observed.conn.execute("SELECT DISTINCT board_id FROM truerank.event").fetchall()
    assert len(left) == 2
    observed.project()


@pytest.mark.parametrize("point", ["engine_started", "engines_started"])
def test_an_owner_of_engines_killed_while_they_start_leaves_none_of_them(
    observed: Scene, tmp_path: Path, point: str
) -> None:
    folder = str(tmp_path / "data")
    killed = observed.nursery.start("own_engines", observed.settings, crash_at=point, folder=folder)
    assert observed.nursery.wait(killed) == KILLED

    again = observed.nursery.start("own_engines", observed.settings, folder=folder)
    assert observed.nursery.wait(again) == 0

"""A new copy is filled while scores pour in; an old worker wakes up with what it read before."""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from truerank.drill.processes import wait_for
from truerank.drill.scene import Scene
from truerank.drill.stage import BOARD, Stage
from truerank.model import ScoreEvent, Source
from truerank.repair.rebuild import Rebuild, ask_rebuilds, rebuild_states

_MEMBERS = 300
_WRITERS = 2
_BATCH = 20
_KEEP_MS = 0  # the copy before goes at once: whatever is there beside the live one is new


def play(scene: Scene) -> None:
    """See the module."""
    _under_load(scene)
    _late_chunk(scene)
    scene.same_everywhere()


def _under_load(scene: Scene) -> None:
    stage = scene.stage
    stage.worker()
    members = [f"m-{i}" for i in range(_MEMBERS)]
    stage.submit(dict.fromkeys(members, 1))
    scene.until_whole()
    watch = stage.watch()
    before = stage.live()
    with watch.asking(), _pouring(stage, members) as counted:
        began = time.monotonic()
        request = _ask_rebuild(stage)
        wait_for(lambda: stage.live() not in {"", before}, "readers read the new copy")
        took = time.monotonic() - began
    written = sum(counted.values())
    scene.did(f"A rebuild; {_WRITERS} writers commit {written} scores meanwhile, in {took:.1f} s")
    scene.until_whole(began)
    scene.saw(watch.words())
    scene.check("every answer had all members: no gap, no mixture", _all_whole(watch.boards))
    scene.check("answers went forward only", watch.steps_back() == 0)
    scene.check("no reader was refused", not watch.refused, ", ".join(set(watch.refused)))
    scene.check(
        "every score that was acknowledged is there, once",
        stage.scores(Source.PROJECTION) == {m: str(1 + counted[m]) for m in members},
        f"{written} scores",
    )
    wait_for(lambda: _asked(stage, request).ended, "the request is answered")
    asked = _asked(stage, request)
    scene.check(
        "readers were let to the new copy after it was compared with PostgreSQL",
        asked.state == "switched" and asked.code is None,
        f"{asked.state}",
    )
    stage.dismiss_workers()


def _all_whole(boards: set[tuple[tuple[str, str], ...]]) -> bool:
    return bool(boards) and all(len(board) == _MEMBERS for board in boards)


@contextmanager
def _pouring(stage: Stage, members: list[str]) -> Iterator[Counter[str]]:
    """Writers that commit without a pause; at the end of the block, what each member got."""
    stop = threading.Event()
    counted: Counter[str] = Counter()
    counting = threading.Lock()

    def pour(writer: int) -> None:
        rng = random.Random(writer)  # noqa: S311 - who scores next
        batch = 0
        while not stop.is_set():
            batch += 1
            chosen = rng.choices(members, k=_BATCH)
            stage.client.submit_scores(
                BOARD,
                [
                    ScoreEvent(event_id=f"poured-{writer}-{batch}-{i}", member=member, value=1)
                    for i, member in enumerate(chosen)
                ],
            )
            with counting:
                counted.update(chosen)

    threads = [threading.Thread(target=pour, args=(writer,)) for writer in range(_WRITERS)]
    for thread in threads:
        thread.start()
    try:
        yield counted
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _late_chunk(scene: Scene) -> None:
    """Let a chunk of a scan arrive after the log has brought what is newer."""
    stage = scene.stage
    first = stage.worker("chunk_covered:1:STOP")
    before = stage.live()
    stage.submit({"late": 7})
    scene.until_whole()
    _ask_rebuild(stage)
    wait_for(lambda: first.is_frozen, "the worker stands still with a chunk in its hands")
    scene.did("A second rebuild; its worker freezes after it read late's 7 for the new copy")
    (warming,) = _copies(stage) - {before}
    stage.submit({"late": 18})
    second = stage.worker("chunk_read:1:STOP", ready=False)
    wait_for(lambda: second.is_frozen, "the second worker stands still")
    scene.check(
        "another worker takes over, and brings late's 25 into the new copy",
        stage.shown_score("late", warming) == "25",
        stage.shown_score("late", warming),
    )
    scanned = stage.meta("scan", warming)
    scene.did("The first worker wakes up, and sends the 7 that it read")
    first.thaw()
    wait_for(lambda: stage.meta("scan", warming) != scanned, "the late chunk arrives")
    if not scene.check(
        "what is older than what is there changes nothing",
        stage.shown_score("late", warming) == "25",
        stage.shown_score("late", warming),
    ):
        return  # it would never be whole
    second.thaw()
    first.stop()
    wait_for(lambda: stage.live() not in {"", before}, "readers read the new copy")
    scene.until_whole()
    scene.check("the copy that was filled so is the one that readers read", stage.live() == warming)


def _copies(stage: Stage) -> set[str]:
    """The copies of the board's group in Redis."""
    names: list[bytes] = list(stage.redis.scan_iter(f"{stage.group.generation('*').meta}"))
    return {name.decode().split(":")[-2] for name in names}


def _asked(stage: Stage, request: list[int]) -> Rebuild:
    """How far a request is."""
    (asked,) = stage.client.run(rebuild_states(request))
    return asked


def _ask_rebuild(stage: Stage) -> list[int]:
    """Ask for a new copy of the board's group; the number of the request."""
    group = stage.client.board(BOARD).group
    return stage.client.run(ask_rebuilds([group], actor="drill", keep_ms=_KEEP_MS))

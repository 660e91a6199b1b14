"""Workers that die in the middle of something, or wake up too late."""

import signal
import time

from truerank.drill.processes import wait_for
from truerank.drill.scene import STORES, Scene
from truerank.drill.stage import BOARD
from truerank.drill.wire import redis_through
from truerank.model import Source

_MEMBERS = 100  # a call for each, so that some are sent and some are not


def killed(scene: Scene) -> None:
    """Kill a worker twice: inside a batch, and between what it applied and knowing of it."""
    _killed_inside(scene)
    scene.stage.dismiss_workers()
    _killed_unaware(scene)
    scene.same_everywhere()


def _killed_unaware(scene: Scene) -> None:
    stage = scene.stage
    with redis_through(stage.settings.redis_url or "") as (wire, url):
        worker = stage.worker(redis_url=url)
        wire.lose_reply(b"ada")
        stage.submit({"ada": 5})
        wait_for(lambda: wire.lost > 0, "Redis applied it, and the worker didn't hear of it")
        worker.kill()
    scene.did("kill -9 again, after Redis applied ada's 5 and before the worker heard of it")
    scene.check("Redis has it", stage.shown_score("ada", stage.live()) == "5")
    began = time.monotonic()
    stage.worker()
    scene.until_whole(began)
    sides = scene.compare("ada", "m-0", "m-99")
    scene.check("the next worker knows what was done: 5, not 10", sides.projection["ada"] == "5")


def _killed_inside(scene: Scene) -> None:
    stage = scene.stage
    stage.worker().stop()
    scores = {f"m-{i}": 1000 - i for i in range(_MEMBERS)}
    scene.did(f"One transaction gives {_MEMBERS} members scores. kill -9 in the middle of them")
    stage.submit(scores)
    worker = stage.worker("between_calls:1", ready=False, TRUERANK_CALL_ROWS_MAX="1")
    wait_for(lambda: worker.ended_by is not None, "the worker is killed")
    scene.check("the worker was killed there", worker.ended_by == signal.SIGKILL)
    page = stage.client.top(BOARD, limit=_MEMBERS)
    shown = len(page.entries)
    source, partial = page.freshness.source, page.freshness.partial
    marked = ", marked as a part" if partial else ""
    scene.saw(f"{shown} of {_MEMBERS} members, from {STORES[source]}{marked}")
    scene.check(
        "an answer that shows a part of a batch says so",
        shown == _MEMBERS or partial,
        f"{shown} rows",
    )
    began = time.monotonic()
    stage.worker()
    scene.until_whole(began)
    scene.check(
        "all of them are shown, each once",
        stage.scores(Source.PROJECTION) == {m: str(score) for m, score in scores.items()},
    )


def late(scene: Scene) -> None:
    """Freeze a worker while what it sent is on its way; another takes over; then it arrives."""
    stage = scene.stage
    with redis_through(stage.settings.redis_url or "") as (wire, url):
        first = stage.worker(redis_url=url)
        wire.hold_request(b"ada")
        stage.submit({"ada": 10})
        wait_for(lambda: wire.held > 0, "the worker sends ada's 10")
        first.freeze()
        scene.did("A worker sends ada's 10, which is held up on its way, and freezes")
        second = stage.worker()
        began = time.monotonic()
        stage.submit({"ada": 7, "bao": 25})
        scene.until_whole(began)
        sides = scene.compare("ada", "bao")
        scene.check("another one takes over its boards", sides.source == sides.projection)
        second.freeze()
        cursor, before = stage.meta("cursor"), stage.scores(Source.PROJECTION)
        scene.did("The second one freezes too; what the first one sent arrives")
        wire.release()
        wait_for(lambda: wire.is_answered, "Redis answers the late call")
        scene.compare("ada", "bao")
        scene.check("the late 10 changes no score", stage.scores(Source.PROJECTION) == before)
        scene.check("nor does it set the cursor back", stage.meta("cursor") == cursor)
        first.kill()
    began = time.monotonic()
    second.thaw()
    scene.until_whole(began)
    scene.same_everywhere()

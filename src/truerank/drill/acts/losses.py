"""Redis loses what it has, or goes back to what it had."""

import shutil
import time
from pathlib import Path

from truerank.drill.scene import STORES, Scene
from truerank.drill.stage import duplicate
from truerank.drill.watching import Watch
from truerank.model import Source

_SCORES = {"ada": 17, "bao": 25, "chi": 3}


def flushed(scene: Scene) -> None:
    """FLUSHALL, while a reader asks without a pause."""
    stage = scene.stage
    stage.worker()
    stage.submit(_SCORES)
    scene.until_whole()
    watch = stage.watch()
    with watch.asking():
        scene.did("FLUSHALL: Redis is empty, while a reader asks without a pause")
        began = time.monotonic()
        stage.redis.flushall()
        scene.until_whole(began)
    scene.never_wrong(watch, _SCORES)
    sides = scene.compare(*_SCORES)
    scene.check("all is back in Redis", sides.source == sides.projection)
    scene.same_everywhere()


def hole(scene: Scene) -> None:
    """One place is lost, as by an eviction that should never have been."""
    stage = scene.stage
    worker = stage.worker()
    stage.submit(_SCORES)
    scene.until_whole()
    worker.stop()
    copy, ranking = stage.copy(), stage.ranking
    scene.did("The worker is stopped, and bao's place removed from Redis")
    stage.redis.zremrangebyrank(copy.places(ranking), 0, 0)
    sight = stage.watch().look()
    scene.saw(f"{len(sight.scores)} members, from {STORES[sight.source]}")
    scene.check(
        "no reader gets a ranking with a hole: PostgreSQL answers",
        sight.source is Source.DATABASE and len(sight.scores) == len(_SCORES),
    )
    scene.did("The worker is started again, and chi scores 1")
    began = time.monotonic()
    stage.worker()
    stage.submit({"chi": 1})
    scene.until_whole(began)
    scene.same_everywhere()


def rolled_back(scene: Scene) -> None:
    """Redis starts with the files of a minute ago."""
    stage = scene.stage
    older = stage.folder / "older"
    stage.worker()
    stage.submit({"ada": 10})
    scene.until_whole()
    with stage.halted() as folder:
        duplicate(folder / "valkey", older)
    stage.worker()
    stage.submit({"ada": 7, "bao": 25, "chi": 3})
    scene.until_whole()
    generation = stage.live()
    scene.did("Redis is stopped, its files replaced by older ones, and started again")
    with stage.halted() as folder:
        _replace(folder / "valkey", older)
    sight = stage.watch().look()
    age = "unknown" if sight.staleness_ms is None else f"{sight.staleness_ms} ms"
    scene.saw(f"ada {sight.of('ada')}, from {STORES[sight.source]}, of age {age}")
    scene.check(
        "what is old isn't passed off as new: its age is unknown until the next tick",
        sight.source is Source.DATABASE or sight.staleness_ms is None,
    )
    watch = stage.watch()
    with watch.asking():
        began = time.monotonic()
        stage.worker()
        scene.until_whole(began)
    scene.never_wrong(watch, {"ada": 10}, _SCORES)
    _check_read_on(scene, generation, watch)
    scene.same_everywhere()


def _check_read_on(scene: Scene, generation: str, watch: Watch) -> None:
    scene.check(
        "the cursor went back with the data, so the worker read on from there: no new copy",
        scene.stage.live() == generation,
    )
    scene.check("answers went forward only", watch.steps_back() == 0)


def _replace(folder: Path, by: Path) -> None:
    shutil.rmtree(folder)
    by.rename(folder)

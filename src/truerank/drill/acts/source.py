"""PostgreSQL goes back to an older state, as after a restore, or a failover that lost writes."""

import shutil
import time

from truerank.drill.scene import Scene, raised
from truerank.drill.stage import BOARD, duplicate
from truerank.errors import EpochChanged
from truerank.model import Consistency, Source

_GHOST = 999


def play(scene: Scene) -> None:
    """See the module."""
    stage = scene.stage
    older = stage.folder / "older"
    stage.worker()
    stage.submit({"ada": 10, "bao": 25})
    scene.until_whole()
    with stage.halted() as folder:
        duplicate(folder / "postgres", older)
    stage.worker()
    (*_, receipt) = stage.submit({"ada": 7, "ghost": _GHOST})
    assert receipt.token is not None, "a command that was applied has a token"
    scene.until_whole()
    scene.compare("ada", "bao", "ghost")
    epoch = stage.client.top(BOARD).freshness.epoch
    scene.did("PostgreSQL is restored from before ada's 7 and ghost's 999, and ada scores 1")
    with stage.halted() as folder:
        shutil.rmtree(folder / "postgres")
        older.rename(folder / "postgres")
    stage.submit({"ada": 1})
    scene.compare("ada", "bao", "ghost")
    began = time.monotonic()
    stage.worker()
    promise = "what PostgreSQL no longer knows goes from Redis too"
    scene.until_whole(began, promise)
    sides = scene.compare("ada", "bao", "ghost")
    scene.check(
        promise,
        sides.projection == {"ada": "11", "bao": "25", "ghost": None},
    )
    now = stage.client.top(BOARD).freshness
    scene.check(
        "readers are told: a new epoch",
        now.epoch != epoch and now.source is Source.PROJECTION,
        f"{epoch[:8]} is now {now.epoch[:8]}",
    )
    needed = Consistency.at_least(receipt.token, wait_ms=0)
    scene.check(
        "whoever still holds a token of the lost write is told that it is lost",
        raised(EpochChanged, lambda: stage.client.top(BOARD, consistency=needed)),
    )
    scene.same_everywhere()

"""The published experiment: a repeat, a worker that stands still, a score changed by hand."""

import time
from functools import partial

from truerank.drill.scene import STORES, Scene, raised
from truerank.drill.stage import BOARD
from truerank.errors import EventConflict
from truerank.model import Outcome, Source
from truerank.repair.reconcile import reconcile

_BEFORE = {"ada": "10", "bao": None}
_AFTER = {"ada": "17", "bao": "25"}
_FORGED = 999


def play(scene: Scene) -> None:
    """See the module."""
    _repeat(scene)
    _stand_still(scene)
    _forge(scene)
    scene.same_everywhere()


def _repeat(scene: Scene) -> None:
    stage, client = scene.stage, scene.stage.client
    worker = stage.worker()
    command = partial(client.submit_score, BOARD, event_id="completion-1", member="ada")
    scene.did("ada scores 10 under the id completion-1")
    first = command(value=10)
    assert first.token is not None, "a command that was applied has a token"
    client.wait_visible(first.token, [BOARD])
    sides = scene.compare("ada", "bao")
    version = first.standings[0].version
    scene.check(
        "the first command counts, and both stores show it",
        sides.source == sides.projection == _BEFORE,
        f"10 at version {version}",
    )
    scene.did("The same command comes again, as after a lost answer; then its id with 11")
    second = command(value=10)
    now = second.standings[0]
    scene.check(
        "the same command again has no second effect",
        second.outcome is Outcome.DUPLICATE and (now.score, now.version) == ("10", version),
        f"{second.outcome}: {now.score} at version {now.version}",
    )
    refused = raised(EventConflict, lambda: command(value=11))
    scene.check("the same id with another value is a conflict, not a guess", refused)
    worker.stop()


def _stand_still(scene: Scene) -> None:
    stage = scene.stage
    scene.did("The worker is stopped. ada scores 7, bao scores 25")
    stage.submit({"ada": 7, "bao": 25})
    sides = scene.compare("ada", "bao")
    scene.check("PostgreSQL has 17 and 25", sides.source == _AFTER)
    scene.check("Redis still shows 10, a state that once was", sides.projection == _BEFORE)
    sight = stage.watch().look()
    scene.saw(
        f"ada {sight.of('ada')}, from {STORES[sight.source]}, at most {sight.staleness_ms} ms old"
    )
    scene.did("The worker is started again")
    began = time.monotonic()
    stage.worker()
    scene.until_whole(began)
    sides = scene.compare("ada", "bao")
    scene.check("Redis shows both", sides.projection == _AFTER)


def _forge(scene: Scene) -> None:
    stage = scene.stage
    before = stage.scores(Source.PROJECTION)
    scene.did(f"ada's score becomes {_FORGED} in Redis, by hand, with all that belongs to it")
    stage.forge("ada", _FORGED)
    sides = scene.compare("ada", "bao")
    scene.check("nothing in Redis itself contradicts it", sides.projection["ada"] == str(_FORGED))
    report = reconcile(stage.settings, board=BOARD, repair=True).line()
    scene.did(f"truerank reconcile {BOARD} --repair:\n{report}")
    scene.check(
        "reconciliation finds one corrupt standing, and mends that one",
        report == "checked 2: corrupt 1, current 1, repaired 1",
    )
    scene.check("the ranking is what it was before", stage.scores(Source.PROJECTION) == before)

"""Answers that get lost after everything was done."""

import time
from functools import partial

import msgspec

from truerank.client import Truerank
from truerank.drill.processes import wait_for
from truerank.drill.scene import Scene
from truerank.drill.stage import BOARD
from truerank.drill.wire import postgresql_through, redis_through
from truerank.errors import DatabaseUnavailable
from truerank.model import Outcome


def play(scene: Scene) -> None:
    """Lose PostgreSQL's answer to a command, then Redis's answer to a worker."""
    _commit(scene)
    _apply(scene)
    scene.same_everywhere()


def _commit(scene: Scene) -> None:
    stage = scene.stage
    with postgresql_through(stage.settings.database_url or "") as (wire, url):
        through = msgspec.structs.replace(stage.settings, database_url=url)
        with Truerank(through) as client:
            client.board(BOARD)
            command = partial(
                client.submit_score, BOARD, event_id="completion-1", member="ada", value=10
            )
            wire.lose_reply(b"completion-1")
            scene.did("ada scores 10; PostgreSQL commits, and the wire breaks before it can say so")
            try:
                command()
            except DatabaseUnavailable as exc:
                scene.saw(f"the command may be committed or not: {exc.reason}")
            again = command()
    scene.check("the reply was lost after the commit", wire.lost == 1)
    scene.check(
        "the caller sends the same command again, and it counts once",
        again.outcome is Outcome.DUPLICATE and again.standings[0].score == "10",
        f"{again.outcome}: {again.standings[0].score}",
    )


def _apply(scene: Scene) -> None:
    stage = scene.stage
    with redis_through(stage.settings.redis_url or "") as (wire, url):
        stage.worker(redis_url=url)
        wire.lose_reply(b"bao")
        scene.did("bao scores 25; Redis applies it, and the worker never hears of it")
        began = time.monotonic()
        stage.submit({"bao": 25})
        wait_for(lambda: wire.lost > 0, "the reply is lost")
        scene.until_whole(began)
        sides = scene.compare("ada", "bao")
        scene.check("the worker finds out what was done", sides.source == sides.projection)
        stage.dismiss_workers()
    stage.worker()

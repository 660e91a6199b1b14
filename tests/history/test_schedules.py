"""Whatever goes wrong, and in whatever order: nothing is lost, doubled or invented.

TRUERANK_SEED=n repeats the choices of a schedule; when exactly they happen is up to the machine.
"""

import os
import random

import pytest

from tests.history.scene import Scene
from tests.history.trouble import Trouble

SEEDS = [int(os.environ["TRUERANK_SEED"])] if "TRUERANK_SEED" in os.environ else [1, 2, 3, 4]


def run(scene: Scene, seed: int, seconds: float) -> None:
    trouble = Trouble(scene, random.Random(seed))
    with scene.traffic(seed) as traffic:
        trouble.make(seconds)
        traffic.check()
        scene.finish(traffic, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_schedule_of_faults_breaks_no_promise(troubled: Scene, seed: int) -> None:
    run(troubled, seed, seconds=2.5)


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(100, 130))
def test_many_long_schedules_of_faults_break_no_promise(troubled: Scene, seed: int) -> None:
    run(troubled, seed, seconds=12.0)

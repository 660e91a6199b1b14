"""Play acts one after the other, each on engines of its own, in a temporary folder."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import redis

from truerank.drill.acts import experiment, losses, rebuild, replies, source, workers
from truerank.drill.processes import WAIT_S_MAX, DrillStuck
from truerank.drill.scene import ActOver, Scene
from truerank.drill.stage import prepared, stage
from truerank.drill.story import ActResult, Check, Teller, act_json
from truerank.errors import TruerankError


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One act of the drill."""

    name: str
    title: str
    play: Callable[[Scene], None]


ACTS = (
    Act(name="experiment", title="The published experiment", play=experiment.play),
    Act(name="killed", title="A worker is killed in the middle of a batch", play=workers.killed),
    Act(name="late", title="What a worker sent arrives after another took over", play=workers.late),
    Act(name="replies", title="Replies are lost after the work was done", play=replies.play),
    Act(name="flushed", title="Redis is emptied", play=losses.flushed),
    Act(name="hole", title="One place is lost in Redis", play=losses.hole),
    Act(name="rolled-back", title="Redis goes back to an older state", play=losses.rolled_back),
    Act(name="source", title="PostgreSQL goes back to an older state", play=source.play),
    Act(name="rebuild", title="A new copy is filled while scores pour in", play=rebuild.play),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    """All that was played."""

    acts: tuple[ActResult, ...]
    postgres_version: str
    valkey_version: str
    duration_ms: int

    @property
    def passed(self) -> bool:
        """Whether every act kept every promise."""
        return all(act.passed for act in self.acts)


def drill_json(drill: Drill, *, broken: str | None) -> dict[str, Any]:
    """A drill as a plain value for JSON; `broken` names the rule that was missing on purpose."""
    return {
        "passed": drill.passed,
        "broken": broken,
        "postgres_version": drill.postgres_version,
        "valkey_version": drill.valkey_version,
        "duration_ms": drill.duration_ms,
        "acts": [act_json(act) for act in drill.acts],
    }


def play(
    names: Sequence[str],
    teller: Teller,
    *,
    patience_s: float = WAIT_S_MAX,
    opening: Callable[[str, str], None] = lambda _postgres, _valkey: None,
) -> Drill:
    """Play acts.

    Args:
        names: of the acts, in the order in which they are played.
        teller: hears of everything as it happens.
        patience_s: how long what was broken may take to become whole, in seconds.
        opening: told the versions of the engines before the first act.

    Raises:
        EngineError: the engines could not be started.
    """
    began = time.monotonic()
    acts = {act.name: act for act in ACTS}
    results = []
    with tempfile.TemporaryDirectory(prefix="truerank-drill-") as folder:
        model = Path(folder) / "model"
        engines = prepared(model)
        opening(engines.postgres_version, engines.valkey_version)
        for number, name in enumerate(names, 1):
            result = ActResult(name=name, title=acts[name].title)
            teller.begins(number, result)
            began_act = time.monotonic()
            with _failures(teller, result), stage(model, Path(folder) / name) as made:
                scene = Scene(stage=made, teller=teller, result=result, patience_s=patience_s)
                acts[name].play(scene)
            result.duration_ms = round((time.monotonic() - began_act) * 1000)
            teller.ends(result)
            results.append(result)
    return Drill(
        acts=tuple(results),
        postgres_version=engines.postgres_version,
        valkey_version=engines.valkey_version,
        duration_ms=round((time.monotonic() - began) * 1000),
    )


@contextmanager
def _failures(teller: Teller, result: ActResult) -> Iterator[None]:
    """Let an act end where what it rests on fails, and have it told."""
    try:
        yield
    except ActOver:
        pass  # what went wrong was told where it did
    except (DrillStuck, TruerankError, psycopg.Error, redis.RedisError) as exc:
        check = Check(promise="the act goes on to its end", kept=False, found=f"{exc}"[:300])
        result.checks.append(check)
        teller.checked(check)

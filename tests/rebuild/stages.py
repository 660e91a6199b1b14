"""What tests of rebuilds do again and again."""

import time
from collections.abc import Callable
from typing import Any

from tests.projection.pipeline import DEADLINE_S, Pipeline
from truerank.projection.projector import Projector
from truerank.repair.rebuild import Rebuild, ask_rebuilds, rebuild_states


def ask(pipeline: Pipeline, *groups: int, **how: Any) -> int:
    """Ask for a rebuild of the groups, by default of the first; the number of the last request."""
    return pipeline.client.run(ask_rebuilds(groups or (0,), actor="test", **how))[-1]


def state(pipeline: Pipeline, request: int) -> Rebuild:
    (found,) = pipeline.client.run(rebuild_states([request]))
    return found


def step_until(projector: Projector, condition: Callable[[], Any], awaited: str) -> None:
    """Step until something is true; fail with what was awaited where it stays away."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"still not true: {awaited}"
        projector.step()


def carry_out(pipeline: Pipeline, projector: Projector, request: int) -> Rebuild:
    """Step until a request has ended, and tell how."""
    step_until(projector, lambda: state(pipeline, request).ended, "the request has ended")
    return state(pipeline, request)


def generations(pipeline: Pipeline, kind: str) -> list[str]:
    """The copies that PostgreSQL lists in a state."""
    rows = pipeline.conn.execute(
        "SELECT replace(id::text, '-', '') FROM truerank.generation WHERE state = %s", (kind,)
    ).fetchall()
    return [name for (name,) in rows]


def expire(pipeline: Pipeline) -> None:
    """Let the time be over for which copies before were to follow along."""
    pipeline.conn.execute("UPDATE truerank.generation SET kept_until = '-infinity'")

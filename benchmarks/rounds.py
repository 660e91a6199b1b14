"""Rounds of one side, measured from the first submit until everything is visible in Redis."""

import time
from contextlib import ExitStack
from dataclasses import dataclass

import psycopg

from benchmarks.load import Load
from benchmarks.pipeline import Pipeline
from benchmarks.processes import started


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one side did in one round."""

    events: int
    submit_s: float  # from the first submit until the last answer
    visible_s: float  # from the first submit until all was visible

    @property
    def events_per_s(self) -> float:
        """Events that went all the way, per second."""
        return self.events / self.visible_s


def run_round(pipeline: Pipeline, database_url: str, load: Load) -> Round:
    """Run one side alone: its worker and its clients, until Redis shows all they submitted.

    PostgreSQL writes a checkpoint before, so that no side pays for pages of the other.
    """
    with ExitStack() as stack:
        stack.enter_context(started(pipeline.worker()))
        clients = [stack.enter_context(started(task)) for task in pipeline.clients(load)]
        with psycopg.connect(database_url, autocommit=True) as conn:
            conn.execute("CHECKPOINT")
        for client in clients:
            client.begin()
        submitted = [client.result() for client in clients]
        pipeline.await_visible(submitted)
        visible = time.monotonic()
    began = min(part.began for part in submitted)
    return Round(
        events=sum(part.events for part in submitted),
        submit_s=max(part.ended for part in submitted) - began,
        visible_s=visible - began,
    )

"""Saturated, from the first submit until every score is visible in Valkey, beside the textbook."""

from collections.abc import Callable

from benchmarks.load import Load
from benchmarks.pipeline import EVENTS_PER_CALL, Pipeline, Truerank
from benchmarks.raw_redis import write_rate
from benchmarks.result import Bar, Result, median, versions
from benchmarks.rounds import Round, run_round
from benchmarks.textbook import Textbook
from truerank.embedded import Engines

ROUNDS = 3


def end_to_end(engines: Engines, progress: Callable[[str], None], *, short: bool) -> Result:
    """Events per second of both sides in turns, each on a standing of every member.

    Both sides submit for the same time. At the end the order in Valkey is compared with the
    order in SQL, byte for byte, and the sum of all scores with what was submitted.
    """
    members = 10_000 if short else 100_000
    seconds = 2.0 if short else 20.0
    sides: list[Pipeline] = [Truerank(engines, members), Textbook(engines, members)]
    for side in sides:
        progress(f"a standing for each of {members:,} members: {side.name}")
        side.prepare()
    rounds: dict[str, list[Round]] = {side.name: [] for side in sides}
    for number in range(ROUNDS):
        for side in sides:
            progress(f"round {number + 1} of {ROUNDS}: {side.name}")
            load = Load(members=members, seconds=seconds, seed=f"{side.name}/{number}")
            rounds[side.name].append(run_round(side, engines.database_url, load))
    progress("comparing Valkey with PostgreSQL")
    for side in sides:
        side.verify()
    rates = {name: [r.events_per_s for r in done] for name, done in rounds.items()}
    ours, textbook = median(rates["truerank"]), median(rates["textbook"])
    return Result(
        name="end_to_end",
        short=short,
        ratio=ours / textbook,
        ratio_of="events/s of Truerank by events/s of the textbook pipeline",
        bars=[
            Bar(
                of="times the events/s of the textbook pipeline",
                value=ours / textbook,
                bar=8,
                at_least=True,
            )
        ],
        sizes={
            "members": members,
            "seasons": 1,
            "connections": 2,
            "events_per_call": EVENTS_PER_CALL,
            "textbook_connections": 8,
            "client_processes": 2,
            "worker_processes": 1,
            "seconds_per_round": seconds,
            "events": sum(r.events for r in rounds["truerank"]),
            "textbook_events": sum(r.events for r in rounds["textbook"]),
        },
        engines=versions(engines),
        rounds=rates,
        rounds_of="events/s from the first submit until all are visible",
        figures={
            "order in Valkey equals order in SQL": "yes, byte for byte",
            "Truerank, s from the last answer until all is visible": median(
                [r.visible_s - r.submit_s for r in rounds["truerank"]]
            ),
            "textbook, s from the last answer until all is visible": median(
                [r.visible_s - r.submit_s for r in rounds["textbook"]]
            ),
            "raw Redis, members/s": write_rate(engines.redis_url, members),
        },
    )

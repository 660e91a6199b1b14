"""Wherever a worker dies or a reply is lost, the next worker ends at what SQL says."""

import random
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.projection.pipeline import Believer, FailingLink, Pipeline, differences
from truerank.errors import ProjectionUnavailable
from truerank.model import Source
from truerank.projection.projector import Projector

LOST = pytest.mark.parametrize("lost", ["request", "reply"])


def fails(projector: Projector, steps: int) -> bool:
    """Whether the projector is cut off within so many steps."""
    try:
        for _ in range(steps):
            projector.step()
    except ProjectionUnavailable:
        return True
    return False


def cut_off_everywhere(pipeline: Pipeline, *, lost: str, **settings: Any) -> Iterator[int]:
    """Projectors that are cut off at the first, second, third ... command, until one gets through.

    Before each the caller may prepare something; after each it looks at what was left.
    """
    for n in count():
        link: FailingLink = pipeline.link(FailingLink)
        projector = pipeline.projector(link, **settings)
        link.fails_at, link.executed = n, lost == "reply"
        cut_off = fails(projector, steps=8)
        yield n
        if not cut_off:
            assert projector.whole, "so few steps can't be the whole way"
            return


def check_answers(pipeline: Pipeline, scores: dict[str, int]) -> None:
    """A reader is never shown an empty board, nor a score that nobody had."""
    page = pipeline.client.top("b", limit=1000)
    assert page.total > 0
    assert {entry.member: int(entry.score) for entry in page.entries}.items() <= scores.items()


@LOST
def test_a_worker_cut_off_at_any_command_of_a_first_filling_leaves_it_to_the_next(
    single: Pipeline, lost: str
) -> None:
    scores = {f"m{i}": i for i in range(5)}
    single.submit("b", scores)

    for n in cut_off_everywhere(single, lost=lost, scan_rows_max=2, call_rows_max=1):
        check_answers(single, scores)
        scores["late"] = n + 1
        single.submit("b", {"late": 1})
        single.settle(single.projector())
        assert single.client.top("b").freshness.source is Source.PROJECTION

        single.redis.flushdb()
        single.conn.execute("DELETE FROM truerank.generation")


@LOST
def test_a_worker_cut_off_at_any_call_of_a_batch_leaves_it_to_the_next(
    single: Pipeline, lost: str
) -> None:
    scores = {f"m{i}": i for i in range(6)}
    history = set(scores.items())
    single.submit("b", scores)
    single.settle(single.projector())
    generation = single.generation()

    for n in cut_off_everywhere(single, lost=lost, call_rows_max=1):
        assert single.generation() == generation
        if n:
            page = single.client.top("b", limit=100, source="projection")
            shown = {(entry.member, int(entry.score)) for entry in page.entries}
            assert shown <= history, "a score that nobody had"
            single.settle(single.projector())
            assert single.generation() == generation, "read on, not filled anew"
        for member in ("m1", "m2", "m3", "m4"):
            scores[member] += 10
            history.add((member, scores[member]))
        single.submit("b", dict.fromkeys(("m1", "m2", "m3", "m4"), 10))

    single.settle(single.projector())


def test_the_same_worker_goes_on_after_a_lost_reply(single: Pipeline) -> None:
    link: FailingLink = single.link(FailingLink)
    single.submit("b", {f"m{i}": i for i in range(5)})
    projector = single.projector(link, call_rows_max=1)
    single.settle(projector)

    for n in range(12):
        single.submit("b", {f"m{i}": 1 for i in range(5)})
        link.fails_at, link.executed = n, True
        fails(projector, steps=2)
        link.fails_at = None
        single.settle(projector)


@pytest.mark.parametrize("seed", range(4))
def test_two_workers_on_one_group_are_harmless(single: Pipeline, seed: int) -> None:
    """Both believe to hold the leases: a lease that passed is noticed late."""
    random_ = random.Random(seed)
    single.submit("b", {f"m{i}": i for i in range(5)})
    options: Any = {"call_rows_max": 2, "scan_rows_max": 2}
    workers = [single.projector(worker_=Believer.new(1000), **options) for _ in range(2)]
    versions: dict[str, int] = {}

    for _ in range(60):
        if random_.random() < 0.5:
            single.submit("b", {f"m{random_.randrange(9)}": 1 for _ in range(4)})
        random_.choice(workers).step()
        shown = versions_shown(single)
        assert all(shown.get(m, -1) >= v for m, v in versions.items()), "a version went back"
        versions = shown

    single.settle(workers[0])
    single.settle(workers[1])
    assert workers[1].whole


def versions_shown(single: Pipeline) -> dict[str, int]:
    generation = single.generation()
    if generation is None:
        return {}
    copy = single.keys().generation(generation)
    shown: dict[str, int] = {}
    for ranking in single.rankings():
        raw: Any = single.redis.hgetall(copy.shown(ranking))
        shown |= {member.decode(): int.from_bytes(value[:8]) for member, value in raw.items()}
    return shown


def test_a_zombie_that_wakes_up_late_changes_nothing(single: Pipeline) -> None:
    single.submit("b", {"ann": 1, "bob": 2, "cid": 3})
    link: FailingLink = single.link(FailingLink)
    zombie = single.projector(link, call_rows_max=1)
    single.settle(zombie)
    single.submit("b", {"ann": 10, "bob": 10, "cid": 10})
    link.fails_at = 2
    assert fails(zombie, steps=1), "cut off inside its batch"
    heir = single.projector()
    single.settle(heir)
    single.submit("b", {"ann": 100})
    single.settle(heir)
    before = single.meta()

    link.fails_at = None
    zombie.step()

    assert differences(single) == []
    after = single.meta()
    assert int(after["tick"]) >= int(before["tick"])


def test_a_worker_that_died_twenty_times_after_writing_leaves_one_effect(single: Pipeline) -> None:
    """PRJ-4: the reply to the same batch is lost again and again."""
    single.submit("b", {"ann": 1})
    single.settle(single.projector())
    single.submit("b", {"ann": 6})

    for _ in range(20):
        link: FailingLink = single.link(FailingLink)
        projector = single.projector(link)
        link.fails_at, link.executed = 3, True
        fails(projector, steps=1)

    single.settle(single.projector())
    page = single.client.top("b", source="projection")
    assert [(entry.member, entry.score) for entry in page.entries] == [("ann", "7")]


def test_rows_whose_versions_are_passed_are_done_with_at_once(single: Pipeline) -> None:
    """PRJ-12: a rolled-back cursor brings them again; they are not read a third time."""
    single.submit("b", {"ann": 1})
    projector = single.projector()
    single.settle(projector)
    before = single.meta()
    single.submit("b", {"ann": 2})
    single.settle(projector)
    generation = single.generation()
    assert generation is not None
    single.redis.hset(
        single.keys().generation(generation).meta,
        mapping={name: before[name] for name in ("cursor", "snapshot", "tick")},
    )

    projector = single.projector()
    projector.step()

    assert differences(single) == []
    assert single.meta()["cursor"] != before["cursor"]
    assert projector.step() is False, "nothing is left to read"
    assert single.generation() == generation


def test_old_repeated_and_crossed_rows_end_at_the_newest(several: Pipeline) -> None:
    """PRJ-1: everything since the beginning is delivered once more, in pieces."""
    projector = several.projector(batch_rows_max=1)
    several.settle(projector)
    starts = {group: several.meta(group) for group in range(3)}
    for value in (30, 20, 50, 40):
        for group in range(3):
            several.submit(f"b{group}", {"ann": value, f"only {value}": 1})
    several.settle(projector)

    for group, meta in starts.items():
        generation = several.generation(group)
        assert generation is not None
        several.redis.hset(
            several.keys(group).generation(generation).meta,
            mapping={name: meta[name] for name in ("cursor", "snapshot", "tick", "pending")},
        )
        several.settle(several.projector(batch_rows_max=1, call_rows_max=1))

    assert several.client.place("b1", "ann", "all").places[0].score == "140"

"""What a client can tell of its answers and tokens by itself: the same as the stores would."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import truerank
from tests.projection.pipeline import Pipeline
from truerank.errors import EpochChanged, InvalidInput, NotComparable
from truerank.model import Consistency, Freshness, ScoreEvent, Source, Token
from truerank.projection.projector import Projector
from truerank.read.shapes import freshness_json

NEW = Consistency.monotonic_after(None)


def write(pipeline: Pipeline, member: str) -> Token:
    (receipt,) = pipeline.submit("b", {member: 1})
    assert receipt.token is not None
    return receipt.token


@pytest.mark.parametrize("source", list(Source))
@pytest.mark.parametrize("told", [lambda freshness: freshness, freshness_json])
def test_an_answer_shows_what_was_committed_before_it_whoever_began_first(
    idle: Pipeline, projector: Projector, source: Source, told: Callable[[Freshness], Any]
) -> None:
    def answer() -> Any:
        idle.settle(projector)
        return told(idle.client.top("b", consistency=NEW, source=source).freshness)

    with idle.connection() as conn:
        event = ScoreEvent(event_id="slow", member="slow", value=1)
        (slow,) = truerank.submit_scores(conn, "b", [event])
        assert slow.token is not None
        quick = write(idle, "quick")
        first = answer()
        conn.commit()
        second = answer()

        assert truerank.shows(first, quick)
        assert not truerank.shows(first, slow.token)
        assert truerank.shows(second, slow.token)
        late = write(idle, "late")
        assert not truerank.shows(second, late)


def test_of_two_answers_neither_may_show_all_that_the_other_does(
    idle: Pipeline, projector: Projector
) -> None:
    idle.settle(projector)
    first, again = (idle.client.top("b", consistency=NEW).freshness for _ in range(2))
    write(idle, "bob")
    source = idle.client.top("b", consistency=NEW, source=Source.DATABASE).freshness
    assert None not in {first.token, again.token, source.token}

    assert truerank.shows(again, str(first.token))
    assert truerank.shows(first, str(again.token))
    assert truerank.shows(source, str(first.token))
    assert not truerank.shows(first, str(source.token))


def test_a_write_that_was_rolled_back_is_no_reason_to_wait(idle: Pipeline) -> None:
    with idle.connection() as conn:
        event = ScoreEvent(event_id="slow", member="slow", value=1)
        (receipt,) = truerank.submit_scores(conn, "b", [event])
        conn.rollback()
    assert receipt.token is not None

    answer = idle.client.top("b", consistency=NEW, source=Source.DATABASE).freshness

    assert truerank.shows(answer, receipt.token)


def test_what_cannot_be_told_is_neither_yes_nor_no(idle: Pipeline) -> None:
    token = write(idle, "bob")
    seen, _, incarnation = token.partition(".")
    epoch, timeline, started = incarnation.split("-")
    answer = idle.client.top("b", consistency=NEW, source=Source.DATABASE).freshness
    plain = idle.client.top("b", source=Source.DATABASE).freshness

    with pytest.raises(NotComparable, match="monotonic"):
        truerank.shows(plain, token)
    with pytest.raises(NotComparable, match="does not know"):
        truerank.shows(answer, Token(f"{seen}.{epoch}-{int(timeline, 16) + 7:08X}-{started}"))
    other = "0" * 8 if epoch != "0" * 8 else "1" * 8
    for told in (answer, plain, freshness_json(answer)):
        with pytest.raises(EpochChanged):
            truerank.shows(told, Token(f"{seen}.{other}-{timeline}-{started}"))
    with pytest.raises(NotComparable):
        truerank.shows(msgspec.structs.replace(answer, token=token), token)
    with pytest.raises(NotComparable):
        truerank.shows({}, token)
    with pytest.raises(InvalidInput):
        truerank.shows(answer, "yesterday")


def test_only_an_answer_that_is_to_be_compared_carries_its_snapshot(idle: Pipeline) -> None:
    token = write(idle, "bob")

    for consistency, carries in (
        (Consistency(), False),
        (Consistency.max_age(0), False),
        (Consistency.authoritative(), False),
        (Consistency.at_least(token), True),
        (NEW, True),
    ):
        shape = freshness_json(idle.client.top("b", consistency=consistency).freshness)
        assert ("token" in shape, "lives" in shape) == (carries, carries)

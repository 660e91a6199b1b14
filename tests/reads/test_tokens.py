"""What is no token, or none of this server, is refused at once; what its reader saw holds."""

import time
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

import truerank
from tests.projection.pipeline import Pipeline
from tests.reads.test_consistency import client, everybody_waits, grown_old, write
from truerank.errors import DatabaseUnavailable, InvalidInput, NotCommittedYet, NotFreshEnough
from truerank.model import Consistency, Freshness, Source, Token
from truerank.read import tokens
from truerank.read.consistency import Judge
from truerank.steps import Query, Request, Steps, run_blocking

LIFE = "0a1b2c3d-00000001-65a8f0c3d2e1f"


def fresh(age_ms: int | None, snapshot: str = "9:9:") -> Freshness:
    return Freshness(
        source=Source.PROJECTION, epoch="0a1b2c3d" + "0" * 24, generation="g", tick=5,
        projected_through=datetime(2026, 1, 1, tzinfo=UTC), staleness_ms=age_ms,
        token=Token(f"{snapshot}.{LIFE}"), lives=LIFE,
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "9", f".{LIFE}", "9.", "1.x", f"9.{LIFE}x", f"9.{LIFE[:-3]}", f"9.{LIFE}\n", f" 9.{LIFE}",
        f"9\n.{LIFE}", f"9.{LIFE.upper()}", f"9:3:.{LIFE}", f"3:9:1.{LIFE}", f"3:9:9.{LIFE}",
        f"{2**64}.{LIFE}", f"99999999999999999999.{LIFE}", f"1:99999999999999999999:.{LIFE}",
        f"9.{LIFE}.{LIFE}",
    ],
)  # fmt: skip
def test_what_was_garbled_or_cut_is_no_token(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        tokens.parse(Token(text), "at_least")

    assert refused.value.field == "at_least"


def test_what_postgresql_writes_is_a_token(stopped: Pipeline) -> None:
    written = write(stopped, {"ann": 7})
    page = stopped.client.top(
        "b", consistency=Consistency.at_least(written, wait_ms=0), source="database"
    )

    assert page.freshness.token is not None
    assert tokens.parse(written).transaction == int(written.partition(".")[0])
    assert tokens.parse(page.freshness.token).snapshot is not None
    assert tokens.parse(Token(f"{2**64 - 1}.{LIFE}")).transaction == 2**64 - 1
    assert tokens.parse(Token(f"3:9:3,8.{LIFE}")).snapshot is not None


def test_what_no_transaction_of_this_server_has_come_to_is_not_waited_for(
    stopped: Pipeline,
) -> None:
    life = write(stopped, {"ann": 7}).partition(".")[2]
    began = time.monotonic()

    for seen in ("99999999999", "1:99999999999:", f"{2**63}:{2**63}:"):
        token = Token(f"{seen}.{life}")
        with pytest.raises(NotCommittedYet):
            stopped.client.top("b", consistency=Consistency.at_least(token, wait_ms=60_000))
        with pytest.raises(NotCommittedYet):
            stopped.client.wait_visible(token, ["b"], timeout_s=60)

    assert time.monotonic() - began < 30, "they were refused at once"


def test_the_token_of_an_open_transaction_is_not_waited_for_to_be_visible(
    stopped: Pipeline,
) -> None:
    with stopped.connection() as conn:
        (receipt,) = stopped.submit("b", {"ann": 7}, conn)
        assert receipt.token is not None

        began = time.monotonic()
        with pytest.raises(NotCommittedYet, match="isn't committed"):
            stopped.client.wait_visible(receipt.token, ["b"], timeout_s=60)
        assert time.monotonic() - began < 30, "it was refused at once"


def test_a_token_is_no_leave_to_be_older_than_the_service_allows(stopped: Pipeline) -> None:
    first = stopped.client.top("b", consistency=Consistency.monotonic_after(None)).freshness.token
    assert first is not None
    grown_old(stopped)
    needs = (Consistency.at_least(first), Consistency.monotonic_after(first), Consistency.any())
    with client(stopped, fallback_after_ms=1) as reader:
        pages = [reader.top("b", consistency=need) for need in needs]
        named = reader.top("b", consistency=Consistency.max_age(60_000))
        for need in needs:
            with pytest.raises(NotFreshEnough):
                reader.top("b", consistency=need, source="projection")

    assert {page.freshness.source for page in pages} == {Source.DATABASE}
    assert named.freshness.source is Source.PROJECTION, "who names an age gets what it allows"


def test_what_shows_the_token_and_is_old_is_better_than_nothing(stopped: Pipeline) -> None:
    first = stopped.client.top("b", consistency=Consistency.monotonic_after(None)).freshness.token
    grown_old(stopped)
    with (
        client(stopped, fallback_after_ms=1, fallback_max=1) as reader,
        everybody_waits(stopped, reader),
    ):
        page = reader.top("b", consistency=Consistency.monotonic_after(first))

    assert page.freshness.source is Source.PROJECTION
    assert (page.freshness.staleness_ms or 0) > 1


def test_an_answer_that_was_held_is_judged_by_its_age_now() -> None:
    token = Token(f"8.{LIFE}")
    for need in (Consistency.at_least(token), Consistency.any(), Consistency.max_age(15)):
        judge = Judge(need, fallback_after_ms=15)
        assert judge.allows(fresh(5), held_ms=10)
        assert not judge.allows(fresh(5), held_ms=11)
        assert not judge.allows(fresh(None))
    later = Judge(Consistency.at_least(Token(f"9.{LIFE}")), fallback_after_ms=15)
    assert not later.allows(fresh(5))
    assert later.lacks(fresh(5))


def asked_while_away(
    reader: truerank.Truerank, needed: Consistency, *, answered: bool = False
) -> list[type[Request]]:
    """What is asked for, one after the other, while PostgreSQL doesn't answer."""
    asked: list[type[Request]] = []

    def do(request: Request) -> Any:
        asked.append(type(request))
        if isinstance(request, Query):
            raise DatabaseUnavailable("away")
        return reader.run(one(request))

    with nullcontext() if answered else pytest.raises(DatabaseUnavailable):
        run_blocking(reader.operations.top("b", consistency=needed), do)
    return asked


def one(request: Request) -> Steps[Any]:
    return (yield request)


def test_a_server_that_is_away_is_asked_once_and_not_after_the_wait(stopped: Pipeline) -> None:
    token = write(stopped, {"ann": 7})
    settings = msgspec.structs.replace(stopped.settings, board_cache_ms=60_000)
    with truerank.Truerank(settings) as reader:
        reader.top("b")
        needed = Consistency.at_least(token, wait_ms=30)

        found_out, known = (asked_while_away(reader, needed) for _ in range(2))

    assert found_out.count(Query) == known.count(Query) == 1
    assert found_out[1] is Query, "before the wait, which would be in vain"
    assert known[-1] is Query, "once the wait is over"


def test_a_server_that_is_away_is_not_asked_by_everybody_for_what_is_only_old(
    stopped: Pipeline,
) -> None:
    grown_old(stopped)
    with client(stopped, board_cache_ms=60_000, fallback_after_ms=1) as reader:
        reader.top("b", source="projection", consistency=Consistency.max_age(60_000))
        reader.operations.known.reach.missed()

        asked = asked_while_away(reader, Consistency.any(), answered=True)

    assert Query not in asked

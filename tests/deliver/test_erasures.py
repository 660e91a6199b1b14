"""Receivers are told who was erased, without anybody keeping the id for it."""

from collections.abc import Iterator

import msgspec
import pytest

from tests.deliver.conftest import ALL, BY, Got, Post
from tests.members.test_erasures import ADA, Registry
from tests.projection.pipeline import pipeline, wait_until
from tests.settle.conftest import Months
from truerank.model import AwardRule
from truerank.webhooks import member_hash

LADY = "lady " + ADA


@pytest.fixture
def registry(post: Post) -> Iterator[Registry]:
    settings = msgspec.structs.replace(
        post.settings, heartbeat_ms=1, lease_ms=3_600_000, cache_max_ms=0
    )
    with pipeline(settings, groups=2) as made:
        yield Registry(made)


def facts_of_ada(post: Post, months: Months) -> None:
    """An award for ada, and a voided event of ada's; bob has the same."""
    rule = AwardRule(period="month", name="medal", ranks=(1, 2))
    post.client.make_award_rule("b", rule, **BY)
    months.submit((f"{ADA}:1", ADA, 9), ("e2", "bob", 8), (f"{ADA}:3", ADA, 1), ("e4", "bob", 1))
    post.client.void_events("b", [f"{ADA}:3", "e4"], **BY)
    months.close()


def test_what_waits_names_an_erased_person_no_more_and_a_keyed_hash_tells_who_it_was(
    post: Post, months: Months, registry: Registry
) -> None:
    receiver, rival = post.receiver(), post.receiver()
    secret = post.add("w", receiver.url)
    other = post.add("v", rival.url, "member.erased", board="b")
    facts_of_ada(post, months)
    post.client.merge_members(LADY, ADA, **BY)
    projector = registry.pipeline.projector()

    done = registry.complete(registry.erase(), projector)

    assert registry.traces() == []
    post.deliver()
    (erased,) = receiver.messages("member.erased")
    data = erased["data"]
    assert (data["erasure"], data["stand_ins"]) == (done.id, list(done.stand_ins))
    assert (data["events"], data["digest"]) == (done.events, done.digest)
    assert set(data["member_hashes"]) == {member_hash(secret, ADA), member_hash(secret, LADY)}
    (same,) = rival.messages("member.erased")
    assert set(same["data"]["member_hashes"]) == {member_hash(other, n) for n in (ADA, LADY)}
    given = {m["data"]["rank"]: m["data"]["member"] for m in receiver.messages("award.given")}
    assert given == {1: done.stand_ins[0], 2: "bob"}
    # An event's id may name its member: who never got that is told of the erasure alone.
    assert [m["data"]["event_id"] for m in receiver.messages("event.voided")] == ["e4"]
    assert all(ADA.encode() not in got.body for got in (*receiver.got, *rival.got))
    assert [each.state for each in post.client.deliveries("w", state="cancelled")] == ["cancelled"]
    kept = post.client.deliveries("w", state="delivered")
    assert all("member_hashes" not in each.data for each in kept)
    assert len(kept) == len(ALL) - 2 + 1


def test_a_new_life_that_begins_before_the_erasure_ends_is_told_of(
    post: Post, months: Months, registry: Registry
) -> None:
    receiver = post.receiver()
    post.add("w", receiver.url)
    facts_of_ada(post, months)
    erasure = registry.erase()
    months.submit((f"{ADA}:new", ADA, 1), month=7)
    post.client.void_events("b", [f"{ADA}:new"], **BY)

    registry.complete(erasure)

    post.deliver()
    voided = {m["data"]["event_id"]: m["data"]["member"] for m in receiver.messages("event.voided")}
    assert voided == {"e4": "bob", f"{ADA}:new": ADA}


def test_a_secret_that_still_signs_tells_as_well_who_it_was(
    post: Post, months: Months, registry: Registry
) -> None:
    receiver = post.receiver()
    former = post.add("w", receiver.url, "member.erased")
    secret = post.client.rotate_webhook("w", **BY)
    months.submit(("e1", ADA, 9))

    registry.complete(registry.erase())

    post.deliver()
    (erased,) = receiver.messages("member.erased")
    assert erased["data"]["member_hashes"] == [member_hash(s, ADA) for s in (secret, former)]


def test_an_erasure_is_complete_only_when_no_request_that_names_the_person_is_under_way(
    post: Post, months: Months, registry: Registry
) -> None:
    receiver = post.receiver()
    post.add("w", receiver.url)
    facts_of_ada(post, months)
    projector = registry.pipeline.projector()
    seen: list[tuple[str, bool, object]] = []

    def answer(got: Got) -> int:
        if ADA.encode() in got.body and got.message["type"] == "award.given":
            erasure = registry.erase()
            for _ in range(40):
                projector.step()
            (found,) = registry.client.erasures(erasure.id)
            swept = registry.pipeline.conn.execute("SELECT swept_at FROM truerank.erasure")
            seen.append((erasure.id, found.complete, swept.fetchone()))
        return 200

    receiver.answer = answer
    post.deliver(webhook_at_once=1)
    # Nothing but the request was waited for.
    ((id_, complete_then, swept_at),) = seen
    assert not complete_then
    assert swept_at != (None,)

    def complete() -> bool:
        projector.step()
        return registry.client.erasures(id_)[0].complete

    wait_until(complete, "the erasure to be complete")
    assert registry.traces() == []
    post.deliver()
    assert receiver.got[-1].message["type"] == "member.erased"
    assert all(ADA.encode() not in got.body for got in receiver.got[-1:])

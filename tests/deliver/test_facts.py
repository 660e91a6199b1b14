"""What happens is told in the transaction in which it happens, or not at all."""

import psycopg

import truerank
from tests.deliver.conftest import BY, Post
from tests.settle.conftest import Months
from truerank.model import AwardRule


def settled(months: Months) -> None:
    """A, B and C with 9, 8 and 7; the first two get a medal."""
    months.tr.make_award_rule("b", AwardRule(period="month", name="medal", ranks=(1, 2)), **BY)
    months.submit(("e1", "A", 9), ("e2", "B", 8), ("e3", "C", 7))
    months.close()


def test_a_settlement_and_each_of_its_awards_are_told_under_a_key_of_their_own(
    post: Post, months: Months
) -> None:
    receiver = post.receiver()
    secret = post.add("w", receiver.url)
    settled(months)

    post.deliver()
    post.deliver()

    for got in receiver.got:
        message = got.verified(secret)
        assert (message.id, message.type) == (got.key, got.message["type"])
    assert len({got.key for got in receiver.got}) == len(receiver.got) == 3
    (final,) = receiver.messages("season.final")
    (settlement,) = months.tr.settlements("b", "2024-06")
    assert final["data"] == {
        "board": "b",
        "season": "2024-06",
        "period": "month",
        "starts_at": "2024-06-01T00:00:00.000000Z",
        "ends_at": "2024-07-01T00:00:00.000000Z",
        "revision": 1,
        "settled_at": settlement.settled_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "population": 3,
        "changed": 0,
        "total": "24",
        "digest": settlement.digest,
    }
    awards = sorted(
        (message["data"] for message in receiver.messages("award.given")),
        key=lambda data: data["rank"],
    )
    assert awards == [
        {
            "award": str(award.id),
            "change": str(award.change),
            "board": "b",
            "season": "2024-06",
            "rule": "medal",
            "member": award.member,
            "rank": award.rank,
            "score": award.score,
            "revision": 1,
        }
        for award in months.tr.awards("b")
    ]
    assert post.meter.outcomes == ["delivered"] * 3


def test_a_revision_tells_what_it_withdraws_and_gives_and_which_event_it_voids(
    post: Post, months: Months
) -> None:
    settled(months)
    receiver = post.receiver()
    post.add("w", receiver.url)

    months.tr.revise_season("b", "2024-06", void=["e1"], **BY)

    post.deliver()
    assert [m["data"]["revision"] for m in receiver.messages("season.revised")] == [2]
    (withdrawn,) = receiver.messages("award.withdrawn")
    given = receiver.messages("award.given")
    assert (withdrawn["data"]["member"], withdrawn["data"]["revision"]) == ("A", 2)
    # B is the first now and C the second: both have another rank than before.
    assert {m["data"]["member"]: m["data"]["rank"] for m in given} == {"B": 1, "C": 2}
    (voided,) = receiver.messages("event.voided")
    assert (voided["data"]["event_id"], voided["data"]["member"]) == ("e1", "A")
    assert voided["data"]["event_at"] == "2024-06-15T00:00:00.000000Z"
    assert receiver.messages("season.final") == []

    months.tr.revise_season("b", "2024-06", **BY)  # changes nothing
    post.deliver()
    assert len(receiver.got) == 5


def test_what_is_rolled_back_is_never_told_and_what_commits_is_only_then(
    post: Post, months: Months
) -> None:
    months.submit(("e1", "A", 9), ("e2", "B", 8))
    receiver = post.receiver()
    post.add("w", receiver.url)
    with post.caller() as caller:
        caller.execute("SELECT truerank.void_events('b', '{e1}', 'test', 'a test')")
        caller.rollback()
        caller.execute("SELECT truerank.void_events('b', '{e2}', 'test', 'a test')")
        post.deliver()
        assert receiver.got == []
        caller.commit()

    post.deliver()

    assert [m["data"]["event_id"] for m in receiver.messages("event.voided")] == ["e2"]
    months.tr.void_events("b", ["e2"], **BY)  # which it is already
    post.deliver()
    assert len(receiver.got) == 1


def test_deliveries_and_changes_of_receivers_are_in_no_strict_transaction_s_way(
    post: Post, months: Months
) -> None:
    months.submit(("e1", "A", 9), ("e2", "B", 8))
    receiver = post.receiver()
    post.add("w", receiver.url)
    months.tr.void_events("b", ["e2"], **BY)
    with post.caller() as caller:
        caller.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        caller.execute("SELECT FROM truerank.webhook")  # takes the snapshot
        receiver.answer = lambda _: 500
        post.deliver(attempts_max=2)
        post.client.change_webhook("w", enabled=True, **BY)
        caller.execute("SELECT truerank.void_events('b', '{e1}', 'test', 'a test')")
        receiver.answer = lambda _: 200
        post.client.retry_deliveries("w", **BY)
        post.client.rotate_webhook("w", **BY)
        post.deliver()
        assert post.meter.outcomes[-1] == "delivered"

        caller.commit()

    post.deliver()
    assert [state for state, _, _ in post.states()] == ["delivered"] * 2


def test_each_receiver_is_told_of_its_kinds_and_its_board_alone(post: Post, months: Months) -> None:
    post.client.create_board("c", seasons=["all"])
    post.client.submit_scores("c", [truerank.ScoreEvent(event_id="x", member="A", value=1)])
    names = {
        "all": post.add("all", "http://127.0.0.1:9/"),
        "void": post.add("void", "http://127.0.0.1:9/", "event.voided"),
        "c": post.add("c", "http://127.0.0.1:9/", board="c"),
        "final": post.add("final", "http://127.0.0.1:9/", "season.final", board="b"),
    }
    settled(months)
    post.client.void_events("c", ["x"], **BY)

    told = {name: sorted({each.kind for each in post.client.deliveries(name)}) for name in names}

    assert told == {
        "all": ["award.given", "event.voided", "season.final"],
        "void": ["event.voided"],
        "c": ["event.voided"],
        "final": ["season.final"],
    }
    assert len(set(names.values())) == len(names)


def test_without_a_receiver_nothing_is_kept(post: Post, months: Months) -> None:
    settled(months)
    months.tr.revise_season("b", "2024-06", void=["e1"], **BY)

    assert post.conn.execute("SELECT count(*) FROM truerank.webhook_delivery").fetchone() == (0,)

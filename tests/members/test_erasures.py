"""Who is erased is out of sight at once, and in the end nothing names the person."""

import hashlib
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.members.conftest import BY
from tests.projection.pipeline import (
    FailingLink,
    Pipeline,
    pipeline,
    stepped_settings,
    wait_until,
)
from truerank.errors import ProjectionUnavailable
from truerank.model import AwardRule, Erasure, Profile, ScoreEvent
from truerank.projection.projector import Projector

ADA = "ada lovelace"
ID = ADA.encode()


class Registry:
    """A pipeline with the heartbeats that erasures need, and a look into everything it keeps."""

    def __init__(self, made: Pipeline) -> None:
        self.pipeline = made
        self.client = made.client

    def erase(self, member: str = ADA) -> Erasure:
        return self.client.erase_member(member, **BY)

    def complete(self, erasure: Erasure, projector: Projector | None = None) -> Erasure:
        """Let a worker work until an erasure is complete."""
        projector = projector or self.pipeline.projector()

        def look() -> Erasure | None:
            projector.step()
            (found,) = self.client.erasures(erasure.id)
            return found if found.complete else None

        done: Erasure = wait_until(look, "the erasure to be complete")
        return done

    def shown(self, board: str = "b", **kwargs: Any) -> dict[str, str]:
        page = self.client.top(board, limit=1000, **kwargs)
        return {entry.member: entry.score for entry in page.entries}

    def traces(self, name: bytes = ID) -> list[str]:
        """Where the bytes of an id stand, in any table and any key."""
        return [*self._in_tables(name), *self._in_redis(name)]

    def all_keys(self) -> list[bytes]:
        """All keys of Redis."""
        keys: Any = self.pipeline.redis.keys()
        return list(keys)

    def _in_tables(self, name: bytes) -> Iterator[str]:
        conn = self.pipeline.conn
        columns = conn.execute(
            """SELECT c.oid::regclass::text, a.attname FROM pg_class AS c
               JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
               JOIN pg_type AS t ON t.oid = a.atttypid
               WHERE c.relnamespace = 'truerank'::regnamespace AND c.relkind IN ('r', 'p')
                 AND t.typcategory IN ('S', 'U', 'A', 'C')"""
        ).fetchall()
        for table, column in columns:
            text = f"convert_to({column}::text, 'UTF8')"
            if self._types(table, column) == "bytea":
                text = column
            (found,) = conn.execute(
                f"SELECT count(*) FROM {table} WHERE position(%s::bytea IN {text}) > 0",
                (name,),
            ).fetchone() or (0,)
            if found:
                yield f"{table}.{column}: {found} rows"

    def _types(self, table: str, column: str) -> str:
        row = self.pipeline.conn.execute(
            """SELECT atttypid::regtype::text FROM pg_attribute
               WHERE attrelid = %s::regclass AND attname = %s""",
            (table, column),
        ).fetchone()
        assert row is not None
        return str(row[0])

    def _in_redis(self, name: bytes) -> Iterator[str]:
        redis: Any = self.pipeline.redis
        for key in self.all_keys():
            match redis.type(key):
                case b"hash":
                    parts = [part for pair in redis.hgetall(key).items() for part in pair]
                case b"zset":
                    parts = redis.zrange(key, 0, -1)
                case _:
                    parts = [redis.get(key)]
            if any(name in part for part in (key, *parts)):
                yield key.decode()


@pytest.fixture
def registry(database_url: str, redis_url: str) -> Iterator[Registry]:
    """Ada has 9 on `b` (all and by day) and 5 on `c`, bob 7 and 2; everything is shown."""
    settings = stepped_settings(database_url, redis_url)
    with pipeline(settings, groups=2) as made:
        made.client.create_board("b", seasons=["all", "day"])
        made.client.create_board("c", seasons=["all"], operator="best")
        for board, scores in (("b", {ADA: 9, "bob": 7}), ("c", {ADA: 5, "bob": 2})):
            made.submit(board, scores)
        made.settle(made.projector())
        yield Registry(made)


def test_a_prize_stays_given_and_names_nobody_who_was_erased(registry: Registry) -> None:
    client = registry.client
    rule = AwardRule(period="day", name="first", ranks=(1, 1))
    client.make_award_rule("b", rule, actor=ADA, reason=f"asked by {ADA}")
    june = datetime(2024, 6, 1, tzinfo=UTC)
    for name, value in ((ADA, 9), ("bob", 7)):
        client.submit_score("b", event_id=f"{name}:9", member=name, value=value, occurred_at=june)
    client.close_season("b", "2024-06-01", actor=ADA, reason=f"for {ADA}")
    for value in (10, 11):
        (award,) = client.awards()
        client.acknowledge_awards([award.change], actor=ADA)
        client.revise_season(
            "b", "2024-06-01", amend=f"{ADA}:9", value=value, correction_id=f"{ADA}:{value}",
            actor=ADA, reason=f"{ADA} asked for it",
        )  # fmt: skip
    (award,) = client.awards()
    client.acknowledge_awards([award.change], actor=ADA)
    projector = registry.pipeline.projector()
    registry.pipeline.settle(projector)
    named = {trace.partition(":")[0] for trace in registry.traces() if "award" in trace}
    assert named == {
        "truerank.award.member", "truerank.award.acknowledged_by",
        "truerank.award_past.acknowledged_by",
    }  # fmt: skip

    registry.complete(registry.erase(), projector)

    assert registry.traces() == []
    (after,) = client.awards()
    assert (after.id, after.state, after.score) == (award.id, "given", "11")
    assert after.member.startswith("erased-")


def test_the_proof_counts_the_events_that_are_left_under_the_stand_in(registry: Registry) -> None:
    erasure = registry.complete(registry.erase())

    rows = registry.pipeline.conn.execute(
        """SELECT board_id, position, value, (extract(epoch FROM occurred_at) * 1000000)::bigint
           FROM truerank.event WHERE member = ANY (%s) AND ended_at IS NOT NULL
           ORDER BY board_id, position""",
        (list(erasure.stand_ins),),
    ).fetchall()
    assert [value for _, _, value, _ in rows] == [9, 5]
    assert erasure.events == 2
    assert (
        erasure.digest
        == hashlib.sha256(b"".join(struct.pack(">iqqq", *row) for row in rows)).hexdigest()
    )
    assert registry.client.erasures() == [erasure]


def test_totals_and_places_of_others_stay_right(registry: Registry) -> None:
    registry.complete(registry.erase())

    page = registry.client.top("b")

    assert (page.total, page.entries[0].member, page.entries[0].rank) == (1, "bob", 1)
    assert registry.shown(source="database") == {"bob": "7"}


@pytest.mark.parametrize("steps_before", [0, 3])
def test_what_was_under_way_is_erased_too_and_never_seen(
    registry: Registry, steps_before: int
) -> None:
    registry.client.create_board("d", seasons=["all"])
    writer = registry.pipeline.connection()
    registry.pipeline.submit("d", {ADA: 100}, writer)
    projector = registry.pipeline.projector()
    erasure = registry.erase()
    for _ in range(steps_before):
        projector.step()

    writer.commit()

    assert registry.shown("d") == {}
    for _ in range(20):
        projector.step()
        assert registry.shown("d") == {}
    done = registry.complete(erasure, projector)
    assert registry.traces() == []
    assert registry.shown("d") == {}
    assert done.events == 3


def test_a_transaction_that_stays_open_holds_the_erasure_up_and_nobody_sees_the_person(
    registry: Registry,
) -> None:
    open_one = registry.pipeline.connection()
    open_one.execute("SELECT pg_current_xact_id()")
    projector = registry.pipeline.projector()
    erasure = registry.erase()

    for _ in range(50):
        projector.step()

    (found,) = registry.client.erasures(erasure.id)
    assert (found.complete, found.events) == (False, None)
    assert registry.shown() == {"bob": "7"}
    open_one.rollback()
    registry.complete(erasure, projector)


def test_an_id_that_is_used_again_begins_at_zero(registry: Registry) -> None:
    erasure = registry.erase()
    registry.pipeline.submit("b", {ADA: 3})
    standing = registry.client.standing("b", ADA)
    assert standing is not None
    assert standing.score == "3"

    registry.complete(erasure)

    registry.pipeline.settle(registry.pipeline.projector())
    assert registry.shown() == {"bob": "7", ADA: "3"}
    assert registry.client.member_states(ADA) == []
    registry.complete(registry.erase())
    assert registry.traces() == []
    assert registry.shown() == {"bob": "7"}


def test_a_repeat_of_an_old_event_does_not_bring_the_name_back(registry: Registry) -> None:
    event = ScoreEvent(event_id=f"{ADA}:1", member=ADA, value=4)
    registry.client.submit_scores("b", [event])
    registry.complete(registry.erase())

    (receipt,) = registry.client.submit_scores("b", [event])

    assert receipt.outcome == "conflict"
    assert registry.traces() == []


def test_two_erasures_at_once_are_both_complete_in_the_end(registry: Registry) -> None:
    first, second = registry.erase(), registry.erase()
    assert first.id == second.id

    registry.pipeline.submit("b", {ADA: 3})
    third = registry.erase()

    assert third.id != first.id
    projector = registry.pipeline.projector()
    registry.complete(third, projector)
    registry.complete(first, projector)
    assert registry.traces() == []
    assert registry.client.member_states(ADA) == []


@pytest.mark.parametrize("named", [ADA, "lady " + ADA])
def test_all_ids_of_a_person_are_erased_and_each_begins_anew(
    registry: Registry, named: str
) -> None:
    registry.pipeline.submit("c", {"lady " + ADA: 40})
    registry.client.merge_members("lady " + ADA, ADA, **BY)
    projector = registry.pipeline.projector()
    registry.pipeline.settle(projector)
    assert registry.shown("c") == {"bob": "2", ADA: "40"}

    registry.complete(registry.erase(named), projector)

    assert registry.traces() == []
    registry.pipeline.submit("c", {"lady " + ADA: 1})
    registry.pipeline.settle(projector)
    assert registry.shown("c") == {"bob": "2", "lady " + ADA: "1"}


def test_a_renamed_person_is_erased_under_either_id(registry: Registry) -> None:
    client = registry.client
    client.set_profiles([Profile(member=ADA, name=f"Countess {ADA}", details={"of": ADA})])
    client.ban_member(ADA, board="c", **BY)
    client.hide_member(ADA, **BY)
    new = "ada king"
    client.merge_members(ADA, new, **BY)
    projector = registry.pipeline.projector()
    registry.pipeline.settle(projector)
    assert registry.shown() == {"bob": "7"}
    assert registry.traces(new.encode())

    registry.complete(registry.erase(new), projector)

    assert registry.traces() == registry.traces(new.encode()) == []
    registry.pipeline.submit("c", {new: 1, ADA: 3})
    registry.pipeline.settle(projector)
    assert registry.shown("c") == {"bob": "2", new: "1", ADA: "3"}


def test_a_score_that_knew_of_a_merge_still_is_not_counted_for_the_other_in_the_end(
    registry: Registry,
) -> None:
    registry.client.create_board("d", seasons=["all"])
    registry.client.merge_members("lady", ADA, **BY)
    registry.complete(registry.erase("bob"))  # the merge is complete
    writer = registry.pipeline.connection()
    erasing = registry.pipeline.connection()
    erasing.execute("SELECT truerank.erase_member(%s, 'op', 'test')", (ADA,))
    registry.pipeline.submit("d", {"lady": 7}, writer)
    erasing.commit()
    writer.commit()
    (erasure, *_) = registry.client.erasures()

    projector = registry.pipeline.projector()
    registry.complete(erasure, projector)
    registry.pipeline.settle(projector)

    assert registry.shown("d") == {"lady": "7"}
    assert registry.traces() == []


def test_an_erasure_waits_for_every_copy_and_a_new_one_knows_nothing(registry: Registry) -> None:
    # A copy of group 0 is being filled all the while, a row at a time.
    registry.pipeline.submit("b", {f"m{n}": n for n in range(20)})
    projector = registry.pipeline.projector(scan_rows_max=1)
    registry.pipeline.redis.flushdb()
    projector.interrupt()
    projector.step()

    erasure = registry.erase()

    registry.complete(erasure, projector)
    registry.pipeline.settle(projector)
    assert registry.traces() == []


@pytest.mark.parametrize("executed", [True, False])
@pytest.mark.parametrize("fails_at", [0, 3, 8, 15])
def test_a_worker_that_was_cut_off_goes_on_later(
    registry: Registry, fails_at: int, *, executed: bool
) -> None:
    erasure = registry.erase()
    link = registry.pipeline.link(FailingLink)
    cut = registry.pipeline.projector(link)
    cut.step()
    link.fails_at, link.executed = fails_at, executed

    with pytest.raises(ProjectionUnavailable):
        wait_until(lambda: cut.step() and False, "the connection to be cut")

    registry.complete(erasure)
    assert registry.traces() == []


def test_after_redis_fell_back_the_person_is_not_there_again(registry: Registry) -> None:
    redis: Any = registry.pipeline.redis
    before = {key: redis.dump(key) for key in registry.all_keys()}
    projector = registry.pipeline.projector()
    registry.complete(registry.erase(), projector)

    redis.flushdb()
    for key, value in before.items():
        redis.restore(key, 0, value)

    assert registry.shown() == {"bob": "7"}
    projector.interrupt()
    registry.pipeline.settle(projector)
    assert registry.shown() == {"bob": "7"}
    wait_until(lambda: projector.step() or not registry.traces(), "the old copy to be removed")

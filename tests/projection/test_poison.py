"""What can't be applied is parked and answered from PostgreSQL; everything else goes on."""

import threading
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
import redis
from redis.exceptions import NoPermissionError, OutOfMemoryError, ReadOnlyError, ResponseError

from tests.conftest import StartRedis
from tests.projection.pipeline import Pipeline, differences, wait_until, working
from truerank.errors import ProjectionUnavailable
from truerank.model import Source
from truerank.outbox.ticks import Part
from truerank.projection.link import Link
from truerank.projection.parked import list_parked, retry_parked
from truerank.projection.poison import is_poison, misread
from truerank.projection.projector import Projector
from truerank.steps import ScriptCall
from truerank.telemetry.meter import Meter

KEY = b"k" * 24


class PoisonedLink(Link):
    """Makes the server fail every script that is to apply a row of one member.

    For the length of such a call the ranking's sorted set is a string, as if somebody else used
    the key: the error is the server's own.
    """

    poison: bytes | None = None
    calls_made = 0

    def calls(self, calls: Sequence[ScriptCall]) -> tuple[list[Any], str | None]:
        self.calls_made += len(calls)
        if self.poison is None:
            return super().calls(calls)
        replies: list[Any] = []
        run_id = None
        for call in calls:
            spoilt = [key for key in call.keys if key.endswith(":z")] if self._hurts(call) else []
            for key in spoilt:
                self.try_commands([("RENAME", key, key + "-aside"), ("SET", key, "spoilt")])
            answer, run_id = super().calls([call])
            replies += answer
            for key in spoilt:
                self.try_commands([("DEL", key), ("RENAME", key + "-aside", key)])
        return replies, run_id

    def _hurts(self, call: ScriptCall) -> bool:
        assert self.poison is not None
        return any(isinstance(arg, bytes) and arg.endswith(self.poison) for arg in call.args)


@pytest.fixture
def two(single: Pipeline) -> Pipeline:
    """One group of two boards, `b` and `other`."""
    single.client.create_board("other", seasons=["all"])
    return single


def source_of(two: Pipeline, board: str) -> Source:
    return two.client.top(board).freshness.source


def scores(two: Pipeline, board: str, source: Source | None = None) -> dict[str, int]:
    page = two.client.top(board, limit=1000, source=source)
    return {entry.member: int(entry.score) for entry in page.entries}


def step_until_shown(two: Pipeline, projector: Projector, board: str, expected: Any) -> None:
    """Step until a board is served by the projection, and right."""

    def shown() -> bool:
        projector.step()
        page = two.client.top(board, limit=1000)
        told = {entry.member: int(entry.score) for entry in page.entries}
        assert told == expected or page.freshness.source is Source.PROJECTION
        return page.freshness.source is Source.PROJECTION and told == expected

    wait_until(shown, f"{board} from the projection")


def test_one_standing_that_can_not_be_applied_stops_nothing_but_its_own_ranking(
    two: Pipeline,
) -> None:
    link: PoisonedLink = two.link(PoisonedLink)
    projector = two.projector(link, heartbeat_ms=1, call_rows_max=50)
    two.submit("b", {f"m{i}": i for i in range(100)})
    two.submit("other", {"ann": 1})
    two.settle(projector)

    link.poison = b"m63"
    two.submit("b", {f"m{i}": 1 for i in range(100)})
    two.submit("other", {"ann": 1, "bob": 5})
    step_until_shown(two, projector, "other", {"ann": 2, "bob": 5})

    assert scores(two, "b") == {f"m{i}": i + 1 for i in range(100)}
    assert source_of(two, "b") is Source.DATABASE
    (parked,) = two.client.run(list_parked())
    assert (parked.board, parked.season, parked.group) == ("b", "all", 0)
    assert (parked.member, parked.tries >= 1) == ("m63", True)
    assert (
        parked.version
        == two.conn.execute(
            "SELECT version FROM truerank.standing WHERE member = 'm63'"
        ).fetchall()[0][0]
    )
    assert "WRONGTYPE" in parked.reason


def test_what_is_parked_stays_with_postgresql_through_new_copies_and_new_workers(
    two: Pipeline,
) -> None:
    link: PoisonedLink = two.link(PoisonedLink)
    link.poison = b"mallory"
    two.submit("b", {"mallory": 1, "ann": 2})
    two.submit("other", {"ann": 1})
    projector = two.projector(link, heartbeat_ms=1)
    step_until_shown(two, projector, "other", {"ann": 1})

    for n in range(3):
        two.redis.flushdb()
        projector = two.projector(link, heartbeat_ms=1)
        two.submit("b", {"ann": 1, "mallory": 1})
        two.submit("other", {"ann": 1})
        step_until_shown(two, projector, "other", {"ann": 2 + n})
        assert scores(two, "b") == {"ann": 3 + n, "mallory": 2 + n}
        assert source_of(two, "b") is Source.DATABASE
        assert len(two.client.run(list_parked())) == 1

    generation = two.generation()
    heir = two.projector(link)
    two.submit("b", {"ann": 1, "mallory": 1})
    two.submit("other", {"ann": 1})
    step_until_shown(two, heir, "other", {"ann": 5})
    for _ in range(10):
        heir.step()
    assert two.generation() == generation, "nothing was tried again before it is due"


def test_a_parked_ranking_is_shown_again_once_it_is_tried_after_the_cause_is_gone(
    two: Pipeline,
) -> None:
    link: PoisonedLink = two.link(PoisonedLink)
    link.poison = b"mallory"
    two.submit("b", {"mallory": 1, "ann": 2})
    two.submit("other", {"ann": 1})
    projector = two.projector(link, heartbeat_ms=1)
    step_until_shown(two, projector, "other", {"ann": 1})
    wait_until(lambda: projector.step() or len(two.client.run(list_parked())), "a parked ranking")
    link.poison = None
    (parked,) = two.client.run(list_parked())

    assert two.client.run(retry_parked(parked.ranking)) == 1
    step_until_shown(two, projector, "b", {"mallory": 1, "ann": 2})

    assert two.client.run(list_parked()) == []
    two.settle(projector)


def test_the_first_answer_to_poison_is_a_new_copy_that_may_do_without_a_person(
    two: Pipeline,
) -> None:
    """Somebody's key of another type is gone in a new copy, whose keys are new."""
    projector = two.projector(heartbeat_ms=1)
    two.submit("b", {"ann": 1})
    two.submit("other", {"bob": 1})
    two.settle(projector)
    generation = two.generation()
    assert generation is not None
    places = two.keys().generation(generation).places(min(two.rankings()))
    two.redis.delete(places)
    two.redis.set(places, "somebody else's")
    assert scores(two, "b") == {"ann": 1}

    two.submit("b", {"ann": 1})
    two.submit("other", {"bob": 1})
    step_until_shown(two, projector, "b", {"ann": 2})

    two.settle(projector)
    assert two.client.run(list_parked()) == []


@pytest.mark.parametrize("key", ["pointer", "meta", "counts", "members", "places", "shown"])
def test_any_key_of_another_type_is_replaced_and_readers_are_never_lied_to(
    two: Pipeline, key: str
) -> None:
    projector = two.projector(heartbeat_ms=1)
    two.submit("b", {"ann": 1})
    two.submit("other", {"bob": 1})
    two.settle(projector)
    generation = two.generation()
    assert generation is not None
    copy = two.keys().generation(generation)
    number = min(two.rankings())
    named = {
        "pointer": two.keys().pointer,
        "meta": copy.meta,
        "counts": copy.counts,
        "members": copy.members,
        "places": copy.places(number),
        "shown": copy.shown(number),
    }[key]
    two.redis.delete(named)
    if key == "pointer":
        two.redis.hset(named, "f", "v")
    else:
        two.redis.set(named, "somebody else's")
    assert scores(two, "b") == {"ann": 1}
    assert source_of(two, "b") is Source.DATABASE

    two.submit("b", {"ann": 1})
    two.submit("other", {"bob": 1})
    step_until_shown(two, projector, "b", {"ann": 2})
    step_until_shown(two, projector, "other", {"bob": 2})
    two.settle(projector)


def test_a_row_that_makes_no_sense_is_parked_before_it_is_sent(two: Pipeline) -> None:
    projector = two.projector(heartbeat_ms=1)
    two.submit("b", {"ann": 1})
    two.submit("other", {"bob": 1})
    two.settle(projector)
    generation = two.generation()

    two.conn.execute(
        """INSERT INTO truerank.outbox (segment, grp, op, ranking, version, xid, member, sort_key)
           SELECT r.segment, 0, 'p', %s, 77, pg_current_xact_id(), 'garbled', '\\x0102'
           FROM truerank.ring AS r""",
        (min(two.rankings()),),
    )
    two.submit("other", {"bob": 1})
    step_until_shown(two, projector, "other", {"bob": 2})

    (parked,) = two.client.run(list_parked())
    assert (parked.board, parked.member, parked.version) == ("b", "garbled", 77)
    assert (scores(two, "b"), source_of(two, "b")) == ({"ann": 1}, Source.DATABASE)
    assert two.generation() == generation, "a new copy would be told the same"

    two.client.run(retry_parked())
    step_until_shown(two, projector, "b", {"ann": 1})
    assert two.client.run(list_parked()) == []


@pytest.mark.parametrize(
    ("key_bytes", "row", "wrong"),
    [
        (24, b"p" + b"v" * 8 + KEY + b"ann", False),
        (24, b"d" + b"v" * 8 + b"ann", False),
        (0, b"d" + b"v" * 8 + b"ann", False),
        (-1, b"s" + b"v" * 8 + b"aann", False),
        (24, b"p" + b"v" * 8 + KEY, True),
        (24, b"p" + b"v" * 8, True),
        (24, b"d" + b"v" * 8, True),
        (23, b"p" + b"v" * 8 + KEY + b"ann", True),
        (2, b"p" + b"v" * 8 + b"kk" + b"ann", True),
        (24, b"", True),
    ],
)
def test_rows_are_looked_at_before_they_are_sent(
    key_bytes: int, row: bytes, *, wrong: bool
) -> None:
    good = b"p" + b"v" * 8 + b"k" * max(key_bytes, 0) + b"good"
    assert (misread(Part(7, key_bytes, [row])) is not None) == wrong
    if key_bytes % 8 == 0 and key_bytes > 0:
        assert (misread(Part(7, key_bytes, [good, row])) is not None) == wrong


@pytest.mark.parametrize(
    ("error", "poison"),
    [
        (ResponseError("WRONGTYPE Operation against a key script: 1, on @user_script:3."), True),
        (ResponseError("user_script:12: attempt to compare nil with number script: 1"), True),
        (ResponseError("ERR user_script:12: bad argument #2 to 'unpack'"), True),
        (ResponseError("hash value is not an integer script: 1, on @user_script:3."), True),
        (OutOfMemoryError("command not allowed when used memory > 'maxmemory'."), False),
        (ReadOnlyError("You can't write against a read only replica."), False),
        (ResponseError("OOM command not allowed when used memory > 'maxmemory'."), False),
        (ResponseError("BUSY Redis is busy running a script."), False),
        (ResponseError("LOADING Redis is loading the dataset in memory"), False),
        (ResponseError("MISCONF Redis is configured to save RDB snapshots"), False),
        (ResponseError("NOREPLICAS Not enough good replicas to write."), False),
        (ResponseError("Unknown Redis command called from script script: 1"), False),
        (ResponseError("user_script:1: Script killed by user with SCRIPT KILL."), False),
        (NoPermissionError("user_script:3: this user has no permissions"), False),
        ([1, 2, [], 1], False),
    ],
)
def test_only_what_a_row_or_its_keys_bring_about_is_poison(error: object, *, poison: bool) -> None:
    assert is_poison(error) is poison


def block_memory(client: redis.Redis) -> None:
    client.config_set("maxmemory", "1")


def make_read_only(client: redis.Redis) -> None:
    client.replicaof("127.0.0.1", "1")  # nobody is there: it keeps its data


def keep_busy(client: redis.Redis) -> None:
    client.config_set("busy-reply-threshold", 500)  # ms: no script of ours takes so long
    threading.Thread(target=_loop_for_ever, args=(client,), daemon=True).start()

    def is_busy() -> bool:
        try:
            client.get("k")
        except redis.exceptions.ResponseError as exc:
            return str(exc).startswith("BUSY")
        return False

    wait_until(is_busy, "a busy server")


def _loop_for_ever(client: redis.Redis) -> None:
    with pytest.raises(redis.exceptions.ResponseError):
        client.eval("while true do end", 0)


def demand_password(client: redis.Redis) -> None:
    client.config_set("requirepass", "secret")
    client.client_kill_filter(_type="normal", skipme=True)
    client.auth("secret")


def _config(**values: str) -> Any:
    def restore(client: redis.Redis) -> None:
        for name, value in values.items():
            client.config_set(name, value)

    return restore


FAULTS: dict[str, tuple[Any, Any]] = {
    "no memory": (block_memory, _config(maxmemory="0")),
    "read only": (make_read_only, lambda client: client.replicaof("NO", "ONE")),
    "busy": (keep_busy, lambda client: client.script_kill()),
    "no password": (demand_password, _config(requirepass="")),
}


class Failures(Meter):
    """Counts what the worker could not do."""

    number = 0

    def failed(self, part: str, code: str) -> None:
        assert (part, code) == ("worker", ProjectionUnavailable.code)
        self.number += 1


@pytest.mark.parametrize("fault", FAULTS)
def test_what_the_whole_server_refuses_parks_nothing(
    two: Pipeline, start_redis: StartRedis, fault: str
) -> None:
    url, _ = start_redis()
    two.settings = msgspec.structs.replace(
        two.settings, redis_url=url, tick_idle_ms=5, redis_timeout_ms=1000
    )
    break_, mend = FAULTS[fault]
    meter = Failures()
    with (
        working(two.settings, meter=meter),
        redis.Redis.from_url(url, max_connections=2) as client,
    ):
        two.redis = client
        two.submit("b", {"ann": 1})
        wait_until(lambda: differences(two) == [], "the first score")
        generation = two.generation()
        break_(client)
        two.submit("b", {"ann": 1})
        two.submit("other", {"bob": 1})
        before = meter.number
        wait_until(lambda: meter.number > before + 3, "several attempts that fail")
        mend(client)
        wait_until(lambda: differences(two) == [], "both scores")

        assert two.client.run(list_parked()) == []
        assert two.generation() == generation


def test_ten_thousand_parked_rankings_cost_a_tick_nothing(two: Pipeline) -> None:
    link: PoisonedLink = two.link(PoisonedLink)

    def calls_of_a_step(projector: Projector) -> list[int]:
        made: list[int] = []
        for n in range(5):
            two.submit("b", {"ann": n + 1})
            before = link.calls_made
            assert projector.step()
            made.append(link.calls_made - before)
        return made

    two.submit("b", {"ann": 1})
    projector = two.projector(link)
    two.settle(projector)
    usual = calls_of_a_step(projector)

    two.conn.execute(
        """INSERT INTO truerank.parked_standing (ranking, grp, reason, retry_at)
           SELECT (1::bigint << 40) + n, 0, 'made up', clock_timestamp() + interval '1 hour'
           FROM generate_series(1, 10000) AS n"""
    )
    heir = two.projector(link)
    heir.step()

    assert calls_of_a_step(heir) == usual
    assert source_of(two, "b") is Source.PROJECTION
    page = two.client.run(list_parked(limit=1000))
    assert len(page) == 1000
    more = two.client.run(list_parked(after=page[-1].ranking, limit=1000))
    assert more[0].ranking == page[-1].ranking + 1
    plan = two.conn.execute(
        "EXPLAIN SELECT grp, ranking FROM truerank.parked_standing"
        " WHERE grp = ANY ('{0,1}') AND retry_at <= now()"
    ).fetchall()
    assert any("parked_standing_due" in line for (line,) in plan)


def test_ten_thousand_rows_of_a_poisoned_ranking_are_sorted_out_in_few_calls(
    two: Pipeline,
) -> None:
    link: PoisonedLink = two.link(PoisonedLink)
    projector = two.projector(link)
    two.settle(projector)
    link.poison = b"m777"
    link.calls_made = 0

    two.submit("b", {f"m{i}": 1 for i in range(10_000)})
    two.submit("other", {"bob": 1})
    step_until_shown(two, projector, "other", {"bob": 1})

    assert link.calls_made < 300
    assert source_of(two, "b") is Source.DATABASE
    assert [parked.board for parked in two.client.run(list_parked())] == ["b"]

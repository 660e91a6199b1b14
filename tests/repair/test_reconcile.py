"""What a reconciliation says of lag, of a source that went back, of whole rankings; its races."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from tests.cli.commands import Command, Done
from tests.projection.pipeline import (
    Pipeline,
    differences,
    wait_until,
    working,
)
from tests.repair.damage import (
    Target,
    a_member_more,
    all_of_it,
    its_score,
    reconciled,
    the_counts,
    to_a_newer_one,
    to_an_older_one,
)
from truerank.errors import SourceDoubtful
from truerank.projection.link import Link
from truerank.repair import mending
from truerank.repair.findings import Report
from truerank.repair.points import Rules
from truerank.repair.reconcile import Reconciliation, reconcile
from truerank.steps import ScriptCall

SCORES = {"ann": 30, "bob": 20, "cid": 10}


@pytest.fixture
def shown(single: Pipeline) -> Pipeline:
    """Board `b` with three members, shown; nothing runs."""
    single.submit("b", SCORES)
    single.settle(single.projector())
    return single


def target(pipe: Pipeline, member: str, board: str = "b") -> Target:
    rows = pipe.conn.execute(
        "SELECT s.ranking FROM truerank.standing AS s JOIN truerank.board AS b"
        " ON b.id = s.ranking >> 36 WHERE b.key = %s",
        (board,),
    ).fetchall()
    return Target(pipe, rows[0][0], member)


def stores(pipe: Pipeline) -> dict[Any, Any]:
    """Everything in Redis, and what PostgreSQL holds of the pipeline."""
    redis: dict[Any, Any] = {name: pipe.redis.dump(name) for name in pipe.redis.scan_iter()}
    for table in ("tick", "outbox", "standing", "generation", "lease", "ranking"):
        query = f"SELECT t::text FROM truerank.{table} AS t ORDER BY 1"
        redis[table] = pipe.conn.execute(query.encode()).fetchall()
    return redis


def test_where_nothing_is_wrong_all_are_current(shown: Pipeline) -> None:
    report = reconcile(shown.settings)

    assert report.line() == "checked 3: current 3"
    assert (report.drift, report.unrepaired, report.examples) == (0, 0, [])


def test_each_kind_is_counted_and_all_but_ahead_is_mended(single: Pipeline) -> None:
    members = {"A": 17, "B": 25, "C": 9, "D": 5, "F": 8}
    single.submit("b", members)
    single.submit("b", {"A": 1, "C": 1})
    single.settle(single.projector())
    all_of_it(target(single, "B"))
    to_an_older_one(target(single, "C"))
    its_score(target(single, "D"))
    a_member_more(target(single, "A"))
    to_a_newer_one(target(single, "F"))

    first = reconcile(single.settings, repair=True)
    second = reconcile(single.settings, repair=True)

    assert (
        first.line()
        == "checked 6: ahead 1, corrupt 1, current 1, ghost 1, missing 1, stale 1, repaired 4"
    )
    assert second.line() == "checked 5: ahead 1, current 4"
    assert (first.unrepaired, second.unrepaired) == (1, 1)


def test_looking_alone_writes_to_neither_store(shown: Pipeline) -> None:
    a_member_more(target(shown, "ann"))
    all_of_it(target(shown, "bob"))
    the_counts(target(shown, "bob"))
    before = stores(shown)

    report = reconcile(shown.settings)

    assert report.drift > 0
    assert stores(shown) == before


def test_an_example_says_what_either_side_has(shown: Pipeline) -> None:
    its_score(target(shown, "bob"))

    (found,) = reconcile(shown.settings).to_json()["examples"]

    assert (found["kind"], found["member"], found["board"], found["season"]) == (
        "corrupt",
        "bob",
        "b",
        "all",
    )
    assert found["source"] == {"version": "2", "score": "20", "places": 1}
    assert (found["projection"]["version"], found["repaired"]) == ("2", False)


def test_examples_are_bounded(single: Pipeline) -> None:
    single.submit("b", {f"m{n}": n for n in range(9)})
    single.settle(single.projector())
    for n in range(9):
        its_score(target(single, f"m{n}"))

    report = reconcile(single.settings, examples_max=2)

    assert (len(report.examples), report.drift) == (2, 9)


def test_what_is_on_its_way_is_lagging_and_no_drift(shown: Pipeline) -> None:
    shown.submit("b", {"bob": 1})

    report = reconcile(shown.settings, repair=True, wait_s=0.05)

    assert report.line() == "checked 3: current 2, lagging 1"
    assert (report.drift, report.unrepaired) == (0, 0)
    shown.settle(shown.projector())


def test_a_newer_version_than_the_sources_stays_until_it_is_accepted(shown: Pipeline) -> None:
    to_a_newer_one(target(shown, "bob"))
    before = target(shown, "bob").entry

    kept = reconcile(shown.settings, repair=True)
    left = target(shown, "bob").entry
    forced = reconcile(shown.settings, repair=True, accept_ahead=True)
    shown.submit("b", {"bob": 5})
    shown.settle(shown.projector())

    assert (kept.line(), left) == ("checked 3: ahead 1, current 2", before)
    assert forced.line() == "checked 3: ahead 1, current 2, repaired 1"
    assert differences(shown) == []  # and so the event after it is not held for an old one


def test_other_boards_are_left_alone_to_the_byte(single: Pipeline) -> None:
    for board in ("s1", "s10", "s1:old"):
        single.client.create_board(board, seasons=["all", "month"])
        single.submit(board, SCORES)
    single.settle(single.projector())
    single.redis.set("truerank1:{0}:live", "somebody else's")
    its_score(target(single, "bob", "s10"))
    its_score(target(single, "bob", "s1"))
    mine = target(single, "bob", "s1")
    names = [name for name in single.redis.scan_iter() if str(mine.ranking) not in name.decode()]
    kept = {name: single.redis.dump(name) for name in names if not name.endswith(b":meta")}

    report = reconcile(single.settings, board="s1", repair=True)

    assert report.to_json()["corrupt"] == report.repaired == 1
    assert {name: single.redis.dump(name) for name in kept} == kept


def test_one_season_is_compared_alone(single: Pipeline) -> None:
    single.client.create_board("s", seasons=["all", "month"])
    single.submit("s", SCORES)
    single.settle(single.projector())

    report = reconcile(single.settings, board="s", season="all")

    assert (report.rankings, report.checked) == (1, 3)


@pytest.mark.parametrize("counted", [True, False])
def test_a_ranking_that_only_redis_has_is_all_ghosts(shown: Pipeline, *, counted: bool) -> None:
    real = target(shown, "bob")
    made_up = Target(shown, real.ranking + 7, "bob")
    shown.redis.copy(real.places, made_up.places)
    shown.redis.copy(real.shown, made_up.shown)
    if counted:
        shown.redis.hset(real.keys.counts, str(made_up.ranking), "3 0 0")
        shown.redis.hincrby(real.keys.meta, "rankings", 1)

    told = reconciled(shown)
    mended = reconciled(shown, repair=True)

    assert told.line() == "checked 6: current 3, ghost 3"
    assert mended.line() == "checked 6: current 3, ghost 3, repaired 3"
    assert shown.redis.exists(made_up.places, made_up.shown) == 0
    assert reconciled(shown).line() == "checked 3: current 3"


def test_rows_of_a_board_that_was_deleted_leave_nothing_behind(shown: Pipeline) -> None:
    shown.client.create_board("gone", seasons=["all"])
    shown.submit("gone", SCORES)
    shown.settle(shown.projector())
    shown.client.delete_board("gone", actor="a", reason="r")

    before = reconcile(shown.settings)
    while shown.client.purge_boards():
        pass
    shown.settle(shown.projector())

    assert before.line() == "checked 6: current 6"
    assert reconcile(shown.settings).line() == "checked 3: current 3"


def test_what_a_freeze_shows_is_compared_once_all_of_it_is_told(shown: Pipeline) -> None:
    shown.client.freeze_season("b", actor="a", reason="r")
    shown.conn.execute("UPDATE truerank.freeze SET logged = false")

    on_its_way = reconcile(shown.settings)
    shown.conn.execute("UPDATE truerank.freeze SET logged = true")
    catch_up(shown)
    told = reconcile(shown.settings)

    assert on_its_way.line() == "checked 3: current 3"
    assert told.line() == "checked 6: current 6"


def test_more_left_over_than_a_stretch_holds_is_found_whole(shown: Pipeline) -> None:
    bob = target(shown, "bob")
    for n in range(25):
        place = bob.entry[8:] + b"nobody %d" % n
        shown.redis.zadd(bob.places, {place: 0})

    told = reconciled(shown)
    mended = reconciled(shown, repair=True)

    assert told.line() == "checked 28: current 3, ghost 25"
    assert mended.repaired == 25
    assert differences(shown) == []


@pytest.mark.parametrize("key", ["places", "shown", "counts", "members"])
def test_a_key_of_another_type_is_left_to_a_worker_who_fills_a_new_copy(
    shown: Pipeline, key: str
) -> None:
    bob = target(shown, "bob")
    keys = {"places": bob.places, "shown": bob.shown}
    keys |= {"counts": bob.keys.counts, "members": bob.keys.members}
    shown.redis.delete(keys[key])
    shown.redis.set(keys[key], "text")
    settings = msgspec.structs.replace(shown.settings, heartbeat_ms=50, lease_ms=1000)
    shown.free_leases()

    told = reconcile(settings)
    with working(settings):
        wait_until(
            lambda: shown.conn.execute("SELECT workers FROM truerank.status()").fetchone() == (1,),
            "a worker",
        )
        mended = reconcile(settings, repair=True)
        # Whoever of the two met it first, it is the worker that fills the new copy.
        wait_until(lambda: reconcile(settings).line() == "checked 3: current 3", "a new copy")

    assert (told.other, told.unrepaired) == ({"a key of another type": 1}, 1)
    assert mended.unrepaired == 0


@pytest.mark.parametrize("hidden", [True, False])
def test_a_large_ranking_is_counted_again_only_where_nobody_is_withheld(
    shown: Pipeline, monkeypatch: pytest.MonkeyPatch, *, hidden: bool
) -> None:
    monkeypatch.setattr(mending, "_RECOUNTED_MAX", 2)
    if hidden:
        shown.client.hide_member("ann", actor="a", reason="r", timeout_s=0)
        shown.settle(shown.projector())
    the_counts(target(shown, "bob"))

    report = reconciled(shown, repair=True)

    assert (report.handed_over, report.other) == (int(hidden), {"counts": 1})
    assert (differences(shown) == []) is not hidden
    catch_up(shown)
    assert differences(shown) == []


def test_a_ranking_in_quarantine_is_told_and_left_to_a_worker(shown: Pipeline) -> None:
    bob = target(shown, "bob")
    shown.redis.hset(bob.keys.counts, str(bob.ranking), "damaged")

    report = reconciled(shown)

    assert (report.checked, report.other, report.unrepaired) == (0, {"quarantined": 1}, 1)


def test_a_parked_ranking_is_no_drift(shown: Pipeline) -> None:
    bob = target(shown, "bob")
    shown.redis.hset(bob.keys.counts, str(bob.ranking), "damaged")
    shown.conn.execute(
        "INSERT INTO truerank.parked_standing (ranking, grp, reason) VALUES (%s, 0, 'r')",
        (bob.ranking,),
    )

    report = reconciled(shown)

    assert (report.parked, report.drift) == (1, 0)


def test_a_batch_that_stays_half_applied_is_not_compared(shown: Pipeline) -> None:
    bob = target(shown, "bob")
    shown.redis.hset(bob.keys.meta, "pending", shown.meta()["cursor"] + "|1")

    report = reconciled(shown, wait_s=0.05)

    assert (report.without_copy, report.drift) == ([0], 0)


def test_a_copy_after_which_the_log_is_gone_is_not_compared(shown: Pipeline) -> None:
    shown.conn.execute("UPDATE truerank.ring SET floor_tick = 1000000")

    report = reconciled(shown)

    assert (report.without_copy, report.checked) == ([0], 0)


def test_a_group_without_a_live_copy_is_told(shown: Pipeline) -> None:
    shown.redis.delete(shown.keys().pointer)

    report = reconcile(shown.settings)

    assert (report.without_copy, report.checked) == ([0], 0)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("DELETE FROM truerank.tick", "ticks of the copy are gone"),
        ("UPDATE truerank.setting SET epoch = gen_random_uuid()", "another epoch"),
        ("UPDATE truerank.setting SET system_identifier = 7", "another cluster"),
    ],
)
def test_nothing_is_said_by_a_server_that_is_not_the_source(
    shown: Pipeline, change: str, why: str
) -> None:
    to_a_newer_one(target(shown, "bob"))
    shown.conn.execute(change.encode())

    with pytest.raises(SourceDoubtful, match=why):
        reconcile(shown.settings, repair=True, accept_ahead=True)


def test_nothing_is_said_by_a_server_that_was_replaced(shown: Pipeline) -> None:
    (source,) = shown.conn.execute("SELECT truerank.wal_source()").fetchone() or ("",)
    cluster, _, timeline = source.partition(":")
    bob = target(shown, "bob")
    shown.redis.hset(bob.keys.meta, "source", f"{cluster}:{int(timeline) + 1}")

    with pytest.raises(SourceDoubtful, match="feeds it"):
        reconcile(shown.settings)


def test_readers_are_told_of_what_was_mended(shown: Pipeline) -> None:
    bob = target(shown, "bob")
    its_score(bob)
    hints = shown.redis.pubsub()
    hints.subscribe(shown.keys().hints)
    assert hints.get_message(timeout=10)["type"] == "subscribe"

    reconcile(shown.settings, repair=True)

    message = hints.get_message(timeout=10)
    board, *_, rankings = message["data"].split()
    assert (int(board), int(rankings)) == (bob.ranking >> 36, bob.ranking)
    hints.close()


def test_what_is_mended_is_covered_by_a_tick_that_was_taken_after(shown: Pipeline) -> None:
    its_score(target(shown, "bob"))
    (before,) = shown.conn.execute("SELECT max(id) FROM truerank.tick").fetchone() or (0,)

    reconcile(shown.settings, repair=True)

    covered = shown.meta()["covered"]
    (found,) = shown.conn.execute(
        "SELECT max(id) FROM truerank.tick WHERE id || ':' || nonce = %s", (covered,)
    ).fetchone() or (0,)
    assert found > before


class RacingLink(Link):
    """Lets something happen once at a moment of a repair."""

    moment: str = ""
    happens: Callable[[], object] = staticmethod(lambda: None)

    def calls(self, calls: Sequence[ScriptCall]) -> tuple[list[Any], str | None]:
        looks_at_members = calls[0].script == "inspect" and len(calls[0].args) > 3
        self._pass("before the look" if looks_at_members else f"before {calls[0].script}")
        replies = super().calls(calls)
        if looks_at_members:
            self._pass("after the look")
        return replies

    def _pass(self, moment: str) -> None:
        if moment == self.moment:
            self.moment = ""
            self.happens()


def committed(pipe: Pipeline) -> None:
    pipe.submit("b", {"bob": 7})


def projected(pipe: Pipeline) -> None:
    pipe.submit("b", {"bob": 7})
    pipe.projector().step(anyway=True)


def removed(pipe: Pipeline) -> None:
    pipe.client.delete_member("bob", actor="a", reason="r", timeout_s=0)
    pipe.projector().step(anyway=True)


def hidden(pipe: Pipeline) -> None:
    pipe.client.hide_member("bob", actor="a", reason="r", timeout_s=0)


def catch_up(pipe: Pipeline) -> None:
    """Have everything projected that is committed, and what was begun anew filled."""
    projector = pipe.projector()
    wait_until(
        lambda: not projector.step(anyway=True) and projector.whole and not filling(pipe),
        "nothing left to project",
    )


def filling(pipe: Pipeline) -> int:
    """How many copies are being filled."""
    row = pipe.conn.execute("SELECT count(*) FROM truerank.generation WHERE state = 'warming'")
    (number,) = row.fetchone() or (0,)
    return int(number)


MOMENTS = ["before the look", "after the look", "before repair", "after the repair"]


@pytest.mark.parametrize("event", [committed, projected, removed, hidden])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("damage", [its_score, to_an_older_one, all_of_it])
def test_an_event_that_comes_at_any_moment_of_a_repair_is_shown_in_the_end(
    shown: Pipeline,
    damage: Callable[[Target], None],
    moment: str,
    event: Callable[[Pipeline], None],
) -> None:
    damage(target(shown, "bob"))
    link = shown.link(RacingLink)
    link.moment, link.happens = moment, lambda: event(shown)

    first = reconciled(shown, link, repair=True, wait_s=0.05)
    if moment == MOMENTS[-1]:
        event(shown)
    catch_up(shown)
    second = reconciled(shown, repair=True)

    assert link.moment in {"", MOMENTS[-1]}
    assert [first.ahead, second.ahead] == [0, 0]
    assert second.unrepaired == 0
    catch_up(shown)
    assert differences(shown) == []


def test_a_repair_that_is_overtaken_by_the_worker_changes_nothing(shown: Pipeline) -> None:
    its_score(target(shown, "bob"))
    link = shown.link(RacingLink)
    link.moment, link.happens = "before repair", lambda: projected(shown)

    report = reconciled(shown, link, repair=True)

    assert report.line() == "checked 3: current 3"
    assert differences(shown) == []


def test_an_event_that_the_fence_drops_while_its_standing_is_mended_is_not_lost(
    shown: Pipeline,
) -> None:
    to_a_newer_one(target(shown, "bob"))
    link = shown.link(RacingLink)
    link.moment, link.happens = "before repair", lambda: projected(shown)

    report = reconciled(shown, link, repair=True, accept_ahead=True)

    assert report.line() == "checked 3: ahead 1, current 2, repaired 1"
    assert differences(shown) == []


def test_who_moves_behind_the_walk_is_met_all_the_same(shown: Pipeline) -> None:
    shown.submit("b", {f"m{n}": 5 for n in range(5)})
    shown.settle(shown.projector())
    report = Report()
    rules = Rules(rows_max=2)
    conn, link = shown.worker_connection(), shown.link()
    steps = Reconciliation(conn, link, shown.settings.prefix, rules, report).group(0)

    while report.checked < 4:
        next(steps)
    shown.submit("b", {"m4": 1000})
    shown.projector().step(anyway=True)
    its_score(target(shown, "m4"))
    for _ in steps:
        pass

    assert [(found.kind, found.member) for found in report.examples] == [("corrupt", "m4")]


def test_a_copy_that_is_replaced_meanwhile_is_walked_on_in_the_new_one(shown: Pipeline) -> None:
    projector = shown.projector()
    projector.step()
    held = shown.generation()
    bob = target(shown, "bob")

    def replaced() -> None:
        shown.redis.hset(bob.keys.counts, str(bob.ranking), "damaged")
        shown.submit("b", {"ann": 1})
        wait_until(lambda: (projector.step(), shown.generation() != held)[1], "a new copy")
        shown.settle(projector)

    link = shown.link(RacingLink)
    link.moment, link.happens = "before inspect", replaced

    report = reconciled(shown, link)

    assert report.line() == "checked 3: current 3"


@pytest.fixture
def run(shown: Pipeline) -> Callable[..., Done]:
    """The command on the stores of this test."""
    settings = shown.settings
    assert settings.database_url is not None
    assert settings.redis_url is not None
    urls = {
        "TRUERANK_DATABASE_URL": settings.database_url,
        "TRUERANK_REDIS_URL": settings.redis_url,
    }
    return lambda *words: Command(None)("reconcile", *words, **urls)


def test_the_command_says_by_its_exit_status_whether_drift_stays(
    run: Callable[..., Done], shown: Pipeline
) -> None:
    clean = run("--json")
    its_score(target(shown, "bob"))
    found = run()
    mended = run("b", "--season", "all", "--repair")

    assert (clean.status, clean.json["checked"], clean.json["drift"]) == (0, 3, 0)
    assert (found.status, mended.status) == (1, 0)
    assert "checked 3: corrupt 1, current 2\n" in found.out
    assert "checked 3: corrupt 1, current 2, repaired 1\n" in mended.out
    assert "another score than the source's" in found.out


def test_the_command_does_not_call_well_what_it_could_not_compare(
    run: Callable[..., Done], shown: Pipeline
) -> None:
    shown.redis.delete(shown.keys().pointer)

    done = run()

    assert done.status == 1
    assert "not compared" in done.out


def test_the_command_refuses_what_contradicts_itself(run: Callable[..., Done]) -> None:
    for words in (("--season", "all"), ("--accept-ahead",)):
        done = run(*words)
        assert (done.status, "error[invalid_input]" in done.err) == (1, True)

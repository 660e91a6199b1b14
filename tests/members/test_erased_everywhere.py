"""An id that stands wherever one can stand is nowhere once its erasure is complete."""

from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from functools import partial
from typing import Any

import psycopg

from tests.members.conftest import BY
from tests.members.test_erasures import ADA, Registry, registry
from tests.projection.pipeline import wait_until
from truerank.model import AwardRule, LeagueRule, Profile, ScoreEvent
from truerank.repair.settlement import check_places, check_settlement

__all__ = ["registry"]

LADY = "lady " + ADA
SHE: Any = {"actor": ADA, "reason": f"asked by {ADA}"}

# Every column of every table in which it may stand. A new one must be here, and filled below.
COLUMNS = {
    "audit.actor", "audit.detail", "audit.reason", "audit.subject",
    "award.acknowledged_by", "award.member", "award_past.acknowledged_by",
    "board.filled_to",
    "cohort_member.member",
    "erasure.actor", "erasure.reason",
    "event.event_text", "event.member", "event.metadata",
    "freeze.actor", "freeze.logged_to", "freeze.reason",
    "league.scanned_member", "league_key.member", "league_move.member",
    "member.display_name", "member.id", "member.merged_into", "member.profile",
    "member_state.member", "merging.member",
    "opening.member", "outbox.member",
    "parked.event_id", "parked.member", "parked.message",
    "parked_standing.member", "parked_standing.reason",
    "pruning.after_member", "rate.member",
    "rebuild.asked_by", "rebuild.message",
    "reconciling.found", "reconciling.last_found", "reconciling.member",
    "settlement.actor", "settlement.reason", "settlement_excluded.member",
    "settlement_name.member", "settlement_name.name", "settlement_row.member",
    "standing.member",
    "webhook_delivery.data", "webhook_delivery.member",
}  # fmt: skip
# Names of columns that hold a member or what somebody wrote; those of tables and servers, no.
NAMES = ("member", "_by", "actor", "reason", "name", "subject", "message", "metadata", "profile")
NOBODY = {
    "attachment.member", "award_rule.name", "board.tie_names", "erasure.names", "past_epoch.reason",
    "webhook.name",
}  # fmt: skip


def score(registry: Registry, board: str, at: datetime, **values: int) -> None:
    """An event for each, whose id names the member."""
    named = {"ada": ADA, "lady": LADY}
    for member, value in values.items():
        who = named.get(member, member)
        registry.client.submit_score(
            board, event_id=f"{who}:{at:%m%d}", member=who, value=value, occurred_at=at,
            metadata={"by": who},
        )  # fmt: skip


def play(registry: Registry) -> None:
    """Scores, corrections, a name, states, and another id that was merged."""
    client, spring = registry.client, [datetime(2026, 3, n, tzinfo=UTC) for n in range(1, 5)]
    client.add_webhook("w", "https://example.com/", ["event.voided", "award.given"], **SHE)
    client.update_board("b", {"rate_max": 1000}, **SHE)
    for at in spring[:3]:
        score(registry, "b", at, ada=1, bob=1)
    client.void_events("b", [f"{ADA}:0301"], **SHE)
    client.amend_event("b", f"{ADA}:0302", 20, correction_id=f"{ADA}:2b", **SHE)
    registry.pipeline.submit("b", {ADA: 1})
    client.set_profiles([Profile(member=ADA, name=f"Countess {ADA}", details={"of": ADA})])
    client.ban_member(ADA, board="c", **BY)
    client.unban_member(ADA, board="c", **BY)
    client.hide_member("bob", **SHE, timeout_s=0)
    client.show_member("bob", **BY)
    score(registry, "c", spring[3], lady=50)
    client.merge_members(LADY, ADA, **BY)


def close(registry: Registry) -> None:
    """Three months, in cohorts: settled with her, revised twice, and without her; prizes."""
    client = registry.client
    client.create_board("m", seasons=["month"])
    rule = LeagueRule(period="month", size=2, by_key=True, tiers=("low", "high"), promote=1)
    client.set_league("m", rule, from_season="2024-05", **SHE)
    client.assign_league_key("m", ADA, "red")
    client.make_award_rule("m", AwardRule(period="month", name="first", ranks=(1, 1)), **SHE)
    for month in (5, 6, 7):
        at = datetime(2024, month, 3, tzinfo=UTC)
        score(registry, "m", at, ada=6, lady=3, bob=7, cid=2, dan=1)
        if month == 6:
            client.ban_member(ADA, board="m", **BY)
        if month < 7:
            client.close_season("m", f"2024-{month:02}", **SHE)
    client.unban_member(ADA, board="m", **BY)
    for value in (10, 11):
        client.acknowledge_awards([award.change for award in client.awards()], actor=ADA)
        client.revise_season(
            "m", "2024-05", amend=f"{ADA}:0503", value=value, correction_id=f"c {value}", **SHE
        )
    client.acknowledge_awards([award.change for award in client.awards()], actor=ADA)
    while client.divide_members():
        pass


def write(registry: Registry) -> None:
    """What stands in some tables for a moment only, or after a mishap."""
    client, conn = registry.client, registry.pipeline.conn
    client.erase_member("nobody", actor=ADA, reason=f"{ADA} asks", timeout_s=0)
    client.freeze_season("b", actor=ADA, reason=f"{ADA} leads")
    one = "(SELECT id FROM truerank.board WHERE key = 'b')"
    for sql in (
        f"UPDATE truerank.freeze SET logged_to = '{ADA}', logged = false",
        f"UPDATE truerank.board SET filled_to = '{ADA}'",
        f"UPDATE truerank.league SET scanned_member = '{ADA}'",
        "UPDATE truerank.board SET history_from = '2026-03-02' WHERE key = 'b'",
        f"INSERT INTO truerank.pruning (board_id, after_member) VALUES ({one}, '{ADA}')",
        f"""INSERT INTO truerank.opening (ranking, member, events, score, event_at, event_position,
                moved, reached_at, reached_position)
            SELECT ranking, member, 1, 1, event_at, event_position, moved, event_at, event_position
            FROM truerank.standing WHERE member = '{ADA}'""",
        f"""UPDATE truerank.reconciling SET grp = 0, ranking = 1, sort_key = 'x',
                member = '{ADA}', found = '[["{ADA}"]]',
                last_found = '{{"examples": ["{ADA}"]}}'""",
        f"""INSERT INTO truerank.rebuild
                (grp, kind, cause, throttled, keep_ms, asked_by, ended_at, outcome, message)
            VALUES (0, 'rebuild', 'asked', false, 0, '{ADA}', now(), 'failed', 'at {ADA}')""",
        "CREATE TABLE public.played (id text PRIMARY KEY, who text, points bigint)",
        f"""INSERT INTO truerank.attachment (board_id, relation, source, event_id, member, value,
                occurred_at, on_update, on_delete, on_refusal)
            VALUES ({one}, 'public.played', 'played', 'id', 'who', 'points', NULL, 'ignore',
                'ignore', 'park')""",
        f"""INSERT INTO truerank.parked (attachment_id, action, event_id, member, code, message)
            SELECT id, 'submit', '{ADA}:x', '{ADA}', 'x', 'of {ADA}' FROM truerank.attachment""",
    ):
        conn.execute(sql.encode())


def columns(registry: Registry) -> set[str]:
    """All columns by whose name somebody may stand there."""
    rows = registry.pipeline.conn.execute(
        """SELECT c.relname || '.' || a.attname FROM pg_class AS c
           JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
           JOIN pg_type AS t
             ON t.oid = a.atttypid AND t.typcategory IN ('S', 'U', 'A') AND t.typname <> 'uuid'
           WHERE c.relnamespace = 'truerank'::regnamespace AND c.relkind IN ('r', 'p')
             AND NOT c.relispartition"""
    ).fetchall()
    return {name for (name,) in rows if name.partition(".")[2].endswith(NAMES)}


def named(registry: Registry) -> set[str]:
    """Columns in which she stands; of partitioned tables the whole."""
    found = set()
    for trace in registry.traces():
        if trace.startswith("truerank."):
            table, _, column = trace.partition(":")[0].removeprefix("truerank.").partition(".")
            found.add(table.strip('"').rstrip("_0123") + "." + column)
    return found


def check_settled(registry: Registry) -> None:
    """Digests stay, of all revisions and cohorts; whoever reads them is told of a stand-in."""
    client, conn = registry.client, registry.pipeline.conn
    for label, revisions in (("2024-05", 3), ("2024-06", 1)):
        season = client.season("m", label)
        for proof in (check_settlement(conn, season), check_places(conn, season)):
            assert proof is not None
            assert (proof.differences, proof.whole) == ((), True)
        assert len(client.settlements("m", label)) == revisions
        assert conn.execute(
            "SELECT * FROM truerank.cohort_differences(%s, 10)", (season.ranking,)
        ).fetchall() == []  # fmt: skip
        for revision in range(1, revisions + 1):
            places = client.settlement_places("m", label, revision=revision).places
            held = [place.member for place in places]
            assert held[-3:] == ["bob", "cid", "dan"]
            assert len(held) == (4 if label == "2024-05" else 3)
    (excluded,) = client.settlement_excluded("m", "2024-06").excluded
    assert excluded.member.startswith("erased-")
    awards = {(a.season, a.member.split("-")[0], a.state) for a in client.awards()}
    assert awards == {("2024-05", "erased", "given"), ("2024-06", "bob", "given")}


def test_whoever_is_erased_stands_in_no_table_and_no_key(registry: Registry) -> None:
    play(registry)
    close(registry)
    write(registry)
    projector = registry.pipeline.projector()
    registry.pipeline.settle(projector)
    registry.pipeline.conn.execute(
        """INSERT INTO truerank.parked_standing (ranking, grp, member, version, reason, retry_at)
           SELECT min(ranking), 0, member, 1, member, 'infinity' FROM truerank.standing
           WHERE member = %s GROUP BY member""",
        (ADA,),
    )
    registry.pipeline.conn.execute("INSERT INTO truerank.merging (member) VALUES (%s)", (LADY,))
    assert columns(registry) - NOBODY <= COLUMNS
    assert named(registry) == COLUMNS
    assert any(trace.startswith("truerank:") for trace in registry.traces()), "and in Redis"
    digests = "SELECT ranking, revision, digest FROM truerank.settlement ORDER BY 1, 2"
    before = registry.pipeline.conn.execute(digests).fetchall()

    erasure = registry.client.erase_member(ADA, actor=ADA, reason=f"{ADA} asks", timeout_s=0.0)

    assert erasure.pending
    assert registry.shown() == {"bob": "10"}
    done = registry.complete(erasure, projector)
    assert registry.traces() == registry.traces(LADY.encode()) == []
    assert not any(ADA in stand_in for stand_in in done.stand_ins)
    assert registry.pipeline.conn.execute(digests).fetchall() == before
    check_settled(registry)
    assert registry.shown() == {"bob": "10"}
    assert registry.shown("c") == {"bob": "2"}
    registry.pipeline.submit("c", {LADY: 1, ADA: 3})
    registry.pipeline.settle(projector)
    assert registry.shown("c") == {"bob": "2", LADY: "1", ADA: "3"}


BLOCKING = "SELECT %s = ANY (pg_blocking_pids(%s))"
# What an erasure waits for, in this order, and what it can't see.
SAID_FIRST = (
    f"SELECT truerank.set_member_state('{ADA}', 'ban', 'op', 'test', 'c')",
    f"SELECT truerank.assign_league_key('m', '{ADA}', 'red')",
    f"SELECT truerank.set_profiles('{{{ADA}}}', '{{Countess}}', ARRAY[NULL::jsonb])",
)
SAID_UNSEEN = (
    f"SELECT truerank.void_events('m', '{{{ADA}:1}}', '{ADA}', '{ADA} asks')",
    f"SELECT truerank.submit_score('m', '{ADA}:2', '{ADA}', 7)",
)


def is_true(conn: psycopg.Connection[Any], sql: str, params: tuple[int, ...]) -> bool:
    return conn.execute(sql.encode(), params).fetchone() == (True,)


def test_what_is_said_of_a_person_at_that_moment_is_erased_too(
    registry: Registry, begin: Callable[..., Future[Any]]
) -> None:
    """Each in a transaction of its own that is open when the erasure begins."""
    client, pipeline = registry.client, registry.pipeline
    client.create_board("m", seasons=["month"])
    client.add_webhook("w", "https://example.com/", ["event.voided"], actor="op", reason="test")
    client.submit_scores("m", [ScoreEvent(event_id=f"{ADA}:1", member=ADA, value=1)])
    client.reset_member(ADA, board="m", **BY)
    waited_for, late = ([pipeline.connection() for _ in said] for said in (SAID_FIRST, SAID_UNSEEN))
    for writer, sql in zip((*waited_for, *late), (*SAID_FIRST, *SAID_UNSEEN), strict=True):
        writer.execute(sql.encode())
    erasing = pipeline.connection()
    erasing.execute("SET lock_timeout = '20s'")
    erased = begin(erasing.execute, "SELECT truerank.erase_member(%s, 'op', 'test')", (ADA,))
    for writer in waited_for:
        pids = (writer.info.backend_pid, erasing.info.backend_pid)
        wait_until(partial(is_true, pipeline.conn, BLOCKING, pids), "the erasure to wait")
        writer.commit()
    erased.result(30)
    erasing.commit()
    for writer in late:
        writer.commit()

    (erasure, *_) = client.erasures()
    projector = pipeline.projector()
    registry.complete(erasure, projector)
    pipeline.settle(projector)
    assert registry.traces() == []
    assert client.member_states(ADA) == []


def test_an_id_that_is_merged_into_a_person_at_that_moment_is_erased_with_it(
    registry: Registry, begin: Callable[..., Future[Any]]
) -> None:
    registry.pipeline.submit("c", {LADY: 40})
    merging, erasing = registry.pipeline.connection(), registry.pipeline.connection()
    erasing.execute("SET lock_timeout = '20s'")
    merging.execute("SELECT truerank.merge_members(%s, %s, 'op', 'test')", (LADY, ADA))

    erased = begin(erasing.execute, "SELECT truerank.erase_member(%s, 'op', 'test')", (ADA,))
    pids = (merging.info.backend_pid, erasing.info.backend_pid)
    wait_until(partial(is_true, registry.pipeline.conn, BLOCKING, pids), "the erasure to wait")
    merging.commit()
    erased.result(30)
    erasing.commit()

    (erasure,) = registry.client.erasures()
    projector = registry.pipeline.projector()
    assert registry.complete(erasure, projector).events == 3
    registry.pipeline.settle(projector)
    assert registry.traces() == registry.traces(LADY.encode()) == []

"""What a verification says of a board that is whole, and of one that isn't."""

import hashlib
import itertools
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.http.conftest import serving
from tests.projection.pipeline import Pipeline, pipeline, wait_until, working
from truerank.cli import app
from truerank.model import Operator, Order, ScoreEvent, TieBreak
from truerank.repair.recount import recount
from truerank.repair.reference import snapshot_of
from truerank.repair.verified import Verdict, Verification
from truerank.repair.verify import verify
from truerank.settings import Settings

SCORES = {"ann": 10, "bob": 25, "cid": 10, "d\u00e9\n": 7, '"eve"': -3}


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    # A page held by a server would only have to be waited for.
    return Settings(
        database_url=database_url,
        redis_url=redis_url,
        board_cache_ms=1,
        cache_max_ms=0,
        live_checks_percent=0,
    )


@pytest.fixture
def shown(settings: Settings) -> Iterator[Pipeline]:
    """Board `b` with five members, which a worker keeps shown."""
    with pipeline(settings, groups=1) as made, working(settings):
        made.client.create_board("b", seasons=["all"])
        submit(made, SCORES)
        yield made


def submit(pipe: Pipeline, scores: dict[str, int]) -> None:
    (*_, receipt) = pipe.submit("b", scores)
    assert receipt.token is not None
    pipe.client.wait_visible(receipt.token, ["b"], timeout_s=30)


def failed(found: Verification) -> set[str]:
    """The paths that say something else than the source."""
    return {path.name for path in found.paths if not path.same}


def hand_edit(pipe: Pipeline, member: str, score: int) -> None:
    """Show another score of a member, as somebody would who knows how the keys are made."""
    copy = pipe.keys().generation(pipe.generation() or "")
    ((ranking, *_),) = [(r,) for r in pipe.rankings()]
    shown: Any = pipe.redis.hget(copy.shown(ranking), member)
    key = ((~score) + (1 << 63)).to_bytes(8) + shown[16:]
    pipe.redis.zrem(copy.places(ranking), shown[8:] + member.encode())
    pipe.redis.zadd(copy.places(ranking), {key + member.encode(): 0})
    pipe.redis.hset(copy.shown(ranking), member, shown[:8] + key)


def test_a_board_that_is_whole_has_one_digest_on_every_path(shown: Pipeline) -> None:
    with serving(shown.settings) as url:
        found = verify(shown.settings, "b", url=url)

    assert found.verdict is Verdict.SAME
    assert (found.members, found.attempts) == (5, 1)
    whole = {path.name: path.digest for path in found.paths if path.digest is not None}
    assert whole == dict.fromkeys(
        ("standings", "projection", "database", "export", "http"), found.digest
    )
    assert {path.name for path in found.paths} >= {
        "events", "projection backwards", "projection places", "projection windows",
        "database backwards", "database places", "database windows",
    }  # fmt: skip


def test_whoever_has_an_export_can_compute_the_digest(shown: Pipeline) -> None:
    found = verify(shown.settings, "b")

    whole = hashlib.sha256()
    for row in map(json.loads, shown.client.export("b", format="ndjson")):
        cells = [row["rank"], row["member"], row["score"]]
        whole.update(json.dumps(cells, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
    assert whole.hexdigest() == found.digest


@pytest.mark.parametrize("operator", list(Operator))
def test_boards_of_every_kind_are_the_same_on_every_path(
    settings: Settings, operator: Operator
) -> None:
    with pipeline(settings, groups=1) as pipe, working(settings):
        pipe.client.create_board(
            "b",
            operator=operator,
            order=Order.ASC,
            decimals=2,
            seasons=["all", "day"],
            tie_breaks=[TieBreak(name="moves", order=Order.DESC)],
            dense=True,
        )
        day = datetime.now(UTC) - timedelta(days=1)
        events = [
            ScoreEvent(
                event_id=f"e{i}",
                member=f"m{i % 12}",
                value=f"{i % 5}.5",
                ties=(i % 3,),
                occurred_at=day + timedelta(hours=i % 3),
            )
            for i in range(60)
        ]
        pipe.client.submit_scores("b", events)
        pipe.client.void_events("b", ["e3", "e15"], actor="test", reason="test")
        pipe.client.hide_member("m4", actor="test", reason="test")
        pipe.client.merge_members("m5", "m6", actor="test", reason="test")

        def listed() -> set[str]:
            return {season.label for season in pipe.client.seasons("b")}

        # By the worker, a moment later.
        wait_until(lambda: listed() >= {"all", f"{day:%Y-%m-%d}"}, "the seasons are listed")

        verdicts = {label: verify(settings, "b", label) for label in listed()}

        assert {label: failed(found) for label, found in verdicts.items()} == {
            label: set() for label in verdicts
        }
        assert [found.verdict for found in verdicts.values()] == [Verdict.SAME] * len(verdicts)
        assert verdicts["all"].members == 10


def test_an_empty_season_is_the_same_everywhere(shown: Pipeline) -> None:
    shown.client.create_board("empty")

    assert verify(shown.settings, "empty").verdict is Verdict.SAME


def test_a_score_changed_in_redis_is_found_on_the_paths_that_read_it(shown: Pipeline) -> None:
    hand_edit(shown, "ann", 999)

    found = verify(shown.settings, "b")

    assert found.verdict is Verdict.DIFFERENT
    assert failed(found) == {
        "projection", "projection backwards", "projection places", "projection windows"
    }  # fmt: skip
    (path,) = (path for path in found.paths if path.name == "projection")
    assert path.digest not in {None, found.digest}
    assert (path.differences[0].found, path.differences[0].expected) == (
        "1 'ann' 999",
        "1 'bob' 25",
    )


def test_two_places_that_changed_hands_in_redis_are_found(shown: Pipeline) -> None:
    copy = shown.keys().generation(shown.generation() or "")
    (ranking,) = shown.rankings()
    first, second = shown.redis.zrange(copy.places(ranking), 1, 2)
    key = len(first) - 3
    assert (first[key:], second[key:]) == (b"ann", b"cid")
    shown.redis.zrem(copy.places(ranking), first, second)
    swapped = (first[:key] + b"cid", second[:key] + b"ann")
    shown.redis.zadd(copy.places(ranking), dict.fromkeys(swapped, 0))

    found = verify(shown.settings, "b")

    assert found.verdict is Verdict.DIFFERENT
    (path,) = (path for path in found.paths if path.name == "projection")
    assert [each.subject for each in path.differences] == ["row 2", "row 3"]


def test_a_place_lost_in_redis_makes_the_projection_fail(shown: Pipeline) -> None:
    copy = shown.keys().generation(shown.generation() or "")
    (ranking,) = shown.rankings()
    # Counts that agree with each other, so that no reader notices.
    (place,) = shown.redis.zrange(copy.places(ranking), 0, 0)
    shown.redis.zrem(copy.places(ranking), place)
    shown.redis.hdel(copy.shown(ranking), "bob")
    shown.redis.hset(copy.counts, str(ranking), "4 0 0")

    found = verify(shown.settings, "b")

    assert found.verdict is Verdict.DIFFERENT
    assert "projection" in failed(found)


def test_a_standing_changed_in_postgresql_is_found_by_its_events(shown: Pipeline) -> None:
    shown.conn.execute("UPDATE truerank.standing SET score = 11 WHERE member = 'ann'")

    found = verify(shown.settings, "b")

    assert found.verdict is Verdict.DIFFERENT
    (path,) = (path for path in found.paths if path.name == "events")
    (difference,) = path.differences
    assert (difference.subject, difference.expected) == ("ann", "10 by its events")
    assert str(difference.found).startswith("11 at version ")


def test_an_event_that_is_missing_is_found(shown: Pipeline) -> None:
    shown.conn.execute("DELETE FROM truerank.event WHERE member IN ('ann', 'cid')")

    (path,) = (p for p in verify(shown.settings, "b").paths if p.name == "events")

    assert [(each.subject, each.expected) for each in path.differences] == [
        ("ann", None),
        ("cid", None),
    ]


def test_a_standing_that_is_missing_is_found(shown: Pipeline) -> None:
    shown.conn.execute("DELETE FROM truerank.standing WHERE member = 'bob'")

    found = verify(shown.settings, "b")

    (path,) = (path for path in found.paths if path.name == "events")
    assert [(each.subject, each.found) for each in path.differences] == [("bob", None)]
    assert "projection" in failed(found)


def test_a_standing_of_a_merged_member_is_found(settings: Settings) -> None:
    with pipeline(settings, groups=1) as pipe:  # a worker would mend it
        pipe.client.create_board("b", seasons=["all"])
        pipe.submit("b", SCORES)
        pipe.client.merge_members("ann", "bob", actor="test", reason="test")
        pipe.conn.execute(
            """INSERT INTO truerank.standing
               SELECT s.ranking, s.score, s.version, s.event_at, s.event_position, s.moved, 'ann',
                      s.sort_key, s.ties
               FROM truerank.standing AS s WHERE s.member = 'bob'"""
        )

        assert settings.database_url is not None
        with snapshot_of(settings.database_url) as conn:
            found = recount(conn, pipe.client.season("b"))

    assert [(each.subject, each.expected) for each in found.differences] == [("ann", None)]


def test_a_settlement_is_compared_with_the_events_of_its_season_and_with_its_places(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setenv("TRUERANK_DATABASE_URL", str(settings.database_url))
    monkeypatch.setenv("TRUERANK_REDIS_URL", str(settings.redis_url))
    with pipeline(settings, groups=1) as pipe, working(settings):
        pipe.client.create_board("b", seasons=["day"])
        at = datetime.now(UTC) - timedelta(days=3)
        label = f"{at:%Y-%m-%d}"
        for member, value in SCORES.items():
            pipe.client.submit_score(
                "b", event_id=f"of {member}", member=member, value=value, occurred_at=at
            )
        pipe.client.close_season("b", label, actor="test", reason="test")

        sound = verify(settings, "b", label)
        pipe.conn.execute("UPDATE truerank.event SET value = 12 WHERE member = 'ann'")
        found = verify(settings, "b", label)
        pipe.conn.execute("UPDATE truerank.event SET value = 10 WHERE member = 'ann'")
        pipe.conn.execute("UPDATE truerank.settlement_row SET competition = 1, score = 900000")
        places = verify(settings, "b", label)
        status = app.run(["verify", "b", "--season", label])

    assert (sound.verdict, sound.state) == (Verdict.SAME, "final")
    assert {"settlement 1", "settled places"} <= {path.name for path in sound.paths}
    assert failed(found) == {"events", "settlement 1"}
    assert (places.verdict, failed(places)) == (Verdict.DIFFERENT, {"settled places"})
    assert status == 1
    wrong = b"settled places: revision 1: place 2: score: 900000; the source has 10\n"
    assert wrong in capfdbinary.readouterr().out


def test_events_that_were_forgotten_count_by_what_they_came_to(settings: Settings) -> None:
    at = datetime.now(UTC) - timedelta(days=3)
    with pipeline(settings, groups=1) as pipe, working(settings):
        pipe.client.create_board("b", seasons=["all", "day"])
        for member, value in SCORES.items():
            pipe.client.submit_score(
                "b", event_id=f"of {member}", member=member, value=value, occurred_at=at
            )
        pipe.client.update_board("b", {"retention": "1 day"}, actor="test", reason="test")
        left = "SELECT FROM truerank.event WHERE kind = 's'"
        wait_until(
            lambda: pipe.client.prune_events("b") and not pipe.conn.execute(left).fetchall(),
            "all events are forgotten",
        )

        whole, day = verify(settings, "b", "all"), verify(settings, "b", f"{at:%Y-%m-%d}")

        assert (whole.verdict, day.verdict) == (Verdict.SAME, Verdict.SAME)
        notes = {path.name: path.note for path in day.paths}
        assert notes["events"] == "the events of this season are forgotten"
        pipe.conn.execute("UPDATE truerank.standing SET score = 12 WHERE member = 'ann'")
        assert failed(verify(settings, "b", "all")) == {"events"}


def test_traffic_is_never_taken_for_a_difference(shown: Pipeline) -> None:
    stop = threading.Event()

    def write() -> None:
        for i in itertools.count():
            if stop.is_set():
                return
            shown.client.submit_score("b", event_id=f"busy {i}", member=f"m{i % 9}", value=1)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        found = verify(shown.settings, "b")
    finally:
        stop.set()
        thread.join()

    assert found.verdict in {Verdict.MOVING, Verdict.SAME}
    assert failed(found) == set()
    assert verify(shown.settings, "b").verdict is Verdict.SAME


def test_a_projection_that_does_not_follow_is_told(settings: Settings) -> None:
    with pipeline(settings, groups=1) as pipe:
        pipe.client.create_board("b", seasons=["all"])
        pipe.settle(pipe.projector())
        pipe.submit("b", SCORES)

        found = verify(settings, "b", visible_s_max=0.2)

        assert found.verdict is Verdict.DIFFERENT
        (path,) = (path for path in found.paths if not path.same)
        assert path.name == "projection"
        assert "does not show the write" in str(path.error)

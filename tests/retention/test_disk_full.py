"""A full disk of PostgreSQL refuses what it can't take, whole; all goes on when there is room."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
import structlog
from psycopg import sql

from tests.projection.pipeline import Pipeline, differences, pipeline, wait_until
from truerank import ScoreEvent, Truerank
from truerank.embedded import Engines, start_engines
from truerank.errors import DatabaseFull, DatabaseUnavailable
from truerank.local import running_worker
from truerank.schema.migrate import migrate
from truerank.settings import Settings

MIB = 1 << 20
ROOM = 160 * MIB
LOG_SMALL = {"min_wal_size": "32MB", "max_wal_size": "32MB"}
_EVENTS_MAX = 200_000
_SLICE = 200
_PAGE = 4096


@pytest.fixture
def small(request: pytest.FixtureRequest, engines: Engines) -> Iterator[Path]:
    """A small file system that the server may write to."""
    folder = Path(tempfile.mkdtemp(prefix="tr-"))
    program, undo = shutil.which("mount"), shutil.which("umount")
    assert program is not None
    assert undo is not None
    mount = [program, "-t", "tmpfs", "-o", f"size={ROOM},mode=755", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        folder.rmdir()
        reason = "only root may mount a small file system"
        request.node.user_properties.append(("left out", reason))
        pytest.skip(reason)
    try:
        data = folder / "data"
        data.mkdir(mode=0o700)
        folder.chmod(0o755)
        owner = (engines.data / "postgres").stat()
        os.chown(data, owner.st_uid, owner.st_gid)
        yield folder
    finally:
        subprocess.run([undo, "--lazy", str(folder)], check=True)
        folder.rmdir()


@pytest.fixture
def pipe(small: Path, engines: Engines, template: str, redis_url: str) -> Iterator[Pipeline]:
    """A pipeline whose database, but for the WAL, is on the small file system."""
    url = engines.database_url
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(
            sql.SQL("CREATE TABLESPACE small LOCATION {}").format(sql.Literal(f"{small}/data"))
        )
        try:
            conn.execute(
                sql.SQL("CREATE DATABASE full_disk TEMPLATE {} TABLESPACE small").format(
                    sql.Identifier(template)
                )
            )
            settings = Settings(
                database_url=url.replace("/truerank?", "/full_disk?"), redis_url=redis_url
            )
            with pipeline(settings, groups=1) as made:
                made.client.create_board("b", seasons=["all"])
                yield made
        finally:
            conn.execute("DROP DATABASE IF EXISTS full_disk WITH (FORCE)")
            conn.execute("DROP TABLESPACE small")


def occupy(folder: Path) -> Callable[[], None]:
    """Take all room that is left; gives what makes room again."""
    ballast = folder / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(bytes(_PAGE)):
            pass
    return ballast.unlink


def half_done(conn: psycopg.Connection[Any]) -> list[Any]:
    """Members whose standing isn't what their events come to, or whose change isn't logged."""
    return conn.execute(
        """SELECT e.member, sum(e.value), max(s.score), max(o.version), max(s.version)
           FROM truerank.event AS e
           LEFT JOIN truerank.standing AS s USING (member)
           LEFT JOIN (SELECT member, max(version) AS version FROM truerank.outbox GROUP BY member)
               AS o USING (member)
           GROUP BY e.member
           HAVING sum(e.value) IS DISTINCT FROM max(s.score)
               OR max(o.version) IS DISTINCT FROM max(s.version)"""
    ).fetchall()


def events(first: int) -> list[ScoreEvent]:
    return [
        ScoreEvent(event_id=f"e{n}", member=f"m{n % 1000}", value=1, metadata={"text": "x" * 200})
        for n in range(first, first + _SLICE)
    ]


def write_until_refused(client: Truerank) -> tuple[set[str], list[ScoreEvent]]:
    """The ids that were acknowledged, and the events that were not."""
    acknowledged: set[str] = set()
    for first in range(_SLICE, _EVENTS_MAX, _SLICE):
        try:
            receipts = client.submit_scores("b", events(first))
        except DatabaseUnavailable:  # DatabaseFull is one
            return acknowledged, events(first)
        acknowledged |= {receipt.event_id for receipt in receipts}
    raise AssertionError("there is always room")


@pytest.mark.system("mount")
def test_a_full_disk_refuses_whole_events_and_the_worker_goes_on_when_there_is_room(
    pipe: Pipeline, small: Path
) -> None:
    beating = msgspec.structs.replace(pipe.settings, heartbeat_ms=1, tick_idle_ms=1)
    with structlog.testing.capture_logs() as lines, running_worker(beating):
        receipts = pipe.client.submit_scores("b", events(0))
        assert {receipt.outcome.value for receipt in receipts} == {"applied"}
        make_room = occupy(small)

        acknowledged, refused = write_until_refused(pipe.client)

        with pytest.raises(DatabaseFull):
            pipe.client.submit_scores("b", refused)
        assert pipe.client.top("b").total <= 1000, "reads go on"
        assert half_done(pipe.conn) == []
        stored = pipe.conn.execute("SELECT event_text FROM truerank.event WHERE value = 1")
        assert acknowledged <= {event_id for (event_id,) in stored.fetchall()}
        wait_until(
            lambda: any(line["event"] == "interrupted" for line in lines),
            "the worker can't take a tick either",
        )
        make_room()
        again = pipe.client.submit_scores("b", refused)
        assert {receipt.outcome.value for receipt in again} == {"applied"}, "no id was burnt"
        wait_until(lambda: not differences(pipe), "both ends are equal")
        assert half_done(pipe.conn) == []


@pytest.mark.system("mount")
def test_a_server_whose_log_finds_no_room_comes_back_with_all_that_was_acknowledged(
    small: Path, redis_url: str
) -> None:
    with contextlib.ExitStack() as stack:
        with start_engines(small / "all", durable=False, postgres_settings=LOG_SMALL) as engines:
            migrate(engines.database_url)
            settings = Settings(database_url=engines.database_url, redis_url=redis_url)
            with pipeline(settings, groups=1) as made:
                made.client.create_board("b", seasons=["all"])
                made.client.submit_scores("b", events(0))
                made.settle(made.projector())
            make_room = occupy(small)

            with Truerank(settings) as client:
                acknowledged, refused = write_until_refused(client)
        make_room()
        engines = stack.enter_context(
            start_engines(small / "all", durable=False, postgres_settings=LOG_SMALL)
        )
        settings = msgspec.structs.replace(settings, database_url=engines.database_url)
        with pipeline(settings, groups=1) as made:
            assert half_done(made.conn) == []
            stored = made.conn.execute("SELECT event_text FROM truerank.event").fetchall()
            assert acknowledged <= {event_id for (event_id,) in stored}
            made.client.submit_scores("b", refused)
            made.settle(made.projector())

"""What PostgreSQL's own tools bring back is another epoch, whatever its numbers say."""

import contextlib
import os
import subprocess
from pathlib import Path

import pytest

from tests.epochs.conftest import Cluster
from tests.epochs.test_servers import epoch, scores, shows, write
from tests.projection.pipeline import differences
from truerank import Source
from truerank.errors import EpochChanged
from truerank.projection import worker


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the system's PostgreSQL, which then runs the clusters too."""
    folder = max(Path("/usr/lib/postgresql").glob("*/bin"))
    monkeypatch.setenv("TRUERANK_PG_BINDIR", str(folder))
    return folder


@pytest.fixture
def cluster(programs: Path, tmp_path: Path, redis_url: str) -> Cluster:
    """An empty cluster of the system's PostgreSQL, migrated."""
    assert programs.is_dir()
    return Cluster(tmp_path / "cluster", redis_url).migrated()


def run(program: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    done = subprocess.run(
        [program, *arguments], input=stdin, capture_output=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def own_like(folder: Path, model: Path) -> None:
    """Give files to the user that runs the servers."""
    owner = model.stat()
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


@pytest.mark.system("postgres", "pg_dump")
def test_a_dump_restored_into_a_new_cluster_is_a_new_epoch(
    cluster: Cluster, programs: Path, tmp_path: Path
) -> None:
    with cluster.serving() as pipe:
        write(pipe, ann=1, bob=2)
        pipe.settle(pipe.projector())
        url = pipe.settings.database_url
        assert url is not None
        # The newest tick and the cursor are in the dump: only the cluster is another one.
        dump = run(programs / "pg_dump", "--format=custom", url)
        old = write(pipe, ghost=1000)
        before = epoch(pipe)

    fresh = Cluster(tmp_path / "fresh", cluster.redis_url)
    with fresh.up() as url:
        run(programs / "pg_restore", "--exit-on-error", f"--dbname={url}", stdin=dump)
    with fresh.serving() as pipe:
        write(pipe, bob=1)
        for _ in range(5):  # it must not matter whose transactions have the higher numbers
            pipe.conn.execute("SELECT pg_current_xact_id()")
        pipe.settle(pipe.projector())

        assert epoch(pipe) != before
        assert scores(pipe) == {"bob": "3", "ann": "1"}
        assert differences(pipe) == []
        assert pipe.client.top("b").freshness.source is Source.PROJECTION
        with pytest.raises(EpochChanged):
            shows(pipe, old)


@pytest.mark.system("postgres", "pg_dump")
def test_a_worker_that_is_led_to_another_cluster_by_a_pooler_notices_in_the_next_batch(
    cluster: Cluster, programs: Path, tmp_path: Path
) -> None:
    with cluster.serving() as pipe, contextlib.ExitStack() as stack:
        write(pipe, ann=1)
        projector = pipe.projector()
        pipe.settle(projector)
        before = epoch(pipe)
        url = pipe.settings.database_url
        assert url is not None
        # All ticks that the worker knows are in the dump.
        dump = run(programs / "pg_dump", "--format=custom", url)
        fresh = Cluster(tmp_path / "fresh", cluster.redis_url)
        with fresh.up() as url:
            run(programs / "pg_restore", "--exit-on-error", f"--dbname={url}", stdin=dump)
        other = stack.enter_context(fresh.serving())
        for _ in range(500):  # nor do the numbers of its transactions tell
            other.conn.execute("SELECT pg_current_xact_id()")
        write(other, bob=2)
        assert other.settings.database_url is not None
        conn = stack.enter_context(worker.connect(other.settings.database_url))

        # As behind a pooler in transaction mode: the same session, another server.
        projector._conn = projector._holding._conn = conn  # noqa: SLF001 - see above
        projector.step()

        assert epoch(other) != before
        other.settle(other.projector())
        assert scores(other) == {"bob": "2", "ann": "1"}


@pytest.mark.system("postgres", "pg_basebackup")
def test_an_older_base_backup_is_a_new_epoch(
    cluster: Cluster, programs: Path, tmp_path: Path
) -> None:
    backup = Cluster(tmp_path / "backup", cluster.redis_url)
    backup.data.mkdir()
    with cluster.serving() as pipe:
        write(pipe, ann=1, bob=2)
        pipe.settle(pipe.projector())
        with (cluster.folder / "pg_hba.conf").open("a") as rules:
            rules.write("local replication all trust\n")
        pipe.conn.execute("SELECT pg_reload_conf()")
        url = pipe.settings.database_url
        assert url is not None
        run(
            programs / "pg_basebackup",
            f"--dbname={url}",
            f"--pgdata={backup.folder}",
            "--checkpoint=fast",
            "--no-sync",
        )
        own_like(backup.folder, cluster.folder)
        lost = write(pipe, ghost=1000)
        pipe.settle(pipe.projector())
        before = epoch(pipe)

    with backup.serving() as pipe:
        write(pipe, bob=1)
        pipe.settle(pipe.projector())

        assert epoch(pipe) != before
        assert scores(pipe) == {"bob": "3", "ann": "1"}
        with pytest.raises(EpochChanged):
            shows(pipe, lost)

"""Clusters of PostgreSQL that tests stop, copy, promote and start again; one Redis throughout."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.projection.pipeline import Pipeline, pipeline
from truerank.embedded import start_engines
from truerank.schema.migrate import migrate
from truerank.settings import Settings

PREFIX = "epochs"


@dataclass(frozen=True)
class Cluster:
    """A cluster in a folder. It stands still except within `up` and `serving`."""

    data: Path
    redis_url: str

    @property
    def folder(self) -> Path:
        return self.data / "postgres"

    @contextmanager
    def up(self) -> Iterator[str]:
        """Run it; gives the URL of its database."""
        with start_engines(self.data, durable=False) as engines:
            yield engines.database_url

    def migrated(self) -> "Cluster":
        """The cluster itself, made where it is missing."""
        with self.up() as url:
            migrate(url)
        return self

    @contextmanager
    def serving(self) -> Iterator[Pipeline]:
        """Run it behind a pipeline of one group; a board `b` is there from the first time on."""
        with self.up() as url:
            settings = Settings(
                database_url=url,
                redis_url=self.redis_url,
                prefix=PREFIX,
                heartbeat_ms=1,
                lease_ms=3_600_000,
                board_cache_ms=1,
            )
            with pipeline(settings, groups=1) as made:
                made.client.create_board("b", seasons=["all"])
                yield made

    def copied(self, name: str) -> "Cluster":
        """The same cluster a second time, as it is now, in another folder."""
        copy = Cluster(self.data.parent / name, self.redis_url)
        copy.data.mkdir()
        duplicate(self.folder, copy.folder)
        return copy

    def as_standby_while_running(self, conn: psycopg.Connection[Any], name: str) -> "Cluster":
        """A standby that has all that was committed up to now; `conn` leads to this cluster."""
        conn.execute("SELECT pg_backup_start('copy', true)")
        standby = self.as_standby(name)
        ((label,),) = conn.execute(
            "SELECT labelfile FROM pg_backup_stop(wait_for_archive => false)"
        ).fetchall()
        written = standby.folder / "backup_label"
        duplicate(standby.folder / "PG_VERSION", written)  # its owner, for what is written now
        written.write_text(label)
        (standby.folder / "postmaster.pid").unlink()
        shutil.rmtree(standby.folder / "pg_wal")
        duplicate(self.folder / "pg_wal", standby.folder / "pg_wal")
        return standby

    def as_standby(self, name: str) -> "Cluster":
        """A standby that has all that is here now, and gets nothing more."""
        standby = self.copied(name)
        (standby.folder / "standby.signal").touch()
        return standby


def duplicate(folder: Path, copy: Path) -> None:
    """Copy a folder with the owners of its files, which the engines insist on."""
    program = shutil.which("cp")
    assert program is not None
    subprocess.run([program, "-a", str(folder), str(copy)], check=True)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a migrated cluster that stands still."""
    return Cluster(tmp_path_factory.mktemp("cluster") / "made", "").migrated().data


@pytest.fixture
def cluster(made: Path, tmp_path: Path, redis_url: str) -> Cluster:
    """A cluster of this test's own, migrated and otherwise empty."""
    return Cluster(made, redis_url).copied(str(tmp_path / "cluster"))

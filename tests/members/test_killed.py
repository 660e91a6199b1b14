"""A worker that is killed while it freezes a season or erases a member: the next does the rest."""

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.projection.pipeline import wait_until
from truerank.client import Truerank
from truerank.crashpoints import VARIABLE
from truerank.local import running_worker
from truerank.model import ScoreEvent
from truerank.settings import Settings

WHO: Any = {"actor": "op", "reason": "test"}
_ENDS_S_MAX = 60.0


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    return Settings(
        database_url=database_url, redis_url=redis_url, board_cache_ms=1, heartbeat_ms=50
    )


def fill(settings: Settings) -> None:
    """Ada and Bob have scores, and both are shown."""
    with running_worker(settings), Truerank(settings) as client:
        client.create_board("b", seasons=["all"])
        receipts = client.submit_scores(
            "b",
            [
                ScoreEvent(event_id=f"e {member}", member=member, value=value)
                for member, value in (("ada", 9), ("bob", 5))
            ],
        )
        assert receipts[-1].token is not None
        client.wait_visible(receipts[-1].token, ["b"])


def killed_at(settings: Settings, point: str) -> int:
    """How a worker's process ends that is to die at a point."""
    stores = {
        "TRUERANK_DATABASE_URL": str(settings.database_url),
        "TRUERANK_REDIS_URL": str(settings.redis_url),
        "TRUERANK_HEARTBEAT_MS": str(settings.heartbeat_ms),
    }
    return subprocess.run(
        [sys.executable, "-m", "truerank", "worker"],
        env={**os.environ, **stores, VARIABLE: point},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_ENDS_S_MAX,
        check=False,
    ).returncode


@pytest.mark.parametrize("point", ["erasures_swept", "group_purged"])
def test_an_erasure_is_completed_by_the_next_worker(settings: Settings, point: str) -> None:
    fill(settings)
    with Truerank(settings) as client:
        erasure = client.erase_member("ada", timeout_s=0.0, **WHO)
        assert killed_at(settings, point) == -signal.SIGKILL
        assert [entry.member for entry in client.top("b").entries] == ["bob"]

        with running_worker(settings):
            done = client.wait_erased(erasure.id, timeout_s=_ENDS_S_MAX)

        assert done.complete
        assert [entry.member for entry in client.top("b").entries] == ["bob"]


@pytest.mark.parametrize("point", ["freeze_taken", "freeze_slice_logged"])
def test_a_freeze_is_finished_by_the_next_worker(settings: Settings, point: str) -> None:
    fill(settings)
    with Truerank(settings) as client:
        at = datetime.now(UTC) + timedelta(seconds=0.5)
        client.freeze_season("b", at=at, **WHO)
        assert killed_at(settings, point) == -signal.SIGKILL

        with running_worker(settings):
            client.submit_score("b", event_id="later", member="bob", value=100)
            wait_until(
                lambda: client.top("b").freshness.source == "projection", "the copy to be shown"
            )
            page = client.top("b")

        assert page.freshness.frozen_at is not None
        assert [(entry.member, entry.score) for entry in page.entries] == [
            ("ada", "9"),
            ("bob", "5"),
        ]

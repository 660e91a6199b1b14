"""The how-to guide does what it says: its blocks run, from top to bottom."""

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "submit-in-your-transaction.md"
_BLOCK = re.compile(r"^```(sql|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_block_of_the_page_runs_and_every_purchase_has_its_score(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    environ = {
        **os.environ,
        "TRUERANK_DATABASE_URL": database_url,
        "TRUERANK_REDIS_URL": redis_url,
    }
    blocks = _BLOCK.findall(_PAGE.read_text())

    with psycopg.connect(database_url, autocommit=True) as conn:
        for language, code in blocks:
            if language == "sql":
                conn.execute(code)
                continue
            ended = subprocess.run(
                [sys.executable, "-c", code],
                env=environ,
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=False,
            )
            assert ended.returncode == 0, f"{code}\n{ended.stderr}"

        purchases = conn.execute("SELECT 'purchase:' || id FROM purchase ORDER BY 1").fetchall()
        events = conn.execute("SELECT event_text FROM truerank.event ORDER BY 1").fetchall()
        scores = conn.execute(
            'SELECT member, score FROM truerank.standing ORDER BY member COLLATE "C", score'
        ).fetchall()

    assert len(purchases) == 7
    assert set(purchases) <= set(events)
    assert len(events) == 10
    assert set(scores) == {("ann", 45), ("bob", 27)}

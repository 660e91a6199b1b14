"""Run `truerank drill` as a process."""

import json
import os
import subprocess
import sys
from typing import Any

DEADLINE_S = 220.0  # of one act on a machine that does other things as well


def drilled(*arguments: str, deadline_s: float = DEADLINE_S, **environ: str) -> tuple[int, Any]:
    """The exit status of a drill, and what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "truerank", "drill", "--json", *arguments],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **environ},
        timeout=deadline_s,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.returncode, json.loads(done.stdout)

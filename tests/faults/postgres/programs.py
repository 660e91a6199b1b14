"""`truerank worker` as a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from truerank.settings import Settings


@contextmanager
def worker_process(settings: Settings) -> Iterator[subprocess.Popen[str]]:
    """Start a worker; yields once it projects, and expects that it ends well when it is told to."""
    given = {name: getattr(settings, name) for name in settings.__struct_fields__}
    variables = {
        f"TRUERANK_{name.upper()}": str(value) for name, value in given.items() if value is not None
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "truerank", "worker"],
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready"), f"status {process.wait()}"
        yield process
        assert process.poll() is None, "it has ended by itself"
    finally:
        process.terminate()
        status = process.wait()
        assert process.stdout is not None
        process.stdout.close()
    assert status == 0

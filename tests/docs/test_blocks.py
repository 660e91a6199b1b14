"""The blocks of every page run, and answer what the page says."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.docs.blocks import RUN, Runner, running
from tests.docs.pages import ROOT, Page, pages
from truerank.local import running_worker
from truerank.settings import Settings


def _to_run() -> Iterator[Page]:
    """The pages with blocks, but for those that a test of their own runs and looks into."""
    elsewhere = [path.read_text(encoding="utf-8") for path in ROOT.glob("tests/*/test_howto*.py")]
    for each in pages():
        if any(each.path.name in test for test in elsewhere):
            continue
        if any(block.language in RUN for block in each.blocks()):
            yield each


@pytest.mark.timeout(300)
@pytest.mark.parametrize("each", [pytest.param(each, id=each.name) for each in _to_run()])
def test_every_block_of_a_page_does_what_the_page_says(
    each: Page, tmp_path: Path, preloaded_truerank: Path, request: pytest.FixtureRequest
) -> None:
    needs = each.needs()
    programs = str(Path(sys.executable).parent)
    environ = {name: value for name, value in os.environ.items() if "TRUERANK" not in name} | {
        "PATH": os.pathsep.join((programs, os.environ.get("PATH", os.defpath))),
        "XDG_DATA_HOME": str(tmp_path / "home"),
    }
    folder = tmp_path / "page"
    folder.mkdir()

    with ExitStack() as stack:
        if "servers" in needs:
            settings = _servers(request, empty="empty" in needs)
            environ["TRUERANK_DATABASE_URL"] = str(settings.database_url)
            environ["TRUERANK_REDIS_URL"] = str(settings.redis_url)
            if "http" not in needs:  # where nobody remembers anything, nobody need wait for it
                environ |= {"TRUERANK_CACHE_MAX_MS": "0", "TRUERANK_BOARD_CACHE_MS": "1"}
            if "worker" in needs:
                stack.enter_context(running_worker(settings))
        runner = stack.enter_context(running(Runner(folder, environ, preloaded_truerank.parent)))
        if "http" in needs:
            runner.serve()
        for block in each.blocks():
            runner.run(block)


def _servers(request: pytest.FixtureRequest, *, empty: bool) -> Settings:
    database = request.getfixturevalue("empty_database_url" if empty else "database_url")
    return Settings(database_url=database, redis_url=request.getfixturevalue("redis_url"))

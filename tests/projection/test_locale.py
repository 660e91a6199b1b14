"""The suites run on a server of another locale as well, for Lua compares strings by it."""

import os

from tests.projection.pipeline import Pipeline

VARIABLE = "TRUERANK_TEST_LOCALE"


def test_the_server_compares_strings_by_the_locale_that_this_run_is_for(single: Pipeline) -> None:
    in_order = single.redis.eval("return 'a' < 'B' and 1 or 0", 0)

    assert bool(in_order) == (os.environ.get(VARIABLE) == "english"), "else it sorts bytes"

"""How long it took until all was well again, told at the end of the run."""

from collections.abc import Callable

import pytest


@pytest.fixture
def note(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Have a line stand beside the name of this test at the end of the run."""
    return lambda line: record_property("took", line)

"""Where one rule is taken out of the code, the drill notices."""

from pathlib import Path
from typing import get_args

import pytest

from tests.drill.drills import drilled
from truerank.cli.drilling import ActName, BreakKind
from truerank.drill.breaking import BREAKS, broken_copy
from truerank.drill.play import ACTS

pytestmark = pytest.mark.timeout(240)


@pytest.mark.parametrize("kind", BREAKS)
def test_a_drill_notices_that_a_rule_is_missing(kind: str) -> None:
    status, told = drilled("--break", kind, "--act", BREAKS[kind].act)

    assert (status, told["passed"], told["broken"]) == (1, False, kind)
    (act,) = told["acts"]
    broken = {check["promise"] for check in act["checks"] if not check["kept"]}
    assert BREAKS[kind].promise in broken


@pytest.mark.parametrize("kind", BREAKS)
def test_a_broken_copy_differs_in_one_rule(kind: str, tmp_path: Path) -> None:
    copy = broken_copy(kind, tmp_path) / "truerank"

    changed = (copy / BREAKS[kind].file).read_text(encoding="utf-8")
    assert BREAKS[kind].rule not in changed
    assert BREAKS[kind].instead in changed
    assert (copy / "drill" / "breaking.py").exists()


def test_the_command_knows_every_act_and_every_break() -> None:
    assert get_args(ActName) == tuple(act.name for act in ACTS)
    assert get_args(BreakKind) == tuple(BREAKS)
    assert {each.act for each in BREAKS.values()} <= set(get_args(ActName))

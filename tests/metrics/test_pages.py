"""What is told of metrics, problems and alerts is what there is."""

import re
from pathlib import Path

import pytest

from tests.docs import made
from tests.docs.pages import ROOT, page
from tests.metrics.scrape import told
from tests.metrics.test_verdict import DEGRADED, LAGGING
from truerank.read.status import Status
from truerank.read.verdict import deaf
from truerank.telemetry.meter import Meter
from truerank.telemetry.metrics import Metrics

_NAME = re.compile(r"\btruerank_[a-z_]+\b")


def names() -> dict[str, str]:
    """Every metric by its name in PromQL, with its help."""
    suffixes = {"counter": "_total", "info": "_info"}
    return {
        metric.name + suffixes.get(metric.type, ""): metric.documentation
        for metric, _ in made.metrics()
    }


def test_the_reference_names_every_metric_and_no_other() -> None:
    listed = page("docs/reference/metrics.md").first_cells("## Metrics")

    assert set(listed) == set(names())


def test_every_metric_says_what_it_is_in_a_sentence_and_ends_with_its_unit() -> None:
    for name, documentation in names().items():
        assert documentation.endswith("."), name
        assert documentation[0].isupper() or documentation[0].isdigit(), name
        assert not re.search(r"_(ms|milliseconds|minutes|kb|mb|percent)(_|$)", name), name


def test_the_alerts_name_metrics_that_exist() -> None:
    parts = ("", "_count", "_sum", "_bucket")
    known = {name + part for name in names() for part in parts}

    named = set(_NAME.findall(page("docs/how-to/watch-it.md").text))

    assert named <= known


def test_the_page_for_the_night_knows_every_problem_and_no_other() -> None:
    listed = page("docs/how-to/watch-it.md").first_cells("## At three in the morning")

    codes = {code for _, code in (*DEGRADED, *LAGGING)} | {deaf("").code}
    source = (ROOT / "src/truerank/read/verdict.py").read_text(encoding="utf-8")
    assert codes == set(re.findall(r'_(?:degraded|lagging)\(\s*"(\w+)"', source))
    assert set(listed) == codes


def test_every_metric_has_a_test_that_sees_it_move() -> None:
    tests = "".join(
        path.read_text(encoding="utf-8")
        for path in Path(__file__).parent.glob("test_*.py")
        if path != Path(__file__)
    )

    unseen = [
        name
        for name in names()
        if not any(f'"{name}{part}"' in tests for part in ("", "_count", "_sum"))
    ]
    assert unseen == []


def test_everything_that_a_meter_hears_is_kept() -> None:
    own = vars(Metrics)
    shared = {"commands_answered", "timing", "watching"}  # which tell the others

    heard = {name for name in vars(Meter) if not name.startswith("_")}

    assert heard - shared <= own.keys()


@pytest.mark.parametrize("name", ["truerank_up", "truerank_verdict"])
def test_what_an_alert_waits_for_is_always_there(name: str) -> None:
    assert told(Status()).families[name].samples

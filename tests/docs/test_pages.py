"""The documentation and the code name the same things."""

import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import msgspec
import pytest

from tests.docs.check import check, check_page
from tests.docs.made import takes
from tests.docs.pages import Page, page
from truerank.errors import SettingsInvalid
from truerank.read.status import Status
from truerank.settings import Settings, load


def test_no_page_differs_from_the_code() -> None:
    assert list(check()) == []


def test_the_reference_names_every_field_of_status() -> None:
    told = page("docs/reference/cli.md").text.partition("`status` has ")[2].partition("\n\n")[0]

    named = set(re.findall(r"`([a-z_]+)`", told)) - {"whole", "incomplete"}

    assert named == {field.name for field in fields(Status)} | {"embedded"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[there](missing.md)", "leads nowhere"),
        ("# Here\n\n[there](#elsewhere)", "leads to no heading"),
        ("<!-- made: options -->\nby hand\n<!-- end -->\n", "differ from the code"),
        ("```sh\ntruerank fly\n```\n", "no command in: truerank fly"),
        ("```console\n$ truerank --data d top b --fast\n```\n", "top has no --fast"),
    ],
)
def test_a_page_that_says_what_is_not_so_is_named(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(text)

    (found,) = check_page(Page(path))

    assert "page.md" in found
    assert problem in found


def test_a_page_that_says_what_is_so_is_passed(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("# Two words\n\n[up](#two-words)\n\n```sh\ntruerank top b -n 3 --json\n```\n")

    assert list(check_page(Page(path))) == []


# What is told of settings that aren't numbers; each with a text that such a setting takes.
_KINDS: dict[str, tuple[Callable[[str], bool], str]] = {
    "a URL": (lambda name: name.endswith("_url"), "redis://h"),
    "1 or true, 0 or false": (lambda name: isinstance(getattr(Settings(), name), bool), "1"),
    "networks, with commas between": (lambda name: name.endswith("_networks"), "10.1.0.0/16"),
    "1 to 64 characters, no braces, no spaces": (lambda name: name == "prefix", "p"),
}
_RANGE = re.compile(r"([0-9,]+) (?:or more|to ([0-9,]+))")


@pytest.mark.parametrize("field", msgspec.structs.fields(Settings), ids=lambda field: field.name)
def test_a_setting_takes_what_the_reference_says_and_nothing_beyond(
    field: msgspec.structs.FieldInfo,
) -> None:
    told, variable = takes(field.type), f"TRUERANK_{field.name.upper()}"
    ends = _RANGE.fullmatch(told)
    if ends is None:
        fits, text = _KINDS[told]
        assert fits(field.name)
        assert getattr(load({variable: text}), field.name) == (True if text == "1" else text)
        return
    low, high = (end if end is None else int(end.replace(",", "")) for end in ends.groups())
    assert low is not None

    assert getattr(load({variable: str(low)}), field.name) == low
    assert high is None or getattr(load({variable: str(high)}), field.name) == high
    for beyond in [low - 1, *([] if high is None else [high + 1]), "redis://h"]:
        with pytest.raises(SettingsInvalid):
            load({variable: str(beyond)})

"""The documentation and the code name the same things."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from tests.docs.check import check, check_page
from tests.docs.pages import Page, page
from truerank.read.status import Status


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

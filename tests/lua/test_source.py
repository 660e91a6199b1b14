"""What the Lua sources must not say, and what the locale would do to them if they did."""

import re
from importlib import resources

import pytest

from tests.conftest import StartRedis
from truerank.projection.link import Link
from truerank.projection.scripts import script

FILES = sorted(
    file.name
    for file in (resources.files("truerank.projection") / "lua").iterdir()
    if file.name.endswith(".lua")
)

# What may stand beside < and >: numerals, and expressions that are numbers in these files.
NUMBER = (
    r"-?\d+|#[\w.\[\]]+|#?meta|high|low|shown_high|shown_low|at|i|applied|seen|additions|removals|changes|fields|rows|window|total"
    r"|first|entries|tombstones|withheld|tick_id|covered_id|counts\.withheld|equal_bytes|known_members"
    r"|tonumber\([^()]*(?:\([^()]*\))?[^()]*\)|tonumber"
)
KEY = (
    r"KEYS\[\w+( \+ [12])?\]|(meta|places|shown|prefixes|counts|members|better)_key"
    r"|keys\.(places|shown|prefixes)"
)
COMPARISON = re.compile(r"(?P<left>[\w.#\]\[()'\"]+)\s*(?:<=|>=|<|>)\s*(?P<right>[\w.#\]\['\"]+)")
STRING_OR_COMMENT = re.compile(r"--\[\[.*?\]\]|--[^\n]*|'[^'\n]*'|\"[^\"\n]*\"", re.DOTALL)


def comparisons(text: str) -> list[tuple[str, str]]:
    """Both sides of every < and > outside comments; strings are shown as ''."""
    code = STRING_OR_COMMENT.sub(lambda m: " " if m[0].startswith("--") else "''", text)
    found = [(m["left"], m["right"]) for m in COMPARISON.finditer(code)]
    assert len(found) == len(re.findall(r"[<>]=?", code)), "a comparison was not understood"
    return found


def source(name: str) -> str:
    return (resources.files("truerank.projection") / "lua" / name).read_text()


@pytest.mark.parametrize("name", FILES)
def test_only_numbers_are_compared_by_size(name: str) -> None:
    for sides in comparisons(source(name)):
        for side in sides:
            assert re.fullmatch(NUMBER, side.strip("()")), f"{name}: {sides} may be strings"


def test_the_check_of_comparisons_sees_strings() -> None:
    text = "if a < 3 and version > shown then -- x < y\n return '<' end"

    assert comparisons(text) == [("a", "3"), ("version", "shown")]
    assert not re.fullmatch(NUMBER, "version")


@pytest.mark.parametrize("name", FILES)
def test_a_script_touches_only_keys_that_it_was_given(name: str) -> None:
    keys = re.findall(r"redis\.call\('\w+',\s*([\w.\[\]+ ]+)", source(name))

    assert keys
    for key in keys:
        assert re.fullmatch(KEY, key), (name, key)


def test_scripts_that_write_rows_share_one_text() -> None:
    rows = source("rows.lua").encode()

    assert script("apply").text.startswith(rows)
    assert script("fill").text.startswith(rows)
    assert not script("page").text.startswith(rows)


@pytest.mark.system("localedef")
def test_the_other_locale_compares_strings_in_another_order(
    start_redis: StartRedis, own_locale: dict[str, str]
) -> None:
    url, _ = start_redis(environ=own_locale)

    link = Link(url, timeout_ms=5000)
    in_bytes = "return ARGV[1] < ARGV[2] and 1 or 0"
    assert link.command("EVAL", in_bytes, 0, "B", "a") == 0, "byte order would say 1"
    link.close()

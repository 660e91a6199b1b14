"""Check that the documentation says what the code says: `python -m tests.docs.check`.

Links lead somewhere; the parts made from the code are as the code makes them; every variable,
command, code, route, key and function that exists is in the reference, and nothing else is.
`--write` makes the made parts anew. That blocks run is tested in `test_blocks.py`.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from urllib.parse import unquote

from tests.docs import made, names
from tests.docs.pages import Page, page, pages

_OUTSIDE = re.compile(r"[a-z]+:")
_COMMAND = re.compile(r"^(?:\$ )?truerank (.+)$", re.MULTILINE)


def main() -> int:
    """Print every problem; the exit status is 1 where there is one."""
    if "--write" in sys.argv[1:]:
        for each in pages():
            text = each.with_made(_parts(each))
            if text != each.text:
                each.path.write_text(text, encoding="utf-8")
    problems = list(check())
    for problem in problems:
        print(problem)  # noqa: T201 - this is what a check is for
    return int(bool(problems))


def check() -> Iterator[str]:
    """Every problem of every page, as one line each."""
    for each in pages():
        yield from check_page(each)
    yield from _check_index()
    yield from _check_reference()


def check_page(each: Page) -> Iterator[str]:
    """Every problem that one page has by itself."""
    yield from _check_links(each)
    yield from _check_made(each)
    yield from _check_commands(each)


def _parts(each: Page) -> dict[str, str]:
    return {name: made.make(name) for name in each.made()}


def _check_links(each: Page) -> Iterator[str]:
    for link in each.links():
        if _OUTSIDE.match(link):
            continue
        target, _, anchor = link.partition("#")
        path = (each.path.parent / unquote(target)).resolve() if target else each.path
        if not path.exists():
            yield f"{each.name}: {link} leads nowhere"
        elif anchor and anchor not in Page(path).anchors():
            yield f"{each.name}: {link} leads to no heading"


def _check_made(each: Page) -> Iterator[str]:
    if each.with_made(_parts(each)) != each.text:
        yield f"{each.name}: parts differ from the code; `make docs` writes them"


@cache
def _spelt() -> dict[str, set[str]]:
    """The options of every command; to assemble them takes a while."""
    return {
        words: {name for argument in made.options(app) for name in argument.names}
        for words, app in made.commands().items()
    }


def _check_commands(each: Page) -> Iterator[str]:
    """The commands and options that people are told to write exist."""
    spelt = _spelt()
    for block in each.blocks():
        if block.language not in {"console", "sh"}:
            continue
        for line in _COMMAND.findall(block.text.replace("\\\n", " ")):
            words = re.sub(r"^(--data|--log-level) \S+ ", "", line)
            command = next((name for name in spelt if f"{words} ".startswith(f"{name} ")), None)
            if command is None:
                yield f"{each.name}:{block.line}: no command in: truerank {line}"
                continue
            for option in re.findall(r"(?<= )--?[a-z][a-z-]*", words):
                if option not in spelt[command]:
                    yield f"{each.name}:{block.line}: {command} has no {option}"


def _check_index() -> Iterator[str]:
    """The list of pages has them all."""
    index = page("docs/README.md")
    listed = {(index.path.parent / link).resolve() for link in index.links()}
    for each in pages():
        if each.path.is_relative_to(index.path.parent) and each.path not in {*listed, index.path}:
            yield f"{index.name}: lacks {each.name}"


def _check_reference() -> Iterator[str]:
    errors = page("docs/reference/errors.md")
    yield from _differ(errors, names.error_codes() | names.refusal_codes(), errors.first_cells())
    settings = page("docs/reference/settings.md")
    yield from _differ(settings, names.variables(), settings.first_cells())
    redis = page("docs/reference/redis.md")
    yield from _differ(redis, names.redis_keys(), redis.first_cells("## Keys"))
    allowed = re.findall(r"`([A-Z]{3,})`", redis.text.partition("## What the server must allow")[2])
    yield from _differ(redis, names.redis_commands(), allowed)
    commands = page("docs/reference/cli.md")
    of_json = commands.text.partition("## JSON")[2].partition("<!-- made")[0]
    rows = re.findall(r"^\| (`.+?`) \|", of_json, re.MULTILINE)
    named = [name for row in rows for name in re.findall("`(.+?)`", row)]
    yield from _differ(commands, set(made.commands()), named)
    sql = page("docs/reference/sql.md")
    listed = [name for part in _made_of(sql, "sql") for name in part.split()]
    yield from _differ(sql, made.outside_functions(), listed)
    python = page("docs/reference/python.md")
    yield from (f"{python.name}: lacks {name}" for name in made.PUBLIC - set(python.made()))
    yield from _check_routes()


def _made_of(each: Page, maker: str) -> list[str]:
    """What one maker makes parts of a page from."""
    parts = (part.partition(" ") for part in each.made())
    return [rest for name, _, rest in parts if name == maker]


def _check_routes() -> Iterator[str]:
    http = page("docs/reference/http.md")
    headings = re.findall(r"^(#+ `((?:GET|POST) \S+)`)$", http.text, re.MULTILINE)
    routes = names.routes()
    yield from _differ(http, set(routes), [route for _, route in headings])
    for heading, route in headings:
        if route.startswith("GET /v1/") and route in routes:
            yield from _differ(http, routes[route], http.first_cells(heading), of=f" of {route}")


def _differ(each: Page, real: set[str], told: list[str], *, of: str = "") -> Iterator[str]:
    yield from (f"{each.name}: lacks {name}{of}" for name in sorted(real - set(told)))
    yield from (f"{each.name}: {name}{of} does not exist" for name in sorted(set(told) - real))


if __name__ == "__main__":
    sys.exit(main())

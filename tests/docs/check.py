"""Check that the documentation says what the code says: `python -m tests.docs.check`.

Links lead somewhere; the parts made from the code are as the code makes them; every variable,
command, code, route, key and function that exists is in the reference, and nothing else is.
`--write` makes the made parts anew. That blocks run is tested in `test_blocks.py`.
"""

import re
import sys
from collections.abc import Iterator
from urllib.parse import unquote

from tests.docs import made, names
from tests.docs.pages import Page, page, pages

_OUTSIDE = re.compile(r"[a-z]+:")
_COMMAND = re.compile(r"^(?:\$ )?truerank (.+)$", re.MULTILINE)


def main() -> int:
    """Print every problem; the exit status is 1 where there is one."""
    if "--write" in sys.argv[1:]:
        for each in pages():
            each.path.write_text(each.with_made(_parts(each)), encoding="utf-8")
    problems = list(check())
    for problem in problems:
        print(problem)  # noqa: T201 - this is what a check is for
    return int(bool(problems))


def check() -> Iterator[str]:
    """Every problem of every page, as one line each."""
    for each in pages():
        yield from _check_links(each)
        yield from _check_made(each)
        yield from _check_commands(each)
    yield from _check_reference()


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
        yield f"{each.name}: parts differ from the code: python -m tests.docs.check --write"


def _check_commands(each: Page) -> Iterator[str]:
    """The commands and options that people are told to write exist."""
    known = made.commands()
    spelt = {
        words: {name for argument in made.options(app) for name in argument.names}
        for words, app in known.items()
    }
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


def _check_reference() -> Iterator[str]:
    errors = page("docs/reference/errors.md")
    yield from _differ(errors, names.error_codes() | names.refusal_codes(), errors.first_cells())
    settings = page("docs/reference/settings.md")
    yield from _differ(settings, names.variables(), settings.first_cells())
    redis = page("docs/reference/redis.md")
    yield from _differ(redis, names.redis_keys(), redis.first_cells("## Keys"))
    yield from _differ(page("docs/reference/cli.md"), set(made.commands()), _told("command"))
    yield from _differ(page("docs/reference/python.md"), {"classes", "functions"}, _told("python"))
    callers = page("docs/reference/sql.md")
    listed = [name for part in callers.made() if part.startswith("sql ") for name in part.split()]
    missing = set(made.caller_functions()) - set(listed)
    yield from (f"{callers.name}: lacks {name}, which callers may call" for name in missing)
    yield from _check_routes()


def _told(kind: str) -> list[str]:
    """What the made parts of a page are made of."""
    if kind == "command":
        parts = page("docs/reference/cli.md").made()
        return [part.partition(" ")[2] for part in parts if part.startswith("command ")]
    return [part for part in page("docs/reference/python.md").made() if part in {"classes", "functions"}]


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

"""How fresh an answer must be and where it comes from, as callers name them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from truerank.command import board as boards
from truerank.errors import InvalidInput
from truerank.model import Consistency, Need, Source
from truerank.read.answers import ANY


def consistency_named(given: Consistency | str) -> Consistency:
    """A consistency, or the one of a name that needs nothing more.

    Raises:
        InvalidInput: there is none of that name, or it needs a value.
    """
    if isinstance(given, Consistency):
        return given
    need = boards.choice(Need, given, "consistency")
    if need in {Need.AT_LEAST, Need.MAX_AGE}:
        raise InvalidInput(f"{need} needs a value: Consistency.{need}(...)", field="consistency")
    return ANY if need is Need.ANY else Consistency(need=need)


def source_named(given: Source | str | None) -> Source | None:
    """A store, or the one of a name; None: whichever can answer.

    Raises:
        InvalidInput: there is none of that name.
    """
    return None if given is None else boards.choice(Source, given, "source")


@contextmanager
def called(**names: str) -> Iterator[None]:
    """Let errors in the block name what the caller gave, not what it is passed on as.

    Args:
        names: what the caller calls each.
    """
    try:
        yield
    except InvalidInput as exc:
        name = exc.field
        if name in names:
            exc.field = names[name]
            exc.message = re.sub(rf"\b{name}\b", names[name], exc.message)
            exc.args = (exc.message,)
        raise

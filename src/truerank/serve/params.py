"""Read addresses strictly: path segments and query parameters mean one thing or are refused."""

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import TypeVar
from urllib.parse import parse_qsl, unquote

from starlette.exceptions import HTTPException
from starlette.requests import Request

from truerank.command.board import Choice, choice
from truerank.command.submit import check_text
from truerank.errors import InvalidInput
from truerank.instants import read_instant
from truerank.model import Consistency, Source
from truerank.paging import LIMIT_MAX, check_many
from truerank.read.consistency import consistency_of

_WHOLE = re.compile(r"0|[1-9][0-9]{0,99}")
_NUMBERS = re.compile(r"-?[0-9]{1,19}(?:,-?[0-9]{1,19}){0,3}")
_PAIRS_MAX = LIMIT_MAX + 20
_BOARD_PATH = re.compile(rb"/v1/boards/([^/]+)(?:/.*)?", re.DOTALL)

T = TypeVar("T")

NEEDS = ("consistency", "at_least", "max_age", "monotonic", "wait", "else")


def board_of(request: Request) -> str:
    """The board's key in `/v1/boards/{board}/...`, decoded once.

    Raises:
        HTTPException: 404; the address has this form only after decoding.
        InvalidInput: it isn't UTF-8, or holds a NUL.
    """
    # The route took the decoded path, in which an encoded slash looks like any other.
    match = _BOARD_PATH.fullmatch(request.scope["raw_path"])
    if match is None:
        raise HTTPException(404)
    try:
        key = unquote(match[1].decode("ascii"), errors="strict")
    except UnicodeDecodeError as exc:
        raise InvalidInput("the board's key is percent-encoded UTF-8", field="board") from exc
    check_text(key, "board")
    return key


class Params:
    """The query parameters of one request, or what its body gives by the same names.

    Args:
        request: whose.
        known: names that may be given, each once.
        repeated: the one name that may be given several times.
        body: of a POST; its address then has no parameters.

    Raises:
        InvalidInput: an unknown name, a name given twice, or bytes that aren't UTF-8.
    """

    def __init__(
        self,
        request: Request,
        known: Collection[str],
        *,
        repeated: str | None = None,
        body: object = None,
    ) -> None:
        self.many: list[str] = []  # values of the repeated name, in order
        self._one: dict[str, str] = {}
        query = request.scope["query_string"]
        if body is not None:
            if query:
                raise InvalidInput("what is asked stands in the body, not in the address as well")
            self._take(_pairs(body, repeated), known, repeated)
            return
        number = query.count(b"&") + 1
        if number > _PAIRS_MAX:
            if repeated is not None:
                check_many(repeated, number)
            raise InvalidInput(f"an address has at most {_PAIRS_MAX} parameters, not {number}")
        try:
            pairs = parse_qsl(
                query.decode("ascii"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=_PAIRS_MAX,
            )
        except ValueError as exc:
            raise InvalidInput("the query string is percent-encoded UTF-8") from exc
        self._take(pairs, known, repeated)

    def _take(
        self, pairs: Iterable[tuple[str, str]], known: Collection[str], repeated: str | None
    ) -> None:
        for name, value in pairs:
            if name == repeated:
                check_text(value, name)
                self.many.append(value)
            elif name not in known:
                raise InvalidInput(f"there is no parameter {name[:100]!r} here", field=name[:100])
            elif name in self._one:
                raise InvalidInput(f"{name} is given twice", field=name)
            else:
                check_text(value, name)
                self._one[name] = value

    def text(self, name: str) -> str | None:
        """The text of a parameter; None where it isn't given.

        Raises:
            InvalidInput: it is given empty.
        """
        value = self._one.get(name)
        if value == "":
            raise InvalidInput(f"{name} is empty", field=name)
        return value

    def required(self, name: str) -> str:
        """The text of a parameter.

        Raises:
            InvalidInput: it is missing or empty.
        """
        value = self.text(name)
        if value is None:
            raise InvalidInput(f"{name} is missing", field=name)
        return value

    def number(self, name: str, default: int) -> int:
        """A whole number in decimal digits without sign and leading zeros.

        Raises:
            InvalidInput: another spelling. The range is checked by who takes it.
        """
        value = self.text(name)
        if value is None:
            return default
        if _WHOLE.fullmatch(value) is None:
            raise InvalidInput(f"{name} is a whole number such as 20", field=name)
        return int(value)

    def number_or_none(self, name: str) -> int | None:
        """As `number`; None where it isn't given."""
        return None if self.text(name) is None else self.number(name, 0)

    def numbers(self, name: str) -> tuple[int, ...]:
        """Whole numbers, with a sign or not, and commas between; none where it isn't given.

        Raises:
            InvalidInput: another spelling.
        """
        value = self.text(name)
        if value is None:
            return ()
        if _NUMBERS.fullmatch(value) is None:
            raise InvalidInput(f"{name} are whole numbers such as 3,-1", field=name)
        return tuple(map(int, value.split(",")))

    def choice(self, name: str, kind: type[Choice], default: Choice) -> Choice:
        """One of a set of words.

        Raises:
            InvalidInput: another word.
        """
        value = self.text(name)
        return default if value is None else choice(kind, value, name)

    def flag(self, name: str) -> bool:
        """`1` or `0`; without it no.

        Raises:
            InvalidInput: another word.
        """
        value = self.text(name)
        if value not in {None, "0", "1"}:
            raise InvalidInput(f"{name} is 1 or 0", field=name)
        return value == "1"

    def without(self, names: Collection[str]) -> tuple[tuple[str, str], ...]:
        """All that is given but these, the same for any order that means the same."""
        one = sorted((name, value) for name, value in self._one.items() if name not in names)
        return (*one, *(("", value) for value in self.many))

    def instant(self, name: str) -> datetime | None:
        """A time such as `2026-08-29T12:00:00Z`; None where it isn't given.

        Raises:
            InvalidInput: another spelling; a plus sign in an address is spelt %2B.
        """
        value = self.text(name)
        return None if value is None else read_instant(value, name)

    def source(self) -> Source | None:
        """The store that is insisted on; None: whichever can answer.

        Raises:
            InvalidInput: another word.
        """
        value = self.text("source")
        return None if value is None else choice(Source, value, "source")

    def consistency(self) -> Consistency:
        """How fresh the answer must be: what the parameters in `NEEDS` say.

        Raises:
            InvalidInput: they contradict each other, or one makes no sense.
        """
        otherwise = self.text("else")
        if otherwise not in {None, "pending"}:
            raise InvalidInput("else is pending, or not given", field="else")
        return consistency_of(
            consistency=self.text("consistency"),
            at_least=self.text("at_least"),
            max_age=self.text("max_age"),
            monotonic=self.text("monotonic"),
            wait=self.text("wait"),
            pending=otherwise == "pending",
        )


def _pairs(body: object, repeated: str | None) -> Iterator[tuple[str, str]]:
    """What a JSON body gives, as it would stand in an address.

    Raises:
        InvalidInput: it is no object, or a value is of another type than its parameter.
    """
    if not isinstance(body, dict):
        raise InvalidInput("the body is an object with the names of the parameters")
    for name, value in body.items():
        if name == repeated:
            # Ids are text; scores may be numbers.
            taken = (str,) if name == "member" else (str, int)
            if not isinstance(value, list) or any(type(each) not in taken for each in value):
                raise InvalidInput(f"{name} is a list of texts", field=name)
            # A body has room for many more, and each would be looked at first.
            check_many(name, len(value))
            yield from ((name, str(each)) for each in value)
        elif isinstance(value, list) and all(type(each) is int for each in value):
            yield name, ",".join(map(str, value))
        elif isinstance(value, str | int):
            yield name, str(int(value)) if isinstance(value, bool) else str(value)
        else:
            raise InvalidInput(f"{name[:100]} is a text, a number or true or false", field=name)

"""Refuse arguments of the wrong kind before anything is done with them.

What each operation takes is read from its signature, so none is left out. A string where a list
belongs would otherwise be a list of characters, and a wrong answer without a sign of it.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

import msgspec

from truerank.errors import InvalidInput

_WORDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    NoneType: "None",
    datetime: "a datetime",
    Mapping: "a mapping",
}
_MANY = {Sequence, Iterable}


class _Kind(msgspec.Struct, frozen=True):
    """What one argument may be."""

    plain: tuple[type, ...]  # none: anything, which the operation itself judges
    each: "_Kind | None" = None  # of what a list is
    many: bool = False
    exact: frozenset[type] = frozenset()  # types that need no further look

    def takes(self, value: object) -> bool:
        if self.many:
            if value is None:
                return NoneType in self.plain
            if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
                return False
            return self.each is None or all(map(self.each.takes, _held(value)))
        if not self.plain:
            return True
        # To Python True is a number: a score of 1 is nobody's wish.
        return isinstance(value, self.plain) and (bool in self.plain or not isinstance(value, bool))

    @property
    def words(self) -> str:
        if self.many:
            told = "a list" if self.each is None else f"a list of which each is {self.each.words}"
        else:
            kinds = [kind for kind in self.plain if kind in _WORDS] or list(self.plain)
            told = " or ".join(_WORDS.get(kind, kind.__name__) for kind in kinds)
        return f"{told} or None" if NoneType in self.plain and self.many else told


_ANYTHING = _Kind(())


def check_arguments(
    operation: Callable[..., Any], args: Sequence[object], kwargs: Mapping[str, object]
) -> None:
    """Refuse arguments that are of another kind than an operation's signature says.

    Args:
        operation: a method.
        args: without the one it is called on.
        kwargs: by name.

    Raises:
        InvalidInput: `field` names the argument.
    """
    kinds = _kinds(operation)
    for (name, kind), value in zip(kinds.items(), args, strict=False):
        if type(value) not in kind.exact and not kind.takes(value):
            raise _refusal(name, kind, value)
    for name, value in kwargs.items():
        # Of a name that there isn't, Python tells.
        named = kinds.get(name, _ANYTHING)
        if type(value) not in named.exact and not named.takes(value):
            raise _refusal(name, named, value)


def _refusal(name: str, kind: _Kind, value: object) -> InvalidInput:
    given = type(value).__name__
    if kind.each is not None:
        others = [each for each in _held(value) if not kind.each.takes(each)]
        given = f"{type(others[0]).__name__}, as one is" if others else given
    return InvalidInput(f"{name} is {kind.words}, not {given}", field=name)


def _held(value: object) -> Iterable[object]:
    """What a list holds; nothing of what can be gone through once alone."""
    return value if isinstance(value, list | tuple | set | frozenset) else ()


@cache
def _kinds(operation: Callable[..., Any]) -> dict[str, _Kind]:
    """What an operation takes, by name and in order, without the object it is called on."""
    hints = get_type_hints(operation)
    _, *names = inspect.signature(operation).parameters
    return {name: _kind(hints[name]) for name in names}


def _kind(hint: Any) -> _Kind:
    if isinstance(hint, NewType):
        return _kind(hint.__supertype__)
    options = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
    lists = [option for option in options if get_origin(option) in _MANY]
    if lists:
        (of,) = get_args(lists[0])
        each = _kind(of)
        none = (NoneType,) if NoneType in options else ()
        return _Kind(none, each if each.plain else None, many=True)
    plain = tuple(get_origin(option) or option for option in options)
    # Numbers may be text or decimals as well: what reads them says what they are not.
    if {int, str} <= set(plain) or not all(_is_judged(kind) for kind in plain):
        return _Kind(())
    if float in plain:
        return _Kind(plain, exact=frozenset({*plain, int}))
    return _Kind(plain, exact=frozenset(plain))


def _is_judged(kind: object) -> bool:
    return isinstance(kind, type) and kind not in {Any, Callable}

"""Load lua/, name what its scripts answer, and call a script by its digest.

A server that forgot a script (restart, failover, SCRIPT FLUSH) is sent the body.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from importlib import resources


class ApplyReply(IntEnum):
    """First element of what apply.lua answers."""

    APPLIED = 1
    CURSOR = 2
    MISSING = 3
    FENCED = 4


class FillReply(IntEnum):
    """First element of what fill.lua answers."""

    APPLIED = 1
    SCAN = 2
    MISSING = 3
    FENCED = 4


class SwitchReply(IntEnum):
    """What switch.lua answers."""

    SWITCHED = 1
    CHANGED = 2
    MISSING = 3


class PageReply(IntEnum):
    """First element of what page.lua answers."""

    OK = 1
    MOVED = 2
    MISSING = 3
    DAMAGED = 4
    NOT_DENSE = 5


class PurgeReply(IntEnum):
    """What purge.lua answers."""

    PURGED = 1
    BEHIND = 2
    MISSING = 3
    FENCED = 4


class InspectReply(IntEnum):
    """First element of what inspect.lua answers."""

    OK = 1
    MOVED = 2
    MISSING = 3


class RepairReply(IntEnum):
    """What repair.lua, restate.lua and recount.lua answer, or the first element of it."""

    APPLIED = 1
    CURSOR = 2
    MISSING = 3
    FENCED = 4
    LEFT = 5


_OF_ROWS = frozenset({"apply", "fill", "recount", "repair", "restate"})
_REPLIES: Mapping[str, type[IntEnum]] = {
    "apply": ApplyReply,
    "fill": FillReply,
    "inspect": InspectReply,
    "page": PageReply,
    "purge": PurgeReply,
    "recount": RepairReply,
    "repair": RepairReply,
    "restate": RepairReply,
    "switch": SwitchReply,
}

_NAMES: Mapping[str, Mapping[int, str]] = {
    script: {code: code.name.lower() for code in kind} for script, kind in _REPLIES.items()
}


def reply_name(script: str, reply: object) -> str:
    """What a script answered, in the words of its enum; `error` where it failed."""
    if isinstance(reply, Exception):
        return "error"
    names = _NAMES.get(script)
    if names is None:
        return "ok"
    code = reply[0] if isinstance(reply, list) and reply else reply
    return names[code] if isinstance(code, int) else "error"


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script: its text, and the SHA-1 by which Redis knows it."""

    name: str
    text: bytes
    sha1: str


@cache
def script(name: str) -> Script:
    """The script of this name; those that write rows start with the shared rows.lua."""
    folder = resources.files("truerank.projection") / "lua"
    text = (folder / f"{name}.lua").read_bytes()
    if name in _OF_ROWS:
        text = (folder / "rows.lua").read_bytes() + b"\n" + text
    # SHA-1 is the name Redis gives a script, not a protection.
    return Script(name, text, hashlib.sha1(text, usedforsecurity=False).hexdigest())

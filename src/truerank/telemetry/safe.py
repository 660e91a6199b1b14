"""Anybody's text, made fit for a terminal and a log: it forges no line and tells no password."""

import re

# Control characters, line and paragraph separators, marks that turn the direction of writing,
# and halves of surrogate pairs. Joiners stay: scripts and emoji are written with them.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
# What stands between `scheme://user:` and the last @ of the word, and after `password=`.
_SECRETS = re.compile(
    r"""(://[^\s/?#:@]*:)[^\s"'<>]*(?=@)|(\b(?i:password)\s*=\s*)(?:'[^']*'|[^\s&"']+)"""
)


def escaped(text: str, *, lines: bool = False) -> str:
    """Text that a terminal shows as it is: what would do something is written as an escape.

    Args:
        text: anybody's.
        lines: let line breaks through.
    """
    return _UNSAFE.sub(
        lambda found: found[0] if lines and found[0] == "\n" else _escape(found[0]), text
    )


def without_passwords(text: str) -> str:
    """Text in which the passwords of addresses are hidden: `postgresql://ada:***@host/db`."""
    return _SECRETS.sub(lambda found: f"{found[1] or found[2]}***", text)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004 - two digits

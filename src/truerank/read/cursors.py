"""Cursors: the row that a page ended or began with, so that the next goes on from there.

A row keeps its bytes through rebuilds, and need not be there any more: a page goes on from where
it was. So members who don't move are neither shown twice nor left out, whoever else does.
"""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TypeVar

import msgspec

from truerank.errors import CursorGone, InvalidInput
from truerank.model import Season

_CHARS_MAX = 2000

Kind = TypeVar("Kind", bound=msgspec.Struct)


class Cursor(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a cursor says."""

    season: str
    ranking: int
    backward: bool
    row: bytes  # sort key and member

    def row_in(self, season: Season, key_bytes: int) -> bytes:
        """The row, where it can be one of this season.

        Raises:
            CursorGone: the cursor is of another board, or of a season that is gone.
            InvalidInput: it was changed on its way.
        """
        if self.ranking != season.ranking:
            raise CursorGone(
                f"the cursor is not of season {season.label} of board {season.board!r} as it is now"
            )
        try:
            member = self.row[key_bytes:].decode()
        except UnicodeDecodeError as exc:
            raise _no_cursor() from exc
        if not member or "\0" in member:
            raise _no_cursor()
        return self.row


def text_of(season: Season, row: bytes, *, backward: bool) -> str:
    """A cursor for the rows after, or before, this one."""
    return encoded(Cursor(season.label, season.ranking, backward, row))


def encoded(cursor: msgspec.Struct) -> str:
    """A cursor as text."""
    return urlsafe_b64encode(msgspec.msgpack.encode(cursor)).rstrip(b"=").decode()


def parse(text: str) -> Cursor:
    """Read a cursor of a page.

    Raises:
        InvalidInput: the text is none.
    """
    return decoded(text, Cursor)


def decoded(text: str, kind: type[Kind]) -> Kind:
    """Read a cursor of a kind.

    Raises:
        InvalidInput: the text is none.
    """
    if not text.isascii() or len(text) > _CHARS_MAX:
        raise _no_cursor()
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return msgspec.msgpack.decode(raw, type=kind)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as exc:
        raise _no_cursor() from exc


def _no_cursor() -> InvalidInput:
    return InvalidInput("this is no cursor", field="cursor")

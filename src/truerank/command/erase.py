"""Erase a person: out of sight at once, and then out of everything that is kept.

What is kept in the end is a proof without a name, and events under stand-ins that count for nobody.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from truerank.command.attach import who
from truerank.command.submit import check_member
from truerank.errors import InvalidInput
from truerank.model import Erasure, Token
from truerank.paging import check_slice
from truerank.steps import Query, Steps

_ERASE = """
    SELECT erasure, token::text, groups, (SELECT truerank.incarnation())
    FROM truerank.erase_member(%s, %s, %s)"""
_LIST = "SELECT * FROM truerank.erasures(%s, %s::integer)"


def erase(member: str, *, actor: str, reason: str) -> Steps[tuple[str, Token, Sequence[int]]]:
    """Begin to remove a person from everything, and all ids merged into it.

    Args:
        member: its id, or one that was merged into it.
        actor: who does it, for the audit.
        reason: why, for the audit; it is kept, so it should not name the person.

    Returns:
        The erasure's id, the transaction's token, and the groups in which the projection may show
        the person.

    Raises:
        InvalidInput: a field is malformed; `field` names it.
        Contended: commands for the member came faster than they could be waited for.

    Source: `schema/functions/erase_member.sql`.
    """
    check_member(member)
    who(actor, reason)
    ((erasure, xid, groups, incarnation),) = yield Query(_ERASE, (member, actor, reason))
    return str(erasure), Token(f"{xid}.{incarnation}"), groups


def list_erasures(erasure: str | None = None, *, limit: int = 100) -> Steps[list[Erasure]]:
    """Erasures, latest first; or the one of an id, if there is one.

    Raises:
        InvalidInput: the id is none, or `limit` is outside 1 to 1000.

    Source: `schema/functions/erasures.sql`.
    """
    check_slice(limit, least=1)
    try:
        asked = None if erasure is None else UUID(erasure)
    except ValueError as exc:
        raise InvalidInput("this is no erasure's id", field="erasure") from exc
    rows: list[tuple[Any, ...]] = yield Query(_LIST, (asked, limit))
    return [
        Erasure(
            id=str(id_),
            asked_at=asked_at,
            erased_at=erased_at,
            stand_ins=tuple(stand_ins),
            events=None if digest is None else events,
            digest=None if digest is None else bytes(digest).hex(),
        )
        for id_, _, asked_at, erased_at, stand_ins, events, digest in rows
    ]

"""What is said of members: hidden, banned, reset, deleted, merged; with who and why.

A state is a fact of its own. It changes no score and stops none, so nothing waits for it: the
scores of a hidden member go on, and are there when it is shown again.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from truerank.command.attach import who
from truerank.command.submit import check_member, check_text
from truerank.errors import BoardUnknown, InvalidInput, MergeRefused
from truerank.model import MemberChange, MemberScope, MemberState, Token
from truerank.steps import Query, Steps

_SET = """
    SELECT outcome, member, state, until, token::text, groups, (SELECT truerank.incarnation()),
           (SELECT truerank.is_known(%s))
    FROM truerank.set_member_state(%s, %s, %s, %s, %s, %s)"""
_MERGE = """
    SELECT outcome, member, token::text, groups, (SELECT truerank.incarnation()),
           (SELECT truerank.is_known(%s))
    FROM truerank.merge_members(%s, %s, %s, %s)"""
_STATES = "SELECT * FROM truerank.member_states(%s)"
_MERGE_REFUSALS = {
    "merge_cycle": "both are one member already",
    "merged_elsewhere": "it was merged into another member: merge that one",
    "total_out_of_range": "a total of both would leave its board's range",
}


def set_state(
    member: str,
    action: str,
    *,
    board: str | None,
    actor: str,
    reason: str,
    until: datetime | None = None,
) -> Steps[tuple[MemberChange, Sequence[int]]]:
    """Change what is said of a member.

    Args:
        member: its id; one that was merged stands for the member it was merged into.
        action: hide, show, ban, unban, reset or delete.
        board: the key of the one board it is said of; None: everywhere.
        actor: who does it, for the audit.
        reason: why, for the audit.
        until: when a ban ends by itself; aware.

    Returns:
        What holds now, and the groups in which the projection may show the member. `pending` is
        True: whoever waits for the projection says so.

    Raises:
        InvalidInput: a field is malformed; `field` names it.
        BoardUnknown: no board has this key.

    Source: `schema/functions/set_member_state.sql`.
    """
    check_member(member)
    who(actor, reason)
    if board is not None:
        check_text(board, "board")
    if until is not None and (not isinstance(until, datetime) or until.utcoffset() is None):
        raise InvalidInput("until needs an offset from UTC", field="until")
    ((outcome, named, state, ends_at, xid, groups, incarnation, known),) = yield Query(
        _SET, (member, member, action, actor, reason, board, until)
    )
    if outcome == "board_unknown":
        raise BoardUnknown(f"there is no board {board!r}", field="board")
    change = MemberChange(
        member=named,
        board=board,
        state=MemberState(state),
        until=ends_at,
        changed=outcome == "changed",
        token=Token(f"{xid}.{incarnation}"),
        pending=True,
        known=known,
    )
    return change, groups


def merge(
    member: str, into: str, *, actor: str, reason: str
) -> Steps[tuple[MemberChange, Sequence[int]]]:
    """Let the events of one member count for another, on all boards and for good.

    Args:
        member: whose standings go; what is submitted for it from now on counts for the other.
        into: the member that remains.
        actor: who does it, for the audit.
        reason: why, for the audit.

    Returns:
        As `set_state`, of the member that is no more.

    Raises:
        InvalidInput: a field is malformed; `field` names it.
        MergeRefused: both are one already, the first was merged into another, or a total would
            leave its board's range; `reason` says which. Nothing was changed.
        Contended: another transaction held a lock for two seconds. Nothing was changed.

    Source: `schema/functions/merge_members.sql`.
    """
    check_member(member)
    check_member(into, "into")
    who(actor, reason)
    ((outcome, remaining, xid, groups, incarnation, known),) = yield Query(
        _MERGE, (member, member, into, actor, reason)
    )
    if outcome in _MERGE_REFUSALS:
        raise MergeRefused(
            f"{member!r} is not merged into {into!r}: {_MERGE_REFUSALS[outcome]}", code=outcome
        )
    change = MemberChange(
        member=member,
        board=None,
        state=MemberState.MERGED,
        until=None,
        merged_into=remaining,
        changed=outcome == "changed",
        token=Token(f"{xid}.{incarnation}"),
        pending=True,
        known=known,
    )
    return change, groups or ()


def member_states(member: str) -> Steps[list[MemberScope]]:
    """All that was said of a member; nothing where it is active on every board.

    Source: `schema/functions/member_states.sql`.
    """
    check_member(member)
    rows: list[tuple[Any, ...]] = yield Query(_STATES, (member,))
    return [
        MemberScope(
            board=board,
            state=MemberState(state),
            until=until,
            hides=hides,
            changed_at=changed_at,
            merged_into=merged_into,
        )
        for board, state, until, hides, changed_at, merged_into in rows
    ]

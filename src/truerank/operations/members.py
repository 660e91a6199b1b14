"""What is said of members, in force when the call returns."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from truerank.command import member as members
from truerank.model import MemberChange, MemberScope
from truerank.operations.base import Base, retried
from truerank.steps import Steps

_WAIT_S = 2.0


class Members(Base):
    """States of members, and merging them.

    Each commits, then waits until the projection shows it, for at most `timeout_s` seconds, and
    then for as long as a server may give out a page that it read before (`cache_max_ms`). A
    change that is still `pending` then holds all the same: PostgreSQL answers by it, and the
    projection will; `wait_visible` takes its token.
    """

    def hide_member(
        self,
        member: str,
        *,
        actor: str,
        reason: str,
        board: str | None = None,
        timeout_s: float = _WAIT_S,
    ) -> Steps[MemberChange]:
        """Let a member take no place, by its own wish; its scores go on.

        Args:
            member: its id.
            actor: who does it, for the audit.
            reason: why, for the audit.
            board: on this board only; None: everywhere.
            timeout_s: how long to wait for the projection, in seconds.

        Raises:
            BoardUnknown: no board has this key.
        """
        return (yield from self._set(member, "hide", board, actor, reason, timeout_s=timeout_s))

    def show_member(
        self,
        member: str,
        *,
        actor: str,
        reason: str,
        board: str | None = None,
        timeout_s: float = _WAIT_S,
    ) -> Steps[MemberChange]:
        """Take a member's wish to be hidden back; a ban stays. See `hide_member`."""
        return (yield from self._set(member, "show", board, actor, reason, timeout_s=timeout_s))

    def ban_member(
        self,
        member: str,
        *,
        actor: str,
        reason: str,
        until: datetime | None = None,
        board: str | None = None,
        timeout_s: float = _WAIT_S,
    ) -> Steps[MemberChange]:
        """Let a member take no place until an instant, or for good; its scores go on.

        A ban ends by itself: a worker lifts it within a second, the member's next command or a
        read of it in PostgreSQL at once. See `hide_member`.

        Raises:
            InvalidInput: `until` is naive or past.
        """
        return (
            yield from self._set(
                member, "ban", board, actor, reason, until=until, timeout_s=timeout_s
            )
        )

    def unban_member(
        self,
        member: str,
        *,
        actor: str,
        reason: str,
        board: str | None = None,
        timeout_s: float = _WAIT_S,
    ) -> Steps[MemberChange]:
        """Lift a ban; who had hidden before stays hidden. See `hide_member`."""
        return (yield from self._set(member, "unban", board, actor, reason, timeout_s=timeout_s))

    def reset_member(
        self,
        member: str,
        *,
        actor: str,
        reason: str,
        board: str | None = None,
        timeout_s: float = _WAIT_S,
    ) -> Steps[MemberChange]:
        """Let a member begin at zero: its events up to now count no longer; its state stays.

        See `hide_member`.
        """
        return (yield from self._set(member, "reset", board, actor, reason, timeout_s=timeout_s))

    def delete_member(
        self,
        member: str,
        *,
        actor: str,
        reason: str,
        board: str | None = None,
        timeout_s: float = _WAIT_S,
    ) -> Steps[MemberChange]:
        """Take a member away: its events count no longer, and all that was said of it is over.

        An event that commits later begins a new life, at zero and in sight. See `hide_member`.
        """
        return (yield from self._set(member, "delete", board, actor, reason, timeout_s=timeout_s))

    def merge_members(
        self,
        member: str,
        into: str,
        *,
        actor: str,
        reason: str,
        timeout_s: float = _WAIT_S,
    ) -> Steps[MemberChange]:
        """Let the events of one member count for another, on all boards and for good.

        Safe to repeat. Events keep the id they came with, so a repeat of one is a duplicate.

        Args:
            member: whose standings go; what is submitted for it later counts for the other.
            into: the member that remains, with its own states. It gets bans of the other; its name,
                tier, key and place in cohorts where it has none; an id without events the wish to
                be hidden, too: that renames a member.
            actor: who does it, for the audit.
            reason: why, for the audit.
            timeout_s: how long to wait for the projection, in seconds.

        Raises:
            MergeRefused: both are one already, `member` was merged into another, or a total would
                leave its board's range. Nothing was changed.
            Contended: other transactions were in the way several times. Nothing was changed.
        """
        return (
            yield from self._said(
                lambda: members.merge(member, into, actor=actor, reason=reason), timeout_s
            )
        )

    def member_states(self, member: str) -> Steps[list[MemberScope]]:
        """All that was said of a member, by board; empty where it is active on every board."""
        return (yield from members.member_states(member))

    def _set(
        self,
        member: str,
        action: str,
        board: str | None,
        actor: str,
        reason: str,
        *,
        timeout_s: float,
        until: datetime | None = None,
    ) -> Steps[MemberChange]:
        return (
            yield from self._said(
                lambda: members.set_state(
                    member, action, board=board, actor=actor, reason=reason, until=until
                ),
                timeout_s,
            )
        )

    def _said(
        self, change: Callable[[], Steps[tuple[MemberChange, Sequence[int]]]], timeout_s: float
    ) -> Steps[MemberChange]:
        said, groups = yield from retried(change)
        shown = yield from self._in_force(
            groups, said.token, timeout_s, doubted=None if said.board is None else groups
        )
        return replace(said, pending=False) if shown else said

"""Ask for new copies of groups, follow how far they are, and go back to the ones before.

A rebuild is a request in PostgreSQL. The worker that holds the group's lease fills a new copy
beside the live one, compares it with the source, and lets readers switch to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from truerank.errors import InvalidInput, NoWayBack, RebuildError
from truerank.steps import Query, Steps

_ASK = """
    SELECT grp, id, code FROM truerank.ask_rebuilds(%s::smallint[], %s, 'asked', %s, %s, %s)"""
_STATES = """
    SELECT id, grp, kind, state, rows, rows_about, checked, tries, leased, asked_by, asked_at,
           ended_at, code, message, kept_until
    FROM truerank.rebuilds(%s::bigint[])"""
_GROUPS = "SELECT groups FROM truerank.installation()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild:
    """One request, and how far it is."""

    id: int
    group: int
    back: bool  # to the copy before, instead of to a new one
    state: str  # asked, filling, checking, switched or failed
    rows: int  # standings that are in the new copy
    rows_about: int  # of about so many; 0: not known
    checked: int  # standings that were compared with the source
    tries: int  # copies that were begun for it
    leased: bool  # a worker holds the group
    asked_by: str
    asked_at: datetime
    ended_at: datetime | None
    code: str | None  # why it failed
    message: str | None
    kept_until: datetime | None  # until when there is a way back

    @property
    def ended(self) -> bool:
        """Whether nothing more comes of it."""
        return self.ended_at is not None


def all_groups() -> Steps[list[int]]:
    """The numbers of all groups that boards are spread over."""
    ((groups,),) = yield Query(_GROUPS)
    return list(range(groups))


def ask_rebuilds(
    groups: Sequence[int],
    *,
    actor: str,
    back: bool = False,
    throttled: bool = True,
    keep_ms: int = 60_000,
) -> Steps[list[int]]:
    """Ask for a new copy of whole groups; whoever asks again before it is done joins in.

    Args:
        groups: their numbers.
        actor: who asks, for the record.
        back: ask for the copies before the last rebuild instead, which still follow along.
        throttled: let readers come first; where a group has no copy, nothing is held back.
        keep_ms: how long the copy before follows along after the switch; 0: there is no way back.

    Returns:
        The numbers of the requests, for `rebuild_states`.

    Raises:
        InvalidInput: there is no such group (`group_unknown`).
        NoWayBack: no copy before follows along any more.
        RebuildError: a request of the other kind is open (`rebuild_open`). Where several groups
            were named, requests for others may be open now.

    Source: `schema/functions/ask_rebuilds.sql`.
    """
    kind = "back" if back else "rebuild"
    rows = yield Query(_ASK, (list(groups), kind, throttled, keep_ms, actor))
    for group, _, code in rows:
        if code == "group_unknown":
            raise InvalidInput(f"there is no group {group}", code=code, field="group")
        if code == NoWayBack.code:
            raise NoWayBack(f"no copy of group {group} from before a rebuild follows along")
        if code is not None:
            raise RebuildError(f"something else was asked for of group {group}", code=code)
    return [number for _, number, _ in rows]


def rebuild_states(requests: Sequence[int] | None = None) -> Steps[list[Rebuild]]:
    """How far requests are; without numbers: all that are open.

    Source: `schema/functions/rebuilds.sql`.
    """
    rows = yield Query(_STATES, (None if requests is None else list(requests),))
    return [
        Rebuild(
            id=id_,
            group=group,
            back=kind == "back",
            state=state,
            rows=scanned,
            rows_about=about,
            checked=checked,
            tries=tries,
            leased=leased,
            asked_by=asked_by,
            asked_at=asked_at,
            ended_at=ended_at,
            code=code,
            message=message,
            kept_until=kept_until,
        )
        for id_, group, kind, state, scanned, about, checked, tries, leased, asked_by, asked_at,
        ended_at, code, message, kept_until in rows
    ]  # fmt: skip

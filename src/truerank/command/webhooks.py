"""Who is told of what by webhook: receivers, their secrets, and what is on its way to them.

What is to be told is kept in the transaction in which it happens (`queue_deliveries.sql`); to send
it is a worker's chore, see `truerank.deliver`.
"""

import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from truerank.command.attach import who
from truerank.command.submit import check_text
from truerank.errors import BoardUnknown, CommandError, InvalidInput, WebhookUnknown
from truerank.model import Delivery, Webhook
from truerank.paging import check_slice, check_whole
from truerank.steps import Pause, Query, Steps
from truerank.webhooks import secret_text

KINDS = (
    "award.given",
    "award.withdrawn",
    "season.final",
    "season.revised",
    "member.erased",
    "event.voided",
)
STATES = ("waiting", "parked", "delivered", "cancelled")
_NAME_CHARS_MAX = 100
_URL_CHARS_MAX = 2000
_OVERLAP_S_MAX = 30 * 86_400
_PORT_MAX = 65_535
_LOOK_S = 0.1
_RETRIED_MAX = 10_000  # by one statement

_ADD = "SELECT * FROM truerank.add_webhook(%s, %s, %s::text[], %s, %s, %s)"
_CHANGE = "SELECT truerank.change_webhook(%s, %s, %s::text[], %s, %s, %s)"
_ROTATE = "SELECT * FROM truerank.rotate_webhook(%s, %s::integer, %s, %s)"
_REMOVE = "SELECT truerank.remove_webhook(%s, %s, %s)"
_LIST = "SELECT * FROM truerank.webhooks(%s)"
_DELIVERIES = "SELECT * FROM truerank.deliveries(%s, %s, %s::bigint, %s::integer)"
_RETRY = "SELECT * FROM truerank.retry_deliveries(%s, %s::bigint[], %s, %s)"
_TEST = "SELECT truerank.test_webhook(%s)"


def add_webhook(
    name: str,
    url: str,
    kinds: Sequence[str],
    *,
    board: str | None,
    allow_http: bool,
    actor: str,
    reason: str,
) -> Steps[str]:
    """Tell a receiver of what happens from now on; its secret, which nobody can ask for again.

    Raises:
        InvalidInput: a field is malformed, or the name is taken (`webhook_exists`).
        BoardUnknown: no board has this key.
        CommandError: there are 32 already (`too_many`).

    Source: `schema/functions/add_webhook.sql`.
    """
    _check_name(name)
    _check_url(url, allow_http=allow_http)
    if board is not None:
        check_text(board, "board")
    ((outcome, secret),) = yield Query(_ADD, (name, url, _kinds(kinds), board, *who(actor, reason)))
    if outcome == "board_unknown":
        raise BoardUnknown(f"there is no board {board!r}", field="board")
    if outcome == "webhook_exists":
        raise InvalidInput(f"there is a webhook {name!r} already", code=outcome, field="name")
    if outcome == "too_many":
        raise CommandError("there are 32 webhooks already: remove one", code=outcome)
    return secret_text(bytes(secret))


def change_webhook(
    name: str,
    *,
    url: str | None,
    kinds: Sequence[str] | None,
    enabled: bool | None,
    allow_http: bool,
    actor: str,
    reason: str,
) -> Steps[None]:
    """Change what is given; what waits goes to the new address.

    Raises:
        InvalidInput: a field is malformed.
        WebhookUnknown: there is none of this name.

    Source: `schema/functions/change_webhook.sql`.
    """
    _check_name(name)
    if url is not None:
        _check_url(url, allow_http=allow_http)
    changed = None if kinds is None else _kinds(kinds)
    ((outcome,),) = yield Query(_CHANGE, (name, url, changed, enabled, *who(actor, reason)))
    _check_found(outcome, name)


def rotate_webhook(name: str, *, overlap_s: int, actor: str, reason: str) -> Steps[str]:
    """Make a new secret; requests are signed with the one before as well, for `overlap_s` seconds.

    Raises:
        InvalidInput: `overlap_s` is outside 0 to 30 days.
        WebhookUnknown: there is none of this name.

    Source: `schema/functions/rotate_webhook.sql`.
    """
    _check_name(name)
    check_whole("overlap_s", overlap_s, _OVERLAP_S_MAX)
    ((outcome, secret),) = yield Query(_ROTATE, (name, overlap_s, *who(actor, reason)))
    _check_found(outcome, name)
    return secret_text(bytes(secret))


def remove_webhook(name: str, *, actor: str, reason: str) -> Steps[None]:
    """Tell a receiver of nothing any more; what is on its way to it is forgotten.

    Raises:
        WebhookUnknown: there is none of this name.

    Source: `schema/functions/remove_webhook.sql`.
    """
    _check_name(name)
    ((outcome,),) = yield Query(_REMOVE, (name, *who(actor, reason)))
    _check_found(outcome, name)


def list_webhooks() -> Steps[list[Webhook]]:
    """All receivers, by name.

    Source: `schema/functions/webhooks.sql`.
    """
    return [_webhook(row) for row in (yield Query(_LIST, (None,)))]


def find_webhook(name: str) -> Steps[Webhook]:
    """One receiver.

    Raises:
        WebhookUnknown: there is none of this name.
    """
    _check_name(name)
    rows = yield Query(_LIST, (name,))
    if not rows:
        raise _unknown(name)
    return _webhook(rows[0])


def list_deliveries(
    name: str, *, state: str | None, before: int | None, limit: int
) -> Steps[list[Delivery]]:
    """What a receiver was and is to be told of, the latest first.

    Raises:
        InvalidInput: there is no such state, or `limit` is outside 1 to 1000.
        WebhookUnknown: there is none of this name.

    Source: `schema/functions/deliveries.sql`.
    """
    if state is not None and state not in STATES:
        raise InvalidInput(f"a state is one of {', '.join(STATES)}", field="state")
    check_slice(limit, least=1)
    if before is not None:
        check_whole("before", before)
    yield from find_webhook(name)
    rows: list[tuple[Any, ...]] = yield Query(_DELIVERIES, (name, state, before, limit))
    return [_delivery(row) for row in rows]


def retry_deliveries(
    name: str, ids: Sequence[int] | None, *, actor: str, reason: str
) -> Steps[int]:
    """Send again at once what was tried and is parked or waits; how many deliveries that is.

    Args:
        name: of the receiver.
        ids: of deliveries; None: all.
        actor: who does it.
        reason: why.

    Raises:
        WebhookUnknown: there is none of this name.

    Source: `schema/functions/retry_deliveries.sql`.
    """
    _check_name(name)
    asked = None if ids is None else list(ids)
    for id_ in asked or ():
        check_whole("ids", id_)
    by = who(actor, reason)
    total = 0
    while True:
        ((outcome, retried),) = yield Query(_RETRY, (name, asked, *by))
        _check_found(outcome, name)
        total += int(retried)
        if retried < _RETRIED_MAX:  # what fails again meanwhile is no longer meant
            return total


def test_webhook(name: str, *, timeout_s: float) -> Steps[Delivery]:
    """Let a worker send a message to a receiver, and wait for how the first attempt ends.

    Returns:
        The delivery; without any attempt where no worker sent it in time.

    Raises:
        WebhookUnknown: there is none of this name.

    Source: `schema/functions/test_webhook.sql`.
    """
    _check_name(name)
    ((id_,),) = yield Query(_TEST, (name,))
    if id_ is None:
        raise _unknown(name)
    deadline = time.monotonic() + timeout_s
    while True:
        rows = yield Query(_DELIVERIES, (name, None, id_ + 1, 1))
        if not rows or rows[0][0] != id_:
            raise _unknown(name)  # it was removed meanwhile
        delivery = _delivery(rows[0])
        if delivery.outcome is not None or (yield Pause(_LOOK_S)) > deadline:
            return delivery


def _check_name(name: str) -> None:
    check_text(name, "name")
    if not 1 <= len(name) <= _NAME_CHARS_MAX:
        raise InvalidInput(f"a name has 1 to {_NAME_CHARS_MAX} characters", field="name")


def _kinds(kinds: Sequence[str]) -> list[str]:
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds or isinstance(kinds, str):
        raise InvalidInput(f"kinds are some of {', '.join(KINDS)}", field="kinds")
    return [kind for kind in KINDS if kind in kinds]


def _check_url(url: str, *, allow_http: bool) -> None:
    check_text(url, "url")
    try:
        parts = urlsplit(url)
        port = parts.port or 1
    except ValueError as exc:
        raise InvalidInput("this is no URL", field="url") from exc
    printable = url.isascii() and all(" " < character <= "~" for character in url)
    if not printable or len(url) > _URL_CHARS_MAX or not parts.hostname or port > _PORT_MAX:
        raise InvalidInput(
            f"a URL is ASCII, has a host and up to {_URL_CHARS_MAX} characters", field="url"
        )
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise InvalidInput(
            "a URL has no password and no fragment: requests are signed", field="url"
        )
    if parts.scheme != "https" and not (parts.scheme == "http" and allow_http):
        raise InvalidInput("a URL is https, or http where that is asked for", field="url")


def _check_found(outcome: str, name: str) -> None:
    if outcome == "webhook_unknown":
        raise _unknown(name)


def _unknown(name: str) -> WebhookUnknown:
    return WebhookUnknown(f"there is no webhook {name!r}", field="webhook")


def _webhook(row: Sequence[Any]) -> Webhook:
    (name, url, kinds, board, enabled, disabled_for, former_until, failures, paused_until, made_at,
     waiting, parked, oldest_at) = row  # fmt: skip
    return Webhook(
        name=name,
        url=url,
        kinds=tuple(kinds),
        board=board,
        enabled=enabled,
        disabled_for=disabled_for,
        former_until=former_until,
        failures=failures,
        paused_until=paused_until,
        made_at=made_at,
        waiting=waiting,
        parked=parked,
        oldest_at=oldest_at,
    )


def _delivery(row: Sequence[Any]) -> Delivery:
    (id_, key, kind, member, data, occurred_at, state, attempts, attempted_at, due_at, outcome,
     ended_at) = row  # fmt: skip
    return Delivery(
        id=id_,
        key=str(key),
        kind=kind,
        member=member,
        data=data,
        occurred_at=occurred_at,
        state=state,
        attempts=attempts,
        attempted_at=attempted_at,
        due_at=due_at,
        outcome=outcome,
        ended_at=ended_at,
    )

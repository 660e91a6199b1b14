"""What receivers of webhooks need: tell whether a request is genuine, and who was erased.

Requests are signed as https://www.standardwebhooks.com says, so that libraries for it take them as
well. Nothing here needs a database.
"""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from truerank.errors import WebhookInvalid

__all__ = ["Message", "WebhookInvalid", "member_hash", "verify"]

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
_PREFIX = "whsec_"
_VERSION = "v1"
_TOLERANCE_S = 300.0
_DIGITS_MAX = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What a receiver is told of."""

    id: str  # the same in each attempt: what was dealt with under it is not dealt with again
    type: str  # award.given, award.withdrawn, season.final, ...
    timestamp: str  # when it happened, RFC 3339, UTC
    data: Mapping[str, Any]


def verify(
    secrets: str | Sequence[str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance_s: float = _TOLERANCE_S,
    now: float | None = None,
) -> Message:
    """What a request says, once it is sure that it comes from who has the secret.

    Args:
        secrets: of the webhook, such as `whsec_...`; while it is being rotated both.
        headers: of the request, in any case.
        body: of the request, byte for byte.
        tolerance_s: how far its time may be from now, in seconds: who recorded a request can't
            send it again later.
        now: Unix time in seconds; None: the clock's.

    Raises:
        WebhookInvalid: a header is missing, the time is too far off, or no signature is right.
    """
    given = {name.lower(): value for name, value in headers.items()}
    try:
        id_, at, signatures = given[ID], given[TIMESTAMP], given[SIGNATURE]
    except KeyError as exc:
        raise WebhookInvalid(f"the header {exc.args[0]} is missing") from exc
    if not (at.isascii() and at.isdigit() and len(at) <= _DIGITS_MAX and id_.isascii()):
        raise WebhookInvalid(f"{ID} is no ASCII, or {TIMESTAMP} no number of seconds")
    sent_s = int(at)
    if abs((time.time() if now is None else now) - sent_s) > tolerance_s:
        raise WebhookInvalid(f"sent more than {tolerance_s:.0f} s from now")
    offered = signatures.split()
    right = False
    for secret in [secrets] if isinstance(secrets, str) else secrets:
        wanted = signature(secret_bytes(secret), id_, sent_s, body)
        for each in offered:  # all of them, so that the time it takes tells nothing
            right |= hmac.compare_digest(each.encode(errors="replace"), wanted.encode())
    if not right:
        raise WebhookInvalid("no signature is right")
    try:
        told = json.loads(body)
        return Message(id=id_, type=told["type"], timestamp=told["timestamp"], data=told["data"])
    except (ValueError, KeyError, TypeError) as exc:
        raise WebhookInvalid("the body isn't a message") from exc


def member_hash(secret: str, member: str) -> str:
    """The keyed hash under which `member.erased` names a member, in hexadecimal."""
    return hmac.new(secret_bytes(secret), member.encode(), hashlib.sha256).hexdigest()


def signature(secret: bytes, id_: str, sent_s: int, body: bytes) -> str:
    """One signature of a request.

    Args:
        secret: see `secret_bytes`.
        id_: of the message.
        sent_s: Unix time of the attempt, in seconds.
        body: of the request.
    """
    signed = hmac.new(secret, f"{id_}.{sent_s}.".encode() + body, hashlib.sha256).digest()
    return f"{_VERSION},{base64.b64encode(signed).decode()}"


def secret_text(secret: bytes) -> str:
    """A secret as people are shown it."""
    return _PREFIX + base64.b64encode(secret).decode()


def secret_bytes(secret: str) -> bytes:
    """A secret as it is computed with.

    Raises:
        WebhookInvalid: this is none.
    """
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except ValueError as exc:
        raise WebhookInvalid("a secret is whsec_ and text in base64") from exc
    if not key:  # of a setting that isn't set: anybody could sign with it
        raise WebhookInvalid("the secret is empty")
    return key

"""What a receiver is sent: the body of a message, and its signed headers."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from typing import Any
from uuid import UUID

import msgspec

from truerank import webhooks
from truerank.read.shapes import time_text


@dataclass(frozen=True, slots=True)
class Due:
    """A delivery to be made now, as `claim_deliveries` gives it."""

    id: int
    key: UUID
    webhook: int
    url: str
    secrets: Sequence[bytes] = field(repr=False)  # that it is signed with, the newest first
    kind: str
    member: str | None
    data: Mapping[str, Any]
    occurred_at: datetime
    attempts: int  # with this one


def body_of(due: Due) -> bytes:
    """The message as JSON: the same in each attempt, but for a member who was erased meanwhile."""
    member = {} if due.member is None else {"member": due.member}
    return msgspec.json.encode(
        {
            "id": str(due.key),
            "type": due.kind,
            "timestamp": time_text(due.occurred_at),
            "data": {**due.data, **member},
        }
    )


def headers_of(due: Due, body: bytes) -> dict[str, str]:
    """The headers of an attempt, signed with each secret that is valid now."""
    sent_s = int(time.time())
    signatures = [
        webhooks.signature(bytes(secret), str(due.key), sent_s, body) for secret in due.secrets
    ]
    return {
        "content-type": "application/json",
        "user-agent": f"truerank/{version('truerank')}",
        webhooks.ID: str(due.key),
        webhooks.TIMESTAMP: str(sent_s),
        webhooks.SIGNATURE: " ".join(signatures),
    }

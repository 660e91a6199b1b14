"""What was said of members, erasures and freezes, as plain values of JSON."""

from collections.abc import Sequence

from truerank.model import Erasure, Freeze, MemberChange, MemberScope
from truerank.read.shapes import Shape, time_text


def member_change_json(change: MemberChange) -> Shape:
    """A change of a member, field by field as in `truerank.MemberChange`."""
    return {
        "member": change.member,
        "board": change.board,
        "state": change.state.value,
        "until": time_text(change.until),
        "merged_into": change.merged_into,
        "changed": change.changed,
        "known": change.known,
        "pending": change.pending,
        "token": change.token,
    }


def member_states_json(member: str, scopes: Sequence[MemberScope]) -> Shape:
    """All that was said of a member, by board; null: everywhere."""
    return {
        "member": member,
        "states": [
            {
                "board": scope.board,
                "state": scope.state.value,
                "until": time_text(scope.until),
                "hides": scope.hides,
                "changed_at": time_text(scope.changed_at),
                "merged_into": scope.merged_into,
            }
            for scope in scopes
        ],
    }


def erasure_json(erasure: Erasure) -> Shape:
    """An erasure; `pending` and `token` only where it was asked for just now."""
    asked = {} if erasure.token is None else {"pending": erasure.pending, "token": erasure.token}
    return {
        "erasure": erasure.id,
        "state": "erased" if erasure.complete else "erasing",
        "asked_at": time_text(erasure.asked_at),
        "erased_at": time_text(erasure.erased_at),
        "stand_ins": list(erasure.stand_ins),
        "events": erasure.events,
        "digest": erasure.digest,
    } | asked


def freeze_json(freeze: Freeze) -> Shape:
    """A freeze, field by field as in `truerank.Freeze`."""
    return {
        "board": freeze.board,
        "season": freeze.season,
        "due_at": time_text(freeze.due_at),
        "frozen_at": time_text(freeze.frozen_at),
        "revealed_at": time_text(freeze.revealed_at),
        "together": list(freeze.together),
        "public": list(freeze.public),
    }

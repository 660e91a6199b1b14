"""Added seasons that are being computed, as plain values for JSON."""

from dataclasses import asdict

from truerank.command.filling import Filled
from truerank.model import SeasonsFilling
from truerank.read.shapes import Shape


def seasons_filling_json(filling: SeasonsFilling) -> Shape:
    """How far it is; `members` is null where nobody has counted them.

    Returns:
        `{"board", "periods", "members_done", "members", "waits_for": [{"pid", "name", "state",
        "age_ms"}]}`.
    """
    return asdict(filling)


def filled_json(filled: Filled) -> Shape:
    """What one slice came to: `{"members", "waits", "done"}`."""
    return asdict(filled)

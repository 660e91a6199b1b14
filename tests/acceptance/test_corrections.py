"""Corrections and deleted boards as readers of the projection see them."""

from typing import Any

from truerank.client import Truerank
from truerank.local import running_worker
from truerank.settings import Settings

BY: dict[str, Any] = {"actor": "ops", "reason": "a check"}


def test_what_was_voided_leaves_the_projection_and_may_come_back(
    database_url: str, redis_url: str
) -> None:
    settings = Settings(database_url=database_url, redis_url=redis_url)
    with running_worker(settings), Truerank(settings) as tr:
        tr.create_board("b", seasons=["all"])
        tr.submit_score("b", event_id="e1", member="ann", value=5)
        tr.submit_score("b", event_id="e2", member="bob", value=7)

        (receipt,) = tr.void_events("b", ["e2"], **BY)
        assert receipt.token is not None
        tr.wait_visible(receipt.token, ["b"])
        without = tr.top("b", source="projection")
        again = tr.submit_score("b", event_id="e3", member="bob", value=1)
        assert again.token is not None
        tr.wait_visible(again.token, ["b"])

        assert [(entry.member, entry.score) for entry in without.entries] == [("ann", "5")]
        shown, true = tr.top("b", source="projection"), tr.top("b", source="database")
        assert shown.entries == true.entries
        assert [(entry.member, entry.score) for entry in shown.entries] == [
            ("ann", "5"),
            ("bob", "1"),
        ]

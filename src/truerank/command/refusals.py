"""What each code means with which a board refuses an event, in a sentence."""

from collections.abc import Mapping

MEANINGS: Mapping[str, str] = {
    "board_unknown": "there is no such board",
    "batch_too_large": "a call takes at most 100,000 events",
    "operator_mismatch": "the board has another operator than the caller expected",
    "board_closed": "the board takes no events just now",
    "event_id_invalid": "an event id has 1 to 200 characters",
    "member_invalid": "a member's id has 1 to 200 characters",
    "value_invalid": "there is no value",
    "value_too_precise": "the value has more places than the board has decimals",
    "value_out_of_range": "the value is outside the board's range",
    "total_out_of_range": "the total would leave the board's range",
    "occurred_at_invalid": "the time is no instant",
    "occurred_at_too_early": "it occurred before the board's earliest time",
    "occurred_at_too_late": "it occurred after the board's latest time",
    "occurred_at_too_old": "it occurred so long ago that its id may be forgotten",
    "occurred_at_in_future": "it has not occurred yet",
    "season_none": "it falls into no season of the board",
    "season_closed": "it falls into a season that is closed",
    "season_over": "it falls into a season that ended longer ago than the board's grace",
    "season_unexpected": "it falls into another season than the caller expected",
    "tie_invalid": "a tie-break is missing",
    "tie_count_wrong": "the board has another number of tie-breaks",
    "tie_out_of_range": "a tie-break is outside its range",
    "metadata_too_large": "the metadata is longer than 1 KiB",
    "rate_exceeded": "the member has as many events in this minute as the board allows",
    "event_forgotten": "its id belongs to an event that is older than the board remembers",
    "history_incomplete": "the event is older than what the board remembers, and stays as it is",
    "event_unknown": "the board has no such event",
    "correction_id_invalid": "a correction id has 1 to 200 characters",
}

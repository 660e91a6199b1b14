"""What PostgreSQL holds for one member, and the event it rests on."""

from datetime import UTC, datetime, timedelta

from truerank.model import Board, Season, Standing
from truerank.steps import Query, Steps

_STANDING = "SELECT * FROM truerank.read_standing(%s, %s, %s)"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_standing(board: Board, season: Season, member: str) -> Steps[Standing | None]:
    """The standing of a member in a season, hidden or not; None where it has none.

    Source: `schema/functions/read_standing.sql`.
    """
    rows = yield Query(_STANDING, (board.id, season.ranking, member))
    if not rows:
        return None
    ((score, ties, version, reached_us, event_id, occurred_at, metadata),) = rows
    return Standing(
        board=board.spec.key,
        season=season.label,
        member=member,
        score=str(score),
        ties=tuple(ties or ()),
        version=version,
        reached_at=_EPOCH + timedelta(microseconds=reached_us),
        event_id=event_id,
        occurred_at=occurred_at,
        metadata=metadata,
        frozen_at=season.frozen_at,
    )

"""Make boards and custom seasons."""

import json
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from truerank.command.submit import check_text
from truerank.crashpoints import crashpoint
from truerank.errors import (
    BoardAttached,
    BoardExists,
    BoardUnknown,
    Contended,
    InvalidInput,
    SeasonFinal,
    SeasonSealed,
    SeasonUnknown,
)
from truerank.model import Board, BoardSpec, Operator, Order, TieBreak
from truerank.paging import check_whole
from truerank.steps import Pause, Query, Steps

Choice = TypeVar("Choice", bound=StrEnum)

PERIODS = ("all", "day", "week", "month", "year")
_KEY_CHARS_MAX = 100
_LABEL_CHARS_MAX = 100
_TIES_MAX = 4
_TIE_CHARS_MAX = 100
_DECIMALS_MAX = 18

_CREATE = """
    SELECT truerank.create_board(%s, %s, %s, %s::text[], %s, %s, %s::text[], %s::boolean[],
                                 %s::bigint[], %s::bigint[], %s, %s, %s, %s, %s)"""
_CREATE_SEASON = "SELECT truerank.create_season(%s, %s, %s, %s)"
_CHANGE_SEASON = "SELECT truerank.change_season(%s, %s, %s, %s, %s, %s)"
_UPDATE = "SELECT truerank.update_board(%s, %s::jsonb, %s, %s)"
_RENAME = "SELECT truerank.rename_board(%s, %s, %s, %s)"
_DELETE = "SELECT truerank.delete_board(%s, %s, %s)"
_PURGE = "SELECT truerank.purge_boards(%s::integer)"
_BUSY_PAUSE_S = 0.05
_BUSY_TRIES_MAX = 200
_ROWS_MAX = 100_000  # removed in one transaction
_BOARDS = "SELECT * FROM truerank.boards(%s)"


def create_board(spec: BoardSpec) -> Steps[bool]:
    """Make a board; True where it is new, False where it exists with the same settings.

    Raises:
        InvalidInput: a setting is malformed; `field` names it.
        BoardExists: the key is taken by a board with other settings. Nothing was changed.

    Source: `schema/functions/create_board.sql`.
    """
    _check_spec(spec)
    ties = spec.tie_breaks
    ((made,),) = yield Query(
        _CREATE,
        (
            spec.key,
            spec.operator.value,
            spec.order is Order.DESC,
            list(spec.seasons),
            spec.zone,
            spec.decimals,
            [tie.name for tie in ties],
            [tie.order is Order.DESC for tie in ties],
            [tie.min for tie in ties],
            [tie.max for tie in ties],
            spec.value_min,
            spec.value_max,
            spec.total_min,
            spec.total_max,
            spec.dense,
        ),
    )
    if made == "different":
        raise BoardExists(f"board {spec.key!r} exists with other settings", field="board")
    return bool(made == "created")


def create_season(board: str, label: str, starts_at: datetime, ends_at: datetime) -> Steps[bool]:
    """Add a custom season, `[starts_at, ends_at)`; True where it is new.

    Raises:
        InvalidInput: the label looks like a built-in season, is taken with other bounds, the
            bounds are naive or in the wrong order, events fall between them already, or some that
            did may be forgotten.
        BoardUnknown: no board has this key.
        Contended: a writer of the board keeps its transaction open.

    Source: `schema/functions/create_season.sql`.
    """
    check_text(label, "season")
    if not 1 <= len(label) <= _LABEL_CHARS_MAX:
        raise InvalidInput("a season's label has 1 to 100 characters", field="season")
    _check_bounds(starts_at, ends_at)
    ((made,),) = yield Query(_CREATE_SEASON, (board, label, starts_at, ends_at))
    check_known(made, board)
    if made == "label_reserved":
        raise InvalidInput(f"{label!r} looks like a built-in season", field="season")
    if made == "season_has_events":
        raise InvalidInput(f"season {label!r} would begin with events in it", field="starts_at")
    if made == "history_incomplete":
        raise InvalidInput(
            f"season {label!r} would begin before the board's history does", field="starts_at"
        )
    if made == "different":
        raise InvalidInput(f"season {label!r} exists with other bounds", field="season")
    return bool(made == "created")


def change_season(
    board: str, label: str, starts_at: datetime, ends_at: datetime, *, actor: str, reason: str
) -> Steps[bool]:
    """Give a custom season other bounds, audited; True where they changed.

    Raises:
        InvalidInput: naive bounds or in the wrong order, a total would leave its range, or events
            between the old and the new bounds may be forgotten.
        SeasonUnknown: the board has no custom season of this label.
        SeasonFinal: its standings are settled.
        SeasonSealed: it is being closed: open it again first.
        BoardUnknown: no board has this key.
        Contended: a writer of the board keeps its transaction open.

    Source: `schema/functions/change_season.sql`.
    """
    check_text(label, "season")
    _check_bounds(starts_at, ends_at)
    ((answer,),) = yield Query(_CHANGE_SEASON, (board, label, starts_at, ends_at, actor, reason))
    if answer == "season_unknown":
        raise SeasonUnknown(f"board {board!r} has no custom season {label!r}", field="season")
    if answer == "history_incomplete":
        raise InvalidInput(
            f"season {label!r} can't be computed anew: events between the bounds are forgotten",
            field="starts_at",
        )
    if answer == "season_final":
        raise SeasonFinal(f"season {label!r} is final", field="season")
    if answer == "season_sealed":
        raise SeasonSealed(f"season {label!r} is sealed: open it again first", field="season")
    return _done(answer, board, "changed")


def _check_bounds(starts_at: datetime, ends_at: datetime) -> None:
    if starts_at.utcoffset() is None or ends_at.utcoffset() is None or starts_at >= ends_at:
        raise InvalidInput("a season starts before it ends, both with an offset", field="starts_at")


def update_board(
    key: str, changes: Mapping[str, object], *, actor: str, reason: str
) -> Steps[bool]:
    """Change rules of a board, audited; True where something changed.

    Args:
        key: the board's key.
        changes: any of value_min, value_max, total_min, total_max (scaled), earliest_at,
            latest_at, future_max, late_grace, retention (PostgreSQL intervals: "30 days"),
            rate_max (events per member and minute), accepting, dense; None takes an optional one
            away.
        actor: who does it.
        reason: why.

    Raises:
        InvalidInput: a value that may not be, or a setting that would change existing results:
            operator, order, zone, decimals, seasons and tie-breaks are fixed.
        BoardUnknown: no board has this key.

    Source: `schema/functions/update_board.sql`.
    """
    check_text(key, "board")
    text = json.dumps(dict(changes), default=str)
    ((answer,),) = yield Query(_UPDATE, (key, text, actor, reason))
    if answer.startswith("setting_fixed"):
        name = answer.partition(":")[2]
        raise InvalidInput(f"{name} would change existing results: it is fixed", field=name)
    return _done(answer, key, "changed")


def rename_board(key: str, new_key: str, *, actor: str, reason: str) -> Steps[bool]:
    """Give a board another key, audited; everything else stays. True where it changed.

    Raises:
        InvalidInput: the new key may not be.
        BoardUnknown, BoardExists: no board has the old key, or another has the new one.

    Source: `schema/functions/rename_board.sql`.
    """
    check_text(key, "board")
    check_key(new_key)
    ((answer,),) = yield Query(_RENAME, (key, new_key, actor, reason))
    if answer == "board_exists":
        raise BoardExists(f"there is a board {new_key!r} already", field="board")
    return _done(answer, key, "renamed")


def delete_board(key: str, *, actor: str, reason: str) -> Steps[None]:
    """Take a board out of service, audited; its key is free again at once.

    Its standings and events are removed afterwards, in slices, by `purge_boards`.

    Raises:
        BoardUnknown: no board has this key.
        BoardAttached: a table feeds it: its rows would have nowhere to go.
        Contended: commands were under way for seconds. Nothing was changed.

    Source: `schema/functions/delete_board.sql`.
    """
    check_text(key, "board")
    for _ in range(_BUSY_TRIES_MAX):
        ((answer,),) = yield Query(_DELETE, (key, actor, reason))
        if answer == "attached":
            raise BoardAttached(f"tables are attached to board {key!r}: detach them first")
        if answer != "busy":
            _done(answer, key, "deleted")
            return
        yield Pause(_BUSY_PAUSE_S)
    raise Contended(f"commands to board {key!r} are under way; nothing was changed")


def purge_boards(rows_max: int = 1000) -> Steps[int]:
    """Remove a slice of what deleted boards have left; how many rows, 0 when nothing is left.

    Source: `schema/functions/purge_boards.sql`.
    """
    check_whole("rows_max", rows_max, _ROWS_MAX, least=1)
    ((removed,),) = yield Query(_PURGE, (rows_max,))
    crashpoint("purge_slice")
    return int(removed)


def check_known(outcome: str, board: str) -> None:
    """Fail with `BoardUnknown` where a function of the schema says that there is no such board."""
    if outcome == "board_unknown":
        raise BoardUnknown(f"there is no board {board!r}", field="board")


def _done(answer: str, key: str, changed: str) -> bool:
    check_known(answer, key)
    return answer == changed


def find_board(key: str) -> Steps[tuple[Board, str, int]]:
    """Read one board, the epoch of the source, and the privacy tick of the board's group.

    Raises:
        BoardUnknown: no board has this key.

    Source: `schema/functions/boards.sql`.
    """
    check_text(key, "board")
    rows = yield Query(_BOARDS, (key,))
    if not rows:
        raise BoardUnknown(f"there is no board {key!r}", field="board")
    *_, privacy_tick, epoch = rows[0]
    return board_of(rows[0]), epoch.hex, privacy_tick


def list_boards() -> Steps[list[Board]]:
    """Read all boards, in order of their keys."""
    rows = yield Query(_BOARDS, (None,))
    return [board_of(row) for row in rows]


def choice(kind: type[Choice], value: str, field: str) -> Choice:
    """One of a set of words.

    Raises:
        InvalidInput: it is none of them; the message lists them.
    """
    if isinstance(value, kind):
        return value
    try:
        return kind(value)
    except ValueError as exc:
        words = ", ".join(kind)
        raise InvalidInput(f"{field} is one of {words}; not {value!r}", field=field) from exc


def check_key(key: str) -> None:
    """Refuse a board key that could not be addressed everywhere.

    Raises:
        InvalidInput: not 1 to 100 characters, or control characters, `/`, backslash, `.`, `..`.
    """
    check_text(key, "board")
    if not 1 <= len(key) <= _KEY_CHARS_MAX:
        raise InvalidInput("a board's key has 1 to 100 characters", field="board")
    if key in {".", ".."} or any(c in "/\\" or unicodedata.category(c) == "Cc" for c in key):
        raise InvalidInput(
            "a board's key has no control characters, no / and no backslash", field="board"
        )


def _check_spec(spec: BoardSpec) -> None:
    check_key(spec.key)
    unknown = [season for season in spec.seasons if season not in PERIODS]
    if unknown or len(set(spec.seasons)) != len(spec.seasons):
        raise InvalidInput(
            f"seasons are different ones of {', '.join(PERIODS)}; not {unknown or spec.seasons}",
            field="seasons",
        )
    if not 0 <= spec.decimals <= _DECIMALS_MAX:
        raise InvalidInput("decimals are 0 to 18", field="decimals")
    if len(spec.tie_breaks) > _TIES_MAX:
        raise InvalidInput("a board has at most four tie-breaks", field="tie_breaks")
    for tie in spec.tie_breaks:
        check_text(tie.name, "tie_breaks")
        if not 1 <= len(tie.name) <= _TIE_CHARS_MAX:
            raise InvalidInput("a tie-break's name has 1 to 100 characters", field="tie_breaks")
    if len({tie.name for tie in spec.tie_breaks}) != len(spec.tie_breaks):
        raise InvalidInput("tie-breaks have different names", field="tie_breaks")
    check_text(spec.zone, "zone")
    for name, low, high in (
        ("value", spec.value_min, spec.value_max),
        ("total", spec.total_min, spec.total_max),
        *((f"tie {tie.name}", tie.min, tie.max) for tie in spec.tie_breaks),
    ):
        if not -(2**63) <= low <= high < 2**63:
            raise InvalidInput(f"the range of {name} is not within 64 bits", field=name)


def board_of(row: Sequence[Any]) -> Board:
    """A board from a row that begins as those of `schema/functions/boards.sql`."""
    (id_, key, group, operator, descending, seasons, custom, zone, decimals, names, directions,
     lows, highs, value_min, value_max, total_min, total_max, dense, *_) = row  # fmt: skip
    return Board(
        id=id_,
        group=group,
        custom_seasons=custom,
        spec=BoardSpec(
            key=key,
            operator=Operator(operator),
            order=Order.DESC if descending else Order.ASC,
            seasons=tuple(seasons),
            zone=zone,
            decimals=decimals,
            tie_breaks=tuple(
                TieBreak(name=name, order=Order.DESC if desc else Order.ASC, min=low, max=high)
                for name, desc, low, high in zip(names, directions, lows, highs, strict=True)
            ),
            value_min=value_min,
            value_max=value_max,
            total_min=total_min,
            total_max=total_max,
            dense=dense,
        ),
    )

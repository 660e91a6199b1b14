"""How fast every standing is compared, beside merely reading it from both sides."""

import time
from collections.abc import Callable
from contextlib import closing

from benchmarks.pipeline import BOARD, Truerank
from benchmarks.result import Bar, Result, median, versions
from truerank.client import Truerank as Client
from truerank.embedded import Engines
from truerank.model import Board, Season
from truerank.outbox.ticks import Connection
from truerank.projection import worker
from truerank.projection.keys import GenerationKeys, GroupKeys
from truerank.projection.link import Link
from truerank.repair.reconcile import reconcile as compare
from truerank.settings import Settings
from truerank.settings import load as load_settings

ROUNDS = 3

_CHUNK = 1000
_KEY_BYTES = 24  # of a sort key without tie-breaks
_KEYSET = """
    SELECT member, version, sort_key FROM truerank.standing
    WHERE ranking = %s AND (sort_key, member) > (%s, %s COLLATE "C")
    ORDER BY sort_key, member LIMIT %s"""


def reconcile(engines: Engines, progress: Callable[[str], None], *, short: bool) -> Result:
    """One ranking, at rest, with one connection to each side, by the same clients in both.

    Reading is a keyset SELECT of member, version and sort key, ZRANGE of the places, and HMGET of
    what their members are shown with, 1000 at a time; nothing is compared.
    """
    members = 100_000 if short else 1_000_000
    pipeline = Truerank(engines, members)
    progress(f"a standing for each of {members:,} members")
    pipeline.prepare()
    settings = load_settings(database_url=engines.database_url, redis_url=engines.redis_url)
    rates: dict[str, list[float]] = {"reconcile": [], "reading": []}
    for number in range(ROUNDS):
        progress(f"round {number + 1} of {ROUNDS}: reconcile")
        report = compare(settings, board=BOARD)
        assert (report.checked, report.drift) == (members, 0), report.line()
        rates["reconcile"].append(members / report.seconds)
        progress(f"round {number + 1} of {ROUNDS}: reading")
        rates["reading"].append(members / _read(settings, members))
    ours, theirs = (median(rates[side]) for side in ("reconcile", "reading"))
    return Result(
        name="reconcile",
        short=short,
        ratio=ours / theirs,
        ratio_of="standings/s compared by standings/s read from both sides",
        bars=[
            Bar(
                of="times the standings/s of merely reading both sides",
                value=ours / theirs,
                bar=0.5,
                at_least=True,
            )
        ],
        sizes={"members": members, "standings_per_chunk": _CHUNK},
        engines=versions(engines),
        rounds=rates,
        rounds_of="standings per second",
    )


def _read(settings: Settings, members: int) -> float:
    """Seconds that it takes to read both sides, connections included."""
    assert settings.database_url is not None, "the caller gives it"
    assert settings.redis_url is not None, "the caller gives it"
    with Client(settings) as client:
        board, season = client.board(BOARD), client.season(BOARD)
    began = time.monotonic()
    with (
        worker.connect(settings.database_url) as conn,
        closing(Link(settings.redis_url, timeout_ms=settings.redis_timeout_ms)) as link,
    ):
        of_source = _read_source(conn, season)
        of_copy = _read_copy(link, settings.prefix, board, season)
    assert of_source == of_copy == members, "both sides were read whole"
    return time.monotonic() - began


def _read_source(conn: Connection, season: Season) -> int:
    read, key, member = 0, b"", ""
    while rows := conn.execute(
        _KEYSET, (season.ranking, key, member, _CHUNK), binary=True
    ).fetchall():
        read += len(rows)
        member, _, key = rows[-1]
    return read


def _read_copy(link: Link, prefix: str, board: Board, season: Season) -> int:
    group = GroupKeys(prefix, board.group)
    keys: GenerationKeys = group.generation(link.command("GET", group.pointer).decode())
    read = 0
    while places := link.command("ZRANGE", keys.places(season.ranking), read, read + _CHUNK - 1):
        members = [place[_KEY_BYTES:] for place in places]
        shown = link.command("HMGET", keys.shown(season.ranking), *members)
        assert len(shown) == len(places), "one answer for each"
        read += len(places)
    return read

"""How long it takes to close a season, beside storing its numbered rows and nothing else."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice

import psycopg

from benchmarks.load import MEMBER_CHARS, Events, member_id
from benchmarks.result import Bar, Result, median, versions
from truerank import ScoreEvent, Truerank
from truerank.embedded import Engines
from truerank.settings import Settings

ROUNDS = 3
SEASON = "2024-06"

_AT = datetime(2024, 6, 15, tzinfo=UTC)
_EVENTS_PER_CALL = 10_000
_BASELINE = """
    CREATE TABLE IF NOT EXISTS public.numbered (
        ranking bigint NOT NULL, revision integer NOT NULL, ordinal bigint NOT NULL,
        score bigint NOT NULL, member text COLLATE "C" NOT NULL, sort_key bytea NOT NULL,
        PRIMARY KEY (ranking, revision, ordinal), UNIQUE (ranking, revision, member))"""
_NUMBER = """
    INSERT INTO public.numbered
    SELECT ranking, 1, row_number() OVER (ORDER BY sort_key, member), score, member, sort_key
    FROM truerank.standing WHERE ranking = %s"""
_OPEN_AGAIN = """
    UPDATE truerank.ranking SET state = 'open', sealed_at = NULL, barrier_xid = NULL,
           barrier_at = NULL, hold_until = NULL, settled_at = NULL, revision = NULL"""
_EMPTY = """
    TRUNCATE public.numbered, truerank.settlement, truerank.settlement_row,
             truerank.settlement_excluded, truerank.settlement_name"""


def close(engines: Engines, progress: Callable[[str], None], *, short: bool) -> Result:
    """Seal, barrier and settlement, with ranks in three numberings and the digest."""
    members = 100_000 if short else 1_000_000
    settings = Settings(
        database_url=engines.database_url, redis_url=engines.redis_url, database_timeout_ms=600_000
    )
    seconds: dict[str, list[float]] = {"close": [], "INSERT ... SELECT row_number()": []}
    with (
        Truerank(settings) as client,
        psycopg.connect(engines.database_url, autocommit=True) as conn,
    ):
        client.create_board("b", seasons=["month"])
        progress(f"{members:,} members")
        events = _events(members)
        while some := list(islice(events, _EVENTS_PER_CALL)):
            client.submit_scores("b", some)
        ranking = client.season("b", SEASON).ranking
        conn.execute(_BASELINE)
        conn.execute("VACUUM ANALYZE")
        for number in range(ROUNDS):
            progress(f"round {number + 1} of {ROUNDS}")
            conn.execute(_EMPTY)
            conn.execute(_OPEN_AGAIN)
            conn.execute("CHECKPOINT")
            seconds["INSERT ... SELECT row_number()"].append(
                _took(lambda: conn.execute(_NUMBER, (ranking,)))
            )
            conn.execute("CHECKPOINT")
            seconds["close"].append(
                _took(lambda: client.close_season("b", SEASON, actor="benchmark"))
            )
        (settlement,) = client.settlements("b", SEASON)
        assert settlement.population == members
        figures = {}
        if short:  # it takes minutes for a million
            progress("the digest, from events")
            proof = _took(lambda: _prove(conn, ranking, settlement.digest))
            figures["digest from events, µs per member"] = round(1e6 * proof / members)
    ours, plain = (median(values) for values in seconds.values())
    return Result(
        name="close",
        short=short,
        ratio=ours / plain,
        ratio_of="time to close by time of INSERT ... SELECT row_number()",
        bars=[Bar(of="times the time of the plain INSERT", value=ours / plain, bar=2)],
        sizes={"members": members, "member_chars": MEMBER_CHARS},
        engines=versions(engines),
        rounds=seconds,
        rounds_of="seconds",
        figures=figures,
    )


def _events(members: int) -> Iterator[ScoreEvent]:
    for number, (event_id, _, value) in enumerate(Events("close", 1).draw(members)):
        yield ScoreEvent(event_id=event_id, member=member_id(number), value=value, occurred_at=_AT)


def _prove(conn: psycopg.Connection[tuple[object, ...]], ranking: int, digest: str) -> None:
    row = conn.execute(
        "SELECT encode(digest, 'hex') FROM truerank.settlement_digest_from_events(%s, 1)",
        (ranking,),
    ).fetchone()
    assert row == (digest,), "the settlement is not what its events come to"


def _took(run: Callable[[], object]) -> float:
    began = time.monotonic()
    run()
    return time.monotonic() - began

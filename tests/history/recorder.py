"""Write and read through the product, note what came back, and log what the database does.

A command is sent again under the same event id until it is acknowledged: what a client must do.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString, Self

import psycopg

from tests.history.history import (
    Acknowledged,
    Answered,
    Change,
    Event,
    History,
    Marked,
    Sent,
    Source,
    instant_us,
    now_us,
)
from truerank import Truerank
from truerank.errors import (
    Busy,
    Contended,
    DatabaseUnavailable,
    NotFreshEnough,
    NotVisibleYet,
    ProjectionUnavailable,
)
from truerank.model import Consistency, Page, Receipt, ScoreEvent, Token
from truerank.steps import T

DEADLINE_S = 60.0
FIRST_DAY = datetime(2024, 1, 8, tzinfo=UTC)
DAYS = tuple((FIRST_DAY + timedelta(days=n)).date().isoformat() for n in range(3))
_RETRY_S = 0.01
_AGAIN = (Busy, Contended, DatabaseUnavailable)
_NO_ANSWER = (DatabaseUnavailable, NotFreshEnough, NotVisibleYet, ProjectionUnavailable)

# Every change of a standing, every row of the outbox, every tick: the ring forgets, this doesn't.
_LOG: LiteralString = """
    CREATE SCHEMA history;
    CREATE TABLE history.change (
        seq bigint GENERATED ALWAYS AS IDENTITY, xid xid8, ranking bigint,
        member text COLLATE "C", version bigint, score bigint, sort_key bytea);
    CREATE TABLE history.outbox (LIKE truerank.outbox);
    CREATE TABLE history.tick (LIKE truerank.tick);
    CREATE FUNCTION history.note_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
        IF TG_OP = 'DELETE' THEN
            INSERT INTO history.change (xid, ranking, member, version)
            VALUES (pg_current_xact_id(), OLD.ranking, OLD.member, OLD.version);
        ELSE
            INSERT INTO history.change (xid, ranking, member, version, score, sort_key)
            VALUES (pg_current_xact_id(), NEW.ranking, NEW.member, NEW.version, NEW.score,
                    NEW.sort_key);
        END IF;
        RETURN NULL;
    END $$;
    CREATE FUNCTION history.note_row() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
        INSERT INTO history.outbox SELECT (NEW).*;
        RETURN NULL;
    END $$;
    CREATE FUNCTION history.note_tick() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
        INSERT INTO history.tick SELECT (NEW).*;
        RETURN NULL;
    END $$;
    CREATE TRIGGER history AFTER INSERT OR UPDATE OR DELETE ON truerank.standing
        FOR EACH ROW EXECUTE FUNCTION history.note_change();
    CREATE TRIGGER history AFTER INSERT ON truerank.outbox
        FOR EACH ROW EXECUTE FUNCTION history.note_row();
    CREATE TRIGGER history AFTER INSERT ON truerank.tick
        FOR EACH ROW EXECUTE FUNCTION history.note_tick();
"""
_EVENTS = """
    SELECT b.key, coalesce(t.event_text, e.event_text), e.kind = 'v', e.member, e.value,
           e.occurred_at, e.position, e.xid::text::bigint
    FROM truerank.event AS e
    JOIN truerank.board AS b ON b.id = e.board_id
    LEFT JOIN truerank.event AS t ON t.board_id = e.board_id AND t.event_uuid = e.target"""


def install_log(conn: psycopg.Connection[Any]) -> None:
    """Let the database keep what the checker reads; before anything is written."""
    conn.execute(_LOG)


def read_source(conn: psycopg.Connection[Any]) -> Source:
    """All that the database says, in one snapshot."""
    with conn.transaction():
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        boards = conn.execute("SELECT key, id, operator FROM truerank.board").fetchall()
        custom = conn.execute(
            "SELECT id, season, starts_at, ends_at FROM truerank.ranking WHERE period = 'custom'"
        ).fetchall()
        events = conn.execute(_EVENTS).fetchall()
        changes = conn.execute(
            """SELECT ranking, member, version, xid::text::bigint, sort_key, score
               FROM history.change ORDER BY seq"""
        ).fetchall()
        outbox = conn.execute(
            """SELECT ranking, member, version, xid::text::bigint,
                      CASE op WHEN 'p' THEN sort_key END, NULL FROM history.outbox"""
        ).fetchall()
        standings = conn.execute(
            "SELECT ranking, member, version, 0, sort_key, score FROM truerank.standing"
        ).fetchall()
        ticks = conn.execute("SELECT id, snapshot::text FROM history.tick").fetchall()
    return Source(
        boards={key: (number, operator) for key, number, operator in boards},
        custom={i: (season, instant_us(a), instant_us(b)) for i, season, a, b in custom},
        events=[
            Event(
                board=board,
                event_id=event_id,
                void=void,
                member=member,
                value=value,
                occurred_us=instant_us(at),
                position=position,
                xid=xid,
            )
            for board, event_id, void, member, value, at, position, xid in events
        ],
        changes=[_change(row) for row in changes],
        outbox=[_change(row) for row in outbox],
        standings=[_change(row) for row in standings],
        ticks=dict(ticks),
    )


def _change(row: Sequence[Any]) -> Change:
    ranking, member, version, xid, sort_key, score = row
    return Change(
        ranking=ranking, member=member, version=version, xid=xid, sort_key=sort_key, score=score
    )


@dataclass(frozen=True, slots=True)
class Board:
    """A board that is written and read: its key, and the seasons that readers look at."""

    key: str
    seasons: tuple[str, ...] = ("all",)


class Recorder:
    """Keeps one history; safe for several threads, of which each is a session of its own."""

    def __init__(self, client: Truerank) -> None:
        self.history = History()
        self._client = client
        self._tokens: dict[str, Token] = {}  # of each board, the last that was acknowledged
        self._seen: dict[tuple[str, str], Token] = {}  # of each session and board, the last
        self.unanswered = 0

    def send(self, board: str, events: Sequence[ScoreEvent]) -> None:
        """Note commands that somebody else sends, and may not live to see acknowledged."""
        for event in events:
            assert event.occurred_at is not None, "the checker must know where an event belongs"
            self.history.sent.append(
                Sent(
                    board=board,
                    event_id=event.event_id,
                    member=event.member,
                    value=int(event.value),
                    occurred_us=instant_us(event.occurred_at),
                )
            )

    def submit(self, board: str, events: Sequence[ScoreEvent]) -> list[Receipt]:
        """Send events until they are acknowledged."""
        self.send(board, events)
        sent_us, receipts = self._until_acknowledged(
            lambda: self._client.submit_scores(board, events)
        )
        members = [event.member for event in events]
        self._acknowledge(board, receipts, members, sent_us=sent_us, void=False)
        return receipts

    def void(self, board: str, event: ScoreEvent) -> None:
        """Take an event out, until that is acknowledged."""
        self.history.sent.append(Sent(board=board, event_id=event.event_id, void=True))
        sent_us, receipts = self._until_acknowledged(
            lambda: self._client.void_events(board, [event.event_id], actor="test", reason="test")
        )
        self._acknowledge(board, receipts, [event.member], sent_us=sent_us, void=True)

    def close(self, board: str, season: str) -> None:
        """Close a season now, until that is acknowledged."""
        _, closed = self._until_acknowledged(
            lambda: self._client.close_season(board, season, actor="test", reason="test", now=True)
        )
        assert closed.state == "final"

    def _until_acknowledged(self, send: Callable[[], T]) -> tuple[int, T]:
        sent_us = now_us()
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                return sent_us, send()
            except _AGAIN:
                assert time.monotonic() < deadline, "never acknowledged"
                time.sleep(_RETRY_S)

    def _acknowledge(
        self, board: str, receipts: list[Receipt], members: list[str], *, sent_us: int, void: bool
    ) -> None:
        received_us = now_us()
        for receipt, member in zip(receipts, members, strict=True):
            self.history.acknowledged.append(
                Acknowledged(
                    sent_us=sent_us,
                    received_us=received_us,
                    board=board,
                    event_id=receipt.event_id,
                    void=void,
                    outcome=receipt.outcome.value,
                    xid=_xid(receipt.token),
                    member=member,
                    standings=tuple(
                        (s.season, None if s.score is None else int(s.score), s.version)
                        for s in receipt.standings
                    ),
                )
            )
            if receipt.token is not None:
                self._tokens[board] = receipt.token

    def read(self, session: str, board: str, season: str, mode: str) -> Page | None:
        """Read a whole ranking in one of `MODES`; None where no answer came.

        `visible` waits for the last write that was acknowledged, and reads the projection then;
        `monotonic` asks for nothing older than the session's last answer of that kind.
        """
        token = self._tokens.get(board) if mode in {"visible", "at_least"} else None
        after = self._seen.get((session, board)) if mode == "monotonic" else None
        asked_us = now_us()
        try:
            if mode == "visible" and token is not None:
                self._client.wait_visible(token, [board], timeout_s=0.5)
            sent_us = now_us()
            page = self._client.top(board, season, limit=1000, **_question(mode, token or after))
        except _NO_ANSWER:
            self.unanswered += 1
            return None
        received_us = now_us()
        told = page.freshness
        through = told.projected_through
        if mode == "monotonic":
            assert told.token is not None, "the next answer could not be compared with this one"
            self._seen[session, board] = told.token
        self.history.answered.append(
            Answered(
                session=session,
                asked_us=asked_us,
                sent_us=sent_us,
                received_us=received_us,
                mode=mode,
                board=board,
                season=season,
                source=told.source.value,
                total=page.total,
                rows=tuple((row.rank, row.member, int(row.score)) for row in page.entries),
                generation=told.generation,
                tick=told.tick,
                partial=told.partial,
                through_us=None if through is None else instant_us(through),
                staleness_ms=told.staleness_ms,
                snapshot=None if told.token is None else told.token.partition(".")[0],
                at_least=None if token is None else _xid(token),
                after=None if after is None else after.partition(".")[0],
                max_age_ms=_MAX_AGE_MS if mode == "max_age" else None,
            )
        )
        return page

    def mark(self, kind: str, **what: Any) -> None:
        """Note a moment; see `Marked`."""
        self.history.marked.append(Marked(kind=kind, **({"at_us": now_us()} | what)))


_MAX_AGE_MS = 200
MODES = (
    "any", "projection", "authoritative", "visible", "at_least", "monotonic", "max_age"
)  # fmt: skip


def _question(mode: str, token: Token | None) -> dict[str, Any]:
    match mode:
        case "projection" | "visible" | "final":
            return {"source": "projection"}
        case "at_least" if token is not None:
            return {"consistency": Consistency.at_least(token, wait_ms=200)}
        case "monotonic":
            return {"consistency": Consistency.monotonic_after(token, wait_ms=200)}
        case "max_age":
            return {"consistency": Consistency.max_age(_MAX_AGE_MS)}
        case "authoritative":
            return {"consistency": Consistency.authoritative()}
        case _:
            return {}


def _xid(token: Token | None) -> int | None:
    return None if token is None else int(token.partition(".")[0])


class Traffic:
    """Writers and readers, each a thread, from `with` to its end.

    Args:
        recorder: notes what they see.
        boards: what they write and read.
        seed: of what they choose.
        members: how many there are on each board.
        pause_s: most between two commands of one thread.
    """

    def __init__(
        self,
        recorder: Recorder,
        boards: Sequence[Board],
        *,
        seed: int,
        members: int = 12,
        writers: int = 2,
        readers: int = 2,
        pause_s: float = 0.01,
    ) -> None:
        self._recorder = recorder
        self._boards = boards
        self._members = [f"m{n}" for n in range(members)]
        self._pause_s = pause_s
        self._stops = {"write": threading.Event(), "read": threading.Event()}
        self._failures: list[BaseException] = []
        self._threads = {
            "write": [self._thread(self._write, seed, n) for n in range(writers)],
            "read": [self._thread(self._read, seed, n) for n in range(readers)],
        }

    def __enter__(self) -> Self:
        for thread in (*self._threads["write"], *self._threads["read"]):
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(BaseException):
            self.stop("write")
        with suppress(BaseException):
            self.stop("read")

    def stop(self, kind: str) -> None:
        """End the writers (`write`) or the readers (`read`), and raise what one failed with."""
        self._stops[kind].set()
        for thread in self._threads[kind]:
            thread.join()
        self.check()

    def check(self) -> None:
        """Raise what a thread failed with."""
        if self._failures:
            raise self._failures[0]

    def _thread(
        self, run: Callable[[random.Random, str], None], seed: int, number: int
    ) -> threading.Thread:
        def guarded() -> None:
            name = f"{run.__name__.strip('_')} {number}"
            try:
                run(random.Random(f"{seed} {name}"), name)
            except BaseException as exc:  # noqa: BLE001 - raised again by `check`
                self._failures.append(exc)

        return threading.Thread(target=guarded)

    def _write(self, rng: random.Random, name: str) -> None:
        known: list[tuple[str, ScoreEvent]] = []
        numbers = iter(range(1_000_000))
        while not self._stops["write"].wait(rng.uniform(0, self._pause_s)):
            choice = rng.random()
            if known and choice < 0.1:
                board, event = rng.choice(known)
                self._recorder.submit(board, [event])
            elif known and choice < 0.2:
                board, event = known.pop(rng.randrange(len(known)))
                self._recorder.void(board, event)
            else:
                board = rng.choice(self._boards).key
                events = [
                    random_event(rng, f"{name} {next(numbers)}", rng.choice(self._members))
                    for _ in range(rng.randrange(1, 6))
                ]
                self._recorder.submit(board, events)
                known += [(board, event) for event in events]

    def _read(self, rng: random.Random, name: str) -> None:
        while not self._stops["read"].wait(rng.uniform(0, self._pause_s)):
            board = rng.choice(self._boards)
            self._recorder.read(name, board.key, rng.choice(board.seasons), rng.choice(MODES))


def random_event(rng: random.Random, event_id: str, member: str) -> ScoreEvent:
    """An event within the first days, of a value that is rarely zero or negative."""
    return ScoreEvent(
        event_id=event_id,
        member=member,
        value=rng.choice((0, -3, *range(1, 30))),
        occurred_at=FIRST_DAY + timedelta(seconds=rng.randrange(3 * 86_400)),
    )

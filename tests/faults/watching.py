"""A writer and readers that go on while a test does harm, and the proof that no answer lied.

The only writer commits one transaction after another, so the truth is a row of states, and every
answer must be one of them: not an empty board, not half a transaction, nothing made up. Which
states an answer may be follows from what was asked for and from what it says of itself; see
`Watching.lies`. PostgreSQL must be well all the time: who may be answered from it is answered.
"""

import random
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any

import psycopg

import truerank
from tests.projection.pipeline import Pipeline, wait_until
from truerank.errors import ProjectionUnavailable
from truerank.model import Consistency, Page, ScoreEvent, Source, Token
from truerank.settings import Settings

BUSY, STILL = "busy", "still"  # boards of two groups: written all the time, and never
_MEMBERS = [f"m{number:02}" for number in range(12)]
_STILL_SCORE = 5
_ROWS_PER_TRANSACTION = 3
_PAUSE_S = 0.01
_ENOUGH = 15  # transactions, and answers
_MAX_AGE_MS = 200
_WAIT_MS = 200
# The clocks of a machine are steered: two of them may differ by this over a test.
_SLEW_S = 0.005
# Shorter than the deadline of a call to Redis, so that one that hangs in a transaction is seen.
_HELD_OPEN_MAX = timedelta(milliseconds=250)
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class Way(StrEnum):
    """How a reader asks."""

    ANY = "any"
    PROJECTION = "projection only"
    AT_LEAST = "at least the last write"
    MAX_AGE = "at most so old"
    MONOTONIC = "never older than the last answer"
    AUTHORITATIVE = "authoritative"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the busy board held after one transaction; at first, nothing."""

    scores: Mapping[str, int]
    token: Token | None
    began_at: float
    acknowledged_at: float
    acknowledged_on: datetime


_NOTHING = State(
    scores={}, token=None, began_at=0.0, acknowledged_at=0.0, acknowledged_on=_LONG_AGO
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One question and what was told, by the clock that all threads share."""

    board: str
    way: Way
    least: int  # the state that was asked for
    after: "Answer | None"  # the one that it may not be older than
    asked_at: float
    told_at: float
    page: Page | None
    error: Exception | None

    @property
    def source(self) -> Source | None:
        """Where it came from; None where it was an error."""
        return self.page.freshness.source if self.page else None

    @property
    def scores(self) -> dict[str, int]:
        """What it shows; nothing where it was an error."""
        return {e.member: int(e.score) for e in self.page.entries} if self.page else {}


@dataclass(slots=True)
class Watching:
    """What was written, what was answered, and what PostgreSQL was seen to hold open."""

    states: list[State] = field(default_factory=lambda: [_NOTHING])
    still: list[State] = field(default_factory=lambda: [_NOTHING])
    answers: list[Answer] = field(default_factory=list)
    held_open: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _failures: list[Exception] = field(default_factory=list)

    def asked_since(self, since: float, way: Way = Way.ANY) -> list[Answer]:
        """The answers to what was asked in one way after a moment."""
        return [a for a in list(self.answers) if a.asked_at >= since and a.way is way]

    def await_answer(self, since: float) -> None:
        """Wait until somebody who takes any source was answered."""
        wait_until(lambda: self.asked_since(since), "an answer")

    def await_answer_from(self, source: Source, since: float) -> None:
        """Wait until somebody who takes any source was answered about both boards from this one."""
        wait_until(
            lambda: (
                {answer.board for answer in self.asked_since(since) if answer.source is source}
                == {BUSY, STILL}
            ),
            f"answers from the {source}",
        )

    def await_traffic(self, since: float) -> None:
        """Wait until a good deal was written and asked after a moment."""
        wait_until(
            lambda: (
                self.states[-_ENOUGH:][0].began_at >= since
                and len(self.asked_since(since)) >= _ENOUGH
            ),
            "transactions and answers",
        )

    def await_whole(self, since: float) -> float:
        """Wait until Redis answers about both boards, with all that was acknowledged before.

        The age must be known, too. Returns the seconds from `since` until then.
        """
        newest = [state for state in self.states if state.acknowledged_at <= since][-1].scores

        def first(board: str) -> Answer | None:
            return next(
                (
                    answer
                    for answer in self.asked_since(since)
                    if answer.page is not None
                    and answer.board == board
                    and answer.source is Source.PROJECTION
                    and answer.page.freshness.staleness_ms is not None
                    and (
                        board == STILL
                        or all(answer.scores.get(m, 0) >= score for m, score in newest.items())
                    )
                ),
                None,
            )

        wholes = [
            wait_until(partial(first, board), f"a whole answer of Redis about {board}")
            for board in (BUSY, STILL)
        ]
        return float(max(answer.told_at for answer in wholes) - since)

    def slowest_s(self, since: float) -> float:
        """The longest that anybody who takes any source waited for an answer."""
        return max(answer.told_at - answer.asked_at for answer in self.asked_since(since))

    def ask(self, client: truerank.Truerank, board: str, way: Way) -> Answer:
        """Ask once, and let the answer be judged with the others."""
        least, token = len(self.states) - 1, self.states[-1].token
        assert token is not None, "something was written before anybody asks"
        consistency = {
            Way.AT_LEAST: Consistency.at_least(token, wait_ms=_WAIT_MS),
            Way.MAX_AGE: Consistency.max_age(_MAX_AGE_MS),
            Way.AUTHORITATIVE: Consistency.authoritative(),
        }.get(way, Consistency.any())
        after = None
        if way is Way.MONOTONIC:
            before = [answer for answer in list(self.answers) if answer.way is way and answer.page]
            after = before[-1] if before else None
            seen = after.page.freshness.token if after and after.page else None
            consistency = Consistency.monotonic_after(seen, wait_ms=_WAIT_MS)
        source = Source.PROJECTION if way is Way.PROJECTION else None
        asked_at = time.monotonic()
        told: Page | Exception
        try:
            told = client.top(board, limit=100, consistency=consistency, source=source)
        except Exception as exc:  # noqa: BLE001 - judged with the answers
            told = exc
        answer = Answer(
            board=board,
            way=way,
            least=least if way is Way.AT_LEAST else 0,
            after=after,
            asked_at=asked_at,
            told_at=time.monotonic(),
            page=told if isinstance(told, Page) else None,
            error=told if isinstance(told, Exception) else None,
        )
        self.answers.append(answer)
        return answer

    def lies(self, conn: psycopg.Connection[Any]) -> list[str]:
        """Every answer that its question, its own words, or what was written contradict.

        - Everybody is answered, but who takes Redis only: that may be told that it can't.
        - An answer is one state; a `partial` one may mix states from that of its tick on.
        - It shows what was asked for: the last write; all that was acknowledged before the
          question, or so long before it; no less than the answer before.
        - It shows what it says: all that is visible in the tick it names, all that was
          acknowledged before `projected_through`, or `staleness_ms` before the question.
        """
        ticks = sorted({a.page.freshness.tick or 0 for a in self.answers if a.page})
        state_of_tick = dict(
            conn.execute(
                """WITH state AS MATERIALIZED (
                       SELECT DISTINCT split_part(e.event_text, ' ', 1)::integer AS n, e.xid
                       FROM truerank.event AS e JOIN truerank.board AS b ON b.id = e.board_id
                       WHERE b.key = %s)
                   SELECT t.id, max(s.n) FROM truerank.tick AS t
                   JOIN state AS s ON pg_visible_in_snapshot(s.xid, t.snapshot)
                   WHERE t.id = ANY (%s) GROUP BY t.id""",
                (BUSY, ticks),
            ).fetchall()
        )
        truths = {BUSY: _Truth.of(self.states, state_of_tick), STILL: _Truth.of(self.still, {})}
        return [
            f"{lie}: {replace(answer, after=None)}"
            for answer in self.answers
            for lie in _lies(answer, truths[answer.board])
        ]

    def run(self, turn: Callable[[], object]) -> threading.Thread:
        """Do something again and again in a thread, until `end`."""

        def repeat() -> None:
            try:
                while not self._stop.wait(_PAUSE_S):
                    turn()
            except Exception as exc:  # noqa: BLE001 - raised again by `end`
                self._failures.append(exc)

        thread = threading.Thread(target=repeat, name="watching")
        thread.start()
        return thread

    def end(self, threads: list[threading.Thread]) -> None:
        """Stop what runs; raise what one of them failed with."""
        self._stop.set()
        for thread in threads:
            thread.join()
        for failure in self._failures:
            raise failure

    def write(self, conn: psycopg.Connection[Any], dice: random.Random) -> None:
        """Commit one transaction to the busy board, and the first time all members."""
        number, scores = len(self.states), self.states[-1].scores
        members = dice.sample(_MEMBERS, _ROWS_PER_TRANSACTION) if scores else _MEMBERS
        values = {member: dice.randint(1, 9) for member in members}
        self.states.append(_submit(conn, BUSY, f"{number}", values, scores))

    def write_still(self, conn: psycopg.Connection[Any]) -> None:
        """Commit the only transaction to the board that is still."""
        values = dict.fromkeys(_MEMBERS, _STILL_SCORE)
        self.still.append(_submit(conn, STILL, "1", values, {}))

    def look(self, conn: psycopg.Connection[Any]) -> None:
        """Note which of our connections sit in a transaction for longer than a call may last."""
        rows = conn.execute(
            """SELECT application_name, state, query FROM pg_stat_activity
               WHERE datname = current_database() AND application_name LIKE 'truerank%%'
                 AND state LIKE 'idle in transaction%%'
                 AND clock_timestamp() - state_change > %s""",
            (_HELD_OPEN_MAX,),
        ).fetchall()
        self.held_open += [str(row) for row in rows]


def make_boards(pipeline: Pipeline) -> None:
    """Make both boards, in the first two groups."""
    for group, board in enumerate((BUSY, STILL)):
        pipeline.client.create_board(board, seasons=["all"])
        pipeline.conn.execute("UPDATE truerank.board SET grp = %s WHERE key = %s", (group, board))


@contextmanager
def watching(settings: Settings) -> Iterator[Watching]:
    """Write and read in the block; at its end, fail with every lie and every open transaction.

    Both boards must be there, and empty; see `make_boards`.

    Args:
        settings: of the readers; the writer knows nothing of Redis.
    """
    watch = Watching()
    assert settings.database_url is not None
    with ExitStack() as stack:
        writing, looking = (
            stack.enter_context(psycopg.connect(settings.database_url, autocommit=True))
            for _ in range(2)
        )
        client = stack.enter_context(truerank.Truerank(settings))
        dice = random.Random(7)
        watch.write_still(writing)
        watch.write(writing, dice)
        asking = [(BUSY, way) for way in Way] + [(STILL, Way.ANY)]
        threads = [
            watch.run(lambda: watch.write(writing, dice)),
            watch.run(lambda: watch.look(looking)),
            *(watch.run(partial(watch.ask, client, board, way)) for board, way in asking),
        ]
        try:
            yield watch
        finally:
            watch.end(threads)
        assert watch.held_open == [], "no transaction stays open while Redis is called"
        assert {(answer.board, answer.way) for answer in watch.answers} >= set(asking)
        lies = watch.lies(looking)
        assert not lies, f"{len(lies)} of {len(watch.answers)} answers lie:\n" + "\n".join(lies[:9])


def _submit(
    conn: psycopg.Connection[Any],
    board: str,
    name: str,
    values: Mapping[str, int],
    before: Mapping[str, int],
) -> State:
    """Commit one transaction whose events begin with its name; what the board holds then."""
    events = [
        ScoreEvent(event_id=f"{name} {member}", member=member, value=value)
        for member, value in values.items()
    ]
    began_at = time.monotonic()
    receipts = truerank.submit_scores(conn, board, events)
    acknowledged_at, acknowledged_on = time.monotonic(), datetime.now(UTC)
    scores = {**before, **{m: before.get(m, 0) + value for m, value in values.items()}}
    for event, receipt in zip(events, receipts, strict=True):
        assert [now.score for now in receipt.standings] == [str(scores[event.member])]
    return State(
        scores=scores,
        token=receipts[0].token,
        began_at=began_at,
        acknowledged_at=acknowledged_at,
        acknowledged_on=acknowledged_on,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Truth:
    """The states of one board, and which of them are visible, begun or acknowledged when."""

    states: list[State]
    state_of_tick: Mapping[int, int]
    state_of_scores: Mapping[frozenset[tuple[str, int]], int]
    began_at: list[float]
    acknowledged_at: list[float]
    acknowledged_on: list[datetime]

    @classmethod
    def of(cls, states: list[State], state_of_tick: Mapping[int, int]) -> "_Truth":
        return cls(
            states=states,
            state_of_tick=state_of_tick,
            state_of_scores={frozenset(s.scores.items()): i for i, s in enumerate(states)},
            began_at=[state.began_at for state in states],
            acknowledged_at=[state.acknowledged_at for state in states],
            acknowledged_on=[state.acknowledged_on for state in states],
        )

    def shown(self, answer: Answer) -> int | None:
        """The state that an answer is, if it is one."""
        return self.state_of_scores.get(frozenset(answer.scores.items()))

    def acknowledged(self, moment: float) -> int:
        """The last state acknowledged before a moment; -1 where there is none."""
        return bisect_left(self.acknowledged_at, moment) - 1

    def asked_for(self, answer: Answer) -> int:
        """The first state that an answer may be, by what was asked."""
        age_s = {Way.AUTHORITATIVE: 0.0, Way.MAX_AGE: _MAX_AGE_MS / 1000}.get(answer.way)
        promised = [answer.least]
        if age_s is not None:
            promised.append(self.acknowledged(answer.asked_at - age_s - _SLEW_S))
        if answer.after is not None:
            # Of one in parts only what it claims is sure.
            promised += [self.claimed(answer.after), self.shown(answer.after) or 0]
        return max(promised)

    def claimed(self, answer: Answer) -> int:
        """The first state that an answer may be, by its own words."""
        assert answer.page is not None
        freshness = answer.page.freshness
        promised = [0]
        if freshness.tick is not None:
            promised.append(self.state_of_tick.get(freshness.tick, 0))
        if freshness.projected_through is not None:
            promised.append(bisect_left(self.acknowledged_on, freshness.projected_through) - 1)
        if freshness.staleness_ms is not None:
            age_s = freshness.staleness_ms / 1000
            promised.append(self.acknowledged(answer.asked_at - age_s - _SLEW_S))
        return max(promised)


def _lies(answer: Answer, truth: _Truth) -> Iterator[str]:
    if answer.page is None:
        if answer.way is not Way.PROJECTION or not isinstance(answer.error, ProjectionUnavailable):
            yield "not answered"
        return
    shown = answer.scores
    ordered = sorted(shown.values(), reverse=True)
    if [(int(e.score), e.rank) for e in answer.page.entries] != [
        (score, 1 + sum(other > score for other in ordered)) for score in ordered
    ]:
        yield "out of order"
    if answer.page.total != len(shown):
        yield "the total is another"
    least = max(truth.asked_for(answer), truth.claimed(answer))
    most = bisect_right(truth.began_at, answer.told_at) - 1
    if answer.page.freshness.partial:
        possible = truth.states[least : most + 1]
        for member, score in shown.items():
            if score not in {state.scores.get(member) for state in possible}:
                yield f"{member} never had this score from state {least} on"
        return
    found = truth.shown(answer)
    if found is None:
        yield "invented"
    elif not least <= found <= most:
        yield f"state {found} where it must be one of {least} to {most}"

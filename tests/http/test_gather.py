"""Group commit: one transaction for those who wait together, an answer of its own for each."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import httpx
import psycopg
import pytest

import truerank
from truerank.command.submit import submit_scores
from truerank.errors import Busy, Contended, InvalidInput
from truerank.gather import Gather
from truerank.model import Outcome, Receipt, ScoreEvent

SCORES = "/v1/boards/points/scores"


@pytest.fixture
async def client(served: str, tr: truerank.Truerank) -> AsyncIterator[httpx.AsyncClient]:
    tr.create_board("points", seasons=("all",))
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=served, timeout=30.0, limits=limits) as client:
        yield client


def event(number: int, *, member: str | None = None, value: int = 1) -> dict[str, object]:
    return {"event_id": f"e{number}", "member": member or f"m{number}", "value": value}


async def test_requests_that_wait_together_share_transactions_and_keep_their_answers(
    client: httpx.AsyncClient, database_url: str
) -> None:
    answers = await asyncio.gather(
        *(client.post(SCORES, json=event(i, value=i + 1)) for i in range(200))
    )

    assert {answer.status_code for answer in answers} == {200}
    for i, answer in enumerate(answers):
        receipt = answer.json()
        assert (receipt["event_id"], receipt["standings"][0]["score"]) == (f"e{i}", str(i + 1))
    with psycopg.connect(database_url) as conn:
        row = conn.execute("SELECT count(*), count(DISTINCT xid) FROM truerank.event").fetchone()
    assert row is not None
    events, transactions = row
    assert events == 200
    assert transactions < 100


async def test_the_same_id_sent_together_is_applied_once_and_conflicts_once(
    client: httpx.AsyncClient,
) -> None:
    same = [client.post(SCORES, json=event(1)) for _ in range(10)]
    other = [client.post(SCORES, json=event(1, value=2))]
    beside = [client.post(SCORES, json=event(i)) for i in range(2, 30)]

    answers = await asyncio.gather(*same, *other, *beside)

    outcomes = [answer.json().get("outcome") for answer in answers]
    applied = outcomes[:11].count("applied")
    assert applied == 1
    winner = outcomes.index("applied")
    if winner < 10:
        assert outcomes[:10].count("duplicate") == 9
        assert (answers[10].status_code, answers[10].json()["code"]) == (409, "event_conflict")
    else:
        assert [answer.status_code for answer in answers[:10]] == [409] * 10
    assert outcomes[11:] == ["applied"] * 28


async def test_parallel_writers_of_one_member_lose_nothing(
    client: httpx.AsyncClient, tr: truerank.Truerank
) -> None:
    answers = await asyncio.gather(
        *(client.post(SCORES, json=event(i, member="hot")) for i in range(100))
    )

    statuses = [answer.status_code for answer in answers]
    assert set(statuses) <= {200, 503}
    place = tr.place("points", "hot", source="database").places[0]
    assert place.score == str(statuses.count(200))


async def test_a_transaction_that_holds_one_member_does_not_stop_the_rest(
    client: httpx.AsyncClient, database_url: str
) -> None:
    await client.post(SCORES, json=event(1, member="held"))
    with psycopg.connect(database_url) as idle:
        submit_scores(idle, "points", [ScoreEvent(event_id="x", member="held", value=1)])
        held = asyncio.create_task(client.post(SCORES, json=event(2, member="held")))
        others = await asyncio.gather(*(client.post(SCORES, json=event(i)) for i in range(3, 40)))
        refused = await held
        assert {answer.status_code for answer in others} == {200}
        assert refused.status_code == 503
        assert int(refused.headers["retry-after"]) > 0
        assert refused.json()["code"] == "contended"
        both = await asyncio.gather(
            client.post(SCORES, json=event(50, member="held")),
            client.post(SCORES, json=event(51, member="free")),
        )
        assert [answer.status_code for answer in both] == [503, 200]
        idle.commit()

    again = await client.post(SCORES, json=event(2, member="held"))

    assert (again.status_code, again.json()["standings"][0]["score"]) == (200, "3")


async def test_malformed_and_refused_requests_do_not_touch_those_beside_them(
    client: httpx.AsyncClient,
) -> None:
    good = [client.post(SCORES, json=event(i)) for i in range(20)]
    bad = [
        client.post(SCORES, json=event(100) | {"member": "a\0"}),
        client.post(SCORES, json=event(101) | {"ties": [1]}),
        client.post(SCORES, json=event(102) | {"value": "0.5"}),
        client.post(SCORES, json={"events": [event(103), event(104) | {"ties": [1]}]}),
    ]

    answers = await asyncio.gather(*good, *bad)

    assert [answer.status_code for answer in answers] == [200] * 20 + [422] * 4


class Recorder:
    """Stands in for the SQL call where a test decides when it returns."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.go = asyncio.Event()
        self.poison: dict[str, Exception] = {}

    async def __call__(
        self,
        board: str,
        events: Sequence[ScoreEvent],
        expected_season: str | None,
        expected_operator: str | None,
    ) -> list[Receipt]:
        del board, expected_season, expected_operator
        ids = [event.event_id for event in events]
        self.calls.append(ids)
        await self.go.wait()
        for event_id in ids:
            if event_id in self.poison:
                raise self.poison[event_id]
        return [Receipt(event_id=event_id, outcome=Outcome.APPLIED) for event_id in ids]


def score(event_id: str) -> ScoreEvent:
    return ScoreEvent(event_id=event_id, member=f"member of {event_id}", value=1)


async def started(gather: Gather, *event_ids: str) -> list[asyncio.Task[list[Receipt]]]:
    tasks = [asyncio.create_task(gather.submit("b", [score(event_id)])) for event_id in event_ids]
    await asyncio.sleep(0)
    return tasks


async def test_a_cancelled_request_takes_nobody_elses_answer_along() -> None:
    call = Recorder()
    gather = Gather(call)
    first = await started(gather, "a")
    second = await started(gather, "b")
    waiting = await started(gather, "c", "d", "e")
    await asyncio.sleep(0)
    assert len(call.calls) == 2

    waiting[1].cancel()
    first[0].cancel()
    await asyncio.sleep(0)
    call.go.set()

    receipts = [await task for task in (*second, waiting[0], waiting[2])]
    assert [r[0].event_id for r in receipts] == ["b", "c", "e"]
    assert sorted(map(tuple, call.calls)) == [("a",), ("b",), ("c", "e")]


async def test_only_two_batches_are_on_their_way_and_the_next_takes_all_that_waits() -> None:
    call = Recorder()
    gather = Gather(call)
    tasks = await started(gather, "a")
    tasks += await started(gather, "b")
    for event_id in "cdefg":
        tasks += await started(gather, event_id)

    assert call.calls == [["a"], ["b"]]
    call.go.set()
    await asyncio.gather(*tasks)
    assert call.calls == [["a"], ["b"], ["c", "d", "e", "f", "g"]]


async def test_a_batch_that_fails_is_halved_until_the_one_at_fault_stands_alone() -> None:
    call = Recorder()
    call.poison["d"] = InvalidInput("bad")
    call.go.set()
    gather = Gather(call)

    results = await asyncio.gather(*await started(gather, *"abcdefgh"), return_exceptions=True)

    assert [isinstance(result, InvalidInput) for result in results] == [
        c == "d" for c in "abcdefgh"
    ]


async def test_one_that_is_waited_for_is_tried_in_a_lane_of_its_own_and_then_given_back() -> None:
    call = Recorder()
    call.poison["b"] = Contended("held")
    call.go.set()
    gather = Gather(call)

    results = await asyncio.gather(*await started(gather, *"abc"), return_exceptions=True)

    assert isinstance(results[1], Contended)
    assert call.calls.count(["b"]) > 2
    before = len(call.calls)
    del call.poison["b"]
    await asyncio.gather(*await started(gather, "a", "b", "c"))
    assert sorted(call.calls[before:]) == [["a", "c"], ["b"]]


async def test_a_full_queue_refuses_and_a_long_wait_ends() -> None:
    call = Recorder()
    gather = Gather(call, waiting_events_max=2, wait_s_max=0.05)
    tasks = await started(gather, "a")
    tasks += await started(gather, "b")
    tasks += await started(gather, "c", "d", "e")

    results = await asyncio.gather(*tasks, return_exceptions=True)

    assert all(isinstance(result, Busy) for result in results)
    assert "wait already" in str(results[4])
    assert "no answer" in str(results[0])
    call.go.set()
    await gather.close(timeout_s=5)
    assert call.calls == [["a"], ["b"]]

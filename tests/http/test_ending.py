"""Tasks that are told to end do so, though a library loses the telling."""

import asyncio

from truerank.ending import ended


async def _deaf(times: int) -> str:
    """Loses some cancellations, as `asyncio.wait_for` does now and then."""
    for _ in range(times):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue
    await asyncio.sleep(60)
    return "never"


async def _quick() -> str:
    return "done"


async def _failing() -> None:
    raise ValueError("of the task")


def test_a_task_that_loses_a_cancellation_is_ended_all_the_same() -> None:
    async def scene() -> list[object]:
        tasks = [asyncio.create_task(task) for task in (_deaf(0), _deaf(2), _quick(), _failing())]
        await asyncio.sleep(0)
        async with asyncio.timeout(30):
            return await ended(*tasks)

    heard, lost, quick, failed = asyncio.run(scene())

    assert isinstance(heard, asyncio.CancelledError)
    assert isinstance(lost, asyncio.CancelledError)
    assert quick == "done"
    assert isinstance(failed, ValueError)


def test_nothing_to_end_ends_at_once() -> None:
    assert asyncio.run(ended()) == []

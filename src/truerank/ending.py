"""End tasks that must end."""

import asyncio
from typing import Any

_AGAIN_S = 0.05


async def ended(*tasks: asyncio.Task[Any]) -> list[Any]:
    """Cancel tasks until they have ended; what each returned, or the exception that ended it.

    Once may not do: before Python 3.12 `asyncio.wait_for`, which Redis' client waits by, loses a
    cancellation that comes at the moment when what it waits for is done.
    """
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=_AGAIN_S)
    return await asyncio.gather(*tasks, return_exceptions=True)

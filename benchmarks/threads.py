"""A client process with several connections: a thread for each, and one begin for all."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from benchmarks.load import Submitted
from benchmarks.processes import Pipe, ready

# Called in a thread once its connection is open: waits until all may begin.
AwaitBegin: TypeAlias = Callable[[], None]
Client: TypeAlias = Callable[[AwaitBegin], Submitted]


def run_together(pipe: Pipe, clients: Sequence[Client]) -> None:
    """Called in a child process: run each client in a thread, and hand back their sum.

    A client that fails before it waits lets all the others fail at their wait.
    """
    gate = threading.Barrier(len(clients) + 1)

    def run(client: Client) -> Submitted:
        try:
            return client(await_begin)
        except BaseException:
            gate.abort()
            raise

    def await_begin() -> None:
        gate.wait()
        gate.wait()

    with ThreadPoolExecutor(len(clients)) as pool:
        threads = [pool.submit(run, client) for client in clients]
        gate.wait()
        ready(pipe)
        gate.wait()
        done = [thread.result() for thread in threads]
    pipe.send(
        Submitted(
            began=min(part.began for part in done),
            ended=max(part.ended for part in done),
            events=sum(part.events for part in done),
            total=sum(part.total for part in done),
        )
    )

"""Batches of runs on the workers of a Dask cluster.

Dask deals out the tasks, repeats those of a worker that died, and gives up a task that has ended
several workers. Here a bounded number of tasks is in flight, and their results are written as they
come, so that the memory of the client does not grow with the sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import Any

from distributed import Client, Future, KilledWorker, wait

from airmend._airmend import Error
from airmend._scenario import Request
from airmend._sweep import Range, run_batch

#: Tasks in flight for each thread of the workers: one runs, the next one is there.
_PER_THREAD = 2
#: Tasks in flight at most.
_MOST_TASKS = 4_096
#: How long to wait for another worker when all are gone, in seconds.
_PATIENCE = 60.0
#: How long to wait for the result of a task that is done, whose worker may have gone with it.
_FETCH = 10.0
#: How often workers are counted, in seconds.
_INTERVAL = 1.0

#: Takes the runs of a batch, their rows as a Parquet file, and the seconds that they took.
Keep = Callable[[Range, bytes, float], None]


def run(client: Client, request: Request, batches: Iterable[Range], keep: Keep) -> None:
    """Does all batches on the workers of `client`."""
    if not isinstance(client, Client) or client.asynchronous:
        raise Error("client must be a dask.distributed.Client that is not asynchronous")
    if not _threads(client):
        raise Error("the client has no workers: start some, and client.wait_for_workers(1)")
    killed = _run(client, request, iter(batches), keep, _MOST_TASKS)
    # Whoever shared a worker with the runs that ended it is without blame: each alone.
    killed = _run(client, request, iter(killed), keep, 1) if killed else []
    if killed:
        which = ", ".join(f"{start} to {stop - 1}" for start, stop in sorted(killed))
        raise Error(
            f"runs {which} of the sweep ended every worker that tried them: they may need more "
            "memory than a worker has; all others are done"
        )


def _run(
    client: Client, request: Request, batches: Iterator[Range], keep: Keep, most: int
) -> list[Range]:
    """Does these batches, with at most so many tasks in flight; returns those that ended their
    workers.
    """
    pending: dict[Future[Any], Range] = {}
    killed: list[Range] = []
    crew = _Crew(client)
    try:
        while True:
            room = min(crew.room(), most)
            while len(pending) < room and (batch := next(batches, None)):
                future = client.submit(run_batch, request, batch, 1, pure=False)
                pending[future] = batch
            if not pending:
                return killed
            for future in _done(pending):
                try:
                    result = _result(future, pending[future])
                except TimeoutError:
                    # Dask does it again, if there are workers.
                    continue
                batch = pending.pop(future)
                if result is None:
                    killed.append(batch)
                else:
                    keep(batch, *result)
    finally:
        client.cancel(list(pending))


def _done(pending: Iterable[Future[Any]]) -> set[Future[Any]]:
    """Those that have ended, after a second at the latest."""
    try:
        done: set[Future[Any]] = wait(list(pending), _INTERVAL, "FIRST_COMPLETED").done
    except TimeoutError:
        return set()
    return done


def _result(future: Future[Any], batch: Range) -> tuple[bytes, float] | None:
    """What `run_batch` returned; none if it ended its workers. Raises `TimeoutError` if nobody has
    it any more.
    """
    try:
        result: tuple[bytes, float] = future.result(timeout=_FETCH)
    except KilledWorker:
        return None
    except TimeoutError:
        raise
    except Exception as error:
        start, stop = batch
        which = f"runs {start} to {stop - 1} of the sweep failed on a worker"
        raise Error(f"{which}: {_sentence(error)}") from error
    return result


def _sentence(error: Exception) -> str:
    if isinstance(error, Error):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return f"it has no module {error.name}; workers need the same packages as the client"
    return f"{type(error).__name__}: {error}"


class _Crew:
    """The workers, which come and go."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._threads = 0
        self._asked = -_INTERVAL
        self._seen = monotonic()

    def room(self) -> int:
        """Tasks that may be in flight. Raises `Error` when all workers have long been gone."""
        now = monotonic()
        if now - self._asked >= _INTERVAL:
            self._asked = now
            self._threads = _threads(self._client)
            if self._threads:
                self._seen = now
        if now - self._seen > _PATIENCE:
            raise Error(
                f"all workers have been gone for {_PATIENCE:.0f} s: the same sweep goes on from "
                "here when there are others"
            )
        return max(1, _PER_THREAD * self._threads)


def _threads(client: Any) -> int:
    return sum(client.nthreads().values())

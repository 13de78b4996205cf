"""The runs that a directory of results lacks, in batches of about a second, here or on Dask."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from airmend import _frame
from airmend._airmend import VERSION, Error
from airmend._dataset import Dataset, encoded
from airmend._scenario import Request

if TYPE_CHECKING:
    from distributed import Client

#: How long a batch should take.
_SECONDS = 1.0
#: Runs of a batch at most: so many rows are held in memory at a time.
_MOST_RUNS = 10_000
#: Batches whose time counts.
_RECENT = 32

#: The numbers of runs from the first to before the second.
Range = tuple[int, int]


def add_missing(request: Request, dataset: Dataset, client: Client | None, jobs: int) -> None:
    """Does all runs of `request` that `dataset` lacks."""
    scenario = request.load()
    total = scenario.points * scenario.runs
    missing = dataset.missing(total)
    batches = Batches(missing)
    bar = _bar(total, total - sum(stop - start for start, stop in missing))

    def keep(batch: Range, part: bytes, seconds: float) -> None:
        start, stop = batch
        dataset.write(start, stop, part)
        batches.took(stop - start, seconds)
        bar.update(stop - start)

    with bar:
        if client is not None:
            # Dask is needed by those only who use it.
            try:
                from airmend import _cluster
            except ImportError:
                raise Error("a client needs Dask: pip install 'airmend[dask]'") from None
            _cluster.run(client, request, batches, keep)
        else:
            for batch in batches:
                keep(batch, *run_batch(request, batch, jobs))


def run_batch(request: Request, batch: Range, jobs: int) -> tuple[bytes, float]:
    """Does these runs; returns their rows as a Parquet file, and the seconds that it took."""
    if request.version != VERSION:
        raise Error(f"airmend {VERSION} is there, but the sweep is by airmend {request.version}")
    began = perf_counter()
    part = encoded(_frame.table(request.load().run_rounds(*batch, jobs)))
    return part, perf_counter() - began


class Batches:
    """Cuts ranges of runs into batches of about a second, by what the latest batches took."""

    def __init__(self, ranges: Iterable[Range]) -> None:
        self._left = deque(ranges)
        self._recent = deque[tuple[int, float]](maxlen=_RECENT)
        self._runs = 1

    def __iter__(self) -> Iterator[Range]:
        while self._left:
            start, stop = self._left.popleft()
            end = min(start + self._runs, stop)
            if end < stop:
                self._left.appendleft((end, stop))
            yield start, end

    def took(self, runs: int, seconds: float) -> None:
        """Notes the time of a batch."""
        self._recent.append((runs, seconds))
        rate = sum(runs for runs, _ in self._recent) / max(sum(s for _, s in self._recent), 1e-9)
        # A few quick runs do not show that a thousand are quick.
        limit = min(_MOST_RUNS, 8 * max(runs for runs, _ in self._recent))
        self._runs = max(1, min(int(rate * _SECONDS), limit))


class Bar(Protocol):
    """A progress bar."""

    def update(self, runs: int) -> Any: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, *error: object) -> Any: ...


class _NoBar:
    def update(self, runs: int) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...


def _bar(total: int, done: int) -> Bar:
    """On a terminal a bar in runs, if tqdm is there."""
    if not sys.stderr.isatty():
        return _NoBar()
    try:
        from tqdm import tqdm
    except ImportError:
        return _NoBar()
    bar: Bar = tqdm(total=total, initial=done, unit=" runs", file=sys.stderr)
    return bar

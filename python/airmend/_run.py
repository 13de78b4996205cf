"""The functions of the package."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal, SupportsIndex, overload

import pandas as pd

from airmend import _frame, _sweep
from airmend._airmend import Error
from airmend._dataset import Dataset
from airmend._frame import Rows
from airmend._scenario import Request, ScenarioSource, request

if TYPE_CHECKING:
    from distributed import Client


def simulate(
    scenario: ScenarioSource, *, rows: Rows = "runs", jobs: int = 0, **overrides: object
) -> pd.DataFrame:
    """Runs a scenario, at every point of its own sweep, and returns a row for each run.

    `scenario` is a file, or the text of one (more than one line). `overrides` are settings of any
    keys: `runs=3`, `links__air__rate="2mbit"` with two underscores for each dot, or
    `**{"links.air.rate": "2mbit"}`. `jobs` are the threads, one for each core if 0.

    `rows` may be "summaries" (one for each point, with the scenario's measures) or "trace" (packets
    of the first flow). Columns are the fields of the JSON lines, with their names and units; those
    of an object are separate columns such as `sender.timeouts`.

    Raises `Error` if the scenario cannot be read or run. Ctrl-C ends the runs.
    """
    _check_jobs(jobs)
    return _simulated(request(scenario, _with_trace(overrides, rows)), rows, jobs)


def lines(
    scenario: ScenarioSource,
    over: Mapping[str, object] | None = None,
    *,
    jobs: int = 0,
    **overrides: object,
) -> bytes:
    """The results as JSON lines, the very bytes that `airmend sim run --json` prints.

    `over` is that of `sweep`, the other arguments are those of `simulate`.
    """
    _check_jobs(jobs)
    return request(scenario, overrides, over).load().run(jobs)[0]


@overload
def sweep(
    scenario: ScenarioSource,
    over: Mapping[str, object] | None = None,
    runs: int | None = None,
    *,
    rows: Rows = "runs",
    jobs: int = 0,
    client: Client | None = None,
    to: None = None,
    **overrides: object,
) -> pd.DataFrame: ...


@overload
def sweep(
    scenario: ScenarioSource,
    over: Mapping[str, object] | None = None,
    runs: int | None = None,
    *,
    rows: Literal["runs"] = "runs",
    jobs: int = 0,
    client: Client | None = None,
    to: str | os.PathLike[str],
    **overrides: object,
) -> Path: ...


def sweep(
    scenario: ScenarioSource,
    over: Mapping[str, object] | None = None,
    runs: int | None = None,
    *,
    rows: Rows = "runs",
    jobs: int = 0,
    client: Client | None = None,
    to: str | os.PathLike[str] | None = None,
    **overrides: object,
) -> pd.DataFrame | Path:
    """Runs a scenario at all combinations of settings; the last one varies fastest.

    `over` has for each setting its values. A setting is the name of a sweep of the scenario, or
    any key: `{"links.air.errors.loss": ["1%", "5%"]}` gives the column `links_air_errors_loss`.
    Instead of a list it may have cases by name, each with keys and their values:
    `{"scheme": {"reno": {}, "sack": {"hosts.fh.sack": True, "hosts.mh.sack": True}}}`. Sweeps of
    the scenario that are not among them stay. `runs` are the runs of each point. `rows`, `jobs` and
    `overrides` are those of `simulate`.

    With `client`, a `dask.distributed.Client`, Dask's workers do the runs, in tasks of about a
    second; with `to` results go to a directory of Parquet files, whose path is returned and which
    `read` reads. What is there is not run again, and more `runs` are added to it. Without `to` the
    data frame has all runs.

    Raises `Error` as `simulate` does, and if `to` has another sweep, the client has no workers, or
    runs end their workers again and again.
    """
    wanted = request(scenario, _with_trace(overrides, rows), over, runs)
    _check_jobs(jobs)
    if client is None and to is None:
        return _simulated(wanted, rows, jobs)
    if rows != "runs":
        raise Error(f'rows="{rows}" is for sweeps without `to` and `client`')
    if to is not None:
        return _streamed(wanted, Path(to), client, jobs).directory
    with TemporaryDirectory(prefix="airmend-") as directory:
        frame: pd.DataFrame = _streamed(wanted, Path(directory), client, jobs).read().to_pandas()
        return frame


def read(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    rows: Rows = "runs",
    columns: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Reads results: JSON lines of any airmend command, or the directory `to` of a sweep.

    `files` is a path, a pattern such as `"out/**/*.jsonl"`, or several of them. `rows` is that of
    `simulate`; with `columns` only these are returned, in this order.

    Raises `Error` for a file that there is not or that cannot be read, and for an unknown column.
    """
    found = _frame.files_of(files)
    if len(found) == 1 and found[0].is_dir():
        if rows != "runs":
            raise Error(f'{found[0]} has no {rows}: the directory of a sweep has rows="runs"')
        table: pd.DataFrame = Dataset.open(found[0]).read(columns).to_pandas()
        return table
    frame = _frame.read_lines(found, rows)
    if columns is not None:
        _frame.check_columns(frame.columns, columns)
        frame = frame[list(columns)]
    return frame


def _check_jobs(jobs: int) -> None:
    if not isinstance(jobs, SupportsIndex) or index(jobs) not in range(1025):
        raise Error(f"jobs is a number of threads up to 1024, or 0 for all cores, not {jobs!r}")


def _with_trace(overrides: Mapping[str, object], rows: Rows) -> Mapping[str, object]:
    return {**overrides, "trace": True} if rows == "trace" else overrides


def _simulated(wanted: Request, rows: Rows, jobs: int) -> pd.DataFrame:
    results, trace = wanted.load().run(jobs)
    return _frame.frame(gzip.decompress(trace) if rows == "trace" else results, rows)


def _streamed(wanted: Request, directory: Path, client: Client | None, jobs: int) -> Dataset:
    dataset = Dataset.make(directory, wanted)
    _sweep.add_missing(wanted, dataset, client, jobs)
    return dataset

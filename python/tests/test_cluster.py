"""Sweeps on a Dask cluster of processes on this machine."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import dask
import pandas as pd
import pytest
from conftest import TINY
from dask.distributed import Client, LocalCluster, Scheduler, Worker, WorkerPlugin

import airmend
from airmend import _cluster, _sweep

RUNS = 600


@pytest.fixture(scope="module")
def local() -> pd.DataFrame:
    return airmend.sweep(TINY, runs=RUNS)


@pytest.fixture
def client() -> Iterator[Client]:
    # A task that ended two workers is given up.
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_its_table_is_the_local_one(client: Client, local: pd.DataFrame, tmp_path: Path) -> None:
    directory = airmend.sweep(TINY, runs=RUNS, client=client, to=tmp_path / "sweep")
    pd.testing.assert_frame_equal(airmend.read(directory), local)
    # Without a directory the same comes in memory; and there is nothing left to do in the other.
    pd.testing.assert_frame_equal(airmend.sweep(TINY, runs=20, client=client), local_of(20))
    parts = sorted(directory.iterdir())
    airmend.sweep(TINY, runs=RUNS, client=client, to=directory)
    assert sorted(directory.iterdir()) == parts


def local_of(runs: int) -> pd.DataFrame:
    return airmend.sweep(TINY, runs=runs)


def test_it_survives_the_death_of_a_worker(
    client: Client, local: pd.DataFrame, tmp_path: Path
) -> None:
    pids = list(client.run(os.getpid).values())
    sweep = threading.Thread(
        target=airmend.sweep, args=(TINY,), kwargs={"runs": RUNS, "client": client, "to": tmp_path}
    )
    sweep.start()
    wait_for_part(tmp_path)
    assert sweep.is_alive(), "the sweep was over before a worker could die"
    os.kill(pids[0], signal.SIGKILL)
    sweep.join(timeout=120)
    assert not sweep.is_alive()
    pd.testing.assert_frame_equal(airmend.read(tmp_path), local)


def wait_for_part(directory: Path) -> None:
    deadline = monotonic() + 60
    while not list(directory.glob("part-*.parquet")) and monotonic() < deadline:
        sleep(0.01)


class Poison(WorkerPlugin):
    """Run number 70 ends its worker."""

    def setup(self, worker: Worker) -> None:
        run_batch = _sweep.run_batch

        def poisoned(request: object, batch: tuple[int, int], jobs: int) -> tuple[bytes, float]:
            if batch[0] <= 70 < batch[1]:
                os._exit(1)
            return run_batch(request, batch, jobs)  # type: ignore[arg-type]

        poisoned.__module__, poisoned.__qualname__ = run_batch.__module__, "run_batch"
        _sweep.run_batch = poisoned


def test_runs_that_end_their_workers_are_named(client: Client, tmp_path: Path) -> None:
    client.register_plugin(Poison())
    with pytest.raises(airmend.Error, match="ended every worker that tried them") as error:
        airmend.sweep(TINY, runs=100, client=client, to=tmp_path)
    first, last = map(int, str(error.value).split()[1:4:2])
    assert first <= 70 <= last
    assert "\n" not in str(error.value)
    # Only these are missing, and a sweep without the poison adds them.
    assert len(airmend.read(tmp_path)) == 400 - (last - first + 1)
    airmend.sweep(TINY, runs=100, to=tmp_path)
    pd.testing.assert_frame_equal(airmend.read(tmp_path), local_of(100))


def test_a_client_without_workers_gets_a_sentence(tmp_path: Path) -> None:
    with (
        LocalCluster(n_workers=0, dashboard_address=None, silence_logs=50) as cluster,
        Client(cluster) as client,
        pytest.raises(airmend.Error, match="the client has no workers: start some"),
    ):
        airmend.sweep(TINY, client=client, to=tmp_path)
    with pytest.raises(airmend.Error, match="client must be a dask.distributed.Client"):
        airmend.sweep(TINY, client="tcp://127.0.0.1:8786", to=tmp_path)  # type: ignore[arg-type]


def test_workers_that_are_all_gone_get_a_sentence(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_cluster, "_PATIENCE", 2.0)
    monkeypatch.setattr(_cluster, "_FETCH", 1.0)

    def leave() -> None:
        wait_for_part(tmp_path)
        client.run_on_scheduler(close_workers)

    leaving = threading.Thread(target=leave)
    leaving.start()
    with pytest.raises(airmend.Error, match="all workers have been gone for 2 s"):
        airmend.sweep(TINY, runs=100_000, client=client, to=tmp_path)
    leaving.join()
    assert 0 < len(airmend.read(tmp_path, columns=["seed"])) < 400_000


async def close_workers(dask_scheduler: Scheduler) -> None:
    for address in list(dask_scheduler.workers):
        await dask_scheduler.remove_worker(address, stimulus_id="test", expected=True)


def test_what_fails_on_a_worker_gets_a_sentence(client: Client, tmp_path: Path) -> None:
    client.run(lambda: setattr(_sweep, "VERSION", "0.0.1"))
    says = "failed on a worker: airmend 0.0.1 is there, but the sweep is by airmend"
    with pytest.raises(airmend.Error, match=says):
        airmend.sweep(TINY, client=client, to=tmp_path)

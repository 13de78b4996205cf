"""Sweeps into a directory of Parquet files."""

import os
import pickle
import re
import subprocess
import sys
import termios
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from conftest import TINY

import airmend
from airmend import _dataset, _frame, _run, _scenario, _sweep
from airmend._sweep import Batches


def ranges(directory: Path) -> list[tuple[int, ...]]:
    names = sorted(file.stem for file in directory.glob("part-*.parquet"))
    return [tuple(map(int, name.split("-")[1:])) for name in names]


def test_its_table_is_that_in_memory(tmp_path: Path) -> None:
    over = {"loss": [0, "5%"], "links.air.delay": ["1ms", "9ms"]}
    directory = airmend.sweep(TINY, over, runs=50, to=tmp_path / "sweep")
    assert len(ranges(directory)) > 1
    pd.testing.assert_frame_equal(airmend.read(directory), airmend.sweep(TINY, over, runs=50))
    columns = ["goodput_bps", "agent"]
    assert list(airmend.read(directory, columns=columns).columns) == columns
    with pytest.raises(airmend.Error, match="unknown column `goodput`"):
        airmend.read(directory, columns=["goodput"])


def test_delays_of_each_flow_are_kept(tmp_path: Path) -> None:
    packets = {"size": 1000, "interval": "10ms", "count": 5}
    # Bulk transfers have no delays, so some parts have nulls alone.
    of = "flows.transfer"
    cases = {"bulk": {f"{of}.bytes": "50kB"}, "packets": {f"{of}.packets": packets}}
    over = {"traffic": cases}
    directory = airmend.sweep(BARE, over, runs=2, to=tmp_path, flows__transfer__count=2)
    frame = airmend.read(directory)
    for traffic, delays in zip(frame["traffic"], frame["flow_delay_ms"], strict=True):
        assert [delay is None for delay in delays] == [traffic == "bulk"] * 2
    here = airmend.sweep(BARE, over, runs=2, flows__transfer__count=2)
    assert frame["flow_goodput_bps"].map(list).equals(here["flow_goodput_bps"].map(list))


BARE = TINY.replace('bytes = "50kB"', "")


def test_trace_files_travel_with_the_request(tmp_path: Path) -> None:
    file, trace = tmp_path / "tiny.toml", tmp_path / "hop.csv"
    file.write_text(TINY)
    trace.write_text("time_s,delay_ms\n0,4\n1,40\n2,4\n")
    wanted = _scenario.request(file, {"links.air.trace": "hop.csv"})
    here = airmend.simulate(file, links__air__trace="hop.csv")
    varied = airmend.sweep(file, to=tmp_path / "varied", links__air__trace="hop.csv")
    pd.testing.assert_frame_equal(airmend.read(varied), here)
    assert here["goodput_bps"].mean() < airmend.simulate(file)["goodput_bps"].mean()
    # Another trace of the same name makes another sweep.
    trace.write_text("time_s,delay_ms\n0,4\n1,50\n2,4\n")
    with pytest.raises(airmend.Error, match="has another sweep"):
        airmend.sweep(file, to=varied, links__air__trace="hop.csv")
    # A worker has neither of the files.
    file.unlink()
    trace.unlink()
    _scenario._latest.clear()
    there = pickle.loads(pickle.dumps(wanted)).load().run()[0]
    assert _frame.frame(there, "runs").equals(here)
    with pytest.raises(airmend.Error, match="hop.csv is beside no file"):
        airmend.simulate(TINY, links__air__trace="hop.csv")


def test_what_is_there_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    airmend.sweep(TINY, runs=5, to=tmp_path)
    lost = sorted(tmp_path.glob("part-*.parquet"))[1]
    kept = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir() if file != lost}
    hole = tuple(map(int, lost.stem.split("-")[1:]))
    lost.unlink()
    done = []
    run_batch = _sweep.run_batch
    monkeypatch.setattr(
        _sweep, "run_batch", lambda *args: done.append(args[1]) or run_batch(*args)
    )
    # More runs are added behind the hole that is filled.
    airmend.sweep(TINY, runs=8, to=tmp_path)
    numbers = sorted(number for batch in done for number in range(*batch))
    assert numbers == [*range(*hole), *range(5 * 4, 8 * 4)]
    assert all(file.stat().st_mtime_ns == at for file, at in kept.items())
    pd.testing.assert_frame_equal(airmend.read(tmp_path), airmend.sweep(TINY, runs=8))
    airmend.sweep(TINY, runs=8, to=tmp_path)
    assert sorted(n for batch in done for n in range(*batch)) == numbers


@pytest.mark.parametrize(
    ("scenario", "overrides"),
    [(TINY, {"seed": 2}), (TINY + "\n# changed\n", {}), (TINY, {"over": {"loss": [0]}})],
)
def test_another_sweep_is_refused(
    scenario: str, overrides: dict[str, object], tmp_path: Path
) -> None:
    airmend.sweep(TINY, runs=1, to=tmp_path)
    with pytest.raises(airmend.Error, match="has another sweep, of scenario by airmend"):
        airmend.sweep(scenario, runs=1, to=tmp_path, **overrides)  # type: ignore[call-overload]


def test_a_directory_of_other_files_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(airmend.Error, match="holds no sweep"):
        airmend.sweep(TINY, to=tmp_path)
    directory = airmend.sweep(TINY, runs=1, to=tmp_path / "sweep")
    part = next(directory.glob("part-*.parquet"))
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(airmend.Error, match="is damaged; remove it and run the sweep again"):
        airmend.read(directory)
    (directory / "sweep.json").write_text("{")
    with pytest.raises(airmend.Error, match="sweep.json is damaged"):
        airmend.sweep(TINY, runs=1, to=directory)
    with pytest.raises(airmend.Error, match="cannot be written: Not a directory"):
        airmend.sweep(TINY, runs=1, to=tmp_path / "file" / "below")


def test_parts_that_overlap_are_read_once(tmp_path: Path) -> None:
    airmend.sweep(TINY, runs=4, to=tmp_path)
    whole = airmend.read(tmp_path)
    dataset = _run.Dataset.open(tmp_path)
    start, stop = ranges(tmp_path)[0][0], ranges(tmp_path)[1][1]
    lines = airmend.Scenario("scenario", TINY, [("runs", "4")]).run_rounds(start, stop)
    dataset.write(start, stop, _sweep.encoded(_sweep._frame.table(lines)))
    pd.testing.assert_frame_equal(airmend.read(tmp_path), whole)


def test_rows_of_a_file_are_in_rounds(tmp_path: Path) -> None:
    airmend.sweep(TINY, runs=2, to=tmp_path)
    rows = pd.concat(pq.read_table(file).to_pandas() for file in sorted(tmp_path.glob("part*")))
    assert list(rows["seed"]) == [1] * 4 + [2] * 4


@pytest.mark.parametrize("is_terminal", [True, False])
def test_progress_is_shown_on_a_terminal_only(is_terminal: bool, tmp_path: Path) -> None:
    code = "import airmend, sys; airmend.sweep(sys.argv[1], to=sys.argv[2])"
    command = [sys.executable, "-c", code, TINY, str(tmp_path / "sweep")]
    shows, end = os.openpty() if is_terminal else os.pipe()
    if is_terminal:
        termios.tcsetwinsize(end, (24, 80))
    subprocess.run(command, stderr=end, check=True)
    os.write(end, b"end")
    shown = b""
    while not shown.endswith(b"end"):
        shown += os.read(shows, 10_000)
    assert b"12/12" in shown if is_terminal else shown == b"end"


def test_batches_take_about_a_second() -> None:
    batches = Batches([(0, 10), (20, 100_000)])
    sizes, end = [], 0
    for start, stop in batches:
        assert start in (end, 20)
        sizes.append(stop - start)
        end = stop
        batches.took(stop - start, (stop - start) * 0.004)
        if len(sizes) == 12:
            break
    # From one run on, by a factor of 8 at most, to what takes a second; never across a hole.
    assert sizes[:3] == [1, 8, 1] and sizes[-1] == 250
    slow = Batches([(0, 10)])
    slow.took(1, 5.0)
    assert next(iter(slow)) == (0, 1)


def test_a_program_of_another_version_is_refused() -> None:
    request = _run.Request("scenario", TINY, (), version="0.0.1")
    with pytest.raises(airmend.Error, match="but the sweep is by airmend 0.0.1"):
        _sweep.run_batch(request, (0, 1), 1)


def test_a_store_that_says_what_is_not_so_is_refused(tmp_path: Path) -> None:
    def changed(name: str) -> Path:
        store = tmp_path / name
        airmend.sweep(TINY, runs=2, to=store)
        return store

    for number, claimed in enumerate(["0-99999999999", "0-" + "9" * 100, "0-9"]):
        store = changed(f"claims-{number}")
        part = next(store.glob("part-*"))
        part.rename(store / f"part-{claimed}.parquet")
        with pytest.raises(airmend.Error, match="is damaged; remove it"):
            airmend.read(store)
        with pytest.raises(airmend.Error, match="is damaged; remove it"):
            airmend.sweep(TINY, runs=2, to=store)
    manifest = changed("points") / "sweep.json"
    good = manifest.read_text()
    points = ["0", "-1", "1e999", '"8"', "null", "[8]", "true", "9" * 30, "[" * 100_000]
    for wrong in points:
        manifest.write_text(re.sub(r'"points": \d+', f'"points": {wrong}', good))
        with pytest.raises(airmend.Error, match="is damaged: choose another directory"):
            airmend.read(manifest.parent)


def test_a_sweep_that_was_ended_at_its_first_file_begins_again(tmp_path: Path) -> None:
    (tmp_path / ".sweep.json.123").write_text('{"air')
    assert len(airmend.read(airmend.sweep(TINY, runs=2, to=tmp_path))) == 8


def test_threads_share_a_directory(tmp_path: Path) -> None:
    # Each finds that the same runs are missing, and that there is no manifest yet.
    wanted = _scenario.request(TINY, {}, runs=2)
    several = threading.Barrier(8)

    def write(_: int) -> None:
        several.wait()
        for _ in range(50):
            _dataset.Dataset.make(tmp_path, wanted).write(0, 1, b"the same")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(8)))
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "part-000000000-000000001.parquet",
        "sweep.json",
    ]


def test_values_that_no_file_can_hold_are_refused(tmp_path: Path) -> None:
    own: list[object] = []
    own.append(own)
    for value, why in [
        (10**5_000, "is too large"),
        (2**63, "is too large"),
        (own, "holds itself"),
        ({"a": own}, "holds itself"),
        ("\ud800", "is no character"),
    ]:
        with pytest.raises(airmend.Error, match=why):
            airmend.simulate(TINY, seed=value)
    for key in ["a." * 100_000 + "a", "\ud800"]:
        with pytest.raises(airmend.Error):
            airmend.simulate(TINY, **{key: 1})
        with pytest.raises(airmend.Error):
            airmend.sweep(TINY, {key: [1]})
    for jobs in [pd.NA, None, 1.0, -1]:
        with pytest.raises(airmend.Error, match="jobs is a number"):
            airmend.simulate(TINY, jobs=jobs)
    with pytest.raises(airmend.Error, match="recursion"):
        airmend.sweep(TINY + "x = " + "[" * 100_000, {"agent": ["plain"]})
    with pytest.raises(airmend.Error, match="at most 16 MiB"):
        airmend.simulate("/dev/zero")
    lines = tmp_path / "lines.jsonl"
    for line in ['{"b": "x", "a": ' + "[" * 20_000 + "]" * 20_000 + "}", '{"b": "x", "a": 1e400}']:
        lines.write_text('{"b": 1, "a": ' + "9" * 40 + "}\n" + line + "\n")
        try:
            airmend.read(lines)
        except airmend.Error as error:
            assert "no JSON object" in str(error)

"""The results are those of the command line."""

import itertools
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import EXPERIMENTS, TINY

import airmend


def command_line(program: str, file: Path, out: Path, overrides: Mapping[str, str]) -> bytes:
    flags = [f"--set={key}={value}" for key, value in overrides.items()]
    command = [program, "sim", "run", str(file), "--json", "--again", "--out", str(out), *flags]
    return subprocess.run(command, check=True, capture_output=True).stdout


@pytest.mark.parametrize(
    ("experiment", "overrides"),
    [
        ("snoop95/fig4", {"runs": "2", "flows.transfer.bytes": "200kB"}),
        ("snoop95/fig5", {"time_limit": "5s"}),
        ("tulip99/fig3a", {"runs": "1", "flows.file.packets.count": "100"}),
        ("lack/fig7-calibrated", {"runs": "1", "time_limit": "5s"}),
        ("snoop-opnet/downloads", {"runs": "2", "flows.file.bytes": "20000"}),
        ("modern/map", {"time_limit": "300ms"}),
        ("modern/traces", {"runs": "1", "time_limit": "4s"}),
    ],
)
def test_lines_are_those_of_the_command_line_byte_for_byte(
    experiment: str, overrides: dict[str, str], program: str, tmp_path: Path
) -> None:
    file = EXPERIMENTS / f"{experiment}.toml"
    printed = command_line(program, file, tmp_path, overrides)
    values = {key: int(v) if v.isdigit() else v for key, v in overrides.items()}
    assert airmend.lines(file, **values) == printed
    assert airmend.lines(file, jobs=1, **values) == printed
    # And what is read from its files is what a simulation here returns.
    written = tmp_path / f"{experiment}.jsonl"
    assert written.read_bytes() == printed
    for rows in ("runs", "summaries"):
        pd.testing.assert_frame_equal(
            airmend.simulate(file, rows=rows, **values), airmend.read(written, rows=rows)
        )


def test_traces_are_those_of_the_command_line(program: str, tmp_path: Path) -> None:
    file = EXPERIMENTS / "snoop95/fig5.toml"
    command_line(program, file, tmp_path, {"time_limit": "5s"})
    written = airmend.read(tmp_path / "**/*.trace.jsonl.gz", rows="trace")
    assert len(written) > 100
    here = airmend.simulate(file, rows="trace", time_limit="5s")
    pd.testing.assert_frame_equal(here, written)


def test_a_frame_has_a_row_for_each_run_and_the_lines_values(tiny: Path) -> None:
    frame = airmend.simulate(tiny)
    lines = [json.loads(line) for line in airmend.lines(tiny).splitlines()]
    runs = [line for line in lines if "summary" not in line]
    assert len(frame) == len(runs) == 2 * 2 * 3
    for name in ("agent", "seed", "loss", "goodput_bps", "completed", "wire_bytes_per_byte"):
        assert list(frame[name]) == [run[name] for run in runs], name
    assert list(frame["links.lost"]) == [run["links"]["lost"] for run in runs]
    assert frame["links.lost"].sum() > 0
    summaries = airmend.simulate(tiny, rows="summaries")
    assert list(summaries["goodput_mean_bps"]) == [
        line["goodput_mean_bps"] for line in lines if "summary" in line
    ]


def test_a_sweep_is_that_of_the_command_line(program: str, tiny: Path, tmp_path: Path) -> None:
    over = {"loss": [0.01, np.float64(0.05)], "links.air.rate": ("1mbit", "2mbit")}
    settings = {
        "sweep.loss.values": "[0.01, 0.05]",
        "sweep.links_air_rate.key": "links.air.rate",
        "sweep.links_air_rate.values": '["1mbit", "2mbit"]',
        "seed": "7",
        "runs": "2",
    }
    printed = command_line(program, tiny, tmp_path, settings)
    assert airmend.lines(tiny, over, seed=7, runs=2) == printed
    frame = airmend.sweep(tiny, over, runs=2, seed=7)
    assert len(frame) == 2 * 2 * 2 * 2
    assert list(frame["links_air_rate"].unique()) == ["1mbit", "2mbit"]
    assert set(frame["seed"]) == {7, 8}


def test_cases_have_names(tiny: Path) -> None:
    cases = {"as it is": {}, "slow": {"links.air.rate": "1mbit", "links": {"air.delay": "9ms"}}}
    frame = airmend.sweep(tiny, over={"case": cases}, runs=1)
    assert list(frame["case"].unique()) == ["as it is", "slow"]
    slow = frame[frame["case"] == "slow"]
    assert set(slow["rate_bps"]) == {1_000_000} and set(slow["air_delay_ms"]) == {9}


def test_a_scenario_may_be_text_and_settings_have_underscores_for_dots(tiny: Path) -> None:
    slow = airmend.simulate(TINY, links__air__rate="1mbit")
    assert set(slow["experiment"]) == {"scenario"} and set(slow["rate_bps"]) == {1_000_000}
    same = airmend.simulate(tiny, **{"links.air.rate": "1mbit"})
    pd.testing.assert_frame_equal(
        slow.drop(columns="experiment"), same.drop(columns="experiment")
    )
    table = airmend.simulate(TINY, **{"links.air": {**LINK, "rate": "1mbit"}})
    pd.testing.assert_frame_equal(slow, table)


LINK = {"between": ["bs", "mh"], "air": True, "delay": "4ms"}


def test_a_setting_of_numbers_and_words_is_text() -> None:
    frame = airmend.sweep(TINY, over={"links.air.queue": [10, "20ms"]}, runs=1)
    assert list(frame["links_air_queue"].unique()) == ["10", "20ms"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: airmend.simulate("none.toml"), "none.toml: it cannot be read: No such file"),
        (lambda: airmend.simulate("title = 1\n"), "scenario:1: found integer"),
        (lambda: airmend.simulate(TINY, links__air__rate=20), 'rate "20" must be a number with'),
        (lambda: airmend.sweep(TINY, {"links.air.rate": [2e6]}), 'rate "2000000" must be a number'),
        (lambda: airmend.simulate(TINY, hots=1), "hots=1: unknown key `hots`; did you mean"),
        (lambda: airmend.simulate(TINY, seed=None), "seed is NoneType; write a number"),
        (lambda: airmend.simulate(TINY, rows="run"), 'rows is "runs", "summaries" or "trace"'),
        (lambda: airmend.sweep(TINY, {"links.air.rat": ["1mbit"]}), "unknown key `rat`; did you"),
        (lambda: airmend.sweep(TINY, {"loss": 0.1}), "the values of loss must be a list"),
        (lambda: airmend.sweep(TINY, {"loss": []}), "`values` must be a list of at least one"),
        (lambda: airmend.sweep(TINY, runs=0), "`runs` must be at least 1"),
        (lambda: airmend.simulate(TINY, jobs=-1), "jobs is a number of threads up to 1024"),
        (lambda: airmend.read("none*.jsonl"), "none*.jsonl: there is no such file"),
        (lambda: airmend.read(__file__), "test_results.py: it holds a line that is no JSON"),
        (lambda: airmend.read(Path(__file__).parent), "holds no sweep: it has no sweep.json"),
    ],
)
def test_what_is_wrong_gets_a_sentence(call: object, sentence: str) -> None:
    with pytest.raises(airmend.Error) as error:
        call()  # type: ignore[operator]
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_nulls_in_lists_are_kept(tmp_path: Path) -> None:
    # Which runs are in one table depends on how long runs take: each order must do.
    bulk, mixed, packets = [None, None], [None, 3.5], [1.5, 2.5]
    for number, delays in enumerate(itertools.product((bulk, mixed, packets), repeat=3)):
        file = tmp_path / f"{number}.jsonl"
        file.write_text("\n".join(json.dumps({"flow_delay_ms": d}) for d in delays))
        read = [list(d) for d in airmend.read(file)["flow_delay_ms"]]
        assert [[None if pd.isna(d) else d for d in row] for row in read] == list(delays)


def test_an_unknown_column_gets_a_sentence(tiny: Path, tmp_path: Path) -> None:
    written = tmp_path / "tiny.jsonl"
    written.write_bytes(airmend.lines(tiny))
    frame = airmend.read(written, columns=["loss", "goodput_bps"])
    assert list(frame.columns) == ["loss", "goodput_bps"]
    with pytest.raises(airmend.Error, match="unknown column `goodput`; did you mean `goodput_bps`"):
        airmend.read(written, columns=["goodput"])

"""What a type checker knows of the package; mypy reads it, nothing runs it."""

from pathlib import Path
from typing import assert_type

import pandas as pd
from matplotlib.axes import Axes

import airmend
from airmend import plot

FILE = "scenario.toml"

assert_type(airmend.simulate(FILE, rows="summaries", jobs=2), pd.DataFrame)
assert_type(airmend.simulate(FILE, links__air__rate="2mbit"), pd.DataFrame)
assert_type(airmend.sweep(FILE, {"loss": [0.01, "5%"]}, runs=3), pd.DataFrame)
assert_type(airmend.sweep(FILE, to="out/sweep"), Path)
assert_type(airmend.read(["one.jsonl", Path("two.jsonl")], columns=["loss"]), pd.DataFrame)
assert_type(airmend.lines(Path(FILE), seed=2), bytes)
assert_type(airmend.Scenario(FILE, "", []).run_rounds(0, 1), bytes)
assert_type(plot.curve(airmend.read(FILE), "loss", by="agent"), Axes)
airmend.simulate(FILE, rows="run")  # type: ignore[arg-type]
airmend.sweep(FILE, to="out", rows="trace")  # type: ignore[call-overload]

"""airmend's simulator: TCP over lossy hops, as data frames.

    import airmend

    runs = airmend.simulate("experiments/snoop95/fig4.toml", runs=3)
    runs = airmend.sweep("experiments/modern/map.toml", over={"loss": ["1%", "5%"]}, runs=10)
    runs = airmend.read("out/sim/snoop95/*.jsonl")

The scenarios are those of `airmend sim run`, and so are the results, to the byte (`lines`).
Whatever is wrong raises `airmend.Error`, a `ValueError`, with one sentence.
"""

from airmend._airmend import VERSION as __version__
from airmend._airmend import Error, Scenario
from airmend._frame import Rows
from airmend._run import lines, read, simulate, sweep

__all__ = ["Error", "Rows", "Scenario", "__version__", "lines", "read", "simulate", "sweep"]

# Pickled exceptions and tracebacks name the package, not its native part.
Error.__module__ = "airmend"

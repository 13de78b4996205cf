"""What several tests share."""

import os
from pathlib import Path

import matplotlib
import pytest

matplotlib.use("agg")

ROOT = Path(__file__).parents[2]
EXPERIMENTS = ROOT / "experiments"

#: A run of about a millisecond.
TINY = """
title = "A short transfer"
runs = 3
time_limit = "1min"

[hosts]
fh = { profile = "bsd95" }
mh = { profile = "bsd95" }

[stations]
bs = { agent = "plain" }

[links.wired]
between = ["fh", "bs"]
rate = "10mbit"
delay = "1ms"

[links.air]
between = ["bs", "mh"]
air = true
rate = "2mbit"
delay = "4ms"

[flows.transfer]
from = "fh"
to = "mh"
bytes = "50kB"

[sweep]
agent = { key = "stations.bs.agent", values = ["plain", "snoop95"] }
loss = { key = "links.air.errors.loss", values = [0, "10%"] }
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    file = tmp_path / "tiny.toml"
    file.write_text(TINY)
    return file


@pytest.fixture(scope="session")
def program() -> str:
    """The command line of the same sources, which `cargo build -p airmend` makes."""
    program = Path(os.environ.get("AIRMEND", ROOT / "target/debug/airmend"))
    assert program.is_file(), f"{program} is not there: run cargo build -p airmend"
    return str(program)

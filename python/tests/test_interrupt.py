"""Simulations leave the interpreter to others, and Ctrl-C ends them."""

import signal
import subprocess
import sys
from pathlib import Path

#: A transfer that takes hours to simulate.
ENDLESS = """
import airmend, os, sys, threading
from conftest import TINY
def endless():
    airmend.simulate(TINY.replace('bytes = "50kB"', ''), time_limit="8000h")
"""


def started(code: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", ENDLESS + code],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_ctrl_c_ends_a_simulation() -> None:
    # The signal comes while it runs: another thread has seen it begin by then.
    code = "threading.Timer(1, lambda: print('runs', flush=True)).start(); endless()"
    with started(code) as process:
        assert process.stdout and process.stdout.readline() == "runs\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors, errors


def test_other_threads_run_meanwhile() -> None:
    code = """
simulation = threading.Thread(target=endless, daemon=True)
simulation.start()
for _ in range(20):
    threading.Event().wait(0.05)
print("free" if simulation.is_alive() else "over", flush=True)
os._exit(0)
"""
    with started(code) as process:
        out, errors = process.communicate(timeout=60)
    assert out == "free\n", errors

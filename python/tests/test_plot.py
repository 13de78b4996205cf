"""Figures have what the results have."""

from pathlib import Path

import pytest
from conftest import EXPERIMENTS

import airmend
from airmend import plot


def test_a_curve_has_means_deviations_and_bound(tiny: Path) -> None:
    runs = airmend.simulate(tiny)
    ax = plot.curve(runs, "loss", by="agent", bound=True)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "bound",
        "plain",
        "snoop95",
    ]
    line = ax.containers[0].lines[0]
    expected = runs[runs["agent"] == "plain"].groupby("loss")["goodput_bps"].mean() / 1e6
    assert list(line.get_ydata()) == pytest.approx(list(expected))
    assert list(line.get_xdata()) == [0, 0.1]
    assert ax.get_ylabel() == "goodput (Mb/s)" and ax.get_xscale() == "linear"
    wide = plot.curve(runs.assign(loss=runs["loss"] * 1e3 + 0.1), "loss")
    assert wide.get_xscale() == "log"


def test_summaries_bring_their_own_deviation(tiny: Path) -> None:
    summaries = airmend.simulate(tiny, rows="summaries", measure=["local_retransmits"])
    y = "measures_mean.local_retransmits"
    ax = plot.curve(summaries, "loss", y, "agent", sd="measures_sd.local_retransmits")
    assert ax.get_ylabel() == "local retransmits"


def test_traces_and_maps_are_drawn(tiny: Path) -> None:
    trace = airmend.simulate(EXPERIMENTS / "snoop95/fig5.toml", rows="trace", time_limit="5s")
    ax = plot.sequence(trace, by="agent")
    packets = sum(len(line.get_xdata()) for line in ax.get_lines())
    assert packets == trace["kind"].isin(["data", "local_retransmit", "sender_retransmit"]).sum()
    steps = plot.over_time(trace, "window", by="agent")
    assert len(steps.get_lines()) == trace["agent"].nunique()
    runs = airmend.simulate(tiny)
    ax = plot.heat(runs, "loss", "agent")
    assert [text.get_text() for text in ax.get_yticklabels()] == ["plain", "snoop95"]
    assert len(ax.texts) == 4


def test_what_is_not_there_gets_a_sentence(tiny: Path) -> None:
    runs = airmend.simulate(tiny)
    for draw in (
        lambda: plot.curve(runs, "los"),
        lambda: plot.curve(runs, "loss", by="los"),
        lambda: plot.heat(runs, "los", "agent"),
    ):
        with pytest.raises(airmend.Error, match="unknown column `los`; did you mean `loss`"):
            draw()
    with pytest.raises(airmend.Error, match="unknown column `seconds`|unknown column `offset`"):
        plot.sequence(runs)
    trace = airmend.simulate(tiny, rows="trace", runs=1)
    with pytest.raises(airmend.Error, match="the trace has no `windw`; it has"):
        plot.over_time(trace, "windw")

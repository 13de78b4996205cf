"""The figures that `airmend report` and `airmend map` draw, with matplotlib.

Each function draws into `ax`, by default a new figure, and returns it. An unknown column raises
`airmend.Error`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd

from airmend._airmend import Error
from airmend._frame import check_columns

try:
    from matplotlib import pyplot as plt
except ImportError:
    raise Error("airmend.plot needs matplotlib: pip install 'airmend[plot]'") from None

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Colours that the colour-blind can tell apart, and markers for those who see none.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_BOUND = "#8a8a8a"

#: Kinds of packets, and how each is drawn.
_PACKETS = {
    "data": ("first sends", ".", 3),
    "local_retransmit": ("local retransmissions", "D", 5),
    "sender_retransmit": ("sender's retransmissions", "x", 5),
}


def curve(
    results: pd.DataFrame,
    x: str,
    y: str = "goodput_bps",
    by: str | None = None,
    *,
    sd: str | None = None,
    bound: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Means of `y` against `x`, a line for each value of `by`.

    Bars are standard deviations, of the runs at a point, or from the column `sd` of summaries.
    `bound` adds what the links can carry (`bound_bps`). Goodput is in Mb/s. A range of more than a
    factor of 50 gets a logarithmic axis.
    """
    check_columns(results.columns, [x, y, by, sd, "bound_bps" if bound else None])
    ax = _axes(ax)
    scale, unit = _unit(y)
    for index, (label, series) in enumerate(_series(results, by)):
        points = series.groupby(x, sort=pd.api.types.is_numeric_dtype(series[x]))
        mean = points[y].mean() * scale
        deviation = (points[sd].mean() if sd else points[y].std()) * scale
        ax.errorbar(
            mean.index,
            mean,
            yerr=deviation.fillna(0.0),
            label=label,
            color=_COLORS[index % len(_COLORS)],
            marker=_MARKERS[index % len(_MARKERS)],
            capsize=3,
        )
    if bound:
        carried = results.groupby(x)["bound_bps"].mean() / 1e6
        ax.plot(carried.index, carried, "--", color=_BOUND, label="bound")
    _scale_of(ax, results[x])
    ax.set_xlabel(x.replace("_", " "))
    ax.set_ylabel(unit)
    ax.set_ylim(bottom=0)
    if by is not None or bound:
        ax.legend()
    return ax


def sequence(trace: pd.DataFrame, by: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Each packet as it leaves the first station: its place in the stream against time.

    `trace` is a frame with `rows="trace"`; each value of `by` gets a colour.
    """
    check_columns(trace.columns, ["seconds", "offset", "kind", by])
    ax = _axes(ax)
    for index, (label, packets) in enumerate(_series(trace, by)):
        color = _COLORS[index % len(_COLORS)]
        for kind, (words, marker, size) in _PACKETS.items():
            some = packets[packets["kind"] == kind]
            if some.empty:
                continue
            name = words if label is None else f"{label}: {words}"
            place = some["offset"] / 1e6
            ax.plot(some["seconds"], place, marker, color=color, markersize=size, label=name)
    ax.set_xlabel("time (s)")
    ax.set_ylabel("position in the stream (MB)")
    ax.legend()
    return ax


def over_time(
    trace: pd.DataFrame, kind: str, by: str | None = None, *, ax: Axes | None = None
) -> Axes:
    """What a trace has besides packets against time, in steps.

    `kind` is one of those in the column `kind`, such as "window" (bytes), "timeout" (ms), "cached"
    (packets) or "received" (bytes).
    """
    check_columns(trace.columns, ["seconds", "offset", "kind", by])
    known = sorted(set(trace["kind"]))
    if kind not in known:
        raise Error(f"the trace has no `{kind}`; it has {', '.join(known)}")
    ax = _axes(ax)
    for index, (label, some) in enumerate(_series(trace[trace["kind"] == kind], by)):
        color = _COLORS[index % len(_COLORS)]
        ax.step(some["seconds"], some["offset"], where="post", color=color, label=label)
    ax.set_xlabel("time (s)")
    ax.set_ylabel(kind)
    if by is not None:
        ax.legend()
    return ax


def heat(
    results: pd.DataFrame, x: str, y: str, value: str = "of_bound", *, ax: Axes | None = None
) -> Axes:
    """Means of `value` over two settings, as `airmend map` draws the share of the bound.

    Settings that are text, such as delays, keep the order of the results. For several agents call
    it once for the rows of each.
    """
    check_columns(results.columns, [x, y, value])
    ax = _axes(ax)
    cells = results.pivot_table(index=y, columns=x, values=value, aggfunc="mean", sort=False)
    share = value == "of_bound"
    picture = ax.pcolormesh(cells.to_numpy(), vmin=0, vmax=1 if share else None, cmap="viridis")
    for row in range(cells.shape[0]):
        for column in range(cells.shape[1]):
            number = float(cells.to_numpy()[row, column])
            text = f"{number:.0%}" if share else f"{number:.3g}"
            ax.text(column + 0.5, row + 0.5, text, ha="center", va="center", color="white")
    ax.set_xticks([at + 0.5 for at in range(cells.shape[1])], [str(c) for c in cells.columns])
    ax.set_yticks([at + 0.5 for at in range(cells.shape[0])], [str(i) for i in cells.index])
    ax.set_xlabel(x.replace("_", " "))
    ax.set_ylabel(y.replace("_", " "))
    ax.figure.colorbar(picture, ax=ax, label=value.replace("_", " "))
    return ax


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    return plt.subplots(figsize=(7, 4.5), layout="constrained")[1]


def _series(results: pd.DataFrame, by: str | None) -> Iterator[tuple[Any, pd.DataFrame]]:
    """Each value of `by` with its rows, in their order."""
    if by is None:
        yield None, results
        return
    groups: Iterator[tuple[Hashable, pd.DataFrame]] = iter(results.groupby(by, sort=False))
    for label, rows in groups:
        yield str(label), rows


def _unit(y: str) -> tuple[float, str]:
    words = y.rsplit(".", 1)[-1].replace("_", " ")
    if y.endswith("_bps"):
        return 1e-6, f"{words.removesuffix(' bps')} (Mb/s)"
    for ending, unit in ((" ms", "ms"), (" s", "s")):
        if words.endswith(ending):
            return 1.0, f"{words.removesuffix(ending)} ({unit})"
    return 1.0, words


def _scale_of(ax: Axes, values: pd.Series[Any]) -> None:
    if pd.api.types.is_numeric_dtype(values):
        least, most = values.min(), values.max()
        if least > 0 and most / least > 50:
            ax.set_xscale("log")

"""Handoff between base stations (docs/handoff.md)."""

from figures.source import quote, simulator, table
from figures.text import mbps

KEEP = (
    "scheme every=every_ms outage=outage_ms ber loss bps=goodput_mean_bps"
    " first=measures_mean.handoff_p50_ms timeouts=timeouts_mean"
)
OF_1995 = {
    "reno": "Reno",
    "reno, fast retransmission": "Reno, fast retransmission [CI94]",
    "split connection, 265 ms": "I-TCP, state of 265 ms",
    "split connection, 1400 ms": "I-TCP, state of 1400 ms",
    "snoop95, no handoff": "`snoop95` without handoff",
    "snoop95, state only": "`snoop95`, state without priming",
    "snoop95, multicast": "`snoop95`, primed",
}
OF_TODAY = {
    "cubic": "CUBIC",
    "cubic, fast retransmission": "CUBIC, fast retransmission",
    "plain, multicast": "`plain`, primed",
    "snoop, no handoff": "`snoop` without handoff",
    "snoop, state only": "`snoop`, state without priming",
    "snoop, multicast": "`snoop`, primed",
}

handoff95 = simulator(
    "handoff95",
    "airmend sim run experiments/snoop95/handoff.toml --json",
    keep=KEEP,
    agents="snoop95 handoff",
)
handoff = simulator(
    "handoff",
    "airmend sim run experiments/modern/handoff.toml --set runs=5 --json",
    keep=KEEP,
    agents="snoop handoff",
)


def figures(row):
    first = f"{row['first']:.0f} ms" if row["first"] else "–"
    return f"{mbps(row['bps'])}, {first}, {row['timeouts']:.3g}"


def table95(handoff, ber):
    yield ["scheme", "every 2 s: Mb/s, first, timeouts", "5 s", "30 s"]
    for scheme, name in OF_1995.items():
        rows = [handoff.one(scheme=scheme, every=every, ber=ber) for every in (2000, 5000, 30000)]
        yield [name, *map(figures, rows)]


@table("handoff95", handoff95)
def _(handoff):
    return table95(handoff, 0)


@table("handoff95-errors", handoff95)
def _(handoff):
    return table95(handoff, 1 / 2**18)


def table_of_today(handoff, loss):
    yield ["scheme", "no outage: Mb/s, first, timeouts", "100 ms", "1 s"]
    still = handoff.one(scheme="no handoffs", outage=0, loss=loss)
    yield ["CUBIC without handoffs", mbps(still["bps"]), "", ""]
    for scheme, name in OF_TODAY.items():
        rows = [handoff.one(scheme=scheme, outage=away, loss=loss) for away in (0, 100, 1000)]
        yield [name, *map(figures, rows)]


@table("handoff", handoff)
def _(handoff):
    return table_of_today(handoff, 0)


@table("handoff-loss", handoff)
def _(handoff):
    return table_of_today(handoff, 0.01)


@quote("handoff-outages", handoff)
def _(handoff):
    """What eleven outages of 1 s in 60 s leave of what a host has that stays."""
    still = handoff.one(scheme="no handoffs", outage=0, loss=0)["bps"]
    return f"{mbps(still * 49 / 60, 1)} of {mbps(still, 1)} Mb/s"

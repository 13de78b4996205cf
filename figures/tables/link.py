"""A link by TULIP (docs/link.md), and hops as traces (docs/scenarios.md)."""

from statistics import fmean

from figures.source import quote, simulator, table
from figures.text import mbps, percent

NECK = (
    "first=flow_goodput_bps.0 second=flow_goodput_bps.2 ping=flow_delay_ms.1.p50"
    " frames=each_link.neck_down.frames dropped=each_link.neck_down.dropped"
)
LOSSES = (0, 0.01, 0.05, 0.1)
SCHEMES = ("plain", "link", "link without rate control")

marked = simulator(
    "link-marked",
    "airmend sim run experiments/modern/link-marked.toml --json",
    keep=f"queue scheme loss {NECK}",
    agents="tulip arq",
    runs=True,
)
behind = simulator(
    "link-behind",
    "airmend sim run experiments/modern/link-behind.toml --json --set 'sweep.loss.values=[\"0%\"]'",
    keep=f"queue scheme loss {NECK}",
    agents="tulip arq",
    runs=True,
)


def neck(results, digits, **where):
    """Goodput of one flow or of both, the ping, and what the queue dropped."""
    first, ping, frames, dropped = (
        results.mean(column, **where) for column in ("first", "ping", "frames", "dropped")
    )
    # A flow that never began has no goodput.
    second = [bps for bps in results.each("second", **where) if bps is not None]
    goodput = f"{mbps(first, 1)} + {mbps(fmean(second), 1)}" if second else mbps(first)
    share = dropped / (dropped + frames)
    return f"{goodput}, {ping:.1f}, {percent(share, digits) if share >= 0.00005 else '0'}"


@table("link-marked", marked)
def _(marked):
    schemes = {
        "plain": "CUBIC alone",
        "link": "link alone",
        "link without ECN": "link with `ecn=off`",
        "link beside plain": "link and CUBIC",
        "link without ECN beside plain": "link with `ecn=off` and CUBIC",
    }
    yield ["queue, random losses", *schemes.values()]
    for queue in ("CoDel", "FQ-CoDel"):
        for loss in (0, 0.01, 0.05):
            where = {"queue": queue, "loss": loss}
            cells = [neck(marked, 2, scheme=scheme, **where) for scheme in schemes]
            yield [f"{queue}, {percent(loss)}", *cells]


@quote("link-marked-alone", marked)
def _(marked):
    """By how much goodput with ECN is off that without, alone and without random losses."""
    off = []
    for queue in ("CoDel", "FQ-CoDel"):
        with_, without = (
            marked.mean("first", scheme=scheme, queue=queue, loss=0)
            for scheme in ("link", "link without ECN")
        )
        off.append(abs(with_ / without - 1))
    return percent(max(off), 1)


@quote("link-behind-alone", behind)
def _(behind):
    """Of plain CUBIC's goodput, each alone at the FIFO."""
    shares = [
        behind.mean("first", scheme="link", queue=queue)
        / behind.mean("first", scheme="plain", queue=queue)
        for queue in ("0.5 BDP", "1 BDP", "2 BDP", "4 BDP")
    ]
    return f"{fmean(shares):.3f}"


@table("link-behind", behind)
def _(behind):
    schemes = {
        "plain": "CUBIC alone",
        "link": "link alone",
        "two plain": "two CUBIC flows",
        "link beside plain": "link and CUBIC",
        "two links": "two links",
    }
    yield ["FIFO", *schemes.values()]
    for queue in ("0.5 BDP", "1 BDP", "2 BDP", "4 BDP"):
        yield [queue, *(neck(behind, 2, scheme=scheme, queue=queue) for scheme in schemes)]


long = simulator(
    "link-long",
    "airmend sim run experiments/modern/link-long.toml --set runs=1 --json",
    keep="agent delay loss bps=flow_goodput_bps.0",
    agents="tulip arq",
    runs=True,
)


@table("link-long", long)
def _(long):
    yield ["delay by air", "plain", "without rate control", "with it"]
    for delay in ("2ms", "20ms", "50ms", "140ms", "300ms"):
        cells = [delay.replace("ms", " ms")]
        for agent, losses in {
            "plain": (0,),
            "tulip": LOSSES,
            "tulip, rate control": LOSSES,
        }.items():
            rows = [long.one(agent=agent, delay=delay, loss=loss) for loss in losses]
            cells.append(", ".join(mbps(row["bps"], 1) for row in rows))
        yield cells


start = simulator(
    "link-start",
    "airmend sim run experiments/modern/link-start.toml --json",
    keep="scheme path loss bps=flow_goodput_bps.0",
    agents="tulip arq",
    runs=True,
)


@table("link-start", start)
def _(start):
    yield ["round trip", *SCHEMES]
    for path in ("40 ms", "140 ms", "280 ms"):
        cells = [path]
        for scheme in SCHEMES:
            means = (start.mean("bps", scheme=scheme, path=path, loss=loss) for loss in LOSSES)
            cells.append(", ".join(mbps(mean, 1) for mean in means))
        yield cells


spikes = simulator(
    "link-spikes",
    "airmend sim run experiments/modern/link-spikes.toml --json",
    keep="scheme path bps=goodput_bps",
    agents="tulip arq",
    runs=True,
)


@table("link-spikes", spikes)
def _(spikes):
    yield ["", *SCHEMES]
    for path in ("constant", "spikes"):
        rows = (spikes.one(scheme=scheme, path=path) for scheme in SCHEMES)
        yield [path, *(mbps(row["bps"], 1) for row in rows)]


leo = simulator(
    "link-leo",
    "airmend sim run experiments/modern/link-leo.toml --json",
    keep="agent path bps=goodput_mean_bps stall=measures_mean.stall_ms",
    agents="tulip arq",
)


@table("link-leo", leo)
def _(leo):
    paths = {
        "steps": "steps",
        "jitter of 1 ms": "jitter of 1 ms",
        "jitter of 5 ms": "of 5 ms",
        "steps, jitter of 1 ms": "steps and 1 ms",
    }
    yield ["", *paths.values()]
    for agent, name in {"tulip": "without rate control", "tulip, rate control": "with it"}.items():
        constant = leo.one(agent=agent, path="constant")["bps"]
        rows = [leo.one(agent=agent, path=path) for path in paths]
        yield [name, *(f"{row['bps'] / constant:.3f}, {row['stall'] / 1000:.2f} s" for row in rows)]


traces = simulator(
    "traces",
    "airmend sim run experiments/modern/traces.toml --json",
    keep="hop agent bps=goodput_mean_bps of_bound",
    agents="snoop tulip arq",
)


@table("traces", traces)
def _(traces):
    hops = {
        "walk": "walk, 11.4 Mb/s at most",
        "satellite": "satellite, 63 Mb/s",
        "cell": "cell with 1 % of losses, 8.6 Mb/s",
    }
    yield ["hop", "plain", "`snoop`", "`tulip`"]
    for hop, name in hops.items():
        rows = [traces.one(hop=hop, agent=agent) for agent in ("plain", "snoop", "tulip")]
        yield [name, *(f"{mbps(row['bps'])}, {row['of_bound']:.2f}" for row in rows)]

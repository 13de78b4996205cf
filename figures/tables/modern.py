"""`snoop` beside other schemes, and where it ends (docs/modern-snoop.md)."""

from figures.source import simulator, table
from figures.text import mbps, percent

split = simulator(
    "split",
    "airmend sim run experiments/modern/split.toml --json",
    keep="path scheme loss bps=goodput_mean_bps",
    agents="snoop",
)
SPLIT = {
    "cubic": "CUBIC",
    "bbr": "BBR",
    "split, cubic": "split, CUBIC",
    "split, bbr by air": "split, BBR by air",
    "snoop": "`snoop`",
    "snoop, bbr": "`snoop`, BBR",
}


@table("split", split)
def _(split):
    yield ["air and loss", *SPLIT.values()]
    for path in ("20 Mb/s, 40 + 2 ms", "20 Mb/s, 20 + 20 ms", "100 Mb/s, 40 + 2 ms"):
        for loss in (0, 0.01, 0.05, 0.1):
            rows = [split.one(path=path, scheme=scheme, loss=loss) for scheme in SPLIT]
            name = percent(loss) if loss else f"{path}, 0 %"
            yield [name, *(mbps(row["bps"]) for row in rows)]


alternatives = simulator(
    "alternatives",
    "airmend sim run experiments/snoop95/alternatives.toml --set runs=3 --json",
    keep="scheme ber bps=goodput_mean_bps",
    agents="snoop95",
)
ALTERNATIVES = {
    "reno": "Reno",
    "sack": "SACK",
    "link, 10 retries, in order": "link, 10 retries, in order; ideal ACKs",
    "AIRMAIL, no code": "AIRMAIL, no code",
    "AIRMAIL": "AIRMAIL",
    "split connection": "split connection",
    "split, BBR by air": "split, BBR by air",
    "m-tcp": "M-TCP",
    "snoop95": "`snoop95`",
}


@table("alternatives", alternatives)
def _(alternatives):
    bits = (16, 64, 256, 1024)
    yield ["", *(f"1/{each}Ki" for each in bits)]
    for scheme, name in ALTERNATIVES.items():
        rows = [alternatives.one(scheme=scheme, ber=1 / each / 1024) for each in bits]
        yield [name, *(mbps(row["bps"]) for row in rows)]


away = simulator(
    "disconnection",
    "airmend sim run experiments/snoop95/disconnection.toml --set runs=3 --json",
    keep="scheme away=away_ms ber bps=goodput_mean_bps timeouts=timeouts_mean",
    agents="snoop95",
)
AWAY = {
    "reno": "Reno",
    "reno, fast retransmission": "Reno, fast retransmission",
    "split connection": "split",
    "m-tcp": "M-TCP",
    "snoop95": "`snoop95`",
    "AIRMAIL": "AIRMAIL",
}


@table("disconnection", away)
def _(away):
    yield ["away for", *AWAY.values()]
    for time, name in {100: "100 ms", 600: "600 ms", 2000: "2 s", 6000: "6 s"}.items():
        yield [name, *(mbps(away.one(scheme=each, away=time, ber=0)["bps"]) for each in AWAY)]
    timeouts = [away.one(scheme=each, away=6000, ber=0)["timeouts"] for each in AWAY]
    yield ["timeouts of the sender in a run at 6 s", *(f"{each:.0f}" for each in timeouts)]


long_air = simulator(
    "long-air",
    "airmend map experiments/modern/map.toml --x air_delay=20ms,40ms,60ms,100ms"
    " --y loss=0%,0.1%,1%,5% --rows links.air.queue=100ms,400ms"
    " --set 'sweep.wired_delay.values=[\"40ms\"]' --set runs=10"
    " --json --svg out/long-air.svg",
    keep="queue=links_air_queue air_delay loss agent of_bound",
    agents="snoop tulip arq",
    runs=True,
)


@table("long-air", long_air)
def _(long):
    losses = {"0%": "no loss", "0.1%": "0.1 %", "1%": "1 %", "5%": "5 %"}
    yield ["queue, air delay", *losses.values()]
    for queue in ("100ms", "400ms"):
        for delay in ("20ms", "40ms", "60ms", "100ms"):
            where = {"agent": "snoop", "queue": queue, "air_delay": delay}
            shares = [long.one(loss=loss, **where)["of_bound"] for loss in losses]
            name = f"{queue}, {delay}".replace("ms", " ms")
            yield [name, *(f"{100 * share:.0f}" for share in shares)]


# The picture of the README.
map_ = simulator(
    "map",
    "airmend map experiments/modern/map.toml --json --svg {picture}",
    keep="agent air_delay loss wired_delay of_bound",
    agents="snoop tulip arq",
    runs=True,
    picture="docs/img/map.svg",
)

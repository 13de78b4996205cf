"""Data that the mobile sends (docs/uplink.md)."""

from figures.source import quote, simulator, table
from figures.text import mbps, percent

SCHEMES = {
    "plain": "plain",
    "base station: timestamps": "`timestamps`",
    "base station: reports": "reports of `snoop95`",
    "mobile host": "mobile host",
    "mobile host, reports of the base station": "both ends",
    "tulip": "`tulip`",
    "lack": "`lack`",
}

uplink = simulator(
    "uplink",
    "airmend sim run experiments/modern/uplink.toml --set runs=2 --json",
    keep="scheme wired loss bps=goodput_mean_bps",
    agents="snoop snoop95 tulip lack arq",
)


@table("uplink", uplink)
def _(uplink):
    yield ["wire, loss", *SCHEMES.values()]
    for wired in ("8ms", "40ms", "98ms"):
        for loss in (0, 0.01, 0.05, 0.1):
            found = [uplink.one(scheme=scheme, wired=wired, loss=loss) for scheme in SCHEMES]
            where = f"{wired.removesuffix('ms')} ms, {percent(loss)}"
            yield [where, *(mbps(row["bps"]) for row in found)]


@quote("uplink-base-gain", uplink)
def _(uplink):
    """How many times as fast as plain TCP an upload is with `snoop` at the base station."""
    gains = [
        uplink.one(scheme="base station: timestamps", wired=wired, loss=loss)["bps"]
        / uplink.one(scheme="plain", wired=wired, loss=loss)["bps"]
        for wired in ("8ms", "40ms", "98ms")
        for loss in (0.01, 0.05, 0.1)
    ]
    return f"{min(gains):.1f} to {max(gains):.1f} times"


@quote("uplink-reports-gain", uplink)
def _(uplink):
    """How many times as fast as plain TCP an upload is with reports of `snoop95`, at 5 %."""
    gains = [
        uplink.one(scheme="base station: reports", wired=wired, loss=0.05)["bps"]
        / uplink.one(scheme="plain", wired=wired, loss=0.05)["bps"]
        for wired in ("8ms", "40ms", "98ms")
    ]
    return f"{min(gains):.1f} to {max(gains):.1f} times"

"""Experiments of the papers whose results stand in the ledger and in docs/uplink.md."""

from figures.source import simulator, table
from figures.text import mbps, percent

BERS = {"1/16Ki": 2**-14, "1/32Ki": 2**-15, "1/64Ki": 2**-16, "1/256Ki": 2**-18, "1/1024Ki": 2**-20}


def run(name, file, keep, agents, more=""):
    return simulator(name, f"airmend sim run experiments/{file}.toml{more} --json", keep=keep, agents=agents)


def spread(row):
    """Goodput in Mb/s with its deviation."""
    return f"{mbps(row['bps'])} ± {mbps(row['sd'])}"


uplink = run(
    "snoop95-uplink",
    "snoop95/uplink",
    "scheme wired ber bps=goodput_mean_bps sd=goodput_sd_bps timeouts=measures_mean.timeouts",
    "snoop95",
)


@table("snoop95-uplink", uplink)
def _(uplink):
    bers = ["1/64Ki", "1/256Ki", "1/1024Ki"]
    yield ["hosts", *(f"{wired}, {ber}" for wired in ("1 ms", "40 ms") for ber in bers)]
    for scheme in dict.fromkeys(row["scheme"] for row in uplink.rows()):
        cells = [
            uplink.one(scheme=scheme, wired=wired, ber=BERS[ber])
            for wired in ("1ms", "40ms")
            for ber in bers
        ]
        yield [scheme, *(f"{mbps(row['bps'], 3)}, {row['timeouts']:.0f}" for row in cells)]


sample = run(
    "snoop95-first-sample",
    "snoop95/first-sample",
    "reading ber bps=goodput_mean_bps sd=goodput_sd_bps",
    "snoop95",
)


@table("snoop95-first-sample", sample)
def _(sample):
    yield ["reading", *list(BERS)[:4]]
    for reading in dict.fromkeys(row["reading"] for row in sample.rows()):
        rows = (sample.one(reading=reading, ber=BERS[ber]) for ber in list(BERS)[:4])
        yield [reading, *map(spread, rows)]


overlap = run(
    "snoop95-overlap-wired",
    "snoop95/overlap-wired",
    "sender wired ber fast=measures_mean.fast_retransmits again=measures_mean.retransmits"
    " cached=measures_mean.resent_cached acked=measures_mean.repeated_acks both=measures_mean.resent_by_both"
    " timeouts=measures_mean.timeouts",
    "snoop95",
)


@table("snoop95-overlap-wired", overlap)
def _(overlap):
    head = ["sender", "resent", "cached", "acknowledged", "by both", "fast retransmissions", "timeouts"]
    yield head
    for sender in ("Reno", "Tahoe"):
        row = overlap.one(sender=sender, wired="1%", ber=BERS["1/64Ki"])
        cells = (row[name] for name in ("again", "cached", "acked", "both", "fast", "timeouts"))
        yield [sender, *(f"{cell:.1f}" for cell in cells)]


acks = run("lack-acks", "lack/local-acks", "scheme ber bytes=goodput_mean_bps", "lack arq")
queue = run("lack-queue-20", "lack/queue-20", "scheme ber bytes=goodput_mean_bps", "lack tulip arq")
several = run(
    "lack-connections-calibrated",
    "lack/connections-calibrated",
    "scheme connections bytes=goodput_mean_bps",
    "lack arq",
)


def packets(row):
    """Packets of 460 bytes in 200 s."""
    return f"{row['bytes'] * 200 / 8 / 460:,.0f}".replace(",", " ")


def by_error(results, schemes, bits):
    yield ["bit error rate", *schemes]
    for name, count in bits.items():
        yield [name, *(packets(results.one(scheme=scheme, ber=1 / count)) for scheme in schemes)]


@table("lack-acks", acks)
def _(acks):
    schemes = list(dict.fromkeys(row["scheme"] for row in acks.rows()))
    yield from by_error(acks, schemes, {"1/4k": 4_000, "1/10k": 10_000, "1/40k": 40_000})


@table("lack-queue-20", queue)
def _(queue):
    bits = {"1/4k": 4_000, "1/20k": 20_000, "1/100k": 100_000}
    yield from by_error(queue, ["tcp", "lack", "lack-flow", "tulip"], bits)


@table("lack-connections-calibrated", several)
def _(several):
    yield ["connections", "TCP", "`lack`", "ratio"]
    for count in (1, 2, 4, 6):
        tcp, lack = (several.one(scheme=scheme, connections=count) for scheme in ("tcp", "lack"))
        yield [str(count), packets(tcp), packets(lack), f"{lack['bytes'] / tcp['bytes']:.2f}"]


TULIP = ["no link layer", "snoop with fix", "snoop with fix, accelerated", "tulip"]
each = run("tulip99-acks", "tulip99/acks", "scheme acks ber bps=goodput_mean_bps", "tulip arq snoop95")
loss = run("tulip99-ack-loss", "tulip99/ack-loss", "scheme loss bps=goodput_mean_bps", "tulip arq snoop95")
hops = run("tulip99-two-hops", "tulip99/two-hops", "scheme ber bps=goodput_mean_bps", "tulip arq snoop95")


def kbps(row):
    return f"{row['bps'] / 1e3:.0f}"


@table("tulip99-acks", each)
def _(each):
    yield ["ACKs, bit error rate", *TULIP, "TULIP to Snoop"]
    for acks, words in ((2, "every second packet"), (1, "each packet")):
        for ber in (0, 15e-6):
            rows = [each.one(scheme=scheme, acks=acks, ber=ber) for scheme in TULIP]
            ratio = rows[3]["bps"] / rows[1]["bps"]
            yield [f"{words}, {ber * 1e6:g}e-6", *map(kbps, rows), f"{ratio:.3f}"]


@table("tulip99-ack-loss", loss)
def _(loss):
    yield ["ACKs lost", *TULIP]
    for share in (0, 0.1, 0.2, 0.4):
        yield [percent(share), *(kbps(loss.one(scheme=scheme, loss=share)) for scheme in TULIP)]


@table("tulip99-two-hops", hops)
def _(hops):
    schemes = ["no link layer", "snoop with fix", "tulip"]
    yield ["bit error rate", *schemes]
    for ber in (0, 5e-6, 15e-6):
        yield [f"{ber * 1e6:g}e-6", *(kbps(hops.one(scheme=scheme, ber=ber)) for scheme in schemes)]

"""LACK on the network of its paper (the ledger's S1-40 to S1-42)."""

from figures.source import simulator, table

#: Bits of which one is in error.
BITS = {"1/1k": 1_000, "1/4k": 4_000, "1/10k": 10_000, "1/20k": 20_000}
BITS |= {"1/40k": 40_000, "1/100k": 100_000, "1/400k": 400_000}
KEEP = "scheme ber bytes=bytes_received"

physical, wide, calibrated = (
    simulator(
        f"lack-{name}",
        f"airmend sim run experiments/lack/fig7-{file}.toml --json",
        keep=KEEP,
        agents="lack arq",
        runs=True,
    )
    for name, file in {
        "physical": "physical",
        "wide": "window-400",
        "calibrated": "calibrated",
    }.items()
)


def packets(results, scheme, bits):
    """Packets of 460 bytes of payload that arrived, the mean of all runs."""
    return results.mean("bytes", scheme=scheme, ber=1 / bits) / 460


def bound(bits):
    """Packets that arrive undamaged in 200 s at 2 Mb/s, with an undamaged CACK for each."""
    return 200 * 500 * (1 - 1 / bits) ** (4000 + 200)


def count(packets):
    return f"{packets:,.0f}".replace(",", " ")


@table("lack", physical, wide, calibrated)
def _(physical, wide, calibrated):
    first = ["bit error rate", "`physical` errors, bound with CACKs", "TCP", "`lack`"]
    then = ["window 400: `lack`", "with `idle_copies`", "`calibrated` errors: TCP", "`lack`"]
    yield [*first, *then]
    for name, bits in BITS.items():
        cells = [name, count(bound(bits)), count(packets(physical, "tcp", bits))]
        for results, scheme in ((physical, "lack"), (wide, "lack"), (wide, "lack, idle copies")):
            if results.rows(ber=1 / bits):
                arrived = packets(results, scheme, bits)
                cells.append(f"{count(arrived)}, {arrived / bound(bits):.0%}".replace("%", " %"))
            else:
                cells.append("")
        yield [*cells, *(count(packets(calibrated, scheme, bits)) for scheme in ("tcp", "lack"))]

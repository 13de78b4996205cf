"""The gateway on kernel TCP (docs/gateway.md)."""

from figures.source import lab, table
from figures.text import mbps, percent

#: What the air does, with the words that say so to the laboratory.
AIRS = {
    "no loss": "--loss 0 --seconds 10",
    "1 %": "--loss 0.01 --seconds 10",
    "2 %": "--loss 0.02 --seconds 10",
    "5 %": "--loss 0.05 --seconds 10",
    "10 %": "--loss 0.1 --seconds 10",
    "bursts of 4 every 64 KiB": "--burst 4/64Ki --seconds 10",
    "2 %, 8 flows": "--loss 0.02 --seconds 10 --flows 8",
    "5 %, 3 MB instead of 10 s": "--loss 0.05 --bytes 3MB",
}
#: How each is told from the others in the results.
AIR_COLUMNS = {
    "bursts of 4 every 64 KiB": {"burst": 4},
    "2 %, 8 flows": {"loss": 0.02, "flows": 8},
    "5 %, 3 MB instead of 10 s": {"bytes": 3_000_000},
} | {
    f"{share} %": {"loss": share / 100, "flows": 1, "bytes": None} for share in (1, 2, 5, 10)
}
AIR_COLUMNS["no loss"] = {"loss": 0}

estimate = lab(
    "gateway-estimate",
    *(
        f"airmend lab compare --agents snoop --cc cubic --repeat 3 --json {air} {path}".rstrip()
        for air in AIRS.values()
        for path in ("--path gateway --observe", "")
    ),
    keep="path loss burst=burst.frames flows bytes seed bps=goodput_bps"
    " estimate=observation.estimate_bps late_us=lateness_us.p99",
    agents="snoop",
)


def span(values):
    """The least and the most of some goodputs."""
    least, most = mbps(min(values)), mbps(max(values))
    return least if least == most else f"{least} to {most}"


@table("gateway-estimate", estimate)
def _(estimate):
    yield ["the air", "plain", "estimate", "truth", "estimate / truth"]
    for air in AIRS:
        where = AIR_COLUMNS[air]
        watched = {row["seed"]: row for row in estimate.rows(path="gateway", **where)}
        mended = {row["seed"]: row["bps"] for row in estimate.rows(path=None, **where)}
        ratios = [f"{watched[seed]['estimate'] / mended[seed]:.2f}" for seed in watched]
        least, most = min(ratios), max(ratios)
        yield [
            air,
            span([row["bps"] for row in watched.values()]),
            span([row["estimate"] for row in watched.values()]),
            span(mended.values()),
            least if least == most else f"{least} to {most}",
        ]


FAR_QUEUE = (
    "airmend lab compare --path gateway --agents snoop --ping --far-queue 140 --loss 0,0.01,0.05"
    " --seconds 16 --warmup 6s --repeat 3 --json"
)
shape = lab(
    "gateway-shape",
    *(
        f"{FAR_QUEUE} --cc {cc} {shape}".rstrip()
        for cc in ("cubic", "bbr")
        for shape in ("", "--shape auto")
    ),
    keep="cc loss shape bps=goodput_bps bytes=wire_bytes_per_byte p50=ping.p50_ms"
    " late_us=lateness_us.p99",
    agents="snoop",
)


@table("gateway-shape", shape)
def _(shape):
    yield ["sender, loss", "without", "`--shape auto`"]
    for cc in ("cubic", "bbr"):
        for loss in (0, 0.01, 0.05):
            cells = [f"{cc.upper()}, {percent(loss)}"]
            for how in (None, "auto"):
                where = {"cc": cc, "loss": loss, "shape": how}
                bps, bytes_, ping = (shape.median(each, **where) for each in ("bps", "bytes", "p50"))
                cells.append(f"{mbps(bps)}, {bytes_:.3f}, {ping:.0f} ms")
            yield cells

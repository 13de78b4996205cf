"""Kernel TCP in the laboratory (docs/measuring.md)."""

from figures.source import lab, quote, table
from figures.text import mbps, percent

USUAL = "agent loss direction bps=goodput_bps late_us=lateness_us.p99"
LONG = (
    "--cc cubic --wired-rate 1gbit --wired-queue 10000 --wired-delay 10ms --air-delay {delay}"
    " --seconds {seconds} --repeat 1 --json"
)
#: The delay by air in ms, and the time of a run in s.
LONG_PATHS = {2: 30, 20: 30, 50: 30, 140: 30, 300: 60}

ping = lab(
    "ping",
    "airmend lab compare --agents plain,snoop --cc cubic --loss 0,0.01,0.05 --ping --seconds 20"
    " --repeat 3 --json",
    keep=f"{USUAL} p50=ping.p50_ms p99=ping.p99_ms",
    agents="snoop",
    until_then=("experiments/modern/ping.jsonl", "2026-11-23"),
)


@table("ping", ping)
def _(ping):
    yield ["loss each way", "plain", "p50 / p99", "`snoop`", "p50 / p99"]
    for loss in (0, 0.01, 0.05):
        cells = [percent(loss)]
        for agent in ("plain", "snoop"):
            where = {"agent": agent, "loss": loss}
            cells.append(mbps(ping.median("bps", **where)))
            cells.append(" / ".join(f"{ping.median(p, **where):.3g}" for p in ("p50", "p99")))
        yield cells


@quote("ping-added", ping)
def _(ping):
    """By how much a mended flow's p99 is longer than that of plain without loss, at most."""
    clean = ping.median("p99", agent="plain", loss=0)
    worst = max(ping.median("p99", agent="snoop", loss=loss) for loss in (0, 0.01, 0.05))
    return f"{worst - clean:.0f} ms"


tulip_upload = lab(
    "tulip-upload",
    "airmend lab compare --agents tulip --cc cubic --direction up --loss 0,0.01,0.04,0.08"
    " --repeat 3 --bytes 10MB --rate 100mbit --air-delay 1ms --wired-rate 10mbit --wired-delay 25ms"
    " --wired-queue 65kB --json",
    keep=f"{USUAL} of_bound bytes=wire_bytes_per_byte",
    agents="tulip arq",
    until_then=("experiments/modern/tulip.jsonl", "2026-11-23"),
)


@table("tulip-upload", tulip_upload)
def _(upload):
    bytes_ = "bytes on the air for each useful one"
    yield ["loss each way", "goodput, Mb/s", "target", "of the bound", bytes_]
    for loss in (0, 0.01, 0.04, 0.08):
        bps, bound, sent = (
            upload.median(column, loss=loss, direction="up")
            for column in ("bps", "of_bound", "bytes")
        )
        yield [percent(loss), mbps(bps), "8.5", percent(bound, 1), f"{sent:.3f}"]


tulip_air = lab(
    "tulip-air",
    "airmend lab compare --agents tulip --cc cubic --loss 0.01,0.05,0.1,0.2 --seconds 15"
    " --warmup 5s --ping --repeat 3 --json",
    "airmend lab compare --agents plain,tulip --cc cubic --loss 0 --seconds 15 --warmup 5s --ping"
    " --repeat 3 --json",
    keep=f"{USUAL} bytes=wire_bytes_per_byte p50=ping.p50_ms p99=ping.p99_ms"
    " pings=ping.sent back=ping.received",
    agents="tulip arq",
    until_then=("experiments/modern/tulip.jsonl", "2026-11-23"),
)


@table("tulip-air", tulip_air)
def _(air):
    clean = {"agent": "tulip", "loss": 0, "direction": "down"}
    rate, highest = air.median("bps", **clean), air.median("p50", **clean) + 12
    share, pings = "of (1 − p) × the clean rate", "ping, p50 / p99 in ms"
    heads = ["goodput, Mb/s", "target", share, "bytes on the air", pings, "target of p99"]
    yield ["loss each way", *heads]
    for agent, loss in [("plain", 0), *(("tulip", loss) for loss in (0, 0.01, 0.05, 0.1, 0.2))]:
        where = {"agent": agent, "loss": loss, "direction": "down"}
        bps, sent, p50, p99 = (air.median(each, **where) for each in ("bps", "bytes", "p50", "p99"))
        is_link = agent == "tulip"
        yield [
            percent(loss) + ("" if is_link else ", `plain`"),
            mbps(bps),
            mbps(0.95 * (1 - loss) * rate) if 0 < loss <= 0.1 else "",
            f"{100 * bps / rate / (1 - loss):.3g} %" if is_link else "",
            f"{sent:.3f}",
            f"{p50:.1f} / {p99:.1f}",
            f"{highest:.1f}" if is_link else "",
        ]


@quote("tulip-pings", tulip_air)
def _(air):
    where = {"agent": "tulip", "loss": 0.2, "direction": "down"}
    return percent(sum(air.each("back", **where)) / sum(air.each("pings", **where)), 0)


def with_and_without(setting, paths):
    """Commands: plain without losses, and tulip without a setting and with it."""
    for delay, seconds in paths.items():
        path = LONG.format(delay=f"{delay}ms", seconds=seconds)
        yield f"airmend lab compare --agents plain --loss 0 {path}"
        yield f"airmend lab compare --agents tulip --loss 0,0.01,0.05,0.1 {path}"
        yield f"airmend lab compare --agents tulip --loss 0.01,0.05,0.1 --set {setting} {path}"


def rates_of_tulip(runs, delay, setting, value):
    """Each loss and the rate with it: first without the setting, then with it."""
    for given, losses in ((None, (0, 0.01, 0.05, 0.1)), (value, (0.01, 0.05, 0.1))):
        for loss in losses:
            where = {"delay": delay, "loss": loss, setting: given}
            yield loss, runs.one(agent="tulip", **where)["bps"]


link_long = lab(
    "link-long-kernel",
    *with_and_without("idle_copies=1", LONG_PATHS),
    keep=f"{USUAL} delay=air_delay_ms copies=settings.idle_copies bytes=wire_bytes_per_byte",
    agents="tulip arq",
    until_then=("experiments/modern/link-long-kernel.jsonl", "2026-11-23"),
)


@table("link-long-kernel", link_long)
def _(long):
    heads = ["plain, 0 %", "0 %", "1 %", "5 %", "10 %", "with a copy: 1 %", "5 %", "10 %"]
    yield ["delay by air, time", *heads]
    for delay, seconds in LONG_PATHS.items():
        clean = long.one(agent="plain", delay=delay)["bps"]
        cells = [f"{delay} ms, {seconds} s", mbps(clean)]
        for loss, bps in rates_of_tulip(long, delay, "copies", "1"):
            cells.append(f"{mbps(bps)}, {bps / clean / (1 - loss):.3f}")
        yield cells


def with_and_without_copies(long, delay):
    """Bytes on the air for each useful one, at 5 and 10 %."""
    with_, without = (
        [long.one(agent="tulip", delay=delay, loss=p, copies=n)["bytes"] for p in (0.05, 0.1)]
        for n in ("1", None)
    )
    spans = (" and ".join(f"{each:.2f}" for each in bytes_) for bytes_ in (with_, without))
    return " instead of ".join(spans)


@quote("link-long-copies-50", link_long)
def _(long):
    return with_and_without_copies(long, 50)


@quote("link-long-copies-140", link_long)
def _(long):
    return with_and_without_copies(long, 140)


@quote("link-long-late", link_long)
def _(long):
    late = max(row["late_us"] for row in long.rows() if row["delay"] >= 50)
    return f"{late / 1000:.0f} ms"


link_repairs = lab(
    "link-repairs-kernel",
    *with_and_without("coding=off", {50: 30, 140: 30, 300: 30}),
    keep=f"{USUAL} delay=air_delay_ms coding=settings.coding",
    agents="tulip arq",
    until_then=("experiments/modern/link-repairs-kernel.jsonl", "2026-11-26"),
)


@table("link-repairs-kernel", link_repairs)
def _(runs):
    heads = ["plain, 0 %", "0 %", "1 %", "5 %", "10 %", "`coding=off`: 1 %", "5 %", "10 %"]
    yield ["delay by air", *heads]
    for delay in (50, 140, 300):
        cells = [f"{delay} ms", mbps(runs.one(agent="plain", delay=delay)["bps"])]
        rates = rates_of_tulip(runs, delay, "coding", "off")
        yield [*cells, *(mbps(bps) for _, bps in rates)]

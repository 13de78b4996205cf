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


link_long = lab(
    "link-long-kernel",
    *(
        f"airmend lab compare {what} {LONG.format(delay=f'{delay}ms', seconds=seconds)}"
        for delay, seconds in LONG_PATHS.items()
        for what in (
            "--agents plain --loss 0",
            "--agents tulip --loss 0,0.01,0.05,0.1",
            "--agents tulip --loss 0.01,0.05,0.1 --set coding=off",
        )
    ),
    keep=f"{USUAL} delay=air_delay_ms coding=settings.coding",
    agents="tulip arq",
)


@table("link-long-kernel", link_long)
def _(long):
    heads = ["plain, 0 %", "0 %", "1 %", "5 %", "10 %", "`coding=off`: 1 %", "5 %", "10 %"]
    yield ["delay by air, time", *heads]
    for delay, seconds in LONG_PATHS.items():
        clean = long.one(agent="plain", delay=delay)["bps"]
        cells = [f"{delay} ms, {seconds} s", mbps(clean)]
        for coding, losses in ((None, (0, 0.01, 0.05, 0.1)), ("off", (0.01, 0.05, 0.1))):
            for loss in losses:
                run = long.one(agent="tulip", delay=delay, loss=loss, coding=coding)
                cells.append(f"{mbps(run['bps'])}, {run['bps'] / clean / (1 - loss):.3f}")
        yield cells


@quote("link-long-late", link_long)
def _(long):
    late = max(row["late_us"] for row in long.rows())
    return f"{late / 1000:.1f} ms"


link_fast = lab(
    "link-fast-kernel",
    *(
        f"airmend lab compare {what} --rate 200mbit {LONG.format(delay='50ms', seconds=30)}"
        for what in (
            "--agents plain --loss 0",
            "--agents tulip --loss 0,0.01,0.05",
            "--agents tulip --loss 0.01,0.05 --set coding=off",
        )
    ),
    keep=f"{USUAL} coding=settings.coding",
    agents="tulip arq",
)


@table("link-fast-kernel", link_fast)
def _(fast):
    yield ["plain, 0 %", "0 %", "1 %", "5 %", "`coding=off`: 1 %", "5 %"]
    runs = [fast.one(agent="plain")]
    for coding, losses in ((None, (0, 0.01, 0.05)), ("off", (0.01, 0.05))):
        runs += [fast.one(agent="tulip", loss=loss, coding=coding) for loss in losses]
    yield [mbps(run["bps"]) for run in runs]


OBJECTS = (
    "airmend lab compare --agents tulip --cc cubic --bytes 100kB --sequential 100 --repeat 1 --json"
)
link_objects = lab(
    "link-objects-kernel",
    f"{OBJECTS} --loss 0,0.01,0.05",
    f"{OBJECTS} --loss 0,0.01,0.05 --wired-delay 10ms --air-delay 50ms",
    f"{OBJECTS} --loss 0.01,0.05 --wired-delay 10ms --air-delay 50ms --set coding=off",
    keep="loss delay=air_delay_ms coding=settings.coding p50=completion_ms.p50 worst=completion_ms.max",
    agents="tulip arq",
)


@table("link-objects-kernel", link_objects)
def _(objects):
    yield ["path", "0 %", "1 %", "5 %"]
    for name, delay, coding in (
        ("2 ms by air, 40 ms by wire", 2, None),
        ("50 ms by air, 10 ms by wire", 50, None),
        ("the same with `coding=off`", 50, "off"),
    ):
        clean = objects.one(delay=delay, loss=0, coding=None)
        cells = [f"{clean['p50']:.0f}, {clean['worst']:.0f}"]
        for loss in (0.01, 0.05):
            run = objects.one(delay=delay, loss=loss, coding=coding)
            shares = (f"{run[each] / clean['p50']:.2f}" for each in ("p50", "worst"))
            cells.append(f"{run['p50']:.0f}, {run['worst']:.0f}: {', '.join(shares)}")
        yield [name, *cells]

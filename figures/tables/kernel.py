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


def latest(results):
    """By how much the laboratory was late in the worst run (99th percentile)."""
    return f"{max(row['late_us'] for row in results.rows()) / 1000:.1f} ms"


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
    return latest(long)


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


#: In a guest, whose clock no other work on this machine makes late.
OBJECTS = (
    "tools/kernel-guest --seconds 3600 6.12 {airmend} lab compare --cc cubic --bytes 100kB"
    " --sequential 100 --repeat 1 --json"
)
LONG_OBJECTS = "--wired-delay 20ms --air-delay 50ms"
LOSSES = (0, 0.01, 0.05, 0.1)
link_objects = lab(
    "link-objects-kernel",
    f"{OBJECTS} --agents plain --loss 0",
    f"{OBJECTS} --agents tulip --loss 0,0.01,0.05,0.1",
    f"{OBJECTS} --agents plain --loss 0 {LONG_OBJECTS}",
    f"{OBJECTS} --agents tulip --loss 0,0.01,0.05,0.1 {LONG_OBJECTS}",
    f"{OBJECTS} --agents tulip --loss 0.01,0.05,0.1 {LONG_OBJECTS} --set coding=off",
    keep="agent loss delay=air_delay_ms coding=settings.coding late_us=lateness_us.p99"
    " p50=completion_ms.p50 worst=completion_ms.max",
    agents="tulip arq",
)


@table("link-objects-kernel", link_objects)
def _(objects):
    yield ["path", "plain, 0 %", *(percent(loss) for loss in LOSSES)]
    for name, delay, coding in (
        ("2 ms by air, 40 ms by wire", 2, None),
        ("50 ms by air, 20 ms by wire", 50, None),
        ("the same with `coding=off`", 50, "off"),
    ):
        clean = objects.one(agent="plain", delay=delay)
        cells = [name, f"{clean['p50']:.0f}, {clean['worst']:.0f}"]
        for loss in LOSSES:
            where = {"agent": "tulip", "delay": delay, "loss": loss}
            run = objects.one(**where, coding=coding if loss else None)
            shares = (f"{run[each] / clean['p50']:.2f}" for each in ("p50", "worst"))
            cells.append(f"{run['p50']:.0f}, {run['worst']:.0f}: {', '.join(shares)}")
        yield cells


UPLOAD = "--direction up --cc cubic --loss 0.01,0.05,0.1 --seconds 20 --json"
upload = lab(
    "upload-kernel",
    f"airmend lab compare --place base --agents snoop {UPLOAD}",
    f"airmend lab compare --place mobile --agents plain,snoop {UPLOAD}",
    f"airmend lab compare --place both --agents snoop {UPLOAD}",
    keep=f"{USUAL} place seed of_bound bound=bound_bps",
    agents="snoop snoop95",
)


@table("upload-kernel", upload)
def _(upload):
    places = {
        None: "`snoop` at the base station",
        "mobile": "`snoop` in the mobile host",
        "both": "at both ends",
    }
    yield ["loss each way", "plain", *places.values(), "bound"]
    for loss in (0.01, 0.05, 0.1):
        plain = upload.median("bps", agent="plain", loss=loss)
        cells = [percent(loss), mbps(plain)]
        for place in places:
            where = {"agent": "snoop", "loss": loss, "place": place}
            bps, share = (upload.median(each, **where) for each in ("bps", "of_bound"))
            cells.append(f"{mbps(bps)}: {percent(share, 1)}, × {bps / plain:.1f}")
        yield [*cells, mbps(upload.median("bound", loss=loss))]


HANDOFF = (
    "airmend lab compare --agents plain,snoop,snoop95 --cc cubic --loss 0,0.01 --repeat 1"
    " --seconds 30 --json"
)
handoff = lab(
    "handoff-kernel",
    HANDOFF,
    f"{HANDOFF} --base-stations 2 --handoff 5s",
    f"{HANDOFF} --base-stations 2 --handoff 5s --handoff-ahead 0ms",
    f"{HANDOFF} --base-stations 2 --handoff 5s --no-handoff-state",
    keep=f"{USUAL} every=handoff_every_ms ahead=handoff_ahead_ms state=handoff_state"
    " p50=handoff_ms.p50 most=handoff_ms.max",
    agents="snoop snoop95 handoff",
)


@table("handoff-kernel", handoff)
def _(handoff):
    ways = {
        "primed": {"ahead": 200, "state": True},
        "not primed": {"ahead": 0, "state": True},
        "no handoff": {"state": False},
    }
    heads = [each for way in ways for each in (way, "median / most")]
    yield ["agent", "loss", "no moves", *heads]
    for loss in (0, 0.01):
        for agent in ("plain", "snoop", "snoop95"):
            where = {"agent": agent, "loss": loss}
            cells = [mbps(handoff.one(every=None, **where)["bps"])]
            for way in ways.values():
                run = handoff.one(**way, **where)
                cells += [mbps(run["bps"]), f"{run['p50']:.1f} / {run['most']:.1f}"]
            yield [agent, percent(loss), *cells]


JOINED = "--rate 20mbit --air-delay 10ms --wired-delay 10ms --far-wired 100mbit,10ms"
LINKS = ("tulip", "lack", "lack-flow")
joined = lab(
    "joined-networks",
    f"airmend lab compare --agents tulip,lack,lack-flow --cc cubic --loss 0.05,0.1 --flows 5"
    f" {JOINED} --seconds 20 --warmup 5s --repeat 3 --json",
    keep=f"{USUAL} of_bound fairness",
    agents="tulip lack arq",
)


@table("joined-networks", joined)
def _(joined):
    yield ["loss each way", *(f"`{agent}`" for agent in LINKS)]
    for loss in (0.05, 0.1):
        cells = [percent(loss)]
        for agent in LINKS:
            where = {"agent": agent, "loss": loss}
            share, fairness = (joined.median(each, **where) for each in ("of_bound", "fairness"))
            cells.append(f"{percent(share, 1)}, {fairness:.2f}")
        yield cells


SHORT = (
    f"airmend lab compare --agents tulip,lack,lack-flow --cc cubic --loss 0.05 --flows 5 --pairs 5"
    f" {JOINED} --seconds 15 --warmup 3s --repeat 3 --json"
)
joined_short = lab(
    "joined-short",
    f"{SHORT} --short 10kB,50ms",
    f"{SHORT} --short 100kB,50ms",
    f"{SHORT} --short 10kB,50ms --window 16 --set classes=any=reliable",
    keep="agent short window=window_segments late_us=lateness_us.p99 p50=short_completion_ms.p50"
    " p90=short_completion_ms.p90 p99=short_completion_ms.p99",
    agents="tulip lack arq",
)


@table("joined-short", joined_short)
def _(short):
    yield ["short flows", *(f"`{agent}`" for agent in LINKS)]
    for name, where in {
        "10 kB": {"short": "10000,50ms", "window": None},
        "100 kB": {"short": "100000,50ms", "window": None},
        "10 kB, `--window 16` and all packets reliable": {"window": 16},
    }.items():
        cells = [name]
        for agent in LINKS:
            times = (short.median(each, agent=agent, **where) for each in ("p50", "p90", "p99"))
            cells.append(" / ".join(f"{time:.0f}" for time in times))
        yield cells


#: One way by air in ms, the FIFO before it (1 BDP), the time of a run in s, runs.
OVERHEAD = {
    2: ("10kB", 15, 3),
    20: ("100kB", 15, 3),
    70: ("350kB", 15, 3),
    140: ("700kB", 15, 3),
    300: ("1500kB", 60, 1),
}
overhead = lab(
    "link-overhead",
    *(
        f"tools/link-overhead --airmend {{airmend}} --json --delays {delay}ms --queue {queue}"
        f" --seconds {seconds} --runs {runs} {what}"
        for delay, (queue, seconds, runs) in OVERHEAD.items()
        for what in ("--losses 0,0.01,0.05,0.1", "--losses 0 -- --arq plain")
    ),
    keep="delay loss seed arq=flags.1 bps wire reverse cpu_fh=cpu_fh_ns cpu_mh=cpu_mh_ns late_us",
    agents="tulip arq",
)


@table("link-overhead", overhead)
def _(overhead):
    yield ["round trip, losses", "Mb/s", "of plain × (1 − p)", "bytes down", "up", "CPU, ns"]
    for delay in OVERHEAD:
        clean = overhead.median("bps", delay=f"{delay}ms", loss=0.0, arq="plain")
        for arq, loss in (("plain", 0.0), *((None, loss) for loss in (0.0, 0.01, 0.05, 0.1))):
            where = {"delay": f"{delay}ms", "loss": loss, "arq": arq}
            bps, wire, reverse, *cpu = (
                overhead.median(each, **where)
                for each in ("bps", "wire", "reverse", "cpu_fh", "cpu_mh")
            )
            yield [
                f"{2 * delay} ms, {percent(loss)}" + (", `--arq plain`" if arq else ""),
                mbps(bps, 1),
                f"{bps / clean / (1 - loss):.3f}",
                f"{wire:.3f}",
                f"{reverse:.3f}",
                f"{cpu[0]:.0f} + {cpu[1]:.0f}",
            ]


@quote("link-overhead-late", overhead)
def _(overhead):
    return latest(overhead)

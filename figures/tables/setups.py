"""The set-ups A to E (docs/measuring.md): README.md, docs/modern-snoop.md, docs/validation.md."""

from figures.source import lab, quote, simulator, table
from figures.text import mbps, percent

KERNEL = (
    "experiment rate=rate_bps wired=wired_delay_ms agent loss burst=burst.frames"
    " fading=fading.bad_ms seed bps=goodput_bps of_bound realised=of_realised_bound"
    " sent=wire_bytes_per_byte"
    " timeouts=sender.timeouts recoveries=sender.recoveries p50=ping.p50_ms p99=ping.p99_ms"
    " late_us=lateness_us.p99"
)
COMMAND = "airmend lab compare --cc cubic --json --agents"
FAR = "--rate 100mbit --air-delay 1ms --wired-rate 10mbit --wired-delay 25ms --wired-queue 65kB"
FAST = "--rate 100mbit --wired-rate 1gbit --wired-delay 50ms"
FADES = "--rate 10mbit --fading good=300ms,bad=30ms,loss=0.5"

model = simulator(
    "setups",
    "airmend sim run experiments/validation/matrix.toml --json"
    ' --set \'sweep.agent.values=["plain", "snoop95", "snoop-nosuppress", "snoop"]\'',
    keep="setup agent seed bps=goodput_bps bound=bound_bps sent=wire_bytes_per_byte",
    agents="snoop snoop95",
    runs=True,
)
kernel = lab(
    "setups-kernel",
    f"{COMMAND} snoop --loss 0,0.01,0.05,0.1 --seconds 20 --repeat 3",
    f"{COMMAND} snoop --loss 0.01,0.04,0.08,0.2,0.3 --bytes 10MB --repeat 3 {FAR}",
    f"{COMMAND} plain,snoop --seconds 20 --repeat 3 --ping --rate 50mbit --air-delay 5ms"
    " --wired-delay 25ms",
    f"{COMMAND} snoop --rate 10mbit --burst 2/64Ki,4/64Ki,6/64Ki --seconds 20 --repeat 3",
    f"{COMMAND} snoop {FADES} --seconds 60 --repeat 3",
    f"{COMMAND} snoop --loss 0.02,0.1 --seconds 15 --repeat 3 --air-delay 20ms --wired-delay 5ms",
    keep=KERNEL,
    agents="snoop",
)
#: D, by itself: it needs a machine that does nothing else.
kernel_d = lab(
    "setups-kernel-d",
    f"{COMMAND} snoop --loss 0.01,0.05 --seconds 60 --warmup 10s --repeat 2 {FAST}",
    keep=KERNEL,
    agents="snoop",
)
fast = lab(
    "setups-kernel-fast",
    f"{COMMAND} snoop-nosuppress,snoop --loss 0.05 --seconds 60 --warmup 10s --repeat 2 {FAST}",
    keep="agent loss seed bps=goodput_bps of_bound recoveries=sender.recoveries"
    " shown=agent_counters.forwarded_loss_signals late_us=lateness_us.p99 latest_us=lateness_us.max",
    agents="snoop",
)
#: What `snoop` is compared with. Over 10 MB `plain` would take minutes at a high loss.
others = lab(
    "setups-kernel-others",
    f"{COMMAND} plain,snoop95 --loss 0,0.01,0.05,0.1 --seconds 20 --repeat 3",
    f"{COMMAND} plain,snoop95 --loss 0.01,0.04,0.08 --seconds 20 --repeat 3 {FAR}",
    f"{COMMAND} plain,snoop95 --seconds 20 --repeat 3 --rate 50mbit --air-delay 5ms"
    " --wired-delay 25ms",
    f"{COMMAND} plain,snoop95 --rate 10mbit --burst 2/64Ki,4/64Ki,6/64Ki --seconds 20 --repeat 3",
    f"{COMMAND} plain,snoop95 {FADES} --seconds 60 --repeat 3",
    f"{COMMAND} plain,snoop95,snoop-nosuppress --loss 0.02,0.1 --seconds 15 --repeat 3"
    " --air-delay 20ms --wired-delay 5ms",
    keep=KERNEL,
    agents="snoop snoop95",
)
others_d = lab(
    "setups-kernel-others-d",
    f"{COMMAND} plain,snoop95 --loss 0.01,0.05 --seconds 60 --warmup 10s --repeat 2 {FAST}",
    keep=KERNEL,
    agents="snoop95",
)

#: What tells the laboratory's lines of a set-up.
A = {"rate": 20_000_000, "wired": 40}
B = {"rate": 100_000_000, "wired": 25}
C = {"rate": 50_000_000, "wired": 25}
D = {"rate": 100_000_000, "wired": 50}
E = {"rate": 10_000_000, "wired": 40}
LINES = {
    "A, 0 %": A | {"loss": 0},
    "A, 1 %": A | {"loss": 0.01},
    "A, 5 %": A | {"loss": 0.05},
    "A, 10 %": A | {"loss": 0.1},
    "B, 1 %": B | {"loss": 0.01},
    "B, 4 %": B | {"loss": 0.04},
    "B, 8 %": B | {"loss": 0.08},
    "B, 20 %": B | {"loss": 0.2},
    "B, 30 %": B | {"loss": 0.3},
    "C, 0 %": C | {"loss": 0},
    "D, 1 %": D | {"loss": 0.01},
    "D, 5 %": D | {"loss": 0.05},
    "E, bursts of 2": E | {"burst": 2},
    "E, bursts of 4": E | {"burst": 4},
    "E, bursts of 6": E | {"burst": 6},
    "E, fading": E | {"fading": 30},
}
WANTED = {"A, 0 %": "what plain has", "A, 1 %": "18.0", "A, 5 %": "17.2", "A, 10 %": "16.3"}
WANTED |= {"B, 1 %": "8.5", "B, 4 %": "8.5", "B, 8 %": "8.5", "C, 0 %": "what plain has"}
WANTED |= {"D, 1 %": "85 %", "D, 5 %": "85 %", "E, fading": "90 %"}
WANTED |= {f"E, bursts of {frames}": "95 %" for frames in (2, 4, 6)}


def of_setup(setup, kernel, kernel_d):
    """The laboratory's results that have this set-up."""
    return kernel_d if setup.startswith("D") else kernel


def median(results, agent, **where):
    """The median goodput, if it was measured."""
    has_any = results.rows(agent=agent, **where)
    return mbps(results.median("bps", agent=agent, **where)) if has_any else "–"


def of_bound(results, **where):
    """The median share of the bound; of fades, of the bound of that very run."""
    rows = results.rows(agent="snoop", **where)
    fades = all(row["realised"] for row in rows)
    return percent(results.median("realised" if fades else "of_bound", agent="snoop", **where), 1)


@table("setups", model, kernel, kernel_d)
def _(model, *kernels):
    agents = ("plain", "snoop95", "snoop-nosuppress", "snoop")
    heads = [*("plain" if agent == "plain" else f"`{agent}`" for agent in agents), "of the bound"]
    yield ["set-up", *heads, "kernel: `snoop`", "of the bound", "wanted"]
    for setup, lines in LINES.items():
        simulated = ["–"] * 5
        if model.rows(setup=setup):
            shares = model.median("bps", agent="snoop", setup=setup)
            bound = model.rows(agent="snoop", setup=setup)[0]["bound"]
            simulated = [median(model, agent, setup=setup) for agent in agents]
            simulated.append(percent(shares / bound, 1))
        kernel = of_setup(setup, *kernels)
        goodput = median(kernel, "snoop", **lines)
        yield [setup, *simulated, goodput, of_bound(kernel, **lines), WANTED.get(setup, "")]


@table("setups-ping", kernel)
def _(kernel):
    yield ["", "Mb/s", "ping, median", "99 %"]
    for agent, name in {"plain": "plain", "snoop": "`snoop`"}.items():
        bps, half, most = (kernel.median(each, agent=agent, **C) for each in ("bps", "p50", "p99"))
        yield [name, mbps(bps), f"{half:.1f} ms", f"{most:.1f} ms"]


@table("setups-fast", fast)
def _(fast):
    yield ["agent", "seed", "Mb/s", "of the bound", "recoveries", "loss signals forwarded late"]
    for row in sorted(fast.rows(), key=lambda row: (row["agent"], row["seed"])):
        share = percent(row["of_bound"], 1)
        late = row["shown"] or 0
        yield [f"`{row['agent']}`", row["seed"], mbps(row["bps"]), share, row["recoveries"], late]


@table("readme", others, others_d, kernel, kernel_d)
def _(others, others_d, *kernels):
    yield ["path", "loss", "plain TCP", "`snoop95`", "`snoop`", "of the bound"]
    rows = {
        "A, 0 %": ("air 20 Mb/s, 2 ms; wire 40 ms", "none"),
        "A, 1 %": ("", "1 %"),
        "A, 5 %": ("", "5 %"),
        "B, 8 %": ("air 100 Mb/s, 1 ms; wire 10 Mb/s, 25 ms", "8 %"),
        "D, 5 %": ("air 100 Mb/s, 2 ms; wire 50 ms", "5 %"),
        "E, bursts of 4": ("air 10 Mb/s, 2 ms; wire 40 ms", "4 frames in a row every 64 KB"),
    }
    for setup, names in rows.items():
        lines = LINES[setup]
        beside = of_setup(setup, others, others_d)
        kernel = of_setup(setup, *kernels)
        goodputs = [median(beside, agent, **lines) for agent in ("plain", "snoop95")]
        goodputs.append(median(kernel, "snoop", **lines))
        yield [*names, *goodputs, of_bound(kernel, **lines)]


@quote("readme-long", kernel)
def _(kernel):
    """What `snoop` has of the bound over 20 seconds in the set-up of `make demo`."""
    shares = [
        100 * kernel.median("of_bound", agent="snoop", **LINES[setup])
        for setup in ("A, 0 %", "A, 1 %", "A, 5 %")
    ]
    return f"{min(shares):.1f} to {max(shares):.1f} %"


def in_kernel(setup, agent, others, others_d, *kernels):
    """The laboratory's results that have this agent in this set-up."""
    return of_setup(setup, *kernels) if agent == "snoop" else of_setup(setup, others, others_d)


def medians(agent, model, *kernels):
    """The medians of the model and of the kernel in each set-up that the model has."""
    return {
        setup: (
            model.median("bps", agent=agent, setup=setup),
            in_kernel(setup, agent, *kernels).median("bps", agent=agent, **lines),
        )
        for setup, lines in LINES.items()
        if model.rows(setup=setup)
    }


def off(*pair):
    """By which share the model is off the kernel."""
    model, kernel = pair
    return abs(model / kernel - 1)


@table("validation-matrix", model, others, others_d, kernel, kernel_d)
def _(*results):
    yield ["set-up", "plain", "`snoop95`", "range", "`snoop`"]
    found = {agent: medians(agent, *results) for agent in ("plain", "snoop95", "snoop")}
    for setup in found["plain"]:
        pairs = {agent: compared(*found[agent][setup]) for agent in found}
        single = each_snoop95(setup, *results[1:])
        scatter = f"{mbps(min(single), 1)} to {mbps(max(single), 1)}"
        yield [setup, pairs["plain"], pairs["snoop95"], scatter, pairs["snoop"]]


def each_snoop95(setup, *kernels):
    """The goodput of each run of `snoop95` on kernel TCP."""
    return in_kernel(setup, "snoop95", *kernels).each("bps", agent="snoop95", **LINES[setup])


def compared(model, kernel):
    """Model, kernel and their ratio, bold where that is more than 15 % off."""
    text = f"{mbps(model)} / {mbps(kernel)} = {model / kernel:.2f}"
    return f"**{text}**" if off(model, kernel) > 0.15 else text


@quote("validation-snoop", model, others, others_d, kernel, kernel_d)
def _(*results):
    """The most that the model is off the kernel."""
    return percent(max(off(*pair) for pair in medians("snoop", *results).values()), 0)


@quote("validation-plain", model, others, others_d, kernel, kernel_d)
def _(*results):
    pairs = medians("plain", *results).values()
    return f"{sum(off(*pair) <= 0.15 for pair in pairs)} of {len(pairs)}"


@quote("validation-snoop95-scatter", model)
def _(model):
    """The fastest over the slowest run of a point."""
    setups = {row["setup"] for row in model.rows(agent="snoop95")}
    runs = [model.each("bps", agent="snoop95", setup=setup) for setup in setups]
    return f"{max(max(each) / min(each) for each in runs):.0f} times"


@quote("validation-outside", model, others, others_d, kernel, kernel_d)
def _(model, *kernels):
    """The set-ups in which the model's median of `snoop95` is none that the kernel's runs span."""
    found = []
    for setup in LINES:
        if model.rows(setup=setup):
            single = each_snoop95(setup, *kernels)
            bps = model.median("bps", agent="snoop95", setup=setup)
            if not 0.99 * min(single) <= bps <= 1.01 * max(single):
                found.append(f"{setup} ({'faster' if bps > max(single) else 'slower'})")
    return "; ".join(found)


@table("long-air-kernel", others, kernel)
def _(others, kernel):
    agents = ("plain", "snoop95", "snoop-nosuppress")
    yield ["loss", "plain", "`snoop95`", "`snoop-nosuppress`", "`snoop`"]
    for loss in (0.02, 0.1):
        lines = {"rate": 20_000_000, "wired": 5, "loss": loss}
        beside = [median(others, agent, **lines) for agent in agents]
        yield [percent(loss), *beside, median(kernel, "snoop", **lines)]

"""The TCP model beside kernel TCP (docs/validation.md)."""

from statistics import fmean, median

from figures.source import lab, quote, simulator, table
from figures.text import mbps, percent

KEEP = "cc sack loss bps=goodput_bps timeouts=sender.timeouts again=sender.retransmits"
LOSSES = (0.005, 0.01, 0.02, 0.05)
LAB = (
    "airmend lab compare --agents plain --cc reno,cubic --loss 0.005,0.01,0.02,0.05"
    " --repeat 10 --seconds 15 --window 280 --json"
)

kernel = lab(
    "validation-kernel",
    LAB,
    f"{LAB} --no-sack",
    keep=KEEP,
)
model = simulator(
    "validation-model",
    "airmend sim run experiments/validation/kernel.toml --json",
    keep=KEEP,
    runs=True,
)
long_model = simulator(
    "validation-long",
    "airmend sim run experiments/validation/kernel.toml --set time_limit=300s --set runs=10 --json",
    keep="cc sack loss bps=goodput_mean_bps",
)


@table("validation-kernel", kernel, model)
def _(kernel, model):
    heads = ["kernel", "model", "ratio", "timeouts", "retransmissions"]
    yield ["congestion", "SACK", "loss", *heads]
    for cc in ("reno", "cubic"):
        for sack in (True, False):
            for loss in LOSSES:
                where = {"cc": cc, "sack": sack, "loss": loss}
                means, goodputs = [], []
                for results in (kernel, model):
                    means.append(results.mean("bps", **where))
                    spread = results.deviation("bps", **where)
                    goodputs.append(f"{mbps(means[-1])} ± {mbps(spread)}")
                pairs = [
                    " / ".join(
                        f"{each.mean(column, **where):.{digits}f}" for each in (kernel, model)
                    )
                    for column, digits in {"timeouts": 1, "again": 0}.items()
                ]
                names = [cc, "yes" if sack else "no", percent(loss)]
                yield [*names, *goodputs, f"{means[1] / means[0]:.2f}", *pairs]


@table("validation-formulas", long_model)
def _(long):
    yield ["loss", "Mathis", "PFTK", "Reno, SACK", "Reno", "CUBIC, SACK", "CUBIC"]
    for loss in LOSSES:
        cells = [percent(loss), mbps(mathis(loss)), mbps(pftk(loss))]
        for cc in ("reno", "cubic"):
            for sack in (True, False):
                cells.append(mbps(long.one(cc=cc, sack=sack, loss=loss)["bps"]))
        yield cells


def points():
    return [
        {"cc": cc, "sack": sack, "loss": loss}
        for cc in ("reno", "cubic")
        for sack in (True, False)
        for loss in LOSSES
    ]


def ratios(kernel, model):
    """The model's mean goodput over the kernel's, at each point."""
    return [model.mean("bps", **where) / kernel.mean("bps", **where) for where in points()]


@quote("validation-worst", kernel, model)
def _(kernel, model):
    return percent(max(abs(ratio - 1) for ratio in ratios(kernel, model)), 0)


@quote("validation-all", kernel, model)
def _(kernel, model):
    return percent(abs(fmean(ratios(kernel, model)) - 1), 0)


def scatter(kernel):
    """The deviation of single runs over their mean; the median of the points."""
    return median(
        kernel.deviation("bps", **where) / kernel.mean("bps", **where) for where in points()
    )


@quote("validation-scatter", kernel)
def _(kernel):
    return percent(scatter(kernel), 0)


@quote("validation-error", kernel)
def _(kernel):
    return percent(scatter(kernel) / 10**0.5, 0)


@quote("validation-mathis", long_model)
def _(long):
    """The most that Reno with SACK is off Mathis, up to 2 %."""
    shares = [long.one(cc="reno", sack=True, loss=p)["bps"] / mathis(p) for p in LOSSES[:3]]
    return percent(max(abs(share - 1) for share in shares), 0)


@quote("validation-pftk", long_model)
def _(long):
    shares = [long.one(cc="reno", sack=False, loss=p)["bps"] / pftk(p) - 1 for p in LOSSES]
    return f"{100 * min(shares):.0f} to {percent(max(shares), 0)}"


#: Of a segment, in bits; of the path and of the timer, in seconds.
SEGMENT, ROUND_TRIP = 1448 * 8, 0.0848
TIMEOUT = ROUND_TRIP + 0.2


def mathis(loss):
    return SEGMENT / ROUND_TRIP * (1.5 / loss) ** 0.5


def pftk(loss):
    """Padhye et al., 1998, with an ACK for each segment; of what is sent, what arrives."""
    timer = TIMEOUT * min(1, 3 * (3 * loss / 8) ** 0.5) * loss * (1 + 32 * loss**2)
    return SEGMENT * (1 - loss) / (ROUND_TRIP * (2 * loss / 3) ** 0.5 + timer)

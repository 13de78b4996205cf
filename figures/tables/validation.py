"""The TCP model beside kernel TCP (docs/validation.md)."""

from figures.source import lab, simulator, table
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
    until_then=("experiments/validation/kernel.jsonl", "2026-11-20"),
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


#: Of a segment, in bits; of the path and of the timer, in seconds.
SEGMENT, ROUND_TRIP = 1448 * 8, 0.0848
TIMEOUT = ROUND_TRIP + 0.2


def mathis(loss):
    return SEGMENT / ROUND_TRIP * (1.5 / loss) ** 0.5


def pftk(loss):
    """Padhye et al., 1998, with an ACK for each segment; of what is sent, what arrives."""
    timer = TIMEOUT * min(1, 3 * (3 * loss / 8) ** 0.5) * loss * (1 + 32 * loss**2)
    return SEGMENT * (1 - loss) / (ROUND_TRIP * (2 * loss / 3) ** 0.5 + timer)

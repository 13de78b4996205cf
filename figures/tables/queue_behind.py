"""The queue behind the gateway (docs/modern-snoop.md)."""

from figures.source import simulator, table
from figures.text import percent

KEEP = (
    "setup axes loss missed plain=plain.goodput mended=mended.goodput share=worst.share"
    " wire=worst.wire"
)
LOSSES = (0, 0.01, 0.05, 0.1)

chosen = simulator(
    "queue-behind",
    "tools/queue-behind --quick --seeds 4 --json {file}",
    keep=KEEP,
    agents="snoop",
    also="experiments/modern/queue-behind-quick.toml",
    runs=True,
)


@table("queue-behind", chosen)
def _(chosen):
    heads = [percent(loss) for loss in LOSSES]
    yield ["set-up", f"{heads[0]}: plain; `snoop`, share, bytes", *heads[1:]]
    for setup in dict.fromkeys(row["setup"] for row in chosen.rows()):
        yield [setup, *(cell(chosen.one(setup=setup, loss=loss)) for loss in LOSSES)]


def cell(row):
    """Goodput of both, and what is judged, bold where it misses its target."""
    judged = [
        f"**{row[each]:.2f}**" if each in row["missed"] else f"{row[each]:.2f}"
        for each in ("share", "wire")
    ]
    return f"{row['plain']:.1f}; {row['mended']:.1f}, {', '.join(judged)}"

"""What is left to mend on 802.11 (docs/wifi.md)."""

from figures.source import quote, simulator, table
from figures.text import mbps, percent

KEEP = "radio agent retries loss bps=flow_goodput_bps.0 p99=delay_ms.p99"
AIR = " ".join(
    f"{short}_{way}=each_link.air_{way}.{counter}"
    for way in ("down", "up")
    for short, counter in {
        "n": "frames",
        "lost": "lost",
        "hit": "collided",
        "left": "given_up",
    }.items()
)

retries = simulator(
    "wifi-retries",
    "airmend sim run experiments/wifi/retries.toml --set runs=10 --json",
    keep=f"{KEEP} {AIR}",
    agents="snoop",
    runs=True,
    picture="docs/img/wifi-retries.svg",
)


def given_up(results, **where):
    """The share of packets that the MAC gave up, both ways."""
    count = {}
    for row in results.rows(**where):
        for name in ("n", "lost", "hit", "left"):
            both = sum(row[f"{name}_{way}"] or 0 for way in ("down", "up"))
            count[name] = count.get(name, 0) + both
    arrived = count["n"] - count["lost"] - count["hit"]
    return count["left"] / (arrived + count["left"])


@table("wifi-retries", retries)
def _(retries):
    delay = "answer p99, plain / `snoop`, ms"
    yield ["retry limit", "packets given up", "plain, Mb/s", "`snoop`, Mb/s", delay]
    for limit in range(8):
        where = {"radio": "802.11n", "retries": limit}
        share = given_up(retries, agent="plain", **where)
        bps, p99 = (
            [retries.mean(column, agent=agent, **where) for agent in ("plain", "snoop")]
            for column in ("bps", "p99")
        )
        yield [
            limit,
            f"{100 * share:.2g} %" if share else "none seen",
            *(mbps(each, 1) for each in bps),
            " / ".join(f"{each:.0f}" for each in p99),
        ]


def of_seven_retries(retries, *limits):
    """What `snoop` has with these retry limits, of what it has with seven; 802.11n."""
    where = {"radio": "802.11n", "agent": "snoop"}
    full = retries.mean("bps", retries=7, **where)
    return sorted({f"{100 * retries.mean('bps', retries=n, **where) / full:.0f}" for n in limits})


@quote("wifi-no-retry", retries)
def _(retries):
    return f"{of_seven_retries(retries, 0)[0]} %"


@quote("wifi-few-retries", retries)
def _(retries):
    shares = of_seven_retries(retries, 1, 2, 3)
    return f"{shares[0]} to {shares[-1]} %"


@table("wifi-retries-without-aggregates", retries)
def _(retries):
    yield ["retry limit", "plain, Mb/s", "`snoop`, Mb/s"]
    for limit in range(8):
        where = {"radio": "802.11a", "retries": limit}
        agents = ("plain", "snoop")
        yield [limit, *(mbps(retries.mean("bps", agent=agent, **where), 1) for agent in agents)]


frame_error = simulator(
    "wifi-frame-error",
    "airmend sim run experiments/wifi/frame-error.toml --set runs=10 --json",
    keep=KEEP,
    agents="snoop",
    runs=True,
    picture="docs/img/wifi-frame-error.svg",
)


@table("wifi-frame-error", frame_error)
def _(error):
    heads = [f"{agent}, {limit} retries" for limit in (3, 7) for agent in ("plain", "`snoop`")]
    yield ["frame errors", *heads]
    for loss in (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5):
        means = [
            error.mean("bps", loss=loss, retries=limit, agent=agent)
            for limit in (3, 7)
            for agent in ("plain", "snoop")
        ]
        yield [percent(loss), *(mbps(mean, 1) for mean in means)]


stations = simulator(
    "wifi-stations",
    "airmend sim run experiments/wifi/stations.toml --set 'sweep.retries.values=[7]' --json",
    keep=f"agent stations flows=flow_goodput_bps delays=flow_delay_ms {AIR}",
    agents="snoop",
    runs=True,
)


@quote("wifi-harm", retries, stations)
def _(retries, stations):
    """The most that `snoop` has less than plain TCP where the MAC retries seven times."""
    where = [{"radio": radio, "retries": 7} for radio in ("802.11n", "802.11a")]
    pairs = [
        [retries.mean("bps", agent=agent, **each) for agent in ("plain", "snoop")]
        for each in where
    ]
    for number in (1, 2, 5, 10, 20):
        pairs.append([together(stations, agent, number) for agent in ("plain", "snoop")])
    return percent(max(1 - mended / plain for plain, mended in pairs), 1)


def together(stations, agent, number):
    """All downloads of a run, in bits per second; flows without delays are the downloads."""
    rows = stations.rows(agent=agent, stations=number)
    pairs = [pair for row in rows for pair in zip(row["flows"], row["delays"])]
    return sum(bps for bps, delay in pairs if not delay) / len(rows)


@table("wifi-stations", stations)
def _(stations):
    yield [
        "stations",
        "packets given up",
        "plain, Mb/s",
        "`snoop`, Mb/s",
        "answer p99, plain / `snoop`, ms",
    ]
    for number in (1, 2, 5, 10, 20):
        share = given_up(stations, agent="plain", stations=number)
        late = []
        for agent in ("plain", "snoop"):
            rows = stations.rows(agent=agent, stations=number)
            waits = [delay["p99"] for row in rows for delay in row["delays"] if delay]
            late.append(sum(waits) / len(waits))
        yield [
            number,
            f"{100 * share:.2g} %" if share else "none seen",
            *(mbps(together(stations, agent, number), 1) for agent in ("plain", "snoop")),
            " / ".join(f"{wait:.0f}" for wait in late),
        ]

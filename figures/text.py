"""How figures are written."""


def mbps(bits_per_second: float, digits: int = 2) -> str:
    """Bits per second in Mb/s."""
    return f"{bits_per_second / 1e6:.{digits}f}"


def percent(share: float, digits: int | None = None) -> str:
    """A share in percent; without digits as many as it needs."""
    return f"{100 * share:.{digits}f} %" if digits is not None else f"{round(100 * share, 6):g} %"

"""What a source of figures is made of: recorded results, and the tables and quotes made of them.

Sources are in figures/tables. `docs/figures.md` says how to write one.
"""

import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "figures" / "recorded"
WORLDS = ("simulator", "lab")


@dataclass
class Results:
    """The recorded results of some commands: a line that says what made them, and JSON lines."""

    name: str
    #: One of `WORLDS`, or None of figures that were typed.
    world: str | None
    #: Each prints JSON lines, or writes them to `{file}`.
    commands: list[str]
    #: The columns that are kept: `column`, or `name=path.to.column`.
    keep: list[str]
    #: Folders below proto/src/agents whose change makes the results stale.
    agents: list[str]
    #: Further files of the same kind, such as scenarios that no command names.
    also: list[str]
    #: Of the simulator's lines the runs instead of their summaries.
    runs: bool
    #: What a command draws to `{picture}`, or `airmend report` of all lines.
    picture: str | None = None

    @property
    def file(self) -> Path:
        return RECORDED / f"{self.name}.jsonl"

    @property
    def is_recorded(self) -> bool:
        return self.file.exists()

    @cached_property
    def lines(self) -> list[Any]:
        """All lines of the file."""
        if not self.is_recorded:
            raise LookupError(f"nothing is recorded of {self.name}: make figures RUN={self.name}")
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    def made(self) -> dict:
        """What made the results: command, revision, date, machine, and hashes of the sources."""
        return self.lines[0]["made"]

    def rows(self, **where: object) -> list[dict]:
        """The lines in which each of these columns has this value."""
        lines = [line for line in self.lines if "made" not in line]
        wanted = {key: as_recorded(value) for key, value in where.items()}
        return [line for line in lines if all(line.get(key) == wanted[key] for key in wanted)]

    def one(self, **where: object) -> dict:
        """The only such line."""
        found = self.rows(**where)
        if len(found) != 1:
            raise LookupError(f"{self.name} has {len(found)} lines with {where}, not one")
        return found[0]

    def median(self, column: str, **where: object) -> float:
        """The median of a column over such lines."""
        return statistics.median(self.each(column, **where))

    def mean(self, column: str, **where: object) -> float:
        """The mean of a column over such lines."""
        return statistics.fmean(self.each(column, **where))

    def deviation(self, column: str, **where: object) -> float:
        """The standard deviation of a column over such lines."""
        return statistics.stdev(self.each(column, **where))

    def each(self, column: str, **where: object) -> list[float]:
        """A column of such lines; there must be one."""
        found = [row[column] for row in self.rows(**where)]
        if not found:
            raise LookupError(f"{self.name} has no line with {where}")
        return found

    def thinned(self, line: dict) -> dict:
        """The columns of a line that are kept, by their names here."""
        kept = {}
        for column in self.keep:
            name, _, path = column.rpartition("=")
            value: object = line
            for part in path.split("."):
                if isinstance(value, list):
                    value = value[int(part)] if int(part) < len(value) else None
                else:
                    value = value.get(part) if isinstance(value, dict) else None
            kept[name or path] = as_recorded(value)
        return kept


def as_recorded(value: object) -> object:
    """A value as lines have it: five digits of a number with a fraction."""
    return float(f"{value:.5g}") if isinstance(value, float) else value


@dataclass
class Figure:
    """A table or a quote: what stands between two markers of a document."""

    name: str
    results: tuple[Results, ...]
    make: Callable[..., Any]
    is_table: bool


ALL_RESULTS: dict[str, Results] = {}
ALL_FIGURES: dict[str, Figure] = {}


def simulator(
    name: str,
    *commands: str,
    keep: str,
    agents: str = "",
    also: str = "",
    runs: bool = False,
    picture: str | None = None,
) -> Results:
    """Results of `airmend sim run`: the summary of each point, or its runs."""
    kept, code, more = keep.split(), agents.split(), also.split()
    made_by = list(commands)
    return _add(Results(name, "simulator", made_by, kept, code, more, runs, picture))


def lab(
    name: str,
    *commands: str,
    keep: str,
    agents: str = "",
) -> Results:
    """Results of `airmend lab`, each run a line."""
    kept, code = keep.split(), agents.split()
    return _add(Results(name, "lab", list(commands), kept, code, [], True))


def typed(name: str) -> Results:
    """Figures that were typed: each line is a row, the first one the heads."""
    return _add(Results(name, None, [], [], [], [], True))


def table(name: str, *results: Results) -> Callable:
    """The function gets the results and yields rows, the heads first."""
    return lambda make: _add_figure(Figure(name, results, make, True))


def quote(name: str, *results: Results) -> Callable:
    """The function gets the results and returns the text."""
    return lambda make: _add_figure(Figure(name, results, make, False))


def _add(results: Results) -> Results:
    if ALL_RESULTS.setdefault(results.name, results) is not results:
        raise ValueError(f"two results have the name {results.name}")
    return results


def _add_figure(figure: Figure) -> Callable:
    if ALL_FIGURES.setdefault(figure.name, figure) is not figure:
        raise ValueError(f"two figures have the name {figure.name}")
    return figure.make


def rows_as_typed(results: Results) -> list[list[str]]:
    """A typed table as it stands."""
    return results.lines[1:]

"""Writes the figures of the documents from recorded results (docs/figures.md).

python3 -m figures                     write the tables and quotes between the markers
python3 -m figures --check             say what differs, and write nothing
python3 -m figures --run simulator     run what the simulator's results come from, and write
python3 -m figures --run NAME          the same of these results
python3 -m figures --list              all results
"""

import argparse
import importlib
import sys
import time
from datetime import date

sys.dont_write_bytecode = True

from figures import documents, record, source  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="say what differs, write nothing")
    parser.add_argument("--list", action="store_true", help="list the results")
    parser.add_argument(
        "--run", nargs="+", default=[], metavar="NAME", help="simulator, lab, or results"
    )
    options = parser.parse_args()
    load()
    if options.list:
        for results in source.ALL_RESULTS.values():
            print(results.name, results.world or "typed", *results.commands, sep="\n    ")
        return 0
    if not options.check:
        run(options.run)
        documents.write(date.today())
    found = list(documents.problems())
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


def load() -> None:
    """All sources; and a typed table for each recorded file that no source names."""
    for file in sorted((source.ROOT / "figures/tables").glob("*.py")):
        importlib.import_module(f"figures.tables.{file.stem}")
    for file in sorted(source.RECORDED.glob("*.jsonl")):
        if file.stem not in source.ALL_RESULTS:
            results = source.typed(file.stem)
            if "typed" not in results.made():
                sys.exit(f"figures: no source has {file.relative_to(source.ROOT)}")
            source.table(file.stem, results)(source.rows_as_typed)


def run(names: list[str]) -> None:
    every = source.ALL_RESULTS.values()
    chosen = [each for each in every if each.commands and {each.name, each.world} & set(names)]
    known = {each.name for each in every} | set(source.WORLDS)
    for name in names:
        if name not in known:
            sys.exit(f"figures: no results have the name {name!r}; --list has all")
    if not chosen:
        if names:
            sys.exit(f"figures: {' '.join(names)}: typed figures cannot be made again")
        return
    record.build()
    revision = record.revision()
    for results in chosen:
        begin = time.monotonic()
        record.record(results, revision)
        print(f"{results.name}: {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())

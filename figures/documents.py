"""What stands between the markers of the documents."""

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from figures.record import changed_since
from figures.source import ALL_FIGURES, ALL_RESULTS, ROOT, Figure, Results

PLACES = {"simulator": "simulator", "lab": "laboratory"}
#: Days after which results are stale if what they were made from has changed.
PATIENCE = 14
#: Not in backquotes, where a document speaks of markers.
MARKED = re.compile(r"((?<!`)<!-- figures:([\w.-]+) -->)(.*?)(<!-- /figures -->)", re.DOTALL)
EXEMPT = re.compile(r"<!-- figures: none, \S.* -->$")
#: Words that come and go with the calendar, which a check must not see.
STALE = re.compile(r" \*Stale: [^*\n]*\*| \(stale\)")
PICTURE = re.compile(r"!\[[^]]*\]\((?:docs/|\.\./)?(img/[^)]*)\)$")
#: A cell that begins with a number, behind the first column, makes a table one of figures.
FIGURES = re.compile(r"\|[^|]*\|(?:.*\|)? *(?:\*\*)?[+\-−×]? ?\d")

#: A rate or a share with a fraction, or a spread, was measured: settings and wishes are round.
MEASURED = re.compile(r"\d\.\d+ (?:[kMG]b/s|%)|\d ± \d")
#: What a sentence quotes from a terminal.
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
#: Dated pages, which keep the figures of their day.
DIARY = "docs/lab-notes/"


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def write(today: date) -> None:
    """Makes the figures of all documents anew; those that cannot be made stay as they are."""
    for document in documents():
        text = document.read_text()
        new = MARKED.sub(lambda found: made_anew(found, document, today), text)
        if new != text:
            document.write_text(new)


def made_anew(found: re.Match, document: Path, today: date) -> str:
    """The markers with what belongs between them."""
    try:
        return found[1] + content(found[2], document, today) + found[4]
    except (LookupError, ValueError):
        return found[0]


def content(name: str, document: Path, today: date) -> str:
    figure = ALL_FIGURES.get(name)
    if figure is None:
        raise LookupError(f"no source has a figure {name!r}")
    made = figure.make(*figure.results)
    if not figure.is_table:
        is_stale = any(stale(results, today) for results in figure.results)
        return f"{made} (stale)" if is_stale else f"{made}"
    heads, *rows = made
    if any(len(row) != len(heads) for row in rows):
        raise ValueError(f"rows of the table {name} are longer or shorter than its heads")
    lines = [line(heads), "|---" * len(heads) + "|", *map(line, rows)]
    return "\n" + "\n".join(lines) + f"\n\n{caption(figure, document, today)}\n"


def line(cells: list[object]) -> str:
    return "|" + "".join(f" {cell} |" if cell != "" else " |" for cell in cells)


def caption(figure: Figure, document: Path, today: date) -> str:
    """Where the results are, what made them and when; and whether they are stale."""
    up = "../" * (len(document.relative_to(ROOT).parts) - 1)
    origins = "; ".join(
        f"[{results.name}]({up}{results.file.relative_to(ROOT)}): {origin(results)}"
        for results in figure.results
    )
    changed = sorted({path for results in figure.results for path in stale(results, today)})
    note = f" *Stale: changed since: {', '.join(changed)}.*" if changed else ""
    return f"*{origins}.*{note}"


def origin(results: Results) -> str:
    """Where, by what and when the results were made."""
    made = results.made()
    program = f"{PLACES.get(results.world or '')}, {made.get('revision', 'revision unknown')}"
    return f"{made.get('typed', program)}, {made['date']}"


def stale(results: Results, today: date) -> list[str]:
    """What has changed since old results were made."""
    made = results.made()
    if (today - date.fromisoformat(made["date"])).days <= PATIENCE:
        return []
    return changed_since(made.get("from", {}))


def problems() -> Iterator[str]:
    """What is wrong in documents and sources, whatever the day is."""
    used = set()
    for document in documents():
        text, path = document.read_text(), document.relative_to(ROOT)
        for found in MARKED.finditer(text):
            used.add(found[2])
            wrong = problem(found, document)
            if wrong:
                yield f"{path}:{text.count(chr(10), 0, found.start()) + 1}: {wrong}"
        yield from unmarked(text, str(path))
        if not path.as_posix().startswith(DIARY):
            yield from typed(text, str(path))
    for name in sorted(ALL_FIGURES.keys() - used):
        yield f"no document has the figure {name}"
    for results in ALL_RESULTS.values():
        if (
            results.is_recorded
            and results.made().get("commands", results.commands) != results.commands
        ):
            yield f"{results.name} has other commands now: make figures RUN={results.name}"


def problem(found: re.Match, document: Path) -> str | None:
    """What is wrong between two markers."""
    try:
        wanted = content(found[2], document, date.today())
    except (LookupError, ValueError) as error:
        return f"{error}"
    if STALE.sub("", found[3]) != STALE.sub("", wanted):
        return f"{found[2]} is not what its source says: make figures"
    return None


def typed(text: str, path: str) -> Iterator[str]:
    """Measured figures in sentences, without a marker."""
    for part in (MARKED, CODE):
        text = part.sub(lambda found: "\n" * found[0].count("\n"), text)
    for at, row in enumerate(text.split("\n")):
        found = None if row.startswith("|") else MEASURED.search(row)
        if found:
            yield (
                f"{path}:{at + 1}: a figure without a source ({found[0]}): put it between markers, "
                f"or into {DIARY}"
            )


def unmarked(text: str, path: str) -> Iterator[str]:
    """Tables of figures without a marker, and pictures that no source draws."""
    lines = MARKED.sub(lambda found: "\n" * found[0].count("\n"), text).split("\n")
    drawn = {results.picture for results in ALL_RESULTS.values()}
    for at, row in enumerate(lines):
        picture = PICTURE.match(row)
        if picture and f"docs/{picture[1]}" not in drawn and not EXEMPT.match(lines[at - 1]):
            yield (
                f"{path}:{at + 1}: a picture that no source draws: "
                "<!-- figures: none, REASON --> on the line before it"
            )
        if not re.match(r"\|[ :|-]+\|$", row) or "-" not in row:
            continue
        body = []
        for cells in lines[at + 1 :]:
            if not cells.startswith("|"):
                break
            body.append(re.sub(r"`[^`]*`", "code", cells))
        is_exempt = at >= 2 and EXEMPT.match(lines[at - 2])
        if any(map(FIGURES.match, body)) and not is_exempt:
            yield (
                f"{path}:{at}: a table of figures without a source: put it between markers, or "
                "<!-- figures: none, REASON --> on the line before it"
            )

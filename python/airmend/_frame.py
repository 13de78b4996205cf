"""From JSON lines to Arrow tables and data frames."""

from __future__ import annotations

import glob
import gzip
import json
import os
import zlib
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.json as pa_json

from airmend._airmend import Error

#: What the lines of results are: runs, the summary of each point, or packets of a trace.
Rows = Literal["runs", "summaries", "trace"]

#: Arrow infers types from blocks of this size, each of which must hold whole lines.
_BLOCK = 1 << 26


def table(lines: bytes) -> Any:
    """The Arrow table of JSON lines. A field of an object becomes a column such as `links.lost`."""
    block = min(max(len(lines), 1 << 10), _BLOCK)
    options = pa_json.ReadOptions(block_size=block)
    try:
        read = pa_json.read_json(pa.BufferReader(lines), read_options=options)
        if any(pa.types.is_list(field.type) for field in read.schema):
            # While it infers types, the reader loses nulls before the first value in lists.
            known = pa_json.ParseOptions(explicit_schema=read.schema)
            read = pa_json.read_json(pa.BufferReader(lines), options, known)
    except pa.ArrowInvalid:
        # A swept setting may be a number in one line and a word in another.
        read = _mixed_table(lines)
    for at, column in enumerate(read.columns):
        if pa.types.is_list(column.type) and pa.types.is_null(column.type.value_type):
            read = read.set_column(at, read.column_names[at], _of_nulls(column))
    while any(pa.types.is_struct(field.type) for field in read.schema):
        read = read.flatten()
    return ordered(read)


def ordered(read: Any) -> Any:
    """The same columns, those of objects behind the others by name: which come first in lines
    depends on which run incremented a counter first.
    """
    names: list[str] = read.column_names
    return read.select([n for n in names if "." not in n] + sorted(n for n in names if "." in n))


def frame(lines: bytes, rows: Rows) -> pd.DataFrame:
    """The data frame of the lines of this kind."""
    chosen = _of_kind(lines, rows)
    if not chosen:
        return pd.DataFrame()
    result: pd.DataFrame = table(chosen).to_pandas()
    return result


def read_lines(files: Sequence[Path], rows: Rows) -> pd.DataFrame:
    """The data frame of the lines of this kind in all files, one after the other."""
    tables = []
    for file in files:
        try:
            lines = file.read_bytes()
            chosen = _of_kind(gzip.decompress(lines) if file.suffix == ".gz" else lines, rows)
        except (OSError, EOFError, zlib.error) as error:
            why = getattr(error, "strerror", None) or error
            raise Error(f"{file}: it cannot be read: {why}") from None
        if chosen:
            try:
                tables.append(table(chosen))
            except (ValueError, OverflowError, RecursionError, pa.ArrowException) as error:
                raise Error(f"{file}: it holds a line that is no JSON object: {error}") from None
    return concatenated(tables).to_pandas() if tables else pd.DataFrame()


def concatenated(tables: Sequence[Any]) -> Any:
    """One table; what one of them lacks is null there."""
    try:
        return ordered(pa.concat_tables(tables, promote_options="permissive"))
    except pa.ArrowException as error:
        raise Error(f"these results have no columns in common types: {error}") from None


def files_of(pattern: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Path]:
    """The files of a path, of a pattern such as `out/*.jsonl`, or of several of them."""
    if isinstance(pattern, (str, os.PathLike)):
        pattern = [pattern]
    found: list[Path] = []
    for path in pattern:
        one = os.fspath(path)
        matches = [one] if os.path.exists(one) else sorted(glob.glob(one, recursive=True))
        if not matches:
            raise Error(f"{one}: there is no such file")
        found.extend(map(Path, matches))
    return found


def check_columns(known: Iterable[str], wanted: Iterable[str | None]) -> None:
    """Refuses a column that is not known."""
    known = list(known)
    for name in wanted:
        if name is None or name in known:
            continue
        near = get_close_matches(name, known, 1)
        hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(known)}"
        raise Error(f"unknown column `{name}`; {hint}")


def _of_kind(lines: bytes, rows: Rows) -> bytes:
    if rows not in ("runs", "summaries", "trace"):
        raise Error(f'rows is "runs", "summaries" or "trace", not {rows!r}')
    chosen = [line for line in lines.splitlines() if line.strip() and _kind(line) == rows]
    return b"\n".join(chosen)


def _kind(line: bytes) -> Rows:
    if line.startswith(b'{"summary":true'):
        return "summaries"
    return "trace" if b'"kind":' in line and b'"offset":' in line else "runs"


def _of_nulls(lists: Any) -> Any:
    """Lists of nulls with all of them: Arrow's reader gives an array that lacks some."""

    def whole(chunk: Any) -> Any:
        nulls = pa.nulls(chunk.offsets[-1].as_py())
        return pa.ListArray.from_arrays(chunk.offsets, nulls, mask=chunk.is_null())

    return pa.chunked_array([whole(chunk) for chunk in lists.chunks], lists.type)


def _mixed_table(lines: bytes) -> Any:
    """As Arrow does, but what is of several types is text."""
    rows = [json.loads(line) for line in lines.splitlines() if line.strip()]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("not every line is an object")
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        kinds = {_type(value) for value in values if value is not None}
        if len(kinds) > 1:
            for row in rows:
                if not isinstance(row.get(name), (str, type(None))):
                    row[name] = json.dumps(row[name])
    return pa.Table.from_pylist(rows)


def _type(value: object) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)

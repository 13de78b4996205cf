"""The results of a sweep as a directory of Parquet files, to which a later sweep adds.

`sweep.json` says which sweep it is. Each `part-START-STOP.parquet` has the runs from number START
to before STOP, in rounds: the first repetition of every point of the sweep, then the second ones.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from airmend import _frame
from airmend._airmend import VERSION, Error
from airmend._scenario import Request

_MANIFEST = "sweep.json"
#: As many as a scenario has runs at most.
_MOST_POINTS = 1_000_000
_PART = re.compile(r"part-(\d+)-(\d+)\.parquet")


class Dataset:
    """One such directory."""

    def __init__(self, directory: Path, points: int) -> None:
        self.directory = directory
        self._points = points

    @staticmethod
    def make(directory: Path, request: Request) -> Dataset:
        """The directory of this sweep, which is made if there is none."""
        scenario = request.load()
        manifest = {
            "airmend": VERSION,
            "experiment": scenario.name,
            "points": scenario.points,
            "key": _key(request, scenario.name),
        }
        try:
            directory.mkdir(parents=True, exist_ok=True)
            # A sweep that was ended before it wrote its first file has left an unfinished one.
            if any(not _is_unfinished(file) for file in directory.iterdir()):
                known = _manifest(directory)
                if known["key"] != manifest["key"]:
                    raise Error(
                        f"{directory} has another sweep, of {known.get('experiment')} by airmend "
                        f"{known.get('airmend')}: choose another directory"
                    )
            else:
                _write(directory / _MANIFEST, json.dumps(manifest).encode())
        except OSError as error:
            raise Error(f"{directory} cannot be written: {error.strerror}") from None
        return Dataset(directory, scenario.points)

    @staticmethod
    def open(directory: Path) -> Dataset:
        """The directory of some sweep."""
        return Dataset(directory, _manifest(directory)["points"])

    def missing(self, runs: int) -> list[tuple[int, int]]:
        """The numbers from 0 to before `runs` that no part has, as ranges."""
        ranges, end = [], 0
        for start, stop, file in self._parts():
            self._part(file, stop - start, [], {})
            if start > end:
                ranges.append((end, start))
            end = max(end, stop)
        ranges.append((end, runs))
        return [(start, min(stop, runs)) for start, stop in ranges if start < min(stop, runs)]

    def write(self, start: int, stop: int, part: bytes) -> None:
        """Adds the runs from `start` to before `stop`, as `encoded`."""
        try:
            _write(self.directory / f"part-{start:09}-{stop:09}.parquet", part)
        except OSError as error:
            raise Error(f"{self.directory} cannot be written: {error.strerror}") from None

    def read(self, columns: Sequence[str] | None = None) -> Any:
        """The Arrow table of all runs, in the order of `airmend sim run`."""
        tables, numbers, known = [], [], dict[str, None]()
        for start, stop, skipped, file in self._new_parts():
            part = self._part(file, skipped + stop - start, columns, known)
            tables.append(part.slice(skipped))
            numbers.append(np.arange(start, stop))
        if columns is not None:
            _frame.check_columns(known, columns)
        if not tables:
            return pa.table({})
        number = np.concatenate(numbers)
        order = np.lexsort((number // self._points, number % self._points))
        table = _frame.concatenated(tables).take(order)
        return table.select(columns) if columns is not None else table

    def _part(
        self, file: Path, rows: int, columns: Sequence[str] | None, known: dict[str, None]
    ) -> Any:
        """The table of a part, which has as many rows as its name says."""
        try:
            with pq.ParquetFile(file) as part:
                names = part.schema_arrow.names
                known.update(dict.fromkeys(names))
                chosen = names if columns is None else [name for name in names if name in columns]
                table = part.read(columns=chosen)
            if table.num_rows != rows:
                raise ValueError(f"it has {table.num_rows} rows, and by its name {rows}")
        except (OSError, ValueError, pa.ArrowException) as error:
            raise Error(f"{file} is damaged; remove it and run the sweep again: {error}") from None
        return table

    def _parts(self) -> list[tuple[int, int, Path]]:
        matches = ((_PART.fullmatch(file.name), file) for file in self.directory.iterdir())
        return sorted((int(m[1]), int(m[2]), file) for m, file in matches if m)

    def _new_parts(self) -> Iterator[tuple[int, int, int, Path]]:
        """The runs of each part that no earlier part has, and the number of rows before them."""
        end = 0
        for start, stop, file in self._parts():
            if stop > end:
                yield max(start, end), stop, max(end - start, 0), file
                end = stop


def encoded(table: Any) -> bytes:
    """A table as the bytes of a Parquet file."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _key(request: Request, name: str) -> str:
    """Changes with all that changes results. The number of runs does not: more are added."""
    settings = [setting for setting in request.settings if setting[0] != "runs"]
    content = json.dumps([request.version, name, request.text, settings, request.files])
    return hashlib.sha256(content.encode()).hexdigest()


def _manifest(directory: Path) -> dict[str, Any]:
    file = directory / _MANIFEST
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(manifest, dict) and "key" in manifest and _is_count(manifest.get("points")):
            return manifest
    except FileNotFoundError:
        raise Error(f"{directory} holds no sweep: it has no {_MANIFEST}") from None
    except (OSError, ValueError, RecursionError):
        pass
    raise Error(f"{file} is damaged: choose another directory, or remove this one")


def _is_count(points: object) -> bool:
    return type(points) is int and 0 < points <= _MOST_POINTS


def _is_unfinished(file: Path) -> bool:
    return file.name.startswith(f".{_MANIFEST}.")


def _write(file: Path, content: bytes) -> None:
    """Whoever looks sees all of the file or nothing, whoever else writes the same one."""
    unfinished = file.with_name(f".{file.name}.{uuid4().hex}")
    try:
        # A name that nobody has: no link is followed.
        with unfinished.open("xb") as new:
            new.write(content)
        unfinished.replace(file)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise

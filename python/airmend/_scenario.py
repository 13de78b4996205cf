"""What to run: a scenario, and the settings that take the place of its own."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from airmend._airmend import VERSION, Error, Scenario

#: A scenario file, or its text.
ScenarioSource = str | os.PathLike[str]


@dataclass(frozen=True)
class Request:
    """What to run, in a form that crosses machines."""

    file: str
    text: str
    #: Keys and their values in TOML, as those of `airmend sim run --set`.
    settings: tuple[tuple[str, str], ...]
    #: Of the package that made the request: another one may have other results.
    version: str = VERSION

    def load(self) -> Scenario:
        """The scenario; read once for as long as the same one is asked for."""
        return _load(self)


@lru_cache(maxsize=2)
def _load(request: Request) -> Scenario:
    return Scenario(request.file, request.text, list(request.settings))


def request(
    scenario: ScenarioSource,
    overrides: Mapping[str, object],
    over: Mapping[str, object] | None = None,
    runs: int | None = None,
) -> Request:
    """The request of these arguments of `simulate` and `sweep`."""
    file, text = _read(scenario)
    settings = [(_key(name), to_toml(name, value)) for name, value in overrides.items()]
    settings.extend(_sweeps(text, over or {}))
    if runs is not None:
        settings.append(("runs", to_toml("runs", runs)))
    return Request(file, text, tuple(settings))


def _read(scenario: ScenarioSource) -> tuple[str, str]:
    """Name and text; text is what has more than one line."""
    if isinstance(scenario, str) and "\n" in scenario:
        return "scenario", scenario
    file = os.fspath(scenario)
    try:
        return file, Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise Error(f"{file}: it cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Error(f"{file}: it cannot be read: it is no text in UTF-8") from None


def _key(name: str) -> str:
    """Of a keyword, which has no dots: `links__air__rate` is `links.air.rate`."""
    return name.replace("__", ".")


def _sweeps(text: str, over: Mapping[str, object]) -> Iterable[tuple[str, str]]:
    known = _known_sweeps(text)
    for key, values in over.items():
        key = _key(key)
        name = key.replace(".", "_")
        if isinstance(values, Mapping):
            yield f"sweep.{name}", f"{{ cases = {to_toml(key, values)} }}"
            continue
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise Error(f"the values of {key} must be a list, or cases by name, not {values!r}")
        if name not in known:
            yield f"sweep.{name}.key", to_toml(key, key)
        yield f"sweep.{name}.values", to_toml(key, values)


def _known_sweeps(text: str) -> Iterable[str]:
    try:
        sweep = tomllib.loads(text).get("sweep", {})
    except tomllib.TOMLDecodeError:
        # The simulator's reader says what is wrong, and where.
        return ()
    return sweep if isinstance(sweep, dict) else ()


def to_toml(name: str, value: object) -> str:
    """A value in TOML; `name` stands for it in errors. Takes NumPy's values and arrays as well."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str() | os.PathLike():
            # JSON's text is a basic string of TOML.
            return json.dumps(os.fspath(value), ensure_ascii=False).replace("\x7f", "\\u007f")
        case Mapping():
            entries = (
                f"{to_toml(name, str(key))} = {to_toml(f'{name}.{key}', inner)}"
                for key, inner in value.items()
            )
            return "{ " + ", ".join(entries) + " }"
        case Iterable():
            return "[" + ", ".join(to_toml(name, inner) for inner in value) + "]"
    kind = type(value).__name__
    raise Error(f"{name} is {kind}; write a number, a text, true or false, a list or a dict")

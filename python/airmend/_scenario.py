"""What to run: a scenario, and the settings that take the place of its own."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from airmend._airmend import VERSION, Error, Scenario

#: As many bytes as the simulator takes.
_MOST_BYTES = 16 << 20

#: A scenario file, or its text.
ScenarioSource = str | os.PathLike[str]


@dataclass(frozen=True)
class Request:
    """What to run, in a form that crosses machines."""

    file: str
    text: str
    #: Keys and their values in TOML, as those of `airmend sim run --set`.
    settings: tuple[tuple[str, str], ...]
    #: Names and texts of the trace files that the scenario names.
    files: tuple[tuple[str, str], ...] = ()
    #: Of the package that made the request: another one may have other results.
    version: str = VERSION

    def load(self) -> Scenario:
        """The scenario; read once for as long as the same one is asked for."""
        scenario = _latest.get(self)
        if scenario is None:
            settings = list(self.settings)
            scenario = _keep(self, Scenario(self.file, self.text, settings, dict(self.files)))
        return scenario


#: The scenario that was read last: a sweep asks for the same one again and again.
_latest: dict[Request, Scenario] = {}


def _keep(request: Request, scenario: Scenario) -> Scenario:
    _latest.clear()
    _latest[request] = scenario
    return scenario


def request(
    scenario: ScenarioSource,
    overrides: Mapping[str, object],
    over: Mapping[str, object] | None = None,
    runs: int | None = None,
) -> Request:
    """The request of these arguments of `simulate` and `sweep`."""
    is_text = isinstance(scenario, str) and "\n" in scenario
    file, text = ("scenario", str(scenario)) if is_text else _read(os.fspath(scenario))
    settings = [(_key(name), to_toml(name, value)) for name, value in overrides.items()]
    settings.extend(_sweeps(text, over or {}))
    if runs is not None:
        settings.append(("runs", to_toml("runs", runs)))
    for given in (text, *chain.from_iterable(settings)):
        _check_text(given)
    # The files that it names stand beside the scenario here, and nowhere on another machine.
    read = Scenario(file, text, settings, {} if is_text else None)
    wanted = Request(file, text, tuple(settings), tuple(sorted(read.files.items())))
    _keep(wanted, read)
    return wanted


def _read(file: str) -> tuple[str, str]:
    """Its name and its text."""
    try:
        with Path(file).open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise Error(f"{file}: it cannot be read: {error.strerror}") from None
    except ValueError:
        raise Error(f"{file!r} is no path: it has a NUL") from None
    if len(content) > _MOST_BYTES:
        raise Error(f"{file}: a scenario has at most {_MOST_BYTES >> 20} MiB")
    try:
        return file, content.decode()
    except UnicodeDecodeError:
        raise Error(f"{file}: it cannot be read: it is no text in UTF-8") from None


def _check_text(given: str) -> None:
    try:
        given.encode()
    except UnicodeEncodeError as error:
        found = f"{given[error.start]!r} in {given[:40]!r}"
        raise Error(f"{found} is no character: write text that UTF-8 has") from None


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
    except (ValueError, RecursionError):
        # The simulator's reader says what is wrong, and where.
        return ()
    return sweep if isinstance(sweep, dict) else ()


def to_toml(name: str, value: object) -> str:
    """A value in TOML; `name` stands for it in errors. Takes NumPy's values and arrays as well."""
    try:
        return _words(name, value)
    except RecursionError:
        raise Error(f"{name} holds itself, or is nested too deep") from None


def _words(name: str, value: object) -> str:
    if hasattr(value, "tolist"):
        value = value.tolist()
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            if not -(2**63) <= value < 2**63:
                raise Error(f"{name} is too large: whole numbers have 64 bits")
            return repr(value)
        case float():
            return repr(value)
        case str() | os.PathLike():
            # JSON's text is a basic string of TOML.
            return json.dumps(os.fspath(value), ensure_ascii=False).replace("\x7f", "\\u007f")
        case Mapping():
            entries = (
                f"{_words(name, str(key))} = {_words(f'{name}.{key}', inner)}"
                for key, inner in value.items()
            )
            return "{ " + ", ".join(entries) + " }"
        case Iterable():
            return "[" + ", ".join(_words(name, inner) for inner in value) + "]"
    kind = type(value).__name__
    raise Error(f"{name} is {kind}; write a number, a text, true or false, a list or a dict")

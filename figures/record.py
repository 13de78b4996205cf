"""Running the commands of results, and recording what they print."""

import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path

from figures.source import RECORDED, ROOT, Results


def build() -> None:
    """The program of which results are recorded is a release of this tree."""
    command = ["tools/cargo", "build", "--release", "--locked", "--quiet", "-p", "airmend"]
    subprocess.run(command, cwd=ROOT, check=True)


def record(results: Results, revision: str) -> None:
    """Runs the commands and records the columns that are kept, with what made them."""
    with tempfile.TemporaryDirectory() as folder:
        lines = [line for command in results.commands for line in printed(command, results, folder)]
        if results.picture and not any("{picture}" in command for command in results.commands):
            draw(lines, results.picture, Path(folder))
    lines = [line for line in lines if bool(line.get("summary")) != results.runs]
    made = {
        "commands": results.commands,
        "revision": revision,
        "date": datetime.now(timezone.utc).date().isoformat(),
        "machine": machine(),
        "from": {path: digest(path) for path in sources(results)},
    }
    rows = [{"made": made}, *(results.thinned(line) for line in lines)]
    text = "".join(
        json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows
    )
    (RECORDED / f"{results.name}.jsonl").write_text(text)


def program() -> str:
    return f"{Path(os.environ.get('CARGO_TARGET_DIR', ROOT / 'target')).resolve()}/release/airmend"


def printed(command: str, results: Results, folder: str) -> list[dict]:
    """The JSON lines that a command prints or writes to `{file}`; `{airmend}` is the program."""
    file = Path(folder) / "results.json"
    places = {"{file}": str(file), "{picture}": str(results.picture), "{airmend}": program()}
    words = shlex.split(command)
    for place, path in places.items():
        words = [word.replace(place, path) for word in words]
    words[0] = program() if words[0] == "airmend" else words[0]
    done = subprocess.run(words, cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True)
    # tools/queue-behind ends with 1 where cells miss their targets.
    if done.returncode and not file.exists():
        sys.exit(f"figures: {command} ended with status {done.returncode}")
    text = file.read_text() if file.exists() else done.stdout
    file.unlink(missing_ok=True)
    return [json.loads(line) for line in text.splitlines()]


def draw(lines: list[dict], picture: str, folder: Path) -> None:
    """What `airmend report` draws of all lines."""
    (folder / "lines").mkdir()
    (folder / "lines/all.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = [program(), "report", f"{folder}/lines", "--out", f"{folder}/report"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    shutil.copyfile(folder / "report" / Path(picture).name, ROOT / picture)


def revision() -> str:
    """The commit, and whether what results come from differs from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    parts = ["Cargo.lock", "Cargo.toml", "cli/src", "experiments", "live", "proto", "sim"]
    changed = git("status", "--porcelain", "--", *parts)
    return git("describe", "--always") + ("-dirty" if changed else "")


def machine() -> str:
    """The processors and the kernel."""
    try:
        info = Path("/proc/cpuinfo").read_text()
    except OSError:
        info = ""
    model = re.search(r"^model name\s*: (.*)$", info, re.MULTILINE)
    name = model[1] if model else platform.machine()
    return f"{os.cpu_count()} × {name}, {platform.system()} {platform.release()}"


def sources(results: Results) -> list[str]:
    """What the results come from: the files of their commands, and the code of their agents."""
    words = [word for command in results.commands for word in shlex.split(command)]
    files = {word for word in words if word.startswith("experiments/")} | set(results.also)
    return sorted(files) + [f"proto/src/agents/{agent}" for agent in results.agents]


def digest(path: str) -> str:
    """A hash of a file, or of all files of a folder."""
    place = ROOT / path
    files = sorted(place.rglob("*")) if place.is_dir() else [place]
    hashed = hashlib.sha256()
    for file in files:
        if file.is_file():
            hashed.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + file.read_bytes())
    return hashed.hexdigest()[:12]


def changed_since(hashes: dict[str, str]) -> list[str]:
    """The files and folders whose hash is no longer this."""
    return [path for path, hashed in hashes.items() if digest(path) != hashed]

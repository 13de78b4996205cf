"""The native part: scenarios, and their results as JSON lines."""

from typing import Final, final

__all__ = ["VERSION", "Error", "Scenario"]

VERSION: Final[str]

class Error(ValueError):
    """What is wrong, in one sentence."""

@final
class Scenario:
    """A scenario file with the settings that take the place of its own."""

    def __new__(
        cls,
        file: str,
        text: str,
        settings: list[tuple[str, str]],
        files: dict[str, str] | None = None,
    ) -> Scenario:
        """Reads a scenario from the text of `file`, in TOML.

        `settings` are keys and values as those of `airmend sim run --set`. `files` are the texts of
        the trace files that it names; without them they are read beside `file`. Raises `Error`.
        """

    @property
    def name(self) -> str:
        """The name of the experiment in its results."""

    @property
    def title(self) -> str:
        """What is measured, in one line."""

    @property
    def files(self) -> dict[str, str]:
        """The texts of the trace files that it names, by the names that it has for them."""

    @property
    def swept(self) -> list[str]:
        """The names of the swept settings, the one that varies fastest last."""

    @property
    def points(self) -> int:
        """The number of points of the sweep."""

    @property
    def runs(self) -> int:
        """The number of runs of each point."""

    def run(self, jobs: int = 0) -> tuple[bytes, bytes]:
        """Does all runs on `jobs` threads (0: one for each core).

        Returns the bytes of the files that `airmend sim run` writes: the results, and the trace,
        which is compressed.
        """

    def run_rounds(self, start: int, stop: int, jobs: int = 0) -> bytes:
        """Does the runs from number `start` to before number `stop`; returns their lines.

        Runs are numbered in rounds: the first repetition of every point, then the second ones, so
        that more repetitions change no number.
        """

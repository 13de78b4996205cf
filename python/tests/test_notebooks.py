"""The notebooks run, and are stored without what they printed."""

import json
from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def test_each_seed_paper_has_one() -> None:
    papers = ["lack", "snoop-opnet", "snoop95", "tulip99"]
    assert [notebook.stem for notebook in NOTEBOOKS] == papers


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_it_runs_and_is_stored_without_outputs(notebook: Path) -> None:
    cells = json.loads(notebook.read_text())["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
    document = nbformat.read(notebook, as_version=4)
    place = {"metadata": {"path": notebook.parent}}
    client = nbclient.NotebookClient(
        document, timeout=300, kernel_name="python3", resources=place
    )
    client.execute()
    pictures = [
        output
        for cell in document.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    assert pictures

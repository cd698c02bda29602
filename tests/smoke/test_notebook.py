"""The first tutorial as a notebook: a cell for each code block, executed in a real kernel."""

import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.extra
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

TUTORIAL = Path(__file__).parents[2] / "docs/tutorials/first-comparison.md"


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Write the tutorial as .ipynb, execute it, and return it as read back."""
    code = re.findall(r"```python\n(.*?)```", TUTORIAL.read_text(), flags=re.DOTALL)
    cells = [nbformat.v4.new_code_cell(block) for block in [*code, "result"]]
    path = tmp_path_factory.mktemp("notebook") / "tutorial.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    opened = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    nbclient.NotebookClient(opened, timeout=900, resources=resources).execute()
    nbformat.write(opened, path)
    return nbformat.read(path, as_version=4)


def test_a_notebook_ends_in_a_verdict_and_a_student(notebook: Any) -> None:
    cells = [_text(cell) for cell in notebook.cells]
    compared = next(i for i, cell in enumerate(notebook.cells) if "lupi.compare(" in cell.source)
    assert re.search(r"\b24 of 24 runs to do\b", cells[compared])
    assert "x*" in cells[compared + 1].splitlines()[0]
    assert re.fullmatch(r"((True|False) 0\.\d+\n){3}", cells[-2])


def test_a_notebook_shows_the_comparison_as_html(notebook: Any) -> None:
    (output,) = notebook.cells[-1].outputs
    assert "<h4>" in output.data["text/html"]
    assert "distillation" in output.data["text/html"]


def _text(cell: Any) -> str:
    """Return what a cell printed, with rich's messages, which a notebook gets as HTML and text."""
    return "".join(
        output.text if output.output_type == "stream" else output.data.get("text/plain", "")
        for output in cell.outputs
    )

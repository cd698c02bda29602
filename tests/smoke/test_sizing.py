"""The page on sizing says what its script computes."""

import importlib.util
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lupi.loaders.files import read_frame

ROOT = Path(__file__).parents[2]
SIZING = ROOT / "examples/sizing"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """One of the scripts, with the words of a command line, inside this process."""

    def run(name: str, *words: object) -> None:
        monkeypatch.syspath_prepend(str(SIZING))
        monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
        runpy.run_path(str(SIZING / f"{name}.py"), run_name="__main__")

    return run


def test_the_tables_of_the_page_are_those_of_the_script(
    example: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    example("tables")
    page = (ROOT / "docs/sizing.md").read_text()
    tables = capsys.readouterr().out.strip().split("\n\n")
    assert len(tables) == 3
    for table in tables:
        assert table in page, table


def test_large_data_are_made_and_indexed(
    example: Callable[..., None], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    example("large", "table", tmp_path / "t.parquet", "--rows", 50)
    assert list(read_frame(tmp_path / "t.parquet").columns)[-3:] == ["s0", "s1", "y"]
    example("large", "images", tmp_path / "tree", "--images", 360, "--classes", 2)
    example("large", "index", tmp_path / "tree")
    assert "{'train': 150, 'val': 100, 'test': 100}" in capsys.readouterr().out


def test_a_step_of_every_kind_is_counted() -> None:
    spec = importlib.util.spec_from_file_location("measure", SIZING / "measure.py")
    assert spec is not None
    assert spec.loader is not None
    measure = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(measure)
    files = dict(measure.paper_files())
    assert "paper/sizes" in files
    network = {"name": "small-vgg", "width": 4}
    (plain,), (het,) = (
        measure.count(*measure.build(name, {}, network)) for name in ("no-xstar", "het-dropout")
    )
    assert het["flops"] > plain["flops"] > 1e6
    assert measure.saved_bytes(*measure.build("no-xstar", {}, network)) > 1e6

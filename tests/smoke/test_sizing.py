"""The page on sizing says what its script computes."""

import importlib.util
import subprocess
import sys
from pathlib import Path

from lupi.loaders.files import read_frame

ROOT = Path(__file__).parents[2]


def test_the_tables_of_the_page_are_those_of_the_script() -> None:
    script = [sys.executable, str(ROOT / "examples/sizing/tables.py")]
    done = subprocess.run(script, capture_output=True, text=True, check=True, timeout=300)
    page = (ROOT / "docs/sizing.md").read_text()
    tables = done.stdout.strip().split("\n\n")
    assert len(tables) == 6
    for table in tables:
        assert table in page, table


def test_large_data_are_made_and_indexed(tmp_path: Path) -> None:
    script = [sys.executable, str(ROOT / "examples/sizing/large.py")]
    subprocess.run([*script, "table", tmp_path / "t.parquet", "--rows", "50"], check=True)
    assert list(read_frame(tmp_path / "t.parquet").columns)[-3:] == ["s0", "s1", "y"]
    made = ["images", str(tmp_path / "tree"), "--images", "360", "--classes", "2"]
    subprocess.run([*script, *made], check=True)
    done = subprocess.run(
        [*script, "index", tmp_path / "tree"], check=True, capture_output=True, text=True
    )
    assert "{'train': 150, 'val': 100, 'test': 100}" in done.stdout


def test_a_step_of_every_kind_is_counted() -> None:
    spec = importlib.util.spec_from_file_location("measure", ROOT / "examples/sizing/measure.py")
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

"""The page on sizing says what its script computes."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_tables_of_the_page_are_those_of_the_script() -> None:
    script = [sys.executable, str(ROOT / "examples/sizing/tables.py")]
    done = subprocess.run(script, capture_output=True, text=True, check=True, timeout=300)
    page = (ROOT / "docs/sizing.md").read_text()
    tables = done.stdout.strip().split("\n\n")
    assert len(tables) == 6
    for table in tables:
        assert table in page, table

"""Records in, exact text and JSON out. Refresh with `LUPI_UPDATE_GOLDEN=1 pytest tests/golden`."""

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_records import drop_results, make_records
from rich.console import Console

from lupi.evidence.summary import Summary, summarise, to_json
from lupi.records import read_comparison
from lupi.report.terminal import summary_table

HERE = Path(__file__).parent


def finished(folder: Path) -> Path:
    return make_records(folder)


def unfinished(folder: Path) -> Path:
    make_records(folder)
    drop_results(folder, keep=70)
    return folder


def many_sizes(folder: Path) -> Path:
    return make_records(folder, sizes=(20, 40, 80, 160, 320, 640), n_seeds=4)


CASES: dict[str, Callable[[Path], Path]] = {
    "finished": finished,
    "unfinished": unfinished,
    "many-sizes": many_sizes,
}


@pytest.fixture(params=sorted(CASES))
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Summary]:
    name: str = request.param
    folder = CASES[name](tmp_path / "demo")
    return name, summarise(read_comparison(folder))


def test_terminal_text(case: tuple[str, Summary]) -> None:
    name, summary = case
    stream = io.StringIO()
    Console(file=stream, width=80).print(summary_table(summary))
    check(HERE / f"{name}.txt", stream.getvalue())


def test_summary_json(case: tuple[str, Summary]) -> None:
    name, summary = case
    text = json.dumps(rounded(to_json(summary)), indent=1, sort_keys=True) + "\n"
    check(HERE / f"{name}.json", text)


def rounded(value: Any) -> Any:
    """Nine digits: machines may add numbers up in another order."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def check(path: Path, text: str) -> None:
    if os.environ.get("LUPI_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), (
        f"{path.name} differs; if that is meant, run LUPI_UPDATE_GOLDEN=1 pytest tests/golden "
        "and read the diff"
    )

"""Records in, exact text and JSON out. Refresh with `LUPI_UPDATE_GOLDEN=1 pytest tests/golden`."""

import io
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lupi.records import Arm, read_comparison
from lupi.report.outcome import outcome
from lupi.report.tables import FORMATS
from lupi.report.terminal import SummaryTable
from lupi.verdict.results import Summary
from lupi.verdict.roles import is_candidate
from lupi.verdict.summary import summarise
from made_records import ARMS, drop_results, make_records

HERE = Path(__file__).parent


def finished(folder: Path) -> Path:
    return make_records(folder)


def unfinished(folder: Path) -> Path:
    make_records(folder)
    drop_results(folder, keep=70)
    return folder


def many_sizes(folder: Path) -> Path:
    return make_records(folder, sizes=(20, 40, 80, 160, 320, 640), n_seeds=4)


def partial_xstar(folder: Path) -> Path:
    fractions = (0, 0.01, 0.04, 0.25, 1)
    family = tuple(
        Arm(
            f"het-dropout@{100 * frac:g}%",
            "het-dropout",
            uses_xstar=frac > 0,
            xstar_frac=frac,
            family="het-dropout",
        )
        for frac in fractions
    )
    return make_records(folder, arms=(*ARMS[:2], *family), sizes=(150, 300), images=False)


CASES: dict[str, Callable[[Path], Path]] = {
    "finished": finished,
    "unfinished": unfinished,
    "many-sizes": many_sizes,
    "partial-xstar": partial_xstar,
}


@pytest.fixture(params=sorted(CASES))
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Summary]:
    name: str = request.param
    folder = CASES[name](tmp_path / "demo")
    return name, summarise(read_comparison(folder))


def test_terminal_text(case: tuple[str, Summary]) -> None:
    name, summary = case
    stream = io.StringIO()
    Console(file=stream, width=80).print(SummaryTable(summary))
    check(HERE / f"{name}.txt", stream.getvalue())


def test_summary_json(case: tuple[str, Summary]) -> None:
    name, summary = case
    text = json.dumps(rounded(summary.to_dict()), indent=1, sort_keys=True) + "\n"
    check(HERE / f"{name}.json", text)


@pytest.mark.parametrize(("kind", "suffix"), [("markdown", "md"), ("latex", "tex"), ("csv", "csv")])
def test_tables(tmp_path: Path, kind: str, suffix: str) -> None:
    text = FORMATS[kind](summarise(read_comparison(finished(tmp_path / "demo"))))
    digits = re.sub(r"\d+\.\d{9,}", lambda found: f"{float(found[0]):.9g}", text)
    check(HERE / f"finished.{suffix}", digits)


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


def test_the_label_never_contradicts_the_claim_over_all_sizes(tmp_path: Path) -> None:
    """With a claim for the mean over sizes only, the label said "no credit for x*"."""
    summary = summarise(read_comparison(make_records(tmp_path / "few", n_seeds=8)))
    arms = [
        replace(
            arm,
            cells=tuple(replace(cell, verdict="better than plain only") for cell in arm.cells),
            overall=replace(arm.cells[0], verdict="helps"),
        )
        if is_candidate(arm)
        else arm
        for arm in summary.arms
    ]
    assert outcome(replace(summary, arms=tuple(arms))).state == "helps"

"""Add a finished comparison to the published ones, or replace one.

    python tools/add_result.py runs/pcb-tiles boards

writes its scores to docs/results/boards.csv and what a verdict needs beside them to
docs/results/comparisons.yaml. Name it on a page then, and run `make pages`.
"""

import csv
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from lupi.records import Arm, ComparisonRecord, read_comparison
from lupi.verdict.summary import summarise

RESULTS = Path(__file__).parents[1] / "docs/results"
DEFAULTS = asdict(Arm("", ""))


def scores(record: ComparisonRecord) -> Iterator[tuple[Any, ...]]:
    """Yield the test score of every run, then how many runs of an arm collapsed."""
    for run in record.finished:
        assert run.result is not None
        score = run.result["metrics"]["test"][record.metric.name]
        yield run.plan.arm, run.plan.size, run.plan.seed, record.metric.name, f"{score:.6f}"
    for arm in summarise(record).arms:
        for cell in arm.cells:
            if cell.n_collapsed:
                yield arm.name, cell.size, "all", "n_collapsed", cell.n_collapsed


def facts(record: ComparisonRecord) -> dict[str, Any]:
    """Return what a verdict needs beside the scores."""
    assert record.design is not None
    assert record.looks is not None
    found: dict[str, Any] = {"comparison": record.settings["name"], "metric": record.metric.name}
    if not record.metric.higher_is_better:
        found["higher_is_better"] = False
    found["trivial"] = summarise(record).trivial
    found["design"] = {key: value for key, value in asdict(record.design).items() if value}
    found["looks"] = list(record.looks.counts)
    if questions := record.settings.get("questions"):
        found["questions"] = list(questions)
    return found


def described(arm: Arm) -> dict[str, Any]:
    """Return what differs from the defaults of an arm."""
    given = asdict(arm)
    del given["name"]
    return {key: value for key, value in given.items() if value != DEFAULTS[key]}


def main(folder: Path, name: str) -> None:
    """Write both files."""
    record = read_comparison(folder)
    with (RESULTS / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("arm", "size", "seed", "metric", "score"))
        writer.writerows(scores(record))
    path = RESULTS / "comparisons.yaml"
    others = re.sub(rf"^{name}:\n(?: .*\n)*", "", path.read_text(encoding="utf-8"), flags=re.M)
    lines = [f"{name}:"]
    lines += [f"  {key}: {_on_one_line(value)}" for key, value in facts(record).items()]
    lines += [
        "  arms:",
        *(f"    {arm.name}: {_on_one_line(described(arm))}" for arm in record.arms),
    ]
    path.write_text(others + "\n".join(lines) + "\n", encoding="utf-8")


def _on_one_line(value: Any) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, width=1000, sort_keys=False)
    return text.removesuffix("...\n").strip()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

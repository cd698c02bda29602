"""het-dropout as it comes, on the demo's digits at the demo's length of training."""

from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from lupi.core import Control
from lupi.train.run import run
from made_runs import run_from

SETTINGS: dict[str, Any] = {
    "task": {"name": "digits"},
    "network": {"width": 16, "dropout": 0.2},
    "train": {
        "epochs": 8,
        "steps_per_epoch": 85,
        "batch_size": 16,
        "lr": 0.005,
        "schedule": "fixed",
        "step_epochs": 6,
    },
    "size": 150,
}
SEEDS = range(300, 303)


@pytest.mark.slow
def test_boxes_help_and_the_boxes_of_others_do_no_harm(tmp_path: Path) -> None:
    def mean(method: str, control: Control = "real") -> float:
        results = []
        for seed in SEEDS:
            raw = {**SETTINGS, "method": method, "control": control, "seed": seed}
            settings = run_from(raw)
            results.append(run(settings, tmp_path / f"{method}-{control}-{seed}"))
        assert not any(result["collapsed"] for result in results)
        return fmean(result["metrics"]["test"]["accuracy"] for result in results)

    plain = mean("no-xstar")
    assert mean("het-dropout") > plain + 0.05
    assert mean("het-dropout", "shuffled") > plain - 0.03

"""Write the records of a comparison with 10,000 runs, to measure `lupi compare` and `lupi report`.

    python examples/sizing/many.py many       # 50 arms, 4 sizes, 50 seeds
    lupi compare many/many.yaml --out many/runs
    lupi report many/runs

One run is trained; the others are copies of it with random scores.
"""

import copy
import json
import sys
from pathlib import Path

import numpy as np
import yaml

from lupi.comparison.plan import make_plan
from lupi.comparison.settings import ComparisonSettings
from lupi.train.run import run

N_ROWS = 600


def main() -> None:
    """Write a table, the settings of the comparison and its records into a folder."""
    root = Path(sys.argv[1])
    root.mkdir(parents=True)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N_ROWS, 3))
    rows = np.column_stack([x, x[:, 0] + rng.normal(size=N_ROWS)])
    np.savetxt(root / "rows.csv", rows, "%.4f", ",", header="a,b,s,y", comments="")
    het = {
        f"het-dropout-{i}": {
            "method": "het-dropout",
            "settings": {"beta": 0.01 * i},
            "controls": ["shuffled"],
        }
        for i in range(1, 25)
    }
    settings = {
        "name": "many",
        "task": {
            "name": "table",
            "path": str(root / "rows.csv"),
            "target": "y",
            "privileged": ["s"],
        },
        "train": {"epochs": 8},
        "arms": {
            "no-xstar": {"method": "no-xstar"},
            "gaussian": {"method": "gaussian-dropout"},
            **het,
        },
        "sizes": [50, 100, 200, 300],
        "seeds": 50,
    }
    (root / "many.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    plan = make_plan(ComparisonSettings.parse(settings, "many.yaml"))
    first = root / "runs" / plan.runs[0][0].run_id
    result = run(plan.runs[0][1], first)
    metrics = (first / "metrics.jsonl").read_text()
    environment = (first / "environment.json").read_text()
    for planned, own in plan.runs[1:]:
        folder = root / "runs" / planned.run_id
        folder.mkdir()
        changed = copy.deepcopy(result)
        for scores in changed["metrics"].values():
            scores.update({name: value * rng.uniform(0.9, 1.1) for name, value in scores.items()})
        (folder / "settings.json").write_text(json.dumps(own.resolved()))
        (folder / "environment.json").write_text(environment)
        (folder / "metrics.jsonl").write_text(metrics)
        (folder / "result.json").write_text(json.dumps(changed))
    print(f"{len(plan.arms)} arms, {len(plan.runs):,} runs in {root / 'runs'}")


if __name__ == "__main__":
    main()

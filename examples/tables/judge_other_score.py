"""Judge a finished comparison by another score than the one it was about.

    python examples/tables/judge_other_score.py runs/nba mse --lower-is-better

Every run records all scores, so nothing is trained again. The rule and the controls are those of
the comparison: every arm without x*, and the arm's own with x* replaced.
"""

import argparse
import json
from pathlib import Path

import lupi


def main(folder: Path, score: str, higher_is_better: bool) -> None:
    """Read the scores of all runs, and print the verdict."""
    comparison = json.loads((folder / "comparison.json").read_text())
    scores: dict[str, list[object]] = {"arm": [], "size": [], "seed": [], "score": []}
    for run in comparison["runs"]:
        result = json.loads((folder / run["run_id"] / "result.json").read_text())
        for column in ("arm", "size", "seed"):
            scores[column].append(run[column])
        scores["score"].append(result["metrics"]["test"][score])
    networks = [arm for arm in comparison["arms"] if not arm["classical"]]
    without = [arm["name"] for arm in networks if not arm["uses_xstar"]]
    controls = {
        arm["name"]: [
            *without,
            *(o["name"] for o in networks if o["name"] == f"{arm['name']}/{o['control']}"),
        ]
        for arm in networks
        if arm["uses_xstar"] and arm["control"] == "real" and not arm["sees_xstar_at_test"]
    }
    design = {key: comparison["design"][key] for key in ("n_pool", "test", "n_test")}
    print(
        lupi.judge(
            scores,
            method=list(controls),
            controls=controls,
            metric=score,
            higher_is_better=higher_is_better,
            design=lupi.Design(**design),
        )
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("score")
    parser.add_argument("--lower-is-better", action="store_true")
    given = parser.parse_args()
    main(given.folder, given.score, not given.lower_is_better)

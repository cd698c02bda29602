"""Answers of several people, from a file with a row per answer to a verdict and a student."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from conftest import Here

ARMS = (
    "arms={no-xstar: {method: no-xstar}, confusion: {method: confusion}, "
    "het-likelihood: {method: het-likelihood, controls: [shuffled]}, "
    "pi-dual: {method: pi-dual}, tram: {method: tram, settings: {random_dim: 4, n_hidden: 16}}}"
)
SHORT = ("--set", "seeds=1", "--set", "sizes=[60]", "--set", "train.epochs=2", "--set", ARMS)


def test_from_answers_to_a_student(tmp_path: Path, here: Here) -> None:
    rng = np.random.default_rng(0)
    item = np.repeat(np.arange(60), 3)
    x = rng.normal(size=60)[item]
    true = np.where(x > 0, "yes", "no")
    who = rng.integers(0, 40, len(item))
    given = np.where((who % 2 == 0) & (rng.random(len(item)) < 0.5), "no", true)
    frame = pd.DataFrame({"item": item, "x": x, "answer": given, "who": who, "true": true})
    frame["who"] = "w" + frame["who"].astype(str)
    frame.to_csv(tmp_path / "answers.csv", index=False)
    columns = ("--target", "answer", "--privileged", "who", "--items", "item", "--gold", "true")
    _, printed, said = here("compare", "answers.csv", *columns, *SHORT, "--workers", "1", "--json")
    assert "60 (item), 3 answers each; held-out items are scored once, against true" in " ".join(
        said.split()
    )
    assert "exact copies" not in said
    summary = json.loads(printed)
    assert summary["n_finished"] == 6
    arms = {arm["name"]: arm for arm in summary["arms"]}
    assert not arms["confusion"]["uses_xstar"]
    code, out, _ = here("export", "runs/answers", "--out", "student", "--arm", "het-likelihood")
    assert code == 0, out
    frame[["x"]].head(4).to_csv(tmp_path / "new.csv", index=False)
    code, predicted, said = here("predict", "student", "new.csv", "--format", "csv")
    assert code == 0, said
    assert len(predicted.splitlines()) == 5
    assert all("yes" in line or "no" in line for line in predicted.splitlines()[1:])

"""Small students without torch: the same outputs, and whatever is unusual is left to torch."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file

import lupi
from lupi.core.gaussian import LOGVAR_MAX, LOGVAR_MIN
from lupi.errors import LupiError
from lupi.records import STUDENT
from lupi.ship import predictor
from lupi.ship.description import LOGVAR_RANGE, Target
from lupi.ship.export import export
from lupi.ship.predictor import load_predictor
from made_students import table_run, text_run

TEXTS = ["the handle is awful", "superb, superb and lovely; the lamp is superb", "unheard"]
NETWORKS: list[dict[str, Any]] = [
    {"name": "linear"},
    {},
    {"n_layers": 4, "embedding": "periodic"},
]


@pytest.mark.parametrize("network", NETWORKS, ids=str)
@pytest.mark.parametrize("target", ["hours", "late"])
def test_rows_have_the_outputs_of_torch(
    tmp_path: Path, network: dict[str, Any], target: str
) -> None:
    run = table_run(tmp_path, target, **network)
    _enlarge(run / STUDENT)
    folder = export(run, tmp_path / "shipped", "torch").folder
    rows = pd.read_csv(tmp_path / "deliveries.csv")
    for place in (run, folder):
        student = lupi.load_student(place)
        x = student.encode(rows)
        small = predictor._load_small(place)
        assert small is not None
        expected = student.outputs(x)
        assert expected.std() > 0.1
        tolerance = 1e-6 * max(1.0, expected.abs().max().item())
        np.testing.assert_allclose(small.outputs(x.numpy()), expected, rtol=0, atol=tolerance)


def test_texts_have_the_outputs_of_torch(tmp_path: Path) -> None:
    run = text_run(tmp_path)
    _enlarge(run / STUDENT)
    student = lupi.load_student(run)
    small = predictor._load_small(run)
    assert small is not None
    x = student.encode(TEXTS)
    np.testing.assert_allclose(small.outputs(x.numpy()), student.outputs(x), rtol=1e-6, atol=1e-6)
    assert small.description.unknown(x.numpy()) == {2: "no known word"}


def _enlarge(path: Path) -> None:
    """Make all weights of a short training matter."""
    made = torch.Generator().manual_seed(0)
    weights = load_file(path)
    save_file({k: w + torch.randn(w.shape, generator=made) / 4 for k, w in weights.items()}, path)


def test_the_range_of_variances_is_that_of_training() -> None:
    assert LOGVAR_RANGE == (LOGVAR_MIN, LOGVAR_MAX)
    target = Target(kind="regression", mean=5.0, std=2.0)
    (one,) = target.explain(np.array([[1.0, 99.0]]))
    assert one == {"mean": 7.0, "std": pytest.approx(2 * np.exp(4))}


@pytest.mark.parametrize("method", ["hallucination", "oracle"])
def test_students_with_more_than_the_network_are_left_to_torch(tmp_path: Path, method: str) -> None:
    run = table_run(tmp_path, "late", method)
    assert predictor._load_small(run) is None
    if method == "oracle":
        with pytest.raises(LupiError, match="can't predict without x"):
            load_predictor(run)
    else:
        x = lupi.load_student(run).encode(pd.read_csv(tmp_path / "deliveries.csv"))
        assert load_predictor(run).outputs(x.numpy()).shape == (len(x), 2)


def test_other_weights_are_refused(tmp_path: Path) -> None:
    run = table_run(tmp_path)
    weights = load_file(run / STUDENT)
    for other in (
        {**weights, "head.out.bias": torch.zeros(3)},
        {**weights, "more": torch.zeros(1)},
        {key: weight.double() for key, weight in weights.items()},
    ):
        save_file(other, run / STUDENT)
        with pytest.raises(LupiError, match="another network"):
            load_predictor(run)
    (run / STUDENT).write_bytes(b"PK")
    with pytest.raises(LupiError, match="can't be read as weights"):
        load_predictor(run)


@pytest.mark.parametrize("made", [table_run, text_run])
def test_predict_does_not_wait_for_torch(tmp_path: Path, made: Any) -> None:
    run = made(tmp_path)
    given = [str(tmp_path / "deliveries.csv")] if made is table_run else ["--input", "a lamp"]
    code = (
        "import sys\n"
        "from lupi.cli import main\n"
        f"sys.argv = ['lupi', 'predict', {str(run)!r}, *{given}]\n"
        "try: main()\n"
        "finally: sys.exit(' '.join({'torch', 'scipy', 'sklearn'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        env=dict(os.environ),
    )
    assert '"input"' in done.stdout
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "", done.stderr

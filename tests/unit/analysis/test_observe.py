import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lupi.analysis.observe import observe
from lupi.errors import LupiError
from lupi.train.checkpoint import load_weights, save_weights
from lupi.train.finished import read_finished
from lupi.train.run import run
from lupi.train.settings import RunSettings
from made_runs import run_from


def settings_of(method: str = "het-dropout", **settings: Any) -> RunSettings:
    raw = {
        "task": {"name": "digits"},
        "network": {"width": 4},
        "train": {"epochs": 2, "batch_size": 16, "lr": 0.01},
        "method": method,
        "settings": settings,
        "size": 60,
        "seed": 1,
    }
    return run_from(raw)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    path = tmp_path_factory.mktemp("runs") / "one"
    run(settings_of(sites=["trunk.site2", "head.*"], beta=0.1), path)
    return path


def test_helper_weights_stand_beside_the_student_and_not_in_it(folder: Path) -> None:
    student = load_weights(folder / "checkpoint/student.safetensors")
    helpers = load_weights(folder / "checkpoint/method.safetensors")
    assert helpers
    assert not student.keys() & helpers.keys()
    assert all(key.startswith("noise.") for key in helpers)


def test_the_student_and_its_noise_are_those_of_the_run(folder: Path) -> None:
    seen = observe(folder, 10_000)
    result = json.loads((folder / "result.json").read_text())
    assert seen.correct is not None
    assert len(seen.correct) == seen.n_held == 600
    assert seen.correct.mean() == pytest.approx(result["metrics"]["val"]["accuracy"])
    assert seen.losses.mean() == pytest.approx(result["metrics"]["val"]["loss"], rel=1e-5)
    by_name = {site.name: site for site in seen.sites}
    assert by_name.keys() == result["sites"].keys()
    place, unit = by_name["trunk.site2"], by_name["head.drop1"]
    assert (place.unit, place.variances.shape) == ("place", (600, 36))
    assert (unit.unit, unit.variances.shape) == ("unit", (600, 128))
    assert not unit.collapsed
    assert place.inside is not None
    assert place.inside.shape == (600,)
    assert seen.region_frac is not None
    assert (seen.region_frac > 0.2).all()
    assert (seen.region_frac < 0.4).all()


def test_samples_are_the_first_right_and_the_first_wrong(folder: Path) -> None:
    samples = observe(folder, 10_000).samples
    right = samples["label"] == samples["prediction"]
    assert right.tolist() == [True] * 4 + [False] * 4
    assert samples["x"].shape == samples["mask"].shape == (8, 24, 24)
    assert samples["variance/trunk.site2"].shape == (8, 6, 6)


def test_fewer_rows_are_spread_evenly(folder: Path) -> None:
    everything, some = observe(folder, 600), observe(folder, 200)
    assert len(some.losses) == 200
    assert np.allclose(some.losses, everything.losses[::3], rtol=1e-4)


def test_helpers_matter(folder: Path, tmp_path: Path) -> None:
    """Other helper weights show other noise: they are not left as they were initialised."""
    before = observe(folder, 100).sites[1].variances
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    path = copy / "checkpoint/method.safetensors"
    save_weights(path, {key: value + 0.1 for key, value in load_weights(path).items()})
    assert not np.allclose(observe(copy, 100).sites[1].variances, before)
    save_weights(path, {"other": torch.zeros(1)})
    with pytest.raises(LupiError, match="other weights than the settings"):
        observe(copy, 100)


@pytest.mark.parametrize(
    "settings",
    [
        {"sites": ["trunk.site2"], "prior": {"inside": 0, "outside": 1}, "noise": "fixed"},
        {"sites": ["trunk.site2"], "curriculum": {"tower_epochs": 1}},
    ],
    ids=["fixed", "curriculum"],
)
def test_other_kinds_of_noise(tmp_path: Path, settings: dict[str, Any]) -> None:
    run(settings_of(**settings), tmp_path)
    (site,) = observe(tmp_path, 50).sites
    assert site.unit == "place"
    assert np.isfinite(site.variances).all()


def test_what_can_t_be_analysed_is_said(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(LupiError, match="holds no finished run"):
        read_finished(tmp_path)
    plain = tmp_path / "plain"
    run(settings_of("no-xstar"), plain)
    with pytest.raises(LupiError, match="keeps no weights of no-xstar's own"):
        observe(plain, 100)
    assert read_finished(tmp_path).folder == plain
    run(settings_of("gaussian-dropout"), tmp_path / "other")
    with pytest.raises(LupiError, match="holds 2 runs; give one of them"):
        read_finished(tmp_path)
    (plain / "checkpoint/student.safetensors").unlink()
    with pytest.raises(LupiError, match="has no student"):
        read_finished(plain)

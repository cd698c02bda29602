"""Scores are those of scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn import metrics
from sklearn.calibration import calibration_curve

from lupi.core.outcomes import CLASS_SCORES, NUMBER_SCORES, Outcome
from lupi.core.scores import N_BINS, score_classes
from lupi.errors import LupiError

RNG = np.random.default_rng(0)
N = 200
WEIGHTS = RNG.exponential(size=N) * (RNG.random(N) < 0.9)
AS_GIVEN = [None, WEIGHTS]


@pytest.mark.parametrize("weights", AS_GIVEN, ids=["plain", "weighted"])
def test_of_numbers(weights: np.ndarray | None) -> None:
    y, mean, logvar = RNG.normal(size=(3, N))
    outcome = Outcome((), mean=3.0, std=2.5)
    output = torch.from_numpy(np.stack([mean, logvar], 1))
    given = None if weights is None else torch.from_numpy(weights)
    found = outcome.metrics(output, torch.from_numpy(y), given)
    if weights is not None:
        assert set(found) == {*NUMBER_SCORES, *(f"weighted_{name}" for name in NUMBER_SCORES)}
        found = {name: found[f"weighted_{name}"] for name in NUMBER_SCORES}
    truth, guess, w = 2.5 * y + 3, 2.5 * mean + 3, {"sample_weight": weights}
    density = -0.5 * (np.log(2 * np.pi * 2.5**2) + logvar + (y - mean) ** 2 / np.exp(logvar))
    assert found == pytest.approx(
        {
            "r2": metrics.r2_score(truth, guess, **w),
            "rmse": metrics.root_mean_squared_error(truth, guess, **w),
            "mse": metrics.mean_squared_error(truth, guess, **w),
            "mae": metrics.mean_absolute_error(truth, guess, **w),
            "log_likelihood": np.average(density, weights=weights),
        }
    )


@pytest.mark.parametrize("weights", AS_GIVEN, ids=["plain", "weighted"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_of_classes(n_classes: int, weights: np.ndarray | None) -> None:
    y = RNG.integers(0, n_classes - (n_classes > 2), size=N)  # a class that no row has
    logits = np.round(RNG.normal(size=(N, n_classes)) + np.eye(n_classes)[y], 1)  # with ties
    outcome = Outcome(tuple(map(str, range(n_classes))))
    given = None if weights is None else torch.from_numpy(weights)
    found = outcome.metrics(torch.from_numpy(logits), torch.from_numpy(y), given)
    if weights is not None:
        found = {k.removeprefix("weighted_"): v for k, v in found.items() if "weighted_" in k}
    p = torch.from_numpy(logits).softmax(1).numpy()
    guess, labels, w = p.argmax(1), np.arange(n_classes), {"sample_weight": weights}
    expected = {
        "accuracy": metrics.accuracy_score(y, guess, **w),
        "balanced_accuracy": np.average(
            metrics.recall_score(y, guess, average=None, labels=np.unique(y), **w)
        ),
        "f1_macro": metrics.f1_score(y, guess, average="macro", **w),
        "log_likelihood": -metrics.log_loss(y, p, labels=labels, **w),
        "log_loss": metrics.log_loss(y, p, labels=labels, **w),
    }
    if n_classes == 2:
        expected["auc"] = metrics.roc_auc_score(y, logits[:, 1] - logits[:, 0], **w)
    calibration = found.pop("calibration_error")
    assert found == pytest.approx(expected)
    assert 0 < calibration < 1
    assert set(CLASS_SCORES) <= {*found, "calibration_error"}


def test_the_calibration_error_is_the_distance_from_the_curve_of_calibration() -> None:
    sure = RNG.uniform(0.5, 1, size=N)
    right = RNG.random(N) < 0.8
    y = np.where(right, 0, 1)
    found = score_classes(y, np.log(np.stack([sure, 1 - sure], 1)), None)["calibration_error"]
    accuracy, mean = calibration_curve(right, sure, n_bins=N_BINS)
    counts = np.histogram(sure, bins=N_BINS, range=(0, 1))[0]
    assert found == pytest.approx((np.abs(accuracy - mean) * counts[counts > 0]).sum() / N)


def test_the_metric_of_the_verdict() -> None:
    number, two = Outcome(), Outcome(("no", "yes"))
    assert number.metric(None).name == "r2"
    assert number.metric(None, weighted=True).name == "weighted_r2"
    assert not number.metric("weighted_mae", weighted=True).higher_is_better
    assert number.metric("mse", weighted=True).name == "mse"
    f1 = two.metric("weighted_f1_macro", weighted=True)
    assert (f1.higher_is_better, f1.of_an_epoch.name) == (True, "weighted_log_likelihood")
    with pytest.raises(LupiError, match="name their column"):
        number.metric("weighted_mse")
    with pytest.raises(LupiError, match="does not fit regression"):
        number.metric("auc")
    with pytest.raises(LupiError, match="does not fit classification"):
        Outcome(("a", "b", "c")).metric("auc")

"""Scores of predictions, with or without weights of rows, as scikit-learn defines them.

They are computed after every epoch, so they take no detour through scikit-learn's checks; a test
holds them against its functions. The calibration error is that of Guo et al. (ICML 2017): over 15
bins of the probability of the likeliest class, the mean distance between probability and accuracy.
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

N_BINS = 15


def score_numbers(
    y: Floats, mean: Floats, logvar: Floats, weights: Floats | None
) -> dict[str, float]:
    """Score normal distributions of numbers.

    Args:
        y: the numbers, (N,).
        mean: predicted, (N,).
        logvar: log of the predicted variance, (N,).
        weights: of the rows, (N,); None: all count the same.
    """
    squares = np.square(y - mean)
    likelihood = -0.5 * (logvar + squares * np.exp(-logvar) + math.log(2 * math.pi))
    mse = _mean(squares, weights)
    spread = _mean(np.square(y - _mean(y, weights)), weights)
    return {
        "r2": 1 - mse / max(spread, 1e-12),
        "rmse": math.sqrt(mse),
        "mse": mse,
        "mae": _mean(np.abs(y - mean), weights),
        "log_likelihood": _mean(likelihood, weights),
    }


def score_classes(y: Ints, logits: Floats, weights: Floats | None) -> dict[str, float]:
    """Score probabilities of classes.

    Args:
        y: the classes, (N,).
        logits: of each class, (N, K).
        weights: of the rows, (N,); None: all count the same.
    """
    from scipy.special import log_softmax  # takes a while: not before it is needed

    n_classes = logits.shape[1]
    found = logits.argmax(1)
    log_probabilities = log_softmax(logits, axis=1)
    right = (found == y).astype(np.float64)
    w = np.ones(len(y)) if weights is None else weights
    n_right = np.bincount(y, w * right, n_classes)
    n_true, n_found = np.bincount(y, w, n_classes), np.bincount(found, w, n_classes)
    is_there, either = n_true > 0, n_true + n_found > 0
    likelihood = _mean(log_probabilities[np.arange(len(y)), y], weights)
    scores = {
        "accuracy": _mean(right, weights),
        "balanced_accuracy": float(np.mean(n_right[is_there] / n_true[is_there])),
        "f1_macro": float(np.mean(2 * n_right[either] / (n_true + n_found)[either])),
        "log_likelihood": likelihood,
        "log_loss": -likelihood,
        "calibration_error": _calibration_error(np.exp(log_probabilities.max(1)), right, w),
    }
    if n_classes == 2 and is_there.all():
        scores["auc"] = _auc(logits[:, 1] - logits[:, 0], y, w)
    return scores


def _mean(values: Floats, weights: Floats | None) -> float:
    return float(values.mean() if weights is None else values @ weights / weights.sum())


def _calibration_error(sure: Floats, right: Floats, weights: Floats) -> float:
    bins = np.minimum((sure * N_BINS).astype(np.int64), N_BINS - 1)
    gaps = np.bincount(bins, weights * (right - sure), N_BINS)
    return float(np.abs(gaps).sum() / weights.sum())


def _auc(scores: Floats, y: Ints, weights: Floats) -> float:
    """Return the probability that a row of class 1 has a higher score than one of class 0."""
    values, place = np.unique(scores, return_inverse=True)
    ones = np.bincount(place, weights * y, len(values))
    zeros = np.bincount(place, weights * (1 - y), len(values))
    lower = np.cumsum(zeros) - zeros / 2
    return float(ones @ lower / (ones.sum() * zeros.sum()))

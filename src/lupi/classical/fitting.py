"""Classical models on the rows of a run.

A scikit-learn model is fitted to a run's training rows, its regularisation is chosen on the
validation rows, and the test rows are used once. Such runs are recorded like any other; they are
shown for reference and never count for or against x*.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor

from lupi.classical.models import Classical
from lupi.core import Batch, Split, Splits, Task, derive_seed
from lupi.errors import LupiError
from lupi.loaders.text.text_rows import presence_features
from lupi.tasks.images.image import sees_maps
from lupi.tasks.text.task import frozen_texts, pooled_words

SMALLEST_PROBABILITY = 1e-6


def check_classical(model: type[Classical], task: Task) -> None:
    """Raise an error if the model can't use the x, x* or y of a task."""
    if task.output_kind == "tokens":
        raise LupiError(f"{model.name} needs vectors as x; x is a sentence here")
    if task.example().dim() != 2 and not sees_maps(task):
        raise LupiError(
            f"{model.name} needs vectors as x; x is {tuple(task.example().shape[1:])} per row here"
        )
    if task.xstar_kind not in model.kinds:
        raise LupiError(f"{model.name} can't use x* of kind {task.xstar_kind}; it uses vectors")
    if task.output_kind not in model.output_kinds:
        raise LupiError(f"{model.name} is a classifier; the target is a number here")


def score_classical(
    model: type[Classical], settings: Any, task: Task, splits: Splits, seed: int, n_threads: int
) -> dict[str, dict[str, float]]:
    """Fit every candidate, select the best on validation rows, and return its scores."""
    from sklearn.dummy import DummyClassifier

    train, val, test = (_whole(split) for split in (splits.train, splits.val, splits.test))
    texts = frozen_texts(task)
    if texts is not None:  # the vectors of a frozen encoder, pooled
        train, val, test = (
            rows._replace(x=pooled_words(task, texts, rows.x)) for rows in (train, val, test)
        )
    elif task.places == "words":  # as for a bag of words
        n_words = int(train.x.max()) + 1
        train, val, test = (
            rows._replace(x=presence_features(rows.x, n_words)) for rows in (train, val, test)
        )
    if train.x.dim() == 4:  # the maps of a frozen network, pooled
        train, val, test = (rows._replace(x=rows.x.mean((2, 3))) for rows in (train, val, test))
    if texts is not None or sees_maps(task):
        shift, scale = train.x.mean(0), train.x.std(0).clamp(min=1e-6)
        train, val, test = (r._replace(x=(r.x - shift) / scale) for r in (train, val, test))
    sign = 1 if task.metric.higher_is_better else -1
    candidates = model.candidates(settings, task.output_kind, derive_seed(seed, model.name))
    privileged = {"xstar": _xstar(train)} if model.uses_xstar else {}
    if task.output_kind == "classes" and len(train.y.unique()) == 1:
        candidates = [DummyClassifier(strategy="prior")]
        privileged = {}
    weights = {} if train.weights is None else {"sample_weight": train.weights.numpy()}
    scored: list[tuple[float, Any]] = []
    with threadpool_limits(n_threads):
        for candidate in candidates:
            candidate.fit(train.x.numpy(), train.y.numpy(), **privileged, **weights)
            scores = task.outcome.metrics(_output(candidate, task, val, val), val.y, val.weights)
            score = scores[task.metric.name]
            scored.append((sign * score, candidate))
        best = max(scored, key=lambda pair: pair[0])[1]
        of_val, of_test = (_output(best, task, part, val) for part in (val, test))
        return {
            "val": task.outcome.metrics(of_val, val.y, val.weights),
            **splits.score_test(task.outcome.metrics, of_test, test.y, test.weights),
        }


def _whole(split: Split) -> Batch:
    return next(iter(split.batches(max(len(split), 1))))


def _xstar(rows: Batch) -> NDArray[np.float32]:
    """Return x* (N, D), NaN for rows without x*."""
    xstar, has = rows.privileged()
    return torch.where(has[:, None], xstar, torch.nan).numpy()


def _output(fitted: Any, task: Task, rows: Batch, val: Batch) -> Tensor:
    """Return outputs like a network's: log-probabilities, or means with a common variance."""
    if task.output_kind == "classes":
        return _log_probabilities(fitted, rows.x.numpy(), task.n_outputs)
    mean = _predicted(fitted, rows.x)
    error = _predicted(fitted, val.x) - val.y
    logvar = error.square().mean().clamp(min=1e-8).log()
    return torch.stack([mean, logvar.expand_as(mean)], 1)


def _predicted(fitted: Any, x: Tensor) -> Tensor:
    return torch.from_numpy(np.asarray(fitted.predict(x.numpy()), dtype=np.float32))


def _log_probabilities(fitted: Any, x: NDArray[np.float32], n_classes: int) -> Tensor:
    """Return (N, n_classes); a class without training rows gets the smallest probability.

    The scores of a support vector machine are used as logits; they are not calibrated.
    """
    probabilities = np.zeros((len(x), n_classes), dtype=np.float32)
    if hasattr(fitted, "predict_proba"):
        probabilities[:, fitted.classes_] = fitted.predict_proba(x)
    else:
        scores = fitted.decision_function(x)
        logits = scores if scores.ndim == 2 else np.stack([0 * scores, scores], axis=1)
        probabilities[:, fitted.classes_] = torch.from_numpy(logits).softmax(dim=1)
    return torch.from_numpy(probabilities).clamp(min=SMALLEST_PROBABILITY).log()

"""Whether x* is likely to help: a sentence from models that take a second.

A region can help if the student does not find it by itself. So ridge regressions predict y from x
inside the region, from all of x, and from x outside: a cheap estimate of what an oracle gains. A
vector can help if it says how precise a numeric label is, that is, if it predicts the size of the
errors of a model of x and x* better than x does. The limits were set on the results in docs/: see
docs/should-i.md for hits and misses.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from lupi.core import Batch
from lupi.loaders.xstar.regions import without
from lupi.preflight import features
from lupi.preflight.relation import ALPHA, Floats, Ridge, sign_test

MIN_GAIN = 0.15
"""Share of the error of the other models that the region has to remove."""
MIN_PRECISION = 0.05
"""R2 by which x* predicts the size of errors better than x does."""
MAX_TOLD = 0.5
"""Share of the error of a model of x that x* may explain; beyond that it restates the target."""

Prospect = Literal["may help", "unlikely to help", "can't tell"]
_WORDS: dict[Prospect, str] = {
    "may help": "x* may help",
    "unlikely to help": "x* is unlikely to help",
    "can't tell": "can't tell whether x* helps",
}


class Outlook(NamedTuple):
    """What to expect of x*, and why."""

    prospect: Prospect
    why: str

    def __str__(self) -> str:
        return f"{_WORDS[self.prospect]}: {self.why}"


class _Quick(NamedTuple):
    """A quick model's score, and each row's error when it is left out."""

    score: float
    errors: NDArray[np.float64]

    @classmethod
    def of(cls, made: Floats, y: Tensor) -> "_Quick":
        """Score a ridge regression on features: accuracy of classes, R2 of numbers."""
        targets = features.of_target(y)
        ridge = Ridge(made)
        left_out = ridge.errors(targets)
        if y.is_floating_point():
            return cls(ridge.r2(targets), (left_out**2).sum(1))
        wrong = (targets - left_out).argmax(1) != y.numpy()
        return cls(1 - float(wrong.mean()), wrong.astype(np.float64))


def of_region(known: Batch) -> Outlook:
    """Say what to expect of regions; all rows have one."""
    assert known.xstar is not None
    inside = _Quick.of(features.inside(known.x, known.xstar), known.y)
    whole = _Quick.of(features.of_x(known.x), known.y)
    outside = _Quick.of(features.of_x(without(known.x, known.xstar)), known.y)
    what = "R2" if known.y.is_floating_point() else "accuracy"
    found = (
        f"a quick model has {what} {inside.score:.2f} inside the region, "
        f"{whole.score:.2f} on all of x, {outside.score:.2f} outside"
    )
    rival = max(whole, outside, key=lambda one: one.score)
    if inside.score <= _by_chance(known.y):
        return Outlook("can't tell", f"{found}, and chance would do as well")
    gain = (inside.score - rival.score) / max(1 - rival.score, 1e-9)
    if gain < MIN_GAIN:
        return Outlook("unlikely to help", f"{found}: knowing the region would gain little")
    wins, losses = inside.errors < rival.errors, inside.errors > rival.errors
    if sign_test(int(wins.sum()), int(losses.sum())) > ALPHA:
        return Outlook("can't tell", f"{found}, too few rows for such a difference")
    return Outlook("may help", f"{found}: the region holds most of what predicts y")


def of_vector(known: Batch) -> Outlook:
    """Say what to expect of vectors of x*."""
    assert known.xstar is not None
    y = features.of_target(known.y)
    x, xstar = features.of_x(known.x), features.of_vector(known.xstar)
    both = Ridge(np.hstack([x, xstar]))
    of_x, of_both = Ridge(x).r2(y), both.r2(y)
    told = (of_both - of_x) / max(1 - of_x, 1e-9)
    found = f"a quick model has R2 {of_x:.2f} from x, {of_both:.2f} from x and x*"
    if known.y.is_floating_point():
        size = np.abs(both.errors(y))
        by_xstar, by_x = Ridge(xstar).r2(size), Ridge(x).r2(size)
        if told < MAX_TOLD and by_xstar - max(by_x, 0) >= MIN_PRECISION:
            return Outlook(
                "may help",
                f"it predicts how large the errors of a quick model are (R2 {by_xstar:.2f}; x: "
                f"{by_x:.2f}), so it may say how precise a label is: try het-likelihood",
            )
    if told <= 0:
        return Outlook("unlikely to help", f"{found}: x* adds nothing to x")
    return Outlook(
        "unlikely to help",
        f"{found}: it would be a useful feature at test time, but no table on record gained from "
        "such an x* in training alone",
    )


def _by_chance(y: Tensor) -> float:
    """Return what a score should exceed: that of the most frequent class, with two deviations."""
    if y.is_floating_point():
        return 0.0
    share = float(y.bincount().max()) / len(y)
    return share + 2 * float(np.sqrt(share * (1 - share) / len(y)))

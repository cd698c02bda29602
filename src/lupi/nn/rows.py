"""The batch of the current pass, for noise layers that are not given it yet: see `whole_batch`."""

import contextlib
from collections.abc import Callable, Iterator

from torch import Tensor

from lupi.whole_batch import WHOLE, WholeBatch

_now: WholeBatch = WHOLE


@contextlib.contextmanager
def seeing(whole: WholeBatch) -> Iterator[None]:
    """Let the passes inside the block be those of a part of a batch."""
    global _now
    before, _now = _now, whole
    try:
        yield
    finally:
        _now = before


@contextlib.contextmanager
def with_xstar() -> Iterator[None]:
    """Say that what is inside the block concerns the rows with x* alone."""
    with _now.only_xstar():
        yield


def any_xstar(has: Tensor) -> bool:
    """Tell whether any row of the batch has x*."""
    return _now.any_xstar(has)


def weigh(mean: Tensor) -> Tensor:
    """Return what a mean over the rows of this pass adds to that of the batch."""
    return _now.share_of_mean(mean)


def total(values: Tensor) -> Tensor:
    """Return the sum over the processes."""
    return _now.sum(values)


def norm(values: Tensor) -> Tensor:
    """Return the length of values (n, ...), as one vector, of the rows of all processes."""
    return _now.norm(values)


def share(value: Tensor) -> Tensor:
    """Return what a part adds of a loss that every part has: one that is no mean over rows."""
    return _now.share(value)


def draw(chance: Callable[[Tensor], Tensor], like: Tensor) -> Tensor:
    """Return chance(like) for the rows (n, ...) of `like`."""
    return _now.draw(chance, like)

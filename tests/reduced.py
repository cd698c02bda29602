"""The losses of a method on a batch, as training sees them."""

from lupi.core import Batch, Method
from lupi.train.passes import Reduced, reduce


def losses_of(method: Method, batch: Batch) -> Reduced:
    """Pass a batch, and reduce the losses of its rows."""
    return reduce(method.loss(batch), batch)

"""The losses of a method on a batch, as training sees them."""

from lupi.core import Batch, Method
from lupi.train.batch_loss import Part, Reduced, TrainingLoss


def losses_of(method: Method, batch: Batch) -> Reduced:
    """Pass a batch, and reduce the losses of its rows."""
    reduced: Reduced = TrainingLoss(method)(Part(batch))
    return reduced

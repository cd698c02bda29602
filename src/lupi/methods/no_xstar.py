"""The plain model: Bernoulli dropout, no x*. The baseline of every other arm.

    loss = cross-entropy(h(x), y)

Srivastava et al.: "Dropout", JMLR 2014. The rate is the network's (`network.dropout`).
"""

from lupi.core import Batch, Losses, Method
from lupi.settings import Settings


class NoXstarSettings(Settings):
    """No settings: the dropout rate belongs to the network."""


class NoXstar(Method):
    """Train on x and y alone."""

    name = "no-xstar"
    summary = "plain training on x alone, Bernoulli dropout"
    uses_xstar = False
    output_kinds = ("classes", "gaussian", "tokens")
    Settings = NoXstarSettings

    def loss(self, batch: Batch) -> Losses:
        """Return the task's loss."""
        return {"task": self.task_loss(self.net(batch.x), batch)}

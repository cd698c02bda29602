"""Pi-DUAL: a gate on x* separates labels explained by x from noise explained by x*.

    logits = (1 - g(x*)) f(x) + g(x*) e(x*),   loss = CE(y, logits),   prediction: f(x)

Wang, Ortiz-Jimenez, Jenatton, Collier, Kokiopoulou, Frossard: "Pi-DUAL: Using privileged
information to distinguish clean from noisy labels", ICML 2024. The gate g, between 0 and 1, and
the noise network e are perceptrons on x* and a random vector for each row (`random_dim`), which
allows them to memorise wrong labels without f. Deviations: a row without x* has g = 0; the networks
are small, for small tables.
"""

from pydantic import Field
from torch import nn

from lupi.core import Batch, Losses, Method, Task
from lupi.methods.by_row import RandomVectors
from lupi.settings import Settings


class PiDualSettings(Settings):
    """Settings of the gate and the noise network."""

    random_dim: int = Field(8, ge=0, le=4096)
    """Length of a fixed random vector for each row, an additional input of gate and noise."""
    n_hidden: int = Field(64, ge=1)
    """Units of both hidden layers of each network."""


class PiDual(Method):
    """Train the student with a gate on x*."""

    name = "pi-dual"
    summary = "x* separates labels explained by x from label noise (ICML 2024)"
    uses_xstar = True
    kinds = ("vector",)
    output_kinds = ("classes",)
    Settings = PiDualSettings

    def __init__(self, net: nn.Module, task: Task, settings: PiDualSettings) -> None:
        super().__init__(net, task, settings)
        n_in = task.xstar_dim + settings.random_dim
        self.gate = _perceptron(n_in, settings.n_hidden, 1)
        self.noise = _perceptron(n_in, settings.n_hidden, task.n_outputs)
        self.random = RandomVectors(settings.random_dim)

    def loss(self, batch: Batch) -> Losses:
        """Return the loss of the gated outputs."""
        xstar, has = batch.privileged()
        seen = self.random.append_to(xstar, batch)
        gate = self.gate(seen).sigmoid() * has[:, None]
        output = (1 - gate) * self.net(batch.x) + gate * self.noise(seen)
        return {"task": self.task_loss(output, batch)}


def _perceptron(n_in: int, n_hidden: int, n_out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(n_in, n_hidden),
        nn.ReLU(),
        nn.Linear(n_hidden, n_hidden),
        nn.ReLU(),
        nn.Linear(n_hidden, n_out),
    )

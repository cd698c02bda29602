"""Pi-DUAL: x* decides how far a label is the class, and how far it is noise that x* explains.

    logits = (1 - g(x*)) f(x) + g(x*) e(x*),   loss = CE(y, logits),   prediction: f(x)

Wang, Ortiz-Jimenez, Jenatton, Collier, Kokiopoulou, Frossard: "Pi-DUAL: Using privileged
information to distinguish clean from noisy labels", ICML 2024. The gate g, between 0 and 1, and
the noise network e are perceptrons of x* and of a random vector for each row (`random_dim`), by
which wrong labels can be learned by heart without f. What is ours: a row without x* has g = 0;
small networks, for small tables.
"""

from pydantic import Field
from torch import nn

from lupi.core import Batch, Losses, Method, Task
from lupi.nn.by_row import RandomVectors
from lupi.settings import Settings


class PiDualSettings(Settings):
    """The gate, and the network of noise."""

    random_dim: int = Field(8, ge=0, le=4096)
    """Length of a random vector, fixed for each row, that gate and noise see beside x*."""
    n_hidden: int = Field(64, ge=1)
    """Units of both hidden layers of either network."""


class PiDual(Method):
    """Train the student behind a gate that x* opens or shuts."""

    name = "pi-dual"
    summary = "x* tells labels that x explains from labels that are noise (ICML 2024)"
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
        """Return the loss of the labels through the gate."""
        xstar, has = batch.privileged()
        seen = self.random.beside(xstar, batch)
        gate = self.gate(seen).sigmoid() * has[:, None]
        output = (1 - gate) * self.net(batch.x) + gate * self.noise(seen)
        return Losses({"task": self.task_loss(output, batch)})


def _perceptron(n_in: int, n_hidden: int, n_out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(n_in, n_hidden),
        nn.ReLU(),
        nn.Linear(n_hidden, n_hidden),
        nn.ReLU(),
        nn.Linear(n_hidden, n_out),
    )

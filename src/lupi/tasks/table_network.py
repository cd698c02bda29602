"""The network of a table task and its settings."""

from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from lupi.settings import Settings

if TYPE_CHECKING:
    from torch import nn

N_HIDDEN, N_LAYERS = 64, 2
DROPOUT = {"mlp": 0.5, "linear": 0.0}


class TableNetworkSettings(Settings):
    """The student for rows of a table."""

    name: Literal["mlp", "linear"] = "mlp"
    """mlp: hidden layers, with dropout after each; linear: none, with dropout of x."""
    n_hidden: int | None = Field(None, ge=1, le=8192)
    """Units of each hidden layer; by default 64."""
    n_layers: int | None = Field(None, ge=2, le=8)
    """Hidden layers, by default 2; all but the last are the `trunk`."""
    embedding: Literal["periodic"] | None = None
    """Periodic features (sines) per number of an mlp (`trunk.embed`); by default none."""
    dropout: float | None = Field(None, ge=0, lt=1)
    """Bernoulli rate: after each hidden layer, by default 0.5, sites `trunk.drop1` …, the last one
    `head.drop2`; of x in a linear network, by default 0, site `drop`."""

    @model_validator(mode="after")
    def _has_effect(self) -> "TableNetworkSettings":
        for key in ("n_hidden", "n_layers", "embedding"):
            if self.name == "linear" and getattr(self, key) is not None:
                raise ValueError(f"{key}: a linear network has no hidden layers; leave it out")
        return self


def build_network(settings: TableNetworkSettings, n_in: int, n_outputs: int) -> "nn.Module":
    """Build a student for vectors of a given length."""
    from lupi.networks.mlp import MLP, Linear

    s = settings
    dropout = DROPOUT[s.name] if s.dropout is None else s.dropout
    if s.name == "linear":
        return Linear(n_in, n_outputs, dropout)
    hidden = (s.n_hidden or N_HIDDEN, s.n_layers or N_LAYERS)
    return MLP(n_in, n_outputs, *hidden, dropout, periodic=s.embedding == "periodic")

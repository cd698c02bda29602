"""Initial weights."""

from torch import nn


def he_init(module: nn.Module) -> None:
    """Initialise a layer after He et al. 2015; for use with `apply`."""
    if isinstance(module, (nn.Conv2d, nn.Linear)):
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        if module.bias is not None:
            nn.init.zeros_(module.bias)

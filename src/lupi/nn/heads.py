"""An additional head, for methods that also predict something else than the target."""

from torch import Tensor, nn

from lupi.nn.initialise import he_init
from lupi.nn.layouts import site_shapes
from lupi.nn.sites import find_sites


def head_like(net: nn.Module, x: Tensor, n_in: int, n_out: int) -> nn.Sequential:
    """Map features (B, n_in) to (B, n_out) through hidden layers like those of the student's head.

    Each dropout layer of the network without places determines the width and the rate of a hidden
    layer. For VGG-16 the head has 4096 and 4096 units.

    Args:
        net: The student.
        x: Two rows, to determine shapes.
        n_in: Number of input features.
        n_out: Number of outputs.
    """
    dropouts = find_sites(net)
    layers: list[nn.Module] = [nn.Flatten()]
    for name, (shape, layout) in site_shapes(net, dropouts, x).items():
        if not layout.places:
            rate = dropouts[name].p
            assert isinstance(rate, float)
            layers += [nn.Linear(n_in, shape[-1]), nn.ReLU(), nn.Dropout(rate)]
            n_in = shape[-1]
    return nn.Sequential(*layers, nn.Linear(n_in, n_out)).apply(he_init)

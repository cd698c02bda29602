"""Features by the student's own convolutions of what is not x: for methods whose x* is a region."""

import torch
from torch import Tensor, nn

from lupi.errors import LupiError
from lupi.nn.batchnorm import untracked


def check_trunk(net: nn.Module, who: str, instead: str = "") -> None:
    """Refuse a network without a `trunk`.

    Args:
        net: the student.
        who: what passes through it.
        instead: another way out than to give it one.
    """
    if not isinstance(getattr(net, "trunk", None), nn.Module):
        raise LupiError(
            f"{who} passes blacked-out images through the network's `trunk`, and this one has "
            f"none; {instead}call its convolutions `trunk`"
        )


@torch.no_grad()
def trunk_features(net: nn.Module, shown: Tensor) -> Tensor:
    """Pass x as x* shows it through the student's convolutions, (B, features).

    There is no graph, as the CVPR 2018 paper cuts this gradient. Batch norms use the statistics of
    these rows, and do not record them: predictions are made from whole x.
    """
    trunk = net.get_submodule("trunk")
    with untracked(trunk):
        features: Tensor = trunk(shown)
    return features

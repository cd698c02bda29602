"""Features of blacked-out images by the student's convolutions, for methods with a region."""

import torch
from torch import Tensor, nn

from lupi.errors import LupiError
from lupi.nn.batchnorm import untracked


def check_trunk(net: nn.Module, who: str, instead: str = "") -> None:
    """Raise an error if a network has no `trunk`.

    Args:
        net: the student.
        who: The method or setting that uses it.
        instead: An alternative, for the message.
    """
    if not isinstance(getattr(net, "trunk", None), nn.Module):
        raise LupiError(
            f"{who} passes blacked-out images through the network's `trunk`, but this one has "
            f"none; {instead}call its convolutions `trunk`"
        )


@torch.no_grad()
def trunk_features(net: nn.Module, shown: Tensor) -> Tensor:
    """Pass x restricted to the region through the student's convolutions, (B, features).

    No gradient is computed, as in the CVPR 2018 paper. Batch norms use the statistics of these rows
    but do not record them, because predictions use the complete x.
    """
    trunk = net.get_submodule("trunk")
    with untracked(trunk):
        features: Tensor = trunk(shown)
    return features

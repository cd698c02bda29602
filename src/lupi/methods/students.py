"""What methods take from a student: its parts, features of a restricted x, a head like its own."""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from lupi.errors import LupiError
from lupi.loaders.xstar.regions import mask_box, restrict
from lupi.networks.weights import he_init
from lupi.noise.batchnorm import untracked
from lupi.noise.sites import find_sites, layer_inputs, linear_layers, site_shapes

RegionInput = Literal["blackout", "box"]
"""What a network on vectors sees of a region: features of the `blackout` image (other pixels are
black, other words removed) by the student, or the four numbers of the `box`."""


def region_vectors(
    x: Tensor, region: Tensor, has: Tensor, features: Callable[[Tensor], Tensor] | None, n: int
) -> Tensor:
    """Return regions as vectors (B, n), without gradients; zeros for rows without x*.

    Args:
        x: Images or texts, (B, ...).
        region: What x* marks, (B, 1, ...).
        has: Rows with x*, (B,).
        features: Function from x, restricted to the region, to features (k, n); None: the box.
        n: Number of features.
    """
    if features is None:
        return mask_box(region)
    vectors = region.new_zeros(len(region), n)
    if has.any():
        with torch.no_grad():
            vectors[has] = features(restrict(x[has], region[has])).to(vectors.dtype)
    return vectors


def find_part(net: nn.Module, name: str | None) -> nn.Module:
    """Return a part of a network by its name; by default its last linear layer."""
    if name is None:
        return linear_layers(net)[-1]
    try:
        return net.get_submodule(name)
    except AttributeError:
        known = ", ".join(name for name, _ in net.named_children())
        raise LupiError(f"head: the network has no part {name!r}; it has {known}") from None


@torch.no_grad()
def try_pass(net: nn.Module, x: Any) -> Tensor:
    """Return the output for `x` in `eval()`, to determine shapes; restore the mode."""
    was_training = net.training
    net.eval()
    try:
        output: Tensor = net(x)
    finally:
        net.train(was_training)
    return output


def check_learned(net: nn.Module, layer: nn.Module, x: Any, who: str) -> None:
    """Raise an error if a network has no weights before a layer, such as a linear network.

    Args:
        net: the student.
        layer: The layer whose input a method trains by x*; a site is the identity.
        x: two rows.
        who: Name of the method.
    """
    was_training = net.training
    net.eval()
    try:
        with torch.enable_grad(), layer_inputs(layer) as seen:
            net(x)
    finally:
        net.train(was_training)
    if not seen[0].requires_grad:
        raise LupiError(
            f"{who} trains hidden layers by x*, but this network has none: its only layer reads x "
            "itself; use a network with hidden layers, or a method that trains outputs, such as "
            "distillation"
        )


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

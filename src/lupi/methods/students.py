"""What methods take from a student: its parts, features of a restricted x, a head like its own."""

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from lupi.core import Batch, Task
from lupi.errors import LupiError
from lupi.loaders.xstar.regions import restrict
from lupi.networks.weights import he_init
from lupi.noise.batchnorm import untracked
from lupi.noise.sites import evaluating, find_sites, layer_inputs, linear_layers, site_shapes


class Features(Protocol):
    """What reads features of x inside a student: `Trunk` or `Head`."""

    n_features: int

    def features(self, x: Tensor) -> Tensor:
        """Return the features of x, (B, n_features); batch norms do not record this pass."""
        ...


class Trunk:
    """The student's convolutions.

    No gradient is computed, as in the CVPR 2018 paper. Batch norms use the statistics of these rows
    but do not record them, because predictions use the complete x.

    Args:
        net: The student.
        x: Two rows.
        who: What needs a trunk, for the message.
    """

    def __init__(self, net: nn.Module, x: Any, who: str) -> None:
        if not isinstance(getattr(net, "trunk", None), nn.Module):
            raise LupiError(
                f"{who} passes blacked-out images through the network's `trunk`, but this one has "
                "none; call its convolutions `trunk`"
            )
        self._trunk = net.get_submodule("trunk")
        self.n_features: int = self.features(x).shape[1]

    @torch.no_grad()
    def features(self, x: Tensor) -> Tensor:
        """Return the features of x, (B, n_features)."""
        with untracked(self._trunk):
            features: Tensor = self._trunk(x)
        return features


class Head:
    """A part of the student with vectors as input, by default its last linear layer.

    Args:
        net: The student.
        x: Two rows.
        name: Path of the part; None: the last linear layer.
        who: The method that trains what is before the part.
    """

    def __init__(self, net: nn.Module, x: Any, name: str | None, who: str) -> None:
        self._net = net
        try:
            self.part = net.get_submodule(name) if name else linear_layers(net)[-1]
        except AttributeError:
            known = ", ".join(name for name, _ in net.named_children())
            raise LupiError(f"head: the network has no part {name!r}; it has {known}") from None
        with layer_inputs(self.part) as seen:
            try_pass(net, x)
        check_learned(net, self.part, x, who)
        if seen[0].dim() != 2:
            raise LupiError(
                f"head: the input of {name!r} is {tuple(seen[0].shape[1:])} per row; {who} needs "
                "vectors: name a part after the flattening"
            )
        self.n_features: int = seen[0].shape[1]

    def features(self, x: Tensor) -> Tensor:
        """Return the part's input for x, (B, n_features); batch norms do not record this pass."""
        with untracked(self._net), layer_inputs(self.part) as seen:
            self._net(x)
        return seen[0]


def xstar_network(task: Task, n_hidden: int) -> nn.Module:
    """Return a network on x* with the task's outputs: for a region, one like the student."""
    if task.xstar_kind == "region":
        return task.network()
    hidden, out = nn.Linear(task.xstar_dim, n_hidden), nn.Linear(n_hidden, task.n_outputs)
    return nn.Sequential(hidden, nn.ReLU(), out)


def xstar_input(task: Task, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return what an `xstar_network` sees, the region of x or x*, and the rows that have it."""
    xstar, has = batch.privileged()
    return restrict(batch.x, xstar) if task.xstar_kind == "region" else xstar, has


class XstarVectors:
    """x* as vectors: itself, or features of x restricted to the region.

    Args:
        task: Says what x* is.
        source: Makes what reads features; for regions only.
    """

    def __init__(self, task: Task, source: Callable[[], Features]) -> None:
        self._source = source() if task.xstar_kind == "region" else None
        self.n: int = self._source.n_features if self._source else task.xstar_dim

    def __call__(self, batch: Batch, has: Tensor) -> Tensor:
        """Return the vectors of all rows, (B, n), those of regions without gradients.

        Args:
            batch: A training batch.
            has: Rows with x*, (B,); others are zero.
        """
        xstar = batch.privileged()[0]
        if self._source is None:
            return xstar
        vectors = xstar.new_zeros(len(xstar), self.n)
        if has.any():
            with torch.no_grad():
                shown = restrict(batch.x[has], xstar[has])
                vectors[has] = self._source.features(shown).to(vectors.dtype)
        return vectors


@torch.no_grad()
def try_pass(net: nn.Module, x: Any) -> Tensor:
    """Return the output for `x` in `eval()`, to determine shapes; restore the mode."""
    with evaluating(net):
        output: Tensor = net(x)
    return output


def check_learned(net: nn.Module, layer: nn.Module, x: Any, who: str) -> None:
    """Raise an error if a network has no weights before a layer, such as a linear network.

    Args:
        net: the student.
        layer: The layer whose input a method trains by x*; a site is the identity.
        x: two rows.
        who: Name of the method.
    """
    with evaluating(net), torch.enable_grad(), layer_inputs(layer) as seen:
        net(x)
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

"""Adam, AdamW and SGD: the numbers of torch.optim, with less time in Python.

For a small network, a step of torch.optim spends half of its time in Python, and the first
optimizer imports torch's compiler.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from lupi.errors import LupiError
from lupi.train.settings import TrainSettings

BETAS = (0.9, 0.999)
EPSILON = 1e-8

OPTIONS = {"params", "weight_decay", "lr_factor"}
"""What a group of a method's weights may have."""

Groups = list[dict[str, Any]]
"""Groups of weights (`params`) with their `lr` and `weight_decay`."""


class Optimizer(Protocol):
    """What training uses of an optimizer."""

    param_groups: Groups

    def step(self) -> None:
        """Update the weights that have a gradient."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return what is needed to resume."""
        ...

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Resume from the result of `state_dict`."""
        ...


def build_optimizer(groups: Sequence[dict[str, Any]], settings: TrainSettings) -> Optimizer:
    """Return the optimizer of the settings for groups of weights."""
    if unknown := sorted({option for group in groups for option in group} - OPTIONS):
        raise LupiError(
            f"parameter_groups: a group has {', '.join(unknown)}, which has no effect; expected "
            f"some of {', '.join(sorted(OPTIONS))}"
        )
    options = {"lr": settings.lr, "weight_decay": settings.weight_decay}
    given = [{**options, **group} for group in groups]
    if settings.optimizer == "sgd":
        return SGD(given, settings.momentum)
    return Adam(given, decoupled=settings.optimizer == "adamw")


@dataclass(slots=True)
class _Weight:
    """A weight, the number of its steps, and the running averages of its gradients."""

    tensor: Tensor
    n_steps: int = 0
    averages: list[Tensor] = field(default_factory=list)

    @property
    def gradient(self) -> Tensor:
        """Its gradient, which must be there."""
        assert self.tensor.grad is not None
        return self.tensor.grad


class _Averaging:
    """An optimizer that keeps running averages of each weight's gradients."""

    n_averages: int

    def __init__(self, groups: Groups) -> None:
        self.param_groups = groups
        self._weights = [[_Weight(tensor) for tensor in group["params"]] for group in groups]

    def with_gradient(self, weights: list[_Weight]) -> list[_Weight]:
        """Count a step of the weights that have a gradient, and return them."""
        chosen = [weight for weight in weights if weight.tensor.grad is not None]
        for weight in chosen:
            if not weight.n_steps:
                weight.averages = [torch.zeros_like(weight.tensor) for _ in range(self.n_averages)]
            weight.n_steps += 1
        return chosen

    def state_dict(self) -> dict[str, Any]:
        """Return the number of steps and the averages of each weight."""
        every = [weight for group in self._weights for weight in group]
        return {"steps": [w.n_steps for w in every], "averages": [w.averages for w in every]}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Resume. Averages get the memory layout of their weights, which kernels need."""
        every = (weight for group in self._weights for weight in group)
        for weight, steps, averages in zip(every, saved["steps"], saved["averages"], strict=True):
            weight.n_steps = steps
            weight.averages = [torch.empty_like(weight.tensor).copy_(a) for a in averages]


class Adam(_Averaging):
    """Adam; with `decoupled`, AdamW.

    Kingma, Ba: "Adam: A Method for Stochastic Optimization", ICLR 2015. Loshchilov, Hutter:
    "Decoupled Weight Decay Regularization", ICLR 2019.
    """

    n_averages = 2

    def __init__(self, groups: Groups, decoupled: bool = False) -> None:
        super().__init__(groups)
        self._update = torch._fused_adamw_ if decoupled else torch._fused_adam_

    @torch.no_grad()
    def step(self) -> None:
        """Update the weights that have a gradient, by one kernel for all of them."""
        for group, weights in zip(self.param_groups, self._weights, strict=True):
            by_count: dict[int, list[_Weight]] = {}
            for weight in self.with_gradient(weights):
                by_count.setdefault(weight.n_steps, []).append(weight)
            for count, chosen in by_count.items():
                n_steps = torch.tensor(float(count), device=chosen[0].tensor.device)
                self._update(
                    [weight.tensor for weight in chosen],
                    [weight.gradient for weight in chosen],
                    [weight.averages[0] for weight in chosen],
                    [weight.averages[1] for weight in chosen],
                    [],
                    [n_steps] * len(chosen),
                    lr=group["lr"],
                    beta1=BETAS[0],
                    beta2=BETAS[1],
                    weight_decay=group["weight_decay"],
                    eps=EPSILON,
                    amsgrad=False,
                    maximize=False,
                )


class SGD(_Averaging):
    """Stochastic gradient descent with momentum."""

    n_averages = 1

    def __init__(self, groups: Groups, momentum: float) -> None:
        super().__init__(groups)
        self._momentum = momentum

    @torch.no_grad()
    def step(self) -> None:
        """Update the weights that have a gradient."""
        for group, weights in zip(self.param_groups, self._weights, strict=True):
            for weight in self.with_gradient(weights):
                gradient = weight.gradient
                if group["weight_decay"]:
                    gradient = gradient.add(weight.tensor, alpha=group["weight_decay"])
                velocity = weight.averages[0].mul_(self._momentum).add_(gradient)
                weight.tensor.add_(velocity, alpha=-group["lr"])

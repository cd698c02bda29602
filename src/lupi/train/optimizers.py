"""Adam, AdamW and SGD: the numbers of torch.optim, without its imports.

The first optimizer of torch.optim imports torch's compiler, which takes longer than a small run,
and a step for a small network spends half of its time in Python.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lupi.errors import LupiError
from lupi.train.settings import TrainSettings

BETAS = (0.9, 0.999)
EPSILON = 1e-8
OPTIONS = {"params", "weight_decay", "lr_factor"}
"""What a group of a method's weights may have."""
FUSED = {"adam": "_fused_adam_", "adamw": "_fused_adamw_"}
"""Private functions of torch that update all weights at once; without them, one by one."""


class Optimizer:
    """Adam (Kingma, Ba, ICLR 2015), AdamW (Loshchilov, Hutter, ICLR 2019), or SGD with momentum.

    Args:
        groups: Groups of weights (`params`), with their own `weight_decay` and `lr_factor`.
        settings: Optimizer, learning rate, weight decay and momentum.
    """

    def __init__(self, groups: Sequence[dict[str, Any]], settings: TrainSettings) -> None:
        if unknown := sorted({option for group in groups for option in group} - OPTIONS):
            raise LupiError(
                f"parameter_groups: a group has {', '.join(unknown)}, which has no effect; "
                f"expected some of {', '.join(sorted(OPTIONS))}"
            )
        usual = {"lr": settings.lr, "weight_decay": settings.weight_decay}
        self.param_groups: list[dict[str, Any]] = [{**usual, **group} for group in groups]
        self._name, self._momentum = settings.optimizer, settings.momentum
        self._fused = getattr(torch, FUSED.get(self._name, ""), None)
        self._weights: list[Tensor] = [w for group in groups for w in group["params"]]
        self._steps = dict.fromkeys(self._weights, 0)
        self._averages: dict[Tensor, list[Tensor]] = {weight: [] for weight in self._weights}

    def zero_grad(self) -> None:
        """Remove all gradients."""
        for weight in self._weights:
            weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update the weights that have a gradient."""
        for group in self.param_groups:
            by_count: dict[int, list[Tensor]] = {}
            for weight in group["params"]:
                if weight.grad is not None:
                    if not self._steps[weight]:
                        n_averages = 1 if self._name == "sgd" else 2
                        zeros = [torch.zeros_like(weight) for _ in range(n_averages)]
                        self._averages[weight] = zeros
                    self._steps[weight] += 1
                    by_count.setdefault(self._steps[weight], []).append(weight)
            for count, weights in by_count.items():
                update = self._sgd if self._name == "sgd" else self._adam
                update(
                    weights, [w.grad for w in weights], count, group["lr"], group["weight_decay"]
                )

    def _sgd(
        self, weights: list[Tensor], gradients: list[Any], count: int, lr: float, decay: float
    ) -> None:
        for weight, gradient in zip(weights, gradients, strict=True):
            pulled = gradient.add(weight, alpha=decay) if decay else gradient
            velocity = self._averages[weight][0].mul_(self._momentum).add_(pulled)
            weight.add_(velocity, alpha=-lr)

    def _adam(
        self, weights: list[Tensor], gradients: list[Any], count: int, lr: float, decay: float
    ) -> None:
        means = [self._averages[weight][0] for weight in weights]
        squares = [self._averages[weight][1] for weight in weights]
        (beta1, beta2), decoupled = BETAS, self._name == "adamw"
        if self._fused is not None:
            counts = [torch.tensor(float(count), device=weights[0].device)] * len(weights)
            rates = {"lr": lr, "beta1": beta1, "beta2": beta2, "weight_decay": decay}
            options = {"eps": EPSILON, "amsgrad": False, "maximize": False}
            self._fused(weights, gradients, means, squares, [], counts, **rates, **options)
            return
        for weight, gradient, mean, square in zip(weights, gradients, means, squares, strict=True):
            pulled = gradient if decoupled else gradient.add(weight, alpha=decay)
            weight.mul_(1 - lr * decay if decoupled else 1)
            mean.lerp_(pulled, 1 - beta1)
            square.mul_(beta2).addcmul_(pulled, pulled, value=1 - beta2)
            scale = (square / (1 - beta2**count)).sqrt_().add_(EPSILON)
            weight.addcdiv_(mean, scale, value=-lr / (1 - beta1**count))

    def state_dict(self) -> dict[str, Any]:
        """Return the number of steps and the averages of each weight."""
        return {"steps": [*self._steps.values()], "averages": [*self._averages.values()]}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Resume. Averages get the memory layout of their weights, which kernels need."""
        for weight, steps, averages in zip(
            self._weights, saved["steps"], saved["averages"], strict=True
        ):
            self._steps[weight] = steps
            self._averages[weight] = [torch.empty_like(weight).copy_(a) for a in averages]

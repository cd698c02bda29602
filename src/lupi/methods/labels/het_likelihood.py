"""Heteroscedastic likelihood: x* sets the variance of a label; imprecise labels count less.

    numbers:  -log N(y; m(x), s2),   log s2 = b(x*)
    classes:  -log mean over k of softmax(f(x) + exp(b(x*) / 2) eps_k)[y],   eps_k standard normal

The student is m or f; for numbers, its own log-variance is fitted separately. b is a network on x*.
It is learned in two steps (b is fitted to the errors of plain students on held-out rows, then the
student is trained with b fixed), or jointly with the student.

The weights of feasible generalised least squares: Harvey, "Estimating regression models with
multiplicative heteroscedasticity", Econometrica 1976. Noise at the logits: Kendall, Gal, "What
uncertainties do we need in Bayesian deep learning for computer vision?", NeurIPS 2017; Collier,
Mustafa, Kokiopoulou, Jenatton, Berent, CVPR 2021. The variance as a function of x* is our addition.
"""

import copy
import math
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from lupi.core import Batch, Losses, Method, RowLoss, Stage, Task
from lupi.core.gaussian import gaussian_cross_entropy, moments, variance_loss
from lupi.errors import LupiError
from lupi.methods.by_row import folds, numbered
from lupi.noise.encoders import vector_encoder
from lupi.settings import Settings

N_SAMPLES = 16


class HetLikelihoodSettings(Settings):
    """How the variance of labels is learned from x*."""

    varies_by = "steps"
    steps: Literal["two", "joint"] = "two"
    """`two`: first the variance, from errors on held-out folds, then the student; `joint`: both at
    once, which is faster but less accurate: errors on training rows are too small."""
    limit: float = Field(4.0, gt=0, le=8)
    """b is between -limit and limit, so that no label is ignored and none counts as exact."""
    n_samples: int | None = Field(None, ge=2, le=256)
    """Number of noise draws (classification only). Default 16."""
    n_hidden: int = Field(64, ge=1)
    """Units of the hidden layer between x* and b."""


class TwoSteps(HetLikelihoodSettings):
    """The variance first."""

    steps: Literal["two"] = "two"
    n_folds: int = Field(5, ge=2, le=20)
    """Number of folds, with one plain student for each."""


class Joint(HetLikelihoodSettings):
    """Variance and student at once."""

    steps: Literal["joint"] = "joint"
    warmup_epochs: int = Field(3, ge=0)
    """Epochs in which the student is trained without weights while b learns from its errors, so
    that labels are not taken for imprecise before they are learned."""


HetLikelihoodSettings.variants = {"two": TwoSteps, "joint": Joint}


class HetLikelihood(Method):
    """Train with a likelihood whose variance is a function of x*."""

    name = "het-likelihood"
    summary = "x* sets the variance of a label: imprecise labels count less"
    uses_xstar = True
    kinds = ("vector",)
    Settings = HetLikelihoodSettings

    def __init__(self, net: nn.Module, task: Task, settings: HetLikelihoodSettings) -> None:
        super().__init__(net, task, settings)
        self._is_number = task.output_kind == "gaussian"
        if self._is_number and settings.n_samples is not None:
            raise LupiError("n_samples is for classes, but the target is a number")
        self.variance = vector_encoder(task.xstar_dim + 1, 1, settings.n_hidden)
        n_folds = settings.n_folds if isinstance(settings, TwoSteps) else 0
        self.folds = nn.ModuleList(copy.deepcopy(net) for _ in range(n_folds))
        self._warm = False

    def stages(self) -> tuple[Stage, ...]:
        """Return the stages for folds, variance and student, or a single stage."""
        if not self.folds:
            return (Stage(),)
        return (
            Stage("folds", learns=(self.folds,), validates=False),
            Stage("variance", learns=(self.variance,), validates=False),
            Stage(learns=(self.net,)),
        )

    def start_epoch(self, epoch: int) -> None:
        """Determine whether this epoch is part of the warm-up."""
        self._warm = epoch <= getattr(self.settings, "warmup_epochs", 0)

    def loss(self, batch: Batch) -> Losses:
        """Return the loss of the current stage."""
        if self.stage == "folds":
            return {"folds": RowLoss(self._of_folds(batch))}
        b = self._b(batch)
        if self.stage == "variance":
            each = self._negative_log_likelihood(self._held_out(batch), b, batch)
            return {"variance": RowLoss(each)}
        output = self.net(batch.x)
        if self._warm:
            variance = RowLoss(self._negative_log_likelihood(output.detach(), b, batch))
            return {"task": self.task_loss(output, batch), "variance": variance}
        own = b.detach() if self.folds else b
        return {"task": RowLoss(self._negative_log_likelihood(output, own, batch))}

    def logvars(self, batch: Batch) -> dict[str, Tensor]:
        """Return b for the rows with x*, (n, 1): the log-variance of their labels."""
        with torch.no_grad():
            return {"label": self._b(batch)[batch.privileged()[1], None]}

    def _b(self, batch: Batch) -> Tensor:
        """Return b (B,); rows without x* share one learned value."""
        xstar, has = batch.privileged()
        raw = self.variance(torch.cat([xstar, has[:, None]], 1)).squeeze(1)
        limit = self.settings.limit
        bounded: Tensor = limit * torch.tanh(raw / limit)
        return bounded

    def _negative_log_likelihood(self, output: Tensor, b: Tensor, batch: Batch) -> Tensor:
        """Return the negative log-likelihood of each row's label, (B,)."""
        if not self._is_number:
            return self._of_classes(output, b, batch)
        mean, _ = moments(output)
        weighted = gaussian_cross_entropy(torch.stack([mean, b], 1), batch.y)
        return weighted + variance_loss(output, batch.y)

    def _of_classes(self, output: Tensor, b: Tensor, batch: Batch) -> Tensor:
        n = self.settings.n_samples or N_SAMPLES
        copies = output.repeat(n, 1)
        noise = torch.randn_like(copies) * (b / 2).exp().repeat(n)[:, None]
        each = self.task.example_loss(copies + noise, batch.y.repeat(n))
        mean_log: Tensor = (-each).unflatten(0, (n, -1)).logsumexp(0) - math.log(n)
        return -mean_log

    def _of_folds(self, batch: Batch) -> Tensor:
        """Return the mean loss of the plain students trained on each row, (B,)."""
        each = [self.task.example_loss(net(batch.x), batch.y) for net in self.folds]
        learns = torch.stack([self._fold(batch) != k for k in range(len(each))])
        return torch.stack(each).where(learns, 0.0).sum(0) / (len(each) - 1)

    @torch.no_grad()
    def _held_out(self, batch: Batch) -> Tensor:
        """Return the outputs of the plain student that was not trained on each row, (B, ...)."""
        outputs = torch.stack([net(batch.x) for net in self.folds.eval()])
        return outputs[self._fold(batch), torch.arange(len(batch.y), device=outputs.device)]

    def _fold(self, batch: Batch) -> Tensor:
        return folds(numbered(batch.row, "het-likelihood in two steps"), len(self.folds))

"""The public code of the CVPR 2018 paper, where it differs from the papers' texts.

    het-dropout-official     log-variance = ReLU(h*(x*)), so sigma is at least 1;
                             penalty = beta * norm of sigma over the batch and all sites
    info-dropout-official    the divergence is divided by the batch size, not by the training rows
    hallucination-official   the hallucination loss is a sum over the batch, and also trains d
    miml-fcn-official        the slack is the sum of the student's own largest outputs over the
                             batch, and x* is not used

In their translation code, h* is the log-variance without the ReLU (`relu: false`), so the penalty
drives sigma to 0.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from lupi.core import Batch, Losses, Method, RowLoss, Task
from lupi.core.batch import over_rows
from lupi.errors import LupiError
from lupi.methods.labels.miml_fcn import MimlFcnSettings
from lupi.methods.noise.het_dropout import HetDropout, LearnedNoise
from lupi.methods.noise.info_dropout import InfoDropout
from lupi.methods.teachers.hallucination import Hallucination
from lupi.noise import HeteroscedasticDropout
from lupi.noise.layer import Variance, bounded
from lupi.search import Range, Space


class OfficialNoise(HeteroscedasticDropout):
    """Noise whose log-variance is the output of h* itself."""

    relu = True

    def log_variance(self, offset: Tensor, prior: Tensor) -> Tensor:
        """Return the output of h*, through a ReLU if `relu`."""
        return offset.relu() if self.relu else offset

    def penalty(self, variances: Sequence[Variance]) -> Tensor:
        """Return beta * ||sigma||, one norm over the batch and all sites, for every row with x*.

        It is not a mean over rows: it grows with the batch size.
        """
        has = variances[0].has_xstar
        sigmas = [
            (torch.exp(0.5 * bounded(v.logvar)) * over_rows(has, v.logvar)).flatten(1)
            for v in variances
        ]
        norm: Tensor = torch.linalg.vector_norm(torch.cat(sigmas, 1))
        return self.beta * norm * has


class HetDropoutOfficialSettings(LearnedNoise):
    """Settings of het-dropout; those of the prior have no effect."""

    relu: bool = True
    """Whether h* passes a ReLU, as in their code for images; false: as in that for translation."""


class HetDropoutOfficial(HetDropout):
    """Train with noise as in the authors' code."""

    name = "het-dropout-official"
    summary = "het-dropout as in the code of the CVPR 2018 paper"
    places = ("pixels",)
    Settings = HetDropoutOfficialSettings
    search: ClassVar[Space] = {"settings.beta": Range(low=0.01, high=100, log=True)}

    def __init__(self, net: nn.Module, task: Task, settings: HetDropoutOfficialSettings) -> None:
        for name in ("prior", "penalty", "budget"):
            if getattr(settings, name) != LearnedNoise.model_fields[name].default:
                raise LupiError(f"{name}: it has no effect in {self.name}; remove it")
        if settings.sites is None and task.xstar_kind == "region":  # the fully connected layers
            settings = settings.model_copy(update={"sites": ("head.*",)})
        super().__init__(net, task, settings)

    def _layer(self, site: str, hstar: nn.Module | None) -> HeteroscedasticDropout:
        s, layout = self.settings, self._shapes[site].layout
        options: dict[str, Any] = {"missing": s.missing, "draw": s.draw, "layout": layout}
        layer = OfficialNoise(hstar, beta=s.beta, budget="none", **options)
        layer.relu = s.relu
        return layer


class InfoDropoutOfficial(InfoDropout):
    """Divide the divergence by the batch size."""

    name = "info-dropout-official"
    summary = "info-dropout as in the code of the CVPR 2018 paper"

    def _n_rows(self, batch: Batch) -> int:
        return len(batch.y)


class HallucinationOfficial(Hallucination):
    """Sum the hallucination loss over the batch, and train the head on x* with it, too."""

    name = "hallucination-official"
    summary = "hallucination as in the code of the CVPR 2018 paper"

    def loss(self, batch: Batch) -> Losses:
        """Return the losses; that of the hallucination is a sum over rows."""
        losses = super().loss(batch)
        imitation: Any = losses["hallucination"]
        n = len(imitation.values)
        summed = RowLoss(imitation.values, imitation.weight * n, only_xstar=True)
        return {**losses, "hallucination": summed}

    def _target(self, real: Tensor) -> Tensor:
        return real


class MimlFcnOfficial(Method):
    """Train with a slack that is computed from the student's own outputs."""

    name = "miml-fcn-official"
    summary = "miml-fcn as in the code of the CVPR 2018 paper, which does not use x*"
    uses_xstar = False
    output_kinds = ("classes",)
    Settings = MimlFcnSettings
    search: ClassVar[Space] = {
        "settings.weight": Range(low=1e-8, high=1e-4, log=True),
        **Method.search,
    }

    def loss(self, batch: Batch) -> Losses:
        """Return the task's loss, and the distance of its mean from the sum of the outputs."""
        output = self.net(batch.x)
        each = self.task.example_loss(output, batch.y)  # (B,)
        gap = each.mean() - output.amax(1).sum()
        squared = RowLoss(gap.square().expand_as(each), self.settings.weight)
        return {"task": RowLoss(each), "slack": squared}

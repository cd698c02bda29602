"""Heteroscedastic dropout: x* sets the variance of the noise in training.

    z = h(x) * (1 + sqrt(h*(x*)) * eps),   loss = cross-entropy + beta * D(h*(x*), h0)

Lambert, Sener, Savarese: "Deep Learning under Privileged Information Using Heteroscedastic
Dropout", CVPR 2018. Additions: draws shared over places, a prior variance h0 that may depend on x*,
smooth divergences D, a budget, and sites other than the fully connected layers.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from lupi.core import Batch, Losses, Method, RowLoss, Stage, Task
from lupi.methods.noise.het_dropout_settings import HetDropoutSettings, check_effects
from lupi.methods.students import check_trunk, region_vectors, trunk_features
from lupi.networks.pooling import AttentionPooling
from lupi.noise import HeteroscedasticDropout, SiteNoise
from lupi.noise.batchnorm import batchnorms
from lupi.noise.encoders import (
    RegionEncoder,
    WordEncoder,
    feature_encoders,
    vector_encoder,
)
from lupi.noise.layer import Prior, RegionPrior, dropout_variance
from lupi.noise.sites import Site, SiteShape, find_sites, site_module, site_shapes, sites_for_noise
from lupi.search import Range, Space

OF_THE_LAYER = {"beta", "penalty", "budget", "missing", "draw", "distribution", "form", "n_samples"}
"""Settings that are options of `HeteroscedasticDropout`."""


class HetDropout(Method):
    """Train with noise whose variance depends on x*."""

    name = "het-dropout"
    summary = "x* sets the variance of the noise at the sites (CVPR 2018)"
    uses_xstar = True
    output_kinds = ("classes", "gaussian", "tokens")
    Settings = HetDropoutSettings
    search: ClassVar[Space] = {
        "settings.prior": Range(low=0.1, high=4, log=True),
        "settings.beta": Range(low=0.001, high=1, log=True),
    }

    def __init__(self, net: nn.Module, task: Task, settings: HetDropoutSettings) -> None:
        super().__init__(net, task, settings)
        self._shapes = _site_shapes(net, task, settings)
        is_region = task.xstar_kind == "region"
        self._flat = [name for name, found in self._shapes.items() if not found.places]
        of_words = task.places == "words"
        check_effects(settings, self._shapes, is_region, task.output_kind == "tokens", of_words)
        self._passes_trunk = is_region and bool(self._flat) and settings.fc_input == "blackout"
        self._n_features = self._count_features() if self._passes_trunk else 0
        hstars = self._hstars() if settings.has_hstar else {}
        self.noise = SiteNoise({name: self._layer(name, hstars.get(name)) for name in self._shapes})

    @classmethod
    def searched(cls, settings: Mapping[str, Any]) -> Space:
        """Return the search ranges, without the penalty's if there is no h*."""
        has_hstar = cls.Settings.parse(settings, "settings").has_hstar
        return {k: v for k, v in cls.search.items() if has_hstar or k != "settings.beta"}

    def stages(self) -> tuple[Stage, ...]:
        """Return one stage, or the three stages of the curriculum.

        Like the authors' code, the curriculum starts from a trained plain network.
        """
        phases = self.settings.curriculum
        if not phases:
            return super().stages()
        tower = {
            "epochs": phases.tower_epochs,
            "lr": phases.tower_lr,
            "batch_size": phases.tower_batch_size,
        }
        student = {"lr": phases.lr, "batch_size": phases.batch_size}
        return (
            Stage("plain", learns=(self.net,), train=phases.plain),
            Stage("tower", learns=(self.noise,), validates=False, train=tower),
            Stage(learns=(getattr(self.net, "head", self.net),), train=student),
        )

    def train(self, mode: bool = True) -> Self:
        """Set the mode; batch norms of convolutions that a curriculum froze stay in `eval()`."""
        super().train(mode)
        trunk = getattr(self.net, "trunk", None)
        if mode and self.settings.curriculum and self.stage != "plain" and trunk is not None:
            for layer in batchnorms(trunk):
                layer.eval()
        return self

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return the student's weights, and those of h* with their own learning rate."""
        s, hstar = self.settings, list(self.noise.parameters())
        if not hstar or (s.hstar_lr == 1 and s.hstar_weight_decay is None):
            return super().parameter_groups()
        decay = {} if s.hstar_weight_decay is None else {"weight_decay": s.hstar_weight_decay}
        return [
            *self.student_groups(),
            {"params": hstar, "lr_factor": s.hstar_lr, **decay},
        ]

    def start_epoch(self, epoch: int) -> None:
        """Set the scale of the variance during the warm-up."""
        self.noise.set_strength(min(1.0, epoch / (self.settings.warmup_epochs + 1)))

    def loss(self, batch: Batch) -> Losses:
        """Return the task's loss under noise and the penalty; in stage `plain`, the plain loss."""
        if self.stage == "plain":
            return {"task": self.task_loss(self.net(batch.x), batch)}
        seen, has = self._seen(batch)
        with self.noise.on(self.net, seen, has) as noise_pass:
            output: Tensor = self.net(batch.x)
        penalty = noise_pass.penalty()
        return {
            "task": self._over_draws(output, batch),
            "penalty": RowLoss(penalty if has.all() else penalty[has], only_xstar=True),
        }

    def _over_draws(self, output: Tensor, batch: Batch) -> RowLoss:
        """Return the task's loss of each row, over its draws."""
        n_draws = len(output) // len(batch.y)
        if n_draws == 1:
            return self.task_loss(output, batch)
        draws = output.chunk(n_draws)
        each = torch.stack([self.task.example_loss(draw, batch.y) for draw in draws])  # (k, B)
        if self.settings.objective == "mean":
            return RowLoss(each.mean(0))
        return RowLoss(math.log(n_draws) - (-each).logsumexp(0))

    def logvars(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return log h*(x*) at each site for the rows with x*."""
        shapes = self._shapes
        if self.task.places == "words":  # the length of the longest text in the batch
            n_words = (batch.x.shape[1],)
            shapes = {name: found.with_places(n_words) for name, found in shapes.items()}
        return self.noise.logvars(shapes, *self._seen(batch, every_row=True))

    def _seen(self, batch: Batch, every_row: bool = False) -> tuple[dict[str, Tensor], Tensor]:
        """Return the input of h* at each site, and the rows (B,) that have it."""
        xstar, has = batch.privileged()
        at_places = xstar
        if self.settings.sees_words:
            at_places = torch.cat([xstar, batch.x[:, None].to(xstar.dtype)], 1)  # (B, 2, T)
        seen = dict.fromkeys(self._shapes, at_places)
        if self.task.xstar_kind != "region" or not self._flat:
            return seen, has
        frac: float = self.settings.xstar_pass_frac
        if frac < 1 and not every_row:  # only the first rows of the shuffled batch pass the trunk
            has = has & (torch.arange(len(has), device=has.device) < math.ceil(frac * len(has)))
        features = partial(trunk_features, self.net) if self._passes_trunk else None
        vectors = region_vectors(batch.x, xstar, has, features, self._n_features)
        return seen | dict.fromkeys(self._flat, vectors), has

    def _count_features(self) -> int:
        """Return the number of features of the shared convolutions."""
        check_trunk(self.net, "fc_input: blackout", "use `fc_input: box`, or ")
        return trunk_features(self.net, self.task.example()).shape[1]

    def _layer(self, site: str, hstar: nn.Module | None) -> HeteroscedasticDropout:
        options = self.settings.model_dump(include=OF_THE_LAYER)
        prior, layout = self._prior(site), self._shapes[site].layout
        return HeteroscedasticDropout(hstar, prior=prior, layout=layout, **options)

    def _prior(self, site: str) -> Prior:
        prior: Prior | None = self.settings.prior
        if callable(prior) and self.settings.sees_words:
            return partial(_of_region, prior)
        if prior is not None:
            return prior
        if self.task.xstar_kind == "region" and self._shapes[site].places:
            return partial(_of_region, RegionPrior(inside=0, outside=1))
        return dropout_variance(site_module(self.net, site))

    def _hstars(self) -> dict[str, nn.Module]:
        """Build the networks h*, depending on the kind of x* and the shape at the site."""
        s, n_xstar = self.settings, self.task.xstar_dim
        if self.task.xstar_kind == "vector":
            return {
                name: vector_encoder(n_xstar, found.n_channels)
                for name, found in self._shapes.items()
            }
        hstars: dict[str, nn.Module] = {
            name: WordEncoder()
            if s.sees_words
            else RegionEncoder(
                n_xstar, found.n_channels if s.per_channel else 1, found.places, kernel=s.kernel
            )
            for name, found in self._shapes.items()
            if found.places
        }
        units = [self._shapes[name].n_channels for name in self._flat]
        if self._passes_trunk:
            towers: list[nn.Module] = feature_encoders(self._n_features, units)
        else:
            towers = [vector_encoder(4, n) for n in units]
        return hstars | dict(zip(self._flat, towers, strict=True))


def _of_region(prior: Callable[[Tensor], Tensor], seen: Tensor) -> Tensor:
    """Return the prior of the region, which is the first channel of the input of h*."""
    return prior(seen[:, :1])


def _site_shapes(net: nn.Module, task: Task, settings: HetDropoutSettings) -> dict[str, SiteShape]:
    """Return the named sites, or the default ones.

    If x* marks a region, the default is the input of an attention pooling, or else the
    second-to-last site with places: deep enough for meaningful features, with enough places to
    separate inside from outside.
    """
    if settings.sites is None and task.xstar_kind == "region":
        marked = {name: m for name, m in find_sites(net, ["*"]).items() if isinstance(m, Site)}
        shapes = site_shapes(net, marked, task.example())
        names = [name for name, found in shapes.items() if found.places]
        attends = [name for name, m in net.named_modules() if isinstance(m, AttentionPooling)]
        if attends:
            name = f"{attends[-1]}.places"
            return {name: shapes[name]}
        if names:
            name = names[max(len(names) - 2, 0)]
            return {name: shapes[name]}
    return site_shapes(net, sites_for_noise(net, settings.sites), task.example())

"""Heteroscedastic dropout: x* sets the variance of the noise, and is gone at test time.

    z = h(x) * (1 + sqrt(h*(x*)) * eps),   loss = cross-entropy + beta * ||log h*(x*) - log h0||

Lambert, Sener, Savarese: "Deep Learning under Privileged Information Using Heteroscedastic
Dropout", CVPR 2018. What is ours: a prior variance h0 other than 1 (the paper's), which may
depend on x*; sites other than the fully connected layers; h* starts at its prior.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from lupi.core import Batch, Losses, Method, RowLoss, SequenceTask, Stage, Task
from lupi.data.images.regions import blackout, mask_box
from lupi.errors import LupiError
from lupi.nn import rows
from lupi.nn.batchnorm import untracked
from lupi.nn.encoders import MapEncoder, feature_encoders, vector_encoder
from lupi.nn.noise import HeteroscedasticDropout, Missing, Norm, Reading, Reduce
from lupi.nn.site_noise import SiteNoise
from lupi.nn.sites import Attachment, find_sites, site_shapes
from lupi.search import Range, Space
from lupi.settings import Settings


class RegionPrior(Settings):
    """A prior variance inside the region that x* marks, and another outside."""

    inside: float = Field(ge=0, le=50)
    outside: float = Field(ge=0, le=50)

    def __call__(self, mask: Tensor) -> Tensor:
        """Return the variance at each pixel of the mask."""
        return self.outside + (self.inside - self.outside) * mask


class Curriculum(Settings):
    """After a plain student: h* alone, then the student's head alone. Defaults: the paper's."""

    tower_epochs: int = Field(8, ge=1)
    """Phase 1, which trains h*."""
    tower_lr: float = Field(1e-3, gt=0, le=100)
    tower_batch_size: int = Field(128, ge=1)
    lr: float = Field(1e-7, gt=0, le=100)
    """Phase 2, which freezes h* and fine-tunes the student's `head` (all of it, if it has none)."""
    batch_size: int = Field(256, ge=1)


class HetDropoutSettings(Settings):
    """Where noise enters, what h0 says, and whether h* learns."""

    sites: tuple[str, ...] | None = None
    """Names or patterns, such as `trunk.site2` or `head.*`; by default every dropout layer."""
    prior: float | RegionPrior = 1.0
    """The prior variance h0: a number, or `{inside: 0, outside: 1}` at sites with a map."""
    learn: bool = True
    """Whether h* is a network of x* that starts at h0; if not, the variance stays h0(x*)."""
    beta: float = Field(1.0, ge=0)
    """Weight of the penalty on leaving the prior."""
    norm: Norm = "l2"
    """Of the difference in log-variance of one example: l1, l2 or l2-squared."""
    reduce: Reduce = "mean"
    """Over the units of one example; over examples it is always the mean."""
    missing: Missing = "mean"
    """Rows without x*: `mean` variance of the others, the `prior`'s, or `none`."""
    n_samples: int = Field(1, ge=1, le=64)
    """Noise draws per example, through the part of the network after the first site only."""
    shared_dims: tuple[int, ...] | None = None
    """Dimensions that share one draw; 0 is the batch. By default time, at sites of a sequence."""
    fc_input: Literal["blackout", "box"] = "blackout"
    """What h* sees of a region at sites without a map: the `blackout` image through the
    student's own convolutions, as in the paper, or the four numbers of the `box`."""
    per_channel: bool = False
    """At sites with a map: a variance map for each channel, or one for all."""
    kernel: Literal[1, 3, 5] = 3
    """At sites with a map: how much of x* around a place h* sees; 1 is the place alone."""
    budget: bool = False
    """At sites with a map: h* keeps the mean variance of each example and only moves it about."""
    reading: Reading = "paper"
    """`official` is the authors' code: ReLU log-variance, penalty beta * ||sigma||;
    `official-translation` that for sentences, which has no ReLU."""
    curriculum: Literal[False] | Curriculum = False
    """Train in phases, as the paper does with 600K images: `true`, or keys of the phases."""

    @field_validator("curriculum", mode="before")
    @classmethod
    def _papers_own(cls, value: Any) -> Any:
        return {} if value is True else value


class HetDropout(Method):
    """Train under noise whose variance x* sets."""

    name = "het-dropout"
    summary = "x* sets the variance of the noise at the sites (CVPR 2018)"
    uses_xstar = True
    output_kinds = ("classes", "gaussian", "tokens")
    Settings = HetDropoutSettings
    search: ClassVar[Space] = {
        "settings.prior": Range(low=0.1, high=4, log=True),
        "settings.beta": Range(low=0.01, high=10, log=True),
    }

    def __init__(self, net: nn.Module, task: Task, settings: HetDropoutSettings) -> None:
        super().__init__(net, task, settings)
        sites = find_sites(net, settings.sites)
        if not sites:
            raise LupiError("the network has no dropout layer; name the `sites` for the noise")
        self._shapes = site_shapes(net, sites, task.example())
        self._without_map = [name for name, shape in self._shapes.items() if len(shape) != 3]
        if isinstance(settings.prior, RegionPrior) and self._without_map:
            raise LupiError(
                f"prior: inside and outside need sites with a map; {self._without_map[0]} has none"
            )
        if settings.n_samples > 1 and isinstance(task, SequenceTask):
            raise LupiError(
                f"n_samples: got {settings.n_samples}; a network of sequences takes one draw"
            )
        self._n_features = self._count_features()
        learns = settings.learn or settings.reading != "paper"
        if settings.curriculum and not learns:
            raise LupiError("curriculum: it trains h* first; with `learn: false` there is none")
        hstars = self._hstars() if learns else {}
        self.drops = SiteNoise({name: self._drop(hstars.get(name)) for name in sites})
        self._now: tuple[dict[str, Tensor], Tensor] | None = None
        self._attachment = Attachment(sites, {name: partial(self._noise, name) for name in sites})

    def stages(self) -> tuple[Stage, ...]:
        """Return one stage, or the curriculum's three.

        The paper fine-tunes; its code starts from a trained plain network, and so does this.
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
            Stage("plain", learns=(self.net,)),
            Stage("tower", learns=(self.drops,), validates=False, train=tower),
            Stage(learns=(getattr(self.net, "head", self.net),), train=student),
        )

    def loss(self, batch: Batch) -> Losses:
        """Return the task's loss under noise, plus the penalty; in stage `plain`, without both."""
        if self.stage == "plain":
            with self._attachment.detached():
                return Losses({"task": self.task_loss(self.net(batch.x), batch)})
        self._now = self._site_inputs(batch)
        try:
            output: Tensor = self.net(batch.x)
        finally:
            self._now = None
        y = batch.y.repeat(len(output) // max(len(batch.y), 1), *[1] * (batch.y.dim() - 1))
        task = RowLoss(self.task.example_loss(output, y), n_targets=batch.n_targets)
        return Losses({"task": task}, {"penalty": self.drops.penalty()})

    def logvars(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return log h*(x*) at each site for the rows that have x*."""
        return self.drops.logvars(self._shapes, *self._site_inputs(batch))

    def student(self) -> nn.Module:
        """Return a plain copy of the student, without noise."""
        with self._attachment.detached():
            return super().student()

    def _noise(self, name: str, h: Tensor) -> Tensor:
        if self._now is None:  # a pass that is not a training step
            return h
        inputs, has = self._now
        noisy: Tensor = self.drops.at(name)(h, inputs[name], has)
        return noisy

    def _site_inputs(self, batch: Batch) -> tuple[dict[str, Tensor], Tensor]:
        """Return what h* sees at each site, and the rows (B,) that have it."""
        xstar, has = batch.privileged()
        inputs = dict.fromkeys(self._shapes, xstar)
        if self.task.xstar_kind == "region" and self._without_map:
            by_box = self.settings.fc_input == "box"
            seen = mask_box(xstar) if by_box else self._trunk_features(batch.x, xstar, has)
            inputs |= dict.fromkeys(self._without_map, seen)
        return inputs, has

    @torch.no_grad()
    def _trunk_features(self, x: Tensor, mask: Tensor, has: Tensor) -> Tensor:
        """Pass blacked-out images through the student's convolutions, (B, features).

        No graph, as the paper cuts this gradient. Batch norms use the batch's statistics without
        recording them, and see only the rows that have x*.
        """
        trunk = self.net.get_submodule("trunk")
        features = x.new_zeros(len(x), self._n_features)
        if rows.any_xstar(has):
            with rows.with_xstar(), untracked(trunk):
                features[has] = trunk(blackout(x[has], mask[has])).to(features.dtype)
        return features

    def _count_features(self) -> int:
        """Return how many features the shared convolutions give, 0 where they are not used."""
        shared = self.task.xstar_kind == "region" and self.settings.fc_input == "blackout"
        if not (shared and self._without_map):
            return 0
        if not isinstance(getattr(self.net, "trunk", None), nn.Module):
            raise LupiError(
                "fc_input: blackout passes images through the network's `trunk`, and this one "
                "has none; use `fc_input: box`, or call its convolutions `trunk`"
            )
        with torch.no_grad(), untracked(self.net):
            features: Tensor = self.net.get_submodule("trunk")(self.task.example())
        return features.shape[1]

    def _drop(self, hstar: nn.Module | None) -> HeteroscedasticDropout:
        s = self.settings
        return HeteroscedasticDropout(
            hstar,
            prior=s.prior,
            beta=s.beta,
            norm=s.norm,
            reduce=s.reduce,
            missing=s.missing,
            shared_dims=s.shared_dims,
            n_samples=s.n_samples,
            reading=s.reading,
        )

    def _hstars(self) -> dict[str, nn.Module]:
        """Build the networks of x*, by the kind of x* and the shape at the site."""
        if self.task.xstar_kind == "vector":
            return {
                name: vector_encoder(self.task.xstar_dim, shape[0 if len(shape) == 3 else -1])
                for name, shape in self._shapes.items()
            }
        hstars: dict[str, nn.Module] = {}
        for name, shape in self._shapes.items():
            if len(shape) == 3:
                n_out = shape[0] if self.settings.per_channel else 1
                hstars[name] = MapEncoder(
                    self.task.xstar_dim,
                    n_out,
                    (shape[1], shape[2]),
                    kernel=self.settings.kernel,
                    budget=self.settings.budget,
                )
            elif self.settings.fc_input == "box":
                hstars[name] = vector_encoder(4, shape[-1])
        if self._without_map and self.settings.fc_input == "blackout":
            units = [self._shapes[name][-1] for name in self._without_map]
            hstars |= zip(self._without_map, feature_encoders(self._n_features, units), strict=True)
        return hstars

"""Heteroscedastic dropout: x* sets the variance of the noise in training.

    z = h(x) * (1 + sqrt(h*(x*)) * eps),   loss = cross-entropy + beta * D(h*(x*), h0)

Lambert, Sener, Savarese: "Deep Learning under Privileged Information Using Heteroscedastic
Dropout", CVPR 2018. Additions: draws shared over places, a prior variance h0 that may depend on x*,
smooth divergences D, a budget, and sites other than the fully connected layers.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from lupi.core import Batch, Losses, Method, RowLoss, Stage, Task
from lupi.errors import LupiError
from lupi.methods.students import Trunk, XstarVectors
from lupi.networks.pooling import AttentionPooling
from lupi.noise import HeteroscedasticDropout, SiteNoise
from lupi.noise.batchnorm import batchnorms
from lupi.noise.encoders import RegionEncoder, WordEncoder, feature_encoders, vector_encoder
from lupi.noise.layer import (
    Budget,
    Distribution,
    Draw,
    Missing,
    PenaltyName,
    Prior,
    RegionPrior,
    check_draw,
    dropout_variance,
)
from lupi.noise.sites import Site, SiteShape, find_sites, site_module, site_shapes, sites_for_noise
from lupi.search import Range, Space
from lupi.settings import Settings

OF_THE_LAYER = {"beta", "penalty", "budget", "missing", "draw", "distribution"}
"""Settings that are options of `HeteroscedasticDropout`."""


class HetDropoutSettings(Settings):
    """Sites, draws and prior of the noise."""

    varies_by = "noise"
    noise: Literal["learned", "fixed"] = "learned"
    """`learned`: the variance is h*(x*), which starts at the prior h0; `fixed`: it stays h0(x*)."""
    sites: tuple[str, ...] | None = None
    """Names or patterns, such as `trunk.site2` or `head.*`; `output` is the network's output. By
    default every dropout layer; for a region, the input of the attention pooling or, without one,
    the second-to-last site with places."""
    prior: Annotated[float, Field(ge=0, le=1000)] | RegionPrior | None = None
    """The prior variance h0: a number, or `{inside: 0, outside: 1}` at sites with places. By
    default the variance of the replaced dropout layer; for a region, 0 inside and 1 outside."""
    draw: Draw | None = None
    """What shares a draw: `unit` (one draw per entry, as in the paper), `place`, `channel` or
    `example`; by default `channel` at feature maps and sequences, `unit` at vectors."""
    missing: Missing = "mean"
    """Variance of rows without x*: the `mean` of the others, the `prior`, or `none`."""
    warmup_epochs: int = Field(0, ge=0)
    """Epochs over which the variance increases to its full size."""


class FixedNoise(HetDropoutSettings):
    """Settings of a variance that stays at the prior."""

    noise: Literal["fixed"] = "fixed"
    """The variance stays at the prior, h0(x*)."""
    distribution: Distribution = "gaussian"
    """`bernoulli` drops all values that share a draw."""


class Curriculum(Settings):
    """Training in stages: a plain student, then h*, then the student's head; the paper's values."""

    plain: dict[str, Any] = Field(default_factory=dict)
    """Training settings of the plain student that differ from the run's."""
    tower_epochs: int = Field(8, ge=1)
    """Number of epochs that train h*."""
    tower_lr: float = Field(1e-3, gt=0, le=100)
    tower_batch_size: int = Field(128, ge=1)
    lr: float = Field(1e-7, gt=0, le=100)
    """Learning rate of the stage that freezes h* and fine-tunes the student's `head`."""
    batch_size: int = Field(256, ge=1)


class LearnedNoise(HetDropoutSettings):
    """Settings of h*, the network from x* to the variance."""

    noise: Literal["learned"] = "learned"
    """The variance is h*(x*), which starts at the prior h0."""
    beta: float = Field(0.01, ge=0)
    """Weight of the penalty."""
    penalty: PenaltyName = "kl"
    """Divergence of h* from h0: kl is smooth, l2 (the paper) has a cusp at h0."""
    budget: Budget = "batch"
    """Keep the mean variance of a `batch` or of each `example` constant, so that h* only
    distributes the noise. With `none`, h* also sets its amount, and reduces it."""
    hstar_lr: float = Field(1.0, gt=0, le=1000)
    """Learning rate of h*, as a multiple of the student's."""
    sees_words: bool = False
    """Whether h* also sees the words (texts only)."""
    curriculum: Literal[False] | Curriculum = False
    """Train in stages, as the paper does with 600K images: `true`, or settings of the stages."""

    @field_validator("curriculum", mode="before")
    @classmethod
    def _papers_own(cls, value: Any) -> Any:
        return {} if value is True else value


HetDropoutSettings.variants = {"learned": LearnedNoise, "fixed": FixedNoise}


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
        self._hstar = settings if isinstance(settings, LearnedNoise) else None
        self._shapes = _site_shapes(net, task, settings)
        self._flat = [name for name, found in self._shapes.items() if not found.places]
        _check_effects(settings, self._shapes, self._flat, task)
        self._vectors: XstarVectors | None = None
        if self._hstar and self._flat and task.xstar_kind == "region":
            trunk = partial(Trunk, net, task.example(), f"noise at {self._flat[0]}")
            self._vectors = XstarVectors(task, trunk)
        hstars = self._hstars(self._hstar.sees_words) if self._hstar else {}
        self.noise = SiteNoise({name: self._layer(name, hstars.get(name)) for name in self._shapes})

    @classmethod
    def searched(cls, settings: Mapping[str, Any]) -> Space:
        """Return the search ranges, without the penalty's if there is no h*."""
        has_hstar = settings.get("noise") != "fixed"
        return {k: v for k, v in cls.search.items() if has_hstar or k != "settings.beta"}

    def stages(self) -> tuple[Stage, ...]:
        """Return one stage, or the three stages of the curriculum.

        Like the authors' code, the curriculum starts from a trained plain network.
        """
        phases = self._hstar and self._hstar.curriculum
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
        if mode and len(self.stages()) > 1 and self.stage != "plain" and trunk is not None:
            for layer in batchnorms(trunk):
                layer.eval()
        return self

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return the student's weights, and those of h* with their own learning rate."""
        if self._hstar is None or self._hstar.hstar_lr == 1:
            return super().parameter_groups()
        hstar = {"params": list(self.noise.parameters()), "lr_factor": self._hstar.hstar_lr}
        return [*self.student_groups(), hstar]

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
            "task": self.task_loss(output, batch),
            "penalty": RowLoss(penalty if has.all() else penalty[has], only_xstar=True),
        }

    def logvars(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return log h*(x*) at each site for the rows with x*."""
        return self.noise.logvars(self._shapes, *self._seen(batch))

    def _seen(self, batch: Batch) -> tuple[dict[str, Tensor], Tensor]:
        """Return the input of h* at each site, and the rows (B,) that have it."""
        xstar, has = batch.privileged()
        at_places = xstar
        if self._hstar and self._hstar.sees_words:
            at_places = torch.cat([xstar, batch.x[:, None].to(xstar.dtype)], 1)  # (B, 2, T)
        seen = dict.fromkeys(self._shapes, at_places)
        if self._vectors is not None:
            seen |= dict.fromkeys(self._flat, self._vectors(batch, has))
        return seen, has

    def _layer(self, site: str, hstar: nn.Module | None) -> HeteroscedasticDropout:
        options = self.settings.model_dump(include=OF_THE_LAYER)
        prior, layout = self._prior(site), self._shapes[site].layout
        return HeteroscedasticDropout(hstar, prior=prior, layout=layout, **options)

    def _prior(self, site: str) -> Prior:
        prior: Prior | None = self.settings.prior
        if prior is None and self.task.xstar_kind == "region" and self._shapes[site].places:
            prior = RegionPrior(inside=0, outside=1)
        if callable(prior):
            return partial(_of_region, prior)
        return dropout_variance(site_module(self.net, site)) if prior is None else prior

    def _hstars(self, sees_words: bool) -> dict[str, nn.Module]:
        """Build the networks h*, depending on the kind of x* and the shape at the site."""
        n_xstar = self.task.xstar_dim
        if self.task.xstar_kind == "vector":
            return {
                name: vector_encoder(n_xstar, found.n_channels)
                for name, found in self._shapes.items()
            }
        hstars: dict[str, nn.Module] = {
            name: WordEncoder() if sees_words else RegionEncoder(n_xstar, found.places)
            for name, found in self._shapes.items()
            if found.places
        }
        if self._vectors is None:
            return hstars
        towers = feature_encoders(
            self._vectors.n, [self._shapes[name].n_channels for name in self._flat]
        )
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
            names = [f"{attends[-1]}.places"]
        if names:
            name = names[max(len(names) - 2, 0)]
            return {name: shapes[name]}
    return site_shapes(net, sites_for_noise(net, settings.sites), task.example())


def _check_effects(
    s: HetDropoutSettings, shapes: Mapping[str, SiteShape], flat: list[str], task: Task
) -> None:
    """Raise an error for settings that have no effect for this x* at these sites."""
    is_region = task.xstar_kind == "region"
    if isinstance(s.prior, RegionPrior) and (flat or not is_region):
        where = f"{flat[0]} has no places" if flat else "x* marks no region here"
        raise LupiError(f"prior: inside and outside need sites with places; {where}")
    check_draw(s.draw, shapes)
    at_words = task.places == "words" and len(flat) < len(shapes)
    if isinstance(s, LearnedNoise) and s.sees_words and not at_words:
        raise LupiError("sees_words applies only at the words of a text; remove it")

"""Settings of heteroscedastic dropout, and checks for settings without effect."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import Field, field_validator

from lupi.errors import LupiError
from lupi.noise.layer import (
    Budget,
    Distribution,
    Draw,
    Form,
    Missing,
    PenaltyName,
    RegionPrior,
    check_draw,
)
from lupi.noise.sites import SiteShape
from lupi.settings import Settings


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


class HetDropoutSettings(Settings):
    """Sites, draws and prior of the noise, and how h* is trained."""

    sites: tuple[str, ...] | None = None
    """Names or patterns, such as `trunk.site2` or `head.*`; `output` is the network's output. By
    default every dropout layer; for a region, the input of the attention pooling or, without one,
    the second-to-last site with places."""
    draw: Draw | None = None
    """What shares a draw: `unit` (one draw per entry, as in the paper), `place`, `channel` or
    `example`; by default `channel` at feature maps and sequences, `unit` at vectors."""
    distribution: Distribution = "gaussian"
    """`bernoulli` drops all values that share a draw; for a fixed variance (`learn: false`)."""
    form: Form = "multiplicative"
    """`additive`: for noise on logits or outputs."""
    prior: float | RegionPrior | None = None
    """The prior variance h0: a number, or `{inside: 0, outside: 1}` at sites with places. By
    default the variance of the replaced dropout layer; for a region, 0 inside and 1 outside."""
    learn: bool = True
    """Whether to learn h*, starting at h0; if not, the variance stays h0(x*)."""
    beta: float = Field(0.01, ge=0)
    """Weight of the penalty."""
    penalty: PenaltyName = "kl"
    """Divergence of h* from h0: kl, l2-squared and huber are smooth, l2 (the paper) and l1 not."""
    budget: Budget = "batch"
    """Keep the mean variance of a `batch` or of each `example` constant, so that h* only
    distributes the noise. With `none`, h* also sets its amount, and reduces it."""
    hstar_lr: float = Field(1.0, gt=0, le=1000)
    """Learning rate of h*, as a multiple of the student's."""
    hstar_weight_decay: float | None = Field(None, ge=0)
    """Weight decay of h*; by default the student's."""
    warmup_epochs: int = Field(0, ge=0)
    """Epochs over which the variance increases to its full size."""
    missing: Missing = "mean"
    """Variance of rows without x*: the `mean` of the others, the `prior`, or `none`."""
    n_samples: int = Field(1, ge=1, le=64)
    """Draws per example; only the part of the network after the first site is repeated."""
    objective: Literal["mean", "marginal"] = "mean"
    """Loss over draws: the `mean` of the losses (as in the paper), or `marginal`: the negative log
    of the mean likelihood."""
    fc_input: Literal["blackout", "box"] = "blackout"
    """Input of h* for a region at sites without places: the `blackout` image, passed through the
    student's convolutions as in the paper, or the four numbers of the `box`."""
    xstar_pass_frac: float = Field(1.0, gt=0, le=1)
    """Fraction of each batch whose blackout images pass through the convolutions; the others count
    as rows without x*. Smaller is faster."""
    sees_words: bool = False
    """Whether h* also sees the words (texts only)."""
    per_channel: bool = False
    """Whether each channel has its own variance (sites with places)."""
    kernel: Literal[1, 3, 5] = 1
    """Kernel size of h* over x*; 1 means the place itself (sites with places)."""
    curriculum: Literal[False] | Curriculum = False
    """Train in stages, as the paper does with 600K images: `true`, or settings of the stages."""

    @field_validator("curriculum", mode="before")
    @classmethod
    def _papers_own(cls, value: Any) -> Any:
        return {} if value is True else value

    @property
    def has_hstar(self) -> bool:
        """Whether there is a network h*."""
        return self.learn


def check_effects(
    settings: HetDropoutSettings,
    shapes: Mapping[str, SiteShape],
    is_region: bool,
    is_sequence: bool,
    of_words: bool = False,
) -> None:
    """Raise an error for settings that are invalid or have no effect at these sites."""
    s = settings
    flat = [name for name, found in shapes.items() if not found.places]
    placed = [name for name, found in shapes.items() if found.places]
    if isinstance(s.prior, RegionPrior) and (flat or not is_region):
        where = f"{flat[0]} has no places" if flat else "x* marks no region here"
        raise LupiError(f"prior: inside and outside need sites with places; {where}")
    if s.n_samples > 1 and is_sequence:
        raise LupiError(
            f"n_samples: got {s.n_samples}; networks of sequences support only one draw"
        )
    if s.curriculum and not s.has_hstar:
        raise LupiError("curriculum trains h* first, but with `learn: false` there is no h*")
    if s.distribution == "bernoulli" and s.has_hstar:
        raise LupiError("distribution: bernoulli gives h* no gradient; add `learn: false`")
    if s.distribution == "bernoulli" and s.form == "additive":
        raise LupiError("distribution: bernoulli drops activations; it can't be additive")
    check_draw(s.draw, shapes)
    if s.n_samples == 1:
        _refuse(s, ["objective"], "with one draw (n_samples: 1)")
    if not s.has_hstar:
        of_hstar = ["beta", "penalty", "budget", "hstar_lr", "hstar_weight_decay"]
        of_hstar += ["sees_words", "per_channel", "kernel", "fc_input", "xstar_pass_frac"]
        _refuse(s, of_hstar, "without h* (learn: false)")
    if not (is_region and placed):
        _refuse(s, ["per_channel", "kernel"], "without a site whose places x* marks")
    if not (of_words and placed):
        _refuse(s, ["sees_words"], "without a site at the words of a text")
    if of_words and s.fc_input == "box":
        raise LupiError("fc_input: the words of a text have no box; use blackout")
    if s.sees_words:
        _refuse(s, ["per_channel", "kernel"], "where h* sees words")
    if not (is_region and flat):
        _refuse(s, ["fc_input", "xstar_pass_frac"], "without a region and a site without places")
    if s.fc_input == "box":
        _refuse(s, ["xstar_pass_frac"], "with fc_input: box, which passes no images")


def _refuse(settings: HetDropoutSettings, names: Iterable[str], why: str) -> None:
    for name in names:
        value = getattr(settings, name)
        if value != HetDropoutSettings.model_fields[name].default:
            raise LupiError(f"{name}: {value!r} has no effect {why}; remove it")

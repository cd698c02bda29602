"""Heteroscedastic dropout as one layer: multiplicative noise whose variance is a function of x*.

    z = h * (1 + sigma * eps),   eps ~ N(0, 1),   sigma^2 = h*(x*)

Lambert, Sener, Savarese: "Deep Learning under Privileged Information Using Heteroscedastic
Dropout", CVPR 2018.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from lupi.core.batch import finite_rows, over_rows
from lupi.nn.layouts import Layout, default_layout
from lupi.noise.draws import Distribution, Draw, Form, add_noise, default_draw
from lupi.noise.penalties import PENALTIES, PenaltyName
from lupi.noise.priors import Prior
from lupi.noise.readings import OfficialReading, PaperReading, Reading, ReadingName
from lupi.noise.variances import (
    BUDGETS,
    LOGVAR_LIMIT,
    LOGVAR_MAX,
    LOGVAR_MIN,
    MISSING,
    Budget,
    Missing,
    Variance,
    bounded,
    fit_to,
)

XSTAR_MAX = 1e6
"""x* is clipped to this before h*, so that no finite input overflows."""


class NoisyOutput(NamedTuple):
    """Activations with noise, and the penalty."""

    output: Tensor
    penalty: Tensor
    """(B,): the weighted penalty of each row, 0 without x*. Add its mean to the loss."""


class HeteroscedasticDropout(nn.Module):
    """Dropout whose variance is a function of x*: noise in training, identity in `eval()`.

        drop = HeteroscedasticDropout(nn.Linear(4, 64))     # h*: x* (B, 4) -> 64 log-variances
        h, penalty = drop(h, xstar)                         # h: (B, 64)
        loss = cross_entropy(head(h), y) + penalty.mean()

    `hstar` maps x* to offsets of the log-variance from that of the prior, so that an output of
    zero gives the prior. Its output is (B, units), or (B, 1 or channels, ...) with a map.

    Args:
        hstar: The network h* on x*. None keeps the variance at the prior.
        prior: The variance h0: a number, or a function from x* to variances (for a box mask:
            one variance inside, another outside). The paper uses 1.
        beta: Weight of the penalty.
        penalty: Divergence of h* from the prior: `kl`, `l2-squared`, `huber`, `l2` or `l1`.
        budget: Keep the mean variance of the `batch`, or of each `example`, at that of the
            prior, so that h* distributes the noise but does not change its amount; or `none`.
            Without a budget, h* reduces all noise, because that lowers the training loss.
        missing: Variance of rows without x*: the `mean` variance of the rows with x* (the prior
            if there are none), the `prior`, or `none`. If the prior is a function of x*, rows
            get no noise with `prior`, or if no row of the batch has x*.
        draw: Entries that share one draw: `unit`, `place`, `channel` or `example`. The default
            is `channel` for maps and sequences and `unit` for vectors.
        distribution: `gaussian`, or `bernoulli`, which drops entries at the rate with the same
            variance. Bernoulli draws give no gradient to h*.
        form: `multiplicative`, or `additive` for noise on logits or outputs.
        n_samples: Draws per example. The output, and everything after it, then has
            n_samples * B rows; rows that were already repeated are not repeated again.
        reading: `paper`, or `official` for the authors' code.
        layout: Layout of the activations; by default (B, C), (B, T, C) or (B, C, H, W).
    """

    def __init__(
        self,
        hstar: nn.Module | None,
        *,
        prior: Prior = 1.0,
        beta: float = 0.01,
        penalty: PenaltyName = "kl",
        budget: Budget = "batch",
        missing: Missing = "mean",
        draw: Draw | None = None,
        distribution: Distribution = "gaussian",
        form: Form = "multiplicative",
        n_samples: int = 1,
        reading: ReadingName = "paper",
        layout: Layout | None = None,
    ) -> None:
        super().__init__()
        if not callable(prior) and not (math.isfinite(prior) and prior >= 0):
            raise ValueError(f"prior: got {prior!r}, expected a finite variance >= 0")
        if beta < 0 or n_samples < 1:
            raise ValueError(f"got beta={beta}, n_samples={n_samples}; expected >= 0 and >= 1")
        if reading != "paper" and hstar is None:
            raise ValueError(f"reading: {reading} has no prior: it needs an hstar")
        if distribution == "bernoulli" and hstar is not None:
            raise ValueError("distribution: bernoulli gives h* no gradient; omit `hstar`")
        self.hstar = hstar
        self.prior = prior
        self.keep_budget = BUDGETS[budget if reading == "paper" else "none"]
        self.fill_missing = MISSING[missing]
        self.draw = draw
        self.distribution: Distribution = distribution
        self.form: Form = form
        self.n_samples = n_samples
        self.reading: Reading = (
            PaperReading(beta if hstar is not None else 0.0, PENALTIES[penalty])
            if reading == "paper"
            else OfficialReading(beta, relu=reading == "official")
        )
        self.layout = layout
        self.strength = 1.0
        """Factor of the variance, below 1 during warm-up."""

    def forward(
        self, h: Tensor, xstar: Tensor | None = None, has_xstar: Tensor | None = None
    ) -> NoisyOutput:
        """Return `h` with noise and the penalty; in `eval()` `h` itself, whatever x* is.

        Args:
            h: (B, ...) activations, or (k * B, ...) where k draws were made before.
            xstar: (B, ...).
            has_xstar: (B,) bool; rows that are False, and rows of x* that are not finite,
                follow `missing`.
        """
        if not self.training:
            return NoisyOutput(h, h.new_zeros(len(h)))
        if xstar is None:
            raise ValueError("heteroscedastic dropout trains with x*; call .eval() to predict")
        noisy, variance = self.sample(h, xstar, has_xstar)
        return NoisyOutput(noisy, self.reading.penalty([variance]))

    def sample(
        self, h: Tensor, xstar: Tensor, has_xstar: Tensor | None = None
    ) -> tuple[Tensor, Variance]:
        """Return `h` with noise, and its variance."""
        if len(h) == len(xstar) and self.n_samples > 1:
            h = h.repeat(self.n_samples, *[1] * (h.dim() - 1))
        variance = self.variance(h, xstar, has_xstar)
        logvar = bounded(variance.logvar)
        if self.strength < 1:
            logvar = logvar + math.log(max(self.strength, 1e-12))
        if len(h) > len(xstar):  # several draws of each row
            logvar = logvar.repeat(len(h) // len(xstar), *[1] * (h.dim() - 1))
        layout = self.layout or default_layout(h.dim())
        draw = self.draw or default_draw(layout)
        noisy = add_noise(h, logvar, layout, draw, self.distribution, self.form)
        return noisy, variance

    def variance(self, h: Tensor, xstar: Tensor, has_xstar: Tensor | None = None) -> Variance:
        """Return the variance for activations like `h`; only the shape of `h` is used."""
        has = finite_rows(xstar)
        if has_xstar is not None:
            has = has & has_xstar
        every = not torch.compiler.is_compiling() and bool(has.all())
        layout = self.layout or default_layout(h.dim())
        h = h[: len(xstar)]
        # Variances are computed in the precision of h*'s weights even under autocast.
        with torch.autocast(xstar.device.type, enabled=False):
            if not every:
                xstar = torch.where(over_rows(has, xstar), xstar, 0)
            xstar = xstar.to(self._dtype(xstar))
            largest = min(XSTAR_MAX, torch.finfo(xstar.dtype).max)
            xstar = xstar.clamp(-largest, largest)
            prior = self._log_prior(xstar, h, layout)
            if self.hstar is None:
                logvar = prior.expand(len(xstar), *prior.shape[1:])
            else:
                offset = fit_to(self.hstar(xstar), h, layout)
                logvar = self.reading.logvar(offset, prior, has)
                logvar = logvar.nan_to_num().clamp(-LOGVAR_LIMIT, LOGVAR_LIMIT)
                logvar = self.keep_budget(logvar, prior, has)
            if every:
                return Variance(logvar, prior, has)
            of_missing = torch.full_like(prior[:1], LOGVAR_MIN) if callable(self.prior) else prior
            fill = self.fill_missing(logvar, of_missing, has)
            return Variance(torch.where(over_rows(has, logvar), logvar, fill), prior, has)

    def _log_prior(self, xstar: Tensor, h: Tensor, layout: Layout) -> Tensor:
        """Return log h0: of each row, or of all rows at once if it is a number."""
        lowest, highest = math.exp(LOGVAR_MIN), math.exp(LOGVAR_MAX)
        if not callable(self.prior):
            logvar = math.log(min(max(self.prior, lowest), highest))
            return xstar.new_full([1] * h.dim(), logvar)
        return fit_to(self.prior(xstar), h, layout).clamp(lowest, highest).log()

    def _dtype(self, xstar: Tensor) -> torch.dtype:
        if self.hstar is not None and (weight := next(self.hstar.parameters(), None)) is not None:
            return weight.dtype
        return xstar.dtype if xstar.is_floating_point() else torch.float32

    def extra_repr(self) -> str:
        """Return the main settings."""
        prior = "function of x*" if callable(self.prior) else self.prior
        return f"prior={prior}, draw={self.draw or 'usual'}, {self.reading}"

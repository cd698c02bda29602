"""The observed noise of a trained run as plain arrays, one row per example."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lupi.text_samples import TextSample

Floats = NDArray[np.float64]
Unit = Literal["unit", "channel", "place", "part"]


@dataclass(frozen=True, slots=True)
class SiteNoise:
    """The variance h*(x*) at one site."""

    name: str
    variances: Floats
    """(rows, units). At a site with a map, units are channels (averaged over places) or, if all
    channels share a map, places; at the words of texts there are two: inside and outside."""
    unit: Unit
    between: float
    """Standard deviation of the log-variance over rows, averaged over units: the effect of x*."""
    collapsed: bool
    inside: Floats | None = None
    """(rows,) mean variance inside the region marked by x*, at sites with a map."""
    outside: Floats | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """Validation rows with x*, the student's predictions and the noise."""

    method: str
    control: str
    """The control of the run: `real`, `shuffled`, …"""
    n_held: int
    """Number of validation rows; the analysis uses every k-th of those with x*."""
    losses: Floats
    """(rows,)"""
    correct: NDArray[np.bool_] | None
    """(rows,) whether the predicted class is correct; None in regression."""
    region_frac: Floats | None
    """(rows,) fraction of the image or of the words marked by x*; None for a vector."""
    sites: tuple[SiteNoise, ...]
    samples: dict[str, NDArray[Any]] = field(default_factory=dict)
    """Sample images, as in a run's samples.npz; empty if x is not an image."""
    texts: tuple[TextSample, ...] = ()
    """Sample texts, if x is a text."""

"""What was seen of a trained run's noise: plain arrays, a row per image or example."""

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
    """(rows, units). At a site with a map: the mean over places of each channel, or, where all
    channels share a map, its places; at the words of texts two parts: inside and outside."""
    unit: Unit
    between: float
    """Standard deviation of log-variance over rows, averaged over units: what comes from x*."""
    collapsed: bool
    inside: Floats | None = None
    """(rows,) mean variance inside the region that x* marks, at sites with a map."""
    outside: Floats | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """Rows of validation data that carry x*, with the student's answers and the noise."""

    method: str
    control: str
    """What x* was in training, and is here: `real`, `shuffled`, …"""
    n_held: int
    """Validation rows there are; every k-th with x* was looked at."""
    losses: Floats
    """(rows,)"""
    right: NDArray[np.bool_] | None
    """(rows,) whether the class was right; None where there are no classes."""
    region_frac: Floats | None
    """(rows,) the fraction of the image, or of the words, that x* marks; None for a vector."""
    sites: tuple[SiteNoise, ...]
    samples: dict[str, NDArray[Any]] = field(default_factory=dict)
    """Some images, as in a run's samples.npz; empty where x is no image."""
    texts: tuple[TextSample, ...] = ()
    """Some texts, where x is one."""

"""Whether an image looks like the training images: its brightness, contrast, colour and detail.

Four numbers that anyone can check. An image outside their range in training, such as a photograph
among X-rays, a black frame or a blurred one, gets a prediction that means little.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

N_IMAGES = 128
"""Training images that are looked at."""
MARGIN = 0.5
"""How far a range is widened to each side, as a fraction of its width; chance must not mark."""
MIN_WIDTH = 0.05

Ranges = dict[str, tuple[float, float]]


def looks(x: NDArray[np.float32]) -> dict[str, NDArray[np.float64]]:
    """Return four numbers for each of the images (B, C, H, W), with pixels in [0, 1]."""
    x = x.astype(np.float64)
    grey = x.mean(1)  # (B, H, W)
    return {
        "brightness": grey.mean((1, 2)),
        "contrast": grey.std((1, 2)),
        "colour": x.std(1).mean((1, 2)),
        "detail": np.abs(np.diff(grey, axis=2)).mean((1, 2)),
    }


def typical_looks(x: NDArray[np.float32]) -> Ranges:
    """Return the ranges of training images, widened."""
    ranges: Ranges = {}
    for name, values in looks(x).items():
        low, high = float(values.min()), float(values.max())
        margin = MARGIN * max(high - low, MIN_WIDTH)
        ranges[name] = (round(low - margin, 6), round(high + margin, 6))
    return ranges


def unlike(x: NDArray[np.float32], typical: Mapping[str, tuple[float, float]]) -> dict[int, str]:
    """Return the images that are outside a range, with the reason."""
    reasons: dict[int, str] = {}
    for name, values in looks(x).items() if typical else ():
        low, high = typical.get(name, (-np.inf, np.inf))
        for row in np.flatnonzero((values < low) | (values > high)).tolist():
            expected = f"{max(low, 0):.2f} to {min(high, 1):.2f}"
            start = f"{reasons[row]}; " if row in reasons else "unlike the training images: "
            reasons[row] = f"{start}{name} is {values[row]:.2f}, {expected} in training"
    return reasons

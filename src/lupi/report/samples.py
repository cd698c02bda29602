"""Samples of runs for a page: images with their noise or attention as PNG, texts shaded by word."""

import base64
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from plotly.colors import hex_to_rgb, sequential

from lupi.errors import LupiError
from lupi.records import ComparisonRecord, RunRecord
from lupi.text_samples import TextSample, read_text_samples
from lupi.unpack import read_arrays
from lupi.verdict.results import Summary
from lupi.verdict.roles import is_candidate
from lupi.verdict.units import plain

SIDE = 160
"""Pixels of an image's longer side on the page, about: a whole multiple of what was recorded."""
LARGEST = 200
MOST = 8
"""Maximum number of images on the page."""
OUTLINE = (255, 176, 0)

Pixels = NDArray[np.uint8]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scale:
    """The colour scale of one site's variance maps."""

    site: str
    bar: str
    low: str
    middle: str
    high: str


@dataclass(frozen=True, slots=True)
class Sample:
    """One image as data URIs, with label and prediction."""

    image: str
    outlined: str
    maps: tuple[str, ...]
    """One per scale of the album, in the same order."""
    label: str
    prediction: str


@dataclass(frozen=True, slots=True)
class Album:
    """The sample images of one run."""

    samples: tuple[Sample, ...]
    scales: tuple[Scale, ...]


def read_album(path: Path, classes: Sequence[str] = ()) -> Album:
    """Convert a `samples.npz` to images; an error names the file and the problem.

    Labels are replaced by the names in `classes`, if given.
    """
    try:
        return make_album(read_arrays(path), classes)
    except (LupiError, TypeError, ValueError, KeyError, IndexError) as error:
        raise LupiError(f"{path} can't be shown as images: {error}") from None


def make_album(arrays: dict[str, NDArray[Any]], classes: Sequence[str] = ()) -> Album:
    """Convert the arrays of a `samples.npz` to images."""
    images, masks = arrays["x"][:MOST], arrays["mask"][:MOST]
    if images.ndim not in (3, 4) or masks.shape != images.shape[:3]:
        raise ValueError(f"x has shape {images.shape} and mask {masks.shape}")
    labels, predictions = arrays["label"], arrays["prediction"]
    colours: list[list[Pixels]] = []
    scales = []
    for name in sorted(arrays):
        if name.startswith("variance/"):
            variances = np.asarray(arrays[name][:MOST], dtype=np.float64)
            if variances.ndim != 3 or len(variances) != len(images):
                raise ValueError(f"{name} has shape {variances.shape}, expected (k, h, w)")
            scale, maps = coloured(name.removeprefix("variance/"), variances)
            scales.append(scale)
            colours.append(maps)
    samples = []
    for i, image in enumerate(images):
        size = _display_size(image.shape[0], image.shape[1])
        shown = _resized(np.asarray(image, dtype=np.uint8), size)
        samples.append(
            Sample(
                image=data_uri(shown),
                outlined=data_uri(_outlined(shown, _resized(masks[i].astype(np.uint8), size) > 0)),
                maps=tuple(data_uri(_resized(maps[i], size)) for maps in colours),
                label=_class_name(labels[i], classes),
                prediction=_class_name(predictions[i], classes),
            )
        )
    return Album(tuple(samples), tuple(scales))


def _class_name(label: Any, classes: Sequence[str]) -> str:
    return classes[int(label)] if 0 <= int(label) < len(classes) else str(label)


def _display_size(height: int, width: int) -> tuple[int, int]:
    """Return the display size: small images are enlarged by an integer, large ones shrunk."""
    longer = max(height, width)
    factor: float = max(1, SIDE // longer) if longer <= LARGEST else LARGEST / longer
    return max(1, round(height * factor)), max(1, round(width * factor))


def _resized(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Resize (h, w) or (h, w, 3) to `size`: nearest neighbour, but smooth to shrink a photo."""
    shrinks = pixels.shape[0] > size[0] and pixels.ndim == 3
    how = Image.Resampling.LANCZOS if shrinks else Image.Resampling.NEAREST
    return np.asarray(Image.fromarray(pixels).resize((size[1], size[0]), how), dtype=np.uint8)


def _outlined(pixels: Pixels, mask: NDArray[np.bool_]) -> Pixels:
    """Draw the border of `mask`: bright inside, dark outside, visible on any image."""
    rgb = pixels if pixels.ndim == 3 else np.repeat(pixels[:, :, None], 3, axis=2)
    rgb = rgb.copy()
    inner = mask & ~_shrunk(mask, 2)
    rgb[~mask & _grown(mask, 1)] = (0, 0, 0)
    rgb[inner] = OUTLINE
    return rgb


def _grown(mask: NDArray[np.bool_], steps: int) -> NDArray[np.bool_]:
    """Grow a mask by `steps` pixels in all eight directions."""
    height, width = mask.shape
    padded = np.pad(mask, steps)
    reach = range(2 * steps + 1)
    shifts = [padded[i : i + height, j : j + width] for i in reach for j in reach]
    return np.asarray(np.stack(shifts).any(axis=0), dtype=np.bool_)


def _shrunk(mask: NDArray[np.bool_], steps: int) -> NDArray[np.bool_]:
    # Outside the image counts as outside the box, so a box at the edge also gets a line.
    padded = np.pad(~mask, steps, constant_values=True)
    return ~_grown(padded, steps)[steps:-steps, steps:-steps]


def coloured(site: str, variances: Floats) -> tuple[Scale, list[Pixels]]:
    """Colour (k, h, w) variances on one scale; values that are not finite are grey."""
    finite = variances[np.isfinite(variances)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    place = (variances - low) / (high - low if high > low else 1.0)
    index = np.where(np.isfinite(place), np.clip(place, 0, 1) * 255, 0).astype(np.intp)
    rgb = _table()[index]  # (k, h, w, 3)
    rgb[~np.isfinite(variances)] = 128
    bar = data_uri(_resized(_table()[None], (12, 256)))
    scale = Scale(site, bar, plain(low), plain((low + high) / 2), plain(high))
    return scale, list(rgb)


def _table() -> Pixels:
    """Return 256 colours of Viridis, interpolated between plotly's ten."""
    anchors = np.array(
        [hex_to_rgb(colour) for colour in sequential.Viridis], dtype=np.float64
    )  # (10, 3)
    where = np.linspace(0, len(anchors) - 1, 256)
    columns = [np.interp(where, np.arange(len(anchors)), anchors[:, c]) for c in range(3)]
    return np.stack(columns, axis=1).round().astype(np.uint8)


def png(pixels: Pixels) -> bytes:
    """Write pixels (h, w) or (h, w, 3) as a PNG file."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def data_uri(pixels: Pixels) -> str:
    """Return pixels as a data URI."""
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode("ascii")


N_SHADES = 8
"""Number of shades; neighbouring words of one shade form one piece."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive words with the same shade."""

    text: str
    inside: bool
    """Whether they belong to the rationale."""
    shade: int
    """Percentage of the largest variance of the site."""


@dataclass(frozen=True, slots=True)
class ShadedText:
    """One text at one site."""

    pieces: tuple[Piece, ...]
    label: str
    prediction: str


@dataclass(frozen=True, slots=True)
class ShadedSite:
    """The sample texts with the noise at one site."""

    site: str
    largest: str
    """The variance of the darkest shade."""
    texts: tuple[ShadedText, ...]


def shade_texts(samples: Sequence[TextSample]) -> list[ShadedSite]:
    """Shade the words of each text by site; all texts of a site share one scale."""
    sites = dict.fromkeys(site for sample in samples for site in sample.variances)
    return [_shade_site(site, [s for s in samples if site in s.variances]) for site in sites]


def _shade_site(site: str, samples: Sequence[TextSample]) -> ShadedSite:
    largest = max((max(s.variances[site], default=0.0) for s in samples), default=0.0)
    texts = (
        ShadedText(tuple(_pieces(s, s.variances[site], largest)), s.label, s.prediction)
        for s in samples
    )
    return ShadedSite(site, plain(largest), tuple(texts))


def _pieces(sample: TextSample, variances: Sequence[float], largest: float) -> Iterator[Piece]:
    def look(word: tuple[str, float, float]) -> tuple[bool, int]:
        _, inside, variance = word
        share = min(max(variance / largest, 0.0), 1.0) if largest > 0 else 0.0
        return inside >= 0.5, round(share * N_SHADES) * 100 // N_SHADES

    words = zip(sample.words, sample.region, variances, strict=True)
    for (inside, shade), alike in groupby(words, look):
        yield Piece(" ".join(word for word, _, _ in alike), inside, shade)


MOST_ARMS = 3


@dataclass(frozen=True, slots=True)
class Looks:
    """Attention of some arms in test rows of one seed."""

    size: int
    seed: int
    arms: tuple[str, ...]
    album: Album | None = None
    """Images; its maps are those of the arms."""
    texts: Sequence[ShadedSite] = ()
    """Texts, one site per arm."""


def read_looks(
    record: ComparisonRecord, summary: Summary, warnings: list[str], classes: Sequence[str] = ()
) -> Looks | None:
    """Return the samples of arms without x* and the first arms with it; None if there are none.

    They are of the largest size, and of its first seed with samples of every chosen arm.
    """
    plain = [arm.name for arm in summary.arms if not arm.uses_xstar]
    order = [*plain, *(arm.name for arm in summary.arms if is_candidate(arm))]
    found: dict[tuple[int, int], dict[str, Path]] = {}
    for run in record.runs:
        if run.plan.arm in order and (path := _samples(run)) is not None:
            found.setdefault((-run.plan.size, run.plan.seed), {})[run.plan.arm] = path
    if not found:
        return None
    n_arms = max(map(len, found.values()))
    (size, seed), paths = next((k, v) for k, v in sorted(found.items()) if len(v) == n_arms)
    arms = tuple(arm for arm in order if arm in paths)[:MOST_ARMS]
    try:
        if paths[arms[0]].suffix == ".json":
            texts = [shade_texts(read_text_samples(paths[arm])) for arm in arms]
            return Looks(-size, seed, arms, texts=[sites[0] for sites in texts if sites])
        arrays = read_arrays(paths[arms[0]])
        arrays.pop("attention")
        for i, arm in enumerate(arms):
            arrays[f"variance/{i} {arm}"] = read_arrays(paths[arm])["attention"]
        return Looks(-size, seed, arms, album=make_album(arrays, classes))
    except (LupiError, KeyError, TypeError, ValueError, IndexError) as error:
        warnings.append(f"{record.folder}: attention can't be shown: {error}")
        return None


def _samples(run: RunRecord) -> Path | None:
    paths = (run.folder / "attention.npz", run.folder / "attention.json")
    return next((path for path in paths if path.exists()), None)

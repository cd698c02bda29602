"""Observe the noise of a finished run on validation rows with their x*.

Validation rows have no x* in training and selection; it is revealed only here, afterwards. The
paper also analyses validation rows, and training rows would show what was memorised.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from lupi.analysis.observed import Floats, Observed, SiteNoise, Unit
from lupi.core import Batch, Split
from lupi.errors import LupiError
from lupi.files import read_json
from lupi.text_samples import TextSample
from lupi.train.evaluate import COLLAPSED_BELOW
from lupi.train.finished import FinishedRun, read_finished
from lupi.train.samples import text_samples, with_words

BATCH = 256
N_SAMPLES = 4
"""Number of samples kept with correct, and with wrong, predictions."""

Parts = dict[str, list[Tensor]]


def observe(
    folder: Path, n_rows: int, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> Observed:
    """Pass up to `n_rows` evenly spaced validation rows through a run's student and its h*.

    `on_progress` is called with the number of processed rows and the total.
    """
    run = read_finished(folder)
    run.load_helpers()
    s = run.settings
    split = run.task.splits(s.size, s.seed, s.control, s.xstar_frac, reveal=True).val
    gathered: Parts = {}
    noise: Parts = {}
    for n_batches, batch in enumerate(_every(split, -(-len(split) // n_rows)), start=1):
        _gather(run, batch, gathered, noise)
        on_progress(min(n_batches * BATCH, len(split)), len(split))
    if not noise:
        raise LupiError(f"{folder}: no validation row has x*, so its noise can't be analysed")
    rows = {name: _joined(parts) for name, parts in gathered.items()}
    logvars = {name: _joined(parts) for name, parts in noise.items()}
    if len(rows["loss"]) < 2:
        raise LupiError(f"{folder}: only one validation row has x*; an analysis needs at least two")
    is_text = run.task.places == "words"
    return Observed(
        method=s.method,
        control=s.control,
        n_held=len(split),
        losses=_floats(rows["loss"]),
        correct=rows["correct"].numpy() if "correct" in rows else None,
        region_frac=_region_frac(rows),
        sites=tuple(_site(name, logvar, rows) for name, logvar in logvars.items()),
        samples={} if getattr(run.task, "sees_maps", False) else _samples(rows, logvars),
        texts=_texts(rows, logvars, run) if is_text else (),
    )


def _joined(parts: list[Tensor]) -> Tensor:
    """Concatenate batches; texts (B, T, ...) are padded with 0 to the longest."""
    longest = max((part.shape[1] for part in parts if part.dim() > 1), default=0)
    return torch.cat([_padded(part, longest) for part in parts])


def _padded(part: Tensor, length: int) -> Tensor:
    if part.dim() < 2 or part.shape[1] == length:
        return part
    missing = part.new_zeros(len(part), length - part.shape[1], *part.shape[2:])
    return torch.cat([part, missing], 1)


def _region_frac(rows: dict[str, Tensor]) -> Floats | None:
    """Return the fraction of each row's places marked by x*."""
    if "mask" not in rows:
        return None
    places = rows["places"].double()
    return _floats((rows["mask"] * places).flatten(1).sum(1) / places.flatten(1).sum(1).clamp(1))


def _every(split: Split, step: int) -> Iterator[Batch]:
    """Yield every `step`-th row, without rows that lack x*."""
    first = 0
    for batch in split.batches(BATCH):
        kept = (torch.arange(len(batch.y)) + first) % step == 0
        first += len(batch.y)
        kept &= batch.privileged()[1]
        yield batch.select(kept)


@torch.no_grad()
def _gather(run: FinishedRun, batch: Batch, gathered: Parts, noise: Parts) -> None:
    if not len(batch.y):
        return
    assert batch.xstar is not None
    output = run.method.predict(batch.x)
    found = {"loss": run.task.example_loss(output, batch.y), "y": batch.y}
    if output.dim() == 2 and batch.y.dim() == 1 and not batch.y.is_floating_point():
        found |= {
            "correct": output.argmax(1) == batch.y,
            "prediction": output.argmax(1),
        }
    if run.task.xstar_kind == "region":
        mask = batch.xstar[:, 0]  # (B, H, W), or (B, T)
        places = batch.x > 0 if run.task.places == "words" else torch.ones_like(mask)
        found |= {"mask": mask, "places": places, "x": batch.x, "output": output}
    for name, value in found.items():
        gathered.setdefault(name, []).append(value.cpu())
    for site, logvar in run.method.logvars(batch).items():
        noise.setdefault(site, []).append(logvar.float().cpu())


def _site(name: str, logvar: Tensor, rows: dict[str, Tensor]) -> SiteNoise:
    """Describe log-variances (rows, units), a map (rows, channels, h, w), or words (rows, T, C)."""
    if logvar.dim() == 3 and rows.get("mask", logvar).dim() == 2:
        return _words_site(name, logvar, rows["mask"], rows["places"])
    between = logvar.std(0, correction=0).mean().item()
    variance = logvar.double().exp()
    inside = outside = None
    unit: Unit = "unit"
    if logvar.dim() == 4:
        if "mask" in rows:
            inside, outside = _inside_outside(variance, rows["mask"])
        unit = "channel" if logvar.shape[1] > 1 else "place"
        variance = variance.mean((2, 3)) if unit == "channel" else variance
    units = _floats(variance.flatten(1))
    return SiteNoise(name, units, unit, between, between < COLLAPSED_BELOW, inside, outside)


def _words_site(name: str, logvar: Tensor, mask: Tensor, is_word: Tensor) -> SiteNoise:
    """Describe the noise at words by its variance inside and outside the rationale."""
    logvar = logvar.double().mean(2)  # (rows, T)
    known = torch.where(is_word, logvar, torch.nan)
    spread = (known - known.nanmean(0)).square().nanmean(0).sqrt()
    between = spread[is_word.sum(0) > 1].mean().item()
    means = []
    for part in (mask * is_word, (1 - mask) * is_word):
        means.append((logvar.exp() * part).sum(1) / part.sum(1))
    units = torch.stack(means, 1)
    filled = torch.where(units.isnan(), units.nanmean(0), units)
    inside, outside = (_floats(mean) for mean in means)
    collapsed = between < COLLAPSED_BELOW
    return SiteNoise(name, _floats(filled), "part", between, collapsed, inside, outside)


def _inside_outside(variance: Tensor, mask: Tensor) -> tuple[Floats, Floats]:
    """Return the mean variance of each row inside and outside its region; NaN if empty."""
    share = F.interpolate(mask[:, None].double(), variance.shape[2:], mode="area")
    mean = variance.mean(1, keepdim=True)  # (rows, 1, h, w)
    means = [(mean * part).sum((1, 2, 3)) / part.sum((1, 2, 3)) for part in (share, 1 - share)]
    return _floats(means[0]), _floats(means[1])


def _samples(rows: dict[str, Tensor], noise: dict[str, Tensor]) -> dict[str, NDArray[Any]]:
    """Return the first images with correct and with wrong predictions, with variance maps."""
    maps = {site: logvar for site, logvar in noise.items() if logvar.dim() == 4}
    if "correct" not in rows or "x" not in rows or not maps:
        return {}
    correct = rows["correct"]
    kept = torch.cat([correct.nonzero()[:N_SAMPLES, 0], (~correct).nonzero()[:N_SAMPLES, 0]])
    pixels = (rows["x"][kept] * 255).round().byte().permute(0, 2, 3, 1)  # (k, H, W, C)
    arrays = {
        "x": pixels[..., 0] if pixels.shape[-1] == 1 else pixels,
        "mask": rows["mask"][kept].round().byte(),
        "label": rows["y"][kept],
        "prediction": rows["prediction"][kept],
        **{f"variance/{site}": logvar[kept].exp().mean(1) for site, logvar in maps.items()},
    }
    return {name: tensor.numpy() for name, tensor in arrays.items()}


def _texts(
    rows: dict[str, Tensor], logvars: dict[str, Tensor], run: FinishedRun
) -> tuple[TextSample, ...]:
    """Return the first texts with correct and wrong predictions; in regression, the first ones."""
    kept = torch.arange(min(2 * N_SAMPLES, len(rows["x"])))
    if "correct" in rows:
        correct = rows["correct"]
        kept = torch.cat([correct.nonzero()[:N_SAMPLES, 0], (~correct).nonzero()[:N_SAMPLES, 0]])
    batch = Batch(rows["x"][kept], rows["y"][kept], rows["mask"][kept, None])
    noise = {site: logvar[kept] for site, logvar in logvars.items()}
    preprocessing = with_words(run.task, read_json(run.folder / "preprocessing.json"))
    return tuple(text_samples(batch, rows["output"][kept], noise, preprocessing))


def _floats(values: Tensor) -> Floats:
    return np.asarray(values.numpy(), dtype=np.float64)

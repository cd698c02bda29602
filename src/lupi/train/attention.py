"""Where a student with attention looks in held-out rows: a score, and a few samples.

The pointing score is the share of test rows whose attention has its maximum inside x*. x* of test
rows is read after training, for this score and for the report only.
"""

from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.core import Batch, Method, Split, Task
from lupi.errors import LupiError
from lupi.networks.pooling import AttentionPooling, attention_of
from lupi.tasks.images.image import in_pixels, sees_maps
from lupi.text_samples import write_text_samples
from lupi.train.samples import text_samples, with_words, write_images
from lupi.train.settings import RunSettings

BATCH = 128
N_SAMPLES = 6
LARGEST_SIDE = 128
"""Pixels of a saved image's side; larger ones are shrunk."""


class Looked(NamedTuple):
    """Where a student looked in the test rows with x*."""

    pointing: float
    """Share of rows whose attention has its maximum inside x*."""
    chance: float
    """The same for a place drawn evenly: the mean share of places inside x*."""


def look(
    method: Method, task: Task, settings: RunSettings, preprocessing: dict[str, Any], folder: Path
) -> Looked | None:
    """Score where a student looks, and save samples; None without attention or without x*."""
    if method.sees_xstar_at_test or task.xstar_kind != "region" or not _attends(method.net):
        return None
    try:
        test = task.splits(settings.size, settings.seed, reveal=True).test
    except LupiError:  # held-out rows have no x*
        return None
    method.eval()
    hits, shares = [], []
    for batch in test.batches(BATCH):
        rows = _with_region(batch)
        if not len(rows.y):
            continue
        attention, inside = _attention(method, rows)
        where = attention.flatten(1).argmax(1, keepdim=True)
        hits.append(inside.flatten(1).gather(1, where)[:, 0])
        shares.append(_share(inside, rows))
    if not hits:
        return None
    if settings.control == "real":
        _save_samples(method, task, settings, test, preprocessing, folder)
    return Looked(torch.cat(hits).mean().item(), torch.cat(shares).mean().item())


def _attends(net: nn.Module) -> bool:
    return any(isinstance(module, AttentionPooling) for module in net.modules())


def _with_region(batch: Batch) -> Batch:
    """Return the rows with a region that is not empty."""
    region, has = batch.privileged()
    return batch.select((has & region.flatten(1).any(1)).nonzero()[:, 0])


def _attention(method: Method, rows: Batch) -> tuple[Tensor, Tensor]:
    """Return attention and region of each row at the same places, (B, *grid)."""
    device = next(method.parameters()).device
    attention = attention_of(method.net, rows.x.to(device))
    assert attention is not None
    assert rows.xstar is not None
    attention = attention.cpu()
    if attention.dim() == 2:
        return attention, (rows.xstar[:, 0] >= 0.5).float()
    return attention, F.adaptive_max_pool2d(rows.xstar, attention.shape[1:])[:, 0].round()


def _share(inside: Tensor, rows: Batch) -> Tensor:
    """Return the share of places inside the region, (B,)."""
    is_place = torch.ones_like(inside) if inside.dim() == 3 else (rows.x > 0).to(inside.dtype)
    return inside.flatten(1).sum(1) / is_place.flatten(1).sum(1).clamp(min=1)


def _save_samples(
    method: Method,
    task: Task,
    settings: RunSettings,
    test: Split,
    preprocessing: dict[str, Any],
    folder: Path,
) -> None:
    """Save evenly spaced test rows: attention.npz (images) or attention.json (texts)."""
    rows, pixels = _spread(test), None
    if sees_maps(task):
        shown = in_pixels(task).splits(settings.size, settings.seed, reveal=True)
        pixels = _spread(shown.test)
    keep = _with_region(rows._replace(row=torch.arange(len(rows.y)))).row
    assert keep is not None
    rows, pixels = rows.select(keep), (pixels or rows).select(keep)
    if not len(rows.y):
        return
    attention, _ = _attention(method, rows)
    with torch.no_grad():
        output = method.predict(rows.x.to(next(method.parameters()).device)).cpu()
    if task.places == "words":
        logs = attention.clamp(min=1e-9).log()[..., None]  # as if it were a variance
        known = with_words(task, preprocessing)
        samples = text_samples(rows, output, {"attention": logs}, known)
        write_text_samples(folder / "attention.json", samples)
        return
    assert pixels.xstar is not None
    side = min(pixels.x.shape[-1], LARGEST_SIDE)
    x = F.interpolate(pixels.x, (side, side), mode="area")
    region = F.adaptive_max_pool2d(pixels.xstar, (side, side))
    more = {"attention": attention.float()}
    write_images(folder / "attention.npz", x, region, rows.y, output, more)


def _spread(split: Split) -> Batch:
    """Return a few rows, evenly spaced over a split, so that all classes are among them."""
    n = len(split)
    places = torch.linspace(0, n - 1, min(N_SAMPLES, n)).long().tolist()
    found: list[Batch] = []
    start = 0
    for batch in split.batches(BATCH):
        end = start + len(batch.y)
        here = [place - start for place in places if start <= place < end]
        if here:
            found.append(batch.select(torch.tensor(here)))
        start = end
    return _joined(found)


def _joined(parts: list[Batch]) -> Batch:
    """Concatenate rows; texts are padded to the longest."""

    def joined(name: str) -> Tensor:
        tensors = [getattr(part, name) for part in parts]
        longest = max(tensor.shape[-1] for tensor in tensors) if tensors[0].dim() > 1 else 0
        if longest:
            tensors = [F.pad(tensor, (0, longest - tensor.shape[-1])) for tensor in tensors]
        return torch.cat(tensors)

    return Batch(joined("x"), joined("y"), joined("xstar"), joined("has_xstar"))

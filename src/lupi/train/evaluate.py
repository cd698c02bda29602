"""Outputs of a student for a split, and statistics of the noise of a method."""

import math
from itertools import islice, zip_longest
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from lupi.core import Batch, Inputs, Method, SortableSplit, Split, Task
from lupi.train.processes import Processes, map_tensors

COLLAPSED_BELOW = 0.01
"""Between-sample standard deviation of log-variance: a change of 1 % in variance."""


class Outputs(NamedTuple):
    """What a task computes its metrics from."""

    output: Tensor
    y: Tensor
    weights: Tensor | None
    """Weights of the rows, (B,); None if all count the same."""


@torch.no_grad()
def compute_outputs(
    method: Method, split: Split, batch_size: int = 256, processes: Processes | None = None
) -> Outputs:
    """Return the student's outputs and the targets of a whole split. x* is not read.

    Outputs of sequences are condensed to what the metrics need. Several processes take turns with
    the batches, and each returns the outputs of all, in the order of the split.
    """
    if isinstance(split, SortableSplit):
        rows, places = split.sort()
        output, y, weights = _outputs_in_order(method, rows, batch_size, processes)
        return Outputs(output[places], y[places], None if weights is None else weights[places])
    return _outputs_in_order(method, split, batch_size, processes)


def _outputs_in_order(
    method: Method, split: Split, batch_size: int, processes: Processes | None
) -> Outputs:
    rank, n_processes = (processes.rank, processes.count) if processes else (0, 1)
    method.eval()
    task = method.task
    device = next(method.parameters()).device

    def to_device(tensor: Tensor) -> Tensor:
        return tensor.to(device)

    batches = []
    for batch in islice(split.batches(batch_size), rank, None, n_processes):
        x = processes.as_input(batch.x) if processes else map_tensors(batch.x, to_device)
        output, y = task.outcome.condense(_predict(method, x).cpu(), batch.y)
        batches.append(Outputs(output, y, batch.weights))
    if processes:
        turns = zip_longest(*processes.gather(batches))
        batches = [one for turn in turns for one in turn if one is not None]
    weights = [one.weights for one in batches if one.weights is not None]
    return Outputs(
        torch.cat([one.output for one in batches]),
        torch.cat([one.y for one in batches]),
        torch.cat(weights) if weights else None,
    )


def _predict(method: Method, x: Inputs) -> Tensor:
    """Predict; for V crops of each image (B, V, C, H, W), the log of their mean softmax."""
    if not isinstance(x, Tensor) or x.dim() != 5:
        return method.predict(x)
    crops = [method.predict(crop).log_softmax(1) for crop in x.unbind(1)]  # one by one: memory
    return torch.stack(crops).logsumexp(0) - math.log(len(crops))


def describe_noise(method: Method, task: Task, batch: Batch) -> dict[str, dict[str, float]]:
    """Describe the variance at each noise site over the rows of a batch that have x*.

    logvar_mean and logvar_spread are over rows and units; logvar_between is the standard
    deviation over rows, averaged over units: the part of the spread that comes from x*. Where
    x* marks a region of the site's places, the mean variance inside and outside it follow.
    """
    described = {}
    for site, logvar in method.logvars(batch).items():
        if len(logvar) < 2:
            continue
        logvar = logvar.float().cpu()
        inside, outside = _parts(task, batch, logvar)
        known = logvar
        if task.places == "words" and inside is not None and outside is not None:
            known = logvar.where(inside + outside > 0, torch.nan)  # not where texts are padded
        stats = {
            "logvar_mean": known.nanmean().item(),
            "logvar_spread": _spread(known.flatten()).item(),
            "logvar_between": _spread(known).nanmean().item(),
        }
        if inside is not None and outside is not None:
            stats["variance_inside"] = _weighted_mean(logvar.exp(), inside)
            stats["variance_outside"] = _weighted_mean(logvar.exp(), outside)
        described[site] = stats
    return described


def _parts(task: Task, batch: Batch, logvar: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Return to what degree each entry of a log-variance is inside and outside the region."""
    if task.xstar_kind != "region" or logvar.dim() < 3:
        return None, None
    assert batch.xstar is not None
    region = batch.xstar[batch.has_xstar].cpu()
    if task.places == "words":
        region, is_word = region[:, 0, :, None], (batch.x[batch.has_xstar] > 0).cpu()[..., None]
        return (region * is_word).expand_as(logvar), ((1 - region) * is_word).expand_as(logvar)
    inside = F.interpolate(region, logvar.shape[2:], mode="area").expand_as(logvar)
    return inside, 1 - inside


def _spread(values: Tensor) -> Tensor:
    """Return the standard deviation over the first dimension, ignoring NaN."""
    return (values - values.nanmean(0)).square().nanmean(0).sqrt()


def _weighted_mean(values: Tensor, weights: Tensor) -> float:
    return ((values * weights).sum() / weights.sum().clamp(min=1e-9)).item()


def is_collapsed(noise: dict[str, dict[str, float]]) -> bool | None:
    """Return whether the variance no longer depends on x* at any site; None without noise."""
    if not noise:
        return None
    return all(site["logvar_between"] < COLLAPSED_BELOW for site in noise.values())

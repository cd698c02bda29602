"""A few training rows of a run, kept for the report: images or texts with the noise they had."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lupi.core import Batch, Method, Splits, Task
from lupi.files import write_whole
from lupi.text_samples import MOST_WORDS, UNKNOWN, TextSample, write_text_samples
from lupi.train.parallel.processes import Processes

N_SAMPLES = 8


def write_samples(
    folder: Path,
    method: Method,
    task: Task,
    splits: Splits,
    preprocessing: dict[str, Any],
    processes: Processes,
) -> None:
    """Keep rows with x* as samples.npz (images) or samples.json (texts).

    A method without noise at places that x* marks has nothing to show.
    """
    if method.sees_xstar_at_test:
        return
    batch = next(iter(splits.train.batches(4 * N_SAMPLES)))
    if task.places is None or batch.xstar is None or batch.has_xstar is None:
        return
    shown = batch.select(batch.has_xstar.nonzero()[:N_SAMPLES, 0])
    if not len(shown.y):
        return
    batch = processes.as_input(shown)
    method.eval()
    logvars = method.logvars(batch)
    if not logvars:
        return
    with torch.no_grad():
        output = method.predict(batch.x).cpu()
    if task.places == "words":
        samples = text_samples(shown, output, logvars, preprocessing)
        if samples:
            write_text_samples(folder / "samples.json", samples)
    else:
        _write_images(folder / "samples.npz", shown, output.argmax(1), logvars)


def text_samples(
    batch: Batch, output: Tensor, logvars: Any, preprocessing: dict[str, Any]
) -> list[TextSample]:
    """Return the texts of a batch with x*, and the variance at each word.

    Args:
        batch: word numbers (B, T) and regions (B, 1, T).
        output: of the student, (B, n).
        logvars: by site; those with a value per word, (B, T, channels), are shown.
        preprocessing: of the task, with the words behind the numbers.
    """
    assert batch.xstar is not None
    n_places = batch.x.shape[1]
    variances = {
        site: logvar.exp().mean(2).cpu()  # (B, T)
        for site, logvar in logvars.items()
        if logvar.dim() == 3 and logvar.shape[1] == n_places
    }
    if not variances:
        return []
    names, target = [UNKNOWN, *preprocessing["texts"]["words"]], preprocessing["target"]
    lengths = _lengths(batch)
    return [
        TextSample(
            words=tuple(names[number] for number in batch.x[i, :n].tolist()),
            region=tuple(batch.xstar[i, 0, :n].tolist()),
            variances={site: tuple(v[i, :n].tolist()) for site, v in variances.items()},
            label=_shown(batch.y[i], target),
            prediction=_shown(output[i].argmax() if "classes" in target else output[i, 0], target),
        )
        for i, n in enumerate(lengths)
    ]


def _lengths(batch: Batch) -> list[int]:
    """Return up to which place each text has words, or a region; a few hundred at most."""
    assert batch.xstar is not None
    taken = (batch.x > 0) | (batch.xstar[:, 0] > 0)
    places = torch.arange(1, taken.shape[1] + 1)
    return [min(int(n), MOST_WORDS) for n in (taken * places).amax(1)]


def _shown(value: Tensor, target: dict[str, Any]) -> str:
    """Return a class or a number as the target column has it."""
    if "classes" in target:
        return str(target["classes"][int(value)])
    return f"{float(value) * target['std'] + target['mean']:.3g}"


def _write_images(path: Path, batch: Batch, prediction: Tensor, logvars: Any) -> None:
    """Keep images with their region and the variance at each site with a map."""
    assert batch.xstar is not None
    pixels = (batch.x * 255).round().byte().permute(0, 2, 3, 1)  # (k, H, W, C)
    tensors = {
        "x": pixels[..., 0] if pixels.shape[-1] == 1 else pixels,
        "mask": batch.xstar[:, 0].round().byte(),
        "label": batch.y,
        "prediction": prediction,
    }
    for site, logvar in logvars.items():
        if logvar.dim() == 4:
            tensors[f"variance/{site}"] = logvar.exp().mean(1).float()
    arrays: dict[str, Any] = {key: tensor.cpu().numpy() for key, tensor in tensors.items()}

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)

    write_whole(path, write)

"""Save a few training rows of a run for the report: images or texts with their noise."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lupi.core import Batch, Method, Splits, Task
from lupi.files import write_whole
from lupi.tasks.images.image import sees_maps
from lupi.tasks.text.task import frozen_texts
from lupi.text_samples import MOST_WORDS, UNKNOWN, TextSample, write_text_samples
from lupi.train.processes import Processes

N_SAMPLES = 8


def write_samples(
    folder: Path,
    method: Method,
    task: Task,
    splits: Splits,
    preprocessing: dict[str, Any],
    processes: Processes,
) -> None:
    """Save rows with x* to samples.npz (images) or samples.json (texts).

    Nothing is saved for a method without noise at the places that x* marks.
    """
    if method.sees_xstar_at_test or sees_maps(task):
        return
    batch = next(iter(splits.train.batches(4 * N_SAMPLES)))
    if task.places is None or batch.has_xstar is None:
        return
    rows = batch.select(batch.has_xstar.nonzero()[:N_SAMPLES, 0])
    if not len(rows.y) or rows.xstar is None:
        return
    batch = processes.as_input(rows)
    method.eval()
    logvars = method.logvars(batch)
    if not logvars:
        return
    with torch.no_grad():
        output = method.predict(batch.x).cpu()
    if task.places == "words":
        samples = text_samples(rows, output, logvars, with_words(task, preprocessing))
        if samples:
            write_text_samples(folder / "samples.json", samples)
    else:
        maps = {
            f"variance/{site}": logvar.exp().mean(1).float()
            for site, logvar in logvars.items()
            if logvar.dim() == 4
        }
        write_images(folder / "samples.npz", rows.x, rows.xstar, rows.y, output, maps)


def with_words(task: Task, preprocessing: dict[str, Any]) -> dict[str, Any]:
    """Return the preprocessing of a task with the words that the numbers in its rows stand for."""
    texts = frozen_texts(task)
    if texts is None:
        return preprocessing
    words = texts.words_in_order()
    return {**preprocessing, "texts": {**preprocessing["texts"], "words": words}}


def text_samples(
    batch: Batch, output: Tensor, logvars: Any, preprocessing: dict[str, Any]
) -> list[TextSample]:
    """Return the texts of a batch with x*, and the variance at each word.

    Args:
        batch: Word numbers (B, T) and regions (B, 1, T).
        output: Outputs of the student, (B, n).
        logvars: Log-variances by site; those with values per word, (B, T, channels), are saved.
        preprocessing: Preprocessing of the task, with the words that the numbers stand for.
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
            label=_format(batch.y[i], target),
            prediction=_format(output[i].argmax() if "classes" in target else output[i, 0], target),
        )
        for i, n in enumerate(lengths)
    ]


def _lengths(batch: Batch) -> list[int]:
    """Return the length of each text, a few hundred words at most."""
    assert batch.xstar is not None
    taken = (batch.x > 0) | (batch.xstar[:, 0] > 0)
    places = torch.arange(1, taken.shape[1] + 1)
    return [min(int(n), MOST_WORDS) for n in (taken * places).amax(1)]


def _format(value: Tensor, target: dict[str, Any]) -> str:
    """Return a class or a number as the target column has it."""
    if "classes" in target:
        return str(target["classes"][int(value)])
    return f"{float(value) * target['std'] + target['mean']:.3g}"


def write_images(
    path: Path, x: Tensor, region: Tensor, y: Tensor, output: Tensor, more: Mapping[str, Tensor]
) -> None:
    """Save images (k, C, H, W) with their regions (k, 1, H, W), and more arrays by name."""
    pixels = (x * 255).round().byte().permute(0, 2, 3, 1)  # (k, H, W, C)
    tensors = {
        "x": pixels[..., 0] if pixels.shape[-1] == 1 else pixels,
        "mask": region[:, 0].round().byte(),
        "label": y,
        "prediction": output.argmax(1),
        **more,
    }
    arrays: dict[str, Any] = {key: tensor.cpu().numpy() for key, tensor in tensors.items()}

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)

    write_whole(path, write)

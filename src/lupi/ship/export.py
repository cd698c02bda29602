"""Export a student to a folder.

student.safetensors | student.onnx   weights, or weights and graph
student.json                         preprocessing, network, meaning of the outputs
MODEL_CARD.md                        evidence and limits
manifest.json                        SHA-256 of the other files
"""

import json
import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from lupi.core import Split
from lupi.errors import LupiError
from lupi.files import remove_leftovers, require_utf8, temporary_path, write_json, write_text
from lupi.ship.card import model_card
from lupi.ship.manifest import DESCRIPTION, ONNX, WEIGHTS, write_manifest
from lupi.ship.onnx_file import write_onnx
from lupi.ship.refit import Refitted
from lupi.ship.student import describe_run, load_student, whole_student
from lupi.tasks.images.image import in_pixels
from lupi.train.checkpoint import save_weights
from lupi.train.finished import read_finished
from lupi.train.run import splits_for

Format = Literal["torch", "onnx"]
LARGEST_DIFFERENCE = 1e-4
N_BATCHES, BATCH_SIZE = 8, 128
"""Batches of the test split on which outputs are compared."""


class Exported(NamedTuple):
    """The exported folder, and its difference from the original."""

    folder: Path
    n_rows: int
    """Number of test rows on which outputs were compared."""
    difference: float
    """Largest difference between outputs of the run's student and the exported one."""


def export(
    run_folder: Path, out: Path, format_: Format, refitted: Refitted | None = None
) -> Exported:
    """Write the student of a finished run to a new folder, completely or not at all.

    With `refitted`, the run is one on all labels, and the card says what to expect of it.
    """
    if out.exists():
        raise LupiError(f"{out} already exists: choose another folder with --out, or delete it")
    description = describe_run(run_folder)
    if description.texts is not None and description.backbone is not None:
        raise LupiError(
            f"{run_folder}: students on the word vectors of a pretrained encoder can't be exported "
            "yet; `lupi predict` and lupi.load_student use them from the run's folder"
        )
    run = read_finished(run_folder)
    task = run.task
    if description.backbone is not None:  # from pixels, also where training saw cached maps
        task = in_pixels(task)
    test = splits_for(type(run.method), task, run.settings).test
    student = whole_student(run.student, description)
    require_utf8(out)
    remove_leftovers(out)
    unfinished = temporary_path(out)
    unfinished.mkdir(parents=True)
    try:
        write_json(unfinished / DESCRIPTION, description.resolved())
        if format_ == "torch":
            save_weights(unfinished / WEIGHTS, student.state_dict())
        else:
            metadata = {"lupi": json.dumps(description.resolved(), sort_keys=True)}
            write_onnx(student, _some(test, 2), unfinished / ONNX, metadata)
        write_manifest(unfinished)
        n_rows, difference = _compare(student.eval(), load_student(unfinished).outputs, test)
        if not difference <= LARGEST_DIFFERENCE:
            raise LupiError(
                f"the export failed: its outputs differ by {difference:.3g} from the "
                f"original's on {n_rows} test rows (limit: {LARGEST_DIFFERENCE:g}). "
                "Nothing was written"
            )
        card = model_card(
            run_folder, run.settings, description, format_, n_rows, difference, refitted
        )
        write_text(unfinished / "MODEL_CARD.md", card)
        write_manifest(unfinished)
        unfinished.rename(out)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return Exported(out, n_rows, difference)


@torch.inference_mode()
def _compare(
    original: Callable[[Tensor], Tensor], exported: Callable[[Tensor], Tensor], test: Split
) -> tuple[int, float]:
    """Return the number of compared rows, and the largest difference of any output."""
    n_rows, largest = 0, 0.0
    for batch in islice(test.batches(BATCH_SIZE), N_BATCHES):
        difference = (original(batch.x) - exported(batch.x)).abs().max()
        n_rows += len(batch.x)
        largest = max(largest, torch.nan_to_num(difference, nan=torch.inf).item())
    return n_rows, largest


def _some(split: Split, n: int) -> Tensor:
    x: Tensor = next(iter(split.batches(n))).x
    return x

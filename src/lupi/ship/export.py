"""A folder with the student alone, which others can use and check.

student.safetensors | student.onnx   weights, or weights and graph
student.json                         what x is, the network, what the outputs mean
MODEL_CARD.md                        the evidence
manifest.json                        SHA-256 of the others
"""

import json
import os
import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from lupi.core import Split
from lupi.errors import LupiError
from lupi.files import write_json, write_text
from lupi.ship.card import model_card
from lupi.ship.manifest import write_manifest
from lupi.ship.onnx_file import write_onnx
from lupi.ship.student import DESCRIPTION, ONNX, WEIGHTS, describe_run, load_student
from lupi.train.run import splits_for
from lupi.train.saved.checkpoint import save_weights
from lupi.train.saved.finished import read_finished

Format = Literal["torch", "onnx"]
LARGEST_DIFFERENCE = 1e-4
N_BATCHES, BATCH_SIZE = 8, 128
"""Of the test split, to compare outputs on."""


class Exported(NamedTuple):
    """What was written, and how it compares with the original."""

    folder: Path
    n_rows: int
    """Test rows that outputs were compared on."""
    difference: float
    """The largest between an output of the run's student and of the exported one."""


def export(run_folder: Path, out: Path, format_: Format) -> Exported:
    """Write the student of a finished run to a new folder; whole or not at all."""
    if out.exists():
        raise LupiError(f"{out} exists already: give another folder with --out, or delete it")
    description = describe_run(run_folder)
    run = read_finished(run_folder)
    test = splits_for(type(run.method), run.task, run.settings).test
    unfinished = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    unfinished.mkdir(parents=True)
    try:
        write_json(unfinished / DESCRIPTION, description.resolved())
        if format_ == "torch":
            save_weights(unfinished / WEIGHTS, run.student.state_dict())
        else:
            metadata = {"lupi": json.dumps(description.resolved(), sort_keys=True)}
            write_onnx(run.student, _some(test, 2), unfinished / ONNX, metadata)
        write_manifest(unfinished)
        n_rows, difference = _compare(run.student.eval(), load_student(unfinished).outputs, test)
        if not difference <= LARGEST_DIFFERENCE:
            raise LupiError(
                f"the exported student is another: its outputs differ by {difference:.3g} from the "
                f"original's on {n_rows} test rows; at most {LARGEST_DIFFERENCE:g} is accepted. "
                "Nothing was written"
            )
        card = model_card(run_folder, run.settings, description, format_, n_rows, difference)
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
    """Return how many rows were compared, and the largest difference of any output."""
    n_rows, largest = 0, 0.0
    for batch in islice(test.batches(BATCH_SIZE), N_BATCHES):
        difference = (original(batch.x) - exported(batch.x)).abs().max()
        n_rows += len(batch.x)
        largest = max(largest, torch.nan_to_num(difference, nan=torch.inf).item())
    return n_rows, largest


def _some(split: Split, n: int) -> Tensor:
    x: Tensor = next(iter(split.batches(n))).x
    return x

"""Export a student to a folder.

student.safetensors | student.onnx   weights, or weights and graph
student.json                         preprocessing, network, meaning of the outputs
tokenizer.json                       of a student on the words of a pretrained encoder
MODEL_CARD.md                        evidence and limits
manifest.json                        SHA-256 of the other files
"""

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from lupi.core import Split, Task
from lupi.errors import LupiError
from lupi.files import remove_leftovers, require_utf8, temporary_path, write_json, write_text
from lupi.networks.text_backbones import PretrainedWords, find_text_backbone
from lupi.noise.attach import AttachedNet
from lupi.ship.card import model_card
from lupi.ship.description import Description
from lupi.ship.manifest import DESCRIPTION, ONNX, TOKENIZER, WEIGHTS, write_manifest
from lupi.ship.onnx_file import OnnxNetwork, write_onnx
from lupi.ship.refit import Refitted
from lupi.ship.student import describe_run, load_student, whole_student
from lupi.tasks.images.image import in_pixels
from lupi.tasks.text.task import frozen_texts
from lupi.train.checkpoint import save_weights
from lupi.train.finished import read_finished
from lupi.train.run import splits_for

Format = Literal["torch", "onnx"]
LARGEST_DIFFERENCE = 1e-4
N_BATCHES, BATCH_SIZE = 8, 128
"""Batches of the test split on which outputs are compared."""
TEXTS_AT_ONCE = 16
"""Rows of a batch of texts with a pretrained encoder."""


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
    description = describe_run(run_folder)
    run = read_finished(run_folder)
    task = run.task
    if description.images is not None and description.backbone is not None:
        task = in_pixels(task)  # also where training saw cached maps
    test = splits_for(type(run.method), task, run.settings).test
    student, words = whole_student(run.student, description), None
    if description.texts is not None and description.frozen is not None:
        words = find_text_backbone(description.frozen)
    return write_student(
        out,
        description,
        student,
        partial(_test_inputs, test, run.task, words),
        format_,
        lambda n_rows, difference: model_card(
            run_folder, run.settings, description, format_, n_rows, difference, refitted
        ),
        None if words is None else words.tokenizer,
    )


def write_student(
    out: Path,
    description: Description,
    student: nn.Module,
    inputs: Callable[[], Iterator[Tensor]],
    format_: Format,
    card: Callable[[int, float], str],
    tokenizer: Path | None = None,
) -> Exported:
    """Write a student to a new folder, after comparing its outputs with the original's.

    Args:
        out: The folder.
        description: Preprocessing and meaning of the outputs.
        student: From x to outputs.
        inputs: Returns batches of x on which outputs are compared.
        format_: Weights, or weights and graph.
        card: From the number of compared rows and the largest difference to the model card.
        tokenizer: That of a pretrained text encoder.
    """
    if out.exists():
        raise LupiError(f"{out} already exists: choose another folder with --out, or delete it")
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
            write_onnx(student, next(inputs())[:2], unfinished / ONNX, metadata)
        if tokenizer is not None:
            shutil.copyfile(tokenizer, unfinished / TOKENIZER)
        write_manifest(unfinished)
        n_rows, difference = _compare(student.eval(), load_student(unfinished).outputs, inputs())
        _check(difference)
        write_text(unfinished / "MODEL_CARD.md", card(n_rows, difference))
        write_manifest(unfinished)
        unfinished.rename(out)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return Exported(out, n_rows, difference)


def export_onnx(net: nn.Module, path: str | Path, x: Tensor) -> Path:
    """Write the student of `lupi.attach`, or any network, to an ONNX file, and check its outputs.

    Args:
        net: What `lupi.attach` returned, or a network.
        path: A new file.
        x: At least two rows; the file takes any number of them.
    """
    path = Path(path)
    if path.exists():
        raise LupiError(f"{path} already exists: choose another name, or delete it")
    student = net.student() if isinstance(net, AttachedNet) else net
    was_training, unfinished = student.training, temporary_path(path)
    try:
        write_onnx(student, x, unfinished, {})
        _check(_compare(student.eval(), OnnxNetwork(unfinished), iter([x]))[1])
        unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)
        student.train(was_training)
    return path


def _check(difference: float) -> None:
    if not difference <= LARGEST_DIFFERENCE:
        raise LupiError(
            f"the export failed: its outputs differ by {difference:.3g} from the original's "
            f"(limit: {LARGEST_DIFFERENCE:g}). Nothing was written"
        )


@torch.inference_mode()
def _compare(
    original: Callable[[Tensor], Tensor],
    exported: Callable[[Tensor], Tensor],
    inputs: Iterator[Tensor],
) -> tuple[int, float]:
    """Return the number of compared rows, and the largest difference of any output."""
    n_rows, largest = 0, 0.0
    for x in inputs:
        difference = (original(x) - exported(x)).abs().max()
        n_rows += len(x)
        largest = max(largest, torch.nan_to_num(difference, nan=torch.inf).item())
    return n_rows, largest


def _test_inputs(test: Split, task: Task, words: PretrainedWords | None) -> Iterator[Tensor]:
    """Yield x of test rows as the exported student takes it: of frozen words, their pieces."""
    texts = frozen_texts(task)
    if words is None or texts is None:
        yield from (batch.x for batch in islice(test.batches(BATCH_SIZE), N_BATCHES))
        return
    names = texts.words_in_order()
    for batch in islice(test.batches(TEXTS_AT_ONCE), N_BATCHES):
        yield words.pieces([[names[i - 1] for i in row if i > 0] for row in batch.x.tolist()])

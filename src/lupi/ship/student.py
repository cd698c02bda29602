"""A trained student: from inputs to x, from x to outputs, from outputs to predictions."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from lupi.errors import LupiError
from lupi.files import read_json
from lupi.methods.registry import find_method
from lupi.networks.backbones import find_backbone
from lupi.networks.map_student import with_backbone
from lupi.networks.text_backbones import WordPieces, WordVectors, find_text_backbone
from lupi.networks.weights import uninitialised
from lupi.records import STUDENT, find_run
from lupi.ship.description import Description, Extension, Prediction
from lupi.ship.files import encode_images
from lupi.ship.manifest import DESCRIPTION, MANIFEST, ONNX, TOKENIZER, WEIGHTS, check_manifest
from lupi.ship.onnx_file import OnnxNetwork
from lupi.ship.rows import encode_rows
from lupi.ship.texts import TextEncoder, find_pieces
from lupi.train.checkpoint import load_weights
from lupi.train.settings import RunSettings

if TYPE_CHECKING:
    import pandas as pd

AT_ONCE = 64
"""Rows that the network sees together."""


class Student:
    """A trained network that predicts without x*.

    Args:
        network: A module from x to outputs, or a network in an ONNX file.
        description: The preprocessing of x and the meaning of the outputs.
        pieces: Of a student on a pretrained text encoder: its tokenizer.
    """

    def __init__(
        self,
        network: Callable[[Tensor], Tensor],
        description: Description,
        pieces: WordPieces | None = None,
    ) -> None:
        self.network, self.pieces = network, pieces
        self.description = description
        self._encoder = description.encoder() if description.features is not None else None
        self._texts = None
        if description.texts is not None:
            self._texts = TextEncoder(description.texts, pieces)

    def __repr__(self) -> str:
        """Return what it predicts, from what."""
        d, target = self.description, self.description.target
        classes = ", ".join(target.classes[:5]) + (", …" if len(target.classes) > 5 else "")
        what = target.name or ("the class" if target.classes else "a number")
        what += f" ({classes})" if classes else ""
        if d.images is not None:
            return f"<Student: images of {d.images.image_size} pixels to {what}>"
        if d.texts is not None:
            return f"<Student: texts ({len(d.texts.words):,} known words) to {what}>"
        columns = [column.name for column in d.encoder().columns]
        more = f" and {len(columns) - 5} more" if len(columns) > 5 else ""
        return f"<Student: rows with {', '.join(columns[:5])}{more} to {what}>"

    def encode(self, inputs: "pd.DataFrame | Sequence[str | Path]") -> Tensor:
        """Convert rows (a DataFrame), images (file names) or texts (strings) to x."""
        if self._encoder is not None:
            return torch.from_numpy(encode_rows(inputs, self._encoder))
        if self._texts is not None:
            return torch.from_numpy(self._texts.encode(inputs))
        assert self.description.images is not None  # one of them is there
        return encode_images(inputs, self.description.images)

    @torch.inference_mode()
    def outputs(self, x: Tensor) -> Tensor:
        """Return logits (B, K), or mean and log-variance (B, 2) of the standardised number."""
        outputs = []
        for some in x.split(AT_ONCE):
            output = self.network(some)
            expected = (len(some), self.description.target.n_outputs)
            if tuple(output.shape) != expected or not output.is_floating_point():
                raise LupiError(
                    f"the network returned {output.dtype} of shape {tuple(output.shape)}, expected "
                    f"{expected} as student.json describes it: the files are of two students"
                )
            outputs.append(output)
        return torch.cat(outputs)

    def explain(self, output: Tensor) -> list[Prediction]:
        """Convert outputs to predictions: class probabilities, or mean and standard deviation."""
        return self.description.target.explain(output.numpy())

    def predict(self, inputs: "pd.DataFrame | Sequence[str | Path]") -> list[Prediction]:
        """Predict rows of a table, images or texts; unreadable input is an error.

        A prediction for a text without a known word, or for an image unlike the training images,
        has the key `unknown`, which says so.
        """
        given = self._listed(inputs)
        if hasattr(given, "__len__") and not isinstance(given, str) and not len(given):
            return []
        x = self.encode(given)
        found = self.explain(self.outputs(x))
        for row, why in self.unknown(x).items():
            found[row]["unknown"] = why
        return found

    def unknown(self, x: Tensor) -> dict[int, str]:
        """Return the rows of x that say nothing to the student, with the reason."""
        return self.description.unknown(x.numpy())

    def _listed(self, inputs: Any) -> Any:
        """Return a Series or an array of texts or files as a list; of a frame, its texts."""
        if hasattr(inputs, "columns"):
            column = self.description.texts.column if self.description.texts else None
            return inputs[column].tolist() if column in inputs.columns else inputs
        if self._encoder is None and hasattr(inputs, "tolist"):
            return inputs.tolist()
        return list(inputs) if isinstance(inputs, tuple) else inputs


def load_student(folder: str | Path) -> Student:
    """Load a student exported by `lupi export`, or the student of a finished run.

    No code from the folder is run. Changed, damaged or foreign files are an error.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise LupiError(f"{folder} is not a folder; expected an exported student or a finished run")
    if not (folder / MANIFEST).exists():
        return _of_run(find_run(folder))
    check_manifest(folder, (DESCRIPTION, ONNX, WEIGHTS, TOKENIZER))
    description = Description.parse(read_json(folder / DESCRIPTION), DESCRIPTION)
    pieces = find_pieces(description, folder)
    if (folder / ONNX).exists():
        return Student(OnnxNetwork(folder / ONNX), description, pieces)
    with uninitialised():
        net = description.build()
    return Student(_fill(net, folder / WEIGHTS), description, pieces)


def _fill(net: nn.Module, path: Path) -> nn.Module:
    """Load the weights of a network without any from a file, after checking that they match."""
    weights = load_weights(path)
    for key, own in net.state_dict().items():
        if key not in weights:
            raise LupiError(f"{path} has the weights of another network: {key} is missing")
        given = weights[key]
        if given.shape != own.shape or given.dtype != own.dtype:
            raise LupiError(
                f"{path} has the weights of another network: {key} is "
                f"{given.dtype} {tuple(given.shape)}, expected {own.dtype} {tuple(own.shape)}"
            )
    if unknown := sorted(set(weights) - set(net.state_dict())):
        raise LupiError(f"{path} has the weights of another network: {unknown[0]} is unknown")
    laid_out = {
        key: torch.empty_strided(own.shape, own.stride(), dtype=own.dtype).copy_(weights[key])
        for key, own in net.state_dict().items()
    }
    net.load_state_dict(laid_out, assign=True)
    return net.eval().requires_grad_(False)


def describe_run(folder: Path) -> Description:
    """Return the description of a finished run's student; raise if it can't predict without x*."""
    settings = RunSettings.parse(read_json(folder / "settings.json"), str(folder / "settings.json"))
    if command := settings.task.student_command:
        raise LupiError(f"{folder} is a {settings.task.name} run: use `{command}`")
    if settings.task.name == "custom":
        raise LupiError(
            f"{folder} is a run of a task defined in Python: use lupi.compare(…).student() there"
        )
    if not (folder / STUDENT).exists():
        raise LupiError(
            f"{folder} has no student ({STUDENT}): {settings.method} is not a network, or the run "
            "diverged before its first score"
        )
    method = find_method(settings.method)
    if method.sees_xstar_at_test:
        raise LupiError(f"{folder} is a run of {method.name}, which can't predict without x*")
    path = folder / "preprocessing.json"
    if not path.exists():
        raise LupiError(
            f"{folder} has no {path.name}, which describes the preprocessing: the run is older "
            "than this format. Train it again in another folder"
        )
    extended = None
    if method.extends_student:
        extended = Extension(method=method.name, settings=settings.settings.resolved())
    return Description.of_run(settings.network.resolved(), read_json(path), extended)


def _of_run(folder: Path) -> Student:
    description = describe_run(folder)
    with uninitialised():
        net = description.build_student()
    whole = whole_student(_fill(net, folder / STUDENT), description)
    return Student(whole, description, find_pieces(description, folder))


def whole_student(student: nn.Module, description: Description) -> nn.Module:
    """Return a student from inputs to outputs: with the frozen backbone, if it has one."""
    if description.frozen is None:
        return student
    if description.texts is not None:
        for module in student.modules():
            if isinstance(module, WordVectors):
                module.forget()  # the backbone computes them
        return with_backbone(student, find_text_backbone(description.frozen).backbone).eval()
    return with_backbone(student, find_backbone(description.frozen)).eval()

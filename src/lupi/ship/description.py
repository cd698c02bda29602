"""All there is to know of a student beside its weights: what x is, the network, the outputs.

A run's `preprocessing.json` and the `student.json` of an exported folder; x* has no part in it.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator
from torch import nn

from lupi.data.images.decode import Fit
from lupi.data.tables.encoder import TableEncoder
from lupi.errors import LupiError
from lupi.methods.teachers.hallucination import Hallucinating
from lupi.settings import Settings
from lupi.tasks import table_network
from lupi.tasks.images import image
from lupi.tasks.text import network as text_network


class ImageFiles(Settings):
    """How a file becomes x: pixels in [0, 1], (channels, image_size, image_size)."""

    stored_size: int = Field(ge=8, le=1024)
    """A file becomes a square of so many pixels, …"""
    image_size: int = Field(ge=8, le=1024)
    """… of which the network sees the middle."""
    n_channels: Literal[1, 3]
    fit: Fit


class CsvFiles(Settings):
    """How a CSV is read: as the training table was."""

    separator: str | None = None
    header: bool = True
    decimal: str = "."
    encoding: str = "utf-8"


class TextFiles(Settings):
    """How texts become x: as the training texts did."""

    column: str
    """With the texts, in a file with columns."""
    tags: tuple[str, ...] = ()
    """Removed from texts: in training they marked rationales."""
    max_length: int = Field(ge=1)
    """Words that are seen of a text."""
    separator: str | None = None
    encoding: str = "utf-8"
    words: tuple[str, ...] = Field(min_length=1, max_length=1_000_000)
    """Known ones, by number, from 1; 0 is any other word."""


class Target(Settings):
    """What the outputs mean: logits of classes, or mean and log-variance of a number."""

    name: str | None = None
    kind: Literal["classification", "regression"]
    classes: tuple[str, ...] = ()
    mean: float = 0.0
    std: float = 1.0
    """Of the number, whose standardised value the outputs are about."""

    @property
    def n_outputs(self) -> int:
        """How many numbers the network gives for a row."""
        return 2 if self.kind == "regression" else len(self.classes)


class Description(Settings):
    """A student without its weights."""

    format: Literal[1] = 1
    network: dict[str, Any]
    """Settings of the network, of images, tables or texts."""
    two_heads: bool = False
    """Whether it predicts the mean of two heads, as after hallucination."""
    images: ImageFiles | None = None
    csv: CsvFiles = CsvFiles()
    features: dict[str, Any] | None = None
    """Makes a `TableEncoder`."""
    texts: TextFiles | None = None
    target: Target

    @model_validator(mode="after")
    def _takes_one_thing(self) -> "Description":
        if [self.images, self.features, self.texts].count(None) != 2:
            raise ValueError("a student takes either images, rows of a table, or texts")
        return self

    @classmethod
    def of_run(
        cls, network: Mapping[str, Any], preprocessing: Mapping[str, Any], two_heads: bool
    ) -> "Description":
        """Put together what a run keeps."""
        raw = {"network": network, "two_heads": two_heads, **preprocessing}
        return cls.parse(raw, "preprocessing.json")

    def encoder(self) -> TableEncoder:
        """Return what turns rows of a table to vectors."""
        try:
            encoder = TableEncoder.from_json(self.features or {})
            whole = all(len(c.shift) == len(c.factor) == c.width for c in encoder.columns)
        except (KeyError, TypeError):
            whole = False
        if not whole:
            raise LupiError("features: what becomes of each column is not said as lupi writes it")
        return encoder

    def build(self) -> nn.Module:
        """Build the network, freshly initialised."""
        net = self._network()
        return Hallucinating(net, self._network()) if self.two_heads else net

    def _network(self) -> nn.Module:
        n_outputs = self.target.n_outputs
        if self.texts is not None:
            texts = text_network.TextNetworkSettings.parse(self.network, "network")
            if texts.name == "own":
                raise LupiError(
                    f"this student has an encoder of its own ({texts.encoder}), and loading it "
                    "would run code that a file names: export it as ONNX (--format onnx)"
                )
            return text_network.build_network(texts, len(self.texts.words) + 1, n_outputs)
        if self.images is None:
            settings = table_network.TableNetworkSettings.parse(self.network, "network")
            return table_network.build_network(settings, self.encoder().width, n_outputs)
        shape, unknown = self.images, (1.0,) * self.images.n_channels  # in the weights
        images = image.ImageNetworkSettings.parse(self.network, "network")
        return image.build_network(images, n_outputs, shape.image_size, unknown, unknown)

"""The description of a student without its weights: x, the network and the outputs.

It is stored in a run's `preprocessing.json` and in the `student.json` of an exported folder, and
contains nothing about x*.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from lupi.errors import LupiError
from lupi.loaders.files import Dialect, TextFormat
from lupi.loaders.images.decode import Fit
from lupi.loaders.images.looks import unlike
from lupi.loaders.tables.encoder import Column, ColumnKind, TableEncoder
from lupi.settings import Settings
from lupi.tasks import table_network
from lupi.tasks.text import network as text_network

if TYPE_CHECKING:  # `lupi predict` waits for torch only where it needs it
    from torch import nn

    from lupi.networks.backbones import Source

LOGVAR_RANGE = (-8.0, 8.0)
"""Range of log-variances, as in `lupi.core.gaussian`."""

Prediction = dict[str, Any]
"""prediction and probabilities of the classes; or mean and std of a number"""


class Encoded(NamedTuple):
    """A batch of rows or texts of a file."""

    numbers: list[int]
    """Numbers of the valid ones, from 1."""
    x: NDArray[Any]
    bad: list[tuple[int, str]]
    """Number and error of each invalid one."""


class ImageFiles(Settings):
    """How image files are converted to x: pixels in [0, 1], (channels, image_size, image_size)."""

    stored_size: int = Field(ge=8, le=1024)
    """Side of the square that an image is resized to."""
    image_size: int = Field(ge=8, le=1024)
    """Side of its centre crop, the network's input."""
    n_channels: Literal[1, 3]
    fit: Fit
    typical: dict[str, tuple[float, float]] = Field(default_factory=dict)
    """How training images look: ranges of brightness, contrast, colour and detail."""


class TextFiles(TextFormat):
    """How texts are converted to x, as for the training texts."""

    column: str
    """Column with the texts, in a file with columns."""
    tags: tuple[str, ...] = ()
    """Tags to remove from texts; in training they marked rationales."""
    max_length: int = Field(ge=1, le=1_000_000)
    """Maximum number of words of a text."""
    words: tuple[str, ...] = Field(min_length=1, max_length=1_000_000)
    """Known words; their indices start at 1, and 0 is any other word."""


class PretrainedPart(Settings):
    """The pretrained part of a student, and where its weights came from."""

    name: str
    model: str | None = None
    checksum: str
    """SHA-256 of the weights before training."""
    n_channels: int = Field(ge=1)
    """Channels of its maps."""
    config: dict[str, Any] | None = None
    """Configuration of a `transformers` model."""

    @property
    def source(self) -> "Source":
        """The same for `lupi.networks.backbones`."""
        from lupi.networks.backbones import Source

        return Source(self.name, self.model, self.checksum, self.config)


class ColumnEncoding(Settings):
    """How a column of a table is converted to numbers; see `lupi.loaders.tables.encoder`."""

    name: str
    kind: ColumnKind
    categories: tuple[str, ...] = ()
    indicator: bool = False
    shift: tuple[float, ...] = ()
    factor: tuple[float, ...] = ()

    @model_validator(mode="after")
    def _is_complete(self) -> "ColumnEncoding":
        width = Column(**dict(self)).width
        if len(self.shift) != width or len(self.factor) != width:
            raise ValueError(f"expected {width} values of shift and factor")
        return self


class Features(Settings):
    """The columns from which a student predicts, in order."""

    columns: tuple[ColumnEncoding, ...] = Field(min_length=1, max_length=100_000)

    @model_validator(mode="after")
    def _has_distinct_names(self) -> "Features":
        if len({column.name for column in self.columns}) < len(self.columns):
            raise ValueError("two columns have the same name")
        return self


class Target(Settings):
    """The meaning of the outputs: logits of classes, or mean and log-variance of a number."""

    name: str | None = None
    kind: Literal["classification", "regression"]
    classes: tuple[str, ...] = ()
    mean: float = 0.0
    std: float = 1.0
    """Standard deviation of the target; the outputs refer to the standardised target."""

    @model_validator(mode="after")
    def _is_complete(self) -> "Target":
        if self.kind == "classification" and len(set(self.classes)) < max(len(self.classes), 1):
            raise ValueError("a classifier needs classes with distinct names")
        if self.std <= 0:
            raise ValueError("std must be positive")
        return self

    @property
    def n_outputs(self) -> int:
        """Number of outputs per row."""
        return 2 if self.kind == "regression" else len(self.classes)

    def explain(self, output: NDArray[Any]) -> list[Prediction]:
        """Convert outputs to predictions: class probabilities, or mean and standard deviation."""
        output = output.astype(np.float64)
        if self.kind == "regression":
            means = output[:, 0] * self.std + self.mean
            stds = np.exp(output[:, 1].clip(*LOGVAR_RANGE) / 2) * self.std
            pairs = zip(means.tolist(), stds.tolist(), strict=True)
            return [{"mean": m, "std": s} for m, s in pairs]
        likely = np.exp(output - output.max(1, keepdims=True))
        best = output.argmax(1).tolist()
        return [
            {
                "prediction": self.classes[i],
                "probabilities": dict(zip(self.classes, row, strict=True)),
            }
            for i, row in zip(best, (likely / likely.sum(1, keepdims=True)).tolist(), strict=True)
        ]


class Extension(Settings):
    """The method whose student is more than the network, and its settings."""

    method: str
    settings: dict[str, Any] = Field(default_factory=dict)


class Description(Settings):
    """A student without its weights."""

    format: Literal[1] = 1
    network: dict[str, Any]
    """Settings of the network for images, tables or texts."""
    extended: Extension | None = None
    """What a method added to the network, such as a second head."""
    images: ImageFiles | None = None
    csv: Dialect = Dialect()
    """How the training table was read."""
    features: Features | None = None
    texts: TextFiles | None = None
    backbone: PretrainedPart | None = None
    """The pretrained part of a student for images or texts."""
    target: Target

    @model_validator(mode="after")
    def _takes_one_thing(self) -> "Description":
        if [self.images, self.features, self.texts].count(None) != 2:
            raise ValueError("a student takes images, rows of a table, or texts")
        return self

    @classmethod
    def of_run(
        cls,
        network: Mapping[str, Any],
        preprocessing: Mapping[str, Any],
        extended: Extension | None = None,
    ) -> "Description":
        """Return the description of a run's student."""
        raw = {"network": network, "extended": extended, **preprocessing}
        return cls.parse(raw, "preprocessing.json")

    def encoder(self) -> TableEncoder:
        """Return the encoder of table rows."""
        assert self.features is not None  # of a student for rows
        return TableEncoder(tuple(Column(**dict(column)) for column in self.features.columns))

    def unknown(self, x: NDArray[Any]) -> dict[int, str]:
        """Return the rows of x that the student can't know, with the reason."""
        if self.images is not None:
            return unlike(x, self.images.typical)
        if self.texts is None:
            return {}
        empty = (x == 0).all(axis=tuple(range(1, x.ndim)))
        return {int(row): "no known word" for row in np.flatnonzero(empty)}

    def build(self) -> "nn.Module":
        """Build the network from inputs to outputs, its weights to be loaded from a file."""
        net = self.build_student()
        if self.frozen is None:
            return net
        from lupi.networks.backbones import empty_backbone
        from lupi.networks.map_student import with_backbone
        from lupi.networks.text_backbones import empty_text_backbone

        empty = empty_backbone if self.texts is None else empty_text_backbone
        return with_backbone(net, empty(self.frozen))

    def build_student(self) -> "nn.Module":
        """Build the trained part: without a frozen backbone."""
        net = self._network()
        if self.extended is None:
            return net
        from lupi.methods.registry import find_method

        method = find_method(self.extended.method)
        settings = method.Settings.parse(self.extended.settings, "extended.settings")
        return method.extend(net, self._network, settings)

    @property
    def frozen(self) -> "Source | None":
        """The backbone that was not trained with the student."""
        if self.backbone is None or self.network.get("tune", "none") != "none":
            return None
        return self.backbone.source

    def _network(self) -> "nn.Module":
        from lupi.networks.backbones import empty_backbone
        from lupi.networks.text_backbones import WordVectors
        from lupi.tasks.images import network as image_network

        n_outputs = self.target.n_outputs
        if self.texts is not None:
            texts = text_network.TextNetworkSettings.parse(self.network, "network")
            if texts.name == "custom":
                raise LupiError(
                    f"this student has a custom encoder ({texts.encoder}), and loading it "
                    "would run code named in a file: export it as ONNX (--format onnx)"
                )
            encoder = None if self.backbone is None else WordVectors(None, self.backbone.n_channels)
            return text_network.build_network(texts, len(self.texts.words) + 1, n_outputs, encoder)
        if self.images is None:
            settings = table_network.TableNetworkSettings.parse(self.network, "network")
            return table_network.build_network(settings, self.encoder().width, n_outputs)
        size = self.images.image_size
        n_channels: int = self.images.n_channels
        images = image_network.ImageNetworkSettings.parse(self.network, "network")
        backbone = None
        if self.backbone is not None:
            backbone = empty_backbone(self.backbone.source)
            n_channels = self.backbone.n_channels
        unknown = (1.0,) * n_channels  # in the weights
        return image_network.build_network(images, n_outputs, size, unknown, unknown, backbone)

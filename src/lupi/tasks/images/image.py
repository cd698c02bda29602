"""Classification of images, with the box of the object as privileged information."""

import copy
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.core import Control, Inputs, OneOutputPerRow, OutputKind, Places, Split, Splits, XstarKind
from lupi.errors import LupiError
from lupi.facts import Fact, list_counts
from lupi.loaders.images.decode import Fit
from lupi.loaders.images.parts import DrawParts, ImageRows
from lupi.loaders.images.split import ImageBatches
from lupi.loaders.images.windows import Cropping
from lupi.loaders.subsets import nested_rows, rows_with_xstar
from lupi.networks.resnet import resnet18, resnet50
from lupi.networks.vgg import Activation, small_vgg, vgg16_bn
from lupi.records import Design, Metric
from lupi.settings import Settings


class ImageNetworkSettings(Settings):
    """The student for images."""

    name: Literal["small-vgg", "vgg16-bn", "resnet18", "resnet50"] = "small-vgg"
    """Its sites: `trunk.site1` … after each block or stage, `head.drop1`, a VGG's `head.drop2`."""
    width: int = Field(16, ge=1, le=512)
    """Channels of the first block of small-vgg; each further block doubles it."""
    n_convs: int = Field(1, ge=1, le=8)
    """Convolutions in each block of small-vgg."""
    pool: int = Field(1, ge=1, le=64)
    """Height and width of the map that the fully connected layers of small-vgg see."""
    n_fc: int = Field(2, ge=0, le=8)
    """Fully connected layers of small-vgg before the last; with 0, dropout is before the last."""
    n_hidden: int = Field(128, ge=1)
    """Units of those layers."""
    dropout: float = Field(0.2, ge=0, lt=1)
    """Bernoulli rate after the fully connected layers; before the only one of a ResNet."""
    fc_activation: Activation = "relu"
    """Activation of the fully connected layers of VGGs; the CVPR 2018 paper uses `sigmoid` for
    info-dropout."""


def build_network(
    settings: ImageNetworkSettings,
    n_classes: int,
    size: int,
    mean: Sequence[float],
    std: Sequence[float],
) -> nn.Module:
    """Build a student for images of `size` pixels, with mean and deviation of each channel."""
    s = settings
    if s.name in ("resnet18", "resnet50"):
        build = resnet18 if s.name == "resnet18" else resnet50
        return build(n_classes, size, mean, std, s.dropout)
    if s.name == "vgg16-bn":
        return vgg16_bn(n_classes, size, mean, std, s.dropout, s.fc_activation)
    return small_vgg(
        n_classes,
        size,
        s.width,
        s.n_hidden,
        mean,
        std,
        s.dropout,
        s.fc_activation,
        s.n_convs,
        s.pool,
        s.n_fc,
    )


N_TOP = 5


class ImageTask(OneOutputPerRow):
    """A classification task over images.

    Args:
        draw: Function that returns the training, validation and test images of a seed.
        design: How these are drawn.
        n_classes: Number of classes.
        network: Settings of the student.
        cropping: How stored images are cropped; None: not at all.
        ten_crops: Whether to test on ten crops of each image, too, summing class probabilities.
    """

    metric = Metric("accuracy")
    xstar_kind: XstarKind = "region"
    places: Places | None = "pixels"
    xstar_dim = 1
    output_kind: OutputKind = "classes"
    warnings: tuple[str, ...] = ()
    finding_counts: Mapping[str, int] = MappingProxyType({})
    """Problems that were found in the images, or conversions, with their counts."""
    fit: Fit = "crop"
    """How an image that is not square becomes one."""

    def __init__(
        self,
        draw: DrawParts,
        design: Design,
        n_classes: int,
        network: ImageNetworkSettings,
        cropping: Cropping | None = None,
        ten_crops: bool = False,
    ) -> None:
        self._draw = draw
        self.design = design
        self.n_classes = n_classes
        self.classes = tuple(str(i) for i in range(n_classes))
        self.network_settings = network
        self._example_rows = draw(0).train
        self.n_channels, side = self._example_rows.images.shape
        self._cropping = cropping or Cropping(side, side)
        self._ten_crops = ten_crops
        self.mean, self.std = [0.5] * self.n_channels, [0.5] * self.n_channels

    @property
    def n_outputs(self) -> int:
        """The number of classes."""
        return self.n_classes

    @property
    def n_rows(self) -> int:
        """Number of images that training images are drawn from."""
        return len(self._example_rows.rows)

    def for_run(self, size: int, seed: int) -> Self:
        """Return the task with mean and standard deviation of the pixels of a training set."""
        fitted = copy.copy(self)
        train = self._training_rows(size, seed)
        fitted.mean, fitted.std = train.images.mean_and_std(train.rows)
        return fitted

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Facts about the data, for the user to check before training."""
        images, rows = self._example_rows.images, self._example_rows.rows
        counts = np.bincount(images.y[rows], minlength=self.n_classes)
        named = dict(zip(self.classes, counts.tolist(), strict=True))
        size = f"{self._cropping.size} x {self._cropping.size} pixels"
        channels = "1 channel" if self.n_channels == 1 else f"{self.n_channels} channels"
        return (
            Fact("x", f"images of {size}, {channels}"),
            Fact("x*", "where the object is: boxes or masks over the pixels"),
            Fact("y", f"one of {self.n_classes} classes; training rows: {list_counts(named)}"),
            *(Fact("found", f"{n:,} x {what}") for what, n in self.finding_counts.items() if n),
        )

    def _training_rows(self, size: int, seed: int) -> ImageRows:
        pool = self._draw(seed).train
        return ImageRows(pool.images, pool.rows[nested_rows(pool.y, size, seed)])

    def splits(
        self,
        size: int,
        seed: int,
        control: Control = "real",
        xstar_frac: float = 1.0,
        reveal: bool = False,
    ) -> Splits:
        """Return `size` training rows with x* under a control, and all of validation and test.

        The fraction is one of the training rows that have x* at all. With `reveal` (an oracle)
        validation and test rows have x* too, under the same control.
        """
        _, val, test = self._draw(seed)
        if reveal and not (val.images.has_regions and test.images.has_regions):
            raise LupiError(
                "an oracle sees x* at test, and the validation or test images have no region "
                "here: leave the oracle out"
            )
        train = self._training_rows(size, seed)
        regions, has = train.images.regions(train.rows, control, seed)
        has[has] = rows_with_xstar(int(has.sum()), xstar_frac, seed)
        ten_crops = ImageBatches(test.y, self._cropping, ten_crops=True)
        return Splits(
            train.images.split(train.rows, ImageBatches(train.y, self._cropping, regions, has)),
            self._held_out(val, control if reveal else None, seed),
            self._held_out(test, control if reveal else None, seed),
            {"test_ten_crops": test.images.split(test.rows, ten_crops)} if self._ten_crops else {},
        )

    def _held_out(self, part: ImageRows, control: Control | None, seed: int) -> Split:
        """Return validation or test rows, without x* unless a control is given."""
        images, rows = part.images, part.rows
        regions, has = (None, None) if control is None else images.regions(rows, control, seed)
        return images.split(rows, ImageBatches(part.y, self._cropping, regions, has))

    def preprocessing(self, size: int, seed: int) -> dict[str, Any]:
        """Return what a student needs to predict new images, without x*.

        `images` says how a file becomes x, `target` the class of each logit.
        """
        images = {
            "stored_size": self._cropping.stored,
            "image_size": self._cropping.size,
            "n_channels": self.n_channels,
            "fit": self.fit,
        }
        target = {"kind": "classification", "classes": list(self.classes)}
        return {"images": images, "target": target}

    def network(self) -> nn.Module:
        """Build the student with new random weights."""
        size = self._cropping.size
        return build_network(self.network_settings, self.n_classes, size, self.mean, self.std)

    def example(self) -> Inputs:
        """Return two images."""
        images = self._example_rows.images
        rows = images.first(2)
        return next(images.split(rows, ImageBatches(images.y[rows], self._cropping)).batches(2)).x

    def example_loss(self, output: Tensor, y: Tensor) -> Tensor:
        """Return the cross-entropy of each row, (B,)."""
        return F.cross_entropy(output, y, reduction="none")

    def metrics(self, output: Tensor, y: Tensor, weights: Tensor | None = None) -> dict[str, float]:
        """Return accuracy and mean cross-entropy; with more than 5 classes, top-5 too."""
        scores = {
            "accuracy": (output.argmax(1) == y).float().mean().item(),
            "loss": F.cross_entropy(output, y).item(),
        }
        if self.n_classes > N_TOP:
            top = output.topk(N_TOP, dim=1).indices  # (N, 5)
            scores["top5"] = (top == y[:, None]).any(1).float().mean().item()
        return scores

    def trivial(self, train: Split, test: Split) -> dict[str, float]:
        """Return the scores of the most frequent class of the training rows."""
        y, target = _labels(train), _labels(test)
        return {"accuracy": (target == y.bincount().argmax()).float().mean().item()}

    def is_uninformative(self, output: Tensor) -> bool:
        """Return whether class probabilities do not change from image to image."""
        return bool(output.softmax(1).std(0).max() < 1e-3)


def _labels(split: Split) -> Tensor:
    """Return the labels of a split, if possible without decoding images."""
    at_hand = getattr(split, "y", None)
    if at_hand is not None:
        return torch.from_numpy(at_hand)
    return torch.cat([batch.y for batch in split.batches(256)])

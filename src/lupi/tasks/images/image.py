"""Classification of images, with the box of the object as privileged information."""

import copy
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.core import Control, Inputs, OneOutputPerRow, OutputKind, Places, Split, Splits, XstarKind
from lupi.errors import LupiError
from lupi.facts import Fact, list_counts
from lupi.loaders.images.decode import Fit
from lupi.loaders.images.maps import MapImages, cached_maps, check_cropping
from lupi.loaders.images.parts import DrawParts, ImageRows
from lupi.loaders.images.split import ImageBatches, Images, StoredImages
from lupi.loaders.images.windows import Cropping
from lupi.loaders.subsets import nested_rows, rows_with_xstar
from lupi.records import Design, Metric
from lupi.tasks.images.network import ImageNetworkSettings, build_network, unknown_statistics

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
    layout: tuple[Fact, ...] = ()
    """How the files were understood."""
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
        self.statistics: tuple[list[float], list[float]] | None = None
        self._maps: dict[tuple[int, str], MapImages] = {}
        """Maps of the images by a frozen network; shared by tasks with other networks."""

    @property
    def sees_maps(self) -> bool:
        """Whether x is the maps of a frozen pretrained network."""
        return self.network_settings.is_frozen

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
        if self.network_settings.is_pretrained and not self.sees_maps:
            train = ImageRows(self._mapped(train.images), train.rows)
        fitted.statistics = train.images.mean_and_std(train.rows)
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
            *(self.layout or (Fact("x*", "a box or a mask around the object"),)),
            Fact("y", f"one of {self.n_classes} classes; training rows: {list_counts(named)}"),
            *(Fact("found", f"{what}: {n:,}") for what, n in self.finding_counts.items() if n),
        )

    def _training_rows(self, size: int, seed: int) -> ImageRows:
        pool = self._seen(self._draw(seed).train)
        return ImageRows(pool.images, pool.rows[nested_rows(pool.y, size, seed)])

    def _seen(self, part: ImageRows) -> ImageRows:
        """Return rows as the network sees them: as they are, or as maps of a frozen network."""
        return ImageRows(self._mapped(part.images), part.rows) if self.sees_maps else part

    def _mapped(self, images: StoredImages) -> MapImages:
        """Return the maps of images by the pretrained network, computed once."""
        check_cropping(self._cropping, self._ten_crops)
        if not isinstance(images, Images):
            raise LupiError(
                "a frozen network needs images in files: shards are streamed, so nothing can be "
                "cached; give the files they were made of"
            )
        backbone = self.network_settings.backbone()
        key = id(images), backbone.source.checksum
        if key not in self._maps:
            stored, rows, folder = self._stored_in(images)
            network = f"{backbone.source.checksum} {self._cropping.size}"
            maps = cached_maps(stored, backbone, network, self._cropping.flip, folder).maps
            self._maps[key] = MapImages(images, maps[rows])
        return self._maps[key]

    def _stored_in(self, images: Images) -> tuple[Images, slice, Path | None]:
        """Return all images of a cache folder, which of them these are, and the folder."""
        return images, slice(None), None

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
        part = self._seen(part)
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
        described = {"images": images, "target": target}
        if self.network_settings.is_pretrained:
            n_channels = len((self.statistics or self._unknown_statistics())[0])
            source = self.network_settings.backbone().source._asdict()
            described["backbone"] = {**source, "n_channels": n_channels}
        return described

    def network(self) -> nn.Module:
        """Build the student with new random weights."""
        known = self.statistics or self._unknown_statistics()
        return build_network(self.network_settings, self.n_classes, self._cropping.size, *known)

    def _unknown_statistics(self) -> tuple[list[float], list[float]]:
        return unknown_statistics(self.network_settings, self.n_channels, self._cropping.size)

    def in_pixels(self) -> Self:
        """Return the task with pixels as x, whatever the network sees."""
        other = copy.copy(self)
        other.network_settings = ImageNetworkSettings()
        return other

    def example(self) -> Inputs:
        """Return two images."""
        images = self._seen(self._example_rows).images
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

"""Classification of images, with a region of each image as privileged information."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.core import (
    Bools,
    Divides,
    Inputs,
    Outcome,
    RowNumbers,
    Rows,
    RunRows,
    Shown,
    Split,
    Task,
)
from lupi.design import Design
from lupi.errors import LupiError
from lupi.facts import Fact, list_counts
from lupi.loaders.division import GivenParts
from lupi.loaders.images.batches import ImageBatches, Images, StoredImages
from lupi.loaders.images.decode import Fit
from lupi.loaders.images.looks import N_IMAGES, Ranges, typical_looks
from lupi.loaders.images.maps import MapImages, cached_maps, check_cropping
from lupi.loaders.images.windows import Cropping
from lupi.records import Metric
from lupi.subsets import PARTS, Part
from lupi.tasks.images.network import ImageNetworkSettings, build_network

N_TOP = 5
Stores = Callable[[int], Mapping[Part, StoredImages]]
"""A seed to the images that hold the rows of each part."""


def image_task(
    rows: "ImageRows",
    division: Divides,
    design: Design,
    network: ImageNetworkSettings,
    finding_counts: Mapping[str, int] | None = None,
) -> Task:
    """Return a classification task over images; training sets are balanced."""
    return Task(
        rows,
        division,
        design,
        ImageClasses(rows.classes),
        Metric("accuracy"),
        network,
        xstar_kind="region",
        places="pixels",
        xstar_dim=1,
        balanced=True,
        finding_counts=finding_counts or {},
    )


def task_of_images(images: Images, n_classes: int, network: ImageNetworkSettings) -> Task:
    """Return a task with the same images in every part, to measure or try something."""
    side, n = images.shape[1], len(images.y)
    rows = ImageRows(
        lambda seed: dict.fromkeys(PARTS, images),
        tuple(str(i) for i in range(n_classes)),
        Cropping(side, side),
    )
    division = GivenParts(dict.fromkeys(PARTS, n), lambda seed: images.y)
    return image_task(rows, division, division.design, network)


def sees_maps(task: Task) -> bool:
    """Return whether x is the maps of a frozen pretrained network."""
    settings = task.network_settings
    return isinstance(settings, ImageNetworkSettings) and settings.is_frozen


def in_pixels(task: Task) -> Task:
    """Return a task of images with pixels as x, whatever the network sees."""
    return task.with_network(ImageNetworkSettings())


class ImageClasses(Outcome):
    """Classes of images: accuracy, loss and, with more than 5 classes, top-5 accuracy."""

    __slots__ = ()

    def metrics(self, output: Tensor, y: Tensor, weights: Tensor | None = None) -> dict[str, float]:
        """Return accuracy and mean cross-entropy; with more than 5 classes, top-5 too."""
        scores = {
            "accuracy": (output.argmax(1) == y).float().mean().item(),
            "loss": F.cross_entropy(output, y).item(),
        }
        if len(self.classes) > N_TOP:
            top = output.topk(N_TOP, dim=1).indices  # (N, 5)
            scores["top5"] = (top == y[:, None]).any(1).float().mean().item()
        return scores

    def trivial(self, train: Split, test: Split) -> dict[str, float]:
        """Return the scores of the most frequent class of the training rows."""
        y, target = _labels(train), _labels(test)
        return {"accuracy": (target == y.bincount().argmax()).float().mean().item()}


@dataclass(eq=False)
class ImageRows(Rows):
    """Images of a task: where they are stored, and how they are shown."""

    stores: Stores
    classes: tuple[str, ...]
    cropping: Cropping
    """How stored images are cropped."""
    ten_crops: bool = False
    """Whether to test on ten crops of each image, too, summing class probabilities."""
    fit_mode: Fit = "crop"
    """How an image that is not square becomes one."""
    folder: Path | None = None
    """Cache folder of the images, where maps of a frozen network are stored."""
    pool: NDArray[np.int64] | None = None
    """Training images of seed 0 in their store; None: all."""
    layout: Sequence[Fact] = ()
    """How the files were understood."""
    notes: Sequence[Fact] = ()
    """Further facts."""
    remarks: tuple[str, ...] = ()
    """What in the regions may make a verdict misleading."""

    def __post_init__(self) -> None:
        self._maps: dict[tuple[int, str], MapImages] = {}

    def fit(
        self, parts: Mapping[Part, RowNumbers], seed: int, network: ImageNetworkSettings
    ) -> "ImageRun":
        """Return the images of a run, with mean and deviation of its training images."""
        return ImageRun(self, self.stores(seed), parts, network)

    @property
    def n_channels(self) -> int:
        """Number of channels of an image."""
        return self.stores(0)["train"].shape[0]

    def mapped(self, images: StoredImages, network: ImageNetworkSettings) -> MapImages:
        """Return the maps of images by a pretrained network, computed once."""
        check_cropping(self.cropping, self.ten_crops)
        if not isinstance(images, Images):
            raise LupiError(
                "a frozen network needs images in files: shards are streamed, so nothing can be "
                "cached; give the files they were made of"
            )
        backbone = network.backbone()
        key = id(images), backbone.source.checksum
        if key not in self._maps:
            name = f"{backbone.source.checksum} {self.cropping.size}"
            maps = cached_maps(images, backbone, name, self.cropping.flip, self.folder).maps
            self._maps[key] = MapImages(images, maps)
        return self._maps[key]

    def facts(self) -> tuple[Fact, ...]:
        """Return facts about the data, for the user to check before training."""
        y = self.stores(0)["train"].y
        counts = np.bincount(y if self.pool is None else y[self.pool], minlength=len(self.classes))
        named = dict(zip(self.classes, counts.tolist(), strict=True))
        size = f"{self.cropping.size} x {self.cropping.size} pixels"
        channels = "1 channel" if self.n_channels == 1 else f"{self.n_channels} channels"
        return (
            Fact("x", f"images of {size}, {channels}"),
            *(self.layout or (Fact("x*", "a box or a mask around the object"),)),
            Fact("y", f"one of {len(named)} classes; images to choose from: {list_counts(named)}"),
            *self.notes,
        )

    def warnings(self) -> tuple[str, ...]:
        """Return what in the regions may make a verdict misleading."""
        return self.remarks


class ImageRun(RunRows):
    """Images of a run."""

    xstar_dim = 1

    def __init__(
        self,
        rows: ImageRows,
        stores: Mapping[Part, StoredImages],
        parts: Mapping[Part, RowNumbers],
        network: ImageNetworkSettings,
    ) -> None:
        self._rows, self._stores, self._parts, self._network = rows, stores, parts, network
        self.outcome = ImageClasses(rows.classes)
        train = self.images("train")
        if network.is_pretrained and not network.is_frozen:
            train = rows.mapped(train, network)
        self.statistics = train.mean_and_std(parts["train"])
        """Mean and deviation of each channel that the network sees."""

    def images(self, part: Part) -> StoredImages:
        """Return the images that hold a part, as the network sees them: perhaps as maps."""
        images = self._stores[part]
        return self._rows.mapped(images, self._network) if self._network.is_frozen else images

    def has_xstar(self, part: Part) -> Bools:
        """Return which images of a part have a region."""
        return self._stores[part].regions(self._parts[part], "real", 0)[1]

    def split(self, part: Part, shown: Shown | None = None) -> Split:
        """Return the images of a part."""
        images, rows = self.images(part), self._parts[part]
        regions, has = None, None
        if shown is not None:
            regions, has = images.regions(rows, shown.control, shown.seed)[0], shown.has
        return images.split(rows, ImageBatches(images.y[rows], self._rows.cropping, regions, has))

    def also(self) -> dict[str, Split]:
        """Return the ten crops of the test images, if they are scored."""
        if not self._rows.ten_crops:
            return {}
        images, rows = self._stores["test"], self._parts["test"]
        crops = ImageBatches(images.y[rows], self._rows.cropping, ten_crops=True)
        return {"test_ten_crops": images.split(rows, crops)}

    def network(self) -> nn.Module:
        """Build the student with new random weights."""
        size = self._rows.cropping.size
        return build_network(self._network, self.outcome.n_outputs, size, *self.statistics)

    def _typical(self) -> Ranges:
        """Return how training images look, so that others can be marked."""
        images, rows = self._stores["train"], self._parts["train"][:N_IMAGES]
        shown = ImageBatches(images.y[rows], self._rows.cropping)
        x = [batch.x for batch in images.split(rows, shown).batches(N_IMAGES)]
        return typical_looks(torch.cat(x).numpy())

    def example(self) -> Inputs:
        """Return two images."""
        images = self.images("train")
        rows = images.first(2)
        shown = ImageBatches(images.y[rows], self._rows.cropping)
        return next(iter(images.split(rows, shown).batches(2))).x

    def preprocessing(self) -> dict[str, Any]:
        """Return what a student needs to predict new images, without x*.

        `images` says how a file becomes x, `target` the class of each logit.
        """
        images = {
            "stored_size": self._rows.cropping.stored,
            "image_size": self._rows.cropping.size,
            "n_channels": self._rows.n_channels,
            "fit": self._rows.fit_mode,
            "typical": self._typical(),
        }
        target = {"kind": "classification", "classes": list(self._rows.classes)}
        described = {"images": images, "target": target}
        if self._network.is_pretrained:
            source = self._network.backbone().source._asdict()
            described["backbone"] = {**source, "n_channels": len(self.statistics[0])}
        return described


def _labels(split: Split) -> Tensor:
    """Return the labels of a split, if possible without decoding images."""
    at_hand = getattr(split, "y", None)
    if at_hand is not None:
        return torch.from_numpy(at_hand)
    return torch.cat([batch.y for batch in split.batches(256)])

"""Classification of pictures, with the box of the object as privileged information."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.core import Control, Split, Splits, XstarKind
from lupi.data.pictures import Pictures, PictureSplit
from lupi.data.subsets import nested_rows, rows_with_xstar
from lupi.data.windows import Cropping
from lupi.nn.vgg import small_vgg, vgg16_bn
from lupi.records import Metric
from lupi.settings import Settings


class ImageNetworkSettings(Settings):
    """The student for pictures."""

    name: Literal["small-vgg", "vgg16-bn"] = "small-vgg"
    """Its sites: `trunk.site1` … after each convolutional block, `head.drop1`, `head.drop2`."""
    width: int = Field(16, ge=1, le=512)
    """Channels of the first block of small-vgg; each further block doubles it."""
    n_hidden: int = Field(128, ge=1)
    """Units of the fully connected layers of small-vgg."""
    dropout: float = Field(0.2, ge=0, lt=1)
    """Bernoulli rate after the fully connected layers."""


N_TOP = 5
N_VALUES_SEEN = 2**24
"""Pixels looked at for their mean and standard deviation; more change no digit that matters."""


class ImageTask:
    """A classification task over pictures.

    Args:
        train: pictures to choose training sets from, with x*.
        val: validation pictures; their x* is not used.
        test: test pictures; their x* is not used.
        n_classes: labels are below this.
        network: the student.
        cropping: stored pictures to those that the network sees; None: as they are stored.
        ten_crops: test on ten crops of each picture, their class probabilities summed.
    """

    metric = Metric("accuracy")
    xstar_kind: XstarKind = "region"
    xstar_dim = 1
    found: Mapping[str, int] = MappingProxyType({})
    """What was wrong with the source, or had to be changed, and how often."""

    def __init__(
        self,
        train: Pictures,
        val: Pictures,
        test: Pictures,
        n_classes: int,
        network: ImageNetworkSettings,
        cropping: Cropping | None = None,
        ten_crops: bool = False,
    ) -> None:
        self._pictures = (train, val, test)
        self.n_classes = n_classes
        self.network_settings = network
        side = train.x.shape[-1]
        self._cropping = cropping or Cropping(side, side)
        self._ten_crops = ten_crops
        every = -(-train.x.size // N_VALUES_SEEN)  # rounded up
        pixels = train.x[::every].astype("float32") / 255
        self.mean = pixels.mean((0, 2, 3)).tolist()
        self.std = pixels.std((0, 2, 3)).tolist()

    def splits(
        self, size: int, seed: int, control: Control = "real", xstar_frac: float = 1.0
    ) -> Splits:
        """Return `size` training rows with x* under a control, and all of validation and test.

        The fraction is one of the training rows that have x* at all.
        """
        train, val, test = self._pictures
        rows = nested_rows(train.y, size, seed)
        regions, has = train.regions(rows, control, seed)
        has[has] = rows_with_xstar(int(has.sum()), xstar_frac, seed)
        return Splits(
            PictureSplit(train.x, train.y[rows], rows, self._cropping, regions, has),
            PictureSplit(val.x, val.y, _all(val), self._cropping),
            PictureSplit(test.x, test.y, _all(test), self._cropping, ten_crops=self._ten_crops),
        )

    def network(self) -> nn.Module:
        """Build the student, freshly initialised."""
        settings = self.network_settings
        size = self._cropping.size
        if settings.name == "vgg16-bn":
            return vgg16_bn(self.n_classes, size, self.mean, self.std, settings.dropout)
        return small_vgg(
            self.n_classes,
            size,
            settings.width,
            settings.n_hidden,
            self.mean,
            self.std,
            settings.dropout,
        )

    def example(self) -> Tensor:
        """Return two pictures."""
        train, n = self._pictures[0], 2
        split = PictureSplit(train.x, train.y[:n], np.arange(n), self._cropping)
        return next(split.batches(n)).x

    def example_loss(self, output: Tensor, y: Tensor) -> Tensor:
        """Return the cross-entropy of each row, (B,)."""
        return F.cross_entropy(output, y, reduction="none")

    def metrics(self, output: Tensor, y: Tensor) -> dict[str, float]:
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
        """Score the most frequent class of the training rows."""
        y = torch.cat([batch.y for batch in train.batches(4096)])
        target = torch.cat([batch.y for batch in test.batches(4096)])
        return {"accuracy": (target == y.bincount().argmax()).float().mean().item()}

    def is_uninformative(self, output: Tensor) -> bool:
        """Tell whether class probabilities do not change from picture to picture."""
        return bool(output.softmax(1).std(0).max() < 1e-3)


def _all(pictures: Pictures) -> NDArray[np.int64]:
    return np.arange(len(pictures.y))

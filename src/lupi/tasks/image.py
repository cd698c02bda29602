"""Classification of pictures, with the box of the object as privileged information."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from lupi.core import Control, Split, Splits, XstarKind
from lupi.data.controls import control_boxes
from lupi.data.pictures import Pictures, PictureSplit
from lupi.data.subsets import nested_rows, rows_with_xstar
from lupi.nn.resnet import resnet18, resnet50
from lupi.nn.vgg import Activation, small_vgg, vgg16_bn
from lupi.records import Metric
from lupi.settings import Settings


class ImageNetworkSettings(Settings):
    """The student for pictures."""

    name: Literal["small-vgg", "vgg16-bn", "resnet18", "resnet50"] = "small-vgg"
    """Its sites: `trunk.site1` … after each block or stage, `head.drop1`, a VGG's `head.drop2`."""
    width: int = Field(16, ge=1, le=512)
    """Channels of the first block of small-vgg; each further block doubles it."""
    n_hidden: int = Field(128, ge=1)
    """Units of the fully connected layers of small-vgg."""
    dropout: float = Field(0.2, ge=0, lt=1)
    """Bernoulli rate after the fully connected layers; before the only one of a ResNet."""
    fc_activation: Activation = "relu"
    """Of the fully connected layers of VGGs; `sigmoid` is info-dropout's in the CVPR 2018 paper."""


class ImageTask:
    """A classification task over pictures in memory."""

    metric = Metric("accuracy")
    xstar_kind: XstarKind = "region"
    xstar_dim = 1

    def __init__(
        self,
        train: Pictures,
        val: Pictures,
        test: Pictures,
        n_classes: int,
        network: ImageNetworkSettings,
    ) -> None:
        self._pictures = (train, val, test)
        self.n_classes = n_classes
        self.network_settings = network
        pixels = train.x.astype("float32") / 255
        self.mean = pixels.mean((0, 2, 3)).tolist()
        self.std = pixels.std((0, 2, 3)).tolist()

    def splits(
        self,
        size: int,
        seed: int,
        control: Control = "real",
        xstar_frac: float = 1.0,
        reveal: bool = False,
    ) -> Splits:
        """Return `size` training rows with x* under a control, and all of validation and test.

        With `reveal` (an oracle) these have x* too, under the same control.
        """
        train, val, test = self._pictures
        rows = nested_rows(train.y, size, seed)
        boxes = control_boxes(train.boxes[rows], control, seed, *train.x.shape[2:])
        has = torch.from_numpy(rows_with_xstar(size, xstar_frac, seed))
        return Splits(
            PictureSplit(
                torch.from_numpy(train.x[rows]),
                torch.from_numpy(train.y[rows]),
                torch.from_numpy(boxes),
                has,
            ),
            self._held_out(val, control if reveal else None, seed),
            self._held_out(test, control if reveal else None, seed),
        )

    def _held_out(self, rows: Pictures, control: Control | None, seed: int) -> PictureSplit:
        """Return validation or test rows, without x* unless a control for it is given."""
        x, y = torch.from_numpy(rows.x), torch.from_numpy(rows.y)
        if control is None:
            return PictureSplit(x, y)
        boxes = control_boxes(rows.boxes, control, seed, *rows.x.shape[2:])
        return PictureSplit(x, y, torch.from_numpy(boxes), torch.ones(len(y), dtype=torch.bool))

    def network(self) -> nn.Module:
        """Build the student, freshly initialised."""
        s = self.network_settings
        size = self._pictures[0].x.shape[-1]
        if s.name in ("resnet18", "resnet50"):
            build = resnet18 if s.name == "resnet18" else resnet50
            return build(self.n_classes, size, self.mean, self.std, s.dropout)
        if s.name == "vgg16-bn":
            return vgg16_bn(self.n_classes, size, self.mean, self.std, s.dropout, s.fc_activation)
        return small_vgg(
            self.n_classes,
            size,
            s.width,
            s.n_hidden,
            self.mean,
            self.std,
            s.dropout,
            s.fc_activation,
        )

    def example(self) -> Tensor:
        """Return two pictures."""
        return torch.from_numpy(self._pictures[0].x[:2]).float() / 255

    def example_loss(self, output: Tensor, y: Tensor) -> Tensor:
        """Return the cross-entropy of each row, (B,)."""
        return F.cross_entropy(output, y, reduction="none")

    def metrics(self, output: Tensor, y: Tensor) -> dict[str, float]:
        """Return accuracy and mean cross-entropy."""
        return {
            "accuracy": (output.argmax(1) == y).float().mean().item(),
            "loss": F.cross_entropy(output, y).item(),
        }

    def trivial(self, train: Split, test: Split) -> dict[str, float]:
        """Score the most frequent class of the training rows."""
        y = torch.cat([batch.y for batch in train.batches(4096)])
        target = torch.cat([batch.y for batch in test.batches(4096)])
        return {"accuracy": (target == y.bincount().argmax()).float().mean().item()}

    def is_uninformative(self, output: Tensor) -> bool:
        """Tell whether class probabilities do not change from picture to picture."""
        return bool(output.softmax(1).std(0).max() < 1e-3)

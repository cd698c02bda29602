"""A scikit-learn classifier of images, trained with regions (boxes or masks)."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from sklearn.utils import Tags, column_or_1d
from sklearn.utils.validation import check_consistent_length, check_is_fitted
from torch import Tensor
from torch.nn import functional as F

from lupi.core import Task
from lupi.errors import LupiError
from lupi.estimators.features import from_torch
from lupi.estimators.network import ONE_CYCLE, ClassEstimator
from lupi.loaders.division import Division
from lupi.loaders.images.batches import Images
from lupi.loaders.images.decode import BadImageError, decode_image
from lupi.loaders.images.windows import Cropping
from lupi.networks.backbones import maps_shape
from lupi.networks.map_student import with_backbone
from lupi.subsets import PARTS
from lupi.tasks.images.image import ImageRows, image_task
from lupi.tasks.images.network import ImageNetworkSettings

AT_ONCE = 64


class LupiImageClassifier(ClassEstimator):
    """Classifier of images that trains with regions and predicts without them.

    By default the student pools frozen maps of EfficientNet-Lite0 (`lupi[features]`) by attention,
    and the regions teach it where to look. Images are resized to a square. Some images are held
    out, without regions, to choose the epoch.

    Args:
        method: Any method that takes regions as x* (`lupi methods`), except the oracle.
        settings: Settings of the method.
        network: `efficientnet-lite0`, `transformers` (with `model`), `small-vgg`, `resnet18`, ….
        model: For transformers: a local folder, or a name of the local hub cache.
        tune: Part of a pretrained network to train: `none`, `last` or `all`.
        pooling: `mean`, `attention`, or `both` beside each other.
        image_size: Height and width of the images that the network sees.
        flip: Whether to mirror a random half of the training images.
        dropout: Bernoulli rate.
        epochs: Passes over the images, of at least 20 steps each.
        batch_size: Images per batch.
        lr: Largest learning rate of AdamW, which rises for a third of the epochs and then falls.
        weight_decay: Weight decay of AdamW.
        val_frac: Fraction of held-out images. With 0, training images are used instead.
        random_state: Seed of initial weights, held-out images, batch order and noise.
        n_threads: Number of torch threads.
    """

    OPTIMIZER = ONE_CYCLE

    def __init__(
        self,
        method: str = "guided-attention",
        settings: dict[str, Any] | None = None,
        *,
        network: str = "efficientnet-lite0",
        model: str | None = None,
        tune: str = "none",
        pooling: str = "both",
        image_size: int = 160,
        flip: bool = True,
        dropout: float = 0.2,
        epochs: int = 8,
        batch_size: int = 24,
        lr: float = 0.005,
        weight_decay: float = 0.01,
        val_frac: float = 0.2,
        random_state: Any = None,
        n_threads: int = 1,
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any, regions: Any = None) -> Self:
        """Train.

        Args:
            X: Images: paths of files, or arrays (H, W) or (H, W, 3) of bytes.
            y: Classes, (N,).
            regions: One per image, in its own pixels: a box `(x0, y0, x1, y1)`, a list of boxes,
                a mask (H, W) that is not 0 on the object, or None if it has no region. Empty masks
                and lists say that there is nothing to see. None: the plain model, `no-xstar`.
        """
        y = column_or_1d(from_torch(y))
        check_consistent_length(X, y)
        numbers = self._class_numbers(y)
        images, sizes = read_images(X, self.image_size)
        masks, has = read_regions(regions, sizes, self.image_size)
        self._fit((images, masks, has), numbers, len(self.classes_), regions)
        network = self._network()
        if network.is_frozen:
            self.student_ = with_backbone(self.student_, network.backbone()).eval()
        return self

    def _network(self) -> ImageNetworkSettings:
        given = self._given("model", "tune", "pooling", "dropout")
        return ImageNetworkSettings.parse({"name": self.network, **given}, "network")

    def _describe(self) -> dict[str, Any]:
        side, network = self.image_size, self._network()
        images = {"stored_size": side, "image_size": side, "n_channels": 3, "fit": "squash"}
        described = {"network": network.resolved(), "images": images, "target": self._target()}
        if network.is_pretrained:
            backbone = network.backbone()
            n_channels = maps_shape(backbone, side)[0]
            described["backbone"] = {**backbone.source._asdict(), "n_channels": n_channels}
        return described

    def _random_inputs(self) -> Tensor:
        shape = (4, 3, self.image_size, self.image_size)
        return torch.rand(shape, generator=torch.Generator().manual_seed(0))

    def _task(self, X: Any, y: Any, n_classes: int | None, xstar: Any, seed: int) -> Task:
        """Hold images out."""
        pixels, masks, has = X
        train, val = self._rows(y, seed)
        images = Images(pixels, y, np.zeros((len(y), 4), np.int64), masks, has)
        rows = ImageRows(
            lambda seed: dict.fromkeys(PARTS, images),
            tuple(map(str, range(n_classes or 0))),
            Cropping(self.image_size, self.image_size, flip=self.flip),
        )
        division = Division(y, {"train": train, "val": val, "test": val}, {})
        task = image_task(rows, division, division.design, self._network())
        return task.for_run(len(train), seed)

    @torch.no_grad()
    def _outputs(self, X: Any) -> Tensor:
        """Return the student's output for each image."""
        check_is_fitted(self)
        pixels, _ = read_images(X, self.image_size)
        parts = torch.from_numpy(pixels).split(AT_ONCE)
        return torch.cat([self.student_(part.float() / 255) for part in parts]).double()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = tags.input_tags.categorical = False
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


def read_images(X: Any, side: int) -> tuple[NDArray[np.uint8], list[tuple[int, int]]]:
    """Return images (N, 3, side, side), and width and height of each before it was resized."""
    if isinstance(X, str | Path) or not hasattr(X, "__len__") or not len(X):
        raise ValueError(f"expected a sequence of images (paths or arrays), got {X!r}")
    pixels, sizes = [], []
    for i, image in enumerate(X):
        try:
            data = Path(image).read_bytes() if isinstance(image, str | Path) else _as_png(image)
            decoded = decode_image(data, side, "squash")
        except (BadImageError, LupiError, OSError, TypeError, ValueError) as error:
            raise LupiError(f"image {i} can't be read: {error}") from None
        pixels.append(decoded.pixels)
        sizes.append((decoded.width, decoded.height))
    return np.stack(pixels), sizes


def _as_png(image: Any) -> bytes:
    values = np.asarray(from_torch(image))
    if values.dtype != np.uint8 or values.ndim not in (2, 3):
        raise ValueError(
            f"expected bytes (H, W) or (H, W, 3), got {values.dtype} {values.shape}; for pixels in "
            "[0, 1] pass (255 * image).astype('uint8')"
        )
    buffer = io.BytesIO()
    Image.fromarray(values).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def read_regions(
    given: Any, sizes: Sequence[tuple[int, int]], side: int
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return masks (N, side, side) of regions, and which images have one."""
    masks = np.zeros((len(sizes), side, side), np.uint8)
    has = np.zeros(len(sizes), np.bool_)
    if given is None:
        return masks, has
    if len(given) != len(sizes):
        raise LupiError(
            f"regions: {len(given)} for {len(sizes)} images; use None for an image without one"
        )
    for i, (region, (width, height)) in enumerate(zip(given, sizes, strict=True)):
        if region is None:
            continue
        has[i] = True
        values = np.asarray(from_torch(region))
        if values.shape != (height, width):
            values = _draw_boxes(values, width, height, i)
        shown = torch.from_numpy((values != 0).astype(np.float32))[None]
        masks[i] = F.adaptive_max_pool2d(shown, side)[0].byte().numpy()
    return masks, has


def _draw_boxes(values: NDArray[Any], width: int, height: int, i: int) -> NDArray[np.uint8]:
    if values.size % 4 or values.ndim > 2 or (values.size and values.shape[-1] != 4):
        raise LupiError(
            f"regions: that of image {i} has shape {values.shape}; expected a mask "
            f"{(height, width)}, a box (x0, y0, x1, y1) or a list of boxes"
        )
    mask = np.zeros((height, width), np.uint8)
    for x0, y0, x1, y1 in values.reshape(-1, 4):
        left, top = max(0, int(x0)), max(0, int(y0))
        mask[top : max(top + 1, int(np.ceil(y1))), left : max(left + 1, int(np.ceil(x1)))] = 1
    return mask

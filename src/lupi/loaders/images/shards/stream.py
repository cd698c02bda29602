"""Images streamed from shards: only a buffer of them is in memory.

The order of a pass is a function of its seed: shards are shuffled, then images within a buffer
that is filled from them. Labels and boxes of all rows are in memory, so x* under a control, subsets
and fractions are those of the cache.
"""

import zlib
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

from lupi.core import Batch, Control
from lupi.errors import LupiError
from lupi.loaders.findings import Findings, OnBad
from lupi.loaders.images.cache import ImageSelection
from lupi.loaders.images.decode import BadImageError, Fit, decode_image
from lupi.loaders.images.layouts.index import PARTS, Part
from lupi.loaders.images.privileged import Regions, controlled_boxes
from lupi.loaders.images.shards.ahead import map_ahead
from lupi.loaders.images.shards.format import (
    ABOUT,
    PartRows,
    Shards,
    open_shards,
    read_rows,
    read_shard,
    shard_name,
)
from lupi.loaders.images.shards.remote import file_name
from lupi.loaders.images.split import ImageBatches, max_images, mean_and_std
from lupi.loaders.images.windows import Cropping

BUFFER = 2048
"""Number of encoded images in the shuffle buffer; 200 to 300 MB for ImageNet."""

Sample = tuple[int, bytes]
"""A row of a split, and the file of its image."""


@dataclass(frozen=True, slots=True)
class ShardedImages:
    """The images of one part in shards."""

    shards: Shards
    part: Part
    rows: PartRows
    """Label, boxes and place of each row."""
    side: int
    """Height and width that images are decoded to, as in the cache."""
    fit: Fit
    decoders: int
    """Threads that decode."""

    @property
    def y(self) -> NDArray[np.int64]:
        """Labels."""
        return self.rows.y

    @property
    def shape(self) -> tuple[int, int]:
        """Channels, and height and width."""
        return 3, self.side

    @property
    def has_regions(self) -> bool:
        """Whether any image has boxes."""
        return bool(self.rows.has.any())

    def mean_and_std(self, rows: NDArray[np.int64]) -> tuple[list[float], list[float]]:
        """Return mean and standard deviation of each channel in some images, in [0, 1].

        If there are many, the images in the first shards are used; shards are in random order.
        """
        in_order = self.rows.rows[np.isin(self.rows.rows, rows)]
        few = in_order[: max_images(*self.shape)]
        shown = ImageBatches(self.y[few], Cropping(self.side, self.side))
        return mean_and_std(np.stack([pixels for _, pixels in self.split(few, shown).decoded()]))

    def first(self, n: int) -> NDArray[np.int64]:
        """Return the rows at the start of the first shard."""
        return self.rows.rows[:n]

    def regions(
        self, rows: NDArray[np.int64], control: Control, seed: int
    ) -> tuple[Regions, NDArray[np.bool_]]:
        """Return the x* of some rows under a control, and which of them have any."""
        has = self.rows.has[rows]
        return controlled_boxes(self.rows.boxes[rows], has, self.side, control, seed), has

    def split(self, rows: NDArray[np.int64], shown: ImageBatches) -> "StreamSplit":
        """Return some rows as batches."""
        return StreamSplit(self, rows, shown)


@dataclass(frozen=True, slots=True)
class Streamed:
    """The images of all parts in shards."""

    train: ShardedImages
    val: ShardedImages
    test: ShardedImages

    @property
    def classes(self) -> list[str]:
        """Names of the labels."""
        return self.train.shards.classes

    @property
    def findings(self) -> Findings:
        """Findings when the shards were written."""
        return self.train.shards.findings

    @property
    def about(self) -> str:
        """File that lists every finding."""
        return file_name(self.train.shards.root, ABOUT)

    def finding_counts(self) -> dict[str, int]:
        """Count what is worth recording: images without x*, and each kind of finding."""
        without = int((~self.train.rows.has).sum())
        return {"training image without x*": without, **self.findings.counts()}


def open_stream(root: str, wanted: ImageSelection, on_bad: OnBad, decoders: int) -> Streamed:
    """Return the images of the shards, without reading any."""
    shards = open_shards(root, wanted, on_bad)
    rows = read_rows(shards, wanted.side, wanted.fit)
    return Streamed(
        *(
            ShardedImages(shards, part, rows[part], wanted.side, wanted.fit, decoders)
            for part in PARTS
        )
    )


class StreamSplit:
    """Rows that are read from shards in each pass; their order is that of the shards.

    Args:
        images: of which they are rows.
        rows: which (N,).
        shown: what batches show of them.
    """

    def __init__(self, images: ShardedImages, rows: NDArray[np.int64], shown: ImageBatches) -> None:
        self.images, self.rows, self.shown = images, rows, shown
        self._place = np.full(len(images.y), -1)  # of a row of the part in this split
        self._place[rows] = np.arange(len(rows))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def y(self) -> NDArray[np.int64]:
        """Labels of the rows, for which no image has to be read."""
        return self.shown.y

    def batches(self, batch_size: int, shuffle: torch.Generator | None = None) -> Iterator[Batch]:
        """Yield all rows: in the order of the shards, or shuffled and augmented by the generator.

        The order takes one number from the generator, because a thread computes it in advance; the
        windows of the batches take the others.
        """
        rng = None
        if shuffle is not None:
            rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=shuffle)))
        decoded = self.decoded(rng, 2 * batch_size)
        while some := list(islice(decoded, batch_size)):
            rows = np.array([row for row, _ in some])
            stored = torch.from_numpy(np.stack([pixels for _, pixels in some]))  # (B, C, S, S)
            yield self.shown.batch(rows, stored, shuffle)

    def decoded(
        self, rng: np.random.Generator | None = None, n_ahead: int = 2
    ) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield rows with their pixels (C, S, S): in the order of the shards, or shuffled."""
        samples = self._read(range(len(self._n_images)))
        if rng is not None:
            samples = _shuffled(self._read(rng.permutation(len(self._n_images))), rng)
        return map_ahead(self._decode, samples, self.images.decoders, n_ahead)

    @property
    def _n_images(self) -> list[int]:
        return self.images.shards.n_images[self.images.part]

    def _read(self, order: "range | NDArray[np.int64]") -> Generator[Sample, None, None]:
        """Yield rows and their files, one shard after another."""
        known = self.images.rows
        ends = np.cumsum(self._n_images)
        for shard in order:
            some = slice(ends[shard] - self._n_images[shard], ends[shard])
            places = self._place[known.rows[some]]
            if (places < 0).all():
                continue
            name = shard_name(self.images.part, int(shard))
            for i, data in read_shard(self.images.shards.root, name, known.keys[some], places >= 0):
                if zlib.crc32(data) != known.crc[known.rows[some][i]]:
                    raise LupiError(
                        f"{name}: image {known.keys[some][i]} is damaged or was changed"
                    )
                yield int(places[i]), data

    def _decode(self, sample: Sample) -> tuple[int, NDArray[np.uint8]]:
        row, data = sample
        try:
            return row, decode_image(data, self.images.side, self.images.fit).pixels
        except BadImageError as error:  # none such was put in
            raise LupiError(f"{self.images.shards.root}: an image is bad: {error}") from None


def _shuffled(
    samples: Generator[Sample, None, None], rng: np.random.Generator
) -> Generator[Sample, None, None]:
    """Draw from a buffer that is filled up with each draw."""
    with closing(samples):
        buffer = list(islice(samples, BUFFER))
        for sample in samples:
            i = rng.integers(len(buffer))
            yield buffer[i]
            buffer[i] = sample
        for i in rng.permutation(len(buffer)):
            yield buffer[i]

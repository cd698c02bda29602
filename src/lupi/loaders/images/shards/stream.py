"""Images streamed from shards: only a buffer of them is in memory.

The order of a pass is a function of its seed: shards are shuffled, then images within a buffer
that is filled from them. Labels and boxes of all rows are in memory, so x* under a control, subsets
and fractions are those of the cache. An image is the bytes that the index names, with its checksum;
headers of tar files are never read.
"""

import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from lupi.core import Batch, Control
from lupi.errors import LupiError
from lupi.loaders.findings import OnBad
from lupi.loaders.images.batches import (
    ImageBatches,
    Regions,
    controlled_boxes,
    max_images,
    mean_and_std,
)
from lupi.loaders.images.cache import OpenedImages
from lupi.loaders.images.decode import BadImageError, Fit, decode_image
from lupi.loaders.images.index import ImageSelection
from lupi.loaders.images.shards.format import (
    ABOUT,
    PIECE,
    Rows,
    Shards,
    check_choice,
    file_name,
    open_file,
    read_at_most,
    read_rows,
    read_shards,
    shard_name,
)
from lupi.loaders.images.windows import Cropping
from lupi.subsets import PARTS, Part

BUFFER = 2048
"""Number of encoded images in the shuffle buffer; 200 to 300 MB for ImageNet."""

Sample = tuple[int, bytes]
"""A row, and the file of its image."""
Read = TypeVar("Read")
Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class ShardedImages:
    """The images of one part in shards."""

    shards: Shards
    part: Part
    rows: Rows
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

    def mean_and_std(self, rows: NDArray[np.int64]) -> tuple[list[float], list[float]]:
        """Return mean and standard deviation of each channel in some images, in [0, 1].

        If there are many, the images in the first shards are used; shards are in random order.
        """
        few = self.in_order(rows)[: max_images(*self.shape)]
        shown = ImageBatches(self.y[few], Cropping(self.side, self.side))
        return mean_and_std(np.stack([pixels for _, pixels in self.split(few, shown).decoded()]))

    def first(self, n: int) -> NDArray[np.int64]:
        """Return the rows at the start of the first shard."""
        return self.in_order(np.arange(len(self.y)))[:n]

    def in_order(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return rows in the order of the shards."""
        return rows[np.lexsort((self.rows.offset[rows], self.rows.shard[rows]))]

    def regions(
        self, rows: NDArray[np.int64], control: Control, seed: int
    ) -> tuple[Regions, NDArray[np.bool_]]:
        """Return the x* of some rows under a control, and which of them have any."""
        has = self.rows.has[rows]
        return controlled_boxes(self.rows.boxes[rows], has, self.side, control, seed), has

    def split(self, rows: NDArray[np.int64], shown: ImageBatches) -> "StreamSplit":
        """Return some rows as batches."""
        return StreamSplit(self, rows, shown)

    def read(self, shard: int, rows: NDArray[np.int64]) -> Iterator[Sample]:
        """Yield rows of one shard, in its order, with their files."""
        name = shard_name(self.part, shard)
        where = file_name(self.shards.root, name)
        position = 0
        try:
            with closing(open_file(self.shards.root, name)) as file:
                for row in rows.tolist():
                    _skip(file, int(self.rows.offset[row]) - position)
                    data = read_at_most(file, int(self.rows.n_bytes[row]))
                    position = int(self.rows.offset[row]) + len(data)
                    if zlib.crc32(data) != self.rows.crc[row]:
                        raise LupiError(
                            f"{where} is damaged, incomplete or does not belong to {ABOUT}: image "
                            f"{row} at byte {self.rows.offset[row]:,} has another checksum"
                        )
                    yield row, data
        except OSError as error:
            raise LupiError(f"{where} can't be read: {error}") from None


def _skip(file: Any, n_bytes: int) -> None:
    """Move forward in a file, which may not be seekable."""
    if n_bytes >= 0 and getattr(file, "seekable", bool)():
        file.seek(n_bytes, 1)
        return
    while n_bytes > 0 and (piece := file.read(min(n_bytes, PIECE))):
        n_bytes -= len(piece)


def open_stream(root: str, wanted: ImageSelection, on_bad: OnBad, decoders: int) -> OpenedImages:
    """Return the images of the shards, without reading any."""
    shards = read_shards(root, on_bad)
    check_choice(shards, wanted)
    rows = read_rows(shards, wanted.side)
    form = wanted.side, wanted.fit, decoders
    parts = {part: ShardedImages(shards, part, rows[part], *form) for part in PARTS}
    return OpenedImages(parts, shards.classes, shards.findings, file_name(root, ABOUT))


class StreamSplit:
    """Rows that are read from shards in each pass; their order is that of the shards.

    Args:
        images: Images of which they are rows.
        rows: Which (N,).
        shown: Contents of the batches.
    """

    def __init__(self, images: ShardedImages, rows: NDArray[np.int64], shown: ImageBatches) -> None:
        self.images, self.rows, self.shown = images, rows, shown

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
        place = np.zeros(len(self.images.y), np.int64)  # of a row of the part in this split
        place[self.rows] = np.arange(len(self.rows))
        decoded = self.decoded(rng, 2 * batch_size)
        while some := list(islice(decoded, batch_size)):
            rows = place[[row for row, _ in some]]
            stored = torch.from_numpy(np.stack([pixels for _, pixels in some]))  # (B, C, S, S)
            yield self.shown.batch(rows, stored, shuffle)

    def decoded(
        self, rng: np.random.Generator | None = None, n_ahead: int = 2
    ) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield rows of the part with their pixels (C, S, S), as stored in shards or shuffled."""
        samples = self._read(rng)
        if rng is not None:
            samples = _shuffled(samples, rng)
        return map_ahead(self._decode, samples, self.images.decoders, n_ahead)

    def _read(self, rng: np.random.Generator | None) -> Generator[Sample, None, None]:
        """Yield rows and their files, one shard after another."""
        rows = self.images.in_order(self.rows)
        shards = self.images.rows.shard[rows]
        order = np.unique(self.images.rows.shard)
        for shard in (order if rng is None else rng.permutation(order)).tolist():
            start, end = np.searchsorted(shards, [shard, shard + 1])
            if end > start:
                yield from self.images.read(shard, rows[start:end])

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


def map_ahead(
    function: Callable[[Read], Done],
    items: Generator[Read, Any, Any],
    n_threads: int,
    n_ahead: int,
) -> Iterator[Done]:
    """Yield function(item) for each item, in order, computing at most `n_ahead` in advance.

    One thread reads items, others apply the function. An error in either is raised in place of the
    result. When the iterator is closed or deleted, the threads end and `items` is closed.
    """
    reader, pool = ThreadPoolExecutor(1), ThreadPoolExecutor(n_threads)

    def read_next() -> Future[Done] | None:
        for item in items:
            return pool.submit(function, item)
        return None

    waiting = deque(reader.submit(read_next) for _ in range(n_ahead))
    try:
        while (result := waiting.popleft().result()) is not None:
            waiting.append(reader.submit(read_next))
            yield result.result()
    finally:
        reader.shutdown(cancel_futures=True)
        pool.shutdown(cancel_futures=True)
        items.close()

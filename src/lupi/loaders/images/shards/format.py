"""The format of shards: the images of a source as tar files in webdataset's layout.

    <root>/train-000000.tar …  images as they were, each <key>.jpg with <key>.json beside it
           val-000000.tar …    (its name, class and boxes)
           test-000000.tar …
           rows.safetensors    of every image: class, boxes, where its bytes are, checksum
           shards.json         classes, counts, how the images were chosen; written last

The rows of a part are those of the cache of the same source, in the same order. Training images
are dealt to the shards in an order drawn once, so that every class is spread over all shards.

A root is a folder or a URL. If it contains `{}`, the file name is inserted there; otherwise it is
appended after a slash. webdataset opens URLs, and only if the user allows that root: a settings
file or a run's folder may name a server, or a shell command (`pipe:`).
"""

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt, TypeAdapter, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays

from lupi.errors import LupiError
from lupi.limits import largest_content, open_regular
from lupi.loaders.findings import Findings, OnBad
from lupi.loaders.images.cache import check_sizes
from lupi.loaders.images.index import ImageSelection
from lupi.loaders.images.regions import PixelBoxes, stack_boxes
from lupi.loaders.images.trees import MAX_FILE_BYTES
from lupi.permission import require_permission
from lupi.records import first_error
from lupi.subsets import PARTS, Part

FORMAT = 4
ABOUT, ROWS = "shards.json", "rows.safetensors"
LIMITS = {
    "label": 2**31,
    "shard": 2**31,
    "offset": 2**60,
    "n_bytes": MAX_FILE_BYTES,
    "crc": 2**32,
    "has_region": 1,
    "n_boxes": 2**31,
}
"""Columns of the rows, whole numbers, and their limits; `boxes` has all boxes in turn, as fractions
of the visible part of their image."""
PIECE = 2**20


def shard_name(part: Part, number: int) -> str:
    """Return the name of a shard."""
    return f"{part}-{number:06}.tar"


def is_url(root: str) -> bool:
    """Return whether a root is a URL: two or more letters and a colon."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", root) is not None


def is_sharded(root: str) -> bool:
    """Return whether a root contains shards; True for any URL."""
    return is_url(root) or Path(root, ABOUT).is_file()


def file_name(root: str, name: str) -> str:
    """Return the path or URL of a file below a root."""
    return root.replace("{}", name) if "{}" in root else f"{root.rstrip('/')}/{name}"


def open_file(root: str, name: str) -> Any:
    """Open a file below a root for reading; it may not be seekable."""
    path = file_name(root, name)
    if not is_url(root):
        return open_regular(Path(path))
    runs = "is a shell command" if root.startswith("pipe:") else "would be fetched"
    require_permission(root, "task.root", runs)
    try:
        from webdataset.gopen import gopen, gopen_schemes
    except ModuleNotFoundError:
        raise LupiError(f"task.root: {root} needs webdataset: pip install 'lupi[shards]'") from None
    known = {"file", *gopen_schemes} - {"__default__"}
    if root.partition(":")[0] not in known:
        listed = ", ".join(sorted(known))
        raise LupiError(f"task.root: {root} can't be opened; webdataset supports {listed}")
    return gopen(path)


def read_at_most(file: Any, n_bytes: int) -> bytes:
    """Read up to `n_bytes` bytes, without allocating more memory than was read."""
    pieces = []
    while n_bytes > 0 and (piece := file.read(min(n_bytes, PIECE))):
        pieces.append(piece)
        n_bytes -= len(piece)
    return b"".join(pieces)


def _read_file(root: str, name: str, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    try:
        with closing(open_file(root, name)) as file:
            data = read_at_most(file, max_bytes + 1)
    except OSError as error:
        raise LupiError(f"{file_name(root, name)} can't be read: {error}") from None
    if len(data) > max_bytes:
        raise LupiError(f"{file_name(root, name)} has more than {max_bytes:,} bytes")
    return data


@dataclass(frozen=True, slots=True)
class Shards:
    """The content of `shards.json`."""

    root: str
    format: int
    classes: list[str]
    n_images: Annotated[dict[Part, PositiveInt], Field(min_length=len(PARTS))]
    rows: str
    """SHA-256 of the file of rows, which includes a checksum of each image."""
    choice: dict[str, Any]
    """The settings that decided which images are in which part."""
    findings: Findings


def choice_of(wanted: ImageSelection) -> dict[str, Any]:
    """Return the settings that decide which images are in which part, as in `shards.json`."""
    choice = {k: v for k, v in asdict(wanted).items() if k not in ("source", "side")}
    if isinstance(choice["classes"], tuple):
        choice["classes"] = list(choice["classes"])
    return choice


def read_shards(root: str, on_bad: OnBad = "skip") -> Shards:
    """Read `shards.json`."""
    where = file_name(root, ABOUT)
    try:
        about = json.loads(_read_file(root, ABOUT))
        if about["format"] != FORMAT:
            raise LupiError(
                f"{where} has format {about['format']!r}, this lupi reads {FORMAT}: write the "
                "shards again with `lupi data shard`"
            )
        findings = {**about["findings"], "on_bad": on_bad}
        return TypeAdapter(Shards).validate_python({**about, "root": root, "findings": findings})
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        why = first_error(error) if isinstance(error, ValidationError) else repr(error)
        raise LupiError(f"{where} was not written by `lupi data shard`: {why}") from None


def check_choice(shards: Shards, wanted: ImageSelection) -> None:
    """Raise an error if shards were made for other settings."""
    for key, value in choice_of(wanted).items():
        if shards.choice.get(key) != value:
            raise LupiError(
                f"task.{key}: got {value!r}, but the shards in {shards.root} were written with "
                f"{shards.choice.get(key)!r}. Use that, or write shards with `lupi data shard`"
            )
    shards.findings.check()


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one part: label and boxes of each image, and where its bytes are."""

    y: NDArray[np.int64]
    boxes: PixelBoxes
    """(N, K, 4), padded with empty boxes."""
    has: NDArray[np.bool_]
    shard: NDArray[np.int64]
    offset: NDArray[np.int64]
    n_bytes: NDArray[np.int64]
    crc: NDArray[np.int64]


def read_rows(shards: Shards, side: int) -> Mapping[Part, Rows]:
    """Return the rows of each part for images stored at side x side."""
    rows = _read_rows(shards.root, shards.rows, side)
    for part, of_part in rows.items():
        if len(of_part.y) != shards.n_images[part]:
            raise _not_together(shards.root, f"another number of {part} images")
        if of_part.y.max() >= len(shards.classes):
            raise _not_together(shards.root, f"labels of {part} without a class")
    check_sizes(shards.n_images, rows["train"].y, shards.classes)
    return rows


@lru_cache(maxsize=2)  # a comparison builds its task once for each arm
def _read_rows(root: str, sha256: str, side: int) -> Mapping[Part, Rows]:
    data = _read_file(root, ROWS, 4 * MAX_FILE_BYTES)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise _not_together(root, "copy both")
    try:
        arrays = load_arrays(data)
        columns = {part: _columns(arrays, part) for part in PARTS}
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise LupiError(f"{file_name(root, ROWS)} can't be read: {error}") from None
    # As many places for boxes in every part as in the cache: a random control draws for each.
    n_places = max(int(of_part["n_boxes"].max(initial=0)) for of_part in columns.values())
    if 8 * n_places * sum(len(c["label"]) for c in columns.values()) > largest_content(len(data)):
        raise LupiError(f"{file_name(root, ROWS)} has {n_places:,} boxes of one image: too many")
    rows = {}
    for part, c in columns.items():
        boxes, has = stack_boxes(c["boxes"], c["n_boxes"], n_places, side), c["has_region"] > 0
        rows[part] = Rows(c["label"], boxes, has, c["shard"], c["offset"], c["n_bytes"], c["crc"])
    return rows


def _not_together(root: str, what: str) -> LupiError:
    return LupiError(f"{file_name(root, ROWS)} does not belong to {ABOUT} beside it: {what}")


def _columns(arrays: Mapping[str, NDArray[Any]], part: Part) -> dict[str, NDArray[Any]]:
    """Return the columns of a part; raise a ValueError if they are not those of any."""
    columns = {name: arrays[f"{part}.{name}"] for name in (*LIMITS, "boxes")}
    n = len(columns["label"])
    for name, most in LIMITS.items():
        column = columns[name]
        if column.dtype != np.int64 or column.shape != (n,) or n == 0:
            raise ValueError(f"{name} has {column.dtype} of shape {column.shape} for {n} rows")
        if not 0 <= column.min() <= column.max() <= most:
            raise ValueError(f"{name} is not between 0 and {most:,}")
    boxes = columns["boxes"]
    if boxes.dtype != np.float64 or boxes.shape != (sum(columns["n_boxes"].tolist()), 4):
        raise ValueError(f"boxes have {boxes.dtype} of shape {boxes.shape}")
    if not ((boxes >= 0) & (boxes <= 1)).all():
        raise ValueError("boxes outside their image")
    return columns

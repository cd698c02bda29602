"""The format of shards: the images of a source as tar files in webdataset's layout.

    <root>/train-000000.tar …  images as they were, each <key>.jpg with <key>.json beside it
           val-000000.tar …    (its name, class, size and boxes)
           test-000000.tar …
           rows.safetensors    of every image: key, class, size, boxes, checksum
           shards.json         classes, counts, how the images were chosen; written last

A key is the place of an image in its part before bad ones were left out, so the rows of a part, in
the order of their keys, are those of the cache of the same source. Training images are dealt to
the shards in an order drawn once: a class is all over them.
"""

import hashlib
import json
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeInt, TypeAdapter, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays

from lupi.errors import LupiError
from lupi.limits import largest_content
from lupi.loaders.findings import Findings, OnBad
from lupi.loaders.images.boxes import PixelBox, place_boxes, stack_boxes
from lupi.loaders.images.cache import ImageSelection, check_sizes
from lupi.loaders.images.decode import MAX_PIXELS, Fit
from lupi.loaders.images.layouts.index import PARTS, Part
from lupi.loaders.images.layouts.trees import MAX_FILE_BYTES
from lupi.loaders.images.shards.remote import file_name, is_url, open_file, read_at_most, read_file
from lupi.records import first_error

FORMAT = 2
ABOUT, ROWS = "shards.json", "rows.safetensors"
ARRAYS = ("key", "label", "size", "crc", "n_boxes", "boxes")
KINDS = dict.fromkeys(ARRAYS, "<i8") | {"crc": "<u4", "boxes": "<f8"}


def shard_name(part: Part, number: int) -> str:
    """Return the name of a shard."""
    return f"{part}-{number:06}.tar"


def sample_key(key: int) -> str:
    """Return a key as it is written in the file names in a shard."""
    return f"{key:09}"


def is_sharded(root: str) -> bool:
    """Return whether a root contains shards; True for any URL."""
    return is_url(root) or Path(root, ABOUT).is_file()


def choice_of(wanted: ImageSelection) -> dict[str, Any]:
    """Return the settings that decide which images are in which part, as in `shards.json`."""
    choice = {k: v for k, v in asdict(wanted).items() if k not in ("source", "side")}
    choice["other_modes"] = "convert" if choice.pop("convert_modes") else "bad"
    if isinstance(choice["classes"], tuple):
        choice["classes"] = list(choice["classes"])
    return choice


@dataclass(frozen=True, slots=True)
class Shards:
    """The content of `shards.json`."""

    root: str
    classes: list[str]
    n_images: Annotated[dict[Part, list[NonNegativeInt]], Field(min_length=len(PARTS))]
    """Number of images in each shard."""
    rows: str
    """SHA-256 of the file of rows."""
    choice: dict[str, Any]
    findings: Findings


def read_content(root: str) -> str:
    """Return the SHA-256 of the file of rows, which includes a checksum of each image."""
    where = file_name(root, ABOUT)
    try:
        return str(json.loads(read_file(root, ABOUT, MAX_FILE_BYTES))["rows"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise LupiError(f"{where} was not written by `lupi data shard`: {error!r}") from None


def open_shards(root: str, wanted: ImageSelection, on_bad: OnBad) -> Shards:
    """Read `shards.json`; raise an error if the shards were made for other settings."""
    where = file_name(root, ABOUT)
    try:
        about = json.loads(read_file(root, ABOUT, MAX_FILE_BYTES))
        if about["format"] != FORMAT:
            raise LupiError(f"{where} has format {about['format']!r}, this lupi reads {FORMAT}")
        findings = {"on_bad": on_bad, "bad": about["bad"], "notes": about["notes"]}
        shards = TypeAdapter(Shards).validate_python({**about, "root": root, "findings": findings})
    except ValidationError as error:
        reason = first_error(error)
        raise LupiError(f"{where} was not written by `lupi data shard`: {reason}") from None
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise LupiError(f"{where} was not written by `lupi data shard`: {error!r}") from None
    for key, value in choice_of(wanted).items():
        if shards.choice.get(key) != value:
            raise LupiError(
                f"task.{key}: got {value!r}, but the shards in {root} were written with "
                f"{shards.choice.get(key)!r}. Use that, or write shards with `lupi data shard`"
            )
    shards.findings.check()
    return shards


@dataclass(frozen=True, slots=True)
class PartRows:
    """The rows of one part in the order of their keys, and their places in its shards."""

    y: NDArray[np.int64]
    crc: NDArray[np.uint32]
    boxes: NDArray[np.int16]
    """(N, K, 4) in stored pixels, padded with empty boxes."""
    has: NDArray[np.bool_]
    keys: NDArray[np.int64]
    """Key of each image, in the order of the shards."""
    rows: NDArray[np.int64]
    """Row of each image, in the order of the shards."""


def read_rows(shards: Shards, side: int, fit: Fit) -> Mapping[Part, PartRows]:
    """Return the rows of each part for images stored at side x side."""
    n_rows = tuple(sum(shards.n_images[part]) for part in PARTS)
    rows = _read_rows(shards.root, shards.rows, n_rows, side, fit)
    for part in PARTS:
        y = rows[part].y
        if not 0 <= y.min(initial=0) <= y.max(initial=0) < len(shards.classes):
            raise _not_together(shards.root, f"labels of {part} without a class")
    check_sizes(dict(zip(PARTS, n_rows, strict=True)), rows["train"].y, shards.classes)
    return rows


@lru_cache(maxsize=2)  # a comparison builds its task once for each arm
def _read_rows(
    root: str, sha256: str, n_rows: tuple[int, ...], side: int, fit: Fit
) -> Mapping[Part, PartRows]:
    data = read_file(root, ROWS, 4 * MAX_FILE_BYTES)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise _not_together(root, "copy both")
    try:
        arrays = load_arrays(data)
        for part, n in zip(PARTS, n_rows, strict=True):
            _check_arrays({name: arrays[f"{part}.{name}"] for name in ARRAYS}, n)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise LupiError(f"{file_name(root, ROWS)} can't be read: {error}") from None
    placed = {part: _placed(arrays, part, side, fit) for part in PARTS}
    # As many places for boxes in every part as in the cache: a random control draws for each.
    n_places = max((len(boxes) for of_part in placed.values() for boxes in of_part), default=0)
    if 8 * n_places * sum(n_rows) > largest_content(len(data)):
        raise LupiError(f"{file_name(root, ROWS)} has {n_places:,} boxes of one image: too many")
    return {part: _part_rows(arrays, part, stack_boxes(placed[part], n_places)) for part in PARTS}


def _not_together(root: str, what: str) -> LupiError:
    return LupiError(f"{file_name(root, ROWS)} does not belong to {ABOUT} beside it: {what}")


def _check_arrays(of_part: Mapping[str, NDArray[Any]], n_rows: int) -> None:
    """Raise a ValueError if these are not the arrays of a part with this number of rows."""
    if n_rows == 0:
        raise ValueError("there is a part without images")
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(ARRAYS, (n_rows,))
    shapes |= {"size": (n_rows, 2), "boxes": (len(of_part["boxes"]), 4)}
    for name, array in of_part.items():
        if array.dtype != KINDS[name] or array.shape != shapes[name]:
            raise ValueError(f"{name} has {array.dtype} of shape {array.shape} for {n_rows} rows")
    keys, sizes, n_boxes, boxes = (of_part[name] for name in ("key", "size", "n_boxes", "boxes"))
    if len(np.unique(keys)) < n_rows or keys.min(initial=0) < 0:
        raise ValueError("duplicate keys")
    if not 1 <= sizes.min(initial=1) <= sizes.max(initial=1) <= MAX_PIXELS:
        raise ValueError("images without a size")
    if n_boxes.min(initial=0) < 0 or sum(n_boxes.tolist()) != len(boxes):
        raise ValueError("boxes and their numbers differ")
    if not np.isfinite(boxes).all():
        raise ValueError("boxes that end nowhere")


def _placed(
    arrays: Mapping[str, NDArray[Any]], part: Part, side: int, fit: Fit
) -> list[list[PixelBox]]:
    """Return the boxes of each image of a part in stored pixels, in the order of the shards."""
    sizes, boxes = (arrays[f"{part}.{name}"] for name in ("size", "boxes"))
    of_images = np.split(boxes, np.cumsum(arrays[f"{part}.n_boxes"])[:-1])
    return [
        place_boxes(some.tolist(), (width, height), side, fit)
        for some, (width, height) in zip(of_images, sizes.tolist(), strict=True)
    ]


def _part_rows(
    arrays: Mapping[str, NDArray[Any]], part: Part, boxes: NDArray[np.int16]
) -> PartRows:
    """Sort the rows of a part by key."""
    keys, labels, crcs = (arrays[f"{part}.{name}"] for name in ("key", "label", "crc"))
    order = np.argsort(keys)
    rows = np.empty_like(order)
    rows[order] = np.arange(len(order))
    has = np.any(boxes[..., 2] > boxes[..., 0], axis=1)  # empty ones fill up
    return PartRows(labels[order], crcs[order], boxes[order], has[order], keys, rows)


def read_shard(
    root: str, name: str, keys: NDArray[np.int64], wanted: NDArray[np.bool_]
) -> Iterator[tuple[int, bytes]]:
    """Yield the place in the shard and the file of each wanted image.

    Reading stops after the last one. Members are never unpacked to disk, and only the bytes of
    the image are used.

    Args:
        root: where the shards are.
        name: of the shard.
        keys: of all its images, in their order.
        wanted: which of them are wanted.
    """
    where = file_name(root, name)
    last = int(np.flatnonzero(wanted)[-1])
    place = -1
    try:
        with closing(open_file(root, name)) as file:
            for member, content in islice(_members(file), 2 * len(keys)):
                key, _, suffix = member.partition(".")
                if suffix == "json":
                    continue
                place += 1
                if place >= len(keys) or key != sample_key(int(keys[place])):
                    raise LupiError(f"{where} does not belong to {ABOUT} beside it: {member!r}")
                if wanted[place]:
                    yield place, content
                if place == last:
                    return
    except (OSError, EOFError, tarfile.TarError) as error:
        raise LupiError(f"{where} can't be read: {error}") from None
    raise LupiError(f"{where} ends after {place + 1} images of {len(keys)}: it is incomplete")


def _members(file: Any) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each member; only plain files with short names are allowed.

    tarfile would read other kinds of headers, which can be of any size.
    """
    while (header := file.read(tarfile.BLOCKSIZE)).strip(b"\0"):
        member = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
        if member.type != tarfile.REGTYPE or not 0 <= member.size <= MAX_FILE_BYTES:
            raise tarfile.ReadError(
                f"{member.name!r} is not a file of at most {MAX_FILE_BYTES:,} bytes"
            )
        content = read_at_most(file, member.size)
        padding = -member.size % tarfile.BLOCKSIZE
        if len(content) < member.size or len(file.read(padding)) < padding:
            raise EOFError(f"it is cut off in {member.name!r}")
        yield member.name, content

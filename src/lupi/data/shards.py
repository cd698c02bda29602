"""Shards: the pictures of a source as tar files in webdataset's layout, and what they hold.

    <root>/train-000000.tar …  pictures as they were, each <key>.jpg with <key>.json beside it
           val-000000.tar …    (its name, class, size and boxes)
           test-000000.tar …
           rows.safetensors    of every picture: key, class, size, boxes, checksum
           shards.json         classes, counts, how the pictures were chosen; written last

A key is the place of a picture in its part before bad ones were left out, so the rows of a part, in
the order of their keys, are those of the cache of the same source. Training pictures are dealt to
the shards in an order drawn once: a class is all over them.
"""

import hashlib
import json
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays

from lupi.data.boxes import PixelBox, place_boxes, stack_boxes
from lupi.data.cache import Wanted
from lupi.data.decode import Fit
from lupi.data.index import PARTS, Finding, Findings, OnBad, Part
from lupi.data.remote import file_name, is_url, open_file, read_file
from lupi.data.trees import MAX_FILE_BYTES
from lupi.errors import LupiError

FORMAT = 1
ABOUT, ROWS = "shards.json", "rows.safetensors"
ARRAYS = ("key", "label", "size", "crc", "n_boxes", "boxes")


def shard_name(part: Part, number: int) -> str:
    """Return the name of a shard."""
    return f"{part}-{number:06}.tar"


def sample_key(key: int) -> str:
    """Return how a key is written in the names of a shard's members."""
    return f"{key:09}"


def is_sharded(root: str) -> bool:
    """Tell whether shards are at a root: always, if it is a URL."""
    return is_url(root) or Path(root, ABOUT).is_file()


def choice_of(wanted: Wanted) -> dict[str, Any]:
    """Return what of the settings decides which pictures are in which part, as in `shards.json`."""
    choice = {k: v for k, v in asdict(wanted).items() if k not in ("source", "side")}
    choice["other_modes"] = "convert" if choice.pop("convert_modes") else "bad"
    if isinstance(choice["classes"], tuple):
        choice["classes"] = list(choice["classes"])
    return choice


@dataclass(frozen=True, slots=True)
class Shards:
    """What `shards.json` says."""

    root: str
    classes: list[str]
    n_pictures: dict[Part, list[int]]
    """Of each shard."""
    mean: list[float]
    std: list[float]
    """Of each channel's training pixels."""
    rows: str
    """SHA-256 of the file of rows."""
    choice: dict[str, Any]
    findings: Findings


def open_shards(root: str, wanted: Wanted, on_bad: OnBad) -> Shards:
    """Read what shards hold; refuse them if other pictures than the wanted ones were chosen."""
    where = file_name(root, ABOUT)
    try:
        about = json.loads(read_file(root, ABOUT, MAX_FILE_BYTES))
        if about["format"] != FORMAT:
            raise LupiError(f"{where} has format {about['format']!r}, this lupi reads {FORMAT}")
        findings = Findings(
            on_bad, [Finding(**f) for f in about["bad"]], [Finding(**f) for f in about["notes"]]
        )
        keys = ("classes", "n_pictures", "mean", "std", "rows", "choice")
        shards = Shards(root=root, findings=findings, **{key: about[key] for key in keys})
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise LupiError(f"{where} is not what `lupi data shard` wrote: {error!r}") from None
    for key, value in choice_of(wanted).items():
        if shards.choice.get(key) != value:
            raise LupiError(
                f"task.{key}: {value!r} is asked for; the shards in {root} were made with "
                f"{shards.choice.get(key)!r}. Ask for that, or make others with `lupi data shard`"
            )
    findings.check()
    return shards


@dataclass(frozen=True, slots=True)
class PartRows:
    """The rows of one part in the order of their keys, and where they are in its shards."""

    y: NDArray[np.int64]
    crc: NDArray[np.uint32]
    boxes: NDArray[np.int16]
    """(N, K, 4) in stored pixels, filled up with empty ones."""
    has: NDArray[np.bool_]
    keys: NDArray[np.int64]
    """Of each picture in the order of the shards, …"""
    rows: NDArray[np.int64]
    """… and its row."""


def read_rows(shards: Shards, side: int, fit: Fit) -> Mapping[Part, PartRows]:
    """Return the rows of each part for pictures stored at side x side."""
    return _read_rows(shards.root, shards.rows, side, fit)


@lru_cache(maxsize=2)  # a comparison builds its task once for each arm
def _read_rows(root: str, sha256: str, side: int, fit: Fit) -> Mapping[Part, PartRows]:
    arrays = _arrays(root, sha256)
    placed = {part: _placed(arrays, part, side, fit) for part in PARTS}
    # As many places for boxes in every part as in the cache: a random control draws for each.
    n_places = max((len(boxes) for of_part in placed.values() for boxes in of_part), default=0)
    return {part: _part_rows(arrays, part, stack_boxes(placed[part], n_places)) for part in PARTS}


def _arrays(root: str, sha256: str) -> Mapping[str, NDArray[Any]]:
    data = read_file(root, ROWS, 4 * MAX_FILE_BYTES)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise LupiError(f"{file_name(root, ROWS)} does not belong to {ABOUT} beside it: copy both")
    try:
        return load_arrays(data)
    except SafetensorError as error:
        raise LupiError(f"{file_name(root, ROWS)} can't be read: {error}") from None


def _placed(
    arrays: Mapping[str, NDArray[Any]], part: Part, side: int, fit: Fit
) -> list[list[PixelBox]]:
    """Return the boxes of each picture of a part in stored pixels, in the order of the shards."""
    sizes, boxes = (arrays[f"{part}.{name}"] for name in ("size", "boxes"))
    of_pictures = np.split(boxes, np.cumsum(arrays[f"{part}.n_boxes"])[:-1])
    return [
        place_boxes(some.tolist(), (width, height), side, fit)
        for some, (width, height) in zip(of_pictures, sizes.tolist(), strict=True)
    ]


def _part_rows(
    arrays: Mapping[str, NDArray[Any]], part: Part, boxes: NDArray[np.int16]
) -> PartRows:
    """Bring a part from the order of the shards into that of the keys."""
    keys, labels, crcs = (arrays[f"{part}.{name}"] for name in ("key", "label", "crc"))
    order = np.argsort(keys)
    rows = np.empty_like(order)
    rows[order] = np.arange(len(order))
    has = np.any(boxes[..., 2] > boxes[..., 0], axis=1)  # empty ones fill up
    return PartRows(labels[order], crcs[order], boxes[order], has[order], keys, rows)


def read_shard(
    root: str, name: str, keys: NDArray[np.int64], wanted: NDArray[np.bool_]
) -> Iterator[tuple[int, bytes]]:
    """Yield the place in the shard and the file of each wanted picture.

    Nothing after the last of them is read. Members are never unpacked, and nothing in them is
    believed but the bytes of the picture.

    Args:
        root: where the shards are.
        name: of the shard.
        keys: of all its pictures, in their order.
        wanted: which of them are wanted.
    """
    where = file_name(root, name)
    last = int(np.flatnonzero(wanted)[-1])
    place = -1
    try:
        with closing(open_file(root, name)) as file, tarfile.open(fileobj=file, mode="r|") as tar:
            for member in tar:
                tar.members = []  # type: ignore[attr-defined]  # it would keep them all
                key, suffix = PurePosixPath(member.name).stem, PurePosixPath(member.name).suffix
                if suffix == ".json":
                    continue
                place += 1
                if place >= len(keys) or key != sample_key(int(keys[place])):
                    raise LupiError(f"{where} does not belong to {ABOUT} beside it: {member.name}")
                if wanted[place]:
                    yield place, _content(tar, member, where)
                if place == last:
                    return
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise LupiError(f"{where} can't be read: {error}") from None
    raise LupiError(f"{where} ends after {place + 1} pictures of {len(keys)}: it is not whole")


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo, where: str) -> bytes:
    file = tar.extractfile(member) if member.isreg() and member.size <= MAX_FILE_BYTES else None
    if file is None:
        raise LupiError(f"{where}: {member.name} is no file of at most {MAX_FILE_BYTES:,} bytes")
    return file.read()

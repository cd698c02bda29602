"""Write a source's images into shards; see format.py for the format.

Every image is decoded once, so that bad ones are found now and left out as the cache does, and
goes into a shard as it was. A shard is whole or absent, and a list of its rows is written after it:
shards with a list are not made again, so that an interrupted command can be resumed.
"""

import hashlib
import io
import json
import tarfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from safetensors.numpy import save

from lupi.errors import LupiError
from lupi.files import read_json, write_json, write_whole
from lupi.loaders.findings import Findings, OnBad
from lupi.loaders.images.cache import OnDecoded, check_sizes, read_image
from lupi.loaders.images.index import ImageSelection, Item, Source
from lupi.loaders.images.regions import boxes_of, with_annotation
from lupi.loaders.images.shards.format import ABOUT, FORMAT, LIMITS, ROWS, choice_of, shard_name
from lupi.loaders.images.trees import Tree, open_tree
from lupi.settings import fingerprint
from lupi.subsets import PARTS, Part

STARTED = "unfinished.json"

Row = dict[str, Any]
"""Of an image in a shard: its key, the columns of the rows, and its boxes."""


def write_shards(
    root: Path,
    source: Source,
    wanted: ImageSelection,
    out: Path,
    on_bad: OnBad,
    shard_size: int,
    on_decoded: OnDecoded = lambda done, total: None,
) -> dict[str, Any]:
    """Write the shards that are missing, and return the content of `shards.json`.

    Args:
        root: Folder or zip of the source.
        source: Its layout.
        wanted: Which of its images.
        out: Folder for the shards.
        on_bad: What to do about bad files.
        shard_size: Images in a shard.
        on_decoded: Called with the number of images done and the total.
    """
    tree = open_tree(root)
    decided_by = {"format": FORMAT, "files": tree.fingerprint, "shard_size": shard_size}
    identity = fingerprint({**decided_by, **asdict(wanted)})
    try:
        out.mkdir(parents=True, exist_ok=True)
        with FileLock(out / ".lock"):
            if not _is_done(out, identity):
                about = _write(tree, source, wanted, out, on_bad, shard_size, on_decoded)
                write_json(out / ABOUT, {"identity": identity, **about})
            for path in (out / STARTED, *out.glob("*.tar.json"), *out.glob(".*.tmp")):
                path.unlink(missing_ok=True)
    except OSError as error:
        raise LupiError(f"--out: {out} can't be written: {error}") from None
    return read_json(out / ABOUT)


def _is_done(out: Path, identity: str) -> bool:
    """Return whether these shards are complete; refuse a folder that holds other ones."""
    written = next((name for name in (ABOUT, STARTED) if (out / name).exists()), None)
    if any(out.glob("*.tar")) and (
        written is None or read_json(out / written).get("identity") != identity
    ):
        raise LupiError(
            f"--out: {out} contains tar files of other images or settings: choose another folder, "
            "or delete it"
        )
    if written != ABOUT:
        write_json(out / STARTED, {"identity": identity})
    return written == ABOUT


def _write(
    tree: Tree,
    source: Source,
    wanted: ImageSelection,
    out: Path,
    on_bad: OnBad,
    shard_size: int,
    on_decoded: OnDecoded,
) -> dict[str, Any]:
    """Write the shards and the rows; return the content of `shards.json`."""
    findings = Findings(on_bad)
    index = source.index(tree, findings)
    if any(item.needs_mask for item in index.items):
        raise LupiError("shards support boxes but not masks: use this source without shards")
    if any(item.group is not None for item in index.items):
        raise LupiError("task.groups: shards are not divided by groups: use them without shards")
    classes, parts, _ = wanted.choose(index, findings)
    del index  # of a large source, most images are not chosen
    labels = {name: label for label, name in enumerate(classes)}
    n_done, total = 0, sum(map(len, parts.values()))

    def progress(before: int) -> Callable[[int], None]:
        return lambda n: on_decoded(before + n, total)

    rows: dict[Part, list[Row]] = {part: [] for part in PARTS}
    n_shards: dict[Part, int] = {}
    for part, items in parts.items():
        keys = np.arange(len(items))
        if part == "train":  # an order drawn once, for all time
            keys = np.random.default_rng(0).permutation(len(items))
        starts = range(0, len(keys), shard_size)
        for number, start in enumerate(starts):
            some = {key: items[key] for key in keys[start : start + shard_size].tolist()}
            path = out / shard_name(part, number)
            listed = path.with_name(f"{path.name}.json")
            if not listed.exists():
                told = _write_shard(path, some, tree, labels, wanted, on_bad, progress(n_done))
                write_json(listed, told)
            content = read_json(listed)
            findings.extend(content["findings"])
            findings.check()  # an earlier call may have skipped what this one stops at
            rows[part] += [{**row, "shard": number} for row in content["rows"]]
            n_done += len(some)
        n_shards[part] = len(starts)
    n_images = {part: len(of_part) for part, of_part in rows.items()}
    train_y = np.array([row["label"] for row in rows["train"]], dtype=np.int64)
    check_sizes(n_images, train_y, classes)
    return {
        "format": FORMAT,
        "choice": choice_of(wanted),
        "classes": classes,
        "n_images": n_images,
        "n_shards": n_shards,
        "rows": _write_rows(out / ROWS, rows),
        "findings": findings.described(),
    }


def _write_shard(
    path: Path,
    items: Mapping[int, Item],
    tree: Tree,
    labels: Mapping[str, int],
    wanted: ImageSelection,
    on_bad: OnBad,
    on_done: Callable[[int], None],
) -> dict[str, Any]:
    """Write a shard of the items with these keys; return its rows and what was found."""
    findings = Findings(on_bad)
    rows: list[Row] = []

    def write(temporary: Path) -> None:
        with tarfile.open(temporary, "w", format=tarfile.USTAR_FORMAT) as tar:
            for n, (key, item) in enumerate(items.items()):
                on_done(n)
                read = read_image(tree, item.name, wanted, findings)
                if read is None:
                    continue
                data, image = read
                item = with_annotation(item, tree, findings)
                boxes = boxes_of(item, image, wanted.fit, findings).tolist()
                row: Row = {"label": labels[item.label], "boxes": boxes}
                suffix = PurePosixPath(item.name).suffix.lower()
                offset = _add(tar, f"{key:09}{suffix}", data)
                told = {"name": item.name, "class": item.label, **row}
                _add(tar, f"{key:09}.json", json.dumps(told).encode())
                place = {"offset": offset, "n_bytes": len(data), "crc": zlib.crc32(data)}
                has = {"has_region": bool(boxes) or item.shapes == (), "n_boxes": len(boxes)}
                rows.append({"key": key, **row, **place, **has})

    write_whole(path, write)
    return {"rows": rows, "findings": findings.described()}


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> int:
    """Add a file without date and owner; return where its content starts."""
    member = tarfile.TarInfo(name)
    member.size = len(content)
    start = tar.offset + tarfile.BLOCKSIZE  # after its header
    tar.addfile(member, io.BytesIO(content))
    return start


def _write_rows(path: Path, rows: Mapping[Part, Sequence[Row]]) -> str:
    """Write the rows of all parts in the order of their keys; return the SHA-256 of the file."""
    arrays: dict[str, NDArray[Any]] = {}
    for part, of_part in rows.items():
        ordered = sorted(of_part, key=lambda row: row["key"])
        for name in LIMITS:
            arrays[f"{part}.{name}"] = np.array([row[name] for row in ordered], dtype=np.int64)
        boxes = np.array([box for row in ordered for box in row["boxes"]], np.float64)
        arrays[f"{part}.boxes"] = boxes.reshape(-1, 4)
    content = save(arrays)

    def write(temporary: Path) -> None:
        temporary.write_bytes(content)

    write_whole(path, write)
    return hashlib.sha256(content).hexdigest()

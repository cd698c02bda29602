"""Write a source's images into shards: see shards.py for what they look like.

Every image is decoded once, so that bad ones are found now and left out as the cache does, and
goes into a shard as it was. A shard is whole or absent, and a list of its rows is written after it:
shards with a list are not made again, so a sharding that was killed goes on where it was.
"""

import hashlib
import io
import json
import tarfile
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from safetensors.numpy import save

from lupi.errors import LupiError
from lupi.files import read_json, write_json, write_whole
from lupi.loaders.findings import Finding, Findings, OnBad
from lupi.loaders.images.boxes import boxes_of
from lupi.loaders.images.cache import ImageSelection, check_sizes
from lupi.loaders.images.decode import image_size_limit
from lupi.loaders.images.layouts.holdout import hold_out
from lupi.loaders.images.layouts.index import PARTS, Item, Part, Source, pick_classes
from lupi.loaders.images.layouts.trees import Tree, open_tree
from lupi.loaders.images.shards.format import (
    ABOUT,
    ARRAYS,
    FORMAT,
    ROWS,
    choice_of,
    sample_key,
    shard_name,
)
from lupi.loaders.images.writer import OnDecoded, read_image
from lupi.settings import fingerprint

STARTED = "unfinished.json"

Row = dict[str, Any]
"""Of an image in a shard: key, label, size, boxes, crc."""


def write_shards(
    root: Path,
    source: Source,
    wanted: ImageSelection,
    out: Path,
    on_bad: OnBad,
    shard_size: int,
    on_decoded: OnDecoded = lambda done, total: None,
) -> dict[str, Any]:
    """Write the shards that are missing, and return what `shards.json` says.

    Args:
        root: folder or zip of the source.
        source: its layout.
        wanted: which of its images.
        out: folder for the shards.
        on_bad: what to do about bad files.
        shard_size: images in a shard.
        on_decoded: told how far it is.
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
    """Tell whether these shards are there; refuse a folder that holds other ones."""
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
    w = wanted
    classes, items = pick_classes(source.index(tree, findings), w.classes, findings)
    if any(item.masks or item.outlines for item in items):
        raise LupiError("shards support boxes but not masks: use this source without shards")
    if any(item.group is not None for item in items):
        raise LupiError("task.groups: shards are not divided by groups: use them without shards")
    parts = hold_out(items, w.n_val, w.n_test, w.n_train, w.annotated_only)
    writer = ShardWriter(tree, out, classes, w, findings, sum(map(len, parts.values())), on_decoded)
    rows: dict[Part, list[list[Row]]] = {}
    with image_size_limit():
        for part in PARTS:
            keys = _order(part, len(parts[part]))
            rows[part] = [
                writer.write(shard_name(part, i), keys[start : start + shard_size], parts[part])
                for i, start in enumerate(range(0, len(keys), shard_size))
            ]
    n_images = {part: [len(shard) for shard in rows[part]] for part in PARTS}
    every = {part: [row for shard in rows[part] for row in shard] for part in PARTS}
    train_y = np.array([row["label"] for row in every["train"]], dtype=np.int64)
    check_sizes({part: sum(n_images[part]) for part in PARTS}, train_y, classes)
    return {
        "format": FORMAT,
        "choice": choice_of(w),
        "classes": classes,
        "n_images": n_images,
        "rows": _write_rows(out / ROWS, every),
        "bad": [asdict(finding) for finding in findings.bad],
        "notes": [asdict(finding) for finding in findings.notes],
    }


def _order(part: Part, n: int) -> NDArray[np.int64]:
    """Return in which order images go into shards: of train drawn once, for all time."""
    return np.random.default_rng(0).permutation(n) if part == "train" else np.arange(n)


class ShardWriter:
    """Writes shards that are not there yet.

    Args:
        tree: where the images are.
        out: folder for the shards.
        classes: a label is the place of an item's class here.
        wanted: how images are decoded to find bad ones.
        findings: Collects problems.
        n_items: how many images will come.
        on_decoded: told how far it is.
    """

    def __init__(
        self,
        tree: Tree,
        out: Path,
        classes: Sequence[str],
        wanted: ImageSelection,
        findings: Findings,
        n_items: int,
        on_decoded: OnDecoded,
    ) -> None:
        self.tree, self.out, self.wanted, self.findings = tree, out, wanted, findings
        self.labels = {name: label for label, name in enumerate(classes)}
        self.n_seen, self.n_items, self.on_decoded = 0, n_items, on_decoded

    def write(self, name: str, keys: NDArray[np.int64], items: Sequence[Item]) -> list[Row]:
        """Write a shard of the items with these keys; return the rows of those that are good."""
        listed = self.out / f"{name}.json"
        if not listed.exists():
            findings = Findings(self.findings.on_bad)
            rows: list[Row] = []

            def write(temporary: Path) -> None:
                with tarfile.open(temporary, "w", format=tarfile.USTAR_FORMAT) as tar:
                    for i, key in enumerate(keys.tolist()):
                        rows.extend(self._add(tar, key, items[key], findings))
                        self.on_decoded(self.n_seen + i + 1, self.n_items)

            write_whole(self.out / name, write)
            found = {"bad": findings.bad, "notes": findings.notes}
            told = {kind: [asdict(finding) for finding in some] for kind, some in found.items()}
            write_json(listed, {"rows": rows, **told})
        content = read_json(listed)
        self.findings.bad += [Finding(**finding) for finding in content["bad"]]
        self.findings.notes += [Finding(**finding) for finding in content["notes"]]
        self.findings.check()  # an earlier call may have skipped what this one stops at
        self.n_seen += len(keys)
        of_shard: list[Row] = content["rows"]
        return of_shard

    def _add(self, tar: tarfile.TarFile, key: int, item: Item, findings: Findings) -> list[Row]:
        """Add an image and its description to a shard; return its row, or none if it is bad."""
        w = self.wanted
        read = read_image(self.tree, item.name, w.side, w.fit, w.convert_modes, findings)
        if read is None:
            return []
        data, image = read
        size = image.width, image.height
        boxes, _ = boxes_of(item, image, w.side, w.fit, findings)
        label = self.labels[item.label]
        told = {"name": item.name, "class": item.label, "label": label, "size": size}
        suffix = PurePosixPath(item.name).suffix.lower()
        description = json.dumps({**told, "boxes": boxes}).encode()
        for end, content in ((suffix, data), (".json", description)):
            member = tarfile.TarInfo(sample_key(key) + end)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        crc = zlib.crc32(data)
        return [{"key": key, "label": label, "size": size, "boxes": boxes, "crc": crc}]


def _write_rows(path: Path, rows: dict[Part, list[Row]]) -> str:
    """Write the rows of all parts in the order of the shards; return the SHA-256 of the file."""
    arrays: dict[str, NDArray[Any]] = {}
    for part, of_part in rows.items():
        columns: list[NDArray[Any]] = [
            np.array([row["key"] for row in of_part], dtype=np.int64),
            np.array([row["label"] for row in of_part], dtype=np.int64),
            np.array([row["size"] for row in of_part], dtype=np.int64).reshape(-1, 2),
            np.array([row["crc"] for row in of_part], dtype=np.uint32),
            np.array([len(row["boxes"]) for row in of_part], dtype=np.int64),
            np.array([b for row in of_part for b in row["boxes"]], np.float64).reshape(-1, 4),
        ]
        arrays |= {f"{part}.{name}": a for name, a in zip(ARRAYS, columns, strict=True)}
    content = save(arrays)

    def write(temporary: Path) -> None:
        temporary.write_bytes(content)

    write_whole(path, write)
    return hashlib.sha256(content).hexdigest()

"""Shards that went wrong, or that someone bent: the same images, or a word to the user.

`read` goes the whole way: the index, the rows, the network that they ask for, every image.
"""

import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save

from hostile_files import HOSTILE_VALUES, answered, as_json, changed_document, damaged_bytes, fuzzed
from lupi.loaders.images.shards.format import ABOUT, ROWS
from lupi.tasks.images.image_files import shard_images
from lupi_paper.images.imagenet import ImagenetSettings, ImagenetTask
from made_images import imagenet

SHARD = "train-000000.tar"
Files = dict[str, bytes]


def settings_of(root: Path) -> ImagenetSettings:
    return ImagenetSettings(root=str(root), image_size=8, n_val=1, n_test=1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("shards")
    source = imagenet(folder / "source", n_images=5)
    shard_images(settings_of(source), folder / "out", 4, lambda done, total: None)
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


@contextmanager
def written(files: Files) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        yield Path(folder)


def with_rows(files: Files, rows: bytes) -> Files:
    """Exchange the rows, and make the sum fit."""
    about = {**json.loads(files[ABOUT]), "rows": hashlib.sha256(rows).hexdigest()}
    return {**files, ROWS: rows, ABOUT: as_json(about)}


def read(files: Files) -> list[list[bytes]]:
    """Return every row of every part."""
    with written(files) as root:
        task = ImagenetTask(settings_of(root), ImagenetTask.Network(width=2))
        task.for_run(4, 0).network()
        splits = task.splits(4, 0)
        shuffle = torch.Generator().manual_seed(0)
        passes = splits.train.batches(3, shuffle), splits.val.batches(3), splits.test.batches(3)
        return [
            [t.numpy().tobytes() for batch in batches for t in batch if isinstance(t, torch.Tensor)]
            for batches in passes
        ]


def test_whole_shards_are_read(made: Files) -> None:
    assert len(read(made)) == 3


@fuzzed
@given(data=st.data())
def test_changed_descriptions(made: Files, data: st.DataObject) -> None:
    about = data.draw(changed_document(json.loads(made[ABOUT])))
    with answered():
        read({**made, ABOUT: as_json(about)})


@fuzzed
@given(data=st.data())
def test_damaged_descriptions(made: Files, data: st.DataObject) -> None:
    with answered():
        read({**made, ABOUT: data.draw(damaged_bytes(made[ABOUT]))})


@fuzzed
@given(data=st.data())
def test_damaged_rows(made: Files, data: st.DataObject) -> None:
    with answered():
        read(with_rows(made, data.draw(damaged_bytes(made[ROWS]))))


@fuzzed
@given(data=st.data())
def test_rows_that_lie(made: Files, data: st.DataObject) -> None:
    """Values, kinds and shapes that no shards have."""
    arrays = {name: array.copy() for name, array in load(made[ROWS]).items()}
    name = data.draw(st.sampled_from(sorted(arrays)))
    array = arrays[name]
    match data.draw(st.sampled_from(["value", "value", "kind", "shape", "gone", "other"])):
        case "value" if array.size:
            lies = [0, -1, 1, 2**62] if array.dtype.kind != "f" else [np.nan, np.inf, -1e308, 1e308]
            place = data.draw(st.integers(0, array.size - 1))
            array.flat[place] = np.array(data.draw(st.sampled_from(lies))).astype(array.dtype)
        case "kind":
            with np.errstate(all="ignore"):
                arrays[name] = array.astype(data.draw(st.sampled_from(["f4", "i1", "u8", "?"])))
        case "shape":
            shapes: list[tuple[int, ...]] = [(-1,), (-1, 1), (1, -1), (*array.shape, 1)]
            arrays[name] = array.reshape(data.draw(st.sampled_from(shapes)))
        case "gone":
            del arrays[name]
        case "other":
            arrays[name] = arrays[data.draw(st.sampled_from(sorted(arrays)))][1:]
    with answered():
        read(with_rows(made, save(arrays)))


@fuzzed
@given(data=st.data())
def test_damaged_shards(made: Files, data: st.DataObject) -> None:
    with answered():
        assert read({**made, SHARD: data.draw(damaged_bytes(made[SHARD]))}) == read(made)


Member = tuple[tarfile.TarInfo, bytes]


def members_of(shard: bytes) -> list[Member]:
    with tarfile.open(fileobj=io.BytesIO(shard)) as tar:
        return [(member, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]


def packed(members: list[Member]) -> bytes:
    blocks = []
    for member, content in members:
        blocks += [member.tobuf(tarfile.GNU_FORMAT), content, bytes(-len(content) % 512)]
    return b"".join(blocks) + bytes(1024)


KINDS = [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
KINDS += [tarfile.GNUTYPE_SPARSE, tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE, b"?"]
NAMES = ["../{}", "/etc/{}", "./{}", "a/../{}", "{}/", "x{}", "{}\0", "{}" + "x" * 120, "\udcff{}"]
SIZES = [0, 1, 511, 2**20, 2**33, 2**60, -1, -512]


@fuzzed
@given(data=st.data())
def test_shards_that_lie(made: Files, data: st.DataObject) -> None:
    """Other members than the index names, in another order, of other kinds, names and sizes."""
    members = members_of(made[SHARD])
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.integers(0, len(members) - 1))
        member, content = members[place]
        match data.draw(st.sampled_from(["swap", "gone", "twice", "name", "kind", "size", "json"])):
            case "swap":
                other = data.draw(st.integers(0, len(members) - 1))
                members[place], members[other] = members[other], members[place]
            case "gone" if len(members) > 1:
                del members[place]
            case "twice":
                members.insert(place, members[place])
            case "name":
                name = data.draw(st.sampled_from(NAMES)).format(member.name)
                members[place] = member.replace(name=name, deep=False), content
            case "kind":
                member.type = data.draw(st.sampled_from(KINDS))
            case "size":
                member.size = data.draw(st.sampled_from(SIZES))
            case "json":
                told = as_json(data.draw(st.sampled_from(HOSTILE_VALUES)))
                described = tarfile.TarInfo(Path(member.name).stem + ".json")
                described.size = len(told)
                members[place] = described, told
    with answered():
        assert read({**made, SHARD: packed(members)}) == read(made)

"""Small files that would fill the memory or never end: refused within a little memory and time."""

import json
import os
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from lupi.loaders.images.shards.format import LIMITS

ROOM = 2**30
"""Bytes of address space that a reader may take on top of what its imports took."""
SECONDS = 240
"""For a busy machine; all of them take some."""

READ = """
import json, resource, sys
from pathlib import Path
from typing import Any
{imports}
pages = int(Path("/proc/self/statm").read_text().split()[0])
most = pages * resource.getpagesize() + {room}
resource.setrlimit(resource.RLIMIT_AS, (most, most))
for name, read in {readers}:
    path = Path(name)
    try:
        exec(read)
        said = "read"
    except Exception as error:
        said = f"{{type(error).__name__}} {{error}}"
    print(json.dumps([name, said]), flush=True)
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the readers say, all in one process with little memory."""
    if sys.platform != "linux":
        pytest.skip("needs a limit of address space")
    folder = tmp_path_factory.mktemp("bombs")
    for make, suffix, _, _ in BOMBS:
        make(folder / f"{make.__name__}{suffix}")
    readers = [(f"{make.__name__}{suffix}", reader[1]) for make, suffix, reader, _ in BOMBS]
    imports = "\n".join(dict.fromkeys(reader[0] for _, _, reader, _ in BOMBS))
    done = subprocess.run(
        [sys.executable, "-c", READ.format(imports=imports, readers=readers, room=ROOM)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(map(json.loads, done.stdout.splitlines()))


def yaml_laughs(path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    path.write_text("\n".join(lines))


def yaml_merges(path: Path) -> None:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}" for i in range(1, 12)]
    path.write_text("\n".join(lines))


def yaml_circle(path: Path) -> None:
    path.write_text("a: &a [*a]")


def yaml_depth(path: Path) -> None:
    path.write_text("a: " + "[" * 100_000)


def yaml_endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def png_100_megapixels(path: Path) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", 10_000, 10_000, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(30_001) * 10_000, 1)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )  # fmt: skip


def parquet_of_a_billion_rows(path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    zeros = pa.table({"a": pa.array(np.zeros(1_000_000, dtype=np.int8))})
    with parquet.ParquetWriter(path, zeros.schema) as writer:
        for _ in range(201):
            writer.write_table(zeros)


def npy_of_a_billion_rows(path: Path) -> None:
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000)}"
    text = header.ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode())


def npz_of_zeros(path: Path) -> None:
    """1.2 GB in 1 MB."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file,
        file.open("features.npy", "w", force_zip64=True) as out,
    ):
        np.lib.format.write_array_header_1_0(
            out, {"descr": "<f8", "fortran_order": False, "shape": (150_000, 1000)}
        )
        for _ in range(1200):
            out.write(bytes(1_000_000))  # fmt: skip


def npz_of_objects(path: Path) -> None:
    np.savez(path, features=np.array([{"a": 1}] * 6, dtype=object))


def gz_of_zeros(path: Path) -> None:
    """1.2 GB in 1 MB."""
    import gzip

    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(1200):
            file.write(bytes(1_000_000))


def zip_that_lies(path: Path) -> None:
    """A member that says it has 10 bytes, and has 1.1 GB."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file,
        file.open("wnids.txt", "w") as out,
    ):
        for _ in range(1100):
            out.write(bytes(2**20))
    size = struct.pack("<I", 1100 * 2**20)
    path.write_bytes(path.read_bytes().replace(size, struct.pack("<I", 10)))


def zip_of_bzip2(path: Path) -> None:
    """90 MB in 100 bytes, by a method that can't be stopped half-way."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as file:
        file.writestr("wnids.txt", bytes(90_000_000))


def xml_laughs(path: Path) -> None:
    entities = "".join(
        f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' if i else '<!ENTITY a0 "x">' for i in range(10)
    )
    path.write_text(f"<!DOCTYPE annotation [{entities}]><annotation>&a9;</annotation>")


def xml_of_elsewhere(path: Path) -> None:
    path.write_text(
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><annotation>&x;</annotation>'
    )


def json_depth(path: Path) -> None:
    path.write_text('{"a":' * 100_000)


def json_many_digits(path: Path) -> None:
    path.write_text(
        json.dumps({"images": [], "annotations": []})[:-1] + ', "a": ' + "9" * 10**6 + "}"
    )


def csv_of_one_quote(path: Path) -> None:
    path.write_text('a,b\n1,"' + "x\n" * 1_000_000)


def shard_of_holes(path: Path) -> None:
    """A shard of 8 GB without content."""
    shard_of_a_cut_image(path)
    os.truncate(path / "train-000000.tar", 8 * 2**30)


def shard_of_a_cut_image(path: Path) -> None:
    path.mkdir()
    (path / "train-000000.tar").write_bytes(bytes(1024))


def rows_of_many_boxes(path: Path) -> None:
    """50,000 images, of which one has 50,000 boxes and all the others would have their room."""
    n = 50_000
    _rows(path, n_boxes=np.array([n] + [0] * (n - 1)), boxes=np.tile([0.0, 0.0, 0.9, 0.9], (n, 1)))


def rows_of_a_large_image(path: Path) -> None:
    _rows(path, n_bytes=np.array([2**40]))


def _rows(path: Path, **changes: NDArray[Any]) -> None:
    n = len(next(iter(changes.values())))
    rows: dict[str, NDArray[Any]] = {name: np.ones(n, np.int64) for name in LIMITS}
    rows |= {"n_boxes": np.zeros(n, np.int64), "boxes": np.zeros((0, 4)), **changes}
    one = {**{name: array[-1:] for name, array in rows.items()}, "boxes": np.zeros((0, 4))}
    parts = {"train": rows, "val": one, "test": one}
    path.mkdir()
    save_file(
        {f"{part}.{name}": array for part in parts for name, array in parts[part].items()},
        path / "rows.safetensors",
    )


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


def xlsx_of_one_far_cell(path: Path) -> None:
    """8 KB, and 17 billion cells."""
    import openpyxl  # type: ignore[import-untyped]

    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1048576"] = "a", 1
    book.save(path)


def parquet_of_one_long_text(path: Path) -> None:
    """60 KB, and 20 GB of text."""
    import pyarrow as pa
    from pyarrow import parquet

    once = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(20_000, np.int32)), pa.array(["x" * 1_000_000])
    )
    table = pa.table({"a": once})
    parquet.write_table(table, path, compression="zstd", store_schema=False)


def zip_of_deep_names(path: Path) -> None:
    """400 KB, and 4 GB of names of folders."""
    with zipfile.ZipFile(path, "w") as file:
        for i in range(6):
            file.writestr("a/" * 32_000 + f"{i}.png", b"")


def yaml_of_base_60(path: Path) -> None:
    path.write_text("a: !!int 1" + ":1" * 500_000)


def onnx_elsewhere(path: Path) -> None:
    """A graph whose weights are in another file."""
    from onnx import TensorProto, helper

    weight = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    weight.ClearField("float_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "/etc/passwd"), ("length", "4")):
        weight.external_data.add(key=key, value=value)
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["b"]) for n in ("x", "output")]
    node = helper.make_node("Add", ["x", "w"], ["output"])
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], [weight])
    path.write_bytes(helper.make_model(graph).SerializeToString())


YAML = ("from lupi.settings import read_yaml, override", "override(read_yaml(path), [])")
ARRAYS = ("from lupi.unpack import read_arrays", "read_arrays(path)")
TREE = (
    "from lupi.loaders.images.trees import open_tree",
    "open_tree(path).read('wnids.txt')",
)
XML = (
    "from lupi.loaders.images.annotations.voc import read_voc",
    "read_voc(path.read_bytes())",
)
TABLE = (
    "import pandas, pyarrow.parquet; from lupi.loaders import files",
    "files.read_frame(path)",
)
COCO = (
    "from lupi.loaders.images.annotations.read import *; "
    "from lupi.loaders.images.trees import open_tree",
    "tree, names = open_tree(path.parent), ImageNames([]); "
    "[read_annotations(tree, one, names, Findings('skip')) "
    "for one in find_annotations(tree, names, path.name)]",
)
IMAGE = (
    "from lupi.loaders.images.decode import *",
    "decode_image(path.read_bytes(), 64, 'crop')",
)
STREAMED = (IMAGE[0], "decode_image(path.read_bytes(), 64, 'crop')")
SHARD = (
    "import numpy; from lupi.loaders.images.shards.format import *; "
    "from lupi.loaders.images.shards.stream import *",
    "one = numpy.zeros(1, numpy.int64)\n"
    "rows = Rows(one, one, one, one, one + 512, one + 500 * 2**20, one)\n"
    "shards = Shards(name, 3, [], {}, '', {}, None)\n"
    "list(ShardedImages(shards, 'train', rows, 8, 'crop', 1).read(0, one))",
)
SHARD_ROWS = (
    "import hashlib; from lupi.loaders.images.shards.format import _read_rows",
    "sha256 = hashlib.sha256((path / 'rows.safetensors').read_bytes()).hexdigest()\n"
    "_read_rows(name, sha256, 8)",
)
TEXT = ("from lupi_paper.translation.text.parallel_text import read_lines", "read_lines(path)")
TREE_OF = (TREE[0], "open_tree(path).folders")
FOLDER = (TREE[0], "open_tree(path.parent).read(path.name)")
WEIGHTS = ("from lupi.train.checkpoint import load_weights", "load_weights(path)")
ONNX = ("from lupi.ship.onnx_file import OnnxNetwork", "OnnxNetwork(path)")
CONTENT = ("from lupi.loaders.content import fingerprint_of", "fingerprint_of([path])")
RECORD = ("from lupi.files import read_json", "read_json(path)")
BOMBS: list[tuple[Callable[[Path], None], str, tuple[str, str], str]] = [
    (yaml_laughs, ".yaml", YAML, "expands to more than 100,000 values"),
    (yaml_merges, ".yaml", YAML, "expands to more than 100,000 values"),
    (yaml_circle, ".yaml", YAML, "an alias contains itself"),
    (yaml_depth, ".yaml", YAML, "nested too deeply"),
    (yaml_endless, ".yaml", YAML, "a device, a pipe or a socket"),
    (png_100_megapixels, ".png", IMAGE, "BadImageError"),
    (png_100_megapixels, ".streamed.png", STREAMED, "BadImageError"),
    (shard_of_holes, "", SHARD, "it is sparse: 8,589,934,592 bytes"),
    (shard_of_a_cut_image, "", SHARD, "is damaged, incomplete or does not belong to"),
    (rows_of_a_large_image, "", SHARD_ROWS, "n_bytes is not between 0 and 536,870,912"),
    (rows_of_many_boxes, "", SHARD_ROWS, "has 50,000 boxes of one image: too many"),
    (parquet_of_a_billion_rows, ".parquet", TABLE, "201,000,000 rows of 1 columns"),
    (npy_of_a_billion_rows, ".npy", ARRAYS, "can't be read as arrays"),
    (npz_of_zeros, ".npz", ARRAYS, "would become 1,200,000,128 bytes"),
    (npz_of_objects, ".npz", ARRAYS, "Object arrays cannot be loaded"),
    (gz_of_zeros, ".en.gz", TEXT, "would come out of it"),
    (zip_that_lies, ".zip", TREE, "OSError"),
    (zip_of_bzip2, ".zip", TREE, "packed in an unusual way"),
    (xml_laughs, ".xml", XML, "it declares a document type"),
    (xml_of_elsewhere, ".xml", XML, "it declares a document type"),
    (json_depth, ".json", COCO, "is not JSON"),
    (json_many_digits, ".json", COCO, "is not JSON"),
    (json_depth, ".record.json", RECORD, "can't be read as a record"),
    (yaml_of_base_60, ".yaml", YAML, "is not a number"),
    (xlsx_of_one_far_cell, ".xlsx", TABLE, "more than 10,000,000 cells"),
    (parquet_of_one_long_text, ".parquet", TABLE, "which would expand to"),
    (zip_of_deep_names, ".zip", TREE_OF, "32,001 folders deep"),
    (onnx_elsewhere, ".onnx", ONNX, "it refers to other files"),
    *(
        (make, suffix, reader, expected)
        for make, expected in (
            (endless, "a device, a pipe or a socket"),
            (pipe, "a device, a pipe or a socket"),
            (sparse, "it is sparse"),
        )
        for suffix, reader in (
            (".csv", TABLE), (".csv.gz", TABLE), (".jsonl", TABLE), (".parquet", TABLE),
            (".xlsx", TABLE), (".npz", ARRAYS), (".yaml", YAML), (".json", RECORD),
            (".safetensors", WEIGHTS), (".onnx", ONNX), (".png", FOLDER), (".txt", CONTENT),
        )
    ),
    (csv_of_one_quote, ".csv", TABLE, "can't be read as CSV"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "suffix", "_", "expected"), BOMBS)
def test_refused(
    said: dict[str, str],
    make: Callable[[Path], None],
    suffix: str,
    _: tuple[str, str],
    expected: str,
) -> None:
    assert expected in said[f"{make.__name__}{suffix}"]

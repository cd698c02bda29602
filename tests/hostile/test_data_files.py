"""Every reader of data, given files that went wrong: an answer, or a word to the user."""

import gzip
import io
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from hostile_files import answered, as_json, changed_document, damaged_bytes, fuzzed
from lupi.errors import LupiError
from lupi.loaders.findings import Findings
from lupi.loaders.images import regions
from lupi.loaders.images.annotations.voc import read_voc
from lupi.loaders.images.annotations.xml import BadXmlError
from lupi.loaders.images.decode import BadImageError, decode_image
from lupi.loaders.images.folder import ImageFolder
from lupi.loaders.images.trees import open_tree
from lupi.loaders.tables.settings import TableSettings
from lupi.loaders.text.exports import find_tool
from lupi.loaders.text.made_reviews import COLUMNS, make_review
from lupi.loaders.text.rationales import (
    BadRationaleError,
    find_form,
    mark_words,
    read_cell,
    strip_tags,
)
from lupi.loaders.text.texts import TextFileSettings, load_texts
from lupi.loaders.text.tokens import locate_words
from lupi.tasks.table import TableTask
from lupi.tasks.table_network import TableNetworkSettings
from lupi.tasks.text.network import TextNetworkSettings
from lupi.tasks.text.task import TextTask
from lupi_paper.images.tiny_imagenet import TinyImagenet
from lupi_paper.translation.text.parallel_text import read_lines
from lupi_paper.translation.text.sentence_vectors import VectorFiles
from made_images import annotation
from made_reviews import settings_of
from made_table import HEADER, rows

N_LINES = 6


@contextmanager
def written(name: str, content: bytes) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        yield path


def csv_table() -> bytes:
    lines = [HEADER, *rows(40)]
    return "".join(",".join(line) + "\n" for line in lines).encode()


def parquet_table() -> bytes:
    out = io.BytesIO()
    pd.read_csv(io.BytesIO(csv_table())).to_parquet(out)
    return out.getvalue()


def excel_table() -> bytes:
    out = io.BytesIO()
    pd.read_csv(io.BytesIO(csv_table())).to_excel(out, index=False)
    return out.getvalue()


def json_table() -> bytes:
    return pd.read_csv(io.BytesIO(csv_table())).to_json(orient="records", lines=True).encode()


def reviews() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame([make_review(rng) for _ in range(12)], columns=list(COLUMNS))


def csv_reviews() -> bytes:
    return reviews().to_csv(index=False).encode()


def json_reviews() -> bytes:
    return reviews().to_json(orient="records", lines=True).encode()


def parquet_reviews() -> bytes:
    out = io.BytesIO()
    reviews().to_parquet(out)
    return out.getvalue()


def read_reviews(path: Path) -> None:
    for on_bad in ("stop", "skip"):
        with suppress(LupiError):
            task = TextTask(settings_of(path, on_bad=on_bad), TextNetworkSettings())
            task.splits(2, 0)


def image(format_: str, mode: str = "RGB", **options: Any) -> bytes:
    out = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 255, (12, 9, 3), dtype=np.uint8)
    Image.fromarray(pixels).convert(mode).save(out, format_, **options)
    return out.getvalue()


def arrays(**content: Any) -> bytes:
    out = io.BytesIO()
    np.savez(out, **content)
    return out.getvalue()


def array(content: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, content)
    return out.getvalue()


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name in ("top/wnids.txt", "top/val/val_annotations.txt", "top/train/n1/n1_boxes.txt"):
            file.writestr(name, "n1\t0\t0\t5\t5\n" * 3)
    return out.getvalue()


def read_table(path: Path) -> None:
    raw = {"path": path, "target": "hours", "privileged": ["rain", "traffic"], "ignore": ["late"]}
    task = TableTask(TableSettings.parse(raw, "task"), TableNetworkSettings(n_hidden=2))
    next(iter(task.splits(4, 0).train.batches(4)))


def read_vectors(path: Path) -> None:
    VectorFiles(str(path), None, "train", N_LINES, 2, skip_bad=True)


def read_zip(path: Path) -> None:
    tree = open_tree(path)
    TinyImagenet().index(tree, Findings("skip"))
    for name in tree.names:
        with suppress(OSError):
            tree.read(name)


def read_xml(path: Path) -> None:
    read_voc(path.read_bytes())


def read_image(path: Path) -> None:
    decode_image(path.read_bytes(), 8, "crop")


def read_mask(path: Path) -> None:
    regions.fit_mask(regions.read_mask(path.read_bytes(), (9, 12)), 8, "squash")


def read_boxes(path: Path) -> None:
    for save in (path.parent / "cats/1.png", path.parent / "dogs/2.png"):
        save.parent.mkdir()
        save.write_bytes(b"")
    ImageFolder(boxes=path.name).index(open_tree(path.parent), Findings("skip"))


def read_yolo(path: Path) -> None:
    for save in ("cats/1.png", "dogs/2.png"):
        (path.parent / save).parent.mkdir()
        (path.parent / save).write_bytes(b"")
    path.rename(path.parent / "cats/1.txt")
    (path.parent / "classes.txt").write_text("cat\ndog\n")
    ImageFolder(boxes="cats").index(open_tree(path.parent), Findings("skip"))


def read_rationale(path: Path) -> None:
    """Read a file whose first line is a text and whose others are its rationales."""
    text, *cells = path.read_bytes().decode("utf-8", "replace").split("\n")
    words = locate_words(text)
    for raw in cells:
        with suppress(BadRationaleError):
            cell = read_cell(raw)
            form = find_form([cell])
            if cell is not None and form is not None:
                mark_words(cell, form, text, words, "mean")
            strip_tags(raw, ("r",))


def read_labels(path: Path) -> None:
    (path.parent / "1.png").write_bytes(b"")
    ImageFolder(labels=path.name).index(open_tree(path.parent), Findings("skip"))


def read_tiny_list(path: Path) -> None:
    (path.parent / "val").mkdir()
    path.rename(path.parent / "val/val_annotations.txt")
    (path.parent / "wnids.txt").write_text("n1\nn2\n")
    TinyImagenet().index(open_tree(path.parent), Findings("skip"))


RATIONALES = b"""the handle is awful, and the sound is superb
[[4, 10], [14, 19]]
["handle is awful", "sound ... superb"]
[0, 1, 1, 1, 0, 0, 0, 0, 0]
0 1 1 1 0 0 0 0 0
[[0, 1, 1, 1, 0, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0, 0, 0, 0]]
[4, 5, 6, 7, 8, 9]
the <r>handle</r> is awful"""
CVAT = b"""<annotations><image id="0" name="cats/1.png" width="40" height="20">
<box label="cat" xtl="10" ytl="4" xbr="20" ybr="12"/>
<polygon label="cat" points="10,4;20,4;20,12;10,12"/>
<mask label="dog" rle="0, 80" left="10" top="4" width="10" height="8"/></image></annotations>"""
VECTORS, ROWS = np.arange(12.0).reshape(N_LINES, 2), np.arange(N_LINES)
READERS: dict[str, tuple[str, bytes, Callable[[Path], object]]] = {
    "PASCAL XML": ("1.xml", annotation((1, 2, 3, 4)).encode(), read_xml),
    "CVAT": ("cvat.xml", CVAT, read_boxes),
    "boxes as CSV": ("boxes.csv", b"file,x0,y0,x1,y1\n1.png,1,2,3,4\n" * 2, read_boxes),
    "labels as CSV": ("labels.csv", b"file,label,part\n1.png,cat,train\n" * 2, read_labels),
    "Tiny ImageNet's list": ("val.txt", b"val_0.JPEG\tn1\t0\t0\t5\t5\n" * 2, read_tiny_list),
    "table as CSV": ("table.csv", csv_table(), read_table),
    "table as Excel": ("table.xlsx", excel_table(), read_table),
    "table as JSON lines": ("table.jsonl", json_table(), read_table),
    "YOLO": ("1.txt", b"0 0.5 0.4 0.2 0.1\n1 0.1 0.1 0.5 0.1 0.5 0.6 0.1 0.6\n", read_yolo),
    "rationales": ("cells.txt", RATIONALES, read_rationale),
    "table as Parquet": ("table.parquet", parquet_table(), read_table),
    "texts as CSV": ("reviews.csv", csv_reviews(), read_reviews),
    "texts as gz": ("reviews.csv.gz", gzip.compress(csv_reviews(), mtime=0), read_reviews),
    "texts as JSON lines": ("reviews.jsonl", json_reviews(), read_reviews),
    "texts as Parquet": ("reviews.parquet", parquet_reviews(), read_reviews),
    "vectors as npz": ("v.npz", arrays(train_features=VECTORS, train_rows=ROWS), read_vectors),
    "vectors as npy": ("v.npy", array(VECTORS), read_vectors),
    "captions": ("captions.txt", b"a dog and a cat\n" * N_LINES, read_vectors),
    "text": ("train.en", b"a dog\nthe cat\n", read_lines),
    "text as gz": ("train.en.gz", gzip.compress(b"a dog\nthe cat\n", mtime=0), read_lines),
    "zip": ("x.zip", zipped(), read_zip),
    "PNG": ("1.png", image("PNG"), read_image),
    "PNG with a palette": ("1.png", image("PNG", "P", transparency=3), read_image),
    "16-bit PNG": ("1.png", image("PNG", "I;16"), read_image),
    "JPEG": ("1.jpg", image("JPEG"), read_image),
    "CMYK JPEG": ("1.jpg", image("JPEG", "CMYK"), read_image),
    "GIF": ("1.gif", image("GIF", "P"), read_image),
    "TIFF": ("1.tif", image("TIFF"), read_image),
    "TIFF of floats": ("1.tif", image("TIFF", "F"), read_image),
    "WebP": ("1.webp", image("WEBP"), read_image),
    "BMP": ("1.bmp", image("BMP"), read_image),
    "PPM": ("1.ppm", image("PPM"), read_image),
    "mask": ("1.png", image("PNG", "L"), read_mask),
    "mask with a palette": ("1.png", image("PNG", "P"), read_mask),
    "TIFF as a mask": ("1.tif", image("TIFF", "F"), read_mask),
}  # fmt: skip
TOLD = (BadXmlError, BadImageError)
"""Findings that name the file, beside `LupiError`."""


@pytest.mark.parametrize("kind", READERS)
@fuzzed
@given(data=st.data())
def test_damaged_files(kind: str, data: st.DataObject) -> None:
    name, whole, read = READERS[kind]
    with written(name, data.draw(damaged_bytes(whole))) as path, answered(*TOLD):
        read(path)


@pytest.mark.parametrize("kind", READERS)
def test_undamaged_files_are_read(kind: str) -> None:
    name, whole, read = READERS[kind]
    with written(name, whole) as path:
        read(path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b'"name": "traffic"', b'"name": "draffic"', "no column is called `traffic`"),
        (b"bike", b"bi\xffe", "Invalid UTF8"),
    ],
)
def test_parquet_files_that_once_gave_a_traceback(old: bytes, new: bytes, said: str) -> None:
    out = io.BytesIO()
    pd.read_csv(io.BytesIO(csv_table())).to_parquet(out, compression=None)
    assert old in out.getvalue()
    with (
        written("table.parquet", out.getvalue().replace(old, new)) as path,
        pytest.raises(LupiError, match=said),
    ):
        read_table(path)


SHAPES: list[dict[str, Any]] = [
    {"bbox": [1, 2, 3, 4], "category_id": 1},
    {"segmentation": [[1, 1, 5, 1, 5, 5, 1, 5]], "category_id": 2},
    {"segmentation": {"size": [10, 10], "counts": [11, 5, 84]}},
    {"segmentation": {"size": [10, 10], "counts": ";5d2"}},
]
SIZED = {"original_width": 10, "original_height": 10}
VALUES: list[tuple[str, dict[str, Any]]] = [
    ("rectanglelabels", {"x": 25, "y": 20, "width": 25, "height": 40, "rotation": 9}),
    ("polygonlabels", {"points": [[25, 20], [50, 20], [50, 60]], "polygonlabels": ["a"]}),
    ("brush", {"format": "rle", "rle": [0, 0, 1, 144, 57, 27, 252, 1, 143, 0], "brushlabels": []}),
]
SPAN = {"start": 2, "end": 7, "text": "silly", "labels": ["why"], "label": "why"}
CHOICE = {"from_name": "mood", "type": "choices", "value": {"choices": ["bad"]}}
DOCUMENTS: dict[str, tuple[str, Any, Callable[[Path], object]]] = {
    "COCO": (
        "coco.json",
        {
            "images": [{"id": 1, "file_name": "cats/1.png", "width": 10, "height": 10}],
            "annotations": [{"image_id": 1, **shape} for shape in SHAPES],
            "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        },
        read_boxes,
    ),
    "images of Label Studio": (
        "export.json",
        [
            {
                "id": 1,
                "data": {"image": "/data/upload/3/0a1b2c3d-1.png"},
                "annotations": [
                    {"result": [{**SIZED, "type": kind, "value": value} for kind, value in VALUES]}
                ],
            }
        ],
        read_boxes,
    ),
    "texts of Label Studio": (
        "export.json",
        [
            {
                "id": i,
                "data": {"text": "a silly film", "n": 3},
                "annotations": [{"result": [CHOICE, {"type": "labels", "value": SPAN}]}],
            }
            for i in range(3)
        ],
        lambda path: read_export(path),
    ),
    "texts of Prodigy": (
        "export.jsonl",
        {"text": "a silly film", "spans": [SPAN], "label": "bad", "answer": "accept"},
        lambda path: read_export(path),
    ),
    "texts of doccano": (
        "export.jsonl",
        {"text": "a silly film", "cats": ["bad"], "entities": [[2, 7, "why"]], "label": []},
        lambda path: read_export(path),
    ),
}


def read_export(path: Path) -> None:
    columns = {"text": "text", "target": "label", "rationale": ["spans"]}
    load_texts(TextFileSettings(path=path, tool=find_tool(path), **columns))


@pytest.mark.parametrize("kind", DOCUMENTS)
@fuzzed
@given(data=st.data())
def test_changed_annotations(kind: str, data: st.DataObject) -> None:
    name, document, read = DOCUMENTS[kind]
    with written(name, as_json(data.draw(changed_document(document)))) as path, answered(*TOLD):
        read(path)


@pytest.mark.parametrize("kind", DOCUMENTS)
@fuzzed
@given(data=st.data())
def test_damaged_annotations(kind: str, data: st.DataObject) -> None:
    name, document, read = DOCUMENTS[kind]
    with written(name, data.draw(damaged_bytes(as_json(document)))) as path, answered(*TOLD):
        read(path)


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_whole_annotations_are_read(kind: str) -> None:
    name, document, read = DOCUMENTS[kind]
    with written(name, as_json(document)) as path:
        read(path)


@fuzzed
@given(
    features=st.sampled_from(
        [
            np.zeros((N_LINES, 2), dtype=dtype)
            for dtype in ("f2", "f8", "i8", "u1", "c8", "?", "U3", "S3", "M8[D]", "f4,i4")
        ]
        + [np.zeros(shape) for shape in ((), (0,), (6,), (6, 0), (0, 2), (5, 2), (6, 2, 2), (7, 2))]
        + [np.full((N_LINES, 2), value) for value in (np.nan, np.inf, -1e308)]
    ),
    rows=st.sampled_from(
        [
            *(None, ROWS, -ROWS, ROWS.astype(float), ROWS[1:], np.array(3), np.full(6, 2)),
            *(np.full(6, 2**62), np.array(["a"] * 6), np.zeros((6, 6), int)),
        ]
    ),
    prefix=st.sampled_from(["", "train_", "x"]),
)  # fmt: skip
def test_arrays_of_other_shapes_and_kinds(features: Any, rows: Any, prefix: str) -> None:
    content = {f"{prefix}features": features} | ({} if rows is None else {f"{prefix}rows": rows})
    with written("v.npz", arrays(**content)) as path, answered():
        read_vectors(path)
